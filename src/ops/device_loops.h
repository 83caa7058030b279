// The loops that operators share between devices. On the meta device they do nothing.
#pragma once
#include <span>

#include "core/tensor.h"
#include "formulas/table.h"

namespace rushlight::loops {

// out = formula(inputs), broadcast to out's shape, computed in `compute`. Any dtypes in memory.
void formula(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
             std::span<const Scalar> parameters = {});
// out = condition ? a : b; condition bool, the others of any dtype.
void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b);
// out = source, broadcast and converted, also from one device to another; the two must not partly overlap.
// `non_blocking`: copies between a device and pinned memory may still be under way on return.
void copy(const Tensor& out, const Tensor& source, bool non_blocking = false);

}  // namespace rushlight::loops
