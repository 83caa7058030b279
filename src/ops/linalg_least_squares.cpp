// Least squares, pseudo-inverses and rank.
#include "ops/linalg_common.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using OptNumber = std::optional<double>;

double epsilon_of(DType dtype) {
  return real_dtype(dtype) == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon();
}

// --- least squares

cpu::Driver driver_of(OptText name) {
  const std::string_view given = name ? *name : "gelsy";
  RL_CHECK(given == "gels" || given == "gelsy" || given == "gelsd" || given == "gelss",
           "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  return given == "gels"    ? cpu::Driver::Gels
         : given == "gelsy" ? cpu::Driver::Gelsy
         : given == "gelsd" ? cpu::Driver::Gelsd
                            : cpu::Driver::Gelss;
}
bool is_vector(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 ||
         (b.dim() == a.dim() - 1 && b.sizes() == a.sizes().slice(0, static_cast<size_t>(b.dim())));
}
void check_lstsq(const Tensor& a, const Tensor& b) {
  const std::string_view who = "torch.linalg.lstsq";
  RL_CHECK(a.dim() >= 2, who, ": input must have at least 2 dimensions.");
  RL_CHECK(b.dim() >= 1, who, ": other must have at least 1 dimension.");
  check_floating(who, a);
  RL_CHECK(a.dtype() == b.dtype(), who,
           ": Expected input and other to have the same dtype, but got input's dtype ",
           legacy_name(a.dtype()), " and other's dtype ", legacy_name(b.dtype()));
  const int64_t difference = a.dim() - b.dim();
  RL_CHECK(difference == 0 || difference == 1, who,
           ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  RL_CHECK(difference == 0 || a.size(-2) == b.size(-1), who, ": input.size(-2) should match other.size(-1)");
  RL_CHECK(difference == 1 || a.size(-2) == b.size(-2), who, ": input.size(-2) should match other.size(-2)");
}

// By QR, for matrices of full rank, in operators that devices have: A = Q R, or A^H = Q R where A is wider
// than high, for the shortest solution.
Four least_squares_by_qr(const Tensor& a, const Tensor& right, bool vector) {
  const Dims batch = common_batch(a, right);
  const int64_t m = a.size(-2), n = a.size(-1), k = right.size(-1);
  const Tensor matrix = stretched(a, batch), b = stretched(right, batch);
  Tensor x, residuals = uninitialized({0}, real_dtype(a.dtype()), a);
  if (a.numel() == 0 || b.numel() == 0) {
    x = zeros(with(batch, {n, k}), a.dtype(), std::nullopt, a.device(), std::nullopt);
  } else if (m >= n) {
    const auto [q, r] = linalg_qr(matrix, "reduced");
    x = linalg_solve_triangular(r, matmul(adjoint_of(q), b), true, true, false);
  } else {
    const auto [q, r] = linalg_qr(adjoint_of(matrix), "reduced");
    x = matmul(q, linalg_solve_triangular(adjoint_of(r), b, false, true, false));
  }
  if (m > n) residuals = sum_dim(square(abs(b - matmul(matrix, x))), IntList{-2}, false, std::nullopt);
  return {vector ? squeeze_dim(x, -1) : x, residuals, uninitialized({0}, DType::Int64, a),
          uninitialized({0}, real_dtype(a.dtype()), a)};
}

// What follows from A alone has A's batch: where B shares a matrix, the first of the equal results.
Tensor once_for_each(Tensor t, IntList batch) {
  for (size_t d = 0; d < batch.size(); ++d)
    if (batch[d] == 1) t = narrow(t, static_cast<int64_t>(d), 0, std::min<int64_t>(t.size(d), 1));
  return t;
}

Four lstsq_kernel(const Call&, const Tensor& a, const Tensor& b, OptNumber rcond, OptText driver_name) {
  check_lstsq(a, b);
  if (!a.is_cpu() && !a.device().is_meta()) {
    RL_CHECK(!driver_name || *driver_name == "gels",
             "torch.linalg.lstsq: parameter `driver` should be one of (gels) on CUDA");
    const bool one = is_vector(a, b);
    return least_squares_by_qr(a, one ? as_column(b) : b, one);
  }
  const cpu::Driver driver = driver_of(driver_name);
  const bool vector = is_vector(a, b),
             by_values = driver == cpu::Driver::Gelsd || driver == cpu::Driver::Gelss;
  const Tensor right = vector ? as_column(b) : b;
  const Dims batch = common_batch(a, right);
  const int64_t m = a.size(-2), n = a.size(-1), k = right.size(-1);
  const Tensor work = by_columns(stretched(a, batch)), x = by_columns(batch, std::max(m, n), k, a),
               info = new_info(batch, a);
  const auto none = [&](DType dtype) { return uninitialized({0}, dtype, a); };
  const DType real = real_dtype(a.dtype());
  Tensor rank = none(DType::Int64), values = none(real), residuals = none(real);
  if (driver != cpu::Driver::Gels) rank = zeros(batch, DType::Int64, std::nullopt, a.device(), std::nullopt);
  if (by_values)
    values =
        zeros(with(batch, {std::min(m, n)}), real_dtype(a.dtype()), std::nullopt, a.device(), std::nullopt);
  if (x.is_cpu()) {
    zero_.call(x);
    copy_result(narrow(x, -2, 0, m), stretched(right, batch), false);
    if (work.numel() > 0)
      cpu::least_squares(batch_for(x), driver, m, n, k,
                         rcond ? *rcond : epsilon_of(a.dtype()) * static_cast<double>(std::max(m, n)),
                         work.data_ptr(), x.data_ptr(), rank.numel() ? rank.data<int64_t>() : nullptr,
                         by_values ? values.data_ptr() : nullptr, info.data<int32_t>());
    else
      zero_.call(x);
  }
  check_info("torch.linalg.lstsq", info);
  const bool full_rank =
      !by_values || !rank.is_cpu() || read_scalar(all(rushlight::eq(rank, Scalar(n)))).to<bool>();
  if (m > n && driver != cpu::Driver::Gelsy && full_rank)
    residuals = sum_dim(square(abs(narrow(x, -2, n, m - n))), IntList{-2}, false, std::nullopt);
  if (driver != cpu::Driver::Gels) rank = once_for_each(rank, batch_of(a));
  if (by_values) values = once_for_each(values, batch_of(a));
  const Tensor solution = narrow(x, -2, 0, n);
  return {vector ? squeeze_dim(solution, -1) : solution, residuals, rank, values};
}

Tensor pinv_gradient(const Tensor& g, const Tensor& p, const Tensor& a) {
  const Tensor ph = adjoint_of(p), gh = adjoint_of(g);
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = matmul(gh, p), kph = matmul(k, ph);
    return kph - adjoint_of(matmul(p, k)) - matmul(matmul(a, p), kph) +
           matmul(matmul(ph, p), gh - matmul(k, a));
  }
  const Tensor k = matmul(p, gh), phk = matmul(ph, k);
  return phk - adjoint_of(matmul(k, p)) + matmul(matmul(gh - matmul(a, k), p), ph) -
         matmul(matmul(phk, p), a);
}
Tensor pseudo_inverse(const Tensor& a) { return linalg_pinv(a, Tensor(), Tensor(), false); }

Grads lstsq_gradient(const Tensor& gx, const Tensor& gr, const Tensor& a, const Tensor& given_b,
                     const Tensor& given_x, const Needs& need) {
  const bool vector = is_vector(a, given_b);
  auto matrix = [&](const Tensor& t) { return vector && t.defined() ? as_column(t) : t; };
  const Tensor b = matrix(given_b), x = matrix(given_x);
  Tensor ga, gb;
  if (gx.defined()) {
    const Tensor p = pseudo_inverse(a), g = matrix(gx);
    if (need[0]) ga = pinv_gradient(matmul(g, adjoint_of(b)), p, a);
    if (need[1]) gb = matmul(adjoint_of(p), g);
  }
  if (gr.defined() && gr.numel() > 0) {  // |A X - B|^2, where X is at its best
    const Tensor r = (matmul(a, x) - b) * (as_row(gr) * Scalar(2.0));
    if (need[0]) ga = sum_defined(ga, matmul(r, adjoint_of(x)));
    if (need[1]) gb = sum_defined(gb, -r);
  }
  return {ga, vector && gb.defined() ? squeeze_dim(gb, -1) : gb};
}

// --- what is small enough to be 0

Tensor number(double value, const Tensor& like) {
  return scalar_tensor_of(Scalar(value), DType::Float64, like.device());
}
Tensor number(OptNumber value, const Tensor& like) { return value ? number(*value, like) : Tensor(); }

void check_tolerances(std::string_view who, const Tensor& atol, const Tensor& rtol) {
  for (const auto& [name, t] : {std::pair("atol", atol), std::pair("rtol", rtol)})
    RL_CHECK(!t.defined() || !is_complex(t.dtype()), who, ": ", name,
             " tensor of complex type is not supported. Got ", t.defined() ? legacy_name(t.dtype()) : "");
}

// The tolerance for each matrix of `a`, whose singular values are `s`.
Tensor tolerance(const Tensor& a, const Tensor& s, const Tensor& atol, const Tensor& rtol) {
  const Tensor absolute = atol.defined() ? atol : number(0.0, a);
  const double usual = epsilon_of(a.dtype()) * static_cast<double>(std::max(a.size(-1), a.size(-2)));
  Tensor relative = rtol;
  if (!relative.defined())
    relative =
        atol.defined() ? ops::where(atol > Scalar(0.0), number(0.0, a), number(usual, a)) : number(usual, a);
  return maximum(as_column(absolute), as_column(relative) * amax(s, IntList{-1}, true));
}

Tensor pinv_kernel(const Call&, const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  RL_CHECK(a.dim() >= 2 && is_differentiable(a.dtype()) && element_size(real_dtype(a.dtype())) >= 4,
           "linalg.pinv(", legacy_name(a.dtype()), "{", a.sizes(),
           "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types");
  check_tolerances("torch.linalg.pinv", atol, rtol);
  if (a.numel() == 0) return uninitialized(with(batch_of(a), {a.size(-1), a.size(-2)}), a.dtype(), a);
  Tensor u, values, v;
  if (hermitian) {
    std::tie(values, u) = linalg_eigh(a, "L");
    v = u;
  } else {
    Tensor vh;
    std::tie(u, values, vh) = linalg_svd(a, false, std::nullopt);
    v = adjoint_of(vh);
  }
  const Tensor size = abs(values), keep = size > tolerance(a, size, atol, rtol);
  const Tensor inverse = rushlight::where(keep, reciprocal(values), Scalar(int64_t{0}));
  return matmul(v * as_row(inverse), adjoint_of(u));
}
Tensor pinv_number_body(const Call&, const Tensor& a, OptNumber atol, OptNumber rtol, bool hermitian) {
  return linalg_pinv(a, number(atol, a), number(rtol, a), hermitian);
}
Tensor pinv_rcond_body(const Call&, const Tensor& a, const Tensor& rcond, bool hermitian) {
  return linalg_pinv(a, number(0.0, a), rcond, hermitian);
}
Tensor pinv_rcond_number_body(const Call&, const Tensor& a, double rcond, bool hermitian) {
  return linalg_pinv(a, number(0.0, a), number(rcond, a), hermitian);
}
Tensor pinverse_body(const Call&, const Tensor& a, double rcond) {
  return linalg_pinv(a, number(0.0, a), number(rcond, a), false);
}

Tensor matrix_rank(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check_matrix("torch.linalg.matrix_rank", a, "input");
  const std::string_view who = "torch.linalg.matrix_rank";
  check_floating(who, a);
  check_tolerances(who, atol, rtol);
  if (a.numel() == 0) return zeros(batch_of(a), DType::Int64, std::nullopt, a.device(), std::nullopt);
  const Tensor s = hermitian ? abs(linalg_eigvalsh(a, "L")) : linalg_svdvals(a, std::nullopt);
  return sum_dim(s > tolerance(a, s, atol, rtol), IntList{-1}, false, std::nullopt);
}
Tensor rank_body(const Call&, const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  return matrix_rank(a, atol, rtol, hermitian);
}
Tensor rank_number_body(const Call&, const Tensor& a, OptNumber atol, OptNumber rtol, bool hermitian) {
  return matrix_rank(a, number(atol, a), number(rtol, a), hermitian);
}
Tensor rank_tol_body(const Call&, const Tensor& a, const Tensor& tol, bool hermitian) {
  return matrix_rank(a, tol, number(0.0, a), hermitian);
}
Tensor rank_tol_number_body(const Call&, const Tensor& a, double tol, bool hermitian) {
  return matrix_rank(a, number(tol, a), number(0.0, a), hermitian);
}

}  // namespace

void register_linalg_least_squares_operators(Table& t) {
  t.op(linalg_lstsq,
       "linalg::lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, "
       "Tensor residuals, Tensor rank, Tensor singular_values)",
       lstsq_kernel)
      .out()
      .doc("X that makes |A X - B| least.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .autocast(Cast::Float, Cast::None)
      .derivative([](GradOf<0> gx, GradOf<1> gr, In<0> a, In<1> b, Out<0> x, Needs need) {
        return lstsq_gradient(gx, gr, a, b, x, need);
      });
  const char* doc =
      "The pseudo-inverse; smaller singular values than max(atol, rtol * the largest) count as 0.";
  t.op(linalg_pinv,
       "linalg::pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
       "hermitian=False) -> Tensor",
       pinv_kernel)
      .out()
      .doc(doc)
      .family(Family::LinearAlgebra)
      .on_devices()
      .derivative(
          [](Grad g, In<0> a, Out<0> p) { return Grads{pinv_gradient(g, p, a), Tensor(), Tensor()}; });
  t.composite(
       "linalg::pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
       "hermitian=False) "
       "-> Tensor",
       pinv_number_body)
      .out()
      .doc(doc);
  t.composite("linalg::pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
              pinv_rcond_body)
      .out()
      .out_overload("out_rcond_tensor")
      .doc(doc);
  t.composite("linalg::pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
              pinv_rcond_number_body)
      .out()
      .doc(doc);
  t.composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor", pinverse_body)
      .doc(doc)
      .autocast(Cast::Float, Cast::None);
  doc = "How many singular values are larger than max(atol, rtol * the largest).";
  t.composite(
       "linalg::matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
       "hermitian=False) -> Tensor",
       rank_body)
      .out()
      .doc(doc)
      .autocast(Cast::Float, Cast::None);
  t.composite(
       "linalg::matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
       "hermitian=False) -> Tensor",
       rank_number_body)
      .out()
      .doc(doc)
      .autocast(Cast::Float, Cast::None);
  t.composite("linalg::matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
              rank_tol_body)
      .out()
      .out_overload("out_tol_tensor")
      .doc(doc)
      .autocast(Cast::Float, Cast::None);
  t.composite("linalg::matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
              rank_tol_number_body)
      .out()
      .doc(doc)
      .autocast(Cast::Float, Cast::None);
}

}  // namespace rushlight
