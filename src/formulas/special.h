// Columns as in arithmetic.h. Functions without a vector form, and rarer integer ones.
#pragma once

#define RL_SPECIAL_FORMULAS(_)                                                              \
  _(TruncDivide, 2, 1, FloatingP, Same, trunc_divide(x, y, p[0]))                           \
  _(TruncDivideInteger, 2, 0, WideDivisible, Same, guessed_trunc_divide(x, y))              \
  _(FloorDivide, 2, 0, Guessed, Same, guessed_floor_divide(x, y))                           \
  _(FloorDivideInteger, 2, 0, WideDivisible, Same, guessed_floor_divide(x, y))              \
  _(Remainder, 2, 0, Guessed, Same, guessed_remainder(x, y))                                \
  _(RemainderInteger, 2, 0, WideDivisible, Same, guessed_remainder(x, y))                   \
  _(Fmod, 2, 0, Guessed, Same, guessed_fmod(x, y))                                          \
  _(FmodInteger, 2, 0, WideDivisible, Same, guessed_integer_fmod(x, y))                     \
  _(Fmax, 2, 0, Floating, Same, x >= y || y != y ? x : y)                                   \
  _(Fmin, 2, 0, Floating, Same, x <= y || y != y ? x : y)                                   \
  _(Copysign, 2, 0, Floating, Same, copysign(x, y))                                         \
  _(Nextafter, 2, 1, FloatingP, Same, step_after(x, y, p[0]))                               \
  _(Heaviside, 2, 0, Real, Same, x == 0 ? y : T(x > 0))                                     \
  _(Gcd, 2, 0, Wide, Same, gcd(x, y))                                                       \
  _(Lcm, 2, 0, Wide, Same, lcm(x, y))                                                       \
  _(Lgamma, 1, 0, GuessedV, Same, guessed_lgamma(x))                                        \
  _(Digamma, 1, 0, FloatingV, Same, digamma(x))                                             \
  _(Trigamma, 1, 0, FloatingV, Same, trigamma(x))                                           \
  _(Zeta, 2, 0, FloatingS, Same, T(zeta(double(x), double(y))))                             \
  _(Igamma, 2, 0, FloatingS, Same, T(igamma(double(x), double(y))))                         \
  _(Igammac, 2, 0, FloatingS, Same, T(igammac(double(x), double(y))))                       \
  _(Erfinv, 1, 0, GuessedV, Same, guessed_erfinv(x))                                        \
  _(Erfcx, 1, 0, FloatingV, Same, erfcx(x))                                                 \
  _(Ndtri, 1, 0, GuessedV, Same, guessed_ndtri(x))                                          \
  _(LogNdtr, 1, 0, FloatingV, Same, T(log_ndtr(double(x))))                                 \
  _(I0, 1, 0, FloatingV, Same, bessel_i0(x))                                                \
  _(I0e, 1, 0, FloatingV, Same, bessel_i0e(x))                                              \
  _(I1, 1, 0, FloatingV, Same, bessel_i1(x))                                                \
  _(I1e, 1, 0, FloatingV, Same, bessel_i1e(x))                                              \
  _(AiryAi, 1, 0, FloatingS, Same, T(airy_ai(double(x))))                                   \
  _(BesselJ0, 1, 0, GuessedV, Same, bessel_j0(x))                                           \
  _(BesselJ1, 1, 0, GuessedV, Same, bessel_j1(x))                                           \
  _(BesselY0, 1, 0, GuessedV, Same, bessel_y0(x))                                           \
  _(BesselY1, 1, 0, GuessedV, Same, bessel_y1(x))                                           \
  _(BesselK0, 1, 0, FloatingS, Same, T(bessel_k0(double(x))))                               \
  _(BesselK1, 1, 0, FloatingS, Same, T(bessel_k1(double(x))))                               \
  _(BesselK0e, 1, 0, FloatingS, Same, T(bessel_k0e(double(x))))                             \
  _(BesselK1e, 1, 0, FloatingS, Same, T(bessel_k1e(double(x))))                             \
  _(SphericalBesselJ0, 1, 0, FloatingS, Same, T(spherical_bessel_j0(double(x))))            \
  _(ChebyshevT, 2, 0, FloatingS, Same, T(chebyshev_t(double(x), double(y))))                \
  _(ChebyshevU, 2, 0, FloatingS, Same, T(chebyshev_u(double(x), double(y))))                \
  _(ChebyshevV, 2, 0, FloatingS, Same, T(chebyshev_v(double(x), double(y))))                \
  _(ChebyshevW, 2, 0, FloatingS, Same, T(chebyshev_w(double(x), double(y))))                \
  _(ShiftedChebyshevT, 2, 0, FloatingS, Same, T(chebyshev_t(2 * double(x) - 1, double(y)))) \
  _(ShiftedChebyshevU, 2, 0, FloatingS, Same, T(chebyshev_u(2 * double(x) - 1, double(y)))) \
  _(ShiftedChebyshevV, 2, 0, FloatingS, Same, T(chebyshev_v(2 * double(x) - 1, double(y)))) \
  _(ShiftedChebyshevW, 2, 0, FloatingS, Same, T(chebyshev_w(2 * double(x) - 1, double(y)))) \
  _(HermiteH, 2, 0, FloatingS, Same,                                                        \
    T(y > (sizeof(T) == 4 ? 128 : 512) ? kNan<double> : hermite_h(double(x), double(y))))   \
  _(HermiteHe, 2, 0, FloatingS, Same,                                                       \
    T(y > (sizeof(T) == 4 ? 128 : 512) ? kNan<double> : hermite_he(double(x), double(y))))  \
  _(LaguerreL, 2, 0, FloatingS, Same, T(laguerre_l(double(x), double(y))))                  \
  _(LegendreP, 2, 0, FloatingS, Same, T(legendre_p(double(x), double(y))))                  \
  _(Angle, 1, 0, Fields, Part, angle(x))                                                    \
  _(Conj, 1, 0, ComplexV, Same, conj(x))                                                    \
  _(NanToNum, 1, 3, Floating, Same, x != x ? p[0] : x == kInf<T> ? p[1] : x == -kInf<T> ? p[2] : x)
