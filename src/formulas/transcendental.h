// Columns as in arithmetic.h.
#pragma once

#define RL_TRANSCENDENTAL_FORMULAS(_)                            \
  _(Exp, 1, 0, FieldsH, Same, exp(x))                            \
  _(Exp2, 1, 0, FieldsV, Same, exp2(x))                          \
  _(Expm1, 1, 0, FieldsV, Same, expm1(x))                        \
  _(Log, 1, 0, FieldsH, Same, log(x))                            \
  _(Log2, 1, 0, FieldsV, Same, log2(x))                          \
  _(Log10, 1, 0, FieldsV, Same, log10(x))                        \
  _(Log1p, 1, 0, FieldsV, Same, log1p(x))                        \
  _(Sin, 1, 0, FieldsV, Same, guessed_sin(x))                    \
  _(Cos, 1, 0, FieldsV, Same, guessed_cos(x))                    \
  _(Tan, 1, 0, FieldsV, Same, guessed_tan(x))                    \
  _(Asin, 1, 0, FieldsV, Same, asin(x))                          \
  _(Acos, 1, 0, FieldsV, Same, acos(x))                          \
  _(Atan, 1, 0, FieldsV, Same, atan(x))                          \
  _(Sinh, 1, 0, FieldsV, Same, sinh(x))                          \
  _(Cosh, 1, 0, FieldsV, Same, guessed_cosh(x))                  \
  _(Tanh, 1, 0, FieldsV, Same, tanh(x))                          \
  _(Asinh, 1, 0, FieldsV, Same, asinh(x))                        \
  _(Acosh, 1, 0, FieldsV, Same, acosh(x))                        \
  _(Atanh, 1, 0, FieldsV, Same, atanh(x))                        \
  _(Erf, 1, 0, FloatingV, Same, erf(x))                          \
  _(ErfHalf, 1, 0, SingleH, Same, fast_erf(x))                   \
  _(Erfc, 1, 0, FloatingV, Same, erfc(x))                        \
  _(Sqrt, 1, 0, Fields, Same, sqrt(x))                           \
  _(Rsqrt, 1, 0, Fields, Same, T(1) / sqrt(x))                   \
  _(Reciprocal, 1, 0, Quotients, Same, div(T(1), x))             \
  _(Floor, 1, 0, Floating, Same, floor(x))                       \
  _(Ceil, 1, 0, Floating, Same, ceil(x))                         \
  _(Trunc, 1, 0, Floating, Same, trunc(x))                       \
  _(Frac, 1, 0, Floating, Same, x - trunc(x))                    \
  _(Round, 1, 0, Floating, Same, nearbyint(x))                   \
  _(RoundUp, 1, 1, Floating, Same, nearbyint(x* p[0]) / p[0])    \
  _(RoundDown, 1, 1, Floating, Same, nearbyint(x / p[0]) * p[0]) \
  _(Pow, 2, 0, FieldsV, Same, power(x, y))                       \
  _(PowInteger, 2, 0, Divisible, Same, integer_power(x, y))      \
  _(Cube, 1, 0, Numbers, Same, mul(mul(x, x), x))                \
  _(Atan2, 2, 0, FloatingV, Same, atan2(x, y))                   \
  _(Hypot, 2, 0, FloatingV, Same, hypot(x, y))                   \
  _(Sinc, 1, 0, FieldsV, Same, sinc(x))                          \
  _(Logaddexp, 2, 0, FloatingV, Same, logaddexp(x, y))           \
  _(Logaddexp2, 2, 0, FloatingV, Same, logaddexp2(x, y))         \
  _(Xlogy, 2, 0, FloatingV, Same, xlogy(x, y))                   \
  _(Xlog1py, 2, 0, FloatingV, Same, xlog1py(x, y))               \
  _(Logit, 1, 0, FloatingV, Same, log(x / (T(1) - x)))           \
  _(LogitClamped, 1, 1, FloatingV, Same, logit_clamped(x, p[0])) \
  _(Entr, 1, 0, FloatingV, Same, entr(x))
