// Files of the safetensors format: the length of a header, the header in JSON, then the bytes of the tensors.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dims.h"
#include "core/dtype.h"
#include "io/byte_source.h"

namespace rushlight::io {

struct SafetensorsType {
  DType dtype;
  std::string_view name;
};
inline constexpr SafetensorsType kSafetensorsTypes[] = {
    {DType::Float64, "F64"},        {DType::Float32, "F32"},   {DType::Float16, "F16"},
    {DType::BFloat16, "BF16"},      {DType::Int64, "I64"},     {DType::Int32, "I32"},
    {DType::Int16, "I16"},          {DType::Int8, "I8"},       {DType::UInt64, "U64"},
    {DType::UInt32, "U32"},         {DType::UInt16, "U16"},    {DType::UInt8, "U8"},
    {DType::Bool, "BOOL"},          {DType::Complex64, "C64"}, {DType::Float8_e4m3fn, "F8_E4M3"},
    {DType::Float8_e5m2, "F8_E5M2"}};

struct SafetensorsEntry {
  std::string name;
  DType dtype{};
  Dims shape;
  uint64_t begin = 0, end = 0;  // in the file
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes, which fill the file
  std::optional<std::vector<std::pair<std::string, std::string>>> metadata;
};

// The header, checked: every entry lies inside the file, fits its type and shape and follows the one before.
// `file` is for errors.
SafetensorsHeader read_safetensors_header(ByteSource& bytes, const std::string& file);

}  // namespace rushlight::io
