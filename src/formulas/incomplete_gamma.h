// The incomplete gamma functions and Hurwitz's zeta function, in parts: series, continued fractions and
// asymptotic expansions.
#pragma once
#include "formulas/parts.h"
#include "formulas/special_math.h"

namespace rushlight::formulas {

// B(2j)/(2j)!, the coefficients of the Euler-Maclaurin expansion below.
RL_TABLE double kBernoulliFactorial[] = {1.0 / 12,
                                         -1.0 / 720,
                                         1.0 / 30240,
                                         -1.0 / 1209600,
                                         1.0 / 47900160,
                                         -691.0 / 1307674368000.0,
                                         1.0 / 74724249600.0,
                                         -3617.0 / 10670622842880000.0};

// Sum of (q + k)^-s term by term; arguments of all kinds.
struct ZetaByTerms {
  static constexpr bool kAlone = true;
  RL_HD [[gnu::always_inline]] static double value(double s, double q) {
    if (s == 1) return kInf<double>;
    if (!(s > 1)) return kNan<double>;
    if (q <= 0) {
      if (q == floor(q)) return kInf<double>;
      if (s != floor(s)) return kNan<double>;
    }
    double sum = 0;
    int k = 0;
    for (; k < 9 || q + k <= 9; ++k) {
      const double term = pow(q + k, -s);
      sum += term;
      if (q + k > 0 && abs(term) < 1e-17 * abs(sum)) return sum;
    }
    const double w = q + k;
    sum += pow(w, 1 - s) / (s - 1) + 0.5 * pow(w, -s);
    double factor = s, power = pow(w, -s - 1);
    for (int j = 0; j < 8; ++j) {
      sum += kBernoulliFactorial[j] * factor * power;
      factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
      power /= w * w;
    }
    return sum;
  }
};
// Positive q and moderate s: the first terms, then the Euler-Maclaurin expansion. Powers of single precision
// need no more than a logarithm and an exponential.
template <Real T>
struct ZetaOfPositive {
  static constexpr bool kSingle = sizeof(T) == 4;
  static constexpr int kTerms = kSingle ? 6 : 9;
  RL_HD [[gnu::always_inline]] static double value(double s, double q) {
    double sum = 0, high = 0;
#pragma GCC unroll 16
    for (int k = 0; k <= kTerms; ++k) {
      const double w = q + k;
      high = kSingle ? exp(-s * log(w)) : pow(w, -s);
      sum += k < kTerms ? high : 0.0;
    }
    const double w = q + kTerms, inverse = 1 / w, square = inverse * inverse;
    double factor = s * inverse, tail = 0;
#pragma GCC unroll 16
    for (int j = 0; j < 8; ++j) {
      tail += kBernoulliFactorial[j] * factor;
      factor *= (s + 2 * j + 1) * (s + 2 * j + 2) * square;
    }
    return sum + high * (w / (s - 1) + 0.5 + tail);
  }
};
template <Real T>
struct HurwitzZeta {
  using Parts = TypeList<ZetaOfPositive<T>, ZetaByTerms>;
  RL_HD [[gnu::always_inline]] static int64_t part(double s, double q) {
    return (s > 1) & (s < 60) & (q > 1e-4) & (q < 1e8) ? 1 : 2;
  }
};

// m - log(1 + m) without cancellation for small m.
RL_HD [[gnu::always_inline]] inline double log1p_defect(double m) {
  const double s = m / (2 + m), z = s * s;
  double tail = 0;
#pragma GCC unroll 16
  for (int k = 25; k >= 3; k -= 2) tail = tail * z + 1.0 / k;
  return abs(m) > 0.4 ? m - log1p(m) : s * (m - 2 * z * tail);
}
// 1 / Gamma(2 + x) for |x| <= 1/2.
RL_TABLE double kOverGamma[] = {
    6.3654518503426881342e-9,  -1.4258717168188386676e-9,  -2.0551047374863303025e-7,
    1.3390150218113123124e-6,  -2.5889874143630238236e-6,  -0.000017545968270676577431,
    0.00014559614124980512992, -0.00036083780354448167413, -0.00080432977554769454242,
    0.0080232730214587663237,  -0.017645244550146085719,   -0.024552490005374753369,
    0.19109110138769152716,    -0.23309373642178704241,    -0.42278433509846713943,
    1.0000000000000000006};
// x^a e^-x / Gamma(a) for positive a and x. Up to 20 by Gamma's recurrence; the exponential in two halves, as
// it may be too small where the power is large. Beyond, the exponents of x^a and Gamma(a) cancel; by
// Stirling's series they need not be computed.
template <bool Large>
RL_HD [[gnu::always_inline]] inline double gamma_weight(double a, double x) {
  if constexpr (Large) {
    const double r = 1 / (a * a);
    const double correction = (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r / 1680))) / a;
    return std::sqrt(a / (2 * kPi<double>)) * exp(-a * log1p_defect((x - a) / a)) * exp(-correction);
  } else {
    double product = 1, near_two = a;
#pragma GCC unroll 32
    for (int k = 1; k < 19; ++k) {
      const double lower = a - k;
      product = lower >= 1.5 ? product * lower : product;
      near_two = lower >= 1.5 ? lower : near_two;
    }
    const double low = a < 0.5 ? a * (a + 1) : a < 1.5 ? a : 1.0;
    const double two = a < 0.5 ? a + 2 : a < 1.5 ? a + 1 : near_two;
    const double over_gamma = horner(kOverGamma, two - 2) * low / product, half = exp(-0.5 * x);
    const double value = pow(x, a) * half * over_gamma * half;
    return x > 2000 ? 0.0 : value;
  }
}

// The lower function up to x = a + 1: the series of x^n / (a + 1) ... (a + n), over a.
template <bool Upper, bool Large, Real T>
struct GammaSeries {
  static constexpr int kNumbers = 2;
  static constexpr double kSmall = sizeof(T) == 4 ? (Upper ? 1e-15 : 1e-9) : 1e-17;
  RL_HD [[gnu::always_inline]] static void start(double a, double, double* s) { s[0] = s[1] = 1 / a; }
  RL_HD [[gnu::always_inline]] static bool more(double, double, double k, const double* s) {
    return (s[0] > s[1] * kSmall) & (k < 100000);
  }
  RL_HD [[gnu::always_inline]] static void step(double a, double x, double k, double* s) {
    s[0] *= x / (a + k);
    s[1] += s[0];
  }
  RL_HD [[gnu::always_inline]] static double end(double a, double x, const double* s) {
    const double lower = s[1] * gamma_weight<Large>(a, x);
    return Upper ? (lower < 1 ? 1 - lower : 0.0) : lower;
  }
};
// The upper function beyond: Lentz's evaluation of its continued fraction.
template <bool Upper, bool Large, Real T>
struct GammaFraction {
  static constexpr int kNumbers = 4;  // the value, its last factor, Lentz's c and d
  static constexpr double kSmall = sizeof(T) == 4 ? 1e-9 : 1e-16;
  RL_HD [[gnu::always_inline]] static void start(double a, double x, double* s) {
    s[0] = s[3] = 1 / (x + 1 - a);
    s[1] = 0;
    s[2] = 1e300;
  }
  RL_HD [[gnu::always_inline]] static bool more(double, double, double k, const double* s) {
    return (abs(s[1] - 1) >= kSmall) & (k < 100000);
  }
  RL_HD [[gnu::always_inline]] static void step(double a, double x, double k, double* s) {
    const double above = k * (a - k), b = x + 1 - a + 2 * k;
    const double under = above * s[3] + b, c = b + above / s[2];
    s[3] = 1 / (under == 0 ? 1e-300 : under);
    s[2] = c == 0 ? 1e-300 : c;
    s[1] = s[2] * s[3];
    s[0] *= s[1];
  }
  RL_HD [[gnu::always_inline]] static double end(double a, double x, const double* s) {
    const double upper = s[0] * gamma_weight<Large>(a, x);
    return Upper ? upper : 1 - upper;
  }
};
template <bool Upper>
struct GammaEdge {
  RL_HD [[gnu::always_inline]] static double value(double a, double x) {
    const bool known =
        (a >= 0) & (x >= 0) & ((a != 0) | (x != 0)) & ((a < kInf<double>) | (x < kInf<double>));
    const bool all = (a == 0) | (x == kInf<double>);  // of the integral lies below x
    return known ? (all != Upper ? 1.0 : 0.0) : kNan<double>;
  }
};
// The regularised incomplete gamma functions: the lower or the upper share of the integral.
template <bool Upper, Real T>
struct IncompleteGamma {
  using Parts = TypeList<GammaSeries<Upper, false, T>, GammaFraction<Upper, false, T>,
                         GammaSeries<Upper, true, T>, GammaFraction<Upper, true, T>, GammaEdge<Upper>>;
  RL_HD [[gnu::always_inline]] static int64_t part(double a, double x) {
    const bool inside = (a > 0) & (x > 0) & (a < kInf<double>)&(x < kInf<double>);
    // The series converges faster for a while, and the other share can be told from it as long as it is not
    // tiny.
    const double reach = !Upper ? 8.0 : (sizeof(T) == 4) & (a > 0.1) ? 8.0 : 1.0;
    const bool series = x < a + reach;
    const int64_t small = series ? 1 : 2, large = series ? 4 : 8;
    return inside ? (a < 20 ? small : large) : 16;
  }
};

}  // namespace rushlight::formulas
