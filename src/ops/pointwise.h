// Arithmetic, rounding, transcendental, bitwise and special functions, element by element.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

#define RL_UNARY(name) inline Fn<Tensor(const Tensor& self)> name;
#define RL_BINARY(name) inline Fn<Tensor(const Tensor& self, const Tensor& other)> name;

inline Fn<Tensor(const Tensor& self, const Tensor& other, const Scalar& alpha)> add, sub, rsub;
RL_BINARY(mul)
RL_BINARY(div)
inline Fn<Tensor(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode)>
    div_mode;
RL_BINARY(floor_divide)
RL_BINARY(remainder)
RL_BINARY(fmod)
RL_BINARY(pow)
RL_BINARY(float_power)
RL_BINARY(atan2)
RL_BINARY(hypot)
RL_BINARY(maximum)
RL_BINARY(minimum)
RL_BINARY(fmax)
RL_BINARY(fmin)
RL_BINARY(logaddexp)
RL_BINARY(logaddexp2)
RL_BINARY(xlogy)
RL_BINARY(xlog1py)
RL_BINARY(copysign)
RL_BINARY(nextafter)
RL_BINARY(ldexp)
RL_BINARY(heaviside)
RL_BINARY(gcd)
RL_BINARY(lcm)
RL_BINARY(igamma)
RL_BINARY(igammac)
RL_BINARY(zeta)
RL_BINARY(bitwise_and)
RL_BINARY(bitwise_or)
RL_BINARY(bitwise_xor)
RL_BINARY(bitwise_left_shift)
RL_BINARY(bitwise_right_shift)
RL_UNARY(bitwise_not)

RL_UNARY(abs)
RL_UNARY(neg)
RL_UNARY(positive)
RL_UNARY(exp)
RL_UNARY(exp2)
RL_UNARY(expm1)
RL_UNARY(log)
RL_UNARY(log2)
RL_UNARY(log10)
RL_UNARY(log1p)
RL_UNARY(sin)
RL_UNARY(cos)
RL_UNARY(tan)
RL_UNARY(asin)
RL_UNARY(acos)
RL_UNARY(atan)
RL_UNARY(sinh)
RL_UNARY(cosh)
RL_UNARY(tanh)
RL_UNARY(asinh)
RL_UNARY(acosh)
RL_UNARY(atanh)
RL_UNARY(sinc)
RL_UNARY(sqrt)
RL_UNARY(rsqrt)
RL_UNARY(square)
RL_UNARY(reciprocal)
RL_UNARY(erf)
RL_UNARY(erfc)
RL_UNARY(erfinv)
RL_UNARY(erfcx)
RL_UNARY(ndtri)
RL_UNARY(lgamma)
RL_UNARY(digamma)
inline Fn<Tensor(int64_t n, const Tensor& self)> polygamma;
inline Fn<Tensor(const Tensor& self, int64_t p)> mvlgamma;
RL_UNARY(i0)
RL_UNARY(i0e)
RL_UNARY(i1)
RL_UNARY(i1e)
RL_UNARY(entr)
inline Fn<Tensor(const Tensor& self, std::optional<double> eps)> logit;
RL_UNARY(floor)
RL_UNARY(ceil)
RL_UNARY(trunc)
RL_UNARY(frac)
inline Fn<Tensor(const Tensor& self, int64_t decimals)> round;
RL_UNARY(sign)
RL_UNARY(sgn)
RL_UNARY(signbit)
RL_UNARY(deg2rad)
RL_UNARY(rad2deg)
inline Fn<Tensor(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                 std::optional<double> neginf)>
    nan_to_num;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self)> frexp;

inline Fn<Tensor(const Tensor& self, const OptScalar& min, const OptScalar& max)> clamp;
inline Fn<Tensor(const Tensor& self, const Tensor& min, const Tensor& max)> clamp_tensor;
inline Fn<Tensor(const Tensor& self, const Scalar& min)> clamp_min;
inline Fn<Tensor(const Tensor& self, const Tensor& min)> clamp_min_tensor;
inline Fn<Tensor(const Tensor& self, const Scalar& max)> clamp_max;
inline Fn<Tensor(const Tensor& self, const Tensor& max)> clamp_max_tensor;
inline Fn<Tensor(const Tensor& self, const Tensor& end, const Tensor& weight)> lerp;
inline Fn<Tensor(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value)>
    addcmul, addcdiv;

#undef RL_UNARY
#undef RL_BINARY

}  // namespace rushlight::ops
