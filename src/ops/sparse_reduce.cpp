// The product of a CSR matrix and a dense one that reduces each row by sum, mean, maximum or minimum; changes
// of a COO tensor's size in place.
#include <bit>

#include "cpu/sparse.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using cpu::RowReduce;

inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, const Tensor& other, std::string_view reduce)>
    sparse_mm_reduce;
inline Fn<Tensor(const Tensor& self, IntList size, int64_t sparse_dim, int64_t dense_dim)> sparse_resize_,
    sparse_resize_and_clear_;

RowReduce row_reduce(std::string_view name) {
  if (name == "sum") return RowReduce::Sum;
  if (name == "mean") return RowReduce::Mean;
  if (name == "amax" || name == "max") return RowReduce::Max;
  if (name == "amin" || name == "min") return RowReduce::Min;
  RL_FAIL("torch.sparse.mm: reduce argument must be either sum, mean, amax or amin, got ", name);
}
bool chooses(RowReduce op) { return op == RowReduce::Max || op == RowReduce::Min; }

// The second result: of each element the number of the listed element that was chosen, nnz where there is
// none.
std::tuple<Tensor, Tensor> reduce_kernel(const Call&, const Tensor& self, const Tensor& other,
                                         std::string_view reduce) {
  const RowReduce op = row_reduce(reduce);
  RL_CHECK(layout_of(self) == Layout::SparseCsr && !is_sparse(other),
           "sparse_mm_reduce: Expect self to be SparseCsr and other Strided, got ",
           layout_text(layout_of(self)), " and ", layout_text(layout_of(other)));
  RL_CHECK(self.dim() == 2 && other.dim() == 2 && self.size(1) == other.size(0),
           "sparse_mm_reduce: mat1 and mat2 shapes cannot be multiplied (", self.sizes(), " and ",
           other.sizes(), ")");
  RL_CHECK(self.dtype() == other.dtype(), "sparse_mm_reduce: expected operands of one dtype, but got ",
           dtype_name(self.dtype()), " and ", dtype_name(other.dtype()));
  const CompressedRows s = compressed_rows(self);
  const Tensor dense = contiguous(other, MemoryFormat::Contiguous);
  const Dims sizes{self.size(0), other.size(1)};
  const Tensor out = empty_tensor(sizes, self.dtype(), self.device());
  const Tensor chosen = chooses(op) ? empty_tensor(sizes, DType::Int64, self.device())
                                    : empty_tensor(IntList{0}, DType::Int64, self.device());
  cpu::sparse_reduce_dense(op, self.dtype(), sizes[0], sizes[1], s.starts.data<int64_t>(),
                           s.columns.data<int64_t>(), s.values.data_ptr(), dense.data_ptr(), out.data_ptr(),
                           chooses(op) ? chosen.data<int64_t>() : nullptr);
  return {out, chosen};
}

std::tuple<Tensor, Tensor> refuse_dense(const Call&, const Tensor& self, const Tensor&, std::string_view) {
  RL_FAIL("sparse_mm_reduce: Expect self to be SparseCsr, got a dense tensor of shape ", self.sizes());
}

// Each gradient goes to the factors of the element that was chosen.
Grads chosen_gradients(const Tensor& g, const Tensor& a, const Tensor& b, const Tensor& chosen, Needs need) {
  const Tensor values = sparse_values(a), columns = to_dtype(col_indices(a), DType::Int64);
  if (values.numel() == 0)
    return Grads{need[0] ? sparse_with_values(a, zeros_like(values)) : Tensor(),
                 need[1] ? zeros_like(b) : Tensor()};
  const Tensor number = wrapped_number(Scalar(int64_t{0})),
               none = ops::ge(chosen, wrapped_number(Scalar(values.numel())));
  const Tensor sent = ops::where(none, number, g), at = ops::where(none, number, chosen);
  const Tensor flat = reshape(at, IntList{-1});
  const Tensor column = reshape(index_select(columns, 0, flat), at.sizes());
  Grads grads{Tensor(), Tensor()};
  if (need[0]) {
    const Tensor factors = sent * conj_of(gather(b, 0, column, false));
    grads[0] = sparse_with_values(
        a, index_add(zeros_like(values), 0, flat, reshape(factors, IntList{-1}), Scalar(int64_t{1})));
  }
  if (need[1]) {
    const Tensor factors = reshape(index_select(conj_of(values), 0, flat), at.sizes());
    grads[1] = scatter_add(zeros_like(b), 0, column, sent * factors);
  }
  return grads;
}

Grads reduce_gradients(const Tensor& g, const Tensor& a, const Tensor& b, const Tensor& chosen,
                       std::string_view reduce, Needs need) {
  const RowReduce op = row_reduce(reduce);
  if (chooses(op)) return chosen_gradients(g, a, b, chosen, need);
  Tensor sent = g;
  if (op == RowReduce::Mean) {
    const Tensor starts = crow_indices(a);
    const Tensor counts = ops::slice(starts, 0, 1, std::nullopt, 1) - ops::slice(starts, 0, 0, -1, 1);
    sent = g / unsqueeze(to_dtype(ops::clamp(counts, Scalar(int64_t{1}), std::nullopt), g.dtype()), 1);
  }
  return Grads{need[0] ? sparse_left_gradient(sent, a, b) : Tensor(),
               need[1] ? sparse_right_gradient(sent, a, b) : Tensor()};
}

// --- another size in place

void check_dims(const Call& call, const Tensor& self, IntList size, int64_t sparse_dim, int64_t dense_dim) {
  RL_CHECK(layout_of(self) == Layout::SparseCoo, call.op.name(),
           " expected sparse coordinate tensor layout but got ", layout_text(layout_of(self)));
  RL_CHECK(sparse_dim >= 0 && dense_dim >= 0 && sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
           "number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim (", dense_dim,
           ") = ", sparse_dim + dense_dim, ", but got ", size.size());
  checked_numel(size);
}

void check_growth(const Tensor& self, IntList size, int64_t sparse_dim) {
  const int64_t own = sparse_dim_of(self);
  RL_CHECK(sparse_dim == own, "changing the number of sparse dimensions (from ", own, " to ", sparse_dim,
           ") on a non-empty sparse tensor is not supported.");
  RL_CHECK(static_cast<int64_t>(size.size()) == self.dim(), "changing the number of dense dimensions (from ",
           self.dim() - own, " to ", static_cast<int64_t>(size.size()) - sparse_dim,
           ") on a non-empty sparse tensor is not supported.");
  for (int64_t d = 0; d < self.dim(); ++d)
    RL_CHECK(size[d] >= self.size(d), "shrinking the size of ", d < own ? "sparse" : "dense",
             " dimensions (from ", self.sizes(), " to ", size,
             ") on a non-empty sparse tensor is not supported.");
}

Dims value_sizes(int64_t count, IntList size, int64_t sparse_dim) {
  Dims sizes{count};
  for (int64_t n : size.slice(static_cast<size_t>(sparse_dim))) sizes.push_back(n);
  return sizes;
}

Tensor cleared(const Tensor& self, IntList size, int64_t sparse_dim) {
  return make_sparse(
      {.indices = zeros(IntList{sparse_dim, 0}, DType::Int64, std::nullopt, std::nullopt, std::nullopt),
       .compressed = Tensor(),
       .plain = Tensor(),
       .values =
           zeros(value_sizes(0, size, sparse_dim), self.dtype(), std::nullopt, std::nullopt, std::nullopt),
       .coalesced = true},
      size);
}

Tensor clear_kernel(const Call& call, const Tensor& self, IntList size, int64_t sparse_dim,
                    int64_t dense_dim) {
  check_dims(call, self, size, sparse_dim, dense_dim);
  replace_sparse(self, cleared(self, size, sparse_dim));
  return self;
}

Tensor resize_kernel(const Call& call, const Tensor& self, IntList size, int64_t sparse_dim,
                     int64_t dense_dim) {
  check_dims(call, self, size, sparse_dim, dense_dim);
  SparseParts parts = sparse_parts(self);
  const int64_t count = parts.values.size(0);
  if (count == 0) return clear_kernel(call, self, size, sparse_dim, dense_dim);
  check_growth(self, size, sparse_dim);
  const Dims sizes = value_sizes(count, size, sparse_dim);
  if (parts.values.sizes() != IntList(sizes)) {
    const Tensor grown = zeros(sizes, self.dtype(), std::nullopt, std::nullopt, std::nullopt);
    Tensor corner = grown;
    for (int64_t d = 1; d < grown.dim(); ++d) corner = ops::slice(corner, d, 0, parts.values.size(d), 1);
    copy_result(corner, parts.values, false);
    parts.values = grown;
  }
  replace_sparse(self, make_sparse(std::move(parts), size));
  return self;
}

// What is listed stays in as many sparse dimensions.
Tensor plain_resize_kernel(const Call& call, const Tensor& self, IntList size, std::optional<MemoryFormat>) {
  if (self.sizes() == size) return self;
  const int64_t dims = std::min(sparse_dim_of(self), static_cast<int64_t>(size.size()));
  return resize_kernel(call, self, size, dims, static_cast<int64_t>(size.size()) - dims);
}

Tensor refuse_resize(const Call& call, const Tensor&, IntList, int64_t, int64_t) {
  RL_FAIL(call.op.name(), " expected sparse coordinate tensor layout but got Strided");
}

// Of all elements, of which those that are not listed are zeros.
Tensor norm_kernel(const Call& call, const Tensor& self, const Scalar& ord, const OptIntList& dim,
                   bool keepdim, OptDType dtype) {
  const auto rank = static_cast<size_t>(self.dim());
  const auto all = static_cast<size_t>(std::popcount(dim_mask(dim, self.dim())));
  if (all != rank || ord.to_double() < 0)
    RL_NOT_IMPLEMENTED(call.op.name(),
                       ": sparse tensors have norms of all their elements, of orders of 0 or "
                       "more; got dim=",
                       dim ? *dim : IntList(), " and ord=", ord.to_double());
  const Tensor listed = layout_of(self) == Layout::SparseCoo ? ops::coalesce(self) : self;
  const Tensor total = ops::vector_norm(sparse_parts(listed).values, ord, std::nullopt, false, dtype);
  return keepdim ? ops::reshape(total, Dims(rank, 1)) : total;
}

}  // namespace

void register_sparse_reduce_operators(Table& t) {
  t.op(sparse_mm_reduce, "_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
       refuse_dense)
      .function_only()
      .doc("A CSR matrix times a dense one, each row reduced by sum, mean, amax or amin.")
      .family(Family::Sparse)
      .derivative([](Grad g, In<0> a, In<1> b, Out<1> chosen, Attr<2, std::string_view> reduce, Needs need) {
        return reduce_gradients(g, a, b, chosen, reduce, need);
      });
  t.sparse(sparse_mm_reduce, reduce_kernel);
  auto resize = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    OpBuilder record = t.op(handle, schema, refuse_resize).method_only().doc(doc).family(Family::Sparse);
    t.sparse(handle, kernel);
    return record.not_differentiable("changes the number of elements");
  };
  t.sparse(ops::vector_norm, norm_kernel);
  t.sparse(ops::resize_, plain_resize_kernel);
  resize(sparse_resize_,
         "sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
         resize_kernel, "Gives a COO tensor another size in place; what is listed stays.")
      .family(Family::Sparse);
  resize(sparse_resize_and_clear_,
         "sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
         clear_kernel, "Gives a COO tensor another size in place and removes all elements.")
      .family(Family::Sparse);
}

}  // namespace rushlight
