// Special functions in double precision: series near the origin, asymptotic expansions and continued
// fractions far out.
#pragma once
#include "formulas/math.h"

namespace rushlight::formulas {

inline constexpr double kSqrtPi = 1.77245385090551602730;

// B(2j)/(2j) and B(2j)/(2j)!, the coefficients of the Euler-Maclaurin expansions below.
inline constexpr double kBernoulliRatio[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                             1.0 / 132, -691.0 / 32760, 1.0 / 12};
inline constexpr double kBernoulliFactorial[] = {1.0 / 12,
                                                 -1.0 / 720,
                                                 1.0 / 30240,
                                                 -1.0 / 1209600,
                                                 1.0 / 47900160,
                                                 -691.0 / 1307674368000.0,
                                                 1.0 / 74724249600.0,
                                                 -3617.0 / 10670622842880000.0};

inline double digamma(double x) {
  if (x == 0) return copysign(kInf<double>, -x);
  double result = 0;
  if (x < 0) {
    if (x == floor(x)) return kNan<double>;
    const double fraction = x - floor(x);  // tan has period pi; the fraction keeps its precision
    result = -kPi<double> / tan(kPi<double> * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double inverse_square = 1 / (x * x);
  double power = inverse_square, tail = 0;
  for (double b : kBernoulliRatio) tail += b * power, power *= inverse_square;
  return result + log(x) - 0.5 / x - tail;
}

// Hurwitz's zeta function: sum of (q + k)^-s.
inline double zeta(double s, double q) {
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

// x^a e^-x / Gamma(a)
inline double gamma_weight(double a, double x) { return exp(a * log(x) - x - std::lgamma(a)); }

inline double igamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < 100000 && term > sum * 1e-17; ++n) sum += term *= x / (a + n);
  return sum * gamma_weight(a, x);
}
// Lentz's evaluation of the continued fraction of the upper function.
inline double igammac_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int n = 1; n < 100000; ++n) {
    const double an = -n * (n - a);
    b += 2;
    d = an * d + b;
    c = b + an / c;
    d = 1 / (d == 0 ? 1e-300 : d);
    if (c == 0) c = 1e-300;
    h *= d * c;
    if (abs(d * c - 1) < 1e-16) break;
  }
  return h * gamma_weight(a, x);
}
// The regularised incomplete gamma functions: lower and upper share of the integral.
inline double igamma(double a, double x) {
  if (a != a || x != x || a < 0 || x < 0) return kNan<double>;
  if (a == 0) return x > 0 ? 1 : kNan<double>;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan<double> : 0;
  if (std::isinf(x)) return 1;
  return x < a + 1 ? igamma_series(a, x) : 1 - igammac_fraction(a, x);
}
inline double igammac(double a, double x) {
  if (a != a || x != x || a < 0 || x < 0) return kNan<double>;
  if (a == 0) return x > 0 ? 0 : kNan<double>;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan<double> : 1;
  if (std::isinf(x)) return 0;
  return x < a + 1 ? 1 - igamma_series(a, x) : igammac_fraction(a, x);
}

// exp(x^2) erfc(x)
inline double erfcx(double x) {
  if (x < 25) return x < -26.7 ? kInf<double> : exp(x * x) * erfc(x);
  const double r = 1 / (x * x);
  return (1 - r * (0.5 - r * (0.75 - r * 1.875))) / (x * kSqrtPi);
}
// The x >= 0 with erfc(x) = q for q in (0, 1]: Newton's method on the logarithm, which is nearly a parabola.
inline double erfc_inverse(double q) {
  const double target = log(q);
  double x = sqrt(-target);
  for (int i = 0; i < 12; ++i) {
    const double e = erfcx(x), step = (log(e) - x * x - target) * e * kSqrtPi / 2;
    x += step;
    if (abs(step) < 1e-15 * (1 + abs(x))) break;
  }
  return x;
}
inline double erfinv(double y) {
  if (!(abs(y) <= 1)) return kNan<double>;
  if (abs(y) == 1) return y * kInf<double>;
  if (abs(y) > 0.5) return copysign(erfc_inverse(1 - abs(y)), y);
  double x = y * kSqrtPi / 2;
  for (int i = 0; i < 6; ++i) x -= (erf(x) - y) * exp(x * x) * kSqrtPi / 2;
  return x;
}
inline double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNan<double>;
  if (p == 0) return -kInf<double>;
  if (p == 1) return kInf<double>;
  constexpr double kSqrt2 = 1.41421356237309504880;
  return p <= 0.5 ? -kSqrt2 * erfc_inverse(2 * p) : kSqrt2 * erfc_inverse(2 * (1 - p));
}
inline double log_ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  return x < -1 ? log(erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

// exp(-|x|) times the modified Bessel function of order 0 or 1, for x >= 0.
inline double bessel_scaled(double x, int order) {
  if (std::isinf(x)) return 0;
  if (x < 20) {
    double term = order ? x / 2 : 1, sum = term;
    for (int k = 1; k < 200 && term > sum * 1e-17; ++k)
      sum += term *= x * x / 4 / (static_cast<double>(k) * (k + order));
    return sum * exp(-x);
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 20; ++k) sum += term *= -(4.0 * order - (2 * k - 1.0) * (2 * k - 1.0)) / (k * 8 * x);
  return sum / sqrt(2 * kPi<double> * x);
}
inline double bessel_i0e(double x) { return x != x ? x : bessel_scaled(abs(x), 0); }
inline double bessel_i1e(double x) { return x != x ? x : copysign(bessel_scaled(abs(x), 1), x); }
inline double bessel_i0(double x) { return std::isinf(x) ? kInf<double> : bessel_i0e(x) * exp(abs(x)); }
inline double bessel_i1(double x) { return std::isinf(x) ? x : bessel_i1e(x) * exp(abs(x)); }

}  // namespace rushlight::formulas
