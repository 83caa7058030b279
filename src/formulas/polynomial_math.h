// Orthogonal polynomials of integer degree by their three-term recurrences. Inside [-1, 1] Chebyshev's
// polynomials of high degree have closed forms, where the recurrence would lose digits.
#pragma once
#include "formulas/math.h"

namespace rushlight::formulas {

// The integer below a degree given as a number; negative for NaN and what no int64 holds.
RL_HD inline int64_t degree(double n) { return n < 0x1p63 ? static_cast<int64_t>(n) : -1; }

// p(0) = 1, p(1) = first, p(k + 1) = next(k, p(k), p(k - 1)). Ends early once the values are no numbers; a
// degree that would take minutes gives NaN.
template <class Next>
RL_HD double recurrence(int64_t n, double first, Next next) {
  if (n < 0) return 0;
  if (n == 0) return 1;
  if (n > int64_t{1} << 26) return kNan<double>;
  double before = 1, value = first;
  for (int64_t k = 1; k < n && value == value; ++k) {
    const double after = next(static_cast<double>(k), value, before);
    before = value;
    value = after;
  }
  return value;
}

RL_HD inline double alternating(int64_t n, double even) { return n % 2 == 0 ? even : -even; }

RL_HD inline double chebyshev_recurrence(int64_t n, double x, double first) {
  return recurrence(n, first, [x](double, double p, double q) { return 2 * x * p - q; });
}

// cos(n t), sin((n + 1) t) / sin t, cos((n + 1/2) t) / cos(t / 2), sin((n + 1/2) t) / sin(t / 2), x = cos t.
RL_HD inline double chebyshev_t(double x, double degrees) {
  const int64_t n = degree(degrees);
  if (n < 0) return 0;
  if (abs(x) == 1) return x > 0 ? 1 : alternating(n, 1);
  if (n > 6 && abs(x) < 1) return cos(static_cast<double>(n) * acos(x));
  return chebyshev_recurrence(n, x, x);
}
RL_HD inline double chebyshev_u(double x, double degrees) {
  const int64_t n = degree(degrees);
  const double d = static_cast<double>(n);
  if (n < 0) return 0;
  if (abs(x) == 1) return x > 0 ? d + 1 : alternating(n, d + 1);
  if (n > 8 && abs(x) < 1) return sin((d + 1) * acos(x)) / sin(acos(x));
  return chebyshev_recurrence(n, x, 2 * x);
}
RL_HD inline double chebyshev_v(double x, double degrees) {
  const int64_t n = degree(degrees);
  const double d = static_cast<double>(n);
  if (n < 0) return 0;
  if (abs(x) == 1) return x > 0 ? 1 : alternating(n, 2 * d + 1);
  if (n > 8 && abs(x) < 1) return cos((d + 0.5) * acos(x)) / cos(acos(x) / 2);
  return chebyshev_recurrence(n, x, 2 * x - 1);
}
RL_HD inline double chebyshev_w(double x, double degrees) {
  const int64_t n = degree(degrees);
  const double d = static_cast<double>(n);
  if (n < 0) return 0;
  if (abs(x) == 1) return x > 0 ? 2 * d + 1 : alternating(n, 1);
  if (n > 8 && abs(x) < 1) return sin((d + 0.5) * acos(x)) / sin(acos(x) / 2);
  return chebyshev_recurrence(n, x, 2 * x + 1);
}

RL_HD inline double hermite_h(double x, double degrees) {
  return recurrence(degree(degrees), 2 * x,
                    [x](double k, double p, double q) { return 2 * x * p - 2 * k * q; });
}
RL_HD inline double hermite_he(double x, double degrees) {
  return recurrence(degree(degrees), x, [x](double k, double p, double q) { return x * p - k * q; });
}
RL_HD inline double laguerre_l(double x, double degrees) {
  const int64_t n = degree(degrees);
  if (n >= 0 && x == 0) return 1;
  return recurrence(n, 1 - x,
                    [x](double k, double p, double q) { return ((2 * k + 1 - x) * p - k * q) / (k + 1); });
}
RL_HD inline double legendre_p(double x, double degrees) {
  const int64_t n = degree(degrees);
  if (n >= 0 && abs(x) == 1) return x > 0 ? 1 : alternating(n, 1);
  return recurrence(n, x,
                    [x](double k, double p, double q) { return ((2 * k + 1) * x * p - k * q) / (k + 1); });
}

}  // namespace rushlight::formulas
