// Columns as in arithmetic.h. In backward formulas x is the gradient and y the input (sigmoid, tanh: the
// output).
#pragma once

#define RL_ACTIVATION_FORMULAS(_)                                                                         \
  _(Relu, 1, 0, RealB, Same, x < T(0) ? T(0) : x)                                                         \
  _(LeakyRelu, 1, 1, Floating, Same, x > 0 ? x : x * p[0])                                                \
  _(Threshold, 1, 2, Real, Same, chosen(x <= p[0], p[1], x))                                              \
  _(Elu, 1, 3, FloatingV, Same, elu(x, p[0], p[1], p[2]))                                                 \
  _(GeluErf, 1, 0, FloatingH, Same, x* T(0.5) * twice_normal(x))                                          \
  _(GeluTanh, 1, 0, FloatingV, Same, x* T(0.5) * (T(1) + tanh(gelu_inner(x))))                            \
  _(Sigmoid, 1, 0, FieldsH, Same, div(T(1), T(1) + exp(-x)))                                              \
  _(Silu, 1, 0, FieldsH, Same, div(x, T(1) + exp(-x)))                                                    \
  _(Mish, 1, 0, FloatingV, Same, x* tanh(log1p(exp(x))))                                                  \
  _(Softplus, 1, 2, FloatingV, Same, softplus(x, p[0], p[1]))                                             \
  _(Hardsigmoid, 1, 0, Floating, Same, at_most(at_least(x + T(3), T(0)), T(6)) / T(6))                    \
  _(Hardswish, 1, 0, Floating, Same, x* at_most(at_least(x + T(3), T(0)), T(6)) / T(6))                   \
  _(Softshrink, 1, 1, Floating, Same, x > p[0] ? x - p[0] : x < -p[0] ? x + p[0] : x != x ? x : T(0))     \
  _(Hardshrink, 1, 1, Floating, Same, x >= -p[0] && x <= p[0] ? T(0) : x)                                 \
  _(LogSigmoid, 1, 0, FloatingV, Same, min(x, T(0)) - log1p(exp(-abs(x))))                                \
  _(Prelu, 2, 0, Floating, Same, x > 0 ? x : x * y)                                                       \
  _(SigmoidBackward, 2, 0, Fields, Same, mul(x, conj(mul(T(1) - y, y))))                                  \
  _(TanhBackward, 2, 0, Fields, Same, mul(x, conj(T(1) - mul(y, y))))                                     \
  _(ThresholdBackward, 2, 1, Real, Same, y <= p[0] ? T(0) : x)                                            \
  _(LeakyReluBackward, 2, 1, Floating, Same, y > 0 ? x : x * p[0])                                        \
  _(EluBackward, 2, 3, FloatingV, Same, elu_backward(x, y, p[0], p[1], p[2]))                             \
  _(GeluErfBackward, 2, 0, FloatingH, Same, x* gelu_erf_slope(y))                                         \
  _(GeluTanhBackward, 2, 0, FloatingV, Same, x* gelu_tanh_slope(y))                                       \
  _(SiluBackward, 2, 0, FieldsH, Same, mul(x, conj(silu_slope(y))))                                       \
  _(MishBackward, 2, 0, FloatingV, Same, x* mish_slope(y))                                                \
  _(SoftplusBackward, 2, 2, FloatingV, Same, softplus_backward(x, y, p[0], p[1]))                         \
  _(HardsigmoidBackward, 2, 0, Floating, Same, y > T(-3) && y < T(3) ? x / T(6) : T(0))                   \
  _(HardswishBackward, 2, 0, Floating, Same, y <= T(-3) ? T(0) : y >= T(3) ? x : x * (y / T(3) + T(0.5))) \
  _(HardtanhBackward, 2, 2, Floating, Same, y > p[0] && y < p[1] ? x : T(0))                              \
  _(ShrinkBackward, 2, 1, Floating, Same, y<-p[0] || y> p[0] ? x : T(0))                                  \
  _(LogSigmoidBackward, 2, 0, FloatingV, Same, x* log_sigmoid_slope(y))
