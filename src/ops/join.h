// Joining tensors.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(TensorList tensors, int64_t dim)> cat, concat, concatenate, stack;
inline Fn<Tensor(TensorList tensors)> hstack, vstack, dstack, column_stack, row_stack, block_diag,
    cartesian_prod;
inline Fn<Tensor(const Tensor& self, int64_t r, bool with_replacement)> combinations;

}  // namespace rushlight::ops
