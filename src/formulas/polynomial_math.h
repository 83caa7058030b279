// Orthogonal polynomials of integer degree by their three-term recurrences. Inside [-1, 1] Chebyshev's
// polynomials of high degree have closed forms, where the recurrence would lose digits.
#pragma once
#include "formulas/parts.h"

namespace rushlight::formulas {

// The whole number that a degree given as a number stands for; negative for NaN and what no int64 holds.
RL_HD [[gnu::always_inline]] inline double degree(double n) { return n < 0x1p63 ? trunc(n) : -1.0; }

RL_HD [[gnu::always_inline]] inline double alternating(double n, double even) {
  return n - 2 * trunc(n / 2) == 0 ? even : -even;
}

// p(0) = 1, p(1) = first, p(k + 1) = next(k, p(k), p(k - 1)) for a polynomial R of x, named by `settled`
// where that is known at once. Ends early once the values are no numbers; a degree that would take minutes
// gives NaN, and so does one above Most.
template <class R, int64_t Most = int64_t{1} << 26>
struct Recurrence {
  static constexpr int kNumbers = 2;
  // Steps that no number makes fewer of: those of one degree for all.
  RL_HD [[gnu::always_inline]] static double steps(double degrees) {
    return degrees > double(Most) ? 0.0 : degree(degrees) - 1;
  }
  RL_HD [[gnu::always_inline]] static void start(double x, double degrees, double* p) {
    const double n = degree(degrees), first = degrees > double(Most) ? kNan<double> : R::first(x);
    p[0] = n < 0 ? 0.0 : n == 0 ? 1.0 : first;
    p[1] = 1;
  }
  RL_HD [[gnu::always_inline]] static bool more(double, double degrees, double k, const double* p) {
    return (k < degree(degrees)) & (p[0] == p[0]);
  }
  RL_HD [[gnu::always_inline]] static void step(double x, double, double k, double* p) {
    const double after = R::next(x, k, p[0], p[1]);
    p[1] = p[0];
    p[0] = after;
  }
  RL_HD [[gnu::always_inline]] static double end(double, double, const double* p) { return p[0]; }
};
template <class R, int64_t Most = int64_t{1} << 26>
struct Recurrent {
  using Parts = TypeList<Recurrence<R, Most>>;
  RL_HD [[gnu::always_inline]] static int64_t part(double, double) { return 1; }
};
// Some numbers have closed forms.
template <class R, class Closed>
struct RecurrentOrClosed {
  using Parts = TypeList<Recurrence<R>, Closed>;
  RL_HD [[gnu::always_inline]] static int64_t part(double x, double degrees) {
    return Closed::holds(x, degree(degrees)) ? 2 : 1;
  }
};

// cos(n t), sin((n + 1) t) / sin t, cos((n + 1/2) t) / cos(t / 2), sin((n + 1/2) t) / sin(t / 2), x = cos t.
enum class Chebyshev { T, U, V, W };
template <Chebyshev Kind>
struct ChebyshevSteps {
  RL_HD [[gnu::always_inline]] static double first(double x) {
    return Kind == Chebyshev::T   ? x
           : Kind == Chebyshev::U ? 2 * x
           : Kind == Chebyshev::V ? 2 * x - 1
                                  : 2 * x + 1;
  }
  RL_HD [[gnu::always_inline]] static double next(double x, double, double p, double q) {
    return 2 * x * p - q;
  }
};
template <Chebyshev Kind>
struct ChebyshevClosed {
  RL_HD [[gnu::always_inline]] static bool holds(double x, double n) {
    return (n > (Kind == Chebyshev::T ? 6 : 8)) & (abs(x) <= 1);
  }
  RL_HD [[gnu::always_inline]] static double value(double x, double degrees) {
    const double n = degree(degrees), angle = acos(x);
    if constexpr (Kind == Chebyshev::T)
      return abs(x) < 1 ? cos(n * angle) : x > 0 ? 1.0 : alternating(n, 1);
    else if constexpr (Kind == Chebyshev::U)
      return abs(x) < 1 ? sin((n + 1) * angle) / sin(angle) : x > 0 ? n + 1 : alternating(n, n + 1);
    else if constexpr (Kind == Chebyshev::V)
      return abs(x) < 1 ? cos((n + 0.5) * angle) / cos(angle / 2) : x > 0 ? 1.0 : alternating(n, 2 * n + 1);
    else
      return abs(x) < 1 ? sin((n + 0.5) * angle) / sin(angle / 2) : x > 0 ? 2 * n + 1 : alternating(n, 1);
  }
};
template <Chebyshev Kind>
using ChebyshevPolynomial = RecurrentOrClosed<ChebyshevSteps<Kind>, ChebyshevClosed<Kind>>;
// Over [0, 1].
template <Chebyshev Kind>
struct ShiftedSteps {
  RL_HD [[gnu::always_inline]] static double first(double x) {
    return ChebyshevSteps<Kind>::first(2 * x - 1);
  }
  RL_HD [[gnu::always_inline]] static double next(double x, double k, double p, double q) {
    return ChebyshevSteps<Kind>::next(2 * x - 1, k, p, q);
  }
};
template <Chebyshev Kind>
struct ShiftedClosed {
  RL_HD [[gnu::always_inline]] static bool holds(double x, double n) {
    return ChebyshevClosed<Kind>::holds(2 * x - 1, n);
  }
  RL_HD [[gnu::always_inline]] static double value(double x, double n) {
    return ChebyshevClosed<Kind>::value(2 * x - 1, n);
  }
};
template <Chebyshev Kind>
using ShiftedChebyshev = RecurrentOrClosed<ShiftedSteps<Kind>, ShiftedClosed<Kind>>;

// PyTorch's largest degree.
template <Real T>
inline constexpr int64_t kMostHermite = sizeof(T) == 4 ? 128 : 512;
struct HermiteSteps {
  RL_HD [[gnu::always_inline]] static double first(double x) { return 2 * x; }
  RL_HD [[gnu::always_inline]] static double next(double x, double k, double p, double q) {
    return 2 * x * p - 2 * k * q;
  }
};
struct HermiteOfStatistics {
  RL_HD [[gnu::always_inline]] static double first(double x) { return x; }
  RL_HD [[gnu::always_inline]] static double next(double x, double k, double p, double q) {
    return x * p - k * q;
  }
};
template <Real T>
using HermitePolynomial = Recurrent<HermiteSteps, kMostHermite<T>>;
template <Real T>
using HermitePolynomialE = Recurrent<HermiteOfStatistics, kMostHermite<T>>;

struct LaguerreSteps {
  RL_HD [[gnu::always_inline]] static double first(double x) { return 1 - x; }
  RL_HD [[gnu::always_inline]] static double next(double x, double k, double p, double q) {
    return ((2 * k + 1 - x) * p - k * q) / (k + 1);
  }
};
struct LaguerreAtZero {
  RL_HD [[gnu::always_inline]] static bool holds(double x, double n) { return (n >= 0) & (x == 0); }
  RL_HD [[gnu::always_inline]] static double value(double, double) { return 1; }
};
using LaguerrePolynomial = RecurrentOrClosed<LaguerreSteps, LaguerreAtZero>;
struct LegendreSteps {
  RL_HD [[gnu::always_inline]] static double first(double x) { return x; }
  RL_HD [[gnu::always_inline]] static double next(double x, double k, double p, double q) {
    return ((2 * k + 1) * x * p - k * q) / (k + 1);
  }
};
struct LegendreAtEnds {
  RL_HD [[gnu::always_inline]] static bool holds(double x, double n) { return (n >= 0) & (abs(x) == 1); }
  RL_HD [[gnu::always_inline]] static double value(double x, double n) {
    return x > 0 ? 1.0 : alternating(degree(n), 1);
  }
};
using LegendrePolynomial = RecurrentOrClosed<LegendreSteps, LegendreAtEnds>;

}  // namespace rushlight::formulas
