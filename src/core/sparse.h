// What a sparse tensor is made of.
#pragma once
#include "core/tensor.h"

namespace rushlight {

// Note [Sparse tensors]
// A sparse tensor lists the elements that may differ from zero. Its impl has sizes, dtype and the flag
// kSpecialElements, a storage without memory (which carries the version), no strides, and these parts:
//   COO:       indices [sparse_dim, nnz] (int64) and values [nnz, dense sizes...]. Coalesced: each position
//              occurs once, in row-major order; otherwise values at one position add up.
//   CSR, CSC:  compressed [..., rows + 1] (CSC: columns + 1), plain [..., nnz] and values [..., nnz].
//   BSR, BSC:  the same over blocks, values [..., nnz, block rows, block columns].
// The parts are plain dense tensors. Operators reach them through the gate's last interceptor
// (transform/sparse.cpp): an operator without a rule for sparse operands refuses them.
struct SparseParts {
  Layout layout = Layout::SparseCoo;
  Tensor indices = {};     // COO
  Tensor compressed = {};  // others: crow or ccol indices
  Tensor plain = {};       // others: col or row indices
  Tensor values = {};
  bool coalesced = false;  // COO
};

inline bool is_sparse(const Tensor& t) { return t->sparse != nullptr; }
// A rule meets dense operands too, where another one is sparse.
inline const SparseParts& sparse_parts(const Tensor& t) {
  RL_CHECK(t->sparse, "expected a sparse tensor, but got a strided one of shape ", t.sizes());
  return *t->sparse;
}
// Of a temporary, whose parts would die with it.
inline SparseParts sparse_parts(Tensor&& t) { return sparse_parts(std::as_const(t)); }
inline Layout layout_of(const Tensor& t) { return t->sparse ? t->sparse->layout : Layout::Strided; }
Tensor make_sparse(SparseParts parts, IntList sizes);
// Another tensor of the same parts and version: the only view that sparse tensors have.
Tensor sparse_alias(const Tensor& t);
// The tensor becomes what `source` is, in place.
void replace_sparse(const Tensor& target, const Tensor& source);

}  // namespace rushlight
