// Views: tensors that look into another one's storage, and the shape operators built on them.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self)> alias, detach, t, numpy_T, matrix_H, mT, mH, adjoint, squeeze, ravel,
    fliplr, flipud;
inline Fn<Tensor(const Tensor& self, IntList size)> view, reshape, unsafe_view, permute, flip, broadcast_to;
inline Fn<Tensor(const Tensor& self, IntList size, bool implicit)> expand;
inline Fn<Tensor(const Tensor& self, const Tensor& other)> view_as, reshape_as, expand_as;
inline Fn<Tensor(const Tensor& self, DType dtype)> view_dtype;
inline Fn<Tensor(const Tensor& self, int64_t dim0, int64_t dim1)> transpose, swapaxes, swapdims, movedim_int,
    moveaxis_int;
inline Fn<Tensor(const Tensor& self, IntList source, IntList destination)> movedim, moveaxis;
inline Fn<Tensor(const Tensor& self, int64_t dim)> squeeze_dim, unsqueeze;
inline Fn<Tensor(const Tensor& self, IntList dim)> squeeze_dims;
inline Fn<Tensor(const Tensor& self, int64_t dim, int64_t index)> select;
inline Fn<Tensor(const Tensor& self, int64_t dim, OptInt start, OptInt end, int64_t step)> slice;
inline Fn<Tensor(const Tensor& self, int64_t dim, int64_t start, int64_t length)> narrow;
inline Fn<Tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length)> narrow_tensor;
inline Fn<Tensor(const Tensor& self, IntList size, IntList stride, OptInt storage_offset)> as_strided;
inline Fn<Tensor(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2)> diagonal, diag_embed;
inline Fn<Tensor(const Tensor& self, int64_t diagonal)> diag;
inline Fn<Tensor(const Tensor& self, int64_t dimension, int64_t size, int64_t step)> unfold;
inline Fn<Tensor(const Tensor& self, int64_t start_dim, int64_t end_dim)> flatten;
inline Fn<Tensor(const Tensor& self, int64_t dim, IntList sizes)> unflatten;
inline Fn<Tensor(const Tensor& self, int64_t k, IntList dims)> rot90;
inline Fn<std::vector<Tensor>(const Tensor& self, int64_t dim)> unbind;
inline Fn<std::vector<Tensor>(const Tensor& self, int64_t split_size, int64_t dim)> split;
inline Fn<std::vector<Tensor>(const Tensor& self, IntList split_sizes, int64_t dim)> split_with_sizes,
    split_sizes, tensor_split_indices;
inline Fn<std::vector<Tensor>(const Tensor& self, int64_t chunks, int64_t dim)> chunk, tensor_split;
// Derivatives of views that keep a part of the input: zeros with `grad` in that part.
inline Fn<Tensor(const Tensor& grad_output, IntList input_sizes, int64_t dim, int64_t index)> select_backward;
inline Fn<Tensor(const Tensor& grad_output, IntList input_sizes, int64_t dim, OptInt start, OptInt end,
                 int64_t step)>
    slice_backward;
inline Fn<Tensor(const Tensor& grad_output, IntList input_sizes, int64_t offset, int64_t dim1, int64_t dim2)>
    diagonal_backward;
inline Fn<Tensor(const Tensor& grad_in, IntList input_sizes, int64_t dim, int64_t size, int64_t step)>
    unfold_backward;
inline Fn<Tensor(TensorList grads, IntList input_sizes, IntList split_sizes, int64_t dim)> split_backward;
inline Fn<Tensor(TensorList grads, IntList input_sizes, int64_t dim)> unbind_backward;
// Elements move between two geometries on one imagined buffer: `shift` is the distance of the second's first
// element.
inline Fn<Tensor(const Tensor& self, IntList input_sizes, IntList input_strides, IntList size, IntList stride,
                 int64_t shift)>
    as_strided_backward, as_strided_gather;
// In-place changes of shape: the tensor object looks at its storage differently afterwards.
inline Fn<Tensor(const Tensor& self)> squeeze_, t_;
inline Fn<Tensor(const Tensor& self, int64_t dim)> squeeze_dim_, unsqueeze_;
inline Fn<Tensor(const Tensor& self, int64_t dim0, int64_t dim1)> transpose_, swapaxes_, swapdims_;
inline Fn<Tensor(const Tensor& self, IntList dim)> squeeze_dims_;
inline Fn<Tensor(const Tensor& self, IntList size, IntList stride, OptInt storage_offset)> as_strided_;
inline Fn<Tensor(const Tensor& self, IntList size, std::optional<MemoryFormat> memory_format)> resize_;

}  // namespace rushlight::ops

namespace rushlight {

// Geometry shared with indexing: the strides with which `t` shows `sizes` without copying, or nothing.
std::optional<Dims> view_strides(const Tensor& t, IntList sizes);
Dims piece_sizes(int64_t n, int64_t piece);  // what split cuts a dimension of size n into
// Resolves one -1 in `shape` against `numel` and checks the product.
Dims infer_shape(IntList shape, int64_t numel);

}  // namespace rushlight
