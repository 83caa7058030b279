// Columns as in arithmetic.h. Functions without a vector form, and rarer integer ones; in groups, as they
// take long to compile.
#pragma once

#define RL_DIVISION_FORMULAS(_)                                                \
  _(TruncDivide, 2, 1, FloatingP, Same, trunc_divide(x, y, p[0]))              \
  _(TruncDivideInteger, 2, 0, WideDivisible, Same, guessed_trunc_divide(x, y)) \
  _(FloorDivide, 2, 0, Guessed, Same, guessed_floor_divide(x, y))              \
  _(FloorDivideInteger, 2, 0, WideDivisible, Same, guessed_floor_divide(x, y)) \
  _(Remainder, 2, 0, Guessed, Same, guessed_remainder(x, y))                   \
  _(RemainderInteger, 2, 0, WideDivisible, Same, guessed_remainder(x, y))      \
  _(Fmod, 2, 0, Guessed, Same, guessed_fmod(x, y))                             \
  _(FmodInteger, 2, 0, WideDivisible, Same, guessed_integer_fmod(x, y))        \
  _(Fmax, 2, 0, Floating, Same, x >= y || y != y ? x : y)                      \
  _(Fmin, 2, 0, Floating, Same, x <= y || y != y ? x : y)                      \
  _(Copysign, 2, 0, FloatingB, Same, copysign(x, y))                           \
  _(Nextafter, 2, 1, FloatingP, Same, step_after(x, y, p[0]))                  \
  _(Heaviside, 2, 0, Real, Same, x == 0 ? y : T(x > 0))                        \
  _(Gcd, 2, 0, Wide, Same, gcd(x, y))                                          \
  _(Lcm, 2, 0, Wide, Same, lcm(x, y))                                          \
  _(Angle, 1, 0, Fields, Part, angle(x))                                       \
  _(Conj, 1, 0, ComplexV, Same, conj(x))                                       \
  _(NanToNum, 1, 3, FloatingB, Same, x != x ? p[0] : x == kInf<T> ? p[1] : x == -kInf<T> ? p[2] : x)

#define RL_GAMMA_FORMULAS(_)                                                      \
  _(Lgamma, 1, 0, GuessedV, Same, guessed_lgamma(x))                              \
  _(Digamma, 1, 0, FloatingV, Same, digamma(x))                                   \
  _(Trigamma, 1, 0, FloatingV, Same, trigamma(x))                                 \
  _(Zeta, 2, 0, FloatingParts, Same, in_parts<HurwitzZeta<T>>(x, y))              \
  _(Igamma, 2, 0, FloatingParts, Same, in_parts<IncompleteGamma<false, T>>(x, y)) \
  _(Igammac, 2, 0, FloatingParts, Same, in_parts<IncompleteGamma<true, T>>(x, y)) \
  _(Erfinv, 1, 0, GuessedInside, Same, guessed_erfinv(x))                         \
  _(Erfcx, 1, 0, FloatingV, Same, erfcx(x))                                       \
  _(Ndtri, 1, 0, GuessedInside, Same, guessed_ndtri(x))                           \
  _(LogNdtr, 1, 0, FloatingV, Same, T(log_ndtr(double(x))))

#define RL_BESSEL_FORMULAS(_)                                               \
  _(I0, 1, 0, FloatingParts, Same, in_parts<BesselI<0, false, T>>(x))       \
  _(I0e, 1, 0, FloatingParts, Same, in_parts<BesselI<0, true, T>>(x))       \
  _(I1, 1, 0, FloatingParts, Same, in_parts<BesselI<1, false, T>>(x))       \
  _(I1e, 1, 0, FloatingParts, Same, in_parts<BesselI<1, true, T>>(x))       \
  _(AiryAi, 1, 0, FloatingParts, Same, in_parts<Airy>(x))                   \
  _(BesselJ0, 1, 0, GuessedV, Same, bessel_j0(x))                           \
  _(BesselJ1, 1, 0, GuessedV, Same, bessel_j1(x))                           \
  _(BesselY0, 1, 0, GuessedV, Same, bessel_y0(x))                           \
  _(BesselY1, 1, 0, GuessedV, Same, bessel_y1(x))                           \
  _(BesselK0, 1, 0, FloatingParts, Same, in_parts<BesselK<0, false, T>>(x)) \
  _(BesselK1, 1, 0, FloatingParts, Same, in_parts<BesselK<1, false, T>>(x)) \
  _(BesselK0e, 1, 0, FloatingParts, Same, in_parts<BesselK<0, true, T>>(x)) \
  _(BesselK1e, 1, 0, FloatingParts, Same, in_parts<BesselK<1, true, T>>(x)) \
  _(SphericalBesselJ0, 1, 0, FloatingV, Same, spherical_bessel_j0(x))

#define RL_POLYNOMIAL_FORMULAS(_)                                                                 \
  _(ChebyshevT, 2, 0, FloatingParts, Same, in_parts<ChebyshevPolynomial<Chebyshev::T>>(x, y))     \
  _(ChebyshevU, 2, 0, FloatingParts, Same, in_parts<ChebyshevPolynomial<Chebyshev::U>>(x, y))     \
  _(ChebyshevV, 2, 0, FloatingParts, Same, in_parts<ChebyshevPolynomial<Chebyshev::V>>(x, y))     \
  _(ChebyshevW, 2, 0, FloatingParts, Same, in_parts<ChebyshevPolynomial<Chebyshev::W>>(x, y))     \
  _(ShiftedChebyshevT, 2, 0, FloatingParts, Same, in_parts<ShiftedChebyshev<Chebyshev::T>>(x, y)) \
  _(ShiftedChebyshevU, 2, 0, FloatingParts, Same, in_parts<ShiftedChebyshev<Chebyshev::U>>(x, y)) \
  _(ShiftedChebyshevV, 2, 0, FloatingParts, Same, in_parts<ShiftedChebyshev<Chebyshev::V>>(x, y)) \
  _(ShiftedChebyshevW, 2, 0, FloatingParts, Same, in_parts<ShiftedChebyshev<Chebyshev::W>>(x, y)) \
  _(HermiteH, 2, 0, FloatingParts, Same, in_parts<HermitePolynomial<T>>(x, y))                    \
  _(HermiteHe, 2, 0, FloatingParts, Same, in_parts<HermitePolynomialE<T>>(x, y))                  \
  _(LaguerreL, 2, 0, FloatingParts, Same, in_parts<LaguerrePolynomial>(x, y))                     \
  _(LegendreP, 2, 0, FloatingParts, Same, in_parts<LegendrePolynomial>(x, y))

#define RL_SPECIAL_FORMULAS(_) \
  RL_DIVISION_FORMULAS(_)      \
  RL_GAMMA_FORMULAS(_)         \
  RL_BESSEL_FORMULAS(_)        \
  RL_POLYNOMIAL_FORMULAS(_)
