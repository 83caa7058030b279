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

namespace {

IntList leading(const Tensor& t, int64_t n) { return t.sizes().slice(0, static_cast<size_t>(n)); }
int64_t count(IntList sizes) { return checked_numel(sizes); }

// Dense memory seen as [all sparse positions, dense dimensions...].
Dims flattened_sizes(const Tensor& t, int64_t sparse_dims) {
  Dims sizes{count(leading(t, sparse_dims))};
  for (int64_t i = sparse_dims; i < t.dim(); ++i) sizes.push_back(t.size(i));
  return sizes;
}

Tensor as_coo(const Tensor& t) {
  const SparseParts& p = sparse_parts(t);
  if (p.layout == Layout::SparseCoo) return t;
  return make_sparse(
      {.indices = element_indices(t), .values = listed_values(t), .coalesced = p.layout == Layout::SparseCsr},
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
  RL_CHECK(chosen >= Layout::SparseCsr, "sparse_compressed_tensor: expected a compressed layout, got ",
           layout_text(chosen));
  const int64_t batch = compressed.dim() - 1, listing = batch + (is_block(chosen) ? 3 : 1);
  bool fits = batch >= 0 && plain.dim() == batch + 1 && values.dim() >= listing &&
              static_cast<int64_t>(size.size()) == batch + 2 + values.dim() - listing &&
              plain.size(-1) == values.size(batch);
  for (int64_t d = 0; fits && d < batch; ++d)
    fits = compressed.size(d) == size[d] && plain.size(d) == size[d] && values.size(d) == size[d];
  for (int64_t d = listing; fits && d < values.dim(); ++d)
    fits = values.size(d) == size[d - listing + batch + 2];
  if (fits) {
    const int64_t rows = is_block(chosen) ? values.size(batch + 1) : 1,
                  columns = is_block(chosen) ? values.size(batch + 2) : 1;
    fits = rows > 0 && columns > 0 && size[batch] % rows == 0 && size[batch + 1] % columns == 0 &&
           compressed.size(-1) == (by_rows(chosen) ? size[batch] / rows : size[batch + 1] / columns) + 1;
  }
  RL_CHECK(fits, "sparse_compressed_tensor: indices of shapes ", compressed.sizes(), " and ", plain.sizes(),
           ", values of shape ", values.sizes(), " and size ", size, " do not fit");
  return make_sparse(
      {.layout = chosen, .indices = Tensor(), .compressed = compressed, .plain = plain, .values = values},
      size);
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

template <bool rows>
Tensor refuse_part(const Call& call, const Tensor& self) {
  RL_FAIL(call.op.name(), " expected sparse ", rows ? "row" : "column", " compressed tensor layout but got ",
          layout_text(layout_of(self)));
}
template <bool rows, bool compressed>
Tensor part_kernel(const Call& call, const Tensor& self) {
  const Layout layout = layout_of(self);
  RL_CHECK(layout >= Layout::SparseCsr && by_rows(layout) == rows, call.op.name(), " expected sparse ",
           rows ? "row" : "column", " compressed tensor layout but got ", layout_text(layout_of(self)));
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
  const int64_t listing = listing_dims_of(parts);
  RL_CHECK(values.dim() >= listing && leading(values, listing) == leading(parts.values, listing),
           "sparse tensor whose values have shape ", parts.values.sizes(), " given values of shape ",
           values.sizes());
  parts.values = values;
  Dims sizes = pattern->sizes;
  sizes.resize(static_cast<size_t>(sparse_dim_of(pattern)));
  for (int64_t i = listing; i < values.dim(); ++i) sizes.push_back(values.size(i));
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

Tensor values_at_kernel(const Call&, const Tensor& self, const Tensor& pattern, bool) {
  RL_CHECK(self.sizes() == pattern.sizes(), "sparse_mask(): operands have incompatible sizes; self has size ",
           self.sizes(), " but mask has size ", pattern.sizes());
  const SparseParts& p = sparse_parts(pattern);
  // The same list of positions: element by element, even where one occurs twice.
  if (is_sparse(self)) {
    const SparseParts& own = sparse_parts(self);
    const bool same =
        p.layout == own.layout &&
        (p.layout == Layout::SparseCoo ? own.indices.is_same(p.indices)
                                       : own.compressed.is_same(p.compressed) && own.plain.is_same(p.plain) &&
                                             form_of(self) == form_of(pattern));
    if (same) return alias(own.values);
  }
  const Tensor wanted = flat_positions(pattern);
  const Tensor found =
      is_sparse(self)
          ? looked_up(self, wanted)
          : index_select(reshape(self, flattened_sizes(pattern, sparse_dim_of(pattern))), 0, wanted);
  Dims sizes = leading(p.values, listing_dims_of(p)).dims();
  for (int64_t d = 1; d < found.dim(); ++d) sizes.push_back(found.size(d));
  return reshape(found, sizes);
}

Tensor mask_body(const Call&, const Tensor& self, const Tensor& mask) {
  RL_CHECK(is_sparse(mask), "sparse_mask(): expected a sparse mask, got a dense tensor of shape ",
           mask.sizes());
  const Tensor pattern = layout_of(mask) == Layout::SparseCoo ? coalesce(mask) : mask;
  return sparse_with_values(pattern, sparse_values_at(self, pattern));
}

Tensor to_dense_kernel(const Call&, const Tensor& self, OptDType dtype, std::optional<bool>) {
  const SparseParts& p = sparse_parts(self);
  const bool is_bool = p.values.dtype() == DType::Bool;
  const Tensor listed = listed_values(self), addends = is_bool ? to_dtype(listed, DType::Int32) : listed;
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
  RL_CHECK(dims >= 0 && dims <= self.dim(), "dense_to_sparse: sparse_dim argument must be in [0,", self.dim(),
           "] range, but ", dims, " is given");
  RL_CHECK(dims > 0 || self.dim() == 0,
           "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0");
  const Tensor flat = reshape(self, flattened_sizes(self, dims));
  int64_t row_size = 1;  // -1 would not do where there are no rows
  for (int64_t d = dims; d < self.dim(); ++d) row_size *= self.size(d);
  const Tensor rows = reshape(self, IntList{flat.size(0), row_size});
  const Tensor listed = any_dim(ops::ne(rows, wrapped_number(Scalar(int64_t{0}))), 1, false);
  const Tensor positions = nonzero(reshape(listed, leading(self, dims)));
  return make_sparse({.indices = contiguous(t(positions), MemoryFormat::Contiguous),
                      .values = index_select(flat, 0, reshape(nonzero(listed), IntList{-1})),
                      .coalesced = true},
                     self.sizes());
}

Tensor to_sparse_body(const Call&, const Tensor& self, std::optional<Layout> layout, OptIntList blocksize,
                      OptInt dense_dim) {
  const Layout wanted = layout.value_or(blocksize ? Layout::SparseBsr : Layout::SparseCoo);
  if (wanted == Layout::Strided) return is_sparse(self) ? to_dense(self, std::nullopt, std::nullopt) : self;
  if (is_block(wanted)) {
    const bool has_blocks = is_sparse(self) && is_block(layout_of(self));
    RL_CHECK(blocksize || has_blocks, "to_sparse for ", layout_text(layout_of(self)), " to ",
             layout_text(wanted), " conversion requires blocksize=(rows, columns)");
    const SparseForm own = has_blocks ? form_of(self) : SparseForm{};
    const Dims blocks = blocksize ? blocksize->dims() : Dims{own.block_rows, own.block_columns};
    return wanted == Layout::SparseBsr ? to_sparse_bsr(self, blocks, dense_dim)
                                       : to_sparse_bsc(self, blocks, dense_dim);
  }
  RL_CHECK(!blocksize, "to_sparse for ", layout_text(layout_of(self)), " to ", layout_text(wanted),
           " conversion does not use blocksize, got blocksize=", *blocksize);
  if (wanted == Layout::SparseCsr) return to_sparse_csr(self, dense_dim);
  if (wanted == Layout::SparseCsc) return to_sparse_csc(self, dense_dim);
  RL_CHECK(wanted == Layout::SparseCoo, "to_sparse: expected a sparse layout, got ", layout_text(wanted));
  const int64_t dims = is_sparse(self) ? sparse_dim_of(self) : self.dim() - dense_dim.value_or(0);
  return to_sparse_dim(self, dims);
}

Tensor to_coo_body(const Call&, const Tensor& self) {
  return to_sparse(self, Layout::SparseCoo, std::nullopt, std::nullopt);
}

// The form that a conversion asks for: batch dimensions are what the others leave.
SparseForm wanted_form(const Tensor& self, Layout layout, OptInt dense_dim) {
  if (is_sparse(self)) return {layout, batch_dims_of(sparse_parts(self))};
  const int64_t dense = dense_dim.value_or(0);
  RL_CHECK(dense >= 0 && self.dim() - dense >= 2, "Dense dim must be between 0 and ", self.dim() - 2,
           " for a tensor of shape ", self.sizes(), ", got ", dense);
  return {layout, self.dim() - 2 - dense};
}

// PyTorch makes blocks of compressed elements only without batches, and no such elements of blocks.
void check_conversion(std::string_view who, const Tensor& self, const SparseForm& wanted) {
  if (!is_sparse(self)) {
    RL_CHECK(count(self.sizes().slice(0, static_cast<size_t>(wanted.batch_dims))) != 0, who,
             ": Expected product of batch dimensions to be non-zero.");
    return;
  }
  const Layout own = layout_of(self);
  if (own == Layout::SparseCoo || is_block(own) == is_block(wanted.layout)) return;
  RL_CHECK(!is_block(own), "sparse_compressed_", who, ": expected SparseCsr or SparseCsc layout but got ",
           layout_text(own));
  RL_CHECK(wanted.batch_dims == 0, "sparse_compressed_to_sparse: conversion from ", layout_text(own), " to ",
           layout_text(wanted.layout), " for batched inputs is not supported");
}

template <Layout layout>
Tensor to_compressed_kernel(const Call& call, const Tensor& self, OptInt dense_dim) {
  if (layout_of(self) == layout) return self;
  const SparseForm form = wanted_form(self, layout, dense_dim);
  check_conversion(call.op.name(), self, form);
  return compressed_as(call.op.name(), self, form);
}

template <Layout layout>
Tensor to_blocks_kernel(const Call& call, const Tensor& self, IntList blocksize, OptInt dense_dim) {
  RL_CHECK(blocksize.size() == 2, call.op.name(), ": expected blocksize of two numbers, got ", blocksize);
  SparseForm form = wanted_form(self, layout, dense_dim);
  form.block_rows = blocksize[0], form.block_columns = blocksize[1];
  if (is_sparse(self) && form_of(self) == form) return self;
  check_conversion(call.op.name(), self, form);
  return compressed_as(call.op.name(), self, form);
}

int64_t nnz_kernel(const Call&, const Tensor& self) {
  return sparse_parts(self).values.size(batch_dims_of(sparse_parts(self)));
}
int64_t sparse_dim_kernel(const Call&, const Tensor& self) {
  return sparse_dim_of(self) - batch_dims_of(sparse_parts(self));
}
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

// Only a sparse operand is saved: parameter 1, a number, never wants a gradient.
constexpr auto conversion_gradient = [](Grad g, In<0, 1> self) { return in_layout_of(g, self); };

void register_parts(Table& t) {
  auto part = [&](auto& handle, const char* schema, auto kernel, const char* doc,
                  Tensor (*refuse)(const Call&, const Tensor&) = refuse_dense) {
    OpBuilder record = t.op(handle, schema, refuse).doc(doc).family(Family::Sparse);
    t.sparse(handle, kernel);
    return record.not_differentiable("a part by itself is outside of the graph; values() is inside");
  };
  part(sparse_indices, "indices(Tensor self) -> Tensor", indices_kernel,
       "The positions [sparse_dim, nnz] of a coalesced COO tensor.")
      .may_return_input();
  part(sparse_indices_raw, "_indices(Tensor self) -> Tensor", raw_indices_kernel,
       "The positions [sparse_dim, nnz] of a COO tensor, coalesced or not.")
      .may_return_input();
  part(crow_indices, "crow_indices(Tensor self) -> Tensor", part_kernel<true, true>,
       "Where each row of a CSR or BSR tensor starts: [batch..., rows + 1].", refuse_part<true>);
  part(col_indices, "col_indices(Tensor self) -> Tensor", part_kernel<true, false>,
       "The columns of a CSR or BSR tensor's elements: [batch..., nnz].", refuse_part<true>);
  part(ccol_indices, "ccol_indices(Tensor self) -> Tensor", part_kernel<false, true>,
       "Where each column of a CSC or BSC tensor starts: [batch..., columns + 1].", refuse_part<false>);
  part(row_indices, "row_indices(Tensor self) -> Tensor", part_kernel<false, false>,
       "The rows of a CSC or BSC tensor's elements: [batch..., nnz].", refuse_part<false>);
  t.op(sparse_values, "values(Tensor self) -> Tensor", refuse_dense)
      .doc("The values [nnz, dense sizes...] of a coalesced sparse tensor.")
      .family(Family::Sparse)
      .may_return_input()
      .derivative([](Grad g, In<0> self) { return sparse_with_values(self, g); });
  t.sparse(sparse_values, values_kernel);
  part(sparse_values_raw, "_values(Tensor self) -> Tensor", raw_values_kernel,
       "The values [nnz, dense sizes...] of a sparse tensor, coalesced or not.")
      .may_return_input();
  auto fact = [&](auto& handle, const char* schema, auto dense, auto kernel, const char* doc) {
    OpBuilder record = t.op(handle, schema, dense).doc(doc).family(Family::Value);
    t.sparse(handle, kernel);
    return record.not_differentiable("not a tensor");
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
  const Tensor indices = element_indices(t);
  const int64_t dims = indices.size(0);
  if (dims == 0)
    return zeros(IntList{indices.size(1)}, DType::Int64, std::nullopt, std::nullopt, std::nullopt);
  count(leading(t, dims));  // fails when it overflows
  Tensor flat = ops::select(indices, 0, 0);
  for (int64_t d = 1; d < dims; ++d) flat = flat * Scalar(t.size(d)) + ops::select(indices, 0, d);
  return flat;
}

Tensor to_layout(const Tensor& t, Layout layout) {
  if (layout_of(t) == layout) return t;
  if (layout == Layout::SparseCoo) return as_coo(t);
  return compressed_as("to_sparse", t, {layout, batch_dims_of(sparse_parts(t))});
}

namespace {

// Parts may have been put together unchecked, and kernels trust them.
void check_rows(const CompressedRows& s, const Tensor& t) {
  const int64_t *starts = s.starts.data<int64_t>(), *columns = s.columns.data<int64_t>();
  bool inside = starts[0] == 0 && starts[t.size(0)] == s.columns.numel();
  for (int64_t r = 0; r < t.size(0); ++r) inside &= starts[r] <= starts[r + 1];
  for (int64_t i = 0; i < s.columns.numel(); ++i) inside &= columns[i] >= 0 && columns[i] < t.size(1);
  RL_CHECK(inside, "sparse matrix of size ", t.sizes(), ": its indices point outside of it");
}

}  // namespace

CompressedRows compressed_rows(const Tensor& t) {
  const Tensor csr = to_layout(t, Layout::SparseCsr);
  const SparseParts& p = sparse_parts(csr);
  auto plain = [](const Tensor& x) { return contiguous(x, MemoryFormat::Contiguous); };
  const CompressedRows rows{plain(to_dtype(p.compressed, DType::Int64)),
                            plain(to_dtype(p.plain, DType::Int64)), plain(p.values)};
  check_rows(rows, csr);
  return rows;
}

Tensor sparse_as(const Tensor& g, const Tensor& self) { return is_sparse(g) ? in_layout_of(g, self) : g; }

Tensor in_layout_of(const Tensor& g, const Tensor& self) {
  if (!self.defined() || !is_sparse(self)) return densely(g);
  const SparseForm form = form_of(self);
  if (is_sparse(g) && form_of(g) == form) return g;
  // There is no way from blocks to compressed elements.
  const bool apart = is_sparse(g) && is_block(layout_of(g)) && !is_block(form.layout);
  const Tensor from = apart ? densely(g) : g;
  const Dims blocks{form.block_rows, form.block_columns};
  return to_sparse(from, form.layout, is_block(form.layout) ? OptIntList(blocks) : std::nullopt,
                   is_sparse(from) ? std::nullopt : OptInt(self.dim() - sparse_dim_of(self)));
}

// Row starts of sorted row numbers: how many are below 0, 1, ..., size.
static Tensor row_starts_body(const Call&, const Tensor& self, int64_t size, bool out_int32) {
  const Tensor rows =
      arange(Scalar(0), Scalar(size + 1), Scalar(1), self.dtype(), std::nullopt, self.device());
  return searchsorted(contiguous(self, MemoryFormat::Contiguous), rows, out_int32);
}
static Tensor coordinates_body(const Call&, const Tensor& starts, const Tensor& columns, bool out_int32,
                               bool transpose) {
  const Tensor counts = diff(starts);
  const Tensor rows =
      arange(Scalar(0), Scalar(counts.numel()), Scalar(1), columns.dtype(), std::nullopt, columns.device());
  const Tensor repeated = repeat_interleave_tensor(rows, counts);
  const Tensor pair = transpose ? stack({columns, repeated}) : stack({repeated, columns});
  return to_dtype(pair, out_int32 ? DType::Int32 : DType::Int64);
}

void register_sparse_operators(Table& t) {
  t.composite("_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor",
              row_starts_body)
      .function_only()
      .out()
      .doc("Row starts of sorted row numbers: how many are below 0, 1, ..., size.");
  t.composite(
       "_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, "
       "bool transpose=False) -> Tensor",
       coordinates_body)
      .function_only()
      .out()
      .doc("Row and column numbers from row starts and column numbers.");
  t.op(sparse_coo,
       "_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, int[] size, *, bool? is_coalesced=None) -> "
       "Tensor",
       coo_kernel)
      .function_only()
      .doc("A COO tensor of unchecked parts.")
      .family(Family::Sparse)
      .derivative([](Grad g, Out<0> y) { return Grads{Tensor(), sparse_values_at(g, y)}; });
  t.op(sparse_compressed,
       "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, "
       "int[] size, *, Layout? layout=None) -> Tensor",
       compressed_kernel)
      .function_only()
      .doc("A compressed (CSR, CSC, BSR, BSC) tensor of unchecked parts.")
      .family(Family::Sparse)
      .derivative([](Grad g, Out<0> y) { return Grads{Tensor(), Tensor(), sparse_values_at(g, y)}; });
  register_parts(t);
  t.op(coalesce, "coalesce(Tensor self) -> Tensor", refuse_dense)
      .doc("Each position once, in row-major order; values at one position are added.")
      .family(Family::Sparse)
      .may_return_input()
      .derivative([](Grad g) { return Tensor(g); });
  t.sparse(coalesce, coalesce_kernel);
  t.op(sparse_with_values, "_sparse_with_values(Tensor pattern, Tensor values) -> Tensor", with_values_kernel)
      .absent_in_pytorch()
      .internal()
      .doc("The sparse tensor with other values at its positions.")
      .family(Family::Sparse)
      .derivative([](Grad g, In<0> pattern) { return Grads{Tensor(), sparse_values_at(g, pattern)}; });
  t.sparse(sparse_with_values, with_values_kernel);
  t.op(sparse_values_listed, "_sparse_values_at(Tensor self, Tensor pattern, bool dense) -> Tensor",
       values_at_kernel)
      .absent_in_pytorch()
      .internal()
      .doc(
          "The elements of self (dense or not) at the positions of the sparse pattern: [nnz, dense "
          "sizes...].")
      .family(Family::Sparse)
      .derivative([](Grad g, In<1> pattern, Attr<2, bool> dense) {
        const Tensor listed = sparse_with_values(pattern, g);
        return Grads{dense ? densely(listed) : listed, Tensor()};
      });
  t.sparse(sparse_values_listed, values_at_kernel);
  t.composite(ops::sparse_mask, "sparse_mask(Tensor self, Tensor mask) -> Tensor", mask_body)
      .method_only()
      .doc("The elements of self at the positions of the sparse mask, as a sparse tensor.");
  t.op(to_dense, "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
       dense_to_dense)
      .method_only()
      .doc("All elements. The gradient has the pattern of self, unless masked_grad=False.")
      .family(Family::Sparse)
      .may_return_input()
      .derivative([](Grad g, In<0> self, Attr<2, std::optional<bool>> masked) {
        return is_sparse(self) && masked.value.value_or(true) ? ops::sparse_mask(g, self) : Tensor(g);
      });
  t.sparse(to_dense, to_dense_kernel);
  t.op(to_sparse_dim, "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", to_coo_kernel)
      .method_only()
      .doc("The non-zero elements as a COO tensor; the last dim - sparse_dim dimensions stay dense.")
      .family(Family::Sparse)
      .may_return_input()
      .derivative(conversion_gradient);
  t.sparse(to_sparse_dim, to_coo_kernel);
  t.composite(to_sparse,
              "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) "
              "-> Tensor",
              to_sparse_body)
      .method_only()
      .doc("The non-zero elements as a sparse tensor of the layout (sparse_coo).");
  t.composite(to_sparse_coo, "to_sparse_coo(Tensor self) -> Tensor", to_coo_body)
      .method_only()
      .doc("The non-zero elements as a COO tensor.");
  t.op(to_sparse_csr, "to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor",
       to_compressed_kernel<Layout::SparseCsr>)
      .method_only()
      .doc("Matrices as CSR: row starts, columns, values.")
      .family(Family::Sparse)
      .may_return_input()
      .derivative(conversion_gradient);
  t.sparse(to_sparse_csr, to_compressed_kernel<Layout::SparseCsr>);
  t.op(to_sparse_csc, "to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor",
       to_compressed_kernel<Layout::SparseCsc>)
      .method_only()
      .doc("Matrices as CSC: column starts, rows, values.")
      .family(Family::Sparse)
      .may_return_input()
      .derivative(conversion_gradient);
  t.sparse(to_sparse_csc, to_compressed_kernel<Layout::SparseCsc>);
  t.op(to_sparse_bsr, "to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
       to_blocks_kernel<Layout::SparseBsr>)
      .method_only()
      .doc("Matrices as BSR: CSR whose elements are dense blocks.")
      .family(Family::Sparse)
      .may_return_input()
      .derivative(conversion_gradient);
  t.sparse(to_sparse_bsr, to_blocks_kernel<Layout::SparseBsr>);
  t.op(to_sparse_bsc, "to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
       to_blocks_kernel<Layout::SparseBsc>)
      .method_only()
      .doc("Matrices as BSC: CSC whose elements are dense blocks.")
      .family(Family::Sparse)
      .may_return_input()
      .derivative(conversion_gradient);
  t.sparse(to_sparse_bsc, to_blocks_kernel<Layout::SparseBsc>);
}

}  // namespace rushlight
