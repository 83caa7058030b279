#include "ops/sparse.h"

#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/scan.h"
#include "ops/sort.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

int64_t sparse_dim_of(const Tensor& t) {
  const SparseParts& p = sparse_parts(t);
  return p.layout == Layout::SparseCoo ? p.indices.size(0) : 2;
}

namespace {

const char* layout_text(Layout layout) {
  static const char* const names[] = {"Strided",   "Sparse",    "SparseCsr",
                                      "SparseCsc", "SparseBsr", "SparseBsc"};
  return names[static_cast<int>(layout)];
}

IntList leading(const Tensor& t, int64_t n) { return t.sizes().slice(0, static_cast<size_t>(n)); }
int64_t count(IntList sizes) { return checked_numel(sizes); }

// Dense memory seen as [all sparse positions, dense dimensions...].
Dims flattened_sizes(const Tensor& t, int64_t sparse_dims) {
  Dims sizes{count(leading(t, sparse_dims))};
  for (int64_t i = sparse_dims; i < t.dim(); ++i) sizes.push_back(t.size(i));
  return sizes;
}

Tensor arange_to(int64_t n) {
  return arange(Scalar(int64_t{0}), Scalar(n), Scalar(int64_t{1}), DType::Int64, std::nullopt, std::nullopt,
                std::nullopt);
}

// The row of each element of a compressed matrix.
Tensor expanded(const Tensor& compressed) {
  const int64_t rows = compressed.numel() - 1;
  const Tensor counts = slice(compressed, 0, 1, std::nullopt, 1) - slice(compressed, 0, 0, rows, 1);
  return repeat_interleave_tensor(arange_to(rows), counts, std::nullopt, std::nullopt);
}

// Where each row starts, of sorted row numbers.
Tensor compressed_of(const Tensor& sorted_rows, int64_t rows) {
  return searchsorted(contiguous(sorted_rows, MemoryFormat::Contiguous), arange_to(rows + 1), false, false,
                      std::nullopt, Tensor());
}

bool by_rows(Layout layout) { return layout == Layout::SparseCsr; }

void check_known(const Tensor& t, const char* who) {
  const Layout layout = layout_of(t);
  if (layout == Layout::SparseBsr || layout == Layout::SparseBsc)
    RL_NOT_IMPLEMENTED(who, ": block layouts are not supported, got ", layout_text(layout),
                       "; use sparse_coo or sparse_csr");
}

// A matrix in a compressed layout as COO indices [2, nnz].
Tensor coo_indices(const SparseParts& p) {
  const Tensor lines = expanded(p.compressed);
  return by_rows(p.layout) ? stack({lines, p.plain}, 0) : stack({p.plain, lines}, 0);
}

Tensor as_coo(const Tensor& t) {
  const SparseParts& p = sparse_parts(t);
  if (p.layout == Layout::SparseCoo) return t;
  return make_sparse(
      {.indices = to_dtype(coo_indices(p), DType::Int64), .values = p.values, .coalesced = by_rows(p.layout)},
      t.sizes());
}

Tensor coo_kernel(const Call&, const Tensor& indices, const Tensor& values, IntList size,
                  std::optional<bool> coalesced) {
  RL_CHECK(indices.dim() == 2 && indices.dtype() == DType::Int64 && values.dim() >= 1 &&
               indices.size(1) == values.size(0) &&
               static_cast<int64_t>(size.size()) == indices.size(0) + values.dim() - 1,
           "sparse_coo_tensor: indices of shape ", indices.sizes(), ", values of shape ", values.sizes(),
           " and size ", size, " do not fit");
  for (int64_t d = 1; d < values.dim(); ++d)
    RL_CHECK(size[static_cast<size_t>(indices.size(0) + d - 1)] == values.size(d),
             "sparse_coo_tensor: values of shape ", values.sizes(), " do not fit the size ", size);
  return make_sparse({.indices = indices, .values = values, .coalesced = coalesced.value_or(false)}, size);
}

Tensor compressed_kernel(const Call&, const Tensor& compressed, const Tensor& plain, const Tensor& values,
                         IntList size, std::optional<Layout> layout) {
  const Layout chosen = layout.value_or(Layout::SparseCsr);
  RL_CHECK(chosen == Layout::SparseCsr || chosen == Layout::SparseCsc,
           "sparse_compressed_tensor: only sparse_csr and sparse_csc are supported, got ",
           layout_text(chosen));
  RL_CHECK(compressed.dim() == 1 && plain.dim() == 1 && values.dim() >= 1 && size.size() >= 2 &&
               plain.numel() == values.size(0) &&
               compressed.numel() == size[chosen == Layout::SparseCsr ? 0 : 1] + 1,
           "sparse_compressed_tensor: indices of shapes ", compressed.sizes(), " and ", plain.sizes(),
           ", values of shape ", values.sizes(), " and size ", size, " do not fit");
  return make_sparse({.layout = chosen, .compressed = compressed, .plain = plain, .values = values}, size);
}

Tensor refuse_dense(const Call& call, const Tensor& self) {
  RL_FAIL(call.op.name(), " expected sparse coordinate tensor layout but got ", layout_text(layout_of(self)));
}

Tensor values_kernel(const Call&, const Tensor& self) {
  const SparseParts& p = sparse_parts(self);
  RL_CHECK(p.layout != Layout::SparseCoo || p.coalesced,
           "Cannot get values on an uncoalesced tensor, please call .coalesce() first");
  return alias(p.values);
}
Tensor raw_values_kernel(const Call&, const Tensor& self) { return alias(sparse_parts(self).values); }
Tensor indices_kernel(const Call&, const Tensor& self) {
  const SparseParts& p = sparse_parts(self);
  RL_CHECK(p.layout == Layout::SparseCoo, "indices expected sparse coordinate tensor layout but got ",
           layout_text(p.layout));
  RL_CHECK(p.coalesced, "Cannot get indices on an uncoalesced tensor, please call .coalesce() first");
  return alias(p.indices);
}
Tensor raw_indices_kernel(const Call&, const Tensor& self) {
  RL_CHECK(layout_of(self) == Layout::SparseCoo, "_indices expected sparse coordinate tensor layout but got ",
           layout_text(layout_of(self)));
  return alias(sparse_parts(self).indices);
}

template <bool rows, bool compressed>
Tensor part_kernel(const Call& call, const Tensor& self) {
  const Layout wanted = rows ? Layout::SparseCsr : Layout::SparseCsc;
  RL_CHECK(layout_of(self) == wanted, call.op.name(), " expected ", rows ? "row" : "column",
           " compressed sparse tensor layout but got ", layout_text(layout_of(self)));
  return alias(compressed ? sparse_parts(self).compressed : sparse_parts(self).plain);
}

Tensor coalesce_kernel(const Call&, const Tensor& self) {
  const SparseParts& p = sparse_parts(self);
  RL_CHECK(p.layout == Layout::SparseCoo, "coalesce expected sparse coordinate tensor layout but got ",
           layout_text(p.layout));
  if (p.coalesced) return self;
  if (p.values.size(0) < 2) {
    SparseParts same = p;
    same.coalesced = true;
    return make_sparse(std::move(same), self.sizes());
  }
  auto [keys, order] = sort_stable(flat_positions(self), true, 0, false);
  auto [unique, inverse, counts] = unique_consecutive(keys, true, true, 0);
  const Tensor last = cumsum(counts, 0, std::nullopt);
  const Tensor chosen = index_select(order, 0, last - counts);
  const Tensor sorted = index_select(p.values, 0, order);
  Dims sizes = p.values->sizes;
  sizes[0] = unique.numel();
  const bool is_bool = p.values.dtype() == DType::Bool;
  const Tensor addends = is_bool ? to_dtype(sorted, DType::Int32) : sorted;
  Tensor sums = index_add(new_zeros(addends, sizes, std::nullopt, std::nullopt, std::nullopt, std::nullopt),
                          0, inverse, addends, Scalar(int64_t{1}));
  return make_sparse({.indices = index_select(p.indices, 1, chosen),
                      .values = is_bool ? to_dtype(sums, DType::Bool) : sums,
                      .coalesced = true},
                     self.sizes());
}

Tensor with_values_kernel(const Call&, const Tensor& pattern, const Tensor& values) {
  SparseParts parts = sparse_parts(pattern);
  RL_CHECK(values.dim() >= 1 && values.size(0) == parts.values.size(0), "sparse tensor of ",
           parts.values.size(0), " elements given values of shape ", values.sizes());
  parts.values = values;
  Dims sizes = pattern->sizes;
  sizes.resize(static_cast<size_t>(sparse_dim_of(pattern)));
  for (int64_t i = 1; i < values.dim(); ++i) sizes.push_back(values.size(i));
  return make_sparse(std::move(parts), sizes);
}

// The wanted elements of a sparse tensor, found among its sorted positions.
Tensor looked_up(const Tensor& self, const Tensor& wanted) {
  const Tensor own = coalesce(as_coo(self));
  const SparseParts& p = sparse_parts(own);
  Dims sizes = p.values->sizes;
  sizes[0] = wanted.numel();
  const Tensor zeros_there =
      new_zeros(p.values, sizes, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  if (p.values.size(0) == 0) return zeros_there;
  const Tensor keys = flat_positions(own);
  const Tensor place = ops::clamp(searchsorted(keys, wanted, false, false, std::nullopt, Tensor()),
                                  std::nullopt, Scalar(keys.numel() - 1));
  Tensor found = ops::eq(index_select(keys, 0, place), wanted);
  while (found.dim() < static_cast<int64_t>(sizes.size())) found = unsqueeze(found, -1);
  return ops::where(found, index_select(p.values, 0, place), zeros_there);
}

Tensor values_at_kernel(const Call&, const Tensor& self, const Tensor& pattern) {
  RL_CHECK(self.sizes() == pattern.sizes(), "sparse_mask(): operands have incompatible sizes; self has size ",
           self.sizes(), " but mask has size ", pattern.sizes());
  // The same list of positions: element by element, even where one occurs twice.
  if (is_sparse(self) && sparse_parts(self).indices.defined() &&
      sparse_parts(self).indices.is_same(sparse_parts(pattern).indices))
    return alias(sparse_parts(self).values);
  const Tensor wanted = flat_positions(pattern);
  if (is_sparse(self)) return looked_up(self, wanted);
  return index_select(reshape(self, flattened_sizes(pattern, sparse_dim_of(pattern))), 0, wanted);
}

Tensor mask_body(const Call&, const Tensor& self, const Tensor& mask) {
  RL_CHECK(is_sparse(mask), "sparse_mask(): expected a sparse mask, got a dense tensor of shape ",
           mask.sizes());
  const Tensor pattern = layout_of(mask) == Layout::SparseCoo ? coalesce(mask) : mask;
  return sparse_with_values(pattern, sparse_values_at(self, pattern));
}

Tensor to_dense_kernel(const Call&, const Tensor& self, OptDType dtype, std::optional<bool>) {
  const SparseParts& p = sparse_parts(self);
  check_known(self, "to_dense");
  const bool is_bool = p.values.dtype() == DType::Bool;
  const Tensor addends = is_bool ? to_dtype(p.values, DType::Int32) : p.values;
  const Tensor flat = new_zeros(addends, flattened_sizes(self, sparse_dim_of(self)), std::nullopt,
                                std::nullopt, std::nullopt, std::nullopt);
  const Tensor sums =
      reshape(index_add(flat, 0, flat_positions(self), addends, Scalar(int64_t{1})), self.sizes());
  return to_dtype(sums, dtype.value_or(p.values.dtype()));
}
Tensor dense_to_dense(const Call&, const Tensor& self, OptDType dtype, std::optional<bool>) {
  return dtype ? to_dtype(self, *dtype) : self;
}

Tensor to_coo_kernel(const Call&, const Tensor& self, int64_t dims) {
  if (is_sparse(self)) {
    RL_CHECK(dims == sparse_dim_of(self), "to_sparse: conversion from ", layout_text(layout_of(self)),
             " to Sparse with sparse_dim ", dims, " is not supported: it has ", sparse_dim_of(self));
    return as_coo(self);
  }
  RL_CHECK(dims > 0 || self.dim() == 0, "sparse_dim must be >0");
  RL_CHECK(dims <= self.dim(), "sparse_dim must be less than or equal to self.dim()");
  const Tensor flat = reshape(self, flattened_sizes(self, dims));
  const Tensor rows = reshape(self, IntList{flat.size(0), dims == self.dim() ? 1 : -1});
  const Tensor listed = any_dim(ops::ne(rows, wrapped_number(Scalar(int64_t{0}))), 1, false);
  const Tensor positions = nonzero(reshape(listed, leading(self, dims)));
  return make_sparse({.indices = contiguous(t(positions), MemoryFormat::Contiguous),
                      .values = index_select(flat, 0, reshape(nonzero(listed), IntList{-1})),
                      .coalesced = true},
                     self.sizes());
}

Tensor to_sparse_body(const Call&, const Tensor& self, std::optional<Layout> layout, OptIntList blocksize,
                      OptInt dense_dim) {
  if (blocksize) RL_NOT_IMPLEMENTED("to_sparse: block layouts are not supported");
  const Layout wanted = layout.value_or(Layout::SparseCoo);
  if (wanted == Layout::SparseCsr) return to_sparse_csr(self, dense_dim);
  if (wanted == Layout::SparseCsc) return to_sparse_csc(self, dense_dim);
  RL_CHECK(wanted == Layout::SparseCoo, "to_sparse: expected sparse_coo, sparse_csr or sparse_csc, got ",
           layout_text(wanted));
  const int64_t dims = is_sparse(self) ? sparse_dim_of(self) : self.dim() - dense_dim.value_or(0);
  return to_sparse_dim(self, dims);
}

Tensor to_coo_body(const Call&, const Tensor& self) {
  return to_sparse(self, Layout::SparseCoo, std::nullopt, std::nullopt);
}

template <Layout layout>
Tensor to_compressed_kernel(const Call& call, const Tensor& self, OptInt dense_dim) {
  const int64_t dense_dims = dense_dim.value_or(is_sparse(self) ? self.dim() - sparse_dim_of(self) : 0);
  RL_CHECK(self.dim() - dense_dims == 2, call.op.name(),
           ": only matrices (and matrices of dense blocks) are supported, got shape ", self.sizes(), " with ",
           dense_dims, " dense dimensions");
  return to_layout(is_sparse(self) ? self : to_sparse_dim(self, 2), layout);
}

int64_t nnz_kernel(const Call&, const Tensor& self) { return sparse_parts(self).values.size(0); }
int64_t sparse_dim_kernel(const Call&, const Tensor& self) { return sparse_dim_of(self); }
int64_t dense_dim_kernel(const Call&, const Tensor& self) { return self.dim() - sparse_dim_of(self); }
bool is_coalesced_kernel(const Call&, const Tensor& self) {
  RL_CHECK(layout_of(self) == Layout::SparseCoo,
           "is_coalesced expected sparse coordinate tensor layout but got ", layout_text(layout_of(self)));
  return sparse_parts(self).coalesced;
}
int64_t no_elements(const Call& call, const Tensor& self) {
  refuse_dense(call, self);
  return 0;
}
int64_t zero_dims(const Call&, const Tensor&) { return 0; }
int64_t all_dims(const Call&, const Tensor& self) { return self.dim(); }
bool never_coalesced(const Call& call, const Tensor& self) { return no_elements(call, self) != 0; }

Tensor densely(const Tensor& g) { return is_sparse(g) ? to_dense(g, std::nullopt, std::nullopt) : g; }

void register_parts(Table& t) {
  auto part = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    t.op(handle, schema, refuse_dense).doc(doc).not_differentiable("integer output");
    t.sparse(handle, kernel);
  };
  part(sparse_indices, "indices(Tensor self) -> Tensor", indices_kernel,
       "The positions [sparse_dim, nnz] of a coalesced COO tensor.");
  part(sparse_indices_raw, "_indices(Tensor self) -> Tensor", raw_indices_kernel,
       "The positions [sparse_dim, nnz] of a COO tensor, coalesced or not.");
  part(crow_indices, "crow_indices(Tensor self) -> Tensor", part_kernel<true, true>,
       "Where each row of a CSR tensor starts: [rows + 1].");
  part(col_indices, "col_indices(Tensor self) -> Tensor", part_kernel<true, false>,
       "The columns of a CSR tensor's elements: [nnz].");
  part(ccol_indices, "ccol_indices(Tensor self) -> Tensor", part_kernel<false, true>,
       "Where each column of a CSC tensor starts: [columns + 1].");
  part(row_indices, "row_indices(Tensor self) -> Tensor", part_kernel<false, false>,
       "The rows of a CSC tensor's elements: [nnz].");
  auto values_like = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    t.op(handle, schema, refuse_dense).doc(doc).derivative([](Grad g, In<0> self) {
      return sparse_with_values(self, g);
    });
    t.sparse(handle, kernel);
  };
  values_like(sparse_values, "values(Tensor self) -> Tensor", values_kernel,
              "The values [nnz, dense sizes...] of a coalesced sparse tensor.");
  values_like(sparse_values_raw, "_values(Tensor self) -> Tensor", raw_values_kernel,
              "The values [nnz, dense sizes...] of a sparse tensor, coalesced or not.");
  auto fact = [&](auto& handle, const char* schema, auto dense, auto kernel, const char* doc) {
    t.op(handle, schema, dense).doc(doc).not_differentiable("not a tensor");
    t.sparse(handle, kernel);
  };
  fact(sparse_nnz, "_nnz(Tensor self) -> int", no_elements, nnz_kernel, "How many elements are listed.");
  fact(ops::sparse_dim, "sparse_dim(Tensor self) -> int", zero_dims, sparse_dim_kernel,
       "How many dimensions the indices count.");
  fact(sparse_dense_dim, "dense_dim(Tensor self) -> int", all_dims, dense_dim_kernel,
       "How many dimensions each listed value has.");
  fact(ops::is_coalesced, "is_coalesced(Tensor self) -> bool", never_coalesced, is_coalesced_kernel,
       "Whether each position is listed once, in row-major order.");
}

}  // namespace

Tensor flat_positions(const Tensor& t) {
  check_known(t, "sparse tensor");
  const SparseParts& p = sparse_parts(t);
  const Tensor indices = p.layout == Layout::SparseCoo ? p.indices : to_dtype(coo_indices(p), DType::Int64);
  const int64_t dims = indices.size(0);
  if (dims == 0)
    return zeros(IntList{p.values.size(0)}, DType::Int64, std::nullopt, std::nullopt, std::nullopt);
  count(leading(t, dims));  // fails when it overflows
  Tensor flat = ops::select(indices, 0, 0);
  for (int64_t d = 1; d < dims; ++d) flat = flat * Scalar(t.size(d)) + ops::select(indices, 0, d);
  return flat;
}

Tensor to_layout(const Tensor& t, Layout layout) {
  if (layout_of(t) == layout) return t;
  if (layout == Layout::SparseCoo) return as_coo(t);
  check_known(t, "to_sparse");
  const bool rows = by_rows(layout);
  Tensor coo = as_coo(t);
  if (rows) {
    coo = coalesce(coo);
  } else {  // sorted by columns: coalesce the transpose
    const SparseParts& p = sparse_parts(coo);
    Dims sizes = coo->sizes;
    std::swap(sizes[0], sizes[1]);
    coo = coalesce(make_sparse({.indices = flip(p.indices, IntList{0}), .values = p.values}, sizes));
  }
  const SparseParts& p = sparse_parts(coo);
  return make_sparse({.layout = layout,
                      .compressed = compressed_of(ops::select(p.indices, 0, 0), coo.size(0)),
                      .plain = contiguous(ops::select(p.indices, 0, 1), MemoryFormat::Contiguous),
                      .values = p.values},
                     t.sizes());
}

CompressedRows compressed_rows(const Tensor& t) {
  const Tensor csr = to_layout(t, Layout::SparseCsr);
  const SparseParts& p = sparse_parts(csr);
  auto plain = [](const Tensor& x) { return contiguous(x, MemoryFormat::Contiguous); };
  return {plain(to_dtype(p.compressed, DType::Int64)), plain(to_dtype(p.plain, DType::Int64)),
          plain(p.values)};
}

void register_sparse_operators(Table& t) {
  t.op(sparse_coo,
       "_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, int[] size, *, bool? is_coalesced=None) -> "
       "Tensor",
       coo_kernel)
      .function_only()
      .doc("A COO tensor of unchecked parts.")
      .derivative([](Grad g, Out<0> y) { return Grads{Tensor(), sparse_values_at(g, y)}; });
  t.op(sparse_compressed,
       "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, "
       "int[] "
       "size, *, Layout? layout=None) -> Tensor",
       compressed_kernel)
      .function_only()
      .doc("A CSR or CSC tensor of unchecked parts.")
      .derivative([](Grad g, Out<0> y) { return Grads{Tensor(), Tensor(), sparse_values_at(g, y)}; });
  register_parts(t);
  t.op(coalesce, "coalesce(Tensor self) -> Tensor", refuse_dense)
      .doc("Each position once, in row-major order; values at one position are added.")
      .derivative([](Grad g) { return Tensor(g); });
  t.sparse(coalesce, coalesce_kernel);
  t.op(sparse_with_values, "_sparse_with_values(Tensor pattern, Tensor values) -> Tensor", with_values_kernel)
      .internal()
      .doc("The sparse tensor with other values at its positions.")
      .derivative([](Grad g, In<0> pattern) { return Grads{Tensor(), sparse_values_at(g, pattern)}; });
  t.sparse(sparse_with_values, with_values_kernel);
  t.op(sparse_values_at, "_sparse_values_at(Tensor self, Tensor pattern) -> Tensor", values_at_kernel)
      .internal()
      .doc("The elements of self at the positions of the sparse pattern: [nnz, dense sizes...].")
      .derivative([](Grad g, In<1> pattern) { return Grads{sparse_with_values(pattern, g), Tensor()}; });
  t.sparse(sparse_values_at, values_at_kernel);
  t.composite(ops::sparse_mask, "sparse_mask(Tensor self, Tensor mask) -> Tensor", mask_body)
      .method_only()
      .doc("The elements of self at the positions of the sparse mask, as a sparse tensor.");
  t.op(to_dense, "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
       dense_to_dense)
      .method_only()
      .doc("All elements. The gradient has the pattern of self, unless masked_grad=False.")
      .derivative([](Grad g, In<0> self, Attr<2, std::optional<bool>> masked) {
        return is_sparse(self) && masked.value.value_or(true) ? ops::sparse_mask(g, self) : Tensor(g);
      });
  t.sparse(to_dense, to_dense_kernel);
  t.op(to_sparse_dim, "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", to_coo_kernel)
      .method_only()
      .doc("The non-zero elements as a COO tensor; the last dim - sparse_dim dimensions stay dense.")
      .derivative([](Grad g) { return densely(g); });
  t.sparse(to_sparse_dim, to_coo_kernel);
  t.composite(
       to_sparse,
       "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> "
       "Tensor",
       to_sparse_body)
      .method_only()
      .doc("The non-zero elements as a sparse tensor of the layout (sparse_coo).");
  t.composite(to_sparse_coo, "to_sparse_coo(Tensor self) -> Tensor", to_coo_body)
      .method_only()
      .doc("The non-zero elements as a COO tensor.");
  t.op(to_sparse_csr, "to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor",
       to_compressed_kernel<Layout::SparseCsr>)
      .method_only()
      .doc("A matrix as CSR: row starts, columns, values.")
      .derivative([](Grad g) { return densely(g); });
  t.sparse(to_sparse_csr, to_compressed_kernel<Layout::SparseCsr>);
  t.op(to_sparse_csc, "to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor",
       to_compressed_kernel<Layout::SparseCsc>)
      .method_only()
      .doc("A matrix as CSC: column starts, rows, values.")
      .derivative([](Grad g) { return densely(g); });
  t.sparse(to_sparse_csc, to_compressed_kernel<Layout::SparseCsc>);
}

}  // namespace rushlight
