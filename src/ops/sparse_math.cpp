// Arithmetic of sparse tensors: rules for operators that other families record.
#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/random.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/scan.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor ready(const Tensor& t) { return layout_of(t) == Layout::SparseCoo ? coalesce(t) : t; }
const Tensor& values_of(const Tensor& t) { return sparse_parts(t).values; }
Tensor with(const Tensor& pattern, const Tensor& values) { return sparse_with_values(pattern, values); }

// f(0) = 0: only listed values change.
template <auto& f>
Tensor on_values(const Call&, const Tensor& self) {
  const Tensor pattern = ready(self);
  return with(pattern, f(values_of(pattern)));
}

bool is_number(const Tensor& t) { return !is_sparse(t) && t.dim() == 0; }

void check_same_sizes(const char* who, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.sizes() == b.sizes(), who, ": expected 'self' and 'other' to have same size, but ", a.sizes(),
           " != ", b.sizes());
}

Tensor scaled_by(const Tensor& t, const Scalar& alpha) { return alpha == Scalar(int64_t{1}) ? t : t * alpha; }

// Walks through two lists of indices side by side, so that equal ones meet: what is added again and again to
// the same elements lists each once. Of every element its row in the result, and of every row one element.
std::pair<Tensor, Tensor> merged_rows(const Tensor& a, const Tensor& b) {
  const Tensor left = contiguous(a), right = contiguous(b);
  const int64_t dims = a.size(0), m = a.size(1), n = b.size(1);
  const auto *p = left.data<int64_t>(), *q = right.data<int64_t>();
  auto order = [&](int64_t i, int64_t j) {
    if (i == m || j == n) return i == m ? 1 : -1;
    for (int64_t d = 0; d < dims; ++d)
      if (p[d * m + i] != q[d * n + j]) return p[d * m + i] < q[d * n + j] ? -1 : 1;
    return 0;
  };
  const Tensor rows = empty_tensor({m + n}, DType::Int64), chosen = empty_tensor({m + n}, DType::Int64);
  auto *row = rows.data<int64_t>(), *choice = chosen.data<int64_t>();
  int64_t count = 0;
  for (int64_t i = 0, j = 0; i < m || j < n; ++count) {
    const int before = order(i, j);
    choice[count] = before <= 0 ? i : m + j;
    if (before <= 0) row[i++] = count;
    if (before >= 0) row[m + j++] = count;
  }
  return {rows, narrow(chosen, 0, 0, count)};
}

Tensor add_sparse(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  check_same_sizes("add", a, b);
  if (layout_of(a) != Layout::SparseCoo) {
    const Tensor sum = add_sparse(to_layout(a, Layout::SparseCoo), to_layout(b, Layout::SparseCoo), alpha);
    return in_form(sum, form_of(a));
  }
  const Tensor other = to_layout(b, Layout::SparseCoo);
  const SparseParts &p = sparse_parts(a), &q = sparse_parts(other);
  const DType dtype = result_type(a, other);
  if (sparse_dim_of(a) != sparse_dim_of(other)) {  // what lists nothing may have any number of them
    if (q.values.size(0) == 0) return with(a, to_dtype(p.values, dtype));
    if (p.values.size(0) == 0) return with(other, to_dtype(scaled_by(q.values, alpha), dtype));
  }
  RL_CHECK(sparse_dim_of(a) == sparse_dim_of(other),
           "add: expected 'self' and 'other' to have same number of sparse dimensions, but ",
           sparse_dim_of(a), " != ", sparse_dim_of(other));
  const DType counted = dtype == DType::Bool ? DType::Int32 : dtype;
  const Tensor addends = cat({to_dtype(p.values, counted), to_dtype(scaled_by(q.values, alpha), counted)}, 0);
  const auto [rows, chosen] = merged_rows(p.indices, q.indices);
  Dims sizes = addends->sizes;
  sizes[0] = chosen.size(0);
  const Tensor none = new_zeros(addends, sizes, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  return make_sparse({.indices = index_select(cat({p.indices, q.indices}, 1), 1, chosen),
                      .values = to_dtype(index_add(none, 0, rows, addends, Scalar(int64_t{1})), dtype),
                      .coalesced = p.coalesced && q.coalesced},
                     a.sizes());
}

// Into the dense operand itself when the call is in place and its memory allows.
Tensor add_to_dense(const Call& call, const Tensor& dense, const Tensor& other, const Scalar& alpha) {
  RL_CHECK(dense.sizes() == other.sizes(), "add: Expected 'other' to have the size of 'self' ", dense.sizes(),
           ", but the sparse tensor has ", other.sizes());
  const DType common = result_type(dense, other);
  RL_CHECK(!call.inplace || can_cast(common, dense.dtype()), "Can't convert result type ",
           legacy_name(common), " to output ", legacy_name(dense.dtype()), " in add operation");
  const DType dtype = call.inplace ? dense.dtype() : common;
  const Tensor addends = to_dtype(scaled_by(listed_values(other), alpha), dtype);
  const bool direct = call.inplace && dense.is_contiguous();
  const Tensor target = direct ? dense : clone(to_dtype(dense, dtype), MemoryFormat::Contiguous);
  Dims sizes{-1};
  const int64_t dims = sparse_dim_of(other);
  for (int64_t i = dims; i < dense.dim(); ++i) sizes.push_back(dense.size(i));
  if (dense.numel() == 0) return target;
  index_add.inplace(view(target, sizes), 0, flat_positions(other), addends, Scalar(int64_t{1}));
  return target;
}

Tensor add_kernel(const Call& call, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  if (is_sparse(a) && is_sparse(b)) return add_sparse(a, b, alpha);
  if (is_sparse(b)) return add_to_dense(call, a, b, alpha);
  RL_CHECK(!is_number(b) || a.dim() == 0, "add: a number added to a sparse tensor of shape ", a.sizes(),
           " would fill it; use .to_dense() first");
  RL_CHECK(!call.inplace, "add_: a dense tensor can't be added to a sparse one in place; use a + b");
  return ops::add(to_dense(a, std::nullopt, std::nullopt), b, alpha);
}
Tensor sub_kernel(const Call& call, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  return add_kernel(call, a, b, -alpha);
}

// The values for an operation with a tensor of no dimensions, which counts for the dtype where `a` has none
// either: the values always have one.
Tensor values_beside(const Tensor& a, const Tensor& number) {
  return to_dtype(values_of(a), result_type(a, number));
}

Tensor mul_kernel(const Call&, const Tensor& a, const Tensor& b) {
  if (!is_sparse(a)) return ops::mul(b, a);
  if (is_number(b)) return with(a, values_beside(a, b) * b);
  if (is_sparse(b) && a.sizes() != b.sizes()) {
    if (b.dim() == 0) return with(a, values_beside(a, b) * to_dense(b, std::nullopt, std::nullopt));
    if (a.dim() == 0) return ops::mul(b, a);
    const Dims sizes = broadcast_shapes(a.sizes(), b.sizes());
    return ops::mul(sparse_broadcast(to_layout(a, Layout::SparseCoo), sizes),
                    sparse_broadcast(to_layout(b, Layout::SparseCoo), sizes));
  }
  const Tensor pattern = ready(a);
  if (is_sparse(b)) {
    return with(pattern, values_of(pattern) * sparse_values_at(b, pattern));
  }
  if (broadcast_shapes(a.sizes(), b.sizes()) != a->sizes)
    return ops::mul(sparse_broadcast(a, broadcast_shapes(a.sizes(), b.sizes())), b);
  const Tensor other = expand(b, a.sizes(), false);
  return with(pattern, values_of(pattern) * sparse_values_at(other, pattern));
}
Tensor div_kernel(const Call&, const Tensor& a, const Tensor& b) {
  RL_CHECK(is_sparse(a) && !is_sparse(b),
           "div: Sparse division requires a scalar or zero-dim dense tensor divisor (got a sparse divisor of "
           "shape ",
           b.sizes(), ")");
  if (is_number(b)) return with(a, values_beside(a, b) / b);
  const Tensor pattern = ready(a);
  return with(pattern, values_of(pattern) / sparse_values_at(expand(b, a.sizes(), false), pattern));
}
// A rounded quotient of a sum is not the sum of rounded ones: positions are listed once first.
Tensor div_mode_kernel(const Call&, const Tensor& a, const Tensor& b, std::optional<std::string_view> mode) {
  if (!mode) return ops::div(a, b);
  RL_CHECK(is_sparse(a) && is_number(b),
           "Sparse floor division requires a scalar or zero-dim dense tensor divisor (got shape ", b.sizes(),
           " for divisor)");
  const Tensor pattern = ready(a);
  return with(pattern, ops::div_mode(values_of(pattern), b, mode));
}
Tensor floor_divide_kernel(const Call& call, const Tensor& a, const Tensor& b) {
  return div_mode_kernel(call, a, b, "floor");
}
Tensor pow_kernel(const Call&, const Tensor& a, const Tensor& exponent) {
  RL_CHECK(is_sparse(a) && is_number(exponent), "pow: a sparse tensor can only be raised to a number");
  RL_CHECK(read_scalar(exponent).to_double() > 0, "pow: a sparse tensor to the power ",
           read_scalar(exponent).to_double(), " would not be sparse");
  const Tensor pattern = ready(a);
  return with(pattern, ops::pow(values_of(pattern), exponent));
}

Tensor round_kernel(const Call&, const Tensor& self, int64_t decimals) {
  const Tensor pattern = ready(self);
  return with(pattern, ops::round(values_of(pattern), decimals));
}
Tensor neg_kernel(const Call&, const Tensor& self) { return with(self, ops::neg(values_of(self))); }
Tensor clone_kernel(const Call&, const Tensor& self, std::optional<MemoryFormat>) {
  SparseParts parts = sparse_parts(self);
  for (Tensor* part : {&parts.indices, &parts.compressed, &parts.plain, &parts.values})
    if (part->defined()) *part = clone(*part, std::nullopt);
  return make_sparse(std::move(parts), self.sizes());
}
Tensor detach_kernel(const Call&, const Tensor& self) {
  return make_sparse(sparse_parts(self), self.sizes());
}
Tensor to_kernel(const Call&, const Tensor& self, OptDType dtype, OptDevice device,
                 std::optional<MemoryFormat>) {
  RL_CHECK(!device || device->is_cpu(), "to(): sparse tensors live on the CPU, got ", to_string(*device));
  return with(self, to_copy(values_of(self), dtype, std::nullopt, std::nullopt));
}
Tensor copy_kernel(const Call&, const Tensor& self, const Tensor& source, bool) {
  if (!is_sparse(self)) {
    copy_result(self, to_dense(source, std::nullopt, std::nullopt), false);
    return self;
  }
  if (layout_of(self) != Layout::SparseCoo) check_compressed_copy(self, source);
  RL_CHECK(is_sparse(source),
           "copy_() between dense and sparse Tensors is not implemented! Found self type = "
           "torch.sparse.FloatTensor and src type = torch.FloatTensor");
  RL_CHECK(self.sizes() == source.sizes(), "copy_: shapes differ: ", self.sizes(), " and ", source.sizes());
  const Tensor same = with(source, to_copy(values_of(source), self.dtype(), std::nullopt, std::nullopt));
  replace_sparse(self, in_form(same, form_of(self)));
  return self;
}
Tensor emptied(const Tensor& self, const SparseForm& form) {
  const Tensor coo = to_layout(self, Layout::SparseCoo);
  const SparseParts& p = sparse_parts(coo);
  const Tensor none = make_sparse({.indices = ops::slice(p.indices, 1, 0, 0, 1),
                                   .values = ops::slice(p.values, 0, 0, 0, 1),
                                   .coalesced = true},
                                  self.sizes());
  return in_form(none, form);
}
Tensor zero_kernel(const Call&, const Tensor& self) {
  replace_sparse(self, emptied(self, form_of(self)));
  return self;
}
Tensor zeros_like_kernel(const Call&, const Tensor& self, OptDType dtype, std::optional<Layout> layout,
                         OptDevice, std::optional<bool>, std::optional<MemoryFormat> format) {
  const Layout wanted = layout.value_or(layout_of(self));
  if (wanted == Layout::Strided)
    return zeros(self.sizes(), dtype.value_or(self.dtype()), std::nullopt, std::nullopt, std::nullopt);
  RL_CHECK(format.value_or(MemoryFormat::Preserve) == MemoryFormat::Preserve,
           "memory format option is only supported by strided tensors");
  SparseForm form = form_of(self);
  form.layout = wanted;
  if (is_block(wanted) && !is_block(layout_of(self)))
    return without_elements(self.sizes(), dtype.value_or(self.dtype()), wanted);  // refuses
  const Tensor none = emptied(self, is_block(wanted) ? form : SparseForm{wanted, form.batch_dims});
  return dtype ? with(none, to_dtype(values_of(none), *dtype)) : none;
}

Tensor ones_like_kernel(const Call&, const Tensor& self, OptDType dtype, std::optional<Layout> layout,
                        OptDevice, std::optional<bool>, std::optional<MemoryFormat>) {
  const DType type = dtype.value_or(self.dtype());
  if (layout.value_or(layout_of(self)) == Layout::Strided)
    return ones(self.sizes(), type, std::nullopt, std::nullopt, std::nullopt);
  RL_CHECK(layout_of(self) != Layout::SparseCoo,
           "ones_like(): a sparse_coo tensor of ones would be full; use "
           "layout=torch.strided");
  return with(self,
              ops::ones_like(values_of(self), type, std::nullopt, std::nullopt, std::nullopt, std::nullopt));
}
void check_like_layout(std::string_view who, const Tensor& self, std::optional<Layout> layout) {
  RL_CHECK(layout.value_or(layout_of(self)) == layout_of(self), who,
           " with different sparse layout is not supported (self is ", layout_text(layout_of(self)),
           " but you requested ", layout_text(*layout), ")");
}
// A COO tensor starts without elements; the pattern of a compressed one stays.
Tensor empty_like_kernel(const Call& call, const Tensor& self, OptDType dtype, std::optional<Layout> layout,
                         OptDevice device, std::optional<bool> pin, std::optional<MemoryFormat> format) {
  RL_CHECK(!format, "memory format option is only supported by strided tensors");
  if (layout_of(self) == Layout::SparseCoo)
    return zeros_like_kernel(call, self, dtype, layout, device, pin, format);
  check_like_layout("empty_like", self, layout);
  return with(
      self, ops::zeros_like(values_of(self), dtype, std::nullopt, std::nullopt, std::nullopt, std::nullopt));
}

Tensor transpose_kernel(const Call&, const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  if (a == b) return self;
  SparseParts parts = sparse_parts(self);
  Dims sizes = self->sizes;
  std::swap(sizes[static_cast<size_t>(a)], sizes[static_cast<size_t>(b)]);
  if (parts.layout != Layout::SparseCoo) {
    const int64_t batch = batch_dims_of(parts);
    RL_CHECK(std::min(a, b) == batch && std::max(a, b) == batch + 1,
             "transpose(): can only transpose the sparse dimensions ", batch, " and ", batch + 1,
             " of a tensor of layout ", layout_text(parts.layout), ", got dimensions ", a, " and ", b);
    if (is_block(parts.layout)) parts.values = ops::transpose(parts.values, batch + 1, batch + 2);
    parts.layout = parts.layout == Layout::SparseCsr   ? Layout::SparseCsc
                   : parts.layout == Layout::SparseCsc ? Layout::SparseCsr
                   : parts.layout == Layout::SparseBsr ? Layout::SparseBsc
                                                       : Layout::SparseBsr;
    return make_sparse(std::move(parts), sizes);
  }
  const int64_t dims = sparse_dim_of(self);
  RL_CHECK((a < dims) == (b < dims),
           "transpose(): can't swap a sparse and a dense dimension, got dimensions ", a, " and ", b,
           " of a tensor with ", dims, " sparse dimensions");
  parts.coalesced = parts.coalesced && parts.indices.numel() == 0;
  if (a < dims) {
    Dims order;
    for (int64_t i = 0; i < dims; ++i) order.push_back(i == a ? b : i == b ? a : i);
    Tensor rows = zeros(IntList{dims}, DType::Int64, std::nullopt, std::nullopt, std::nullopt);
    std::copy(order.begin(), order.end(), rows.data<int64_t>());
    parts.indices = index_select(parts.indices, 0, rows);
  } else {
    parts.values = ops::transpose(parts.values, a - dims + 1, b - dims + 1);
  }
  return make_sparse(std::move(parts), sizes);
}
Tensor permute_kernel(const Call& call, const Tensor& self, IntList order) {
  Dims dims;
  for (int64_t d : order) dims.push_back(wrap_dim(d, self.dim(), false));
  uint64_t seen = 0;
  for (int64_t d : dims) seen |= uint64_t{1} << d;
  RL_CHECK(static_cast<int64_t>(dims.size()) == self.dim() && __builtin_popcountll(seen) == self.dim(),
           "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
           "desired ordering of dimensions: ",
           order, " for a tensor of shape ", self.sizes());
  RL_CHECK(layout_of(self) == Layout::SparseCoo, call.op.name(), "(): a tensor of layout ",
           layout_text(layout_of(self)), " can be transposed only, with .mT");
  Tensor result = self;
  for (size_t d = 0; d < dims.size(); ++d) {  // by exchanges: each puts one dimension where it belongs
    const auto from = static_cast<size_t>(dims[d]);
    if (from == d) continue;
    result = ops::transpose(result, static_cast<int64_t>(d), static_cast<int64_t>(from));
    for (size_t k = d + 1; k < dims.size(); ++k)
      if (dims[k] == static_cast<int64_t>(d)) dims[k] = static_cast<int64_t>(from);
  }
  return result;
}

// A dimension of size 1, listed where it stands among listed dimensions.
Tensor unsqueeze_kernel(const Call& call, const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim() + 1, false);
  SparseParts parts = sparse_parts(self);
  RL_CHECK(parts.layout == Layout::SparseCoo, call.op.name(), "(): not supported for a tensor of layout ",
           layout_text(parts.layout));
  const int64_t listed = sparse_dim_of(self);
  Dims sizes;
  for (int64_t k = 0; k <= self.dim(); ++k) {
    if (k == d) sizes.push_back(1);
    if (k < self.dim()) sizes.push_back(self.size(k));
  }
  if (d > listed) {
    parts.values = unsqueeze(parts.values, d - listed + 1);
  } else {
    const Tensor row =
        zeros(IntList{1, parts.values.size(0)}, DType::Int64, std::nullopt, std::nullopt, std::nullopt);
    parts.indices =
        cat({ops::slice(parts.indices, 0, 0, d, 1), row, ops::slice(parts.indices, 0, d, listed, 1)}, 0);
  }
  return make_sparse(std::move(parts), sizes);
}

Tensor t_kernel(const Call&, const Tensor& self) {
  RL_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return self.dim() < 2 ? self : ops::transpose(self, 0, 1);
}

Tensor sum_kernel(const Call&, const Tensor& self, OptDType dtype) {
  return ops::sum(values_of(self), dtype);
}

// Over some dimensions: sparse while a sparse dimension is left, or kept.
Tensor sum_dim_kernel(const Call& call, const Tensor& self, const OptIntList& dim, bool keepdim,
                      OptDType dtype) {
  RL_CHECK(keepdim || layout_of(self) == Layout::SparseCoo, call.op.name(), ": reduction operations on ",
           layout_text(layout_of(self)), " tensors with keepdim=False is unsupported");
  const uint64_t dims = dim_mask(dim, self.dim());
  // Integers are summed in int64, halves in float32, as dense tensors are.
  if (!dtype && is_integral_or_bool(self.dtype())) dtype = DType::Int64;
  if (const DType type = dtype.value_or(self.dtype()); is_reduced_float(type)) {
    const Tensor wide = sum_dim_kernel(call, self, dim, keepdim, DType::Float32);
    return is_sparse(wide) ? with(wide, to_dtype(values_of(wide), type)) : to_dtype(wide, type);
  }
  const Tensor coo = to_layout(self, Layout::SparseCoo);
  const SparseParts& p = sparse_parts(coo);
  const int64_t listed = sparse_dim_of(coo);
  std::vector<Tensor> rows;
  Dims sizes, dense{};
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool gone = dims >> d & 1;
    if (gone && d >= listed) dense.push_back(d - listed + 1);
    if (gone && !keepdim) continue;
    sizes.push_back(gone ? 1 : self.size(d));
    if (d < listed)
      rows.push_back(gone ? ops::zeros_like(ops::select(p.indices, 0, d), std::nullopt, std::nullopt,
                                            std::nullopt, std::nullopt, std::nullopt)
                          : ops::select(p.indices, 0, d));
  }
  const Tensor typed = dtype ? to_dtype(p.values, *dtype) : p.values;
  const Tensor values = dense.empty() ? typed : sum_dim(typed, OptIntList(dense), keepdim, std::nullopt);
  const uint64_t all_listed = (uint64_t{1} << listed) - 1;
  const bool listed_kept = (dims & all_listed) != all_listed || layout_of(self) != Layout::SparseCoo;
  if (rows.empty() || !listed_kept)  // nothing is left to list
    return reshape(sum_dim(values, OptIntList(IntList{0}), false, std::nullopt), sizes);
  const Tensor sum = coalesce(make_sparse(
      {.indices = stack(rows, 0), .compressed = Tensor(), .plain = Tensor(), .values = values}, sizes));
  return in_form(sum, form_of(self));
}

// One element of a dimension. Along a batch every part is selected; what is left of a single sparse dimension
// is dense.
Tensor select_kernel(const Call&, const Tensor& self, int64_t dim, int64_t index) {
  const int64_t d = wrap_dim(dim, self.dim(), false), n = self.size(d);
  RL_CHECK_INDEX(index >= -n && index < n, "select(): index ", index, " out of range for tensor of size ",
                 self.sizes(), " at dimension ", d);
  const int64_t at = index < 0 ? index + n : index;
  SparseParts parts = sparse_parts(self);
  Dims sizes = self->sizes;
  sizes.erase(static_cast<size_t>(d));
  if (parts.layout != Layout::SparseCoo && d < batch_dims_of(parts)) {
    for (Tensor* part : {&parts.compressed, &parts.plain, &parts.values}) *part = ops::select(*part, d, at);
    return make_sparse(std::move(parts), sizes);
  }
  const bool compressed = parts.layout != Layout::SparseCoo;
  RL_CHECK(!compressed || batch_dims_of(parts) == 0 || d >= sparse_dim_of(self),
           "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors.");
  const Tensor coo = compressed ? coalesce(to_layout(self, Layout::SparseCoo)) : self;
  const SparseParts& p = sparse_parts(coo);
  const int64_t dims = sparse_dim_of(coo);
  parts = p;
  if (d >= dims) {
    parts.values = ops::select(p.values, d - dims + 1, at);
    return make_sparse(std::move(parts), sizes);
  }
  const Tensor chosen =
      reshape(nonzero(ops::eq(ops::select(p.indices, 0, d), wrapped_number(Scalar(at)))), IntList{-1});
  parts.values = index_select(p.values, 0, chosen);
  if (dims == 1) return sum_dim(parts.values, OptIntList(IntList{0}), false, self.dtype());
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < dims; ++i)
    if (i != d) rows.push_back(index_select(ops::select(p.indices, 0, i), 0, chosen));
  parts.indices = stack(rows, 0);
  return make_sparse(std::move(parts), sizes);
}

std::vector<Tensor> unbind_kernel(const Call&, const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim(), false);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < self.size(d); ++i) parts.push_back(ops::select(self, d, i));
  return parts;
}

Tensor index_select_kernel(const Call&, const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t d = wrap_dim(dim, self.dim(), false);
  const Tensor coo = coalesce(to_layout(self, Layout::SparseCoo));
  const SparseParts& p = sparse_parts(coo);
  Dims sizes = self->sizes;
  sizes[static_cast<size_t>(d)] = index.numel();
  const int64_t dims = sparse_dim_of(coo);
  if (d >= dims) {
    SparseParts parts = p;
    parts.values = index_select(p.values, d - dims + 1, index);
    return make_sparse(std::move(parts), sizes);
  }
  // For each wanted index the elements that have it: pairs where both are equal.
  const Tensor own = ops::select(p.indices, 0, d);
  const Tensor wanted = to_dtype(
      ops::where(ops::lt(index, wrapped_number(Scalar(int64_t{0}))), index + Scalar(self.size(d)), index),
      DType::Int64);
  const Tensor pairs = nonzero(ops::eq(unsqueeze(wanted, 1), unsqueeze(own, 0)));
  const Tensor chosen = ops::select(pairs, 1, 1);
  Tensor indices = index_select(p.indices, 1, chosen);
  copy_result(ops::select(indices, 0, d), ops::select(pairs, 1, 0), false);
  return make_sparse({.indices = indices, .values = index_select(p.values, 0, chosen)}, sizes);
}

Tensor cat_kernel(const Call&, TensorList tensors, int64_t dim) {
  RL_CHECK(!tensors.empty(), "cat: expected a non-empty list of tensors");
  std::vector<Tensor> indices, values;
  const int64_t d = wrap_dim(dim, tensors[0].dim(), false);
  Dims sizes = tensors[0]->sizes;
  int64_t offset = 0;
  for (const Tensor& t : tensors) {
    RL_CHECK(is_sparse(t) && sparse_dim_of(t) == sparse_dim_of(tensors[0]) && t.dim() == tensors[0].dim(),
             "cat: expected sparse tensors of one kind, got shape ", t.sizes());
    RL_CHECK(d < sparse_dim_of(t), "cat: only sparse dimensions can be joined, got dimension ", d);
    const Tensor listed = to_layout(t, Layout::SparseCoo);
    const SparseParts& p = sparse_parts(listed);
    Tensor moved = clone(p.indices, std::nullopt);
    const Tensor row = ops::select(moved, 0, d);
    copy_result(row, row + Scalar(offset), false);
    indices.push_back(moved);
    values.push_back(p.values);
    offset += t.size(d);
  }
  sizes[static_cast<size_t>(d)] = offset;
  const Tensor joined = make_sparse({.indices = cat(indices, 1), .values = cat(values, 0)}, sizes);
  return in_form(joined, form_of(tensors[0]));
}

// Numbers that fill a compressed pattern; a COO tensor would be full.
Tensor new_zeros_kernel(const Call&, const Tensor& self, IntList size, OptDType dtype,
                        std::optional<Layout> layout, OptDevice, std::optional<bool>) {
  const DType type = dtype.value_or(self.dtype());
  if (layout == Layout::Strided) return zeros(size, type, std::nullopt, std::nullopt, std::nullopt);
  return without_elements(size, type, layout.value_or(layout_of(self)));
}
Tensor zeros_out_kernel(const Call& call, IntList size, OptDType, std::optional<Layout>, OptDevice,
                        std::optional<bool>) {
  return without_elements(size, call.out->dtype(), layout_of(*call.out));
}
Tensor full_like_kernel(const Call&, const Tensor& self, const Scalar& value, OptDType dtype,
                        std::optional<Layout> layout, OptDevice, std::optional<bool>,
                        std::optional<MemoryFormat>) {
  const DType type = dtype.value_or(self.dtype());
  if (layout == Layout::Strided)
    return full(self.sizes(), value, type, std::nullopt, std::nullopt, std::nullopt);
  RL_CHECK(layout_of(self) != Layout::SparseCoo,
           "full_like(): a sparse_coo tensor of one number would be full; use layout=torch.strided");
  return with(self, ops::full_like(values_of(self), value, type, std::nullopt, std::nullopt, std::nullopt,
                                   std::nullopt));
}
Tensor randn_like_kernel(const Call&, const Tensor& self, Generator* generator, OptDType dtype,
                         std::optional<Layout> layout, OptDevice, std::optional<bool>,
                         std::optional<MemoryFormat>) {
  RL_CHECK(layout_of(self) != Layout::SparseCoo,
           "randn_like(): a sparse_coo tensor of random numbers would be full; use torch.randn(x.shape)");
  check_like_layout("randn_like", self, layout);
  return with(self, ops::randn_like(values_of(self), generator, dtype, std::nullopt, std::nullopt,
                                    std::nullopt, std::nullopt));
}

// The slope of relu is 0 or 1, also where the gradient lists what the operand does not.
Tensor threshold_backward_kernel(const Call&, const Tensor& g, const Tensor& self, const Scalar& threshold) {
  if (!is_sparse(self)) return g * to_dtype(self > threshold, g.dtype());
  const Tensor pattern = ready(self);
  return g * with(pattern, to_dtype(values_of(pattern) > threshold, self.dtype()));
}
Tensor positive_kernel(const Call&, const Tensor& self) { return self; }
Tensor any_kernel(const Call&, const Tensor& self) { return ops::any(values_of(self)); }
Tensor nan_to_num_kernel(const Call&, const Tensor& self, std::optional<double> nan,
                         std::optional<double> posinf, std::optional<double> neginf) {
  const Tensor pattern = ready(self);
  return with(pattern, ops::nan_to_num(values_of(pattern), nan, posinf, neginf));
}

Tensor stack_kernel(const Call&, TensorList tensors, int64_t dim) {
  std::vector<Tensor> slices;
  for (const Tensor& t : tensors) slices.push_back(unsqueeze(to_layout(t, Layout::SparseCoo), dim));
  return cat(slices, dim);
}

template <auto&... handles>
void zero_preserving(Table& t) {
  (t.sparse(handles, on_values<handles>), ...);
}

}  // namespace

void register_sparse_math_operators(Table& t) {
  // No composites here: what their bodies call is recorded, and has rules of its own.
  zero_preserving<ops::abs, ops::asin, ops::asinh, ops::atan, ops::atanh, ops::ceil, ops::erf, ops::erfinv,
                  ops::expm1, ops::floor, ops::frac, ops::log1p, ops::sgn, ops::sign, ops::sin, ops::sinh,
                  ops::sqrt, ops::tan, ops::tanh, ops::trunc, ops::relu, ops::isnan, ops::isinf,
                  ops::isneginf, ops::isposinf, ops::signbit, ops::angle, ops::conj_physical>(t);
  t.sparse(ops::neg, neg_kernel);
  t.sparse(ops::threshold_backward, threshold_backward_kernel);
  t.sparse(ops::positive, positive_kernel);
  t.sparse(ops::any, any_kernel);
  t.sparse(ops::new_zeros, new_zeros_kernel);
  t.sparse(ops::new_empty, new_zeros_kernel);
  t.sparse(ops::zeros, zeros_out_kernel);
  t.sparse(ops::full_like, full_like_kernel);
  t.sparse(ops::randn_like, randn_like_kernel);
  t.sparse(ops::nan_to_num, nan_to_num_kernel);
  t.sparse(ops::round, round_kernel);
  t.sparse(ops::add, add_kernel);
  t.sparse(ops::sub, sub_kernel);
  t.sparse(ops::mul, mul_kernel);
  t.sparse(ops::div, div_kernel);
  t.sparse(ops::div_mode, div_mode_kernel);
  t.sparse(ops::floor_divide, floor_divide_kernel);
  t.sparse(ops::pow, pow_kernel);
  t.sparse(ops::clone, clone_kernel);
  t.sparse(ops::detach, detach_kernel);
  t.sparse(ops::alias, detach_kernel);
  t.sparse(ops::to_copy, to_kernel);
  t.sparse(ops::copy_, copy_kernel);
  t.sparse(ops::zero_, zero_kernel);
  t.sparse(ops::zeros_like, zeros_like_kernel);
  t.sparse(ops::transpose, transpose_kernel);
  t.sparse(ops::t, t_kernel);
  t.sparse(ops::permute, permute_kernel);
  t.sparse(ops::unsqueeze, unsqueeze_kernel);
  t.sparse(ops::sum, sum_kernel);
  t.sparse(ops::ones_like, ones_like_kernel);
  t.sparse(ops::empty_like, empty_like_kernel);
  t.sparse(ops::sum_dim, sum_dim_kernel);
  t.sparse(ops::select, select_kernel);
  t.sparse(ops::unbind, unbind_kernel);
  t.sparse(ops::index_select, index_select_kernel);
  t.sparse(ops::cat, cat_kernel);
  t.sparse(ops::stack, stack_kernel);
}

}  // namespace rushlight
