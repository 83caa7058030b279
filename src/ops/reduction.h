// Reductions: sums, products, extremes, norms, moments, logic.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, OptDType dtype)> sum, mean, prod;
inline Fn<Tensor(const Tensor& self, const OptIntList& dim, bool keepdim, OptDType dtype)> sum_dim, mean_dim,
    nansum, nanmean;
inline Fn<Tensor(const Tensor& self, int64_t dim, bool keepdim, OptDType dtype)> prod_dim;
// Sums over dimensions that were broadcast, so that the result has shape `size`.
inline Fn<Tensor(const Tensor& self, IntList size)> sum_to_size;

inline Fn<Tensor(const Tensor& self, IntList dim, bool keepdim)> amax, amin, logsumexp;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, OptInt dim, bool keepdim)> aminmax;
inline Fn<Tensor(const Tensor& self)> max, min, median, nanmedian, all, any, trace;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, int64_t dim, bool keepdim)> max_dim, min_dim,
    median_dim, nanmedian_dim, mode;
inline Fn<Tensor(const Tensor& self, const Tensor& other)> max_other, min_other;
inline Fn<Tensor(const Tensor& self, OptInt dim, bool keepdim)> argmax, argmin;

inline Fn<Tensor(const Tensor& self, int64_t dim, bool keepdim)> all_dim, any_dim;
inline Fn<Tensor(const Tensor& self, const OptIntList& dim, bool keepdim)> all_dims, any_dims;
inline Fn<Tensor(const Tensor& self, IntList dim)> count_nonzero_dims;
inline Fn<Tensor(const Tensor& self, OptInt dim)> count_nonzero;

inline Fn<Tensor(const Tensor& self, bool unbiased)> var, std;
inline Fn<Tensor(const Tensor& self, const OptIntList& dim, bool unbiased, bool keepdim)> var_dim, std_dim;
inline Fn<Tensor(const Tensor& self, const OptIntList& dim, const OptScalar& correction, bool keepdim)>
    var_correction, std_correction;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, bool unbiased)> var_mean, std_mean;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, const OptIntList& dim, bool unbiased, bool keepdim)>
    var_mean_dim, std_mean_dim;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, const OptIntList& dim, const OptScalar& correction,
                                     bool keepdim)>
    var_mean_correction, std_mean_correction;

inline Fn<Tensor(const Tensor& self, const Scalar& ord, const OptIntList& dim, bool keepdim, OptDType dtype)>
    vector_norm;
inline Fn<Tensor(const Tensor& self, const OptScalar& p, OptDType dtype)> norm_dtype;
inline Fn<Tensor(const Tensor& self, const Scalar& p)> norm;
inline Fn<Tensor(const Tensor& self, const OptScalar& p, IntList dim, bool keepdim, OptDType dtype)>
    norm_dim_dtype;
inline Fn<Tensor(const Tensor& self, const OptScalar& p, IntList dim, bool keepdim)> norm_dim;

}  // namespace rushlight::ops

namespace rushlight {

// Bit per dimension that `dim` names: all for none and, unless `empty_is_none`, for an empty list.
uint64_t dim_mask(const OptIntList& dim, int64_t ndim, bool empty_means_nothing = false);
// `reduced`, the result of reducing `dims`, with those dimensions (of size 1) put back.
Tensor restore_dims(const Tensor& reduced, uint64_t dims, int64_t ndim, bool keepdim);
// Like sum_to_size, but for shapes already known to fit; the engine's way to undo broadcasting.
Tensor sum_to(const Tensor& t, IntList sizes);

}  // namespace rushlight
