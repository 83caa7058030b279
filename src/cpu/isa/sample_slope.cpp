#include "cpu/sample_slope.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/isa/register_inl.h"
#include "formulas/math.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Vectors passed between functions of this file alone.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rushlight::cpu::RL_ISA {
namespace {

// Several elements advance through their series together, some steps at once. A lane that is done takes the
// next element, so that none waits for the slowest; what an element gives does not depend on its neighbours.
constexpr int kLanes = kRegisterBytes / 8, kStepsAtOnce = 4;
using Doubles [[gnu::vector_size(kLanes * sizeof(double))]] = double;
using Masks [[gnu::vector_size(kLanes * sizeof(int64_t))]] = int64_t;

// A bit for each lane.
unsigned bits_of(Masks mask) {
#if defined(__AVX512DQ__)
  return _mm512_movepi64_mask(__builtin_bit_cast(__m512i, mask));
#elif defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_pd(__builtin_bit_cast(__m256d, mask)));
#else
  unsigned bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= mask[i] ? 1u << i : 0u;
  return bits;
#endif
}
Doubles magnitude(Doubles x) { return Doubles(Masks(x) & INT64_MAX); }

// A lane set without a way through memory, which would make the next step wait.
void set(Doubles& v, int lane, double x) {
  Masks lanes;
  for (int i = 0; i < kLanes; ++i) lanes[i] = i;
  v = lanes == lane ? Doubles{} + x : v;
}

// `start(i, lane)` is false where the series is not for element i, `advance()` says which lanes are done, and
// `finish(i, lane, whole)` takes the sum, of too few terms where not `whole`.
template <class Series>
void each_element(int64_t begin, int64_t end, Series series) {
  int64_t element[kLanes] = {}, next = begin;
  unsigned open = 0;
  Doubles left{};
  const auto fill = [&](int lane) {
    while (next < end) {
      element[lane] = next++;
      if (!series.start(element[lane], lane)) continue;
      open |= 1u << lane;
      return set(left, lane, Series::kMost);
    }
  };
  for (int lane = 0; lane < kLanes; ++lane) fill(lane);
  while (open) {
    const Masks whole = series.advance();
    left -= kStepsAtOnce;
    const unsigned closing = open & bits_of(whole | (left <= 0));
    open &= ~closing;
    for (unsigned rest = closing; rest; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      series.finish(element[lane], lane, bits_of(whole) >> lane & 1), fill(lane);
    }
  }
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

// The cdf is the series of t[n] = x^(a+n) e^-x / Gamma(a+n+1), whose derivative in a is t[n] (log x -
// psi(a+n+1)). `v`: a, x, log x, psi(a + 1).
struct GammaSeries {
  static constexpr int64_t kMost = 200000;
  const double* const* v;
  double exactness;
  double* slopes;
  Doubles x{}, place{}, term{}, slope{}, sum{};  // `place`: a + n, terms relative to the pdf

  bool start(int64_t i, int lane) {
    const double a = v[0][i], at = v[1][i];
    const bool inside = a > 0 && at > 0;
    if (inside && a <= 1000) {
      set(x, lane, at), set(place, lane, a), set(term, lane, at / a);
      set(slope, lane, v[2][i] - v[3][i]), set(sum, lane, 0);
      return true;
    }
    slopes[i] = inside ? gamma_slope_large(a, at) : a > 0 && at == 0 ? 0 : formulas::kNan<double>;
    return false;
  }
  Masks advance() {
    Doubles first{}, second{};
    for (int k = 0; k < kStepsAtOnce; k += 2) {
      const Doubles one = place + 1, two = place + 2, both = 1 / (one * two), a = both * two, b = both * one;
      first = term * slope;
      second = term * (x * a) * (slope - a);
      sum += first + second;
      term *= x * a * (x * b);
      slope -= a + b;
      place = two;
    }
    return (place > x) & (magnitude(first) + magnitude(second) < exactness * magnitude(sum));
  }
  void finish(int64_t i, int lane, bool) { slopes[i] = -sum[lane]; }
};

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
//
// Integral of t^(a-1) (1-t)^(b-1) (w(t) - mean) over [0, x], relative to the integrand's weight at x, where w
// is log t, or log (1 - t) on the upper side. The integral without it is x^a (1-x)^b times the sum of T[n] =
// x^n / a prod((a+b+k) / (a+1+k)), k < n, whose derivative in a, or in b, this is: T[n] times the sum of its
// factors' logarithmic derivatives.
struct DirichletSeries {
  static constexpr int64_t kMost = 1000;
  const double* const* v;
  double exactness;
  double* slopes;
  int64_t block, end;
  Doubles x{}, enough{}, of_p{}, p{}, q{}, term{}, slope{}, sum{};

  // How the elements of a block begin, computed together; `answers` are of those outside.
  static constexpr int64_t kBlock = 64;
  int64_t prepared = block;
  struct Starts {
    double x[kBlock], enough[kBlock], of_p[kBlock], p[kBlock], q[kBlock], term[kBlock], slope[kBlock];
    double inside[kBlock], answers[kBlock];
  } starts{};

  void prepare(int64_t first) {
    prepared = std::min(end, first + kBlock);
    for (int64_t i = first; i < prepared; ++i) {
      const int64_t k = i - first;
      const double at = v[0][i], a = v[1][i], total = v[2][i], b = total - a;
      const bool valid = (a > 0) & (total > a) & (at >= 0) & (at <= 1), lower = at * (a + b) <= a;
      const double own = lower ? a : b, inverse = 1 / own;
      starts.x[k] = lower ? at : 1 - at, starts.enough[k] = exactness * (lower ? 1 - at : at);
      starts.p[k] = a + b, starts.q[k] = own + 1, starts.of_p[k] = lower ? 1.0 : 0.0;
      starts.term[k] = inverse, starts.slope[k] = v[3][i] - v[4][i] - (lower ? inverse : 0.0);
      starts.inside[k] = valid & (at > 0) & (at < 1) ? 1.0 : 0.0;
      starts.answers[k] = valid ? 0.0 : formulas::kNan<double>;
    }
  }
  bool start(int64_t i, int lane) {
    if (i >= prepared) prepare(i), block = i;
    const int64_t k = i - block;
    if (starts.inside[k] == 0) {
      slopes[i] = starts.answers[k];
      return false;
    }
    set(x, lane, starts.x[k]), set(enough, lane, starts.enough[k]), set(of_p, lane, starts.of_p[k]);
    set(p, lane, starts.p[k]), set(q, lane, starts.q[k]), set(term, lane, starts.term[k]);
    set(slope, lane, starts.slope[k]), set(sum, lane, 0);
    return true;
  }
  Masks advance() {
    Doubles first{}, second{};
    for (int k = 0; k < kStepsAtOnce; k += 2) {
      const Doubles next_p = p + 1, next_q = q + 1, one = p * q, two = next_p * next_q,
                    both = 1 / (one * two);
      const Doubles a = both * two, b = both * one, middle = slope + (q - of_p * p) * a;  // 1/p, or 1/p - 1/q
      first = term * slope;
      term *= x * p * p * a;
      second = term * middle;
      sum += first + second;
      term *= x * next_p * next_p * b;
      slope = middle + (next_q - of_p * next_p) * b;
      p = next_p + 1, q = next_q + 1;
    }
    return magnitude(first) + magnitude(second) <= enough * magnitude(sum);
  }
  void finish(int64_t i, int lane, bool whole) {
    const double at = v[0][i], a = v[1][i],
                 found = sum[lane] * at;  // times x (1 - x) / (1 - x) on both sides
    const bool lower = of_p[lane] != 0;
    if (whole)
      slopes[i] = lower ? -found : found;
    else
      slopes[i] = beta_integral(a, v[2][i] - a, at, v[4][i], lower) / (1 - at);
  }
};

}  // namespace

void gamma_slope_range(int64_t begin, int64_t end, const double* const* v, double exactness, double* slopes) {
  each_element(begin, end, GammaSeries{v, exactness, slopes});
}
void dirichlet_slope_range(int64_t begin, int64_t end, const double* const* v, double exactness,
                           double* slopes) {
  each_element(begin, end, DirichletSeries{v, exactness, slopes, begin, end});
}

}  // namespace rushlight::cpu::RL_ISA
