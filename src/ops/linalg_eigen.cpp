// Eigenvalues and singular values.
#include "ops/differentiated.h"
#include "ops/linalg_common.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// Complex vectors are unique up to a factor e^{i phi}: a loss must not depend on it.
void check_phase(std::string_view who, const Tensor& phase, const Tensor& expected, std::string_view what) {
  RL_CHECK(!phase.is_cpu() || allclose(detach(phase), detach(expected), 1e-2, 1e-2, false), who, ": The ",
           what,
           " in the complex case are specified up to multiplication by e^{i phi}. The specified loss "
           "function depends "
           "on this quantity, so it is ill-defined.");
}
// Differences of the elements of s, with 1 on the diagonal.
Tensor differences(const Tensor& s) { return as_row(s) - as_column(s) + identity(s.size(-1), s.dtype(), s); }
Tensor without_diagonal(const Tensor& m) { return m - diagonal_matrix(diagonal_of(m)); }

// --- Hermitian matrices

Two eigh_kernel(const Call&, const Tensor& a, std::string_view uplo, bool vectors) {
  check_square("linalg.eigh", a, RefusedBy::Kernel);
  RL_CHECK(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u",
           "Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  const bool lower = uplo == "L" || uplo == "l";
  const Tensor v = by_columns(lower ? a : adjoint_of(a)), info = new_info(batch_of(a), a),
               values = uninitialized(with(batch_of(a), {a.size(-1)}), real_dtype(a.dtype()), a);
  if (has_work(a))
    RL_LINALG(a, eigh, batch_for(a), a.size(-1), vectors, v.data_ptr(), values.data_ptr(),
              info.data<int32_t>());
  check_info("linalg.eigh", info);
  return {values, vectors ? v : uninitialized({0}, a.dtype(), a)};
}
Tensor eigh_gradient(const Tensor& gw, const Tensor& gv, const Tensor& w, const Tensor& v) {
  const Tensor vh = adjoint_of(v);
  if (!gv.defined()) return matmul(v * as_row(gw), vh);
  const Tensor inner = matmul(vh, gv);
  if (is_complex(v.dtype())) {
    const Tensor turning = imag(diagonal_of(inner));
    check_phase("linalg_eigh_backward", turning, zeros_like(turning), "eigenvectors");
  }
  // Vectors stay orthonormal: only the skew part counts.
  Tensor g = (inner - adjoint_of(inner)) * Scalar(0.5) / differences(w);
  if (is_complex(v.dtype())) g = without_diagonal(g);
  if (gw.defined()) g = g + diagonal_matrix(gw);
  return matmul(matmul(v, g), vh);
}
Two eigh_body(const Call&, const Tensor& a, std::string_view uplo) {
  return linalg_eigh_parts(a, uplo, true);
}
Tensor eigvalsh_body(const Call&, const Tensor& a, std::string_view uplo) {
  return std::get<0>(linalg_eigh_parts(a, uplo, is_differentiated(a)));
}

// --- matrices without symmetry

// Nothing where the device's library has no such routine.
std::optional<Two> eig_with(std::string_view who, const Tensor& a, bool vectors) {
  check_square(who, a, RefusedBy::KernelIfHalf);
  RL_CHECK(!has_work(a) || read_scalar(all(isfinite(a))).to<bool>(), "torch.", who,
           ": input tensor should not contain infs or NaNs.");
  const int64_t n = a.size(-1);
  const DType type = complex_dtype(a.dtype());
  const Tensor work = by_columns(a), info = new_info(batch_of(a), a),
               values = uninitialized(with(batch_of(a), {n}), type, a);
  Tensor v = uninitialized({0}, type, a);
  if (vectors) v = by_columns(batch_of(a), n, n, values);
  if (has_work(a) && !RL_PERHAPS_LINALG(a, eig, batch_for(a), n, work.data_ptr(), values.data_ptr(),
                                        vectors ? v.data_ptr() : nullptr, info.data<int32_t>()))
    return std::nullopt;
  check_info(who, info);
  return Two{values, v};
}
Two eig_kernel(const Call& call, const Tensor& a) {
  if (auto found = eig_with("linalg.eig", a, true)) return *found;
  const Results results = computed_on_cpu(call, {Value(a)}, a.device());
  return {results.tensors[0], results.tensors[1]};
}
Tensor eigvals_only_kernel(const Call& call, const Tensor& a) {
  if (auto found = eig_with("linalg.eigvals", a, false)) return std::get<0>(*found);
  return computed_on_cpu(call, {Value(a)}, a.device()).tensors[0];
}
Tensor eigvals_body(const Call&, const Tensor& a) {
  return is_differentiated(a) ? std::get<0>(linalg_eig(a)) : linalg_eigvals_only(a);
}
Tensor eig_gradient(const Tensor& gl, const Tensor& gv, const Tensor& l, const Tensor& v) {
  const Tensor vh = adjoint_of(v);
  if (!gv.defined()) return linalg_solve(vh, as_column(gl) * vh, true);
  const Tensor inner = matmul(vh, gv), d = diagonal_of(inner), turning = imag(d);
  check_phase("linalg_eig_backward", turning, zeros_like(turning), "eigenvectors");
  // Vectors keep their length.
  const Tensor tangent = inner - matmul(vh, v * as_row(real(d)));
  Tensor g = without_diagonal(tangent) / conj_of(differences(l));
  if (gl.defined()) g = g + diagonal_matrix(gl);
  return linalg_solve(vh, matmul(g, vh), true);
}

// --- singular values

// Whether the QR algorithm is asked for; devices have Jacobi's method too, which is the usual one there.
bool svd_by_qr(const Tensor& a, OptText driver) {
  if (!driver) return false;
  RL_CHECK(
      !a.is_cpu(),
      "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  RL_CHECK(*driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda",
           "torch.linalg.svd: unknown svd driver ", *driver,
           " in svd_cusolver computation. Please use one of gesvd, gesvdj, gesvda");
  return *driver == "gesvd";
}

// By the driver gesvda, which knows the thin factors of matrices that are not wider than high.
Three approximate_svd(const Tensor& a, bool full, bool vectors) {
  const int64_t m = a.size(-2), n = a.size(-1);
  if (m < n) {
    const auto [u, s, vh] = approximate_svd(adjoint_of(a), full, vectors);
    return vectors ? Three{by_columns(adjoint_of(vh)), s, by_columns(adjoint_of(u))} : Three{u, s, vh};
  }
  const Tensor work = by_columns(a), info = new_info(batch_of(a), a),
               s = uninitialized(with(batch_of(a), {n}), real_dtype(a.dtype()), a);
  Tensor u = uninitialized({0}, a.dtype(), a), vh = u;
  if (vectors) u = by_columns(batch_of(a), m, n, a), vh = by_columns(batch_of(a), n, n, a);
  device_linalg(a.device().type())
      .svd_of_high(a.device().index(), batch_for(a), m, n, work.data_ptr(), s.data_ptr(),
                   vectors ? u.data_ptr() : nullptr, vectors ? vh.data_ptr() : nullptr, info.data<int32_t>());
  check_info("linalg.svd", info);
  if (!vectors || !full || m == n) return {u, s, vh};
  // Reflectors that turn the first unit vectors into u turn the others into what is orthogonal to it.
  const Tensor basis = std::get<0>(linalg_qr(u, "complete"));
  return {by_columns(cat({u, narrow(basis, -1, n, m - n)}, -1)), s, vh};
}

Three svd_kernel(const Call&, const Tensor& a, bool full, bool vectors, OptText driver) {
  check_matrix("linalg.svd", a);
  check_lapack_type("linalg.svd", a, RefusedBy::KernelIfHalf);
  const bool by_qr = svd_by_qr(a, driver);
  if (driver && *driver == "gesvda" && has_work(a)) return approximate_svd(a, full, vectors);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), ku = full ? m : k, kv = full ? n : k;
  const Tensor info = new_info(batch_of(a), a),
               s = uninitialized(with(batch_of(a), {k}), real_dtype(a.dtype()), a);
  Tensor u = uninitialized({0}, a.dtype(), a), vh = u;
  if (vectors) {
    u = by_columns(batch_of(a), m, ku, a);
    vh = by_columns(batch_of(a), kv, n, a);
  }
  auto decompose = [&](bool qr) {
    const Tensor work = by_columns(a);
    RL_LINALG(a, svd, batch_for(a), qr, full, m, n, work.data_ptr(), s.data_ptr(),
              vectors ? u.data_ptr() : nullptr, vectors ? vh.data_ptr() : nullptr, info.data<int32_t>());
  };
  if (has_work(a)) {
    decompose(by_qr);
    // Where Jacobi's method does not converge, the QR algorithm may. `info` is read below in any case.
    if (!a.is_cpu() && !driver && read_scalar(any(info)).to<bool>()) decompose(true);
  } else if (vectors && !a.device().is_meta()) {
    fill_identity(u);
    fill_identity(vh);
  }
  check_info("linalg.svd", info);
  return {u, s, vh};
}

// For the thin decomposition; see Townsend, "Differentiating the Singular Value Decomposition" (2016).
Tensor svd_gradient(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Tensor& u, const Tensor& s,
                    const Tensor& vh) {
  const int64_t m = u.size(-2), n = vh.size(-1), k = s.size(-1);
  if (!gu.defined() && !gvh.defined())
    return m >= n ? matmul(u, as_column(gs) * vh) : matmul(u * as_row(gs), vh);
  auto skew = [](const Tensor& t) { return t - adjoint_of(t); };
  Tensor in_u, in_v;
  if (gu.defined()) in_u = skew(matmul(adjoint_of(u), gu));
  if (gvh.defined()) in_v = skew(matmul(vh, adjoint_of(gvh)));
  if (is_complex(u.dtype())) {
    auto phase = [&](const Tensor& t) {
      return t.defined() ? imag(diagonal_of(t))
                         : zeros(s.sizes(), s.dtype(), std::nullopt, s.device(), std::nullopt);
    };
    check_phase("svd_backward", phase(in_u), -phase(in_v), "singular vectors");
  }
  const Tensor gaps = differences(s * s);
  Tensor inner;
  if (in_u.defined()) inner = without_diagonal(in_u) * as_row(s) / gaps;
  if (in_v.defined()) inner = sum_defined(inner, as_column(s) * (without_diagonal(in_v) / gaps));
  if (gs.defined()) inner = inner + diagonal_matrix(gs);
  if (is_complex(u.dtype()) && in_u.defined() && in_v.defined())
    inner = inner + diagonal_matrix(diagonal_of(in_u) / (s * Scalar(2.0)));
  if (m > k && gu.defined()) {
    const Tensor g = gu / as_row(s);
    return matmul(matmul(u, inner) + g - matmul(u, matmul(adjoint_of(u), g)), vh);
  }
  if (n > k && gvh.defined()) {
    const Tensor g = gvh / as_column(s);
    return matmul(u, matmul(inner, vh) + g - matmul(matmul(g, adjoint_of(vh)), vh));
  }
  return m >= n ? matmul(u, matmul(inner, vh)) : matmul(matmul(u, inner), vh);
}

Three svd_body(const Call&, const Tensor& a, bool full, OptText driver) {
  return linalg_svd_parts(a, full, true, driver);
}
Tensor svdvals_body(const Call&, const Tensor& a, OptText driver) {
  return std::get<1>(linalg_svd_parts(a, false, is_differentiated(a), driver));  // which takes vectors too
}
Three old_svd_body(const Call&, const Tensor& a, bool some, bool vectors) {
  RL_CHECK(a.dim() >= 2, "linalg.svd: input should have at least 2 dimensions, but has ", a.dim(),
           " dimensions instead");
  if (vectors) {
    const auto [u, s, vh] = linalg_svd(a, !some, std::nullopt);
    return {u, s, adjoint_of(vh)};
  }
  auto none = [&](int64_t n) {
    return zeros(with(batch_of(a), {n, n}), a.dtype(), std::nullopt, a.device(), std::nullopt);
  };
  return {none(a.size(-2)), linalg_svdvals(a, std::nullopt), none(a.size(-1))};
}

}  // namespace

void register_linalg_eigen_operators(Table& t) {
  t.op(linalg_eigh_parts,
       "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor "
       "eigenvectors)",
       eigh_kernel)
      .internal()
      .doc("Eigenvalues of a Hermitian matrix, and eigenvectors if they are wanted.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .derivative([](GradOf<0> gw, GradOf<1> gv, Out<0> w, Out<1> v) { return eigh_gradient(gw, gv, w, v); });
  t.composite(linalg_eigh,
              "linalg::eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
              eigh_body)
      .out(OutRule::SameType)
      .out_overload("eigvals(eigvals, eigvecs)")
      .doc("Eigenvalues in ascending order and eigenvectors of a Hermitian matrix.")
      .autocast(Cast::Float, Cast::None);
  t.composite(linalg_eigvalsh, "linalg::eigvalsh(Tensor self, str UPLO='L') -> Tensor", eigvalsh_body)
      .out(OutRule::SameType)
      .doc("Eigenvalues, in ascending order, of a Hermitian matrix.")
      .autocast(Cast::Float, Cast::None);
  t.op(linalg_eig, "linalg::eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", eig_kernel)
      .out()
      .doc("Eigenvalues and eigenvectors, complex, in no order.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Float, Cast::None)
      .derivative([](GradOf<0> gl, GradOf<1> gv, Out<0> l, Out<1> v) { return eig_gradient(gl, gv, l, v); });
  t.op(linalg_eigvals_only, "_linalg_eigvals(Tensor self) -> Tensor", eigvals_only_kernel)
      .internal()
      .doc("Eigenvalues without eigenvectors.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .not_differentiable("the derivative needs eigenvectors: linalg.eigvals takes them from linalg.eig");
  t.composite(linalg_eigvals, "linalg::eigvals(Tensor self) -> Tensor", eigvals_body)
      .out()
      .doc("Eigenvalues, complex, in no order.")
      .autocast(Cast::Float, Cast::None);
  t.op(linalg_svd_parts,
       "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> "
       "(Tensor U, Tensor S, Tensor Vh)",
       svd_kernel)
      .internal()
      .doc("Singular values, and singular vectors if they are wanted.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .derivative([](GradOf<0> gu, GradOf<1> gs, GradOf<2> gvh, Out<0> u, Out<1> s, Out<2> vh) {
        // Of the full decomposition only the first columns are differentiable.
        const int64_t k = s.size(-1);
        auto columns = [&](const Tensor& m) { return m.defined() ? narrow(m, -1, 0, k) : m; };
        auto rows = [&](const Tensor& m) { return m.defined() ? narrow(m, -2, 0, k) : m; };
        return svd_gradient(columns(gu), gs, rows(gvh), columns(u), s, rows(vh));
      });
  t.composite(linalg_svd,
              "linalg::svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, "
              "Tensor Vh)",
              svd_body)
      .out(OutRule::SameType)
      .out_overload("U")
      .doc("A = U diag(S) Vh with S descending.")
      .autocast(Cast::Float, Cast::None);
  t.composite(linalg_svdvals, "linalg::svdvals(Tensor A, *, str? driver=None) -> Tensor", svdvals_body)
      .out(OutRule::SameType)
      .doc("The singular values, descending.")
      .autocast(Cast::Float, Cast::None);
  t.composite("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
              old_svd_body)
      .out(OutRule::SameType)
      .out_overload("U")
      .doc("The former name of linalg.svd; gives V instead of its adjoint.")
      .autocast(Cast::Float, Cast::None);
}

}  // namespace rushlight
