// Order statistics: sorting, selecting, searching, counting, distinct values.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, int64_t dim, bool descending)> sort;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, std::optional<bool> stable, int64_t dim,
                                     bool descending)>
    sort_stable;
inline Fn<Tensor(const Tensor& self, int64_t dim, bool descending)> argsort;
inline Fn<Tensor(const Tensor& self, bool stable, int64_t dim, bool descending)> argsort_stable;
inline Fn<Tensor(const Tensor& self)> msort;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted)>
    topk;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, int64_t k, int64_t dim, bool keepdim)> kthvalue;
inline Fn<Tensor(const Tensor& self, const Tensor& q, OptInt dim, bool keepdim,
                 std::string_view interpolation)>
    quantile, nanquantile;

inline Fn<Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                 std::optional<std::string_view> side, const Tensor& sorter)>
    searchsorted;
inline Fn<Tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right)> bucketize;
inline Fn<Tensor(const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert)> isin;
inline Fn<Tensor(const Tensor& self, const Tensor& weights, int64_t minlength)> bincount;
inline Fn<Tensor(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max)> histc;
inline Fn<Tensor(const Tensor& points, TensorList edges, bool equal, const Tensor& weight)> histogram_cells;

inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& self, bool sorted, bool return_inverse,
                                             bool return_counts)>
    unique2;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& self, int64_t dim, bool sorted,
                                             bool return_inverse, bool return_counts)>
    unique_dim;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& self, bool return_inverse, bool return_counts,
                                             OptInt dim)>
    unique_consecutive;

}  // namespace rushlight::ops
