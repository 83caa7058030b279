// name, inputs, parameters, computed in, result type, expression over x, y, z and p[0], p[1], ...
//   Numbers: every number type; Real: without complex; Floating: float and double; Fields: with complex;
//   Products, Quotients: as Numbers and Fields, with loops for complex numbers by instruction set;
//   Integers, Wide (int64 alone), Boolean (bool alone). RealB, FloatingB: halves and truth values have other
//   loops. Vector variants (…V) call library mathematics: loops pad their tails. Result types: Same, Bool,
//   Part (the real type of a complex one).
#pragma once

#define RL_ARITHMETIC_FORMULAS(_)                                                                       \
  _(Add, 2, 0, Numbers, Same, add(x, y))                                                                \
  _(AddScaled, 2, 1, Numbers, Same, add(x, mul(p[0], y)))                                               \
  _(Sub, 2, 0, Numbers, Same, sub(x, y))                                                                \
  _(SubScaled, 2, 1, Numbers, Same, sub(x, mul(p[0], y)))                                               \
  _(Mul, 2, 0, Products, Same, mul(x, y))                                                               \
  _(Div, 2, 0, Quotients, Same, div(x, y))                                                              \
  _(Maximum, 2, 0, RealB, Same, max(x, y))                                                              \
  _(Minimum, 2, 0, RealB, Same, min(x, y))                                                              \
  _(Neg, 1, 0, Numbers, Same, neg(x))                                                                   \
  _(Abs, 1, 0, RealB, Same, abs(x))                                                                     \
  _(AbsComplex, 1, 0, ComplexV, Part, abs(x))                                                           \
  _(Square, 1, 0, Products, Same, mul(x, x))                                                            \
  _(Sign, 1, 0, Numbers, Same, sign(x))                                                                 \
  _(ClampMin, 1, 1, RealB, Same, at_least(x, p[0]))                                                     \
  _(ClampMax, 1, 1, RealB, Same, at_most(x, p[0]))                                                      \
  _(Clamp, 1, 2, Real, Same, at_most(at_least(x, p[0]), p[1]))                                          \
  _(ClampTensor, 3, 0, Real, Same, clamp_between(x, y, z))                                              \
  _(Lerp, 3, 0, Fields, Same, abs(z) < 0.5f ? x + mul(z, sub(y, x)) : y - mul(sub(y, x), sub(T(1), z))) \
  _(LerpScalar, 2, 1, Fields, Same,                                                                     \
    abs(p[0]) < 0.5f ? x + mul(p[0], sub(y, x)) : y - mul(sub(y, x), sub(T(1), p[0])))                  \
  _(Addcmul, 3, 1, Numbers, Same, add(x, mul(p[0], mul(y, z))))                                         \
  _(Addcdiv, 3, 1, Fields, Same, x + div(mul(p[0], y), z))                                              \
  _(SquaredDifference, 2, 0, Numbers, Same, mul(sub(x, y), sub(x, y)))                                  \
  _(SmoothL1, 2, 1, Floating, Same,                                                                     \
    abs(x - y) < p[0] ? (x - y) * (x - y) * (T(0.5) / p[0]) : abs(x - y) - T(0.5) * p[0])               \
  _(Huber, 2, 1, Floating, Same,                                                                        \
    abs(x - y) <= p[0] ? T(0.5) * (x - y) * (x - y) : p[0] * (abs(x - y) - T(0.5) * p[0]))
