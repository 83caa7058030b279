#include "ops/linalg.h"

#include <cmath>

#include "cpu/linalg.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

void check_matrix(const char* who, const Tensor& a) {
  RL_CHECK(a.dim() >= 2, who, ": The input tensor A must have at least 2 dimensions.");
  RL_CHECK(is_floating(a.dtype()) || is_complex(a.dtype()), who,
           ": Expected a floating point or complex tensor as input. Got ", legacy_name(a.dtype()));
  RL_CHECK(!is_reduced_float(a.dtype()), who, ": Low precision dtypes not supported. Got ",
           legacy_name(a.dtype()));
}
void check_square(const char* who, const Tensor& a) {
  check_matrix(who, a);
  RL_CHECK(a.size(-1) == a.size(-2), who, ": A must be batches of square matrices, but they are ", a.size(-2),
           " by ", a.size(-1), " matrices");
}

// Copies of the matrices, each by columns: [..., columns, rows].
Tensor by_columns(const Tensor& a) {
  const Tensor t = transpose(a, -2, -1);
  Tensor copy = empty_tensor(t.sizes(), a.dtype(), a.device());
  copy_result(copy, t, false);
  return copy;
}
// The matrices that such memory holds.
Tensor as_matrices(const Tensor& columns) {
  const int64_t n = columns.dim();
  Dims sizes = columns->sizes, strides = columns->strides;
  std::swap(sizes[n - 1], sizes[n - 2]);
  std::swap(strides[n - 1], strides[n - 2]);
  return make_view(columns, sizes, strides, columns.storage_offset(), false);
}
Tensor matrices(IntList batch, int64_t rows, int64_t columns, const Tensor& like) {
  Dims sizes = batch.dims();
  sizes.push_back(columns);
  sizes.push_back(rows);
  return empty_tensor(sizes, like.dtype(), like.device());
}
IntList batch_of(const Tensor& a) { return a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)); }
char* matrix_at(const Tensor& t, int64_t i, int64_t elements) {
  return t.data<char>() + i * elements * static_cast<int64_t>(t.itemsize());
}

template <class F>
void for_batch(const Tensor& a, F&& f) {
  if (!a.is_cpu()) return;
  const int64_t count = checked_numel(batch_of(a));
  for (int64_t i = 0; i < count; ++i) f(i);
}

struct Factors {
  Tensor lu;
  std::vector<int32_t> pivots;
  bool singular = false;
};
Factors factor(const Tensor& a) {
  const int64_t n = a.size(-1);
  Factors f{by_columns(a),
            std::vector<int32_t>(static_cast<size_t>(std::max<int64_t>(1, checked_numel(batch_of(a)) * n)))};
  for_batch(a, [&](int64_t i) {
    f.singular |= n && cpu::lu(a.dtype(), n, matrix_at(f.lu, i, n * n), f.pivots.data() + i * n) != 0;
  });
  return f;
}

// The product of U's diagonal, and the sign of the row exchanges, as tensors of the batch's shape.
std::pair<Tensor, Tensor> diagonal_and_sign(const Tensor& a, const Factors& f) {
  const int64_t n = a.size(-1);
  Tensor sign = empty_tensor(batch_of(a), real_dtype(a.dtype()), a.device());
  for_batch(a, [&](int64_t i) {
    int flips = 0;
    for (int64_t k = 0; k < n; ++k) flips += f.pivots[static_cast<size_t>(i * n + k)] != k;
    const double value = flips % 2 ? -1 : 1;
    if (sign.dtype() == DType::Float64)
      sign.data<double>()[i] = value;
    else
      sign.data<float>()[i] = static_cast<float>(value);
  });
  return {diagonal(f.lu, 0, -2, -1), sign};
}

Tensor det_kernel(const Call&, const Tensor& a) {
  check_square("linalg.det", a);
  const auto [d, sign] = diagonal_and_sign(a, factor(a));
  return prod_dim(d, -1, false, std::nullopt) * sign;
}
std::tuple<Tensor, Tensor> slogdet_kernel(const Call&, const Tensor& a) {
  check_square("linalg.slogdet", a);
  const auto [d, sign] = diagonal_and_sign(a, factor(a));
  return {prod_dim(sgn(d), -1, false, std::nullopt) * sign,
          sum_dim(log(abs(d)), IntList{-1}, false, std::nullopt)};
}

Tensor solve_kernel(const Call&, const Tensor& a, const Tensor& b) {
  check_square("linalg.solve", a);
  const int64_t n = a.size(-1), columns = b.size(-1);
  RL_CHECK(a.dtype() == b.dtype(),
           "linalg.solve: Expected A and B to have the same dtype, but found A of type ",
           legacy_name(a.dtype()), " and B of type ", legacy_name(b.dtype()), " instead");
  RL_CHECK(b.size(-2) == n, "linalg.solve: Incompatible shapes of A and B for the equation AX = B (",
           a.size(-2), "x", n, " and ", b.size(-2), "x", columns, ")");
  const Factors f = factor(a);
  RL_CHECK_AS(Linalg, !f.singular,
              "torch.linalg.solve: The solver failed because the input matrix is singular.");
  const Tensor x = by_columns(b);
  for_batch(a, [&](int64_t i) {
    cpu::lu_solve(a.dtype(), n, columns, matrix_at(f.lu, i, n * n), f.pivots.data() + i * n,
                  matrix_at(x, i, n * columns));
  });
  return as_matrices(x);
}

Tensor inv_kernel(const Call&, const Tensor& a) {
  check_square("linalg.inv", a);
  const int64_t n = a.size(-1);
  const Factors f = factor(a);
  RL_CHECK_AS(Linalg, !f.singular,
              "linalg.inv: The diagonal element of the factor U is zero, the inversion could not be "
              "completed because the input matrix is singular.");
  Tensor x = matrices(batch_of(a), n, n, a);
  copy_result(x, expand(eye(n, n, a.dtype(), std::nullopt, a.device(), std::nullopt), x.sizes(), false),
              false);
  for_batch(a, [&](int64_t i) {
    cpu::lu_solve(a.dtype(), n, n, matrix_at(f.lu, i, n * n), f.pivots.data() + i * n,
                  matrix_at(x, i, n * n));
  });
  return as_matrices(x);
}

Tensor adjoint_of(const Tensor& t) { return transpose(conj_of(t), -2, -1); }

Tensor solve_triangular_kernel(const Call&, const Tensor& a, const Tensor& b, bool upper, bool left,
                               bool unit) {
  check_square("linalg.solve_triangular", a);
  RL_CHECK(a.dtype() == b.dtype() && b.dim() >= 2,
           "linalg.solve_triangular: Expected A and B to have the same dtype, but got ", describe(a), " and ",
           describe(b));
  RL_CHECK(b.size(left ? -2 : -1) == a.size(-1),
           "linalg.solve_triangular: Incompatible shapes of A and B for the equation ",
           left ? "AX = B" : "XA = B", " (", a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x",
           b.size(-1), ")");
  const Dims batch = broadcast_shapes(batch_of(a), batch_of(b));
  auto stretched = [&](const Tensor& t) {
    Dims sizes = batch;
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return expand(t, sizes, false);
  };
  // X A = B is A^T X^T = B^T.
  const Tensor m = by_columns(left ? stretched(a) : transpose(stretched(a), -2, -1));
  const Tensor x = by_columns(left ? stretched(b) : transpose(stretched(b), -2, -1));
  const int64_t n = a.size(-1), columns = b.size(left ? -1 : -2);
  for_batch(x, [&](int64_t i) {
    cpu::triangular_solve(a.dtype(), n, columns, matrix_at(m, i, n * n), left ? upper : !upper, unit,
                          matrix_at(x, i, n * columns));
  });
  return left ? as_matrices(x) : x;
}

Tensor cholesky_kernel(const Call&, const Tensor& a, bool upper) {
  check_square("linalg.cholesky", a);
  const int64_t n = a.size(-1);
  const Tensor c = by_columns(upper ? adjoint_of(a) : a);
  for_batch(a, [&](int64_t i) {
    const int64_t info = n ? cpu::cholesky(a.dtype(), n, matrix_at(c, i, n * n)) : 0;
    const std::string where = a.dim() > 2 ? str("(Batch element ", i, "): ") : "";
    RL_CHECK_AS(Linalg, info == 0, "linalg.cholesky: ", where,
                "The factorization could not be completed because the input is not positive-definite (the "
                "leading minor of order ",
                info, " is not positive-definite).");
  });
  return upper ? conj_of(c) : as_matrices(c);
}

std::tuple<Tensor, Tensor> qr_kernel(const Call&, const Tensor& a, std::string_view mode) {
  check_matrix("linalg.qr", a);
  RL_CHECK(mode == "reduced" || mode == "complete" || mode == "r", "qr received unrecognized mode '", mode,
           "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = a.size(-2), n = a.size(-1), k = mode == "complete" ? m : std::min(m, n);
  const Tensor work = by_columns(a), q = matrices(batch_of(a), m, k, a), r = matrices(batch_of(a), k, n, a);
  for_batch(a, [&](int64_t i) {
    cpu::qr(a.dtype(), m, n, k, matrix_at(work, i, m * n), matrix_at(q, i, m * k), matrix_at(r, i, k * n));
  });
  return {mode == "r" ? empty_tensor(IntList{0}, a.dtype(), a.device()) : as_matrices(q), as_matrices(r)};
}

std::tuple<Tensor, Tensor> eigh_kernel(const Call&, const Tensor& a, std::string_view uplo) {
  check_square("linalg.eigh", a);
  RL_CHECK(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u",
           "Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  const int64_t n = a.size(-1);
  const Tensor v = by_columns(uplo == "L" || uplo == "l" ? a : adjoint_of(a));
  Dims sizes = batch_of(a).dims();
  sizes.push_back(n);
  Tensor values = empty_tensor(sizes, real_dtype(a.dtype()), a.device());
  for_batch(a, [&](int64_t i) {
    const bool ok = n == 0 || cpu::eigh(a.dtype(), n, matrix_at(v, i, n * n), matrix_at(values, i, n));
    RL_CHECK_AS(Linalg, ok,
                "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned "
                "or has too many repeated eigenvalues.");
  });
  return {values, as_matrices(v)};
}

std::tuple<Tensor, Tensor, Tensor> svd_kernel(const Call&, const Tensor& a, bool full) {
  check_matrix("linalg.svd", a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), ku = full ? m : k, kv = full ? n : k;
  const Tensor work = by_columns(a), u = matrices(batch_of(a), m, ku, a),
               vh = matrices(batch_of(a), kv, n, a);
  Dims sizes = batch_of(a).dims();
  sizes.push_back(k);
  Tensor s = empty_tensor(sizes, real_dtype(a.dtype()), a.device());
  for_batch(a, [&](int64_t i) {
    const bool ok = cpu::svd(a.dtype(), m, n, full, matrix_at(work, i, m * n), matrix_at(s, i, k),
                             matrix_at(u, i, m * ku), matrix_at(vh, i, kv * n));
    RL_CHECK_AS(Linalg, ok,
                "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or "
                "has too many repeated singular values.");
  });
  return {as_matrices(u), s, as_matrices(vh)};
}

// --- derivatives
// -------------------------------------------------------------------------------------------------------------

Tensor column(const Tensor& t) { return unsqueeze(t, -1); }
Tensor scaled_by(const Tensor& g, const Tensor& m) { return unsqueeze(column(g), -1) * m; }
Tensor scale_columns(const Tensor& m, const Tensor& s) { return m * unsqueeze(s, -2); }
Tensor half_sum(const Tensor& m) { return (m + adjoint_of(m)) * Scalar(0.5); }
// The lower triangle with half its diagonal.
Tensor lower_half(const Tensor& m) {
  const Tensor lower = tril(m, 0);
  return lower - diag_embed(diagonal(lower, 0, -2, -1), 0, -2, -1) * Scalar(0.5);
}

Tensor cholesky_gradient(const Tensor& grad, const Tensor& factor, bool upper) {
  const Tensor l = upper ? adjoint_of(factor) : factor, g = upper ? adjoint_of(grad) : grad;
  const Tensor phi = lower_half(matmul(adjoint_of(l), g)), middle = half_sum(tril(phi, 0));
  const Tensor lh = adjoint_of(l);
  const Tensor left = linalg_solve_triangular(lh, middle, true, true, false);
  return linalg_solve_triangular(l, left, false, false, false);
}

Tensor eigh_gradient(const Tensor& gw, const Tensor& gv, const Tensor& w, const Tensor& v) {
  const Tensor vh = adjoint_of(v);
  if (!gv.defined()) return matmul(scale_columns(v, gw), vh);
  Tensor differences = unsqueeze(w, -2) - column(w);
  const Tensor one = eye(w.size(-1), w.size(-1), w.dtype(), std::nullopt, w.device(), std::nullopt);
  differences = differences + one;  // the diagonal is not used
  Tensor inner = matmul(vh, gv) * (Scalar(1) - one) / differences;
  if (gw.defined()) inner = inner + diag_embed(gw, 0, -2, -1);
  return half_sum(matmul(matmul(v, inner), vh));  // A's triangles stand for each other
}

// For the thin decomposition; see Townsend, "Differentiating the Singular Value Decomposition" (2016).
Tensor svd_gradient(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Tensor& u, const Tensor& s,
                    const Tensor& vh) {
  if (!gu.defined() && !gvh.defined()) return matmul(scale_columns(u, gs), vh);
  const int64_t m = u.size(-2), n = vh.size(-1), k = s.size(-1);
  const Tensor one = eye(k, k, s.dtype(), std::nullopt, s.device(), std::nullopt);
  const Tensor squares = s * s, e = unsqueeze(squares, -2) - column(squares) + one, off = Scalar(1) - one;
  Tensor inner;
  auto add = [&](const Tensor& t) { inner = inner.defined() ? inner + t : t; };
  auto skew = [&](const Tensor& t) { return t - adjoint_of(t); };
  if (gu.defined()) add(scale_columns(skew(matmul(adjoint_of(u), gu)) * off / e, s));
  if (gvh.defined()) add(column(s) * (skew(matmul(vh, adjoint_of(gvh))) * off / e));
  if (gs.defined()) add(diag_embed(gs, 0, -2, -1));
  if (is_complex(u.dtype()) && gu.defined()) {  // the phase that U and V share
    const Tensor d = diagonal(matmul(adjoint_of(u), gu), 0, -2, -1);
    add(diag_embed((d - conj_of(d)) * Scalar(0.5) / s, 0, -2, -1));
  }
  Tensor result = matmul(matmul(u, inner), vh);
  if (m > k && gu.defined()) {
    const Tensor g = gu / unsqueeze(s, -2);
    result = result + matmul(g - matmul(u, matmul(adjoint_of(u), g)), vh);
  }
  if (n > k && gvh.defined()) {
    const Tensor g = gvh / column(s);
    result = result + matmul(u, g - matmul(matmul(g, adjoint_of(vh)), vh));
  }
  return result;
}

// For at least as many rows as columns.
Tensor qr_gradient(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r,
                   std::string_view mode) {
  RL_CHECK(mode != "r",
           "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
           "linalg.qr(A, mode='reduced') if you "
           "are going to differentiate through linalg.qr.");
  RL_CHECK(mode == "reduced" || q.size(-2) <= r.size(-1),
           "The QR decomposition is not differentiable when mode='complete' and nrows > ncols");
  Tensor middle;
  if (gr.defined()) middle = matmul(r, adjoint_of(gr));
  if (gq.defined()) {
    const Tensor t = matmul(adjoint_of(gq), q);
    middle = middle.defined() ? middle - t : -t;
  }
  const Tensor lower = tril(middle, -1), d = diagonal(middle, 0, -2, -1);
  const Tensor symmetric = lower + adjoint_of(lower) + diag_embed((d + conj_of(d)) * Scalar(0.5), 0, -2, -1);
  Tensor inner = matmul(q, symmetric);
  if (gq.defined()) inner = inner + gq;
  return linalg_solve_triangular(adjoint_of(r), inner, false, false, false);
}

// --- composites
// ---------------------------------------------------------------------------------------------------------------

// Columns beyond the square part follow from Q: R_rest = Q^H A_rest.
std::tuple<Tensor, Tensor> qr_body(const Call&, const Tensor& a, std::string_view mode) {
  if (a.dim() < 2 || a.size(-1) <= a.size(-2) || mode == "r") return linalg_qr(a, mode);
  const int64_t m = a.size(-2);
  auto [q, r] = linalg_qr(narrow(a, -1, 0, m), mode);
  const Tensor rest = matmul(adjoint_of(q), narrow(a, -1, m, a.size(-1) - m));
  return {q, cat({r, rest}, -1)};
}

Tensor solve_body(const Call&, const Tensor& a, const Tensor& b, bool left) {
  check_square("linalg.solve", a);
  // A vector right-hand side, as NumPy once told them apart: one dimension, or the batch of A without its
  // last dimension.
  const bool vector = b.dim() == 1 || (b.dim() == a.dim() - 1 &&
                                       b.sizes() == a.sizes().slice(0, static_cast<size_t>(a.dim() - 1)));
  RL_CHECK(left || !vector,
           "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this "
           "case linalg.solve is equivalent to B / A.squeeze(-1)");
  const Tensor rhs = vector ? column(b) : b;
  RL_CHECK(rhs.dim() >= 2, "linalg.solve: B must have at least 1 dimension");
  const Tensor matrix = left ? a : transpose(a, -2, -1), right = left ? rhs : transpose(rhs, -2, -1);
  const Dims batch = broadcast_shapes(batch_of(matrix), batch_of(right));
  auto stretched = [&](const Tensor& t) {
    if (batch_of(t) == IntList(batch)) return t;
    Dims sizes = batch;
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return expand(t, sizes, false);
  };
  const Tensor x = linalg_solve_left(stretched(matrix), stretched(right));
  return vector ? squeeze_dim(x, -1) : left ? x : transpose(x, -2, -1);
}

Tensor det_body(const Call&, const Tensor& a) { return linalg_det(a); }
Tensor inverse_body(const Call&, const Tensor& a) { return linalg_inv(a); }
std::tuple<Tensor, Tensor> slogdet_body(const Call&, const Tensor& a) { return linalg_slogdet(a); }
Tensor logdet_body(const Call&, const Tensor& a) {
  const auto [sign, value] = linalg_slogdet(a);
  return is_complex(a.dtype()) ? value + log(sign)
                               : ops::where(rushlight::eq(sign, Scalar(-1)),
                                            full_like(value, Scalar(std::nan("")), std::nullopt, std::nullopt,
                                                      std::nullopt, std::nullopt, std::nullopt),
                                            value);
}
Tensor eigvalsh_body(const Call&, const Tensor& a, std::string_view uplo) {
  return std::get<0>(linalg_eigh(a, uplo));
}
Tensor svdvals_body(const Call&, const Tensor& a) { return std::get<1>(linalg_svd(a, false)); }

Tensor kron_body(const Call&, const Tensor& self, const Tensor& other) {
  const int64_t n = std::max(self.dim(), other.dim());
  Dims left, right, sizes;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t i = d - (n - self.dim()), j = d - (n - other.dim());
    const int64_t a = i < 0 ? 1 : self->sizes[i], b = j < 0 ? 1 : other->sizes[j];
    left.push_back(a), left.push_back(1), right.push_back(1), right.push_back(b), sizes.push_back(a * b);
  }
  return reshape(reshape(self, left) * reshape(other, right), sizes);
}

}  // namespace

void register_linalg_operators(Table& t) {
  t.op(linalg_det, "linalg::det(Tensor A) -> Tensor", det_kernel)
      .out()
      .doc("The determinant.")
      .derivative(
          [](Grad g, In<0> a, Out<0> d) { return scaled_by(g * conj_of(d), adjoint_of(linalg_inv(a))); });
  t.op(linalg_slogdet, "linalg::slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", slogdet_kernel)
      .out()
      .doc("Sign and logarithm of the determinant's absolute value.")
      .derivative([](GradOf<1> g, In<0> a) {
        return g.defined() ? scaled_by(g, adjoint_of(linalg_inv(a))) : Tensor();
      });
  t.op(linalg_inv, "linalg::inv(Tensor A) -> Tensor", inv_kernel)
      .out()
      .doc("The inverse matrix.")
      .derivative([](Grad g, Out<0> x) { return -matmul(adjoint_of(x), matmul(g, adjoint_of(x))); });
  t.op(linalg_solve_left, "_linalg_solve(Tensor A, Tensor B) -> Tensor", solve_kernel)
      .doc("Solves A X = B for batches of matrices.")
      .internal()
      .derivative([](Grad g, In<0> a, Out<0> x, Needs need) {
        const Tensor gb = linalg_solve_left(adjoint_of(a), g);
        return Grads{need[0] ? -matmul(gb, adjoint_of(x)) : Tensor(), gb};
      });
  t.op(linalg_solve_triangular,
       "linalg::solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
       "unitriangular=False) -> Tensor",
       solve_triangular_kernel)
      .out()
      .doc("Solves A X = B, or X A = B, for a triangular A.")
      .derivative([](Grad g, In<0> a, Out<0> x, Attr<2, bool> upper, Attr<3, bool> left, Attr<4, bool> unit,
                     Needs need) {
        const Tensor gb = linalg_solve_triangular(adjoint_of(a), g, !upper, left, unit);
        Tensor ga;
        if (need[0]) {
          ga = left ? -matmul(gb, adjoint_of(x)) : -matmul(adjoint_of(x), gb);
          ga = upper ? triu(ga, unit ? 1 : 0) : tril(ga, unit ? -1 : 0);
        }
        return Grads{ga, gb};
      });
  t.op(linalg_cholesky, "linalg::cholesky(Tensor self, *, bool upper=False) -> Tensor", cholesky_kernel)
      .out()
      .doc("The triangular factor L of A = L L^H.")
      .derivative(
          [](Grad g, Out<0> l, Attr<1, bool> upper) { return half_sum(cholesky_gradient(g, l, upper)); });
  t.op(linalg_qr, "_linalg_qr(Tensor A, str mode) -> (Tensor, Tensor)", qr_kernel)
      .doc("QR factorisation of batches of matrices.")
      .internal()
      .derivative([](GradOf<0> gq, GradOf<1> gr, Out<0> q, Out<1> r, Attr<1, std::string_view> mode) {
        return qr_gradient(gq, gr, q, r, mode);
      });
  t.composite("linalg::qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", qr_body)
      .out()
      .doc("A = Q R, Q with orthonormal columns and R upper triangular.");
  t.op(linalg_eigh, "linalg::eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
       eigh_kernel)
      .out()
      .doc("Eigenvalues in ascending order and eigenvectors of a Hermitian matrix.")
      .derivative([](GradOf<0> gw, GradOf<1> gv, Out<0> w, Out<1> v) { return eigh_gradient(gw, gv, w, v); });
  t.composite("linalg::eigvalsh(Tensor A, str UPLO='L') -> Tensor", eigvalsh_body)
      .doc("Eigenvalues of Hermitian matrices, in ascending order; real.")
      .out();
  t.op(linalg_svd, "linalg::svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)",
       svd_kernel)
      .out()
      .doc("A = U diag(S) Vh with S descending.")
      .derivative([](GradOf<0> gu, GradOf<1> gs, GradOf<2> gvh, Out<0> u, Out<1> s, Out<2> vh) {
        // Of the full decomposition only the first columns are differentiable.
        const int64_t k = s.size(-1);
        auto columns = [&](const Tensor& m) { return m.defined() ? narrow(m, -1, 0, k) : m; };
        auto rows = [&](const Tensor& m) { return m.defined() ? narrow(m, -2, 0, k) : m; };
        return svd_gradient(columns(gu), gs, rows(gvh), columns(u), s, rows(vh));
      });
  t.composite("linalg::svdvals(Tensor A) -> Tensor", svdvals_body)
      .doc("Singular values, in descending order; real.")
      .out();
  t.composite(linalg_solve, "linalg::solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", solve_body)
      .out()
      .doc("Solves A X = B, or X A = B.");
  t.composite(det, "det(Tensor self) -> Tensor", det_body).doc("Determinant of square matrices.");
  t.composite(inverse, "inverse(Tensor self) -> Tensor", inverse_body)
      .doc("Inverse of square matrices.")
      .out();
  t.composite(logdet, "logdet(Tensor self) -> Tensor", logdet_body)
      .doc("Logarithm of the determinant; NaN where that is negative.");
  t.composite(slogdet, "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", slogdet_body)
      .doc("Sign and logarithm of the absolute value of the determinant.")
      .out();
  t.composite(kron, "kron(Tensor self, Tensor other) -> Tensor", kron_body).out().doc("Kronecker product.");
}

}  // namespace rushlight
