// Fills that depend on the position.
#pragma once
#include <optional>

#include "core/tensor.h"

namespace rushlight::cpu {

// Contiguous `out`: start + i * step.
void fill_range(const Tensor& out, const Scalar& start, const Scalar& step);
// Contiguous `out`: evenly spaced from start to end, or base to those powers.
void fill_spaced(const Tensor& out, const Scalar& start, const Scalar& end, std::optional<double> base);
// Zeroes what lies outside the upper or lower triangle of the matrices in contiguous `out`.
void clear_triangle(const Tensor& out, int64_t diagonal, bool upper);

}  // namespace rushlight::cpu
