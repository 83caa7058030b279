// Weights of int8 as products of bytes read them.
#pragma once
#include <memory>

#include "core/tensor.h"
#include "cpu/byte_product.h"

namespace rushlight {

// A weight [k, n] in panels, which are kept beside one that does not change.
std::shared_ptr<const cpu::PackedBytes> packed_bytes(const Tensor& weight);

}  // namespace rushlight
