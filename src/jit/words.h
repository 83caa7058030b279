// The bare words of a graph's text that stand for layouts and memory formats.
#pragma once
#include <optional>
#include <string_view>

#include "core/device.h"
#include "core/dtype.h"

namespace rushlight::jit {

inline constexpr std::string_view kLayouts[] = {"strided",    "sparse_coo", "sparse_csr",
                                                "sparse_csc", "sparse_bsr", "sparse_bsc"};
inline constexpr std::string_view kMemoryFormats[] = {"contiguous_format", "preserve_format", "channels_last",
                                                      "channels_last_3d"};

template <class T, size_t N>
std::optional<T> word_in(const std::string_view (&words)[N], std::string_view word) {
  for (size_t i = 0; i < N; ++i)
    if (words[i] == word) return static_cast<T>(i);
  return std::nullopt;
}

inline std::optional<DType> dtype_word(std::string_view word) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (dtype_name(static_cast<DType>(i)) == word) return static_cast<DType>(i);
  return std::nullopt;
}
// As an argument, a quantised one too: no input and no constant is of such a type.
inline std::optional<DType> dtype_argument(std::string_view word) {
  for (const DType t : {DType::QUInt8, DType::QInt8, DType::QInt32})
    if (dtype_name(t) == word) return t;
  return dtype_word(word);
}

}  // namespace rushlight::jit
