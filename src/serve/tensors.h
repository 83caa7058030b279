// Tensors as the Open Inference Protocol writes them: as JSON, and as bytes behind it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "io/json.h"

namespace rushlight::serve {

// "FP32"; empty for types that the protocol does not have.
std::string_view protocol_name(DType dtype);

// Throw a ValueError that begins with `what`.
// A list of whole numbers, none below zero.
std::vector<int64_t> sizes_from(const io::Json& list, std::string_view what);
Tensor tensor_from_json(const io::Json& data, DType dtype, const std::vector<int64_t>& sizes,
                        std::string_view what);
Tensor tensor_from_bytes(std::string_view bytes, DType dtype, const std::vector<int64_t>& sizes,
                         std::string_view what);

// [1,2,3]: all elements, of a contiguous tensor; false where JSON has none for one of them.
bool append_elements(std::string& out, const Tensor& t);
std::string_view bytes_of(const Tensor& t);  // contiguous

}  // namespace rushlight::serve
