// Running sums, products and extremes along a dimension.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, int64_t dim, OptDType dtype)> cumsum, cumprod;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, int64_t dim)> cummax, cummin;
inline Fn<Tensor(const Tensor& self, int64_t dim)> logcumsumexp;
inline Fn<Tensor(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append)>
    diff;

}  // namespace rushlight::ops
