// Einstein summation.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

// Operands are contracted from left to right, whatever `path` says.
inline Fn<Tensor(std::string_view equation, TensorList tensors, const OptIntList& path)> einsum;

}  // namespace rushlight::ops
