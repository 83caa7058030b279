// Copies between any layouts and types, and fills.
#pragma once
#include "core/tensor.h"

namespace rushlight::cpu {

// out = source, broadcast and converted; the two must not partly overlap.
void copy(const Tensor& out, const Tensor& source);
void clear(void* data, size_t nbytes);

}  // namespace rushlight::cpu
