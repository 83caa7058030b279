// Running operations along a dimension; `out` has the sizes of `in`.
#pragma once
#include "core/tensor.h"

namespace rushlight::cpu {

void cumsum(const Tensor& in, int64_t dim, const Tensor& out);
void cumprod(const Tensor& in, int64_t dim, const Tensor& out);
void logcumsumexp(const Tensor& in, int64_t dim, const Tensor& out);
// A NaN stays the extreme; of equal elements the last one counts.
void cumulative_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                        const Tensor& indices);
// Position of the extreme of each line (NaN first, then the first of equals); sizes of both outputs at `dim`
// are 1.
void arg_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values, const Tensor& indices);
// Lines of one element: copies, all at position 0. False for longer ones.
bool take_lines_of_one(const Tensor& in, int64_t dim, const Tensor& values, const Tensor& indices);

}  // namespace rushlight::cpu
