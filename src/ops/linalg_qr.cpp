// Householder's reflectors and the QR factorisation made of them.
#include "dispatch/warning.h"
#include "ops/linalg_common.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;
using Two = std::tuple<Tensor, Tensor>;

Two geqrf_kernel(const Call&, const Tensor& a) {
  RL_CHECK(a.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  check_lapack_type("geqrf", a, RefusedBy::Kernel);
  const int64_t m = a.size(-2), n = a.size(-1);
  const Tensor qr = by_columns(a), tau = uninitialized(with(batch_of(a), {std::min(m, n)}), a.dtype(), a);
  if (has_work(a)) RL_LINALG(a, geqrf, batch_for(a), m, n, qr.data_ptr(), tau.data_ptr());
  return {qr, tau};
}

Two qr_kernel(const Call&, const Tensor& a, std::string_view mode) {
  RL_CHECK(mode == "reduced" || mode == "complete" || mode == "r", "qr received unrecognized mode '", mode,
           "' but expected one of 'reduced' (default), 'r', or 'complete'");
  check_matrix("linalg.qr", a);
  check_lapack_type("linalg.qr", a, RefusedBy::KernelIfHalf);
  const int64_t m = a.size(-2), n = a.size(-1), least = std::min(m, n), k = mode == "complete" ? m : least;
  const auto [factors, tau] = geqrf(a);
  const Tensor r = transposed(tril(transposed(narrow(factors, -2, 0, std::min(k, m))), 0));  // by columns
  if (mode == "r") return {uninitialized({0}, a.dtype(), a), r};
  const Tensor q = by_columns(batch_of(a), m, k, a);
  if (!has_work(q)) return {q, r};
  if (least == 0) {
    fill_identity(q);
  } else {
    copy_result(narrow(q, -1, 0, least), narrow(factors, -1, 0, least), false);
    RL_LINALG(a, orgqr, batch_for(a), m, k, least, q.data_ptr(), tau.data_ptr());
  }
  return {q, r};
}

Tensor qr_gradient(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r,
                   std::string_view mode) {
  RL_CHECK(mode != "r",
           "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
           "linalg.qr(A, "
           "mode='reduced') if you are going to differentiate through linalg.qr.");
  const int64_t m = q.size(-2), n = r.size(-1);
  RL_CHECK(mode == "reduced" || m <= n,
           "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
  Tensor inner;
  if (gr.defined()) inner = matmul(gr, adjoint_of(r));
  if (gq.defined()) {
    const Tensor t = matmul(adjoint_of(q), gq);
    inner = inner.defined() ? inner - t : -t;
  }
  if (m >= n) {
    const Tensor upper = triu(inner, 0), both = upper + adjoint_of(upper);
    inner = matmul(q, both - diagonal_matrix(diagonal_of(both)) * Scalar(0.5));
    if (gq.defined()) inner = inner + gq;
    return linalg_solve_triangular(adjoint_of(r), inner, false, false);
  }
  // The columns beyond the square part move R only.
  const Tensor skew = tril(adjoint_of(inner) - inner, 0);
  inner = matmul(q, skew - diagonal_matrix(diagonal_of(skew)) * Scalar(0.5));
  inner = linalg_solve_triangular(adjoint_of(narrow(r, -1, 0, m)), inner, false, false);
  const Dims rest = with(batch_of(q), {m, n - m});
  inner = cat({inner, zeros(rest, q.dtype(), std::nullopt, q.device(), std::nullopt)}, -1);
  return gr.defined() ? inner + matmul(q, gr) : inner;
}

Two old_qr_body(const Call&, const Tensor& a, bool some) {
  static OnceWarning deprecated(
      "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\n"
      "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\n"
      "Q, R = torch.qr(A, some)\nshould be replaced with\n"
      "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')");
  deprecated.show();
  return linalg_qr(a, some ? "reduced" : "complete");
}

// --- products of reflectors

void check_reflectors(std::string_view who, const Tensor& a, const Tensor& tau) {
  RL_CHECK(a.dim() >= 2, who, ": input must have at least 2 dimensions.");
  RL_CHECK(tau.size(-1) <= a.size(-1), who,
           ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  RL_CHECK(a.dim() - tau.dim() == 1, who,
           ": Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
           " and input.ndim is equal to ", a.dim());
  RL_CHECK(tau.sizes().slice(0, static_cast<size_t>(tau.dim() - 1)) == batch_of(a), who,
           ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
           tau.sizes().slice(0, static_cast<size_t>(tau.dim() - 1)));
  RL_CHECK(tau.dtype() == a.dtype(), who, ": tau dtype ", legacy_name(tau.dtype()),
           " does not match input dtype ", legacy_name(a.dtype()));
}

Tensor householder_product_kernel(const Call&, const Tensor& a, const Tensor& tau) {
  RL_CHECK(a.dim() >= 2, "torch.linalg.householder_product: input must have at least 2 dimensions.");
  RL_CHECK(
      a.size(-2) >= a.size(-1),
      "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]");
  RL_CHECK(tau.dim() >= 1, "torch.linalg.householder_product: tau must have at least 1 dimension");
  check_reflectors("torch.linalg.householder_product", a, tau);
  check_lapack_type("linalg.householder_product", a, RefusedBy::Kernel);
  const Tensor q = by_columns(a);
  if (!has_work(q)) return q;
  if (tau.numel() == 0)
    fill_identity(q);
  else
    RL_LINALG(a, orgqr, batch_for(a), a.size(-2), a.size(-1), tau.size(-1), q.data_ptr(),
              contiguous(tau).data_ptr());
  return q;
}

Tensor ormqr_kernel(const Call&, const Tensor& a, const Tensor& tau, const Tensor& other, bool left,
                    bool adjoint) {
  RL_CHECK(a.dim() >= 2, "torch.ormqr: input must have at least 2 dimensions.");
  RL_CHECK(other.dim() >= 2, "torch.ormqr: other must have at least 2 dimensions.");
  RL_CHECK(tau.dim() >= 1, "torch.ormqr: tau must have at least 1 dimension");
  const char* which = left ? "-2" : "-1";
  const int64_t size = other.size(left ? -2 : -1);
  RL_CHECK(size == a.size(-2), "torch.ormqr: other.shape[", which, "] must be equal to input.shape[-2]");
  RL_CHECK(size >= tau.size(-1), "torch.ormqr: other.shape[", which,
           "] must be greater than or equal to tau.shape[-1]");
  RL_CHECK(tau.size(-1) == std::min(size, a.size(-1)),
           "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[", which, "], input.shape[-1])");
  check_reflectors("torch.ormqr", a, tau);
  RL_CHECK(a.dim() == other.dim(),
           "torch.ormqr: Expected other to have the same number of dimensions as input, but "
           "got other.ndim equal to ",
           other.dim(), " and input.ndim is equal to ", a.dim());
  RL_CHECK(batch_of(other) == batch_of(a),
           "torch.ormqr: Expected batch dimensions of other to be equal to "
           "input.shape[:-2], but got ",
           batch_of(other));
  RL_CHECK(other.dtype() == a.dtype(),
           "torch.ormqr: Expected input and other to have the same dtype, but input has ", "dtype ",
           legacy_name(a.dtype()), " and other has dtype ", legacy_name(other.dtype()));
  check_lapack_type("ormqr", a, RefusedBy::Kernel);
  const Tensor c = by_columns(other);
  if (has_work(c) && tau.numel() > 0) {
    const Tensor v = readable_by_columns(narrow(a, -1, 0, tau.size(-1)));
    RL_LINALG(a, ormqr, batch_for(a), left, adjoint, c.size(-2), c.size(-1), tau.size(-1), v.data_ptr(),
              contiguous(tau).data_ptr(), c.data_ptr());
  }
  return c;
}

// For y = H_1 ... H_k c with H_i = I - tau_i v_i v_i^H, or in the opposite order: with B_i what H_i is
// applied to and M_i = (H_1 ... H_{i-1})^H g B_i^H, the gradients are -v^H M v and -(conj(tau) M v + tau M^H
// v).
Grads reflector_gradients(const Tensor& grad, const Tensor& y, const Tensor& a, const Tensor& tau,
                          bool reversed) {
  const int64_t m = a.size(-2), n = a.size(-1), k = tau.size(-1);
  const Tensor v =
      tril(narrow(a, -1, 0, k), -1) + eye(m, k, a.dtype(), std::nullopt, a.device(), std::nullopt);
  // H(tau)^-1 = H(sigma), which takes y back step by step.
  const Tensor length = sum_dim(v * conj_of(v), IntList{-2}, false, std::nullopt);
  const Tensor sigma = tau / (tau * length - Scalar(1.0));
  std::vector<Tensor> gv(static_cast<size_t>(k)), gt(static_cast<size_t>(k));
  Tensor g = grad, b = y;
  for (int64_t step = 0; step < k; ++step) {
    const int64_t i = reversed ? k - 1 - step : step;
    const Tensor x = narrow(v, -1, i, 1), xh = adjoint_of(x);
    auto factor = [&](const Tensor& t) { return as_column(narrow(t, -1, i, 1)); };
    const Tensor t = factor(tau), th = conj_of(t);
    b = b - factor(sigma) * matmul(x, matmul(xh, b));
    const Tensor mv = matmul(g, adjoint_of(matmul(xh, b))), mhv = matmul(b, adjoint_of(matmul(xh, g)));
    gt[static_cast<size_t>(i)] = -squeeze_dim(matmul(xh, mv), -1);
    gv[static_cast<size_t>(i)] = -(th * mv + t * mhv);
    g = g - th * matmul(x, matmul(xh, g));
  }
  Tensor ga = k ? tril(cat(TensorList(gv.data(), gv.size()), -1), -1)
                : zeros(with(batch_of(a), {m, 0}), a.dtype(), std::nullopt, a.device(), std::nullopt);
  if (n > k)
    ga = cat({ga, zeros(with(batch_of(a), {m, n - k}), a.dtype(), std::nullopt, a.device(), std::nullopt)},
             -1);
  return {ga, k ? cat(TensorList(gt.data(), gt.size()), -1) : zeros_like(tau)};
}

Grads ormqr_gradient(const Tensor& g, const Tensor& y, const Tensor& a, const Tensor& tau, bool left,
                     bool adjoint, const Needs& need) {
  Grads result{Tensor(), Tensor(), need[2] ? ormqr(a, tau, g, left, !adjoint) : Tensor()};
  if (!need[0] && !need[1]) return result;
  // y = c Q is y^H = Q^H c^H, and Q^H = H_k^H ... H_1^H.
  const bool reversed = adjoint == left;
  Grads reflectors = reflector_gradients(left ? g : adjoint_of(g), left ? y : adjoint_of(y), a,
                                         reversed ? conj_of(tau) : tau, reversed);
  result[0] = reflectors[0];
  result[1] = reversed ? conj_of(reflectors[1]) : reflectors[1];
  return result;
}

Tensor orgqr_body(const Call&, const Tensor& a, const Tensor& tau) {
  return linalg_householder_product(a, tau);
}

}  // namespace

void register_linalg_qr_operators(Table& t) {
  t.op(geqrf, "geqrf(Tensor self) -> (Tensor a, Tensor tau)", geqrf_kernel)
      .out()
      .out_overload("a")
      .doc("R over the reflectors whose product is Q, as LAPACK keeps them.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .refused_derivative<"the derivative for 'geqrf' is not implemented: use linalg.qr.", 1>();
  t.op(linalg_qr, "linalg::qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", qr_kernel)
      .out(OutRule::SameType)
      .doc("A = Q R, Q with orthonormal columns and R upper triangular.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .derivative([](GradOf<0> gq, GradOf<1> gr, Out<0> q, Out<1> r, Attr<1, std::string_view> mode) {
        return qr_gradient(gq, gr, q, r, mode);
      });
  t.composite("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", old_qr_body)
      .out(OutRule::SameType)
      .out_overload("Q")
      .doc("The former name of linalg.qr.")
      .autocast(Cast::Float, Cast::None);
  t.op(linalg_householder_product, "linalg::householder_product(Tensor input, Tensor tau) -> Tensor",
       householder_product_kernel)
      .out()
      .doc("The first columns of the product of the reflectors that geqrf made.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .derivative(
          [](Grad g, In<0> a, In<1> tau, Out<0> q) { return reflector_gradients(g, q, a, tau, false); });
  t.composite("orgqr(Tensor self, Tensor input2) -> Tensor", orgqr_body)
      .out()
      .doc("The other name of linalg.householder_product.")
      .autocast(Cast::Float, Cast::None);
  t.op(ormqr,
       "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
       ormqr_kernel)
      .out(OutRule::SameType)
      .doc("Multiplies a matrix with the product of the reflectors that geqrf made.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .autocast(Cast::Float, Cast::None)
      .derivative([](Grad g, In<0> a, In<1> tau, Out<0> y, Attr<3, bool> left, Attr<4, bool> adjoint,
                     Needs need) { return ormqr_gradient(g, y, a, tau, left, adjoint, need); });
}

}  // namespace rushlight
