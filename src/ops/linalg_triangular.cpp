// Triangular systems, and the factorisations of Hermitian and symmetric matrices: Cholesky's and L D L^H.
#include "dispatch/warning.h"
#include "ops/device_loops.h"
#include "ops/linalg_common.h"
#include "ops/sparse.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// --- triangular systems

// op(A) X = B for [..., n, k] B, with the batches of both.
Tensor solve_left_triangle(const Tensor& a, const Tensor& b, bool upper, char op, bool unit) {
  const Dims batch = common_batch(a, b);
  const Tensor x = by_columns(stretched(b, batch));
  if (!has_work(x)) return x;
  // What lies by rows is, by columns, the transpose; a conjugate would need a copy.
  const bool by_rows = op != 'C' && a.is_contiguous();
  const Tensor wide = stretched(a, batch);
  const Tensor m = by_rows ? contiguous(wide) : readable_by_columns(wide);
  if (by_rows) upper = !upper, op = op == 'N' ? 'T' : 'N';
  RL_LINALG(x, triangular_solve, batch_for(x), a.size(-1), b.size(-1), upper, op, unit, m.data_ptr(),
            x.data_ptr());
  return x;
}

// Of A's dtype, whatever B's, as in PyTorch.
Tensor solve_triangular_kernel(const Call&, const Tensor& a, const Tensor& given, bool upper, bool left,
                               bool unit) {
  check_lapack_type("linalg.solve_triangular", a, RefusedBy::Kernel);
  check_solve_shapes("linalg.solve_triangular", a, given, left, RefusedBy::Kernel);
  const Tensor b = to_dtype(given, a.dtype());
  // X A = B is A^T X^T = B^T.
  return left ? solve_left_triangle(a, b, upper, 'N', unit)
              : transposed(solve_left_triangle(a, transposed(b), upper, 'T', unit));
}
Tensor triangle_gradient(const Tensor& gb, const Tensor& x, bool upper, bool left, bool unit) {
  const Tensor g = left ? -matmul(gb, adjoint_of(x)) : -matmul(adjoint_of(x), gb);
  return upper ? triu(g, unit ? 1 : 0) : tril(g, unit ? -1 : 0);
}

Two old_triangular_solve_kernel(const Call&, const Tensor& b, const Tensor& a, bool upper, bool transpose,
                                bool unit) {
  static OnceWarning deprecated(
      "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular and will be removed in "
      "a "
      "future PyTorch release.\n"
      "torch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the "
      "inputs.\n"
      "X = torch.triangular_solve(B, A).solution\nshould be replaced with\n"
      "X = torch.linalg.solve_triangular(A, B).");
  deprecated.show();
  RL_CHECK(b.dim() >= 2, "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has ",
           b.dim(), " dimensions instead");
  RL_CHECK(b.dtype() == a.dtype(), "Expected b and A to have the same dtype, but found b of type ",
           legacy_name(b.dtype()), " and A of type ", legacy_name(a.dtype()), " instead.");
  check_square("triangular_solve", a, RefusedBy::Kernel);
  RL_CHECK(a.size(-1) == b.size(-2), "Incompatible matrix sizes for triangular_solve: each A matrix is ",
           a.size(-1), " by ", a.size(-1), " but each b matrix is ", b.size(-2), " by ", b.size(-1));
  const Dims batch = common_batch(a, b);
  return {solve_left_triangle(a, b, upper, transpose ? 'T' : 'N', unit), by_columns(stretched(a, batch))};
}

// --- Cholesky

Two cholesky_ex_kernel(const Call&, const Tensor& a, bool upper, bool check_errors) {
  check_square("linalg.cholesky", a, RefusedBy::KernelIfHalf);
  const Tensor c = by_columns(a), info = new_info(batch_of(a), a);
  if (has_work(c)) {
    RL_LINALG(c, cholesky, batch_for(a), a.size(-1), upper, c.data_ptr(), info.data<int32_t>());
    if (!c.is_cpu()) loops::triangle(transposed(c), 0, !upper);  // its rows are c's columns
  }
  if (check_errors) check_info("linalg.cholesky_ex", info);
  return {c, info};
}
Tensor cholesky_gradient(const Tensor& grad, const Tensor& factor, bool upper) {
  const Tensor lh = upper ? factor : adjoint_of(factor), l = upper ? adjoint_of(factor) : factor;
  Tensor g = tril(matmul(lh, upper ? adjoint_of(grad) : grad), 0);
  g = (g + adjoint_of(tril(g, -1))) * Scalar(0.5);
  return linalg_solve_triangular(l, linalg_solve_triangular(lh, g, true, true), false, false);
}
Tensor cholesky_body(const Call&, const Tensor& a, bool upper) {
  const auto [l, info] = linalg_cholesky_ex(a, upper, false);
  check_info("linalg.cholesky", info);
  return l;
}
Tensor old_cholesky_body(const Call&, const Tensor& a, bool upper) {
  static OnceWarning deprecated(
      "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future "
      "PyTorch "
      "release.\n"
      "L = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\n"
      "U = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\n"
      "This transform will produce equivalent results for all valid (symmetric positive definite) inputs.");
  deprecated.show();
  if (a.numel() == 0) return clone(a, std::nullopt);  // of any shape, as in PyTorch
  check_square("cholesky", a, RefusedBy::Kernel);
  const auto [l, info] = linalg_cholesky_ex(a, upper, false);
  check_info("cholesky", info);
  return l;
}

Tensor cholesky_solve_kernel(const Call&, const Tensor& b, const Tensor& l, bool upper) {
  RL_CHECK(b.dim() >= 2, "b should have at least 2 dimensions, but has ", b.dim(), " dimensions instead");
  RL_CHECK(l.dim() >= 2, "u should have at least 2 dimensions, but has ", l.dim(), " dimensions instead");
  RL_CHECK(b.dtype() == l.dtype(), "Expected b and A to have the same dtype, but found b of type ",
           legacy_name(b.dtype()), " and A of type ", legacy_name(l.dtype()), " instead");
  check_square("cholesky_solve", l, RefusedBy::Kernel);
  RL_CHECK(l.size(-1) == b.size(-2), "Incompatible matrix sizes for cholesky_solve: each A matrix is ",
           l.size(-1), " by ", l.size(-1), " but each b matrix is ", b.size(-2), " by ", b.size(-1));
  const Tensor first = solve_left_triangle(l, b, upper, upper ? 'C' : 'N', false);
  return solve_left_triangle(l, first, upper, upper ? 'N' : 'C', false);
}
Grads cholesky_solve_gradient(const Tensor& g, const Tensor& x, const Tensor& l, bool upper, bool need_l) {
  const Tensor gb = cholesky_solve(g, l, upper);
  if (!need_l) return {gb, Tensor()};
  const Tensor product = matmul(gb, adjoint_of(x)), common = product + adjoint_of(product);
  return {gb, upper ? -matmul(l, common) : -matmul(common, l)};
}

Tensor cholesky_inverse_kernel(const Call&, const Tensor& l, bool upper) {
  check_square("cholesky_inverse", l, RefusedBy::Kernel);
  // LAPACK takes the diagonal of complex factors for real.
  if (l.is_cpu() && has_work(l) && !is_complex(l.dtype())) {
    const Tensor inverse = by_columns(l), info = new_info(batch_of(l), l);
    cpu::cholesky_inverse(batch_for(l), l.size(-1), upper, inverse.data_ptr(), info.data<int32_t>());
    const int32_t* failed = info.data<int32_t>();
    if (std::all_of(failed, failed + info.numel(), [](int32_t code) { return code == 0; })) return inverse;
  }
  Tensor one = by_columns(batch_of(l), l.size(-1), l.size(-1), l);
  if (!one.device().is_meta()) fill_identity(one);
  return cholesky_solve(one, l, upper);
}

// --- L D L^H

Three ldl_factor_ex_kernel(const Call& call, const Tensor& a, bool hermitian, bool check_errors) {
  check_square("torch.linalg.ldl_factor_ex", a, RefusedBy::KernelIfHalf);
  const Tensor ld = by_columns(a), info = new_info(batch_of(a), a),
               pivots = uninitialized(with(batch_of(a), {a.size(-1)}), DType::Int32, a);
  if (has_work(a)) {
    if (!RL_PERHAPS_LINALG(a, ldl_factor, batch_for(a), a.size(-1), hermitian, ld.data_ptr(),
                           pivots.data<int32_t>(), info.data<int32_t>())) {
      const Results results =
          computed_on_cpu(call, {Value(a), Value(hermitian), Value(check_errors)}, a.device());
      return {results.tensors[0], results.tensors[1], results.tensors[2]};
    }
    copy_result(ld, tril(ld, 0), false);
  }
  if (check_errors) check_info("torch.linalg.ldl_factor_ex", info);
  return {ld, pivots, info};
}
Two ldl_factor_body(const Call&, const Tensor& a, bool hermitian) {
  const auto [ld, pivots, info] = linalg_ldl_factor_ex(a, hermitian, false);
  check_info("torch.linalg.ldl_factor", info);
  return {ld, pivots};
}
// A pair of rows names its exchange twice, by the same negative number.
void check_ldl_pivots(const int32_t* row, int64_t count, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    const bool inside = std::abs(row[i]) >= 1 && std::abs(row[i]) <= n;
    const bool pair = row[i] < 0;
    RL_CHECK(inside && (!pair || (i % n + 1 < n && row[i + 1] == row[i])),
             "torch.linalg.ldl_solve: pivots are not those of ldl_factor");
    i += pair;
  }
}

Tensor ldl_solve_kernel(const Call& call, const Tensor& ld, const Tensor& pivots, const Tensor& b,
                        bool hermitian) {
  check_floating("torch.linalg.ldl_solve", ld, true);
  check_same_type("torch.linalg.ldl_solve", ld, b);
  check_square("torch.linalg.ldl_solve", ld, RefusedBy::KernelIfHalf, "LD");
  RL_CHECK(b.dim() >= 2, "torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has ",
           b.dim(), " dimensions instead");
  const auto shape = ld.sizes().slice(0, static_cast<size_t>(ld.dim() - 1));
  RL_CHECK(pivots.sizes() == shape,
           "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, "
           "but got pivots with shape ",
           pivots.sizes(), " instead");
  RL_CHECK(is_integral(pivots.dtype()), "torch.linalg.ldl_solve: Expected pivots to be integers. Got ",
           legacy_name(pivots.dtype()));
  RL_CHECK(ld.size(-1) == b.size(-2),
           "Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is ", ld.size(-1), " by ",
           ld.size(-1), " but each b matrix is ", b.size(-2), " by ", b.size(-1));
  const int64_t n = ld.size(-1);
  const Dims batch = common_batch(ld, b);
  const Tensor x = by_columns(stretched(b, batch));
  if (!has_work(x)) return x;
  const Tensor factors = readable_by_columns(stretched(ld, batch)),
               rows = contiguous(expand(to_dtype(pivots, DType::Int32), with(batch, {n}), false));
  if (x.is_cpu()) check_ldl_pivots(rows.data<int32_t>(), rows.numel(), n);
  if (!RL_PERHAPS_LINALG(x, ldl_solve, batch_for(x), n, x.size(-1), hermitian, factors.data_ptr(),
                         rows.data<int32_t>(), x.data_ptr()))
    return computed_on_cpu(call, {Value(ld), Value(pivots), Value(b), Value(hermitian)}, x.device())
        .tensors[0];
  return x;
}

}  // namespace

void register_linalg_triangular_operators(Table& t) {
  register_linalg_checks(t);
  t.op(linalg_solve_triangular,
       "linalg::solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
       "unitriangular=False) -> Tensor",
       solve_triangular_kernel)
      .out(OutRule::SameType)
      .doc("Solves A X = B, or X A = B, for a triangular A.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .out_apart(kSecond)
      .derivative([](Grad g, In<0> a, Out<0> x, Attr<2, bool> upper, Attr<3, bool> left, Attr<4, bool> unit,
                     Needs need) {
        const Tensor gb = linalg_solve_triangular(adjoint_of(a), g, !upper, left, unit);
        return Grads{need[0] ? triangle_gradient(gb, x, upper, left, unit) : Tensor(), gb};
      });
  t.op(triangular_solve,
       "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
       "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
       old_triangular_solve_kernel)
      .out(OutRule::SameType)
      .out_overload("X(X, M)")
      .doc("The former name of linalg.solve_triangular.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .derivative([](GradOf<0> g, GradOf<1> gm, In<1> a, Out<0> x, Attr<2, bool> upper,
                     Attr<3, bool> transpose, Attr<4, bool> unit, Needs need) {
        Tensor gb, ga;
        if (g.defined()) {
          const bool turned = transpose;
          if (is_sparse(a)) {
            if (need[1])
              RL_NOT_IMPLEMENTED(
                  "triangular_solve: there is no gradient of a sparse matrix; use .to_dense() for A");
            const Tensor conjugate = at_listed(a, [](const Tensor& t) { return conj_of(t); });
            return Grads{std::get<0>(triangular_solve(g, conjugate, upper, !turned, unit)), Tensor()};
          }
          gb = linalg_solve_triangular(turned ? conj_of(a) : adjoint_of(a), g, upper == turned, true, unit);
          if (need[1]) {
            ga = turned ? -matmul(conj_of(x), transposed(gb)) : -matmul(gb, adjoint_of(x));
            ga = upper ? triu(ga, unit ? 1 : 0) : tril(ga, unit ? -1 : 0);
          }
        }
        return Grads{gb, sum_defined(ga, gm)};
      });
  t.op(linalg_cholesky_ex,
       "linalg::cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor "
       "info)",
       cholesky_ex_kernel)
      .out(OutRule::SameType)
      .out_overload("L")
      .doc("The triangular factor of A = L L^H; info says which leading minor is not positive.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .derivative([](GradOf<0> g, Out<0> l, Attr<1, bool> upper) { return cholesky_gradient(g, l, upper); });
  t.composite(linalg_cholesky, "linalg::cholesky(Tensor self, *, bool upper=False) -> Tensor", cholesky_body)
      .out(OutRule::SameType)
      .doc("The triangular factor L of A = L L^H.")
      .autocast(Cast::Float, Cast::None);
  t.composite("cholesky(Tensor self, bool upper=False) -> Tensor", old_cholesky_body)
      .out()
      .doc("The former name of linalg.cholesky.")
      .autocast(Cast::Float, Cast::None)
      .one_node();
  t.op(cholesky_solve, "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
       cholesky_solve_kernel)
      .out()
      .doc("Solves L L^H X = B.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .derivative([](Grad g, In<1> l, Out<0> x, Attr<2, bool> upper, Needs need) {
        return cholesky_solve_gradient(g, x, l, upper, need[1]);
      });
  t.op(cholesky_inverse, "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", cholesky_inverse_kernel)
      .out()
      .doc("The inverse of L L^H.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .derivative([](Grad g, In<0> l, Out<0> x, Attr<1, bool> upper) {
        const Tensor common = matmul(x, matmul(g + adjoint_of(g), x));
        return upper ? -matmul(l, common) : -matmul(common, l);
      });
  t.op(linalg_ldl_factor_ex,
       "linalg::ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, "
       "Tensor pivots, Tensor info)",
       ldl_factor_ex_kernel)
      .out(OutRule::SameType)
      .doc("A = L D L^T, or L D L^H, for symmetric or Hermitian A; info says where D is singular.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .refused_derivative<"derivative for aten::linalg_ldl_factor_ex is not implemented">();
  t.composite("linalg::ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
              ldl_factor_body)
      .out(OutRule::SameType)
      .refused_derivative_of(linalg_ldl_factor_ex.op())
      .doc("A = L D L^T, or L D L^H, for symmetric or Hermitian A.");
  t.op(linalg_ldl_solve,
       "linalg::ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
       ldl_solve_kernel)
      .out(OutRule::SameType)
      .doc("Solves A X = B from ldl_factor's result.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .refused_derivative<"derivative for aten::linalg_ldl_solve is not implemented">();
}

}  // namespace rushlight
