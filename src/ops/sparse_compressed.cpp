// Compressed layouts (CSR, CSC and their block forms, all with batches) as lists of elements, and back.
#include <algorithm>

#include "cpu/pointwise.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/plain.h"
#include "ops/pointwise.h"
#include "ops/reduction.h"
#include "ops/sort.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

bool is_block(Layout layout) { return layout == Layout::SparseBsr || layout == Layout::SparseBsc; }
bool by_rows(Layout layout) { return layout == Layout::SparseCsr || layout == Layout::SparseBsr; }

std::string_view layout_text(Layout layout) {
  static constexpr std::string_view names[] = {"Strided",   "Sparse",    "SparseCsr",
                                               "SparseCsc", "SparseBsr", "SparseBsc"};
  return names[static_cast<int>(layout)];
}

int64_t batch_dims_of(const SparseParts& p) {
  return p.layout == Layout::SparseCoo ? 0 : p.compressed.dim() - 1;
}

int64_t sparse_dim_of(const Tensor& t) {
  const SparseParts& p = sparse_parts(t);
  return p.layout == Layout::SparseCoo ? p.indices.size(0) : batch_dims_of(p) + 2;
}

Tensor without_elements(IntList sizes, DType dtype, Layout layout) {
  checked_numel(sizes);
  const auto part = [](IntList shape, DType type) {
    return zeros(shape, type, std::nullopt, std::nullopt, std::nullopt);
  };
  const auto dims = static_cast<int64_t>(sizes.size());
  if (layout == Layout::SparseCoo)
    return make_sparse({.indices = part(IntList{dims, 0}, DType::Int64),
                        .values = part(IntList{0}, dtype),
                        .coalesced = true},
                       sizes);
  RL_CHECK(!is_block(layout),
           "empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got ",
           layout_text(layout));
  RL_CHECK(dims >= 2,
           "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size ",
           sizes);
  Dims batch = sizes.slice(0, static_cast<size_t>(dims - 2)).dims(), starts = batch;
  batch.push_back(0);
  starts.push_back(sizes[static_cast<size_t>(by_rows(layout) ? dims - 2 : dims - 1)] + 1);
  return make_sparse({.layout = layout,
                      .compressed = part(starts, DType::Int64),
                      .plain = part(batch, DType::Int64),
                      .values = part(batch, dtype)},
                     sizes);
}

int64_t listing_dims_of(const SparseParts& p) { return batch_dims_of(p) + (is_block(p.layout) ? 3 : 1); }

SparseForm form_of(const Tensor& t) {
  const SparseParts& p = sparse_parts(t);
  SparseForm form{p.layout, batch_dims_of(p)};
  if (is_block(p.layout)) {
    form.block_rows = p.values.size(form.batch_dims + 1);
    form.block_columns = p.values.size(form.batch_dims + 2);
  }
  return form;
}

namespace {

Tensor arange_to(int64_t n) {
  return arange(Scalar(int64_t{0}), Scalar(n), Scalar(int64_t{1}), DType::Int64, std::nullopt, std::nullopt,
                std::nullopt);
}
// By at least one: there is nothing to divide where a size is zero.
Tensor quotient(const Tensor& t, int64_t n) {
  return floor_divide(t, wrapped_number(Scalar(std::max<int64_t>(n, 1))));
}
Tensor rest(const Tensor& t, int64_t n) {
  return remainder(t, wrapped_number(Scalar(std::max<int64_t>(n, 1))));
}
IntList first_sizes(const Tensor& t, int64_t n) { return t.sizes().slice(0, static_cast<size_t>(n)); }
void append(Dims& sizes, IntList more) {
  for (int64_t n : more) sizes.push_back(n);
}

// The rows, columns and batches of a compressed tensor, counted in blocks.
struct Extent {
  int64_t batches, lines, width;
};

Extent extent_of(const Tensor& t, const SparseForm& form) {
  const int64_t rows = t.size(form.batch_dims) / form.block_rows,
                columns = t.size(form.batch_dims + 1) / form.block_columns;
  const bool rowwise = by_rows(form.layout);
  return {checked_numel(first_sizes(t, form.batch_dims)), rowwise ? rows : columns, rowwise ? columns : rows};
}

// Of each element in the order of the values: batch, row and column, or [batch dimensions..., row, column].
std::array<Tensor, 3> element_positions(const Tensor& t) {
  const SparseParts& p = sparse_parts(t);
  const SparseForm form = form_of(t);
  const Extent e = extent_of(t, form);
  const Tensor starts = to_dtype(p.compressed, DType::Int64);
  const Tensor counts = slice(starts, -1, 1, std::nullopt, 1) - slice(starts, -1, 0, -1, 1);
  const Tensor line_of = repeat_interleave_tensor(arange_to(e.batches * e.lines),
                                                  reshape(counts, IntList{-1}), std::nullopt, std::nullopt);
  Tensor batch = quotient(line_of, e.lines), line = rest(line_of, e.lines),
         cross = to_dtype(reshape(p.plain, IntList{p.plain.numel()}), DType::Int64);
  if (!by_rows(form.layout)) std::swap(line, cross);
  if (!is_block(form.layout)) return {batch, line, cross};
  const Dims sizes{line.numel(), form.block_rows, form.block_columns};
  auto spread = [&](const Tensor& x) {
    return reshape(expand(x, sizes, false), IntList{checked_numel(sizes)});
  };
  auto per_block = [](const Tensor& x) { return reshape(x, IntList{x.numel(), 1, 1}); };
  return {spread(per_block(batch)),
          spread(per_block(line * Scalar(form.block_rows)) +
                 reshape(arange_to(form.block_rows), IntList{1, form.block_rows, 1})),
          spread(per_block(cross * Scalar(form.block_columns)) + arange_to(form.block_columns))};
}

// What is listed, block by block, before it is compressed: the flat number batch * lines + line of each
// block's line, its place on the line, and its elements; sorted.
struct Listing {
  Tensor lines, places, values;
};

Listing list_dense(const Tensor& t, const SparseForm& form, const Extent& e) {
  const bool rowwise = by_rows(form.layout);
  const int64_t rows = rowwise ? e.lines : e.width, columns = rowwise ? e.width : e.lines;
  const int64_t dense = checked_numel(t.sizes().slice(static_cast<size_t>(form.batch_dims + 2)));
  const Tensor split =
      reshape(t, IntList{e.batches, rows, form.block_rows, columns, form.block_columns, dense});
  const Tensor blocks =
      rowwise ? permute(split, IntList{0, 1, 3, 2, 4, 5}) : permute(split, IntList{0, 3, 1, 2, 4, 5});
  const Tensor flat =
      reshape(blocks, IntList{e.batches * e.lines * e.width, form.block_rows * form.block_columns * dense});
  const Tensor wanted = any_dim(ops::ne(flat, wrapped_number(Scalar(int64_t{0}))), 1, false);
  const Tensor positions = reshape(nonzero(wanted), IntList{-1});
  return {quotient(positions, e.width), rest(positions, e.width), index_select(flat, 0, positions)};
}

Listing list_sparse(const Tensor& t, const SparseForm& form, const Extent& e) {
  std::array<Tensor, 3> at;
  Tensor values;
  if (layout_of(t) == Layout::SparseCoo) {
    const Tensor sorted = coalesce(t);
    const SparseParts& p = sparse_parts(sorted);
    if (by_rows(form.layout) && !is_block(form.layout) && form.batch_dims == 0)  // is in that order
      return {ops::select(p.indices, 0, 0), ops::select(p.indices, 0, 1), p.values};
    Tensor batch = zeros(IntList{p.indices.size(1)}, DType::Int64, std::nullopt, std::nullopt, std::nullopt);
    for (int64_t d = 0; d < form.batch_dims; ++d)
      batch = batch * Scalar(t.size(d)) + ops::select(p.indices, 0, d);
    at = {batch, ops::select(p.indices, 0, form.batch_dims), ops::select(p.indices, 0, form.batch_dims + 1)};
    values = p.values;
  } else {
    at = element_positions(t);
    values = listed_values(t);
  }
  values = reshape(values, IntList{at[0].numel(), values.numel() / std::max<int64_t>(at[0].numel(), 1)});
  Tensor line = quotient(at[1], form.block_rows), cross = quotient(at[2], form.block_columns);
  if (!by_rows(form.layout)) std::swap(line, cross);
  const Tensor keys = (at[0] * Scalar(e.lines) + line) * Scalar(e.width) + cross;
  const int64_t area = form.block_rows * form.block_columns, depth = values.size(1);
  if (area == 1) {  // one element each: only to be sorted
    auto [sorted, order] = sort_stable(keys, true, 0, false);
    return {quotient(sorted, e.width), rest(sorted, e.width), index_select(values, 0, order)};
  }
  auto [positions, inverse, counts] = unique2(keys, true, true, false);
  const Tensor target = inverse * Scalar(area) + rest(at[1], form.block_rows) * Scalar(form.block_columns) +
                        rest(at[2], form.block_columns);
  const Tensor none = new_zeros(values, IntList{positions.numel() * area, depth}, std::nullopt, std::nullopt,
                                std::nullopt, std::nullopt);
  return {quotient(positions, e.width), rest(positions, e.width), index_put(none, {target}, values, true)};
}

// Where each line of each batch starts in its part of the list.
Tensor starts_of(const Tensor& lines, const Extent& e, int64_t count) {
  const Tensor all = searchsorted(contiguous(lines, MemoryFormat::Contiguous),
                                  arange_to(e.batches * e.lines + 1), false, false, std::nullopt, Tensor());
  const Tensor batch = reshape(arange_to(e.batches), IntList{e.batches, 1});
  const Tensor wanted = batch * Scalar(e.lines) + arange_to(e.lines + 1);
  const Tensor starts = reshape(index_select(all, 0, reshape(wanted, IntList{-1})), wanted.sizes());
  const Tensor ends = ops::select(starts, 1, -1) - ops::select(starts, 1, 0);
  RL_CHECK(e.batches < 2 || cpu::all_true(ops::eq(ends, wrapped_number(Scalar(count)))),
           "Expect the same number of specified elements per batch.");
  return starts - batch * Scalar(count);
}

void check_form(std::string_view who, const Tensor& t, const SparseForm& form) {
  RL_CHECK(form.batch_dims >= 0 && t.dim() >= form.batch_dims + 2, who,
           ": expected at least two sparse dimensions, got shape ", t.sizes());
  RL_CHECK(form.block_rows > 0 && form.block_columns > 0, who, ": expected positive block sizes, got (",
           form.block_rows, ", ", form.block_columns, ")");
  const int64_t rows = t.size(form.batch_dims), columns = t.size(form.batch_dims + 1);
  RL_CHECK(rows % form.block_rows == 0 && columns % form.block_columns == 0, who, ": tensor sparse size (",
           rows, ", ", columns, ") must be divisible by given blocksize (", form.block_rows, ", ",
           form.block_columns, ")");
  RL_CHECK(!is_sparse(t) || sparse_dim_of(t) == form.batch_dims + 2, who, ": conversion from ",
           layout_text(layout_of(t)), " to ", layout_text(form.layout),
           " for input tensors with sparse_dim()!=2 is not supported");
}

// Of a matrix row and column numbers by one loop; undefined for other tensors.
Tensor coordinates_of_matrix(const SparseParts& p) {
  if (is_block(p.layout) || batch_dims_of(p) || !is_plain(p.compressed) || !is_plain(p.plain)) return {};
  const Tensor starts = contiguous(to_dtype(p.compressed, DType::Int64), MemoryFormat::Contiguous),
               places = contiguous(to_dtype(p.plain, DType::Int64), MemoryFormat::Contiguous);
  const int64_t lines = starts.numel() - 1, count = places.numel();
  const int64_t* from = starts.data<int64_t>();
  if (lines < 0 || from[0] != 0 || from[lines] != count) return {};  // put together unchecked
  for (int64_t i = 0; i < lines; ++i)
    if (from[i] > from[i + 1]) return {};
  const Tensor pair = empty_tensor(IntList{2, count}, DType::Int64, starts.device());
  int64_t* line = pair.data<int64_t>() + (by_rows(p.layout) ? 0 : count);
  for (int64_t i = 0; i < lines; ++i) std::fill(line + from[i], line + from[i + 1], i);
  std::copy_n(places.data<int64_t>(), count, pair.data<int64_t>() + (by_rows(p.layout) ? count : 0));
  return pair;
}

}  // namespace

Tensor element_indices(const Tensor& t) {
  const SparseParts& p = sparse_parts(t);
  if (p.layout == Layout::SparseCoo) return p.indices;
  if (const Tensor pair = coordinates_of_matrix(p); pair.defined()) return pair;
  auto [batch, row, column] = element_positions(t);
  std::vector<Tensor> rows(static_cast<size_t>(batch_dims_of(p)));
  for (size_t d = rows.size(); d-- > 0;) {
    const int64_t n = t.size(static_cast<int64_t>(d));
    rows[d] = rest(batch, n);
    batch = quotient(batch, n);
  }
  rows.push_back(row);
  rows.push_back(column);
  return stack(rows, 0);
}

Tensor listed_values(const Tensor& t) {
  const SparseParts& p = sparse_parts(t);
  const int64_t dims = listing_dims_of(p);
  if (dims == 1) return p.values;
  Dims sizes{checked_numel(first_sizes(p.values, dims))};
  append(sizes, p.values.sizes().slice(static_cast<size_t>(dims)));
  return reshape(p.values, sizes);
}

Tensor compressed_as(std::string_view who, const Tensor& t, const SparseForm& form) {
  check_form(who, t, form);
  const Extent e = extent_of(t, form);
  const Listing list = is_sparse(t) ? list_sparse(t, form, e) : list_dense(t, form, e);
  const int64_t count = list.lines.numel() / std::max<int64_t>(e.batches, 1);
  const Dims batch = first_sizes(t, form.batch_dims).dims();
  Dims starts = batch, places = batch, values = batch;
  starts.push_back(e.lines + 1);
  const Tensor compressed = starts_of(list.lines, e, count);
  places.push_back(count);
  values.push_back(count);
  if (is_block(form.layout)) append(values, IntList{form.block_rows, form.block_columns});
  append(values, t.sizes().slice(static_cast<size_t>(form.batch_dims + 2)));
  const bool compressed_before = is_sparse(t) && layout_of(t) != Layout::SparseCoo;
  const DType index_type = compressed_before ? sparse_parts(t).plain.dtype() : DType::Int64;
  return make_sparse({.layout = form.layout,
                      .indices = Tensor(),
                      .compressed = to_dtype(reshape(compressed, starts), index_type),
                      .plain = to_dtype(reshape(list.places, places), index_type),
                      .values = reshape(list.values, values)},
                     t.sizes());
}

Tensor in_form(const Tensor& t, const SparseForm& form) {
  if (layout_of(t) == form.layout && form_of(t) == form) return t;
  return form.layout == Layout::SparseCoo ? to_layout(t, Layout::SparseCoo)
                                          : compressed_as("to_sparse", t, form);
}

void check_compressed_copy(const Tensor& self, const Tensor& source) {
  const Layout layout = layout_of(self);
  RL_CHECK(layout == layout_of(source),
           "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self "
           "layout is ",
           layout_text(layout), " and src layout is ", layout_text(layout_of(source)));
  const SparseForm own = form_of(self), other = form_of(source);
  RL_CHECK(
      sparse_parts(self).values.size(own.batch_dims) == sparse_parts(source).values.size(other.batch_dims),
      "torch.copy_: only sparse compressed tensors with the same number of specified elements are "
      "supported.");
  const int64_t line = by_rows(layout) ? 0 : 1;
  const int64_t lines = self.size(own.batch_dims + line), given = source.size(other.batch_dims + line);
  RL_CHECK(lines == given, "torch.copy_: expected shapes of self and src to match along dimension ",
           own.batch_dims + line, " for ", layout_text(layout),
           " layout but the corresponding dimensions of self and src are ", lines, " and ", given,
           ", respectively.");
  RL_CHECK(own.block_rows == other.block_rows && own.block_columns == other.block_columns,
           "torch.copy_: copy of sparse compressed tensors having different block sizes is not supported. "
           "self and src block sizes are [",
           own.block_rows, ", ", own.block_columns, "] and [", other.block_rows, ", ", other.block_columns,
           "], respectively.");
}

}  // namespace rushlight
