// Sparse tensors whose elements are repeated along dimensions of size 1.
#include "dispatch/table.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/register.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

Tensor sparse_broadcast(const Tensor& t, IntList wanted) {
  const Tensor coo = to_layout(t, Layout::SparseCoo);
  SparseParts parts = sparse_parts(coo);
  const auto rank = static_cast<int64_t>(wanted.size());
  RL_CHECK(rank >= t.dim(), "_sparse_broadcast_to(): a tensor of shape ", t.sizes(),
           " can't be broadcast to the shape ", wanted);
  const int64_t fresh = rank - t.dim(), listed = sparse_dim_of(coo);
  std::vector<Tensor> rows;  // one for each listed dimension of the result
  for (int64_t d = 0; d < fresh + listed; ++d)
    rows.push_back(d < fresh ? ops::zeros_like(flat_positions(coo), DType::Int64, std::nullopt, std::nullopt,
                                               std::nullopt, std::nullopt)
                             : ops::select(parts.indices, 0, d - fresh));
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t own = d < fresh ? 1 : t.size(d - fresh), size = wanted[static_cast<size_t>(d)];
    RL_CHECK(own == size || own == 1, "_sparse_broadcast_to(): a tensor of shape ", t.sizes(),
             " can't be broadcast to the shape ", wanted);
    if (own == size || d >= fresh + listed) continue;
    // Each listed element once for every position along the dimension.
    const Tensor along = arange(Scalar(int64_t{0}), Scalar(size), Scalar(int64_t{1}), DType::Int64,
                                std::nullopt, std::nullopt, std::nullopt);
    const int64_t nnz = parts.values.size(0);
    for (int64_t r = 0; r < fresh + listed; ++r)
      rows[static_cast<size_t>(r)] =
          reshape(expand(r == d ? unsqueeze(along, 0) : unsqueeze(rows[static_cast<size_t>(r)], 1),
                         IntList{nnz, size}, false),
                  IntList{nnz * size});
    Dims repeated{nnz, size};
    for (int64_t k = 1; k < parts.values.dim(); ++k) repeated.push_back(parts.values.size(k));
    const Tensor values = expand(unsqueeze(parts.values, 1), repeated, false);
    Dims flat = parts.values->sizes;
    flat[0] = nnz * size;
    parts.values = reshape(values, flat);
  }
  Dims shape{parts.values.size(0)};
  for (int64_t d = fresh + listed; d < rank; ++d) shape.push_back(wanted[static_cast<size_t>(d)]);
  const bool sorted = parts.coalesced;
  const Tensor repeated = make_sparse({.indices = rows.empty() ? parts.indices : stack(rows, 0),
                                       .values = expand(parts.values, shape, false)},
                                      wanted);
  return sorted ? coalesce(repeated) : repeated;
}

static Tensor broadcast_kernel(const Call&, const Tensor& self, IntList size) {
  return sparse_broadcast(self, size);
}

static Tensor broadcast_dense_kernel(const Call& call, const Tensor& self, IntList) {
  RL_FAIL(call.op.name(), "(): expected a sparse tensor, got a dense one of shape ", self.sizes());
}

void register_sparse_broadcast_operators(Table& t) {
  t.op(sparse_broadcast_to, "_sparse_broadcast_to(Tensor self, int[] size) -> Tensor", broadcast_dense_kernel)
      .function_only()
      .doc("A COO tensor repeated along dimensions of size 1, and along new ones in front.")
      .family(Family::Sparse)
      .not_differentiable("repeats listed elements; multiply by ones instead");
  t.sparse(sparse_broadcast_to, broadcast_kernel);
}

}  // namespace rushlight
