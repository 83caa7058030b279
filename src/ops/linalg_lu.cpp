// A = P L U, and what is solved with it: systems, inverses, determinants.
#include "dispatch/warning.h"
#include "ops/index.h"
#include "ops/linalg_common.h"
#include "ops/scan.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// 1, ..., n: the pivots that exchange nothing.
Tensor counted(int64_t n, const Tensor& like) {
  return arange(Scalar(int64_t{1}), Scalar(n + 1), Scalar(int64_t{1}), DType::Int32, std::nullopt,
                like.device(), std::nullopt);
}

// --- factors

Three lu_factor_ex_kernel(const Call&, const Tensor& a, bool pivot, bool check_errors) {
  RL_CHECK(a.dim() >= 2, "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: ", a.sizes(),
           " instead");
  check_lapack_type("linalg.lu_factor", a, RefusedBy::Kernel);
  RL_CHECK(pivot || !a.is_cpu(), "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  const int64_t m = a.size(-2), n = a.size(-1);
  const Tensor lu = by_columns(a), info = new_info(batch_of(a), a),
               pivots = uninitialized(with(batch_of(a), {std::min(m, n)}), DType::Int32, a);
  if (!pivot) copy_result(pivots, expand(counted(std::min(m, n), pivots), pivots.sizes(), false), false);
  if (has_work(a))
    RL_LINALG(a, lu_factor, batch_for(a), m, n, lu.data_ptr(), pivot ? pivots.data<int32_t>() : nullptr,
              info.data<int32_t>());
  if (check_errors) check_info("torch.linalg.lu_factor_ex", info);
  return {lu, pivots, info};
}
Two lu_factor_body(const Call&, const Tensor& a, bool pivot) {
  const auto [lu, pivots, info] = linalg_lu_factor_ex(a, pivot, false);
  check_info("torch.linalg.lu_factor", info);
  return {lu, pivots};
}

Three lu_with_info_body(const Call&, const Tensor& a, bool pivot, bool check_errors) {
  static OnceWarning deprecated(
      "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be "
      "removed in a future PyTorch release.\n"
      "LU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
      "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
      "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
      "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)");
  deprecated.show();
  return linalg_lu_factor_ex(a, pivot, check_errors);
}

// Row p[i] of A is row i of L U.
Tensor permutation_kernel(const Call&, const Tensor& pivots, int64_t rows) {
  const Tensor exchanges = contiguous(pivots);
  const int64_t k = pivots.size(-1);
  Tensor result = uninitialized(with(pivots.sizes().slice(0, static_cast<size_t>(pivots.dim() - 1)), {rows}),
                                DType::Int64, pivots);
  if (!has_work(result)) return result;
  if (!result.is_cpu()) {
    device_linalg(result.device().type())
        .permutation(result.device().index(), result.numel() / rows, k, rows, exchanges.data<int32_t>(),
                     result.data<int64_t>());
    return result;
  }
  for (int64_t b = 0; b < result.numel() / rows; ++b) {
    int64_t* p = result.data<int64_t>() + b * rows;
    for (int64_t i = 0; i < rows; ++i) p[i] = i;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t other = exchanges.data<int32_t>()[b * k + i] - 1;
      RL_CHECK(
          other >= 0 && other < rows && i < rows,
          "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you properly pass the "
          "result of lu_factor?");
      std::swap(p[i], p[other]);
    }
  }
  return result;
}

Three lu_unpack_body(const Call&, const Tensor& lu, const Tensor& pivots, bool data, bool with_pivots) {
  RL_CHECK(lu.dim() >= 2, "torch.lu_unpack: The input tensor A must have at least 2 dimensions.");
  RL_CHECK(
      pivots.dtype() == DType::Int32,
      "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
      "function is intended to be used with the output produced by torch.linalg.lu_factor");
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  Tensor p = uninitialized({0}, lu.dtype(), lu), l = uninitialized({0}, lu.dtype(), lu), u = l;
  if (with_pivots) {
    RL_CHECK(pivots.dim() >= 1 && pivots.size(-1) == k, "torch.lu_unpack: LU_pivots must have ", k,
             " elements in its last dimension, but got shape ", pivots.sizes());
    const Dims sizes = with(batch_of(lu), {k});
    const Tensor own = pivots.dim() < lu.dim() - 1 ? expand(pivots, sizes, false) : reshape(pivots, sizes);
    const Tensor rows = arange(Scalar(int64_t{0}), Scalar(m), Scalar(int64_t{1}), DType::Int64, std::nullopt,
                               lu.device(), std::nullopt);
    p = to_dtype(ops::eq(as_column(rows), as_row(permutation_of_pivots(own, m))), lu.dtype());
  }
  if (data) {
    const Tensor one = eye(m, k, lu.dtype(), std::nullopt, lu.device(), std::nullopt);
    l = tril(narrow(lu, -1, 0, k), -1) + one;
    u = triu(narrow(lu, -2, 0, k), 0);
  }
  return {p, l, u};
}
Three lu_body(const Call&, const Tensor& a, bool pivot) {
  RL_CHECK(a.dim() >= 2, "linalg.lu: Expected tensor with 2 or more dimensions. Got size: ", a.sizes(),
           " instead");
  check_lapack_type("linalg.lu", a, RefusedBy::Kernel);
  RL_CHECK(pivot || !a.is_cpu(), "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  const auto [lu, pivots, info] = linalg_lu_factor_ex(a, pivot, false);
  return lu_unpack(lu, pivots, true, pivot);
}

// P L^-H [tril(L^H gL, -1) + triu(gU U^H)] U^-H for square matrices; columns or rows beyond follow from P, L
// or U.
Tensor lu_gradient(const Tensor& grad, const Tensor& lu, const Tensor& pivots) {
  const auto [p, l, u] = lu_unpack(lu, pivots, true, true);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const Tensor gl = narrow(grad, -1, 0, k), gu = narrow(grad, -2, 0, k);
  const Tensor in_l = matmul(adjoint_of(l), tril(gl, -1)), in_u = matmul(triu(gu, 0), adjoint_of(u));
  const Tensor uh = adjoint_of(narrow(u, -1, 0, k)), lh = adjoint_of(narrow(l, -2, 0, k));
  if (m <= n) {
    Tensor inner;
    if (m == n) {
      inner = linalg_solve_triangular(uh, tril(in_l, -1) + triu(in_u, 0), false, false);
    } else {
      inner = linalg_solve_triangular(uh, tril(in_l - in_u, -1), false, false);
      inner = cat({inner + triu(narrow(gu, -1, 0, k), 0), narrow(gu, -1, k, n - k)}, -1);
    }
    return matmul(p, linalg_solve_triangular(lh, inner, true, true, true));
  }
  Tensor inner = linalg_solve_triangular(lh, triu(in_u - in_l, 0), true, true, true);
  inner = cat({inner + tril(narrow(gl, -2, 0, k), -1), narrow(gl, -2, k, m - k)}, -2);
  return matmul(p, linalg_solve_triangular(uh, inner, false, false));
}

// --- solving with factors

void check_pivots(const Tensor& pivots, int64_t n) {
  const int32_t *row = pivots.data<int32_t>(), *end = row + pivots.numel();
  RL_CHECK(std::all_of(row, end, [](int32_t r) { return r >= 1; }),
           "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of "
           "lu_factor?");
  RL_CHECK(std::all_of(row, end, [n](int32_t r) { return r <= n; }),
           "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the "
           "result of lu_factor?");
}

Tensor lu_solve_kernel(const Call&, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                       bool adjoint) {
  check_floating("linalg.lu_solve", lu, true);
  RL_CHECK(lu.dtype() == b.dtype(),
           "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type ",
           legacy_name(lu.dtype()), " and B of type ", legacy_name(b.dtype()), " instead");
  RL_CHECK(pivots.dtype() == DType::Int32,
           "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
  check_square("torch.linalg.lu_solve", lu, RefusedBy::KernelIfHalf, "LU");
  check_solve_shapes("linalg.lu_solve", lu, b, left, RefusedBy::KernelIfHalf);
  RL_CHECK(pivots.sizes() == lu.sizes().slice(0, static_cast<size_t>(lu.dim() - 1)),
           "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix");
  const Dims batch = common_batch(lu, b);
  // X A = B is A^T X^T = B^T, and X A^H = B is A X^H = B^H.
  auto turn = [&](const Tensor& t) { return left ? t : adjoint ? adjoint_of(t) : transposed(t); };
  const Tensor x = by_columns(turn(stretched(b, batch)));
  if (has_work(x)) {
    const Tensor factors = readable_by_columns(stretched(lu, batch));
    const Tensor rows = contiguous(expand(pivots, with(batch, {lu.size(-1)}), false));
    if (rows.is_cpu()) check_pivots(rows, lu.size(-1));
    RL_LINALG(x, lu_solve, batch_for(x), lu.size(-1), x.size(-1),
              left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T'), factors.data_ptr(), rows.data<int32_t>(),
              x.data_ptr());
  }
  return turn(x);
}

Tensor lu_solve_gradient(const Tensor& g, const Tensor& lu, const Tensor& pivots, const Tensor& x, bool left,
                         bool adjoint) {
  const auto [p, l, u] = lu_unpack(lu, pivots, true, left == adjoint);
  const Tensor uh = adjoint_of(u), lh = adjoint_of(l);
  if (left != adjoint) {
    const Tensor product = -matmul(left ? g : adjoint_of(g), left ? adjoint_of(x) : x);
    const Tensor r = linalg_solve_triangular(uh, product, false);
    return tril(linalg_solve_triangular(lh, matmul(r, uh), true, true, true), -1) + triu(r, 0);
  }
  const Tensor product =
      -matmul(matmul(transposed(p), left ? x : adjoint_of(x)), matmul(left ? adjoint_of(g) : g, p));
  const Tensor r = linalg_solve_triangular(lh, product, true, false, true);
  return tril(r, -1) + triu(linalg_solve_triangular(uh, matmul(lh, r), false, false), 0);
}

Tensor old_lu_solve_body(const Call&, const Tensor& b, const Tensor& lu, const Tensor& pivots) {
  static OnceWarning deprecated(
      "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve and will be removed in a future "
      "PyTorch "
      "release.\n"
      "Note that torch.linalg.lu_solve has its arguments reversed.\n"
      "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
      "X = torch.linalg.lu_solve(LU, pivots, B)");
  deprecated.show();
  return linalg_lu_solve(lu, pivots, b, true, false);
}

// --- systems

// A real matrix that lies by rows is, by columns, its transpose: whose factors do as well, without a copy
// that turns it.
bool lies_by_rows(const Tensor& a) { return a.is_contiguous() && !is_complex(a.dtype()); }
Three factors_of(const Tensor& a, bool by_rows) {
  return linalg_lu_factor_ex(by_rows ? transposed(a) : a, true, false);
}

Four solve_kernel(const Call&, const Tensor& a, const Tensor& b, bool left, bool by_rows) {
  const auto [lu, pivots, info] = factors_of(a, by_rows);
  return {linalg_lu_solve(lu, pivots, b, left, by_rows), lu, pivots, info};
}
Grads solve_gradient(const Tensor& g, const Tensor& a, const Tensor& x, const Tensor& lu,
                     const Tensor& pivots, bool left, bool by_rows, bool need_a) {
  // The factors at hand serve the first derivative; for the second one A must be part of the graph.
  const Tensor gb = GradMode::enabled() ? linalg_solve(adjoint_of(a), g, left)
                                        : linalg_lu_solve(lu, pivots, g, left, !by_rows);
  const Tensor xh = adjoint_of(x);
  return {need_a ? -(left ? matmul(gb, xh) : matmul(xh, gb)) : Tensor(), gb};
}

// A vector on the right, as NumPy once told them apart: one dimension, or the shape of A without its last.
bool is_vector(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 ||
         (b.dim() == a.dim() - 1 && b.sizes() == a.sizes().slice(0, static_cast<size_t>(b.dim())));
}
Two solve_ex_body(const Call&, const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  check_floating("linalg.solve", a, true);
  check_same_type("linalg.solve", a, b);
  check_square("linalg.solve", a, RefusedBy::KernelIfHalf);
  const bool vector = is_vector(a, b);
  RL_CHECK(
      left || !vector,
      "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
      "linalg.solve is equivalent to B / A.squeeze(-1)");
  const Tensor right = vector ? as_column(b) : b;
  check_solve_shapes("linalg.solve", a, right, left, RefusedBy::KernelIfHalf);
  const auto [x, lu, pivots, info] = linalg_solve_parts(a, right, left, lies_by_rows(a));
  if (check_errors) check_info("torch.linalg.solve_ex", info);
  return {vector ? squeeze_dim(x, -1) : x, info};
}
Tensor solve_body(const Call&, const Tensor& a, const Tensor& b, bool left) {
  const auto [x, info] = linalg_solve_ex(a, b, left, false);
  check_info("torch.linalg.solve", info);
  return x;
}

Two inv_ex_kernel(const Call&, const Tensor& a, bool check_errors) {
  check_square("linalg.inv", a, RefusedBy::Check);
  const auto [lu, pivots, info] = factors_of(a, false);  // which lie by columns, as PyTorch's inverses do
  if (check_errors) check_info("linalg.inv_ex", info);
  if (has_work(a) && !a.is_cpu()) {  // singular matrices give what is not finite
    const Tensor inverse = by_columns(batch_of(a), a.size(-2), a.size(-1), a);
    fill_identity(inverse);
    device_linalg(a.device().type())
        .lu_solve(a.device().index(), batch_for(a), a.size(-1), a.size(-1), 'N', lu.data_ptr(),
                  pivots.data<int32_t>(), inverse.data_ptr());
    return {inverse, info};
  }
  if (has_work(a))
    cpu::lu_inverse(batch_for(a), a.size(-1), lu.data_ptr(), pivots.data<int32_t>(), info.data<int32_t>());
  return {lu, info};
}
Tensor inv_body(const Call&, const Tensor& a) {
  const auto [inverse, info] = linalg_inv_ex(a, false);
  check_info("linalg.inv", info);
  return inverse;
}

// --- determinants

// The sign of the row exchanges.
Tensor sign_of(const Tensor& pivots, DType dtype) {
  Tensor sign = uninitialized(pivots.sizes().slice(0, static_cast<size_t>(pivots.dim() - 1)), dtype, pivots);
  const int64_t n = pivots.size(-1);
  if (sign.device().is_meta()) return sign;
  if (!sign.is_cpu()) {
    const Tensor exchanges = sum_dim(ops::ne(pivots, counted(n, pivots)), IntList{-1}, false, std::nullopt);
    const Tensor odd = to_dtype(ops::remainder(exchanges, wrapped_number(Scalar(int64_t{2}))), dtype);
    return odd * Scalar(-2.0) + Scalar(1.0);
  }
  visit_dtype(TypeList<float, double>{}, dtype, "det", [&](auto tag) {
    for (int64_t b = 0; b < sign.numel(); ++b) {
      const int32_t* p = pivots.data<int32_t>() + b * n;
      int exchanges = 0;
      for (int64_t i = 0; i < n; ++i) exchanges += p[i] != i + 1;
      sign.data<decltype(tag)>()[b] = exchanges % 2 ? -1 : 1;
    }
  });
  return sign;
}
Three det_kernel(const Call&, const Tensor& a, bool by_rows) {
  check_square("linalg.det", a, RefusedBy::KernelIfHalf);
  const auto [lu, pivots, info] = factors_of(a, by_rows);
  const Tensor sign = sign_of(pivots, real_dtype(a.dtype()));
  return {prod_dim(diagonal_of(lu), -1, false, std::nullopt) * sign, lu, pivots};
}
Four slogdet_kernel(const Call&, const Tensor& a, bool by_rows) {
  check_square("linalg.slogdet", a, RefusedBy::Check);
  const auto [lu, pivots, info] = factors_of(a, by_rows);
  const Tensor sign = sign_of(pivots, real_dtype(a.dtype())), d = diagonal_of(lu);
  return {prod_dim(sgn(d), -1, false, std::nullopt) * sign,
          sum_dim(log(abs(d)), IntList{-1}, false, std::nullopt), lu, pivots};
}

// The gradient of a determinant near 0 is the adjugate, from the singular value decomposition.
Tensor adjugate_gradient(const Tensor& a, const Tensor& g) {
  const auto [u, s, vh] = linalg_svd(a, true, std::nullopt);
  const int64_t n = s.size(-1);
  // Products of all singular values but one.
  Tensor others = ones_like(s);
  if (n > 1) {
    const Tensor one = ones_like(narrow(s, -1, 0, 1));
    const Tensor before = cat({one, cumprod(narrow(s, -1, 0, n - 1), -1, std::nullopt)}, -1);
    const Tensor after = flip(
        cat({one, cumprod(flip(narrow(s, -1, 1, n - 1), IntList{-1}), -1, std::nullopt)}, -1), IntList{-1});
    others = before * after;
  }
  const Tensor alpha = conj_of(linalg_det(u) * linalg_det(vh)) * g;
  return matmul(u * as_row(as_column(alpha) * others), vh);
}
Tensor det_gradient(const Tensor& g, const Tensor& a, const Tensor& d, const Tensor& lu, const Tensor& pivots,
                    bool by_rows) {
  if (a.numel() == 0) return rushlight::operator*(a, Scalar(int64_t{0}));
  const double epsilon =
      real_dtype(a.dtype()) == DType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const Tensor scale = g * conj_of(d);
  auto right = [&](const Tensor& like, const Tensor& values) {
    return diagonal_matrix(
        expand(as_column(values), like.sizes().slice(0, static_cast<size_t>(like.dim() - 1)), false));
  };
  if (!GradMode::enabled()) {
    // d A^-H, from the factors at hand; a zero pivot is made small instead.
    const Tensor zero = rushlight::eq(diagonal_of(lu), Scalar(int64_t{0}));
    const Tensor nudged = lu + diagonal_matrix(to_dtype(zero, lu.dtype()) * Scalar(epsilon));
    // Where pivots were zero, so is d: take the determinant of what is solved with.
    const Tensor sign = sign_of(pivots, real_dtype(a.dtype()));
    const Tensor near = prod_dim(diagonal_of(nudged), -1, false, std::nullopt) * sign;
    return linalg_lu_solve(nudged, pivots, right(a, g * conj_of(near)), true, !by_rows);
  }
  auto regular = [&](const Tensor& m, const Tensor& s) {
    return linalg_solve(adjoint_of(m), right(m, s), true);
  };
  const Tensor singular = abs(d) < Scalar(100 * epsilon);
  if (!singular.has_data()) {  // under a transform: both ways for all, of matrices that suit the way
    const auto chosen = [&](const Tensor& yes, const Tensor& no) {
      return ops::where(as_row(as_column(singular)), yes, no);
    };
    const int64_t n = a.size(-1);
    const Tensor one = identity(n, a.dtype(), a);
    const Tensor apart = diagonal_matrix(cumsum(diagonal_of(one), -1, std::nullopt));  // 1, 2, ..., n
    return chosen(adjugate_gradient(chosen(a, apart), g), regular(chosen(one, a), scale));
  }
  const int64_t count =
      read_scalar(sum(to_dtype(detach(singular), DType::Int64), std::nullopt)).to<int64_t>();
  if (count == 0) return regular(a, scale);
  if (count == d.numel()) return adjugate_gradient(a, g);
  const Tensor rest = ops::logical_not(singular),
               zero = zeros(a.sizes(), a.dtype(), std::nullopt, a.device(), std::nullopt);
  const Tensor first[] = {singular}, second[] = {rest};
  const Tensor half =
      index_put(zero, TensorList(first, 1),
                adjugate_gradient(index(a, TensorList(first, 1)), index(g, TensorList(first, 1))), false);
  return index_put(half, TensorList(second, 1),
                   regular(index(a, TensorList(second, 1)), index(scale, TensorList(second, 1))), false);
}
Tensor slogdet_gradient(const Tensor& gs, const Tensor& gl, const Tensor& a, const Tensor& sign,
                        const Tensor& lu, const Tensor& pivots, bool by_rows) {
  Tensor g = gl;
  if (is_complex(a.dtype()) && gs.defined()) {
    const Tensor turning = imag(conj_of(gs) * sign);
    g = complex(g.defined() ? g : zeros_like(turning), -turning);
  }
  if (!g.defined()) return {};
  const Tensor right = diagonal_matrix(
      expand(as_column(to_dtype(g, a.dtype())), a.sizes().slice(0, static_cast<size_t>(a.dim() - 1)), false));
  return GradMode::enabled() ? linalg_solve(adjoint_of(a), right, true)
                             : linalg_lu_solve(lu, pivots, right, true, !by_rows);
}

Tensor det_body(const Call&, const Tensor& a) { return std::get<0>(linalg_det_parts(a, lies_by_rows(a))); }
Two slogdet_body(const Call&, const Tensor& a) {
  const auto [sign, value, lu, pivots] = linalg_slogdet_parts(a, lies_by_rows(a));
  return {sign, value};
}
Tensor logdet_body(const Call&, const Tensor& a) {
  check_square("logdet", a, RefusedBy::Check);
  const auto [sign, value] = linalg_slogdet(a);
  if (is_complex(a.dtype())) return value + log(sign);
  return ops::where(rushlight::eq(sign, Scalar(int64_t{-1})), wrapped_number(Scalar(std::nan(""))), value);
}

}  // namespace

void register_linalg_lu_operators(Table& t) {
  t.op(linalg_lu_factor_ex,
       "linalg::lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor "
       "pivots, Tensor info)",
       lu_factor_ex_kernel)
      .out(OutRule::SameType)
      .doc("A = P L U in one matrix, the row exchanges, and which diagonal element of U was the first 0.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .derivative([](GradOf<0> g, Out<0> lu, Out<1> pivots) { return lu_gradient(g, lu, pivots); });
  t.composite(linalg_lu_factor,
              "linalg::lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", lu_factor_body)
      .out(OutRule::SameType)
      .doc("A = P L U in one matrix, and the row exchanges.");
  t.composite(
       "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, "
       "Tensor info)",
       lu_with_info_body)
      .function_only()
      .autocast(Cast::Float, Cast::None)
      .doc("What lu gives, and which diagonal element of U was the first 0.");
  t.op(permutation_of_pivots, "_permutation_of_pivots(Tensor pivots, int rows) -> Tensor", permutation_kernel)
      .absent_in_pytorch()
      .internal()
      .doc("The order of rows that exchanges one after the other lead to.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .not_differentiable("integer output");
  t.composite(lu_unpack,
              "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
              "-> (Tensor P, Tensor L, Tensor U)",
              lu_unpack_body)
      .out(OutRule::SameType)
      .function_only()
      .doc("P, L and U as matrices, from the result of lu_factor.")
      .one_node();
  t.composite("linalg::lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", lu_body)
      .out(OutRule::SameType)
      .doc("A = P L U.")
      .one_node();
  t.op(linalg_lu_solve,
       "linalg::lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> "
       "Tensor",
       lu_solve_kernel)
      .out(OutRule::SameType)
      .doc("Solves A X = B, X A = B or the same with A^H, from lu_factor's result.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .derivative([](Grad g, In<0> lu, In<1> pivots, Out<0> x, Attr<3, bool> left, Attr<4, bool> adjoint,
                     Needs need) {
        return Grads{need[0] ? lu_solve_gradient(g, lu, pivots, x, left, adjoint) : Tensor(), Tensor(),
                     need[2] ? linalg_lu_solve(lu, pivots, g, left, !adjoint) : Tensor()};
      });
  t.composite("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", old_lu_solve_body)
      .out(OutRule::SameType)
      .doc("The former name of linalg.lu_solve.")
      .autocast(Cast::Float, Cast::None);
  t.op(linalg_solve_parts,
       "_linalg_solve_ex(Tensor A, Tensor B, bool left, bool by_rows) -> (Tensor result, Tensor LU, Tensor "
       "pivots, Tensor info)",
       solve_kernel)
      .internal()
      .doc("Solves A X = B, or X A = B; gives the factors too.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .derivative([](GradOf<0> g, In<0> a, Out<0> x, Out<1> lu, Out<2> pivots, Attr<2, bool> left,
                     Attr<3, bool> by_rows,
                     Needs need) { return solve_gradient(g, a, x, lu, pivots, left, by_rows, need[0]); });
  t.composite(linalg_solve_ex,
              "linalg::solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
              "result, Tensor info)",
              solve_ex_body)
      .out(OutRule::SameType)
      .doc("Solves A X = B, or X A = B; info says where A is singular.")
      .one_node();
  t.composite(linalg_solve, "linalg::solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", solve_body)
      .out(OutRule::SameType)
      .doc("Solves A X = B, or X A = B.")
      .autocast(Cast::Float, Cast::None);
  t.op(linalg_inv_ex, "linalg::inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
       inv_ex_kernel)
      .out(OutRule::SameType)
      .out_overload("inverse")
      .doc("The inverse; info says where A is singular.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .derivative([](GradOf<0> g, Out<0> x) {
        const Tensor xh = adjoint_of(x);
        return -matmul(xh, matmul(g, xh));
      });
  t.composite(linalg_inv, "linalg::inv(Tensor A) -> Tensor", inv_body)
      .out(OutRule::SameType)
      .doc("The inverse matrix.")
      .autocast(Cast::Float, Cast::None);
  t.composite(inverse, "inverse(Tensor self) -> Tensor", inv_body)
      .out()
      .doc("The inverse matrix.")
      .autocast(Cast::Float, Cast::None);
  t.op(linalg_det_parts, "_linalg_det(Tensor A, bool by_rows) -> (Tensor result, Tensor LU, Tensor pivots)",
       det_kernel)
      .internal()
      .doc("The determinant and the factors it was taken from.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .derivative([](GradOf<0> g, In<0> a, Out<0> d, Out<1> lu, Out<2> pivots, Attr<1, bool> by_rows) {
        return det_gradient(g, a, d, lu, pivots, by_rows);
      });
  t.op(linalg_slogdet_parts,
       "_linalg_slogdet(Tensor A, bool by_rows) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
       slogdet_kernel)
      .internal()
      .doc("Sign and logarithm of the determinant, and the factors they were taken from.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .derivative(
          [](GradOf<0> gs, GradOf<1> gl, In<0> a, Out<0> sign, Out<2> lu, Out<3> pivots,
             Attr<1, bool> by_rows) { return slogdet_gradient(gs, gl, a, sign, lu, pivots, by_rows); });
  t.composite(linalg_det, "linalg::det(Tensor A) -> Tensor", det_body)
      .out(OutRule::SameType)
      .doc("The determinant.");
  t.composite(det, "det(Tensor self) -> Tensor", det_body).doc("The determinant.");
  t.composite(linalg_slogdet, "linalg::slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", slogdet_body)
      .out(OutRule::SameType)
      .doc("Sign and logarithm of the determinant's absolute value.");
  t.composite(slogdet, "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", slogdet_body)
      .out()
      .doc("Sign and logarithm of the determinant's absolute value.");
  t.composite(logdet, "logdet(Tensor self) -> Tensor", logdet_body).doc("The logarithm of the determinant.");
}

}  // namespace rushlight
