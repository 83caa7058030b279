// Sparse tensors: making them, taking them apart, converting between layouts. Note [Sparse tensors]
#pragma once
#include "core/sparse.h"
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& indices, const Tensor& values, IntList size, std::optional<bool> is_coalesced)>
    sparse_coo;  // without checks
inline Fn<Tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                 IntList size, std::optional<Layout> layout)>
    sparse_compressed;  // without checks
inline Fn<Tensor(const Tensor& self)> sparse_values, sparse_values_raw, sparse_indices, sparse_indices_raw,
    crow_indices, col_indices, ccol_indices, row_indices, coalesce, to_sparse_coo;
inline Fn<Tensor(const Tensor& self, IntList blocksize, OptInt dense_dim)> to_sparse_bsr, to_sparse_bsc;
// `pattern` with other values; and the values of a dense or sparse tensor where `pattern` has its own.
inline Fn<Tensor(const Tensor& pattern, const Tensor& values)> sparse_with_values;
inline Fn<Tensor(const Tensor& self, const Tensor& pattern, bool dense)> sparse_values_listed;
inline Tensor sparse_values_at(const Tensor& self, const Tensor& pattern) {
  return sparse_values_listed(self, pattern, !is_sparse(self));
}
inline Fn<Tensor(const Tensor& self, const Tensor& mask)> sparse_mask;
inline Fn<Tensor(const Tensor& self, IntList size)> sparse_broadcast_to;
inline Fn<Tensor(const Tensor& self, OptDType dtype, std::optional<bool> masked_grad)> to_dense;
inline Fn<Tensor(const Tensor& self, int64_t sparse_dim)> to_sparse_dim;
inline Fn<Tensor(const Tensor& self, std::optional<Layout> layout, OptIntList blocksize, OptInt dense_dim)>
    to_sparse;
inline Fn<Tensor(const Tensor& self, OptInt dense_dim)> to_sparse_csr, to_sparse_csc;
inline Fn<int64_t(const Tensor& self)> sparse_nnz, sparse_dim, sparse_dense_dim;
inline Fn<bool(const Tensor& self)> is_coalesced;

}  // namespace rushlight::ops

namespace rushlight {

bool is_block(Layout layout);
bool by_rows(Layout layout);  // of a compressed layout: CSR, BSR
std::string_view layout_text(Layout layout);
// The number of leading dimensions in which elements are listed; batch dimensions count.
int64_t sparse_dim_of(const Tensor& t);
int64_t batch_dims_of(const SparseParts& p);
// How many leading dimensions of the values count listed elements: [batch..., nnz] and those of a block.
int64_t listing_dims_of(const SparseParts& p);

// A layout with what it needs to know to be made.
struct SparseForm {
  Layout layout = Layout::SparseCoo;
  int64_t batch_dims = 0, block_rows = 1, block_columns = 1;
  bool operator==(const SparseForm&) const = default;
};
SparseForm form_of(const Tensor& t);
// A dense or sparse tensor in a compressed form; in any form.
Tensor compressed_as(std::string_view who, const Tensor& t, const SparseForm& form);
Tensor in_form(const Tensor& t, const SparseForm& form);
// A copy between compressed tensors keeps how many elements there are, and in which blocks.
void check_compressed_copy(const Tensor& self, const Tensor& source);
// Of any layout, element by element: positions [sparse_dim_of, elements] and values [elements, dense...].
Tensor element_indices(const Tensor& t);
Tensor listed_values(const Tensor& t);
// Of each listed element, its number among the elements of the sparse dimensions in row-major order.
Tensor flat_positions(const Tensor& t);
// A matrix as row starts, columns and values, for kernels.
struct CompressedRows {
  Tensor starts, columns, values;
};
CompressedRows compressed_rows(const Tensor& t);
Tensor to_layout(const Tensor& t, Layout layout);  // COO, CSR or CSC
// A tensor of zeros that lists none: COO, or matrices (with batch dimensions in front) as CSR or CSC.
Tensor without_elements(IntList sizes, DType dtype, Layout layout);
// A COO tensor whose leading dimensions of size 1, and those it lacks, are repeated up to `sizes`.
Tensor sparse_broadcast(const Tensor& t, IntList sizes);
// A gradient in the layout of `self`: dense where that is dense (or undefined), else as sparse_as; what is
// dense becomes sparse.
Tensor in_layout_of(const Tensor& g, const Tensor& self);
// A sparse gradient in the layout of the sparse `self`, a dense one as it is.
Tensor sparse_as(const Tensor& g, const Tensor& self);
// The gradients of torch.sparse.mm; those of a sparse factor have its pattern.
Tensor sparse_left_gradient(const Tensor& g, const Tensor& mat1, const Tensor& mat2);
Tensor sparse_right_gradient(const Tensor& g, const Tensor& mat1, const Tensor& mat2);

// f(t); of a sparse tensor f of the listed values at their places, for derivatives where f(0) does not
// matter.
template <class F>
Tensor at_listed(const Tensor& t, F f) {
  if (!is_sparse(t)) return f(t);
  const Tensor pattern = layout_of(t) == Layout::SparseCoo ? ops::coalesce(t) : t;
  return ops::sparse_with_values(pattern, f(ops::sparse_values_at(pattern, pattern)));
}

}  // namespace rushlight
