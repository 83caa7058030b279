// Statistics of tensors on a device.
#pragma once
#include "core/tensor.h"

namespace rushlight::loops {

// Means and variances (divided by the count) over `dims` in one pass, in the type that `in` computes in.
// False: not here.
bool moments(const Tensor& in, uint64_t dims, const Tensor& mean, const Tensor& variance);

}  // namespace rushlight::loops
