// Arithmetic and products of sparse tensors: rules for operators that other families record.
#include "cpu/sparse.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/operators.h"
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

Tensor add_sparse(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  check_same_sizes("add", a, b);
  if (layout_of(a) != Layout::SparseCoo) {
    const Layout layout = layout_of(a);
    return to_layout(add_sparse(to_layout(a, Layout::SparseCoo), to_layout(b, Layout::SparseCoo), alpha),
                     layout);
  }
  const Tensor other = to_layout(b, Layout::SparseCoo);
  RL_CHECK(sparse_dim_of(a) == sparse_dim_of(other),
           "add: expected 'self' and 'other' to have same number of sparse dimensions, but ",
           sparse_dim_of(a), " != ", sparse_dim_of(other));
  const SparseParts &p = sparse_parts(a), &q = sparse_parts(other);
  const DType dtype = result_type(p.values, q.values);
  const Tensor sum = make_sparse(
      {.indices = cat({p.indices, q.indices}, 1),
       .values = cat({to_dtype(p.values, dtype), to_dtype(scaled_by(q.values, alpha), dtype)}, 0)},
      a.sizes());
  return p.coalesced && q.coalesced ? coalesce(sum) : sum;
}

// Into the dense operand itself when the call is in place and its memory allows.
Tensor add_to_dense(const Call& call, const Tensor& dense, const Tensor& other, const Scalar& alpha) {
  RL_CHECK(dense.sizes() == other.sizes(), "add: Expected 'other' to have the size of 'self' ", dense.sizes(),
           ", but the sparse tensor has ", other.sizes());
  const DType dtype = call.inplace ? dense.dtype() : result_type(dense, values_of(other));
  const Tensor addends = to_dtype(scaled_by(values_of(other), alpha), dtype);
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

Tensor mul_kernel(const Call&, const Tensor& a, const Tensor& b) {
  if (!is_sparse(a)) return ops::mul(b, a);
  if (is_number(b)) return with(a, values_of(a) * b);
  const Tensor pattern = ready(a);
  if (is_sparse(b)) {
    check_same_sizes("mul", a, b);
    return with(pattern, values_of(pattern) * sparse_values_at(b, pattern));
  }
  const Tensor other = expand(b, a.sizes(), false);
  return with(pattern, values_of(pattern) * sparse_values_at(other, pattern));
}
Tensor div_kernel(const Call&, const Tensor& a, const Tensor& b) {
  RL_CHECK(is_sparse(a) && !is_sparse(b),
           "div: Sparse division requires a scalar or zero-dim dense tensor divisor (got a sparse divisor of "
           "shape ",
           b.sizes(), ")");
  if (is_number(b)) return with(a, values_of(a) / b);
  const Tensor pattern = ready(a);
  return with(pattern, values_of(pattern) / sparse_values_at(expand(b, a.sizes(), false), pattern));
}
Tensor pow_kernel(const Call&, const Tensor& a, const Tensor& exponent) {
  RL_CHECK(is_sparse(a) && is_number(exponent), "pow: a sparse tensor can only be raised to a number");
  RL_CHECK(read_scalar(exponent).to_double() > 0, "pow: a sparse tensor to the power ",
           read_scalar(exponent).to_double(), " would not be sparse");
  const Tensor pattern = ready(a);
  return with(pattern, ops::pow(values_of(pattern), exponent));
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
  RL_CHECK(is_sparse(source),
           "copy_() between dense and sparse Tensors is not implemented! Found self type = "
           "torch.sparse.FloatTensor and src type = torch.FloatTensor");
  RL_CHECK(self.sizes() == source.sizes(), "copy_: shapes differ: ", self.sizes(), " and ", source.sizes());
  const Tensor same = with(source, to_copy(values_of(source), self.dtype(), std::nullopt, std::nullopt));
  replace_sparse(self, to_layout(same, layout_of(self)));
  return self;
}
Tensor emptied(const Tensor& self) {
  const Tensor coo = to_layout(self, Layout::SparseCoo);
  const SparseParts& p = sparse_parts(coo);
  const Tensor none = make_sparse({.indices = ops::slice(p.indices, 1, 0, 0, 1),
                                   .values = ops::slice(p.values, 0, 0, 0, 1),
                                   .coalesced = true},
                                  self.sizes());
  return to_layout(none, layout_of(self));
}
Tensor zero_kernel(const Call&, const Tensor& self) {
  replace_sparse(self, emptied(self));
  return self;
}
Tensor zeros_like_kernel(const Call&, const Tensor& self, OptDType dtype, std::optional<Layout> layout,
                         OptDevice, std::optional<bool>, std::optional<MemoryFormat>) {
  if (layout.value_or(layout_of(self)) == Layout::Strided)
    return zeros(self.sizes(), dtype.value_or(self.dtype()), std::nullopt, std::nullopt, std::nullopt);
  const Tensor none = emptied(self);
  return dtype ? with(none, to_dtype(values_of(none), *dtype)) : none;
}

Tensor transpose_kernel(const Call&, const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim(), false), b = wrap_dim(dim1, self.dim(), false);
  SparseParts parts = sparse_parts(self);
  Dims sizes = self->sizes;
  std::swap(sizes[static_cast<size_t>(a)], sizes[static_cast<size_t>(b)]);
  if (a == b) return self;
  if (parts.layout != Layout::SparseCoo) {
    RL_CHECK(a < 2 && b < 2, "transpose(): can only transpose the sparse dimensions of a compressed tensor");
    parts.layout = parts.layout == Layout::SparseCsr ? Layout::SparseCsc : Layout::SparseCsr;
    return make_sparse(std::move(parts), sizes);
  }
  const int64_t dims = sparse_dim_of(self);
  RL_CHECK((a < dims) == (b < dims),
           "transpose(): can't swap a sparse and a dense dimension, got dimensions ", a, " and ", b,
           " of a tensor with ", dims, " sparse dimensions");
  parts.coalesced = false;
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
Tensor t_kernel(const Call&, const Tensor& self) {
  RL_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return self.dim() < 2 ? self : ops::transpose(self, 0, 1);
}

Tensor sum_kernel(const Call&, const Tensor& self, OptDType dtype) {
  return ops::sum(values_of(self), dtype);
}

// --- products
// -----------------------------------------------------------------------------------------------

void check_product(const char* who, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), who,
           ": mat1 and mat2 shapes cannot be multiplied (", a.sizes(), " and ", b.sizes(), ")");
  RL_CHECK(a.dtype() == b.dtype(), who, ": expected operands of one dtype, but got ", dtype_name(a.dtype()),
           " and ", dtype_name(b.dtype()));
  for (const Tensor* m : {&a, &b})
    RL_CHECK(!is_sparse(*m) || sparse_dim_of(*m) == 2, who, ": expected 2 sparse dimensions, got ",
             sparse_dim_of(*m));
}

Tensor sparse_dense(const Tensor& a, const Tensor& b) {
  const CompressedRows s = compressed_rows(a);
  const Tensor dense = contiguous(b, MemoryFormat::Contiguous);
  Tensor out = empty_tensor(IntList{a.size(0), b.size(1)}, b.dtype(), b.device());
  cpu::sparse_times_dense(b.dtype(), a.size(0), b.size(1), s.starts.data<int64_t>(),
                          s.columns.data<int64_t>(), s.values.data_ptr(), dense.data_ptr(), out.data_ptr());
  return out;
}

// Every element of a meets the row of b that its column names (Gustavson 1978).
Tensor sparse_sparse(const Tensor& a, const Tensor& b) {
  const Tensor left = coalesce(to_layout(a, Layout::SparseCoo));
  const CompressedRows right = compressed_rows(b);
  const SparseParts& p = sparse_parts(left);
  const Tensor rows = ops::select(p.indices, 0, 0), inner = ops::select(p.indices, 0, 1);
  const Tensor begins = index_select(right.starts, 0, inner);
  const Tensor counts = index_select(right.starts, 0, inner + Scalar(int64_t{1})) - begins;
  auto repeated = [&](const Tensor& x) {
    return repeat_interleave_tensor(x, counts, OptInt(0), std::nullopt);
  };
  const Tensor before = cumsum(counts, 0, std::nullopt) - counts;
  const Tensor first = repeated(begins - before);
  const Tensor place = first + arange(Scalar(int64_t{0}), Scalar(first.numel()), Scalar(int64_t{1}),
                                      DType::Int64, std::nullopt, std::nullopt, std::nullopt);
  const Tensor product =
      make_sparse({.indices = stack({repeated(rows), index_select(right.columns, 0, place)}, 0),
                   .values = repeated(p.values) * index_select(right.values, 0, place)},
                  IntList{a.size(0), b.size(1)});
  return to_layout(coalesce(product), layout_of(a));
}

Tensor product(const char* who, const Tensor& a, const Tensor& b) {
  check_product(who, a, b);
  if (is_sparse(a) && is_sparse(b)) return sparse_sparse(a, b);
  if (is_sparse(a)) return sparse_dense(a, b);
  return contiguous(ops::transpose(sparse_dense(ops::transpose(b, 0, 1), ops::transpose(a, 0, 1)), 0, 1),
                    MemoryFormat::Contiguous);
}

Tensor mm_kernel(const Call&, const Tensor& a, const Tensor& b) { return product("mm", a, b); }
Tensor mv_kernel(const Call&, const Tensor& a, const Tensor& v) {
  RL_CHECK(is_sparse(a) && !is_sparse(v) && v.dim() == 1, "mv: expected a sparse matrix and a dense vector");
  return ops::squeeze_dim(product("mv", a, unsqueeze(v, 1)), 1);
}
Tensor addmm_kernel(const Call&, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                    const Scalar& alpha) {
  const Tensor scaled_product = scaled_by(product("addmm", a, b), alpha);
  if (beta == Scalar(int64_t{0})) return scaled_product;
  return ops::add(scaled_by(self, beta), scaled_product, Scalar(int64_t{1}));
}
Tensor matmul_kernel(const Call&, const Tensor& a, const Tensor& b) {
  if (a.dim() == 2 && b.dim() == 1) return ops::mv(a, b);
  RL_CHECK(a.dim() == 2 && b.dim() == 2, "matmul: sparse operands must be matrices, got ", a.sizes(), " and ",
           b.sizes());
  return ops::mm(a, b);
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
    const SparseParts& p = sparse_parts(to_layout(t, Layout::SparseCoo));
    Tensor moved = clone(p.indices, std::nullopt);
    const Tensor row = ops::select(moved, 0, d);
    copy_result(row, row + Scalar(offset), false);
    indices.push_back(moved);
    values.push_back(p.values);
    offset += t.size(d);
  }
  sizes[static_cast<size_t>(d)] = offset;
  const Tensor joined = make_sparse({.indices = cat(indices, 1), .values = cat(values, 0)}, sizes);
  return to_layout(joined, layout_of(tensors[0]));
}

template <auto&... handles>
void zero_preserving(Table& t) {
  (t.sparse(handles, on_values<handles>), ...);
}

}  // namespace

Tensor sparse_left_gradient(const Tensor& g, const Tensor& a, const Tensor& b) {
  if (!is_sparse(a)) return ops::mm(g, ops::t(conj_of(b)));
  const Tensor pattern = ready(a);
  if (is_sparse(g) || is_sparse(b)) return ops::sparse_mask(ops::mm(g, ops::t(conj_of(b))), pattern);
  const Tensor coo = to_layout(pattern, Layout::SparseCoo);
  const Tensor& indices = sparse_parts(coo).indices;
  // Only the wanted elements of g @ b^H.
  const Tensor rows = index_select(g, 0, ops::select(indices, 0, 0));
  const Tensor columns = index_select(conj_of(b), 0, ops::select(indices, 0, 1));
  return sparse_with_values(pattern, sum_dim(rows * columns, IntList{1}, false));
}

Tensor sparse_right_gradient(const Tensor& g, const Tensor& a, const Tensor& b) {
  const Tensor whole = ops::mm(ops::t(conj_of(a)), g);
  return is_sparse(b) ? ops::sparse_mask(whole, b) : whole;
}

void register_sparse_math_operators(Table& t) {
  zero_preserving<ops::abs, ops::asin, ops::asinh, ops::atan, ops::atanh, ops::ceil, ops::deg2rad, ops::erf,
                  ops::erfinv, ops::expm1, ops::floor, ops::frac, ops::log1p, ops::rad2deg, ops::sgn,
                  ops::sign, ops::sin, ops::sinh, ops::sqrt, ops::square, ops::tan, ops::tanh, ops::trunc>(t);
  t.sparse(ops::neg, neg_kernel);
  t.sparse(ops::add, add_kernel);
  t.sparse(ops::sub, sub_kernel);
  t.sparse(ops::mul, mul_kernel);
  t.sparse(ops::div, div_kernel);
  t.sparse(ops::pow, pow_kernel);
  t.sparse(ops::clone, clone_kernel);
  t.sparse(ops::detach, detach_kernel);
  t.sparse(ops::to_copy, to_kernel);
  t.sparse(ops::copy_, copy_kernel);
  t.sparse(ops::zero_, zero_kernel);
  t.sparse(ops::zeros_like, zeros_like_kernel);
  t.sparse(ops::transpose, transpose_kernel);
  t.sparse(ops::t, t_kernel);
  t.sparse(ops::sum, sum_kernel);
  t.sparse(ops::mm, mm_kernel);
  t.sparse(ops::mv, mv_kernel);
  t.sparse(ops::addmm, addmm_kernel);
  t.sparse(ops::matmul, matmul_kernel);
  t.sparse(ops::index_select, index_select_kernel);
  t.sparse(ops::cat, cat_kernel);
}

}  // namespace rushlight
