// Indexing with tensors: reading (index, gather, take) and writing (index_put_, scatter) at computed
// positions.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, TensorList indices)> index, unsafe_index;
inline Fn<Tensor(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate)> index_put_,
    index_put;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index)> index_select;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad)> gather;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src)> scatter_src,
    scatter_add;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value)> scatter_value;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 std::string_view reduce)>
    scatter_src_reduce;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                 std::string_view reduce)>
    scatter_value_reduce;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 std::string_view reduce, bool include_self)>
    scatter_reduce;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha)>
    index_add;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source)> index_copy;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 std::string_view reduce, bool include_self)>
    index_reduce;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value)> index_fill;
inline Fn<Tensor(const Tensor& self, const Tensor& mask)> masked_select;
inline Fn<Tensor(const Tensor& self, const Tensor& mask, const Tensor& source)> masked_scatter;
inline Fn<Tensor(const Tensor& self, const Tensor& index)> take;
inline Fn<Tensor(const Tensor& self, const Tensor& indices, OptInt dim)> take_along_dim;
inline Fn<Tensor(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate)> put;
inline Fn<Tensor(const Tensor& self)> nonzero, argwhere;
inline Fn<Tensor(const Tensor& self, int64_t size, int64_t fill_value)> nonzero_static;
inline Fn<std::vector<Tensor>(const Tensor& self)> nonzero_numpy;
inline Fn<std::vector<Tensor>(const Tensor& condition)> where_condition;
inline Fn<Tensor(const Tensor& self, IntList shifts, IntList dims)> roll;
inline Fn<Tensor(const Tensor& self, IntList repeats)> repeat, tile;
inline Fn<Tensor(const Tensor& self, int64_t repeats, OptInt dim, OptInt output_size)> repeat_interleave;
inline Fn<Tensor(const Tensor& self, const Tensor& repeats, OptInt dim, OptInt output_size)>
    repeat_interleave_tensor;
inline Fn<Tensor(const Tensor& repeats, OptInt output_size)> repeat_interleave_counts;
inline Fn<Tensor(const Tensor& tensor, int64_t num_classes)> one_hot;

}  // namespace rushlight::ops
