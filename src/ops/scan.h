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

namespace rushlight {

// Whether a derivative may not divide by x. Examples under vmap and programs being captured have values that
// cannot be read: there it may not.
bool may_have_zeros(const Tensor& x);
// The powers 0, 1, ..., n - 1 of x, along a new last dimension.
Tensor first_powers(const Tensor& x, int64_t n);

}  // namespace rushlight
