// Samples of Gamma and Dirichlet distributions as functions of their parameters: for a fixed uniform number
// the sample moves with the parameter by -(d cdf / d parameter) / pdf ("implicit reparameterisation").
#include <cmath>

#include "core/parallel.h"
#include "formulas/special_math.h"
#include "ops/copy.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

constexpr double kTiny = std::numeric_limits<double>::min();

// The cdf is the series of t[n] = x^(a+n) e^-x / Gamma(a+n+1), whose derivative in a is t[n] (log x -
// psi(a+n+1)). `psi` is psi(a + 1).
double gamma_slope_series(double a, double x, double log_x, double psi, double exactness) {
  double term = x / a, sum = 0;  // terms relative to the pdf
  for (int n = 0; n < 200000; ++n) {
    const double part = term * (log_x - psi);
    sum += part;
    if (a + n > x && std::abs(part) < exactness * std::abs(sum)) break;
    const double inverse = 1 / (a + n + 1);
    psi += inverse;
    term *= x * inverse;
  }
  return -sum;
}

// For large a: Cornish and Fisher's expansion of x in powers of a^-1/2 at the normal quantile z.
double gamma_slope_large(double a, double x) {
  const double root = std::sqrt(a);
  double z = (x - a) / root;
  for (int i = 0; i < 4; ++i) {
    const double z2 = z * z, value = a + z * root + (z2 - 1) / 3 + z * (z2 - 7) / (36 * root) -
                                     (3 * z2 * z2 + 7 * z2 - 16) / (810 * a);
    z -= (value - x) / (root + 2 * z / 3 + (3 * z2 - 7) / (36 * root));
  }
  const double z2 = z * z;
  return 1 + z / (2 * root) - z * (z2 - 7) / (72 * a * root) + (3 * z2 * z2 + 7 * z2 - 16) / (810 * a * a);
}

double gamma_slope(double a, double x, double log_x, double psi, double exactness) {
  if (!(a > 0) || !(x >= 0)) return formulas::kNan<double>;
  if (x == 0) return 0;
  return a > 1000 ? gamma_slope_large(a, x) : gamma_slope_series(a, x, log_x, psi, exactness);
}

// Integral of t^(a-1) (1-t)^(b-1) w(t) over [0, x], relative to the integrand's weight at x. The substitution
// v = (t/x)^a takes the singularity at 0 away; the tanh-sinh rule copes with what is left at both ends.
template <class Weight>
double lower_beta_integral(double a, double b, double x, Weight weight) {
  constexpr double kStep = 1.0 / 16, kHalfPi = 1.57079632679489661923;
  double sum = 0;
  for (int k = -64; k <= 56; ++k) {
    const double s = k * kStep, u = kHalfPi * std::sinh(s);
    const double log_v = -std::log1p(std::exp(-2 * u));  // v = 1 / (1 + exp(-2 u))
    const double dv = kHalfPi * std::cosh(s) / (2 * std::cosh(u) * std::cosh(u));
    const double log_t = std::log(x) + log_v / a,
                 t = std::exp(log_t);  // t may be 0 where its logarithm counts
    const double value = std::exp((b - 1) * (std::log1p(-t) - std::log1p(-x))) * weight(t, log_t) * dv;
    if (std::isfinite(value)) sum += value;
  }
  return sum * kStep * x / a;
}

// As above for sharp peaks, by Simpson's rule over the twelve standard deviations below x.
template <class Weight>
double peaked_beta_integral(double a, double b, double x, Weight weight) {
  const double n = a + b, width = std::min(x, 12 * std::sqrt(a * b / n) / n);
  constexpr int kIntervals = 256;
  double sum = 0;
  for (int k = 0; k <= kIntervals; ++k) {
    const double t = x - width * k / kIntervals;
    if (t <= 0) continue;
    const double ratio = (a - 1) * std::log(t / x) + (b - 1) * (std::log1p(-t) - std::log1p(-x));
    sum += (k == 0 || k == kIntervals ? 1 : k % 2 ? 4 : 2) * std::exp(ratio) * weight(t, std::log(t));
  }
  return sum * width / kIntervals / 3;
}

// Integral of t^(a-1) (1-t)^(b-1) (w(t) - mean) over [0, x], relative to the integrand's weight at x, where w
// is log t, or log (1 - t) if Upper. The integral without it is x^a (1-x)^b times the sum of T[n] = x^n / a
// prod((a+b+k) / (a+1+k)), k < n, whose derivative in a, or in b, this is: T[n] times the sum of its factors'
// logarithmic derivatives. NaN where the sum takes too long.
template <bool Upper>
double beta_series(double a, double b, double x, double log_w, double mean, double exactness) {
  double term = 1 / a, slope = log_w - mean - (Upper ? 0 : 1 / a), sum = 0;
  const double enough = exactness * (1 - x);
  for (double p = a + b, q = a + 1; q < a + 1000; p += 1, q += 1) {
    const double part = term * slope;
    sum += part;
    if (std::abs(part) <= enough * std::abs(sum)) return sum * x * (1 - x);
    const double inverse = 1 / (p * q);
    term *= x * p * p * inverse;
    slope += (Upper ? q : q - p) * inverse;  // 1/p, or 1/p - 1/q
  }
  return formulas::kNan<double>;
}

// -(d/da cdf) / pdf of the Beta(a, b) distribution at x. The logarithm less its mean integrates to nothing
// over [0, 1], so that the shorter side of x may be taken.
double beta_slope(double a, double b, double x, double log_x, double mean_log, double exactness) {
  const bool lower = x * (a + b) <= a;
  const double series = lower ? -beta_series<false>(a, b, x, log_x, mean_log, exactness)
                              : beta_series<true>(b, a, 1 - x, log_x, mean_log, exactness);
  if (series == series) return series;
  const bool peaked = std::min(a, b) > 50;
  if (lower) {
    auto weight = [=](double, double log_t) { return log_t - mean_log; };
    return -(peaked ? peaked_beta_integral(a, b, x, weight) : lower_beta_integral(a, b, x, weight));
  }
  auto weight = [=](double s, double) { return std::log1p(-s) - mean_log; };
  return peaked ? peaked_beta_integral(b, a, 1 - x, weight) : lower_beta_integral(b, a, 1 - x, weight);
}

double dirichlet_slope(double x, double alpha, double total, double log_x, double mean_log,
                       double exactness) {
  if (!(alpha > 0) || !(total > alpha) || !(x >= 0 && x <= 1)) return formulas::kNan<double>;
  if (x == 0 || x == 1) return 0;
  return beta_slope(alpha, total - alpha, x, log_x, mean_log, exactness) / (1 - x);
}

// Tensors of one dtype as contiguous doubles of one shape.
std::vector<Tensor> as_doubles(const Call& call, std::initializer_list<const Tensor*> inputs) {
  const Tensor& first = **inputs.begin();
  Dims shape = first.sizes().dims();
  for (const Tensor* t : inputs) {
    RL_CHECK(is_floating(t->dtype()) && t->dtype() == first.dtype(), call.op.name(),
             ": expected floating-point tensors of one dtype, got ", legacy_name(first.dtype()), " and ",
             legacy_name(t->dtype()));
    shape = broadcast_shapes(shape, t->sizes());
  }
  std::vector<Tensor> values;
  for (const Tensor* t : inputs)
    values.push_back(contiguous(expand(to_dtype(*t, DType::Float64), IntList(shape))));
  return values;
}

// f over their elements.
template <class F>
Tensor each(const std::vector<Tensor>& values, DType dtype, F f) {
  const Tensor result = empty_tensor(values[0].sizes(), DType::Float64, values[0].device());
  if (result.is_cpu())
    parallel_for(0, result.numel(), kGrainSize / 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double v[5] = {};
        for (size_t k = 0; k < values.size(); ++k) v[k] = values[k].data<double>()[i];
        result.data<double>()[i] = f(v);
      }
    });
  return to_dtype(result, dtype);
}

// Of a term among those before.
double exactness_of(DType dtype) { return dtype == DType::Float64 ? 1e-17 : 1e-10; }

// Logarithms and digammas are those of operators, which compute many at once.
Tensor standard_gamma_grad_kernel(const Call& call, const Tensor& self, const Tensor& output) {
  std::vector<Tensor> values = as_doubles(call, {&self, &output});
  values.push_back(ops::log(values[1]));
  values.push_back(ops::digamma(values[0] + Scalar(1)));
  return each(values, self.dtype(), [exactness = exactness_of(self.dtype())](const double* v) {
    return gamma_slope(v[0], v[1], v[2], v[3], exactness);
  });
}
Tensor dirichlet_grad_kernel(const Call& call, const Tensor& x, const Tensor& alpha, const Tensor& total) {
  std::vector<Tensor> values = as_doubles(call, {&x, &alpha, &total});
  values.push_back(ops::log(values[0]));
  values.push_back(ops::digamma(values[1]) - ops::digamma(values[2]));
  return each(values, x.dtype(), [exactness = exactness_of(x.dtype())](const double* v) {
    return dirichlet_slope(v[0], v[1], v[2], v[3], v[4], exactness);
  });
}

// Gamma numbers in double precision, normalised; kept off 0 and 1, where the density has poles.
Tensor sample_dirichlet_kernel(const Call& call, const Tensor& self, OptGenerator generator) {
  RL_CHECK(is_floating(self.dtype()), call.op.name(), ": expected a floating-point tensor, got ",
           legacy_name(self.dtype()));
  RL_CHECK(self.dim() > 0, call.op.name(), ": expected at least one dimension, got a 0-dim tensor");
  const Tensor gamma = ops::clamp_min(ops::standard_gamma(to_dtype(self, DType::Float64), generator), kTiny);
  const int64_t last = -1;
  const Tensor share = to_dtype(gamma / ops::sum_dim(gamma, IntList(&last, 1), true), self.dtype());
  double low = kTiny, high = 1 - 0x1p-53;
  if (self.dtype() == DType::Float32) low = std::numeric_limits<float>::min(), high = 1 - 0x1p-24;
  if (self.dtype() == DType::Float16) low = 0x1p-14, high = 1 - 0x1p-11;
  if (self.dtype() == DType::BFloat16) low = std::numeric_limits<float>::min(), high = 1 - 0x1p-8;
  return ops::clamp(share, Scalar(low), Scalar(high));
}

}  // namespace

void register_random_gradient_operators(Table& t) {
  constexpr const char* kSecond = "PyTorch offers no second derivative either";
  t.op(standard_gamma_grad, "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
       standard_gamma_grad_kernel)
      .function_only()
      .doc("Derivative of gamma samples by the concentration.")
      .family(Family::Gradient)
      .not_differentiable(kSecond);
  t.op(dirichlet_grad, "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
       dirichlet_grad_kernel)
      .function_only()
      .doc("Derivative of Dirichlet samples by one concentration.")
      .family(Family::Gradient)
      .not_differentiable(kSecond);
  t.op(sample_dirichlet, "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
       sample_dirichlet_kernel)
      .family(Family::Random)
      .function_only()
      .doc("Points of the simplex, Dirichlet distributed with the concentrations along the last dimension.")
      .derivative([](Grad g, In<0> alpha, Out<0> x) {
        const int64_t last = -1;
        const Tensor total = expand(sum_dim(alpha, IntList(&last, 1), true), alpha.sizes());
        return dirichlet_grad(x, alpha, total) * (g - sum_dim(g * x, IntList(&last, 1), true));
      });
}

}  // namespace rushlight
