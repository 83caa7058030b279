// Einstein summation.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(std::string_view equation, TensorList tensors)> einsum;

}  // namespace rushlight::ops
