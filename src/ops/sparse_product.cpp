// Products of sparse matrices: rules for operators of the family of matmul.
#include <limits>

#include "cpu/matrix_vector.h"
#include "cpu/sparse.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/plain.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/scan.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

const Tensor& values_of(const Tensor& t) { return sparse_parts(t).values; }
Scalar conjugate(const Scalar& s) { return s.is_complex() ? Scalar(std::conj(s.to<complex128>())) : s; }
Tensor scaled_by(const Tensor& t, const Scalar& alpha) { return alpha == Scalar(int64_t{1}) ? t : t * alpha; }

void check_product(const char* who, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dim() == 2 && b.dim() == 2, who, ": expected two matrices, but got shapes ", a.sizes(), " and ",
           b.sizes());
  RL_CHECK(a.size(1) == b.size(0), who, ": mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x",
           a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  RL_CHECK(a.dtype() == b.dtype(), who, ": expected operands of one dtype, but got ", dtype_name(a.dtype()),
           " and ", dtype_name(b.dtype()));
  for (const Tensor* m : {&a, &b})
    RL_CHECK(!is_sparse(*m) || sparse_dim_of(*m) == 2, who, ": expected 2 sparse dimensions, got ",
             sparse_dim_of(*m));
}

// Every block meets the rows of b that its columns name.
Tensor blocks_dense(const Tensor& a, const Tensor& b) {
  const SparseForm form = form_of(a);
  const Tensor rowwise = in_form(a, {Layout::SparseBsr, 0, form.block_rows, form.block_columns});
  const SparseParts& p = sparse_parts(rowwise);
  const int64_t lines = a.size(0) / form.block_rows, width = b.size(1);
  const Tensor strips = index_select(
      reshape(b, IntList{a.size(1) / form.block_columns, form.block_columns, width}), 0, p.plain);
  const Tensor counts =
      ops::slice(p.compressed, 0, 1, std::nullopt, 1) - ops::slice(p.compressed, 0, 0, -1, 1);
  const Tensor line = repeat_interleave_counts(counts, std::nullopt);
  const Tensor none = new_zeros(b, IntList{lines, form.block_rows, width}, std::nullopt, std::nullopt,
                                std::nullopt, std::nullopt);
  const Tensor sums = index_add(none, 0, line, bmm(p.values, strips), Scalar(int64_t{1}));
  return reshape(sums, IntList{a.size(0), width});
}

Tensor sparse_dense(const Tensor& a, const Tensor& b) {
  if (is_block(layout_of(a))) return blocks_dense(a, b);
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
  return to_layout(coalesce(product),
                   layout_of(a) == Layout::SparseCoo ? Layout::SparseCoo : Layout::SparseCsr);
}

Tensor product(const char* who, const Tensor& a, const Tensor& b) {
  check_product(who, a, b);
  if (is_sparse(a) && is_sparse(b) && (is_block(layout_of(a)) || is_block(layout_of(b))))
    RL_NOT_IMPLEMENTED(who, ": products of two sparse matrices in block layouts are not supported, got ",
                       layout_text(layout_of(a)), " and ", layout_text(layout_of(b)),
                       "; convert one with .to_dense()");
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
// self + a b for a sum that is already laid out and a matrix of few elements, which are added as they are
// listed: putting them in order would take longer. Undefined where that does not serve.
Tensor few_added(const Tensor& self, const Tensor& a, const Tensor& b) {
  constexpr int64_t kFew = 4096;  // products
  if (!is_sparse(a) || is_sparse(b) || is_sparse(self) || layout_of(a) != Layout::SparseCoo) return {};
  const SparseParts& p = sparse_parts(a);
  const bool plain = self.is_cpu() && self.dtype() == a.dtype() && b.is_contiguous() &&
                     p.indices.is_contiguous() && p.values.is_contiguous() && p.values.dim() == 1 &&
                     self.sizes() == IntList{a.size(0), b.size(1)};
  const int64_t count = p.values.numel();
  const bool half = a.dtype() == DType::Float16 || a.dtype() == DType::BFloat16;
  if (!plain || half || count * b.size(1) > kFew) return {};
  const Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  copy_result(out, self, false);
  const int64_t* rows = p.indices.data<int64_t>();
  const bool added =
      cpu::add_few_times_dense(a.dtype(), count, a.size(0), a.size(1), b.size(1), rows, rows + count,
                               p.values.data_ptr(), b.data_ptr(), out.data_ptr());
  return added ? out : Tensor();
}

Tensor addmm_kernel(const Call&, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                    const Scalar& alpha) {
  RL_CHECK(is_sparse(a) || is_sparse(b), "addmm: expected strided result tensor, got tensor with layout ",
           layout_text(layout_of(self)));
  if (beta == Scalar(int64_t{1}) && alpha == Scalar(int64_t{1})) {
    check_product("addmm", a, b);
    if (const Tensor sum = few_added(self, a, b); sum.defined()) return sum;
  }
  const Tensor scaled_product = scaled_by(product("addmm", a, b), alpha);
  if (beta == Scalar(int64_t{0})) return scaled_product;
  return ops::add(scaled_by(self, beta), scaled_product, Scalar(int64_t{1}));
}
// All products of a batch as one, of a matrix with the batch on its diagonal.
Tensor bmm_kernel(const Call& call, const Tensor& a, const Tensor& b) {
  RL_CHECK(is_sparse(a) && !is_sparse(b), call.op.name(), ": expected a sparse batch and a dense one, got ",
           layout_text(layout_of(a)), " and ", layout_text(layout_of(b)));
  RL_CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1) &&
               sparse_dim_of(a) == 3,
           call.op.name(), ": Expected size for first two dimensions of batch2 tensor to be: [", a.size(0),
           ", ", a.size(a.dim() - 1), "] but got: ", b.sizes());
  const Tensor indices = element_indices(a);
  const int64_t n = a.size(0), rows = a.size(1), inner = a.size(2), columns = b.size(2);
  const Tensor batch = ops::select(indices, 0, 0);
  const Tensor diagonal = make_sparse({.indices = stack({batch * Scalar(rows) + ops::select(indices, 0, 1),
                                                         batch * Scalar(inner) + ops::select(indices, 0, 2)},
                                                        0),
                                       .compressed = Tensor(),
                                       .plain = Tensor(),
                                       .values = listed_values(a)},
                                      IntList{n * rows, n * inner});
  return reshape(product("bmm", diagonal, reshape(b, IntList{n * inner, columns})),
                 IntList{n, rows, columns});
}
Tensor matmul_kernel(const Call&, const Tensor& a, const Tensor& b) {
  if (a.dim() == 2 && b.dim() == 1) return ops::mv(a, b);
  if (a.dim() == 1 && b.dim() == 2) return ops::mv(ops::t(b), a);
  if (a.dim() == 3 && b.dim() == 3) return ops::bmm(a, b);
  if (!is_sparse(a) && a.dim() > 2 && b.dim() == 2) {  // as many rows as there are
    Dims sizes = a->sizes;
    sizes[sizes.size() - 1] = b.size(1);
    return reshape(ops::mm(reshape(a, IntList{-1, a.size(-1)}), b), sizes);
  }
  RL_CHECK(a.dim() == 2 && b.dim() == 2, "matmul: sparse operands must be matrices, got ", a.sizes(), " and ",
           b.sizes());
  return ops::mm(a, b);
}

// Of a sparse A only the triangle counts. As on PyTorch there is no copy of A, and a matrix of zeros gives
// NaN.
std::tuple<Tensor, Tensor> triangular_solve_kernel(const Call&, const Tensor& b, const Tensor& a, bool upper,
                                                   bool transpose, bool unit) {
  RL_CHECK(!is_sparse(b) && b.dim() == 2, "triangular_solve: expected a dense matrix b, got ",
           layout_text(layout_of(b)), " of ", b.dim(), " dimensions");
  RL_CHECK(a.dim() == 2 && a.size(0) == a.size(1) && a.size(0) == b.size(0),
           "triangular_solve: Incompatible matrix sizes: A has shape ", a.sizes(), " and b ", b.sizes());
  RL_CHECK(a.dtype() == b.dtype(), "triangular_solve: expected A and b of one dtype, but got ",
           dtype_name(a.dtype()), " and ", dtype_name(b.dtype()));
  const CompressedRows rows = compressed_rows(transpose ? ops::transpose(a, 0, 1) : a);
  const Tensor none = empty_tensor(IntList{0}, b.dtype(), b.device());
  const Tensor x = ops::clone(b, MemoryFormat::Contiguous);
  if (rows.values.numel() == 0) return {x * Scalar(std::numeric_limits<double>::quiet_NaN()), none};
  cpu::sparse_triangular_solve(b.dtype(), a.size(0), b.size(1), rows.starts.data<int64_t>(),
                               rows.columns.data<int64_t>(), rows.values.data_ptr(), upper != transpose, unit,
                               x.data_ptr());
  return {x, none};
}

Fn<Tensor(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
          const Scalar& alpha)>
    sampled_addmm;

void check_sampled(const Tensor& self, const Tensor& a, const Tensor& b) {
  const char* who = "sparse_sampled_addmm: Expected ";
  RL_CHECK(layout_of(self) == Layout::SparseCsr, who, "self to have sparse csr layout, but got ",
           layout_text(layout_of(self)));
  RL_CHECK(!is_sparse(a) && !is_sparse(b), who, "mat1 and mat2 to have strided layout, but got ",
           layout_text(layout_of(a)), " and ", layout_text(layout_of(b)));
  RL_CHECK(is_differentiable(self.dtype()) && real_dtype(self.dtype()) >= DType::Float32, who,
           "self to be a floating-point or complex tensor, but got ", dtype_name(self.dtype()));
  RL_CHECK(a.dtype() == self.dtype() && b.dtype() == self.dtype(), who,
           "mat1 and mat2 to have the dtype of self, ", dtype_name(self.dtype()), ", but got ",
           dtype_name(a.dtype()), " and ", dtype_name(b.dtype()));
  RL_CHECK(a.dim() >= 2 && b.dim() >= 2 && a.dim() == self.dim() && b.dim() == self.dim(), who,
           "mat1 and mat2 to have as many dimensions as self, at least 2, but got shapes ", a.sizes(), ", ",
           b.sizes(), " and ", self.sizes());
  for (int64_t d = 0; d < self.dim() - 2; ++d)
    RL_CHECK(a.size(d) == self.size(d) && b.size(d) == self.size(d), who,
             "mat1 and mat2 to have the batch dimensions of self ", self.sizes(), ", but got ", a.sizes(),
             " and ", b.sizes());
  RL_CHECK(a.size(-1) == b.size(-2), "sparse_sampled_addmm: mat1 and mat2 shapes cannot be multiplied (",
           a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
  RL_CHECK(self.size(-2) == a.size(-2) && self.size(-1) == b.size(-1), "sparse_sampled_addmm: self shape ",
           self.sizes(), " does not match the product of ", a.sizes(), " and ", b.sizes());
}

// Rows of `t`, seen as one list, by batch and row number.
Tensor picked_rows(const Tensor& t, const Tensor& batch, const Tensor& row) {
  const int64_t width = t.size(-1), rows = t.size(-2);
  const Tensor flat = reshape(t, IntList{width ? t.numel() / width : batch.numel() ? rows : 0, width});
  return index_select(flat, 0, batch * Scalar(rows) + row);
}

// The products of listed pairs of rows, without copies of the rows; undefined where that is not for the CPU's
// kernels to do.
Tensor listed_dots(const Tensor& a, const Tensor& b, const Tensor& rows, const Tensor& columns) {
  const bool fits = a.dtype() == DType::Float32 || a.dtype() == DType::Float64;
  if (!fits || !is_plain(a) || !is_plain(b) || !is_plain(rows)) return {};
  const Tensor x = ops::contiguous(a), y = ops::contiguous(b), i = ops::contiguous(rows),
               j = ops::contiguous(columns);
  const Tensor dots = empty_tensor(rows.sizes(), a.dtype(), a.device());
  cpu::listed_dots(a.dtype(), rows.numel(), a.size(-1), x.data_ptr(), i.data<int64_t>(), y.data_ptr(),
                   j.data<int64_t>(), dots.data_ptr());
  return dots;
}

Tensor sampled_kernel(const Call&, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                      const Scalar& alpha) {
  check_sampled(self, a, b);
  const Tensor& values = values_of(self);
  Tensor sampled = zeros_like(values, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  if (a.size(-1) != 0 && values.numel() != 0) {
    const Tensor indices = element_indices(self);
    Tensor batch = ops::zeros_like(ops::select(indices, 0, 0), std::nullopt, std::nullopt, std::nullopt,
                                   std::nullopt, std::nullopt);
    for (int64_t d = 0; d < self.dim() - 2; ++d)
      batch = batch * Scalar(self.size(d)) + ops::select(indices, 0, d);
    const Tensor transposed = ops::transpose(b, -2, -1);
    if (const Tensor dots =
            listed_dots(a, transposed, batch * Scalar(a.size(-2)) + ops::select(indices, 0, -2),
                        batch * Scalar(b.size(-1)) + ops::select(indices, 0, -1));
        dots.defined()) {
      sampled = reshape(dots, values.sizes());
    } else {
      const Tensor rows = picked_rows(a, batch, ops::select(indices, 0, -2));
      const Tensor columns = picked_rows(transposed, batch, ops::select(indices, 0, -1));
      sampled = reshape(sum_dim(rows * columns, IntList{1}, false), values.sizes());
    }
  }
  const Tensor product = sampled * alpha;
  return sparse_with_values(self, beta == Scalar(int64_t{0}) ? product : product + values * beta);
}

Tensor refuse_dense_sampled(const Call&, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar&,
                            const Scalar&) {
  check_sampled(self, a, b);
  return {};
}

Grads sampled_gradients(const Tensor& g, const Tensor& self, const Tensor& a, const Tensor& b,
                        const Scalar& beta, const Scalar& alpha, Needs need) {
  Grads grads{need[0] ? scaled_by(g, conjugate(beta)) : Tensor(), Tensor(), Tensor()};
  if (!need[1] && !need[2]) return grads;
  const Tensor at = is_sparse(g) ? g : ops::sparse_mask(g, self);
  if (need[1]) grads[1] = scaled_by(ops::matmul(at, ops::transpose(conj_of(b), -2, -1)), conjugate(alpha));
  if (need[2]) {
    // (A^H G) as (G^T conj A)^T: the sparse factor stands on the left
    const Tensor product = ops::matmul(ops::transpose(at, -2, -1), conj_of(a));
    grads[2] = scaled_by(ops::transpose(product, -2, -1), conjugate(alpha));
  }
  return grads;
}

}  // namespace

Tensor sparse_left_gradient(const Tensor& g, const Tensor& a, const Tensor& b) {
  if (!a.defined() || !is_sparse(a)) return ops::mm(g, ops::t(conj_of(b)));
  const Tensor pattern = layout_of(a) == Layout::SparseCoo ? coalesce(a) : a;
  if (is_sparse(g) || is_sparse(b)) return ops::sparse_mask(ops::mm(g, ops::t(conj_of(b))), pattern);
  const Tensor coo = to_layout(pattern, Layout::SparseCoo);
  const Tensor& indices = sparse_parts(coo).indices;
  // Only the wanted elements of g @ b^H.
  if (g.numel() && b.numel() && !is_complex(b.dtype()))
    if (const Tensor dots = listed_dots(g, b, ops::select(indices, 0, 0), ops::select(indices, 0, 1));
        dots.defined())
      return sparse_with_values(pattern, reshape(dots, values_of(pattern).sizes()));
  const Tensor rows = index_select(g, 0, ops::select(indices, 0, 0));
  const Tensor columns = index_select(conj_of(b), 0, ops::select(indices, 0, 1));
  const Tensor listed = sum_dim(rows * columns, IntList{1}, false);
  return sparse_with_values(pattern, reshape(listed, values_of(pattern).sizes()));
}

Tensor sparse_right_gradient(const Tensor& g, const Tensor& a, const Tensor& b) {
  const Tensor whole = ops::mm(ops::t(conj_of(a)), g);
  return b.defined() && is_sparse(b) ? ops::sparse_mask(whole, b) : whole;
}

namespace {

Fn<Tensor(const Tensor& sparse, const Tensor& dense)> sparse_mm;
Fn<Tensor(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
          const Scalar& alpha)>
    sparse_addmm;

Tensor dense_mm(const Call&, const Tensor& a, const Tensor& b) { return ops::mm(a, b); }
Tensor dense_addmm(const Call&, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                   const Scalar& alpha) {
  return ops::addmm(self, a, b, beta, alpha);
}

// mm and addmm but for the gradients of sparse factors, which have their pattern.
void register_patterned_products(Table& t) {
  t.op(sparse_mm, "_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", dense_mm)
      .function_only()
      .doc("Matrix product of which a sparse factor gets a gradient at its elements.")
      .family(Family::Matmul)
      .on_devices()
      .derivative([](Grad g, In<0, 1> a, In<1, 0> b, Needs need) {
        return Grads{need[0] ? sparse_left_gradient(g, a, b) : Tensor(),
                     need[1] ? sparse_right_gradient(g, a, b) : Tensor()};
      });
  t.sparse(sparse_mm, mm_kernel);
  t.op(sparse_addmm,
       "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       dense_addmm)
      .function_only()
      .out()
      .doc("beta * self + alpha * (mat1 @ mat2); a sparse factor gets a gradient at its elements.")
      .family(Family::Matmul)
      .on_devices()
      .derivative(
          [](Grad g, In<1, 2> a, In<2, 1> b, Attr<3, Scalar> beta, Attr<4, Scalar> alpha, Needs need) {
            return Grads{need[0] ? scaled_by(g, conjugate(beta)) : Tensor(),
                         need[1] ? scaled_by(sparse_left_gradient(g, a, b), conjugate(alpha)) : Tensor(),
                         need[2] ? scaled_by(sparse_right_gradient(g, a, b), conjugate(alpha)) : Tensor()};
          });
  t.sparse(sparse_addmm, addmm_kernel);
}

}  // namespace

void register_sparse_product_operators(Table& t) {
  register_patterned_products(t);
  t.op(sampled_addmm,
       "_sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
       "Tensor",
       refuse_dense_sampled)
      .absent_in_pytorch()
      .function_only()
      .out()
      .doc("beta * self + alpha * (mat1 @ mat2) at the positions of the CSR tensor self.")
      .family(Family::Sparse)
      .derivative([](Grad g, In<0> self, In<1> a, In<2> b, Attr<3, Scalar> beta, Attr<4, Scalar> alpha,
                     Needs need) { return sampled_gradients(g, self, a, b, beta, alpha, need); });
  t.sparse(sampled_addmm, sampled_kernel);
  t.sparse(ops::triangular_solve, triangular_solve_kernel);
  t.sparse(ops::mm, mm_kernel);
  t.sparse(ops::bmm, bmm_kernel);
  t.sparse(ops::mv, mv_kernel);
  t.sparse(ops::addmm, addmm_kernel);
  t.sparse(ops::matmul, matmul_kernel);
}

}  // namespace rushlight
