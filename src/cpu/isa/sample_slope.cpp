#include "cpu/sample_slope.h"

#include <algorithm>
#include <cmath>

#include "cpu/isa/register_inl.h"
#include "formulas/math.h"

// Vectors passed between functions of this file alone.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rushlight::cpu::RL_ISA {
namespace {

// Several elements advance through a series together. One that is done keeps its sum, so that a value does
// not depend on its neighbours.
constexpr int kLanes = std::min(kRegisterBytes, 32) / 8, kStepsAtOnce = 4;
using Doubles [[gnu::vector_size(kLanes * sizeof(double))]] = double;
using Masks [[gnu::vector_size(kLanes * sizeof(int64_t))]] = int64_t;

bool any(Masks mask) {
  int64_t found = 0;
  for (int i = 0; i < kLanes; ++i) found |= mask[i];
  return found != 0;
}
Doubles chosen(Masks mask, Doubles x, Doubles y) { return Doubles((mask & Masks(x)) | (~mask & Masks(y))); }
Doubles magnitude(Doubles x) { return Doubles(Masks(x) & INT64_MAX); }

// The cdf is the series of t[n] = x^(a+n) e^-x / Gamma(a+n+1), whose derivative in a is t[n] (log x -
// psi(a+n+1)). `psi` is psi(a + 1). Of lanes that are `open`.
Doubles gamma_slope_series(Doubles a, Doubles x, Doubles log_x, Doubles psi, double exactness, Masks open) {
  Doubles term = x / a, sum{};  // terms relative to the pdf
  Doubles place = a;            // a + n
  for (int n = 0; n < 200000 && any(open); n += kStepsAtOnce)
    for (int k = 0; k < kStepsAtOnce; ++k) {
      const Doubles part = term * (log_x - psi);
      sum += Doubles(open & Masks(part));
      open &= ~((place > x) & (magnitude(part) < exactness * magnitude(sum)));
      place += 1;
      const Doubles inverse = 1 / place;
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

// `v`: a, x, log x, psi(a + 1).
Doubles gamma_block(const Doubles* v, double exactness) {
  const Doubles a = v[0], x = v[1];
  const Masks inside = (a > 0) & (x > 0), in_series = inside & (a <= 1000);
  Doubles slopes = gamma_slope_series(a, x, v[2], v[3], exactness, in_series);
  for (int i = 0; i < kLanes; ++i) {
    if (in_series[i]) continue;
    if (inside[i])
      slopes[i] = gamma_slope_large(a[i], x[i]);
    else
      slopes[i] = a[i] > 0 && x[i] == 0 ? 0 : formulas::kNan<double>;
  }
  return slopes;
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
// is log t, or log (1 - t) if `upper`. The integral without it is x^a (1-x)^b times the sum of T[n] = x^n / a
// prod((a+b+k) / (a+1+k)), k < n, whose derivative in a, or in b, this is: T[n] times the sum of its factors'
// logarithmic derivatives. NaN where the sum takes too long. Of lanes that are `open`.
Doubles beta_series(Doubles a, Doubles b, Doubles x, Doubles log_w, Doubles mean, Masks upper,
                    double exactness, Masks open) {
  Doubles term = 1 / a, slope = log_w - mean - Doubles(~upper & Masks(1 / a)), sum{};
  const Doubles enough = exactness * (1 - x);
  Doubles p = a + b, q = a + 1;
  for (int n = 0; n < 1000 && any(open); n += kStepsAtOnce)
    for (int k = 0; k < kStepsAtOnce; ++k) {
      const Doubles part = term * slope;
      sum += Doubles(open & Masks(part));
      open &= ~(magnitude(part) <= enough * magnitude(sum));
      const Doubles inverse = 1 / (p * q);
      term *= x * p * p * inverse;
      slope += (q - Doubles(~upper & Masks(p))) * inverse;  // 1/p, or 1/p - 1/q
      p += 1;
      q += 1;
    }
  return chosen(open, Doubles{} + formulas::kNan<double>, sum * x * (1 - x));
}

// As the series, where that takes too long.
double beta_integral(double a, double b, double x, double mean_log, bool lower) {
  const bool peaked = std::min(a, b) > 50;
  if (lower) {
    auto weight = [=](double, double log_t) { return log_t - mean_log; };
    return -(peaked ? peaked_beta_integral(a, b, x, weight) : lower_beta_integral(a, b, x, weight));
  }
  auto weight = [=](double s, double) { return std::log1p(-s) - mean_log; };
  return peaked ? peaked_beta_integral(b, a, 1 - x, weight) : lower_beta_integral(b, a, 1 - x, weight);
}

// -(d/da cdf) / pdf of the Beta(a, b) distribution at x, over 1 - x; b is total - a. The logarithm less its
// mean integrates to nothing over [0, 1], so that the shorter side of x may be taken. `v`: x, a, total, log
// x, mean of log x.
Doubles dirichlet_block(const Doubles* v, double exactness) {
  const Doubles x = v[0], a = v[1], b = v[2] - a;
  const Masks valid = (a > 0) & (v[2] > a) & (x >= 0) & (x <= 1), inside = valid & (x > 0) & (x < 1);
  const Masks lower = x * (a + b) <= a;
  const Doubles series = beta_series(chosen(lower, a, b), chosen(lower, b, a), chosen(lower, x, 1 - x), v[3],
                                     v[4], ~lower, exactness, inside);
  Doubles slopes = chosen(lower, -series, series);
  for (int i = 0; i < kLanes; ++i) {
    if (!inside[i])
      slopes[i] = valid[i] ? 0 : formulas::kNan<double>;
    else if (slopes[i] != slopes[i])
      slopes[i] = beta_integral(a[i], b[i], x[i], v[4][i], lower[i]);
    if (inside[i]) slopes[i] /= 1 - x[i];
  }
  return slopes;
}

// block(v) of `kInputs` numbers for each element; a last block repeats its last element.
template <int kInputs, class Block>
void each_block(int64_t begin, int64_t end, const double* const* v, double* slopes, Block block) {
  for (int64_t first = begin; first < end; first += kLanes) {
    const int64_t count = std::min<int64_t>(kLanes, end - first);
    Doubles lanes[kInputs];
    for (int k = 0; k < kInputs; ++k)
      for (int64_t i = 0; i < kLanes; ++i) lanes[k][i] = v[k][first + std::min(i, count - 1)];
    const Doubles found = block(lanes);
    for (int64_t i = 0; i < count; ++i) slopes[first + i] = found[i];
  }
}

}  // namespace

void gamma_slope_range(int64_t begin, int64_t end, const double* const* v, double exactness, double* slopes) {
  each_block<4>(begin, end, v, slopes, [=](const Doubles* lanes) { return gamma_block(lanes, exactness); });
}
void dirichlet_slope_range(int64_t begin, int64_t end, const double* const* v, double exactness,
                           double* slopes) {
  each_block<5>(begin, end, v, slopes,
                [=](const Doubles* lanes) { return dirichlet_block(lanes, exactness); });
}

}  // namespace rushlight::cpu::RL_ISA
