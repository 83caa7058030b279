// Printed from the operator table by `python tools/print_operators.py`; do not edit.
// clang-format off

#pragma once
#include "rushlight/types.h"

namespace rushlight {

Tensor& copy_(Tensor& self, const Tensor& src, bool non_blocking = false);
Tensor lift_fresh(const Tensor& self);
Tensor fill(const Tensor& self, const Tensor& value);
Tensor fill(const Tensor& self, const Scalar& value);
Tensor& fill_diagonal_(Tensor& self, const Scalar& fill_value, bool wrap = false);
Tensor& fill_(Tensor& self, const Tensor& value);
Tensor& fill_(Tensor& self, const Scalar& value);
Tensor& zero_(Tensor& self);
Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor empty(IntArrayRef size, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor& empty_out(Tensor& out, IntArrayRef size, TensorOptions options, std::optional<MemoryFormat> memory_format);
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, TensorOptions options = {});
Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout, TensorOptions options = {});
Tensor zeros(IntArrayRef size, TensorOptions options = {});
Tensor& zeros_out(Tensor& out, IntArrayRef size, TensorOptions options);
Tensor ones(IntArrayRef size, TensorOptions options = {});
Tensor& ones_out(Tensor& out, IntArrayRef size, TensorOptions options);
Tensor full(IntArrayRef size, const Scalar& fill_value, TensorOptions options = {});
Tensor& full_out(Tensor& out, IntArrayRef size, const Scalar& fill_value, TensorOptions options);
Tensor scalar_tensor(const Scalar& s, TensorOptions options = {});
Tensor empty_like(const Tensor& self, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor zeros_like(const Tensor& self, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor ones_like(const Tensor& self, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor full_like(const Tensor& self, const Scalar& fill_value, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor arange(const Scalar& end_, TensorOptions options = {});
Tensor& arange_out(Tensor& out, const Scalar& end_, TensorOptions options);
Tensor arange(const Scalar& start, const Scalar& end_, const Scalar& step = 1, TensorOptions options = {});
Tensor& arange_out(Tensor& out, const Scalar& start, const Scalar& end_, const Scalar& step, TensorOptions options);
Tensor arange(const Scalar& start, const Scalar& end_, TensorOptions options);
Tensor& arange_out(Tensor& out, const Scalar& start, const Scalar& end_, TensorOptions options);
Tensor range(const Scalar& start, const Scalar& end_, const Scalar& step = 1, TensorOptions options = {});
Tensor& range_out(Tensor& out, const Scalar& start, const Scalar& end_, const Scalar& step, TensorOptions options);
Tensor range(const Scalar& start, const Scalar& end_, TensorOptions options);
Tensor& range_out(Tensor& out, const Scalar& start, const Scalar& end_, TensorOptions options);
Tensor linspace(const Scalar& start, const Scalar& end_, int64_t steps, TensorOptions options = {});
Tensor& linspace_out(Tensor& out, const Scalar& start, const Scalar& end_, int64_t steps, TensorOptions options);
Tensor logspace(const Scalar& start, const Scalar& end_, int64_t steps, double base = 10.0, TensorOptions options = {});
Tensor& logspace_out(Tensor& out, const Scalar& start, const Scalar& end_, int64_t steps, double base, TensorOptions options);
Tensor logspace(const Scalar& start, const Scalar& end_, int64_t steps, TensorOptions options);
Tensor& logspace_out(Tensor& out, const Scalar& start, const Scalar& end_, int64_t steps, TensorOptions options);
Tensor eye(int64_t n, TensorOptions options = {});
Tensor& eye_out(Tensor& out, int64_t n, TensorOptions options);
Tensor eye(int64_t n, int64_t m, TensorOptions options = {});
Tensor& eye_out(Tensor& out, int64_t n, int64_t m, TensorOptions options);
Tensor tril(const Tensor& self, int64_t diagonal = 0);
Tensor& tril_(Tensor& self, int64_t diagonal = 0);
Tensor& tril_out(Tensor& out, const Tensor& self, int64_t diagonal);
Tensor triu(const Tensor& self, int64_t diagonal = 0);
Tensor& triu_(Tensor& self, int64_t diagonal = 0);
Tensor& triu_out(Tensor& out, const Tensor& self, int64_t diagonal);
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = {});
Tensor tril_indices(int64_t row, int64_t col, TensorOptions options);
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = {});
Tensor triu_indices(int64_t row, int64_t col, TensorOptions options);
Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& add_(Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& add_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha);
Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor& add_(Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& sub_(Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& sub_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha);
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor& sub_(Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor subtract(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& subtract_(Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& subtract_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha);
Tensor subtract(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor& subtract_(Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor mul(const Tensor& self, const Tensor& other);
Tensor& mul_(Tensor& self, const Tensor& other);
Tensor& mul_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor mul(const Tensor& self, const Scalar& other);
Tensor& mul_(Tensor& self, const Scalar& other);
Tensor multiply(const Tensor& self, const Tensor& other);
Tensor& multiply_(Tensor& self, const Tensor& other);
Tensor& multiply_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor multiply(const Tensor& self, const Scalar& other);
Tensor& multiply_(Tensor& self, const Scalar& other);
Tensor div(const Tensor& self, const Tensor& other);
Tensor& div_(Tensor& self, const Tensor& other);
Tensor& div_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor div(const Tensor& self, const Scalar& other);
Tensor& div_(Tensor& self, const Scalar& other);
Tensor div(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor& div_(Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor& div_out(Tensor& out, const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor div(const Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode);
Tensor& div_(Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode);
Tensor divide(const Tensor& self, const Tensor& other);
Tensor& divide_(Tensor& self, const Tensor& other);
Tensor& divide_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor divide(const Tensor& self, const Scalar& other);
Tensor& divide_(Tensor& self, const Scalar& other);
Tensor divide(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor& divide_(Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor& divide_out(Tensor& out, const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor divide(const Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode);
Tensor& divide_(Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode);
Tensor true_divide(const Tensor& self, const Tensor& other);
Tensor& true_divide_(Tensor& self, const Tensor& other);
Tensor& true_divide_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor true_divide(const Tensor& self, const Scalar& other);
Tensor& true_divide_(Tensor& self, const Scalar& other);
Tensor floor_divide(const Tensor& self, const Tensor& other);
Tensor& floor_divide_(Tensor& self, const Tensor& other);
Tensor& floor_divide_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor remainder(const Tensor& self, const Tensor& other);
Tensor& remainder_(Tensor& self, const Tensor& other);
Tensor& remainder_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor remainder(const Tensor& self, const Scalar& other);
Tensor& remainder_(Tensor& self, const Scalar& other);
Tensor fmod(const Tensor& self, const Tensor& other);
Tensor& fmod_(Tensor& self, const Tensor& other);
Tensor& fmod_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor fmod(const Tensor& self, const Scalar& other);
Tensor& fmod_(Tensor& self, const Scalar& other);
Tensor maximum(const Tensor& self, const Tensor& other);
Tensor& maximum_(Tensor& self, const Tensor& other);
Tensor& maximum_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor minimum(const Tensor& self, const Tensor& other);
Tensor& minimum_(Tensor& self, const Tensor& other);
Tensor& minimum_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor fmax(const Tensor& self, const Tensor& other);
Tensor& fmax_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor fmin(const Tensor& self, const Tensor& other);
Tensor& fmin_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor clamp(const Tensor& self, const std::optional<Tensor>& min = std::nullopt, const std::optional<Tensor>& max = std::nullopt);
Tensor& clamp_(Tensor& self, const std::optional<Tensor>& min = std::nullopt, const std::optional<Tensor>& max = std::nullopt);
Tensor& clamp_out(Tensor& out, const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max);
Tensor clamp(const Tensor& self, const std::optional<Scalar>& min = std::nullopt, const std::optional<Scalar>& max = std::nullopt);
Tensor& clamp_(Tensor& self, const std::optional<Scalar>& min = std::nullopt, const std::optional<Scalar>& max = std::nullopt);
Tensor& clamp_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
Tensor clamp_min(const Tensor& self, const Tensor& min);
Tensor& clamp_min_(Tensor& self, const Tensor& min);
Tensor& clamp_min_out(Tensor& out, const Tensor& self, const Tensor& min);
Tensor clamp_max(const Tensor& self, const Tensor& max);
Tensor& clamp_max_(Tensor& self, const Tensor& max);
Tensor& clamp_max_out(Tensor& out, const Tensor& self, const Tensor& max);
Tensor clamp_min(const Tensor& self, const Scalar& min);
Tensor& clamp_min_(Tensor& self, const Scalar& min);
Tensor& clamp_min_out(Tensor& out, const Tensor& self, const Scalar& min);
Tensor clamp_max(const Tensor& self, const Scalar& max);
Tensor& clamp_max_(Tensor& self, const Scalar& max);
Tensor& clamp_max_out(Tensor& out, const Tensor& self, const Scalar& max);
Tensor clip(const Tensor& self, const std::optional<Tensor>& min = std::nullopt, const std::optional<Tensor>& max = std::nullopt);
Tensor& clip_(Tensor& self, const std::optional<Tensor>& min = std::nullopt, const std::optional<Tensor>& max = std::nullopt);
Tensor& clip_out(Tensor& out, const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max);
Tensor clip(const Tensor& self, const std::optional<Scalar>& min = std::nullopt, const std::optional<Scalar>& max = std::nullopt);
Tensor& clip_(Tensor& self, const std::optional<Scalar>& min = std::nullopt, const std::optional<Scalar>& max = std::nullopt);
Tensor& clip_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
Tensor lerp(const Tensor& self, const Tensor& end_, const Tensor& weight);
Tensor& lerp_(Tensor& self, const Tensor& end_, const Tensor& weight);
Tensor& lerp_out(Tensor& out, const Tensor& self, const Tensor& end_, const Tensor& weight);
Tensor lerp(const Tensor& self, const Tensor& end_, const Scalar& weight);
Tensor& lerp_(Tensor& self, const Tensor& end_, const Scalar& weight);
Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1);
Tensor& addcmul_(Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1);
Tensor& addcmul_out(Tensor& out, const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value);
Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1);
Tensor& addcdiv_(Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1);
Tensor& addcdiv_out(Tensor& out, const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value);
Tensor neg(const Tensor& self);
Tensor& neg_(Tensor& self);
Tensor& neg_out(Tensor& out, const Tensor& self);
Tensor negative(const Tensor& self);
Tensor& negative_(Tensor& self);
Tensor& negative_out(Tensor& out, const Tensor& self);
Tensor positive(const Tensor& self);
Tensor abs(const Tensor& self);
Tensor& abs_(Tensor& self);
Tensor& abs_out(Tensor& out, const Tensor& self);
Tensor absolute(const Tensor& self);
Tensor& absolute_(Tensor& self);
Tensor& absolute_out(Tensor& out, const Tensor& self);
Tensor sign(const Tensor& self);
Tensor& sign_(Tensor& self);
Tensor& sign_out(Tensor& out, const Tensor& self);
Tensor sgn(const Tensor& self);
Tensor& sgn_(Tensor& self);
Tensor& sgn_out(Tensor& out, const Tensor& self);
Tensor floor(const Tensor& self);
Tensor& floor_(Tensor& self);
Tensor& floor_out(Tensor& out, const Tensor& self);
Tensor ceil(const Tensor& self);
Tensor& ceil_(Tensor& self);
Tensor& ceil_out(Tensor& out, const Tensor& self);
Tensor trunc(const Tensor& self);
Tensor& trunc_(Tensor& self);
Tensor& trunc_out(Tensor& out, const Tensor& self);
Tensor fix(const Tensor& self);
Tensor& fix_(Tensor& self);
Tensor& fix_out(Tensor& out, const Tensor& self);
Tensor frac(const Tensor& self);
Tensor& frac_(Tensor& self);
Tensor& frac_out(Tensor& out, const Tensor& self);
Tensor round(const Tensor& self, int64_t decimals = 0);
Tensor& round_(Tensor& self, int64_t decimals = 0);
Tensor& round_out(Tensor& out, const Tensor& self, int64_t decimals);
Tensor exp(const Tensor& self);
Tensor& exp_(Tensor& self);
Tensor& exp_out(Tensor& out, const Tensor& self);
Tensor exp2(const Tensor& self);
Tensor& exp2_(Tensor& self);
Tensor& exp2_out(Tensor& out, const Tensor& self);
Tensor expm1(const Tensor& self);
Tensor& expm1_(Tensor& self);
Tensor& expm1_out(Tensor& out, const Tensor& self);
Tensor log(const Tensor& self);
Tensor& log_(Tensor& self);
Tensor& log_out(Tensor& out, const Tensor& self);
Tensor log2(const Tensor& self);
Tensor& log2_(Tensor& self);
Tensor& log2_out(Tensor& out, const Tensor& self);
Tensor log10(const Tensor& self);
Tensor& log10_(Tensor& self);
Tensor& log10_out(Tensor& out, const Tensor& self);
Tensor log1p(const Tensor& self);
Tensor& log1p_(Tensor& self);
Tensor& log1p_out(Tensor& out, const Tensor& self);
Tensor sqrt(const Tensor& self);
Tensor& sqrt_(Tensor& self);
Tensor& sqrt_out(Tensor& out, const Tensor& self);
Tensor rsqrt(const Tensor& self);
Tensor& rsqrt_(Tensor& self);
Tensor& rsqrt_out(Tensor& out, const Tensor& self);
Tensor reciprocal(const Tensor& self);
Tensor& reciprocal_(Tensor& self);
Tensor& reciprocal_out(Tensor& out, const Tensor& self);
Tensor square(const Tensor& self);
Tensor& square_(Tensor& self);
Tensor& square_out(Tensor& out, const Tensor& self);
Tensor pow(const Tensor& self, const Tensor& exponent);
Tensor& pow_(Tensor& self, const Tensor& exponent);
Tensor& pow_out(Tensor& out, const Tensor& self, const Tensor& exponent);
Tensor pow(const Tensor& self, const Scalar& exponent);
Tensor& pow_(Tensor& self, const Scalar& exponent);
Tensor float_power(const Tensor& self, const Tensor& exponent);
Tensor& float_power_(Tensor& self, const Tensor& exponent);
Tensor& float_power_out(Tensor& out, const Tensor& self, const Tensor& exponent);
Tensor float_power(const Tensor& self, const Scalar& exponent);
Tensor& float_power_(Tensor& self, const Scalar& exponent);
Tensor sin(const Tensor& self);
Tensor& sin_(Tensor& self);
Tensor& sin_out(Tensor& out, const Tensor& self);
Tensor cos(const Tensor& self);
Tensor& cos_(Tensor& self);
Tensor& cos_out(Tensor& out, const Tensor& self);
Tensor tan(const Tensor& self);
Tensor& tan_(Tensor& self);
Tensor& tan_out(Tensor& out, const Tensor& self);
Tensor asin(const Tensor& self);
Tensor& asin_(Tensor& self);
Tensor& asin_out(Tensor& out, const Tensor& self);
Tensor acos(const Tensor& self);
Tensor& acos_(Tensor& self);
Tensor& acos_out(Tensor& out, const Tensor& self);
Tensor atan(const Tensor& self);
Tensor& atan_(Tensor& self);
Tensor& atan_out(Tensor& out, const Tensor& self);
Tensor sinh(const Tensor& self);
Tensor& sinh_(Tensor& self);
Tensor& sinh_out(Tensor& out, const Tensor& self);
Tensor cosh(const Tensor& self);
Tensor& cosh_(Tensor& self);
Tensor& cosh_out(Tensor& out, const Tensor& self);
Tensor tanh(const Tensor& self);
Tensor& tanh_(Tensor& self);
Tensor& tanh_out(Tensor& out, const Tensor& self);
Tensor asinh(const Tensor& self);
Tensor& asinh_(Tensor& self);
Tensor& asinh_out(Tensor& out, const Tensor& self);
Tensor acosh(const Tensor& self);
Tensor& acosh_(Tensor& self);
Tensor& acosh_out(Tensor& out, const Tensor& self);
Tensor atanh(const Tensor& self);
Tensor& atanh_(Tensor& self);
Tensor& atanh_out(Tensor& out, const Tensor& self);
Tensor deg2rad(const Tensor& self);
Tensor& deg2rad_(Tensor& self);
Tensor& deg2rad_out(Tensor& out, const Tensor& self);
Tensor rad2deg(const Tensor& self);
Tensor& rad2deg_(Tensor& self);
Tensor& rad2deg_out(Tensor& out, const Tensor& self);
Tensor arcsin(const Tensor& self);
Tensor& arcsin_(Tensor& self);
Tensor& arcsin_out(Tensor& out, const Tensor& self);
Tensor arccos(const Tensor& self);
Tensor& arccos_(Tensor& self);
Tensor& arccos_out(Tensor& out, const Tensor& self);
Tensor arctan(const Tensor& self);
Tensor& arctan_(Tensor& self);
Tensor& arctan_out(Tensor& out, const Tensor& self);
Tensor arcsinh(const Tensor& self);
Tensor& arcsinh_(Tensor& self);
Tensor& arcsinh_out(Tensor& out, const Tensor& self);
Tensor arccosh(const Tensor& self);
Tensor& arccosh_(Tensor& self);
Tensor& arccosh_out(Tensor& out, const Tensor& self);
Tensor arctanh(const Tensor& self);
Tensor& arctanh_(Tensor& self);
Tensor& arctanh_out(Tensor& out, const Tensor& self);
Tensor bitwise_and(const Tensor& self, const Tensor& other);
Tensor& bitwise_and_(Tensor& self, const Tensor& other);
Tensor& bitwise_and_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor bitwise_and(const Tensor& self, const Scalar& other);
Tensor& bitwise_and_(Tensor& self, const Scalar& other);
Tensor bitwise_or(const Tensor& self, const Tensor& other);
Tensor& bitwise_or_(Tensor& self, const Tensor& other);
Tensor& bitwise_or_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor bitwise_or(const Tensor& self, const Scalar& other);
Tensor& bitwise_or_(Tensor& self, const Scalar& other);
Tensor bitwise_xor(const Tensor& self, const Tensor& other);
Tensor& bitwise_xor_(Tensor& self, const Tensor& other);
Tensor& bitwise_xor_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor bitwise_xor(const Tensor& self, const Scalar& other);
Tensor& bitwise_xor_(Tensor& self, const Scalar& other);
Tensor bitwise_left_shift(const Tensor& self, const Tensor& other);
Tensor& bitwise_left_shift_(Tensor& self, const Tensor& other);
Tensor& bitwise_left_shift_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor bitwise_left_shift(const Tensor& self, const Scalar& other);
Tensor& bitwise_left_shift_(Tensor& self, const Scalar& other);
Tensor bitwise_right_shift(const Tensor& self, const Tensor& other);
Tensor& bitwise_right_shift_(Tensor& self, const Tensor& other);
Tensor& bitwise_right_shift_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor bitwise_right_shift(const Tensor& self, const Scalar& other);
Tensor& bitwise_right_shift_(Tensor& self, const Scalar& other);
Tensor gcd(const Tensor& self, const Tensor& other);
Tensor& gcd_(Tensor& self, const Tensor& other);
Tensor& gcd_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor lcm(const Tensor& self, const Tensor& other);
Tensor& lcm_(Tensor& self, const Tensor& other);
Tensor& lcm_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor bitwise_not(const Tensor& self);
Tensor& bitwise_not_(Tensor& self);
Tensor& bitwise_not_out(Tensor& out, const Tensor& self);
Tensor atan2(const Tensor& self, const Tensor& other);
Tensor& atan2_(Tensor& self, const Tensor& other);
Tensor& atan2_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor arctan2(const Tensor& self, const Tensor& other);
Tensor& arctan2_(Tensor& self, const Tensor& other);
Tensor& arctan2_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor hypot(const Tensor& self, const Tensor& other);
Tensor& hypot_(Tensor& self, const Tensor& other);
Tensor& hypot_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor logaddexp(const Tensor& self, const Tensor& other);
Tensor& logaddexp_(Tensor& self, const Tensor& other);
Tensor& logaddexp_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor logaddexp2(const Tensor& self, const Tensor& other);
Tensor& logaddexp2_(Tensor& self, const Tensor& other);
Tensor& logaddexp2_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor xlogy(const Tensor& self, const Tensor& other);
Tensor& xlogy_(Tensor& self, const Tensor& other);
Tensor& xlogy_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor xlogy(const Tensor& self, const Scalar& other);
Tensor& xlogy_(Tensor& self, const Scalar& other);
Tensor copysign(const Tensor& self, const Tensor& other);
Tensor& copysign_(Tensor& self, const Tensor& other);
Tensor& copysign_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor copysign(const Tensor& self, const Scalar& other);
Tensor& copysign_(Tensor& self, const Scalar& other);
Tensor nextafter(const Tensor& self, const Tensor& other);
Tensor& nextafter_(Tensor& self, const Tensor& other);
Tensor& nextafter_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor heaviside(const Tensor& self, const Tensor& values);
Tensor& heaviside_(Tensor& self, const Tensor& values);
Tensor& heaviside_out(Tensor& out, const Tensor& self, const Tensor& values);
Tensor ldexp(const Tensor& self, const Tensor& other);
Tensor& ldexp_(Tensor& self, const Tensor& other);
Tensor& ldexp_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor ldexp(const Tensor& self, const Scalar& other);
Tensor& ldexp_(Tensor& self, const Scalar& other);
Tensor lgamma(const Tensor& self);
Tensor& lgamma_(Tensor& self);
Tensor& lgamma_out(Tensor& out, const Tensor& self);
Tensor digamma(const Tensor& self);
Tensor& digamma_(Tensor& self);
Tensor& digamma_out(Tensor& out, const Tensor& self);
Tensor polygamma(int64_t n, const Tensor& self);
Tensor& polygamma_out(Tensor& out, int64_t n, const Tensor& self);
Tensor& polygamma_(Tensor& self, int64_t n);
Tensor vander(const Tensor& x, std::optional<int64_t> N = std::nullopt, bool increasing = false);
Tensor mvlgamma(const Tensor& self, int64_t p);
Tensor& mvlgamma_(Tensor& self, int64_t p);
Tensor& mvlgamma_out(Tensor& out, const Tensor& self, int64_t p);
Tensor igamma(const Tensor& self, const Tensor& other);
Tensor& igamma_(Tensor& self, const Tensor& other);
Tensor& igamma_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor igammac(const Tensor& self, const Tensor& other);
Tensor& igammac_(Tensor& self, const Tensor& other);
Tensor& igammac_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor erf(const Tensor& self);
Tensor& erf_(Tensor& self);
Tensor& erf_out(Tensor& out, const Tensor& self);
Tensor erfc(const Tensor& self);
Tensor& erfc_(Tensor& self);
Tensor& erfc_out(Tensor& out, const Tensor& self);
Tensor erfinv(const Tensor& self);
Tensor& erfinv_(Tensor& self);
Tensor& erfinv_out(Tensor& out, const Tensor& self);
Tensor i0(const Tensor& self);
Tensor& i0_(Tensor& self);
Tensor& i0_out(Tensor& out, const Tensor& self);
Tensor sinc(const Tensor& self);
Tensor& sinc_(Tensor& self);
Tensor& sinc_out(Tensor& out, const Tensor& self);
Tensor logit(const Tensor& self, std::optional<double> eps = std::nullopt);
Tensor& logit_(Tensor& self, std::optional<double> eps = std::nullopt);
Tensor& logit_out(Tensor& out, const Tensor& self, std::optional<double> eps);
Tensor nan_to_num(const Tensor& self, std::optional<double> nan = std::nullopt, std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt);
Tensor& nan_to_num_(Tensor& self, std::optional<double> nan = std::nullopt, std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt);
Tensor& nan_to_num_out(Tensor& out, const Tensor& self, std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf);
std::tuple<Tensor, Tensor> frexp(const Tensor& self);
std::tuple<Tensor&, Tensor&> frexp_out(Tensor& out0, Tensor& out1, const Tensor& self);
Tensor eq(const Tensor& self, const Tensor& other);
Tensor& eq_(Tensor& self, const Tensor& other);
Tensor& eq_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor eq(const Tensor& self, const Scalar& other);
Tensor& eq_(Tensor& self, const Scalar& other);
Tensor ne(const Tensor& self, const Tensor& other);
Tensor& ne_(Tensor& self, const Tensor& other);
Tensor& ne_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor ne(const Tensor& self, const Scalar& other);
Tensor& ne_(Tensor& self, const Scalar& other);
Tensor lt(const Tensor& self, const Tensor& other);
Tensor& lt_(Tensor& self, const Tensor& other);
Tensor& lt_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor lt(const Tensor& self, const Scalar& other);
Tensor& lt_(Tensor& self, const Scalar& other);
Tensor le(const Tensor& self, const Tensor& other);
Tensor& le_(Tensor& self, const Tensor& other);
Tensor& le_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor le(const Tensor& self, const Scalar& other);
Tensor& le_(Tensor& self, const Scalar& other);
Tensor gt(const Tensor& self, const Tensor& other);
Tensor& gt_(Tensor& self, const Tensor& other);
Tensor& gt_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor gt(const Tensor& self, const Scalar& other);
Tensor& gt_(Tensor& self, const Scalar& other);
Tensor ge(const Tensor& self, const Tensor& other);
Tensor& ge_(Tensor& self, const Tensor& other);
Tensor& ge_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor ge(const Tensor& self, const Scalar& other);
Tensor& ge_(Tensor& self, const Scalar& other);
Tensor not_equal(const Tensor& self, const Tensor& other);
Tensor& not_equal_(Tensor& self, const Tensor& other);
Tensor& not_equal_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor not_equal(const Tensor& self, const Scalar& other);
Tensor& not_equal_(Tensor& self, const Scalar& other);
Tensor less(const Tensor& self, const Tensor& other);
Tensor& less_(Tensor& self, const Tensor& other);
Tensor& less_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor less(const Tensor& self, const Scalar& other);
Tensor& less_(Tensor& self, const Scalar& other);
Tensor less_equal(const Tensor& self, const Tensor& other);
Tensor& less_equal_(Tensor& self, const Tensor& other);
Tensor& less_equal_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor less_equal(const Tensor& self, const Scalar& other);
Tensor& less_equal_(Tensor& self, const Scalar& other);
Tensor greater(const Tensor& self, const Tensor& other);
Tensor& greater_(Tensor& self, const Tensor& other);
Tensor& greater_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor greater(const Tensor& self, const Scalar& other);
Tensor& greater_(Tensor& self, const Scalar& other);
Tensor greater_equal(const Tensor& self, const Tensor& other);
Tensor& greater_equal_(Tensor& self, const Tensor& other);
Tensor& greater_equal_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor greater_equal(const Tensor& self, const Scalar& other);
Tensor& greater_equal_(Tensor& self, const Scalar& other);
Tensor logical_and(const Tensor& self, const Tensor& other);
Tensor& logical_and_(Tensor& self, const Tensor& other);
Tensor& logical_and_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor logical_or(const Tensor& self, const Tensor& other);
Tensor& logical_or_(Tensor& self, const Tensor& other);
Tensor& logical_or_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor logical_xor(const Tensor& self, const Tensor& other);
Tensor& logical_xor_(Tensor& self, const Tensor& other);
Tensor& logical_xor_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor logical_not(const Tensor& self);
Tensor& logical_not_(Tensor& self);
Tensor& logical_not_out(Tensor& out, const Tensor& self);
Tensor isnan(const Tensor& self);
Tensor isinf(const Tensor& self);
Tensor isfinite(const Tensor& self);
Tensor isposinf(const Tensor& self);
Tensor& isposinf_out(Tensor& out, const Tensor& self);
Tensor isneginf(const Tensor& self);
Tensor& isneginf_out(Tensor& out, const Tensor& self);
Tensor signbit(const Tensor& self);
Tensor& signbit_out(Tensor& out, const Tensor& self);
Tensor isreal(const Tensor& self);
Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-05, double atol = 1e-08, bool equal_nan = false);
bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-05, double atol = 1e-08, bool equal_nan = false);
bool equal(const Tensor& self, const Tensor& other);
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);
Tensor& masked_fill_(Tensor& self, const Tensor& mask, const Tensor& value);
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);
Tensor& masked_fill_(Tensor& self, const Tensor& mask, const Scalar& value);
Tensor sigmoid(const Tensor& self);
Tensor& sigmoid_(Tensor& self);
Tensor& sigmoid_out(Tensor& out, const Tensor& self);
Tensor log_sigmoid(const Tensor& self);
Tensor& log_sigmoid_out(Tensor& out, const Tensor& self);
Tensor silu(const Tensor& self);
Tensor& silu_(Tensor& self);
Tensor& silu_out(Tensor& out, const Tensor& self);
Tensor mish(const Tensor& self);
Tensor& mish_(Tensor& self);
Tensor& mish_out(Tensor& out, const Tensor& self);
Tensor gelu(const Tensor& self, std::string_view approximate = "none");
Tensor& gelu_(Tensor& self, std::string_view approximate = "none");
Tensor& gelu_out(Tensor& out, const Tensor& self, std::string_view approximate);
Tensor softplus(const Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20);
Tensor& softplus_(Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20);
Tensor& softplus_out(Tensor& out, const Tensor& self, const Scalar& beta, const Scalar& threshold);
Tensor relu(const Tensor& self);
Tensor& relu_(Tensor& self);
Tensor& relu_out(Tensor& out, const Tensor& self);
Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value);
Tensor& threshold_(Tensor& self, const Scalar& threshold, const Scalar& value);
Tensor& threshold_out(Tensor& out, const Tensor& self, const Scalar& threshold, const Scalar& value);
Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope = 0.01);
Tensor& leaky_relu_(Tensor& self, const Scalar& negative_slope = 0.01);
Tensor& leaky_relu_out(Tensor& out, const Tensor& self, const Scalar& negative_slope);
Tensor hardtanh(const Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1);
Tensor& hardtanh_(Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1);
Tensor& hardtanh_out(Tensor& out, const Tensor& self, const Scalar& min_val, const Scalar& max_val);
Tensor hardsigmoid(const Tensor& self);
Tensor& hardsigmoid_(Tensor& self);
Tensor& hardsigmoid_out(Tensor& out, const Tensor& self);
Tensor hardswish(const Tensor& self);
Tensor& hardswish_(Tensor& self);
Tensor& hardswish_out(Tensor& out, const Tensor& self);
Tensor softshrink(const Tensor& self, const Scalar& lambd = 0.5);
Tensor& softshrink_out(Tensor& out, const Tensor& self, const Scalar& lambd);
Tensor hardshrink(const Tensor& self, const Scalar& lambd = 0.5);
Tensor& hardshrink_out(Tensor& out, const Tensor& self, const Scalar& lambd);
Tensor elu(const Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1, const Scalar& input_scale = 1);
Tensor& elu_(Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1, const Scalar& input_scale = 1);
Tensor& elu_out(Tensor& out, const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale);
Tensor selu(const Tensor& self);
Tensor& selu_(Tensor& self);
Tensor celu(const Tensor& self, const Scalar& alpha = 1.0);
Tensor& celu_(Tensor& self, const Scalar& alpha = 1.0);
Tensor prelu(const Tensor& self, const Tensor& weight);
Tensor glu(const Tensor& self, int64_t dim = -1);
Tensor view_as_real(const Tensor& self);
Tensor view_as_complex(const Tensor& self);
Tensor real(const Tensor& self);
Tensor imag(const Tensor& self);
Tensor conj_physical(const Tensor& self);
Tensor& conj_physical_(Tensor& self);
Tensor& conj_physical_out(Tensor& out, const Tensor& self);
Tensor conj(const Tensor& self);
Tensor resolve_conj(const Tensor& self);
Tensor resolve_neg(const Tensor& self);
Tensor angle(const Tensor& self);
Tensor& angle_out(Tensor& out, const Tensor& self);
Tensor complex(const Tensor& real, const Tensor& imag);
Tensor& complex_out(Tensor& out, const Tensor& real, const Tensor& imag);
Tensor polar(const Tensor& abs, const Tensor& angle);
Tensor& polar_out(Tensor& out, const Tensor& abs, const Tensor& angle);
Tensor alias(const Tensor& self);
Tensor detach(const Tensor& self);
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor t(const Tensor& self);
Tensor permute(const Tensor& self, IntArrayRef dims);
Tensor squeeze(const Tensor& self);
Tensor squeeze(const Tensor& self, int64_t dim);
Tensor squeeze(const Tensor& self, IntArrayRef dim);
Tensor unsqueeze(const Tensor& self, int64_t dim);
Tensor select(const Tensor& self, int64_t dim, int64_t index);
Tensor slice(const Tensor& self, int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end_ = std::nullopt, int64_t step = 1);
Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset = std::nullopt);
Tensor diagonal(const Tensor& self, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
std::vector<Tensor> unbind(const Tensor& self, int64_t dim = 0);
std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim = 0);
Tensor slice_inverse(const Tensor& self, const Tensor& src, int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end_ = std::nullopt, int64_t step = 1);
Tensor reshape(const Tensor& self, IntArrayRef shape);
Tensor broadcast_to(const Tensor& self, IntArrayRef size);
Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1);
Tensor swapdims(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor adjoint(const Tensor& self);
Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination);
Tensor movedim(const Tensor& self, int64_t source, int64_t destination);
Tensor moveaxis(const Tensor& self, IntArrayRef source, IntArrayRef destination);
Tensor moveaxis(const Tensor& self, int64_t source, int64_t destination);
Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length);
Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length);
Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1);
Tensor ravel(const Tensor& self);
Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes);
std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& self, IntArrayRef split_size, int64_t dim = 0);
std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim = 0);
std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, int64_t dim = 0);
Tensor flip(const Tensor& self, IntArrayRef dims);
Tensor fliplr(const Tensor& self);
Tensor flipud(const Tensor& self);
Tensor rot90(const Tensor& self, int64_t k = 1, IntArrayRef dims = {0, 1});
Tensor diag_embed(const Tensor& self, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
Tensor diag(const Tensor& self, int64_t diagonal = 0);
Tensor& diag_out(Tensor& out, const Tensor& self, int64_t diagonal);
Tensor& squeeze_(Tensor& self);
Tensor& squeeze_(Tensor& self, int64_t dim);
Tensor& squeeze_(Tensor& self, IntArrayRef dim);
Tensor& unsqueeze_(Tensor& self, int64_t dim);
Tensor& t_(Tensor& self);
Tensor& transpose_(Tensor& self, int64_t dim0, int64_t dim1);
Tensor& swapaxes_(Tensor& self, int64_t axis0, int64_t axis1);
Tensor& swapdims_(Tensor& self, int64_t dim0, int64_t dim1);
Tensor& as_strided_(Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset = std::nullopt);
Tensor& resize_(Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format = std::nullopt);
std::vector<Tensor> broadcast_tensors(TensorList tensors);
Tensor atleast_1d(const Tensor& self);
std::vector<Tensor> atleast_1d(TensorList tensors);
Tensor atleast_2d(const Tensor& self);
std::vector<Tensor> atleast_2d(TensorList tensors);
Tensor atleast_3d(const Tensor& self);
std::vector<Tensor> atleast_3d(TensorList tensors);
std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing);
Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor);
Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor);
Tensor channel_shuffle(const Tensor& self, int64_t groups);
Tensor alias_copy(const Tensor& self);
Tensor& alias_copy_out(Tensor& out, const Tensor& self);
Tensor detach_copy(const Tensor& self);
Tensor& detach_copy_out(Tensor& out, const Tensor& self);
Tensor indices_copy(const Tensor& self);
Tensor& indices_copy_out(Tensor& out, const Tensor& self);
Tensor values_copy(const Tensor& self);
Tensor& values_copy_out(Tensor& out, const Tensor& self);
Tensor crow_indices_copy(const Tensor& self);
Tensor& crow_indices_copy_out(Tensor& out, const Tensor& self);
Tensor col_indices_copy(const Tensor& self);
Tensor& col_indices_copy_out(Tensor& out, const Tensor& self);
Tensor ccol_indices_copy(const Tensor& self);
Tensor& ccol_indices_copy_out(Tensor& out, const Tensor& self);
Tensor row_indices_copy(const Tensor& self);
Tensor& row_indices_copy_out(Tensor& out, const Tensor& self);
Tensor view_as_complex_copy(const Tensor& self);
Tensor& view_as_complex_copy_out(Tensor& out, const Tensor& self);
Tensor view_as_real_copy(const Tensor& self);
Tensor& view_as_real_copy_out(Tensor& out, const Tensor& self);
Tensor as_strided_copy(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset = std::nullopt);
Tensor& as_strided_copy_out(Tensor& out, const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset);
Tensor diagonal_copy(const Tensor& self, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor& diagonal_copy_out(Tensor& out, const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2);
Tensor expand_copy(const Tensor& self, IntArrayRef size, bool implicit = false);
Tensor& expand_copy_out(Tensor& out, const Tensor& self, IntArrayRef size, bool implicit);
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length);
Tensor& narrow_copy_out(Tensor& out, const Tensor& self, int64_t dim, int64_t start, int64_t length);
Tensor permute_copy(const Tensor& self, IntArrayRef dims);
Tensor& permute_copy_out(Tensor& out, const Tensor& self, IntArrayRef dims);
Tensor select_copy(const Tensor& self, int64_t dim, int64_t index);
Tensor& select_copy_out(Tensor& out, const Tensor& self, int64_t dim, int64_t index);
Tensor slice_copy(const Tensor& self, int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end_ = std::nullopt, int64_t step = 1);
Tensor& slice_copy_out(Tensor& out, const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end_, int64_t step);
std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0);
Tensor squeeze_copy(const Tensor& self);
Tensor& squeeze_copy_out(Tensor& out, const Tensor& self);
Tensor squeeze_copy(const Tensor& self, int64_t dim);
Tensor& squeeze_copy_out(Tensor& out, const Tensor& self, int64_t dim);
Tensor squeeze_copy(const Tensor& self, IntArrayRef dim);
Tensor& squeeze_copy_out(Tensor& out, const Tensor& self, IntArrayRef dim);
Tensor t_copy(const Tensor& self);
Tensor& t_copy_out(Tensor& out, const Tensor& self);
Tensor transpose_copy(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor& transpose_copy_out(Tensor& out, const Tensor& self, int64_t dim0, int64_t dim1);
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim = 0);
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step);
Tensor& unfold_copy_out(Tensor& out, const Tensor& self, int64_t dimension, int64_t size, int64_t step);
Tensor unsqueeze_copy(const Tensor& self, int64_t dim);
Tensor& unsqueeze_copy_out(Tensor& out, const Tensor& self, int64_t dim);
Tensor view_copy(const Tensor& self, IntArrayRef size);
Tensor& view_copy_out(Tensor& out, const Tensor& self, IntArrayRef size);
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index);
Tensor& select_scatter_out(Tensor& out, const Tensor& self, const Tensor& src, int64_t dim, int64_t index);
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end_ = std::nullopt, int64_t step = 1);
Tensor& slice_scatter_out(Tensor& out, const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end_, int64_t step);
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor& diagonal_scatter_out(Tensor& out, const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2);
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset = std::nullopt);
Tensor& as_strided_scatter_out(Tensor& out, const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset);
std::vector<Tensor> hsplit(const Tensor& self, int64_t sections);
std::vector<Tensor> hsplit(const Tensor& self, IntArrayRef indices);
std::vector<Tensor> vsplit(const Tensor& self, int64_t sections);
std::vector<Tensor> vsplit(const Tensor& self, IntArrayRef indices);
std::vector<Tensor> dsplit(const Tensor& self, int64_t sections);
std::vector<Tensor> dsplit(const Tensor& self, IntArrayRef indices);
std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& tensor_indices_or_sections, int64_t dim = 0);
Tensor& resize_as_(Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor diagflat(const Tensor& self, int64_t offset = 0);
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0);
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim = 0);
Tensor mm(const Tensor& self, const Tensor& mat2);
Tensor& mm_out(Tensor& out, const Tensor& self, const Tensor& mat2);
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& addmm_(Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& addmm_out(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha);
Tensor bmm(const Tensor& self, const Tensor& mat2);
Tensor& bmm_out(Tensor& out, const Tensor& self, const Tensor& mat2);
Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& baddbmm_(Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& baddbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha);
Tensor mv(const Tensor& self, const Tensor& vec);
Tensor& mv_out(Tensor& out, const Tensor& self, const Tensor& vec);
Tensor dot(const Tensor& self, const Tensor& tensor);
Tensor& dot_out(Tensor& out, const Tensor& self, const Tensor& tensor);
Tensor vdot(const Tensor& self, const Tensor& other);
Tensor& vdot_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor outer(const Tensor& self, const Tensor& vec2);
Tensor& outer_out(Tensor& out, const Tensor& self, const Tensor& vec2);
Tensor ger(const Tensor& self, const Tensor& vec2);
Tensor& ger_out(Tensor& out, const Tensor& self, const Tensor& vec2);
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& addr_(Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& addr_out(Tensor& out, const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha);
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& addmv_(Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& addmv_out(Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha);
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& addbmm_(Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor& addbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha);
Tensor matmul(const Tensor& self, const Tensor& other);
Tensor& matmul_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor inner(const Tensor& self, const Tensor& other);
Tensor& inner_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other);
Tensor& tensordot_out(Tensor& out, const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other);
Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups);
Tensor sum(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
Tensor& sum_out(Tensor& out, const Tensor& self, std::optional<ScalarType> dtype);
Tensor sum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& sum_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor mean(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
Tensor& mean_out(Tensor& out, const Tensor& self, std::optional<ScalarType> dtype);
Tensor mean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& mean_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor nansum(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& nansum_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& nanmean_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor all(const Tensor& self);
Tensor& all_out(Tensor& out, const Tensor& self);
Tensor all(const Tensor& self, int64_t dim, bool keepdim = false);
Tensor& all_out(Tensor& out, const Tensor& self, int64_t dim, bool keepdim);
Tensor all(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false);
Tensor& all_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim);
Tensor any(const Tensor& self);
Tensor& any_out(Tensor& out, const Tensor& self);
Tensor any(const Tensor& self, int64_t dim, bool keepdim = false);
Tensor& any_out(Tensor& out, const Tensor& self, int64_t dim, bool keepdim);
Tensor any(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false);
Tensor& any_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim);
Tensor count_nonzero(const Tensor& self, IntArrayRef dim);
Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim = std::nullopt);
Tensor trace(const Tensor& self);
Tensor prod(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
Tensor& prod_out(Tensor& out, const Tensor& self, std::optional<ScalarType> dtype);
Tensor prod(const Tensor& self, int64_t dim, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& prod_out(Tensor& out, const Tensor& self, int64_t dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor amax(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false);
Tensor& amax_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim);
Tensor amin(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false);
Tensor& amin_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim);
std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
std::tuple<Tensor&, Tensor&> aminmax_out(Tensor& out0, Tensor& out1, const Tensor& self, std::optional<int64_t> dim, bool keepdim);
Tensor max(const Tensor& self);
Tensor& max_out(Tensor& out, const Tensor& self);
Tensor max(const Tensor& self, const Tensor& other);
Tensor& max_out(Tensor& out, const Tensor& self, const Tensor& other);
std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false);
std::tuple<Tensor&, Tensor&> max_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t dim, bool keepdim);
Tensor min(const Tensor& self);
Tensor& min_out(Tensor& out, const Tensor& self);
Tensor min(const Tensor& self, const Tensor& other);
Tensor& min_out(Tensor& out, const Tensor& self, const Tensor& other);
std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim = false);
std::tuple<Tensor&, Tensor&> min_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t dim, bool keepdim);
Tensor argmax(const Tensor& self, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
Tensor& argmax_out(Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool keepdim);
Tensor argmin(const Tensor& self, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
Tensor& argmin_out(Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool keepdim);
Tensor var(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false);
Tensor& var_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim);
Tensor var(const Tensor& self, bool unbiased);
Tensor var(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
Tensor& var_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim);
Tensor std(const Tensor& self, bool unbiased);
Tensor std(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false);
Tensor& std_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim);
Tensor std(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
Tensor& std_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim);
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased);
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false);
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased);
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false);
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype);
Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype);
Tensor norm(const Tensor& self, const Scalar& p = 2);
Tensor& norm_out(Tensor& out, const Tensor& self, const Scalar& p);
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, ScalarType dtype);
Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, ScalarType dtype);
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim = false);
Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim);
Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false);
Tensor& logsumexp_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim);
Tensor index(const Tensor& self, TensorList indices);
Tensor& index_put_(Tensor& self, TensorList indices, const Tensor& values, bool accumulate = false);
Tensor index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate = false);
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index);
Tensor& index_select_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index);
Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1);
Tensor& index_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1);
Tensor& index_add_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha);
Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
Tensor& index_copy_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
Tensor& index_copy_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value);
Tensor& index_fill_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value);
Tensor& index_fill_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value);
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor& index_fill_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor take(const Tensor& self, const Tensor& index);
Tensor& take_out(Tensor& out, const Tensor& self, const Tensor& index);
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate = false);
Tensor& put_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate = false);
Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad = false);
Tensor& gather_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad);
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor& scatter_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor& scatter_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor& scatter_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor& scatter_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor& scatter_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor& scatter_add_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self = true);
Tensor& scatter_reduce_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self = true);
Tensor& scatter_reduce_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self);
Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, bool include_self = true);
Tensor& index_reduce_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, bool include_self = true);
Tensor& index_reduce_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, bool include_self);
Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim = std::nullopt);
Tensor& take_along_dim_out(Tensor& out, const Tensor& self, const Tensor& indices, std::optional<int64_t> dim);
Tensor nonzero(const Tensor& self);
Tensor& nonzero_out(Tensor& out, const Tensor& self);
Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value = -1);
Tensor& nonzero_static_out(Tensor& out, const Tensor& self, int64_t size, int64_t fill_value);
Tensor argwhere(const Tensor& self);
std::vector<Tensor> nonzero_numpy(const Tensor& self);
Tensor masked_select(const Tensor& self, const Tensor& mask);
Tensor& masked_select_out(Tensor& out, const Tensor& self, const Tensor& mask);
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);
Tensor& masked_scatter_(Tensor& self, const Tensor& mask, const Tensor& source);
Tensor& masked_scatter_out(Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& source);
Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims = {});
Tensor tile(const Tensor& self, IntArrayRef dims);
Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim = std::nullopt, std::optional<int64_t> output_size = std::nullopt);
Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim = std::nullopt, std::optional<int64_t> output_size = std::nullopt);
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size = std::nullopt);
Tensor cat(TensorList tensors, int64_t dim = 0);
Tensor& cat_out(Tensor& out, TensorList tensors, int64_t dim);
Tensor concat(TensorList tensors, int64_t dim = 0);
Tensor& concat_out(Tensor& out, TensorList tensors, int64_t dim);
Tensor concatenate(TensorList tensors, int64_t dim = 0);
Tensor& concatenate_out(Tensor& out, TensorList tensors, int64_t dim);
Tensor stack(TensorList tensors, int64_t dim = 0);
Tensor& stack_out(Tensor& out, TensorList tensors, int64_t dim);
Tensor hstack(TensorList tensors);
Tensor& hstack_out(Tensor& out, TensorList tensors);
Tensor vstack(TensorList tensors);
Tensor& vstack_out(Tensor& out, TensorList tensors);
Tensor row_stack(TensorList tensors);
Tensor& row_stack_out(Tensor& out, TensorList tensors);
Tensor dstack(TensorList tensors);
Tensor& dstack_out(Tensor& out, TensorList tensors);
Tensor column_stack(TensorList tensors);
Tensor& column_stack_out(Tensor& out, TensorList tensors);
Tensor block_diag(TensorList tensors);
Tensor cartesian_prod(TensorList tensors);
Tensor combinations(const Tensor& self, int64_t r = 2, bool with_replacement = false);
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor& cumsum_(Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor& cumsum_out(Tensor& out, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor& cumprod_(Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor& cumprod_out(Tensor& out, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);
std::tuple<Tensor, Tensor> cummax(const Tensor& self, int64_t dim);
std::tuple<Tensor&, Tensor&> cummax_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t dim);
std::tuple<Tensor, Tensor> cummin(const Tensor& self, int64_t dim);
std::tuple<Tensor&, Tensor&> cummin_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t dim);
Tensor logcumsumexp(const Tensor& self, int64_t dim);
Tensor& logcumsumexp_out(Tensor& out, const Tensor& self, int64_t dim);
Tensor diff(const Tensor& self, int64_t n = 1, int64_t dim = -1, const std::optional<Tensor>& prepend = std::nullopt, const std::optional<Tensor>& append = std::nullopt);
Tensor& diff_out(Tensor& out, const Tensor& self, int64_t n, int64_t dim, const std::optional<Tensor>& prepend, const std::optional<Tensor>& append);
std::tuple<Tensor, Tensor> sort(const Tensor& self, std::optional<bool> stable, int64_t dim = -1, bool descending = false);
std::tuple<Tensor&, Tensor&> sort_out(Tensor& out0, Tensor& out1, const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending);
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1, bool descending = false);
std::tuple<Tensor&, Tensor&> sort_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t dim, bool descending);
Tensor argsort(const Tensor& self, bool stable, int64_t dim = -1, bool descending = false);
Tensor& argsort_out(Tensor& out, const Tensor& self, bool stable, int64_t dim, bool descending);
Tensor argsort(const Tensor& self, int64_t dim = -1, bool descending = false);
Tensor msort(const Tensor& self);
Tensor& msort_out(Tensor& out, const Tensor& self);
std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true);
std::tuple<Tensor&, Tensor&> topk_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted);
std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim = -1, bool keepdim = false);
std::tuple<Tensor&, Tensor&> kthvalue_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t k, int64_t dim, bool keepdim);
Tensor median(const Tensor& self);
std::tuple<Tensor, Tensor> median(const Tensor& self, int64_t dim, bool keepdim = false);
std::tuple<Tensor&, Tensor&> median_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t dim, bool keepdim);
Tensor nanmedian(const Tensor& self);
std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, int64_t dim, bool keepdim = false);
std::tuple<Tensor&, Tensor&> nanmedian_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t dim, bool keepdim);
std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim = -1, bool keepdim = false);
std::tuple<Tensor&, Tensor&> mode_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t dim, bool keepdim);
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false, std::string_view interpolation = "linear");
Tensor& quantile_out(Tensor& out, const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation);
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false, std::string_view interpolation = "linear");
Tensor& nanquantile_out(Tensor& out, const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation);
Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false, std::string_view interpolation = "linear");
Tensor& quantile_out(Tensor& out, const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation);
Tensor nanquantile(const Tensor& self, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false, std::string_view interpolation = "linear");
Tensor& nanquantile_out(Tensor& out, const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation);
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32 = false, bool right = false, std::optional<std::string_view> side = std::nullopt, const std::optional<Tensor>& sorter = std::nullopt);
Tensor& searchsorted_out(Tensor& out, const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right, std::optional<std::string_view> side, const std::optional<Tensor>& sorter);
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32 = false, bool right = false);
Tensor& bucketize_out(Tensor& out, const Tensor& self, const Tensor& boundaries, bool out_int32, bool right);
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false, bool invert = false);
Tensor& isin_out(Tensor& out, const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert);
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32 = false, bool right = false, std::optional<std::string_view> side = std::nullopt, const std::optional<Tensor>& sorter = std::nullopt);
Tensor& searchsorted_out(Tensor& out, const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right, std::optional<std::string_view> side, const std::optional<Tensor>& sorter);
Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32 = false, bool right = false);
Tensor& bucketize_out(Tensor& out, const Scalar& self, const Tensor& boundaries, bool out_int32, bool right);
Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique = false, bool invert = false);
Tensor& isin_out(Tensor& out, const Tensor& elements, const Scalar& test_element, bool assume_unique, bool invert);
Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique = false, bool invert = false);
Tensor& isin_out(Tensor& out, const Scalar& element, const Tensor& test_elements, bool assume_unique, bool invert);
std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins, const std::optional<Tensor>& weight = std::nullopt, bool density = false);
std::tuple<Tensor&, Tensor&> histogram_out(Tensor& out0, Tensor& out1, const Tensor& self, const Tensor& bins, const std::optional<Tensor>& weight, bool density);
std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins = 100, std::optional<ArrayRef<double>> range = std::nullopt, const std::optional<Tensor>& weight = std::nullopt, bool density = false);
std::tuple<Tensor&, Tensor&> histogram_out(Tensor& out0, Tensor& out1, const Tensor& self, int64_t bins, std::optional<ArrayRef<double>> range, const std::optional<Tensor>& weight, bool density);
Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = std::nullopt, int64_t minlength = 0);
Tensor histc(const Tensor& self, int64_t bins = 100, const Scalar& min = 0, const Scalar& max = 0);
Tensor& histc_out(Tensor& out, const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max);
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool sorted = true, bool return_inverse = false, bool return_counts = false);
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool return_inverse = false, bool return_counts = false, std::optional<int64_t> dim = std::nullopt);
Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor& softmax_out(Tensor& out, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor& log_softmax_out(Tensor& out, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);
Tensor& uniform_(Tensor& self, double from_ = 0, double to = 1, Generator* generator = nullptr);
Tensor& normal_(Tensor& self, double mean = 0, double std = 1, Generator* generator = nullptr);
Tensor& log_normal_(Tensor& self, double mean = 1, double std = 2, Generator* generator = nullptr);
Tensor& cauchy_(Tensor& self, double median = 0, double sigma = 1, Generator* generator = nullptr);
Tensor& exponential_(Tensor& self, double lambd = 1, Generator* generator = nullptr);
Tensor& geometric_(Tensor& self, double p, Generator* generator = nullptr);
Tensor& bernoulli_(Tensor& self, double p = 0.5, Generator* generator = nullptr);
Tensor& random_(Tensor& self, Generator* generator = nullptr);
Tensor& random_(Tensor& self, int64_t to, Generator* generator = nullptr);
Tensor& random_(Tensor& self, int64_t from_, std::optional<int64_t> to, Generator* generator = nullptr);
Tensor rand(IntArrayRef size, TensorOptions options = {});
Tensor& rand_out(Tensor& out, IntArrayRef size, TensorOptions options);
Tensor rand(IntArrayRef size, Generator* generator, TensorOptions options = {});
Tensor& rand_out(Tensor& out, IntArrayRef size, Generator* generator, TensorOptions options);
Tensor randn(IntArrayRef size, TensorOptions options = {});
Tensor& randn_out(Tensor& out, IntArrayRef size, TensorOptions options);
Tensor randn(IntArrayRef size, Generator* generator, TensorOptions options = {});
Tensor& randn_out(Tensor& out, IntArrayRef size, Generator* generator, TensorOptions options);
Tensor randint(int64_t high, IntArrayRef size, TensorOptions options = {});
Tensor& randint_out(Tensor& out, int64_t high, IntArrayRef size, TensorOptions options);
Tensor randint(int64_t high, IntArrayRef size, Generator* generator, TensorOptions options = {});
Tensor& randint_out(Tensor& out, int64_t high, IntArrayRef size, Generator* generator, TensorOptions options);
Tensor randint(int64_t low, int64_t high, IntArrayRef size, TensorOptions options = {});
Tensor& randint_out(Tensor& out, int64_t low, int64_t high, IntArrayRef size, TensorOptions options);
Tensor randint(int64_t low, int64_t high, IntArrayRef size, Generator* generator, TensorOptions options = {});
Tensor& randint_out(Tensor& out, int64_t low, int64_t high, IntArrayRef size, Generator* generator, TensorOptions options);
Tensor randperm(int64_t n, TensorOptions options = {});
Tensor& randperm_out(Tensor& out, int64_t n, TensorOptions options);
Tensor randperm(int64_t n, Generator* generator, TensorOptions options = {});
Tensor& randperm_out(Tensor& out, int64_t n, Generator* generator, TensorOptions options);
Tensor normal(double mean, double std, IntArrayRef size, TensorOptions options = {});
Tensor& normal_out(Tensor& out, double mean, double std, IntArrayRef size, TensorOptions options);
Tensor normal(double mean, double std, IntArrayRef size, Generator* generator, TensorOptions options = {});
Tensor& normal_out(Tensor& out, double mean, double std, IntArrayRef size, Generator* generator, TensorOptions options);
Tensor rand_like(const Tensor& self, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor rand_like(const Tensor& self, Generator* generator, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randn_like(const Tensor& self, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randn_like(const Tensor& self, Generator* generator, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randint_like(const Tensor& self, int64_t high, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randint_like(const Tensor& self, int64_t high, Generator* generator, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, Generator* generator, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor& bernoulli_(Tensor& self, const Tensor& p, Generator* generator = nullptr);
Tensor bernoulli(const Tensor& self, Generator* generator = nullptr);
Tensor& bernoulli_out(Tensor& out, const Tensor& self, Generator* generator);
Tensor bernoulli(const Tensor& self, double p, Generator* generator = nullptr);
Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator = nullptr);
Tensor& normal_out(Tensor& out, const Tensor& mean, const Tensor& std, Generator* generator);
Tensor normal(const Tensor& mean, double std = 1, Generator* generator = nullptr);
Tensor& normal_out(Tensor& out, const Tensor& mean, double std, Generator* generator);
Tensor normal(double mean, const Tensor& std, Generator* generator = nullptr);
Tensor& normal_out(Tensor& out, double mean, const Tensor& std, Generator* generator);
Tensor poisson(const Tensor& self, Generator* generator = nullptr);
Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator = nullptr);
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement = false, Generator* generator = nullptr);
Tensor& multinomial_out(Tensor& out, const Tensor& self, int64_t num_samples, bool replacement, Generator* generator);
Tensor rrelu(const Tensor& self, const Scalar& lower = 0.125, const Scalar& upper = 0.3333333333333333, bool training = false, Generator* generator = nullptr);
Tensor& rrelu_(Tensor& self, const Scalar& lower = 0.125, const Scalar& upper = 0.3333333333333333, bool training = false, Generator* generator = nullptr);
Tensor dropout(const Tensor& input, double p, bool train);
Tensor& dropout_(Tensor& self, double p, bool train);
Tensor feature_dropout(const Tensor& input, double p, bool train);
Tensor& feature_dropout_(Tensor& self, double p, bool train);
Tensor alpha_dropout(const Tensor& input, double p, bool train);
Tensor& alpha_dropout_(Tensor& self, double p, bool train);
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train);
Tensor& feature_alpha_dropout_(Tensor& self, double p, bool train);
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train);
Tensor max_pool1d(const Tensor& self, IntArrayRef kernel_size, OptionalIntArrayRef stride = std::nullopt, IntArrayRef padding = 0, IntArrayRef dilation = 1, bool ceil_mode = false);
Tensor max_pool2d(const Tensor& self, IntArrayRef kernel_size, OptionalIntArrayRef stride = std::nullopt, IntArrayRef padding = 0, IntArrayRef dilation = 1, bool ceil_mode = false);
Tensor max_pool3d(const Tensor& self, IntArrayRef kernel_size, OptionalIntArrayRef stride = std::nullopt, IntArrayRef padding = 0, IntArrayRef dilation = 1, bool ceil_mode = false);
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntArrayRef kernel_size, OptionalIntArrayRef stride = std::nullopt, IntArrayRef padding = 0, IntArrayRef dilation = 1, bool ceil_mode = false);
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntArrayRef output_size);
Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel_size, OptionalIntArrayRef stride = std::nullopt, IntArrayRef padding = 0, bool ceil_mode = false, bool count_include_pad = true);
Tensor adaptive_avg_pool1d(const Tensor& self, IntArrayRef output_size);
std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntArrayRef normalized_shape, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, double eps);
Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const std::optional<Tensor>& weight = std::nullopt, const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-05, bool cudnn_enable = true);
Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape, const std::optional<Tensor>& weight = std::nullopt, std::optional<double> eps = std::nullopt);
std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool training, double momentum, double eps);
std::tuple<Tensor&, Tensor&, Tensor&> native_batch_norm_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool training, double momentum, double eps);
Tensor batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool training, double momentum, double eps, bool cudnn_enabled);
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, int64_t N, int64_t C, int64_t HxW, int64_t group, double eps);
Tensor group_norm(const Tensor& input, int64_t num_groups, const std::optional<Tensor>& weight = std::nullopt, const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-05, bool cudnn_enabled = true);
Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool use_input_stats, double momentum, double eps, bool cudnn_enabled);
std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps);
Tensor batch_norm_elemt(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const Tensor& mean, const Tensor& invstd, double eps);
Tensor& batch_norm_elemt_out(Tensor& out, const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const Tensor& mean, const Tensor& invstd, double eps);
std::tuple<Tensor, Tensor> batch_norm_update_stats(const Tensor& input, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, double momentum);
Tensor norm_except_dim(const Tensor& v, int64_t pow = 2, int64_t dim = 0);
Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, int64_t reduction = 1, int64_t ignore_index = -100);
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, int64_t reduction = 1, int64_t ignore_index = -100, double label_smoothing = 0.0);
Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1);
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1, double beta = 1.0);
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1, double delta = 1.0);
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, int64_t reduction = 1);
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, const std::optional<Tensor>& pos_weight = std::nullopt, int64_t reduction = 1);
Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1);
Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction = 1, bool log_target = false);
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps, int64_t reduction);
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1);
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin = 1.0, int64_t reduction = 1);
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0.0, int64_t reduction = 1);
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0.0, int64_t reduction = 1);
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1.0, double p = 2, double eps = 1e-06, bool swap = false, int64_t reduction = 1);
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p = 1, const Scalar& margin = 1, const std::optional<Tensor>& weight = std::nullopt, int64_t reduction = 1);
Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1);
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1, bool scale_grad_by_freq = false, bool sparse = false);
Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm, double norm_type);
Tensor constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value = 0);
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners);
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners);
Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners);
Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners);
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq, int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights, bool include_last_offset, std::optional<int64_t> padding_idx);
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq = false, int64_t mode = 0, bool sparse = false, const std::optional<Tensor>& per_sample_weights = std::nullopt, bool include_last_offset = false);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank = 0, int64_t reduction = 1, bool zero_infinity = false);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths, int64_t blank = 0, int64_t reduction = 1, bool zero_infinity = false);
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first);
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional);
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih = std::nullopt, const std::optional<Tensor>& b_hh = std::nullopt);
std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first);
std::tuple<Tensor, Tensor> gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional);
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih = std::nullopt, const std::optional<Tensor>& b_hh = std::nullopt);
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first);
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional);
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih = std::nullopt, const std::optional<Tensor>& b_hh = std::nullopt);
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first);
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional);
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih = std::nullopt, const std::optional<Tensor>& b_hh = std::nullopt);
Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path = std::nullopt);
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data = true, bool unpack_pivots = true);
std::tuple<Tensor&, Tensor&, Tensor&> lu_unpack_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data, bool unpack_pivots);
Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots);
Tensor& lu_solve_out(Tensor& out, const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots);
Tensor inverse(const Tensor& self);
Tensor& inverse_out(Tensor& out, const Tensor& self);
Tensor det(const Tensor& self);
std::tuple<Tensor, Tensor> slogdet(const Tensor& self);
std::tuple<Tensor&, Tensor&> slogdet_out(Tensor& out0, Tensor& out1, const Tensor& self);
Tensor logdet(const Tensor& self);
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper = true, bool transpose = false, bool unitriangular = false);
std::tuple<Tensor&, Tensor&> triangular_solve_out(Tensor& out0, Tensor& out1, const Tensor& self, const Tensor& A, bool upper, bool transpose, bool unitriangular);
Tensor cholesky(const Tensor& self, bool upper = false);
Tensor& cholesky_out(Tensor& out, const Tensor& self, bool upper);
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper = false);
Tensor& cholesky_solve_out(Tensor& out, const Tensor& self, const Tensor& input2, bool upper);
Tensor cholesky_inverse(const Tensor& self, bool upper = false);
Tensor& cholesky_inverse_out(Tensor& out, const Tensor& self, bool upper);
std::tuple<Tensor, Tensor> geqrf(const Tensor& self);
std::tuple<Tensor&, Tensor&> geqrf_out(Tensor& out0, Tensor& out1, const Tensor& self);
std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some = true);
std::tuple<Tensor&, Tensor&> qr_out(Tensor& out0, Tensor& out1, const Tensor& self, bool some);
Tensor orgqr(const Tensor& self, const Tensor& input2);
Tensor& orgqr_out(Tensor& out, const Tensor& self, const Tensor& input2);
Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left = true, bool transpose = false);
Tensor& ormqr_out(Tensor& out, const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose);
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some = true, bool compute_uv = true);
std::tuple<Tensor&, Tensor&, Tensor&> svd_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& self, bool some, bool compute_uv);
Tensor pinverse(const Tensor& self, double rcond = 1e-15);
Tensor frobenius_norm(const Tensor& self, IntArrayRef dim, bool keepdim = false);
Tensor& frobenius_norm_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim);
Tensor nuclear_norm(const Tensor& self, bool keepdim = false);
Tensor& nuclear_norm_out(Tensor& out, const Tensor& self, bool keepdim);
Tensor nuclear_norm(const Tensor& self, IntArrayRef dim, bool keepdim = false);
Tensor& nuclear_norm_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim);
Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm);
Tensor& renorm_(Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm);
Tensor& renorm_out(Tensor& out, const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm);
Tensor chain_matmul(TensorList matrices);
Tensor& chain_matmul_out(Tensor& out, TensorList matrices);
Tensor matrix_power(const Tensor& self, int64_t n);
Tensor& matrix_power_out(Tensor& out, const Tensor& self, int64_t n);
Tensor matrix_exp(const Tensor& self);
Tensor kron(const Tensor& self, const Tensor& other);
Tensor& kron_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim = std::nullopt);
Tensor& cross_out(Tensor& out, const Tensor& self, const Tensor& other, std::optional<int64_t> dim);
Tensor cov(const Tensor& self, int64_t correction = 1, const std::optional<Tensor>& fweights = std::nullopt, const std::optional<Tensor>& aweights = std::nullopt);
Tensor corrcoef(const Tensor& self);
Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p = 2);
Tensor& dist_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& p);
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-06, bool keepdim = false);
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1, double eps = 1e-08);
Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2.0, std::optional<int64_t> compute_mode = std::nullopt);
Tensor pdist(const Tensor& self, double p = 2);
Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length = std::nullopt, std::optional<int64_t> win_length = std::nullopt, const std::optional<Tensor>& window = std::nullopt, bool center = true, std::string_view pad_mode = "reflect", bool normalized = false, std::optional<bool> onesided = std::nullopt, std::optional<bool> return_complex = std::nullopt, std::optional<bool> align_to_window = std::nullopt);
Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length = std::nullopt, std::optional<int64_t> win_length = std::nullopt, const std::optional<Tensor>& window = std::nullopt, bool center = true, bool normalized = false, std::optional<bool> onesided = std::nullopt, std::optional<int64_t> length = std::nullopt, bool return_complex = false);
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt);
Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad = 0);
Tensor bartlett_window(int64_t window_length, TensorOptions options = {});
Tensor bartlett_window(int64_t window_length, bool periodic, TensorOptions options = {});
Tensor blackman_window(int64_t window_length, TensorOptions options = {});
Tensor blackman_window(int64_t window_length, bool periodic, TensorOptions options = {});
Tensor hann_window(int64_t window_length, TensorOptions options = {});
Tensor hann_window(int64_t window_length, bool periodic, TensorOptions options = {});
Tensor hamming_window(int64_t window_length, TensorOptions options = {});
Tensor hamming_window(int64_t window_length, bool periodic, TensorOptions options = {});
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, TensorOptions options = {});
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta, TensorOptions options = {});
Tensor kaiser_window(int64_t window_length, TensorOptions options = {});
Tensor kaiser_window(int64_t window_length, bool periodic, TensorOptions options = {});
Tensor kaiser_window(int64_t window_length, bool periodic, double beta, TensorOptions options = {});
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
Tensor trapezoid(const Tensor& y, const Scalar& dx = 1, int64_t dim = -1);
Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim = -1);
Tensor trapz(const Tensor& y, double dx = 1, int64_t dim = -1);
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx = 1, int64_t dim = -1);
std::vector<Tensor> gradient(const Tensor& self, const std::optional<Scalar>& spacing = std::nullopt, std::optional<int64_t> dim = std::nullopt, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntArrayRef dim, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, IntArrayRef dim, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, std::optional<int64_t> dim = std::nullopt, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, IntArrayRef dim, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, std::optional<int64_t> dim = std::nullopt, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, IntArrayRef dim, int64_t edge_order = 1);
Tensor hash_tensor(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false, int64_t mode = 0);
Tensor& hash_tensor_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim, int64_t mode);
std::tuple<Tensor, Tensor> fake_quantize_per_tensor_affine_cachemask(const Tensor& self, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max);
std::tuple<Tensor, Tensor> fake_quantize_per_channel_affine_cachemask(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t quant_min, int64_t quant_max);
Tensor fake_quantize_per_tensor_affine(const Tensor& self, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max);
Tensor fake_quantize_per_tensor_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t quant_min, int64_t quant_max);
Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t quant_min, int64_t quant_max);
Tensor fused_moving_avg_obs_fake_quant(const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on, const Tensor& running_min, const Tensor& running_max, const Tensor& scale, const Tensor& zero_point, double averaging_const, int64_t quant_min, int64_t quant_max, int64_t ch_axis, bool per_row_fake_quant = false, bool symmetric_quant = false);
std::tuple<Tensor, Tensor> choose_qparams_optimized(const Tensor& input, int64_t numel, int64_t n_bins, double ratio, int64_t bit_width);
Tensor quantize_per_tensor(const Tensor& self, double scale, int64_t zero_point, ScalarType dtype);
Tensor quantize_per_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, ScalarType dtype);
std::vector<Tensor> quantize_per_tensor(TensorList tensors, const Tensor& scales, const Tensor& zero_points, ScalarType dtype);
Tensor quantize_per_tensor_dynamic(const Tensor& self, ScalarType dtype, bool reduce_range);
Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points, int64_t axis, ScalarType dtype);
Tensor dequantize(const Tensor& self);
std::vector<Tensor> dequantize(TensorList tensors);
Tensor int_repr(const Tensor& self);
double q_scale(const Tensor& self);
int64_t q_zero_point(const Tensor& self);
Tensor q_per_channel_scales(const Tensor& self);
Tensor q_per_channel_zero_points(const Tensor& self);
int64_t q_per_channel_axis(const Tensor& self);
Tensor quantized_batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const Tensor& mean, const Tensor& var, double eps, double output_scale, int64_t output_zero_point);
Tensor indices(const Tensor& self);
Tensor crow_indices(const Tensor& self);
Tensor col_indices(const Tensor& self);
Tensor ccol_indices(const Tensor& self);
Tensor row_indices(const Tensor& self);
Tensor values(const Tensor& self);
int64_t sparse_dim(const Tensor& self);
int64_t dense_dim(const Tensor& self);
bool is_coalesced(const Tensor& self);
Tensor coalesce(const Tensor& self);
Tensor& sparse_resize_(Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim);
Tensor& sparse_resize_and_clear_(Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim);

namespace linalg {
Tensor vector_norm(const Tensor& self, const Scalar& ord = 2, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& vector_norm_out(Tensor& out, const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& A, bool pivot = true, bool check_errors = false);
std::tuple<Tensor&, Tensor&, Tensor&> lu_factor_ex_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& A, bool pivot, bool check_errors);
std::tuple<Tensor, Tensor> lu_factor(const Tensor& A, bool pivot = true);
std::tuple<Tensor&, Tensor&> lu_factor_out(Tensor& out0, Tensor& out1, const Tensor& A, bool pivot);
std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& A, bool pivot = true);
std::tuple<Tensor&, Tensor&, Tensor&> lu_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& A, bool pivot);
Tensor lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left = true, bool adjoint = false);
Tensor& lu_solve_out(Tensor& out, const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint);
std::tuple<Tensor, Tensor> solve_ex(const Tensor& A, const Tensor& B, bool left = true, bool check_errors = false);
std::tuple<Tensor&, Tensor&> solve_ex_out(Tensor& out0, Tensor& out1, const Tensor& A, const Tensor& B, bool left, bool check_errors);
Tensor solve(const Tensor& A, const Tensor& B, bool left = true);
Tensor& solve_out(Tensor& out, const Tensor& A, const Tensor& B, bool left);
std::tuple<Tensor, Tensor> inv_ex(const Tensor& A, bool check_errors = false);
std::tuple<Tensor&, Tensor&> inv_ex_out(Tensor& out0, Tensor& out1, const Tensor& A, bool check_errors);
Tensor inv(const Tensor& A);
Tensor& inv_out(Tensor& out, const Tensor& A);
Tensor det(const Tensor& A);
Tensor& det_out(Tensor& out, const Tensor& A);
std::tuple<Tensor, Tensor> slogdet(const Tensor& A);
std::tuple<Tensor&, Tensor&> slogdet_out(Tensor& out0, Tensor& out1, const Tensor& A);
Tensor solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left = true, bool unitriangular = false);
Tensor& solve_triangular_out(Tensor& out, const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular);
std::tuple<Tensor, Tensor> cholesky_ex(const Tensor& self, bool upper = false, bool check_errors = false);
std::tuple<Tensor&, Tensor&> cholesky_ex_out(Tensor& out0, Tensor& out1, const Tensor& self, bool upper, bool check_errors);
Tensor cholesky(const Tensor& self, bool upper = false);
Tensor& cholesky_out(Tensor& out, const Tensor& self, bool upper);
std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const Tensor& self, bool hermitian = false, bool check_errors = false);
std::tuple<Tensor&, Tensor&, Tensor&> ldl_factor_ex_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& self, bool hermitian, bool check_errors);
std::tuple<Tensor, Tensor> ldl_factor(const Tensor& self, bool hermitian = false);
std::tuple<Tensor&, Tensor&> ldl_factor_out(Tensor& out0, Tensor& out1, const Tensor& self, bool hermitian);
Tensor ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian = false);
Tensor& ldl_solve_out(Tensor& out, const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian);
std::tuple<Tensor, Tensor> qr(const Tensor& A, std::string_view mode = "reduced");
std::tuple<Tensor&, Tensor&> qr_out(Tensor& out0, Tensor& out1, const Tensor& A, std::string_view mode);
Tensor householder_product(const Tensor& input, const Tensor& tau);
Tensor& householder_product_out(Tensor& out, const Tensor& input, const Tensor& tau);
std::tuple<Tensor, Tensor> eigh(const Tensor& self, std::string_view UPLO = "L");
std::tuple<Tensor&, Tensor&> eigh_out(Tensor& out0, Tensor& out1, const Tensor& self, std::string_view UPLO);
Tensor eigvalsh(const Tensor& self, std::string_view UPLO = "L");
Tensor& eigvalsh_out(Tensor& out, const Tensor& self, std::string_view UPLO);
std::tuple<Tensor, Tensor> eig(const Tensor& self);
std::tuple<Tensor&, Tensor&> eig_out(Tensor& out0, Tensor& out1, const Tensor& self);
Tensor eigvals(const Tensor& self);
Tensor& eigvals_out(Tensor& out, const Tensor& self);
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& A, bool full_matrices = true, std::optional<std::string_view> driver = std::nullopt);
std::tuple<Tensor&, Tensor&, Tensor&> svd_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& A, bool full_matrices, std::optional<std::string_view> driver);
Tensor svdvals(const Tensor& A, std::optional<std::string_view> driver = std::nullopt);
Tensor& svdvals_out(Tensor& out, const Tensor& A, std::optional<std::string_view> driver);
std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& self, const Tensor& b, std::optional<double> rcond = std::nullopt, std::optional<std::string_view> driver = std::nullopt);
std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> lstsq_out(Tensor& out0, Tensor& out1, Tensor& out2, Tensor& out3, const Tensor& self, const Tensor& b, std::optional<double> rcond, std::optional<std::string_view> driver);
Tensor pinv(const Tensor& self, const std::optional<Tensor>& atol = std::nullopt, const std::optional<Tensor>& rtol = std::nullopt, bool hermitian = false);
Tensor& pinv_out(Tensor& out, const Tensor& self, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol, bool hermitian);
Tensor pinv(const Tensor& self, std::optional<double> atol = std::nullopt, std::optional<double> rtol = std::nullopt, bool hermitian = false);
Tensor& pinv_out(Tensor& out, const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian);
Tensor pinv(const Tensor& self, const Tensor& rcond, bool hermitian = false);
Tensor& pinv_out(Tensor& out, const Tensor& self, const Tensor& rcond, bool hermitian);
Tensor pinv(const Tensor& self, double rcond, bool hermitian = false);
Tensor& pinv_out(Tensor& out, const Tensor& self, double rcond, bool hermitian);
Tensor matrix_rank(const Tensor& input, const std::optional<Tensor>& atol = std::nullopt, const std::optional<Tensor>& rtol = std::nullopt, bool hermitian = false);
Tensor& matrix_rank_out(Tensor& out, const Tensor& input, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol, bool hermitian);
Tensor matrix_rank(const Tensor& self, std::optional<double> atol = std::nullopt, std::optional<double> rtol = std::nullopt, bool hermitian = false);
Tensor& matrix_rank_out(Tensor& out, const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian);
Tensor matrix_rank(const Tensor& input, const Tensor& tol, bool hermitian = false);
Tensor& matrix_rank_out(Tensor& out, const Tensor& input, const Tensor& tol, bool hermitian);
Tensor matrix_rank(const Tensor& self, double tol, bool hermitian = false);
Tensor& matrix_rank_out(Tensor& out, const Tensor& self, double tol, bool hermitian);
Tensor matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim = {-2, -1}, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& matrix_norm_out(Tensor& out, const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor matrix_norm(const Tensor& self, std::string_view ord = "fro", IntArrayRef dim = {-2, -1}, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& matrix_norm_out(Tensor& out, const Tensor& self, std::string_view ord, IntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor norm(const Tensor& self, const std::optional<Scalar>& ord = std::nullopt, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
Tensor& norm_out(Tensor& out, const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
Tensor cond(const Tensor& self, const std::optional<Scalar>& p = std::nullopt);
Tensor& cond_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p);
Tensor cond(const Tensor& self, std::string_view p);
Tensor& cond_out(Tensor& out, const Tensor& self, std::string_view p);
Tensor multi_dot(TensorList tensors);
Tensor& multi_dot_out(Tensor& out, TensorList tensors);
Tensor matrix_power(const Tensor& self, int64_t n);
Tensor& matrix_power_out(Tensor& out, const Tensor& self, int64_t n);
Tensor matrix_exp(const Tensor& self);
Tensor tensorinv(const Tensor& self, int64_t ind = 2);
Tensor& tensorinv_out(Tensor& out, const Tensor& self, int64_t ind);
Tensor tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims = std::nullopt);
Tensor& tensorsolve_out(Tensor& out, const Tensor& self, const Tensor& other, OptionalIntArrayRef dims);
Tensor vander(const Tensor& x, std::optional<int64_t> N = std::nullopt);
Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1);
Tensor& vecdot_out(Tensor& out, const Tensor& x, const Tensor& y, int64_t dim);
Tensor cross(const Tensor& self, const Tensor& other, int64_t dim = -1);
Tensor& cross_out(Tensor& out, const Tensor& self, const Tensor& other, int64_t dim);
Tensor diagonal(const Tensor& A, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
Tensor matmul(const Tensor& self, const Tensor& other);
Tensor& matmul_out(Tensor& out, const Tensor& self, const Tensor& other);
}  // namespace linalg

namespace fft {
Tensor fft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt);
Tensor& fft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm);
Tensor ifft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt);
Tensor& ifft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm);
Tensor rfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt);
Tensor& rfft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm);
Tensor irfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt);
Tensor& irfft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm);
Tensor hfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt);
Tensor& hfft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm);
Tensor ihfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt);
Tensor& ihfft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm);
Tensor fftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);
Tensor& fftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm);
Tensor ifftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);
Tensor& ifftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm);
Tensor rfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);
Tensor& rfftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm);
Tensor irfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);
Tensor& irfftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm);
Tensor hfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);
Tensor& hfftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm);
Tensor ihfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);
Tensor& ihfftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm);
Tensor fft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);
Tensor& fft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm);
Tensor ifft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);
Tensor& ifft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm);
Tensor rfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);
Tensor& rfft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm);
Tensor irfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);
Tensor& irfft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm);
Tensor hfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);
Tensor& hfft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm);
Tensor ihfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);
Tensor& ihfft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm);
Tensor fftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt);
Tensor ifftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt);
Tensor fftfreq(int64_t n, double d = 1.0, TensorOptions options = {});
Tensor& fftfreq_out(Tensor& out, int64_t n, double d, TensorOptions options);
Tensor fftfreq(int64_t n, TensorOptions options);
Tensor& fftfreq_out(Tensor& out, int64_t n, TensorOptions options);
Tensor rfftfreq(int64_t n, double d = 1.0, TensorOptions options = {});
Tensor& rfftfreq_out(Tensor& out, int64_t n, double d, TensorOptions options);
Tensor rfftfreq(int64_t n, TensorOptions options);
Tensor& rfftfreq_out(Tensor& out, int64_t n, TensorOptions options);
}  // namespace fft

namespace special {
Tensor xlog1py(const Tensor& self, const Tensor& other);
Tensor& xlog1py_(Tensor& self, const Tensor& other);
Tensor& xlog1py_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor gammainc(const Tensor& self, const Tensor& other);
Tensor& gammainc_(Tensor& self, const Tensor& other);
Tensor& gammainc_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor gammaincc(const Tensor& self, const Tensor& other);
Tensor& gammaincc_(Tensor& self, const Tensor& other);
Tensor& gammaincc_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor zeta(const Tensor& self, const Tensor& other);
Tensor& zeta_(Tensor& self, const Tensor& other);
Tensor& zeta_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor erfcx(const Tensor& self);
Tensor& erfcx_(Tensor& self);
Tensor& erfcx_out(Tensor& out, const Tensor& self);
Tensor ndtri(const Tensor& self);
Tensor& ndtri_(Tensor& self);
Tensor& ndtri_out(Tensor& out, const Tensor& self);
Tensor log_ndtr(const Tensor& self);
Tensor& log_ndtr_(Tensor& self);
Tensor& log_ndtr_out(Tensor& out, const Tensor& self);
Tensor ndtr(const Tensor& self);
Tensor& ndtr_out(Tensor& out, const Tensor& self);
Tensor i0e(const Tensor& self);
Tensor& i0e_(Tensor& self);
Tensor& i0e_out(Tensor& out, const Tensor& self);
Tensor i1(const Tensor& self);
Tensor& i1_(Tensor& self);
Tensor& i1_out(Tensor& out, const Tensor& self);
Tensor i1e(const Tensor& self);
Tensor& i1e_(Tensor& self);
Tensor& i1e_out(Tensor& out, const Tensor& self);
Tensor entr(const Tensor& self);
Tensor& entr_(Tensor& self);
Tensor& entr_out(Tensor& out, const Tensor& self);
Tensor exp2(const Tensor& self);
Tensor& exp2_out(Tensor& out, const Tensor& self);
Tensor expm1(const Tensor& self);
Tensor& expm1_out(Tensor& out, const Tensor& self);
Tensor log1p(const Tensor& self);
Tensor& log1p_out(Tensor& out, const Tensor& self);
Tensor erf(const Tensor& self);
Tensor& erf_out(Tensor& out, const Tensor& self);
Tensor erfc(const Tensor& self);
Tensor& erfc_out(Tensor& out, const Tensor& self);
Tensor erfinv(const Tensor& self);
Tensor& erfinv_out(Tensor& out, const Tensor& self);
Tensor gammaln(const Tensor& self);
Tensor& gammaln_out(Tensor& out, const Tensor& self);
Tensor digamma(const Tensor& self);
Tensor& digamma_out(Tensor& out, const Tensor& self);
Tensor psi(const Tensor& self);
Tensor& psi_out(Tensor& out, const Tensor& self);
Tensor polygamma(int64_t n, const Tensor& self);
Tensor& polygamma_out(Tensor& out, int64_t n, const Tensor& self);
Tensor multigammaln(const Tensor& self, int64_t p);
Tensor& multigammaln_out(Tensor& out, const Tensor& self, int64_t p);
Tensor i0(const Tensor& self);
Tensor& i0_out(Tensor& out, const Tensor& self);
Tensor sinc(const Tensor& self);
Tensor& sinc_out(Tensor& out, const Tensor& self);
Tensor logit(const Tensor& self, std::optional<double> eps = std::nullopt);
Tensor& logit_out(Tensor& out, const Tensor& self, std::optional<double> eps);
Tensor xlogy(const Tensor& self, const Tensor& other);
Tensor& xlogy_out(Tensor& out, const Tensor& self, const Tensor& other);
Tensor round(const Tensor& self, int64_t decimals = 0);
Tensor& round_out(Tensor& out, const Tensor& self, int64_t decimals);
Tensor airy_ai(const Tensor& x);
Tensor& airy_ai_out(Tensor& out, const Tensor& x);
Tensor bessel_j0(const Tensor& self);
Tensor& bessel_j0_out(Tensor& out, const Tensor& self);
Tensor bessel_j1(const Tensor& self);
Tensor& bessel_j1_out(Tensor& out, const Tensor& self);
Tensor bessel_y0(const Tensor& self);
Tensor& bessel_y0_out(Tensor& out, const Tensor& self);
Tensor bessel_y1(const Tensor& self);
Tensor& bessel_y1_out(Tensor& out, const Tensor& self);
Tensor modified_bessel_i0(const Tensor& self);
Tensor& modified_bessel_i0_out(Tensor& out, const Tensor& self);
Tensor modified_bessel_i1(const Tensor& self);
Tensor& modified_bessel_i1_out(Tensor& out, const Tensor& self);
Tensor modified_bessel_k0(const Tensor& self);
Tensor& modified_bessel_k0_out(Tensor& out, const Tensor& self);
Tensor modified_bessel_k1(const Tensor& self);
Tensor& modified_bessel_k1_out(Tensor& out, const Tensor& self);
Tensor scaled_modified_bessel_k0(const Tensor& x);
Tensor& scaled_modified_bessel_k0_out(Tensor& out, const Tensor& x);
Tensor scaled_modified_bessel_k1(const Tensor& x);
Tensor& scaled_modified_bessel_k1_out(Tensor& out, const Tensor& x);
Tensor spherical_bessel_j0(const Tensor& x);
Tensor& spherical_bessel_j0_out(Tensor& out, const Tensor& x);
Tensor chebyshev_polynomial_t(const Tensor& x, const Tensor& n);
Tensor& chebyshev_polynomial_t_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor chebyshev_polynomial_u(const Tensor& x, const Tensor& n);
Tensor& chebyshev_polynomial_u_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor chebyshev_polynomial_v(const Tensor& x, const Tensor& n);
Tensor& chebyshev_polynomial_v_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor chebyshev_polynomial_w(const Tensor& x, const Tensor& n);
Tensor& chebyshev_polynomial_w_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n);
Tensor& shifted_chebyshev_polynomial_t_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n);
Tensor& shifted_chebyshev_polynomial_u_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n);
Tensor& shifted_chebyshev_polynomial_v_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n);
Tensor& shifted_chebyshev_polynomial_w_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor hermite_polynomial_h(const Tensor& x, const Tensor& n);
Tensor& hermite_polynomial_h_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor hermite_polynomial_he(const Tensor& x, const Tensor& n);
Tensor& hermite_polynomial_he_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor laguerre_polynomial_l(const Tensor& x, const Tensor& n);
Tensor& laguerre_polynomial_l_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor legendre_polynomial_p(const Tensor& x, const Tensor& n);
Tensor& legendre_polynomial_p_out(Tensor& out, const Tensor& x, const Tensor& n);
Tensor expit(const Tensor& self);
Tensor& expit_out(Tensor& out, const Tensor& self);
Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false);
Tensor& logsumexp_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim);
Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
}  // namespace special

inline Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord = 2, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) { return linalg::vector_norm(self, ord, dim, keepdim, dtype); }
inline Tensor& linalg_vector_norm_out(Tensor& out, const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) { return linalg::vector_norm_out(out, self, ord, dim, keepdim, dtype); }
inline std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, bool pivot = true, bool check_errors = false) { return linalg::lu_factor_ex(A, pivot, check_errors); }
inline std::tuple<Tensor&, Tensor&, Tensor&> linalg_lu_factor_ex_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& A, bool pivot, bool check_errors) { return linalg::lu_factor_ex_out(out0, out1, out2, A, pivot, check_errors); }
inline std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot = true) { return linalg::lu_factor(A, pivot); }
inline std::tuple<Tensor&, Tensor&> linalg_lu_factor_out(Tensor& out0, Tensor& out1, const Tensor& A, bool pivot) { return linalg::lu_factor_out(out0, out1, A, pivot); }
inline std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot = true) { return linalg::lu(A, pivot); }
inline std::tuple<Tensor&, Tensor&, Tensor&> linalg_lu_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& A, bool pivot) { return linalg::lu_out(out0, out1, out2, A, pivot); }
inline Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left = true, bool adjoint = false) { return linalg::lu_solve(LU, pivots, B, left, adjoint); }
inline Tensor& linalg_lu_solve_out(Tensor& out, const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) { return linalg::lu_solve_out(out, LU, pivots, B, left, adjoint); }
inline std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left = true, bool check_errors = false) { return linalg::solve_ex(A, B, left, check_errors); }
inline std::tuple<Tensor&, Tensor&> linalg_solve_ex_out(Tensor& out0, Tensor& out1, const Tensor& A, const Tensor& B, bool left, bool check_errors) { return linalg::solve_ex_out(out0, out1, A, B, left, check_errors); }
inline Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left = true) { return linalg::solve(A, B, left); }
inline Tensor& linalg_solve_out(Tensor& out, const Tensor& A, const Tensor& B, bool left) { return linalg::solve_out(out, A, B, left); }
inline std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors = false) { return linalg::inv_ex(A, check_errors); }
inline std::tuple<Tensor&, Tensor&> linalg_inv_ex_out(Tensor& out0, Tensor& out1, const Tensor& A, bool check_errors) { return linalg::inv_ex_out(out0, out1, A, check_errors); }
inline Tensor linalg_inv(const Tensor& A) { return linalg::inv(A); }
inline Tensor& linalg_inv_out(Tensor& out, const Tensor& A) { return linalg::inv_out(out, A); }
inline Tensor linalg_det(const Tensor& A) { return linalg::det(A); }
inline Tensor& linalg_det_out(Tensor& out, const Tensor& A) { return linalg::det_out(out, A); }
inline std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) { return linalg::slogdet(A); }
inline std::tuple<Tensor&, Tensor&> linalg_slogdet_out(Tensor& out0, Tensor& out1, const Tensor& A) { return linalg::slogdet_out(out0, out1, A); }
inline Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left = true, bool unitriangular = false) { return linalg::solve_triangular(self, B, upper, left, unitriangular); }
inline Tensor& linalg_solve_triangular_out(Tensor& out, const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular) { return linalg::solve_triangular_out(out, self, B, upper, left, unitriangular); }
inline std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper = false, bool check_errors = false) { return linalg::cholesky_ex(self, upper, check_errors); }
inline std::tuple<Tensor&, Tensor&> linalg_cholesky_ex_out(Tensor& out0, Tensor& out1, const Tensor& self, bool upper, bool check_errors) { return linalg::cholesky_ex_out(out0, out1, self, upper, check_errors); }
inline Tensor linalg_cholesky(const Tensor& self, bool upper = false) { return linalg::cholesky(self, upper); }
inline Tensor& linalg_cholesky_out(Tensor& out, const Tensor& self, bool upper) { return linalg::cholesky_out(out, self, upper); }
inline std::tuple<Tensor, Tensor, Tensor> linalg_ldl_factor_ex(const Tensor& self, bool hermitian = false, bool check_errors = false) { return linalg::ldl_factor_ex(self, hermitian, check_errors); }
inline std::tuple<Tensor&, Tensor&, Tensor&> linalg_ldl_factor_ex_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& self, bool hermitian, bool check_errors) { return linalg::ldl_factor_ex_out(out0, out1, out2, self, hermitian, check_errors); }
inline std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian = false) { return linalg::ldl_factor(self, hermitian); }
inline std::tuple<Tensor&, Tensor&> linalg_ldl_factor_out(Tensor& out0, Tensor& out1, const Tensor& self, bool hermitian) { return linalg::ldl_factor_out(out0, out1, self, hermitian); }
inline Tensor linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian = false) { return linalg::ldl_solve(LD, pivots, B, hermitian); }
inline Tensor& linalg_ldl_solve_out(Tensor& out, const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) { return linalg::ldl_solve_out(out, LD, pivots, B, hermitian); }
inline std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode = "reduced") { return linalg::qr(A, mode); }
inline std::tuple<Tensor&, Tensor&> linalg_qr_out(Tensor& out0, Tensor& out1, const Tensor& A, std::string_view mode) { return linalg::qr_out(out0, out1, A, mode); }
inline Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) { return linalg::householder_product(input, tau); }
inline Tensor& linalg_householder_product_out(Tensor& out, const Tensor& input, const Tensor& tau) { return linalg::householder_product_out(out, input, tau); }
inline std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO = "L") { return linalg::eigh(self, UPLO); }
inline std::tuple<Tensor&, Tensor&> linalg_eigh_out(Tensor& out0, Tensor& out1, const Tensor& self, std::string_view UPLO) { return linalg::eigh_out(out0, out1, self, UPLO); }
inline Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO = "L") { return linalg::eigvalsh(self, UPLO); }
inline Tensor& linalg_eigvalsh_out(Tensor& out, const Tensor& self, std::string_view UPLO) { return linalg::eigvalsh_out(out, self, UPLO); }
inline std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) { return linalg::eig(self); }
inline std::tuple<Tensor&, Tensor&> linalg_eig_out(Tensor& out0, Tensor& out1, const Tensor& self) { return linalg::eig_out(out0, out1, self); }
inline Tensor linalg_eigvals(const Tensor& self) { return linalg::eigvals(self); }
inline Tensor& linalg_eigvals_out(Tensor& out, const Tensor& self) { return linalg::eigvals_out(out, self); }
inline std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices = true, std::optional<std::string_view> driver = std::nullopt) { return linalg::svd(A, full_matrices, driver); }
inline std::tuple<Tensor&, Tensor&, Tensor&> linalg_svd_out(Tensor& out0, Tensor& out1, Tensor& out2, const Tensor& A, bool full_matrices, std::optional<std::string_view> driver) { return linalg::svd_out(out0, out1, out2, A, full_matrices, driver); }
inline Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver = std::nullopt) { return linalg::svdvals(A, driver); }
inline Tensor& linalg_svdvals_out(Tensor& out, const Tensor& A, std::optional<std::string_view> driver) { return linalg::svdvals_out(out, A, driver); }
inline std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b, std::optional<double> rcond = std::nullopt, std::optional<std::string_view> driver = std::nullopt) { return linalg::lstsq(self, b, rcond, driver); }
inline std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> linalg_lstsq_out(Tensor& out0, Tensor& out1, Tensor& out2, Tensor& out3, const Tensor& self, const Tensor& b, std::optional<double> rcond, std::optional<std::string_view> driver) { return linalg::lstsq_out(out0, out1, out2, out3, self, b, rcond, driver); }
inline Tensor linalg_pinv(const Tensor& self, const std::optional<Tensor>& atol = std::nullopt, const std::optional<Tensor>& rtol = std::nullopt, bool hermitian = false) { return linalg::pinv(self, atol, rtol, hermitian); }
inline Tensor& linalg_pinv_out(Tensor& out, const Tensor& self, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol, bool hermitian) { return linalg::pinv_out(out, self, atol, rtol, hermitian); }
inline Tensor linalg_pinv(const Tensor& self, std::optional<double> atol = std::nullopt, std::optional<double> rtol = std::nullopt, bool hermitian = false) { return linalg::pinv(self, atol, rtol, hermitian); }
inline Tensor& linalg_pinv_out(Tensor& out, const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) { return linalg::pinv_out(out, self, atol, rtol, hermitian); }
inline Tensor linalg_pinv(const Tensor& self, const Tensor& rcond, bool hermitian = false) { return linalg::pinv(self, rcond, hermitian); }
inline Tensor& linalg_pinv_out(Tensor& out, const Tensor& self, const Tensor& rcond, bool hermitian) { return linalg::pinv_out(out, self, rcond, hermitian); }
inline Tensor linalg_pinv(const Tensor& self, double rcond, bool hermitian = false) { return linalg::pinv(self, rcond, hermitian); }
inline Tensor& linalg_pinv_out(Tensor& out, const Tensor& self, double rcond, bool hermitian) { return linalg::pinv_out(out, self, rcond, hermitian); }
inline Tensor linalg_matrix_rank(const Tensor& input, const std::optional<Tensor>& atol = std::nullopt, const std::optional<Tensor>& rtol = std::nullopt, bool hermitian = false) { return linalg::matrix_rank(input, atol, rtol, hermitian); }
inline Tensor& linalg_matrix_rank_out(Tensor& out, const Tensor& input, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol, bool hermitian) { return linalg::matrix_rank_out(out, input, atol, rtol, hermitian); }
inline Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol = std::nullopt, std::optional<double> rtol = std::nullopt, bool hermitian = false) { return linalg::matrix_rank(self, atol, rtol, hermitian); }
inline Tensor& linalg_matrix_rank_out(Tensor& out, const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) { return linalg::matrix_rank_out(out, self, atol, rtol, hermitian); }
inline Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol, bool hermitian = false) { return linalg::matrix_rank(input, tol, hermitian); }
inline Tensor& linalg_matrix_rank_out(Tensor& out, const Tensor& input, const Tensor& tol, bool hermitian) { return linalg::matrix_rank_out(out, input, tol, hermitian); }
inline Tensor linalg_matrix_rank(const Tensor& self, double tol, bool hermitian = false) { return linalg::matrix_rank(self, tol, hermitian); }
inline Tensor& linalg_matrix_rank_out(Tensor& out, const Tensor& self, double tol, bool hermitian) { return linalg::matrix_rank_out(out, self, tol, hermitian); }
inline Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim = {-2, -1}, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) { return linalg::matrix_norm(self, ord, dim, keepdim, dtype); }
inline Tensor& linalg_matrix_norm_out(Tensor& out, const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) { return linalg::matrix_norm_out(out, self, ord, dim, keepdim, dtype); }
inline Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord = "fro", IntArrayRef dim = {-2, -1}, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) { return linalg::matrix_norm(self, ord, dim, keepdim, dtype); }
inline Tensor& linalg_matrix_norm_out(Tensor& out, const Tensor& self, std::string_view ord, IntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) { return linalg::matrix_norm_out(out, self, ord, dim, keepdim, dtype); }
inline Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord = std::nullopt, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) { return linalg::norm(self, ord, dim, keepdim, dtype); }
inline Tensor& linalg_norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) { return linalg::norm_out(out, self, ord, dim, keepdim, dtype); }
inline Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) { return linalg::norm(self, ord, dim, keepdim, dtype); }
inline Tensor& linalg_norm_out(Tensor& out, const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) { return linalg::norm_out(out, self, ord, dim, keepdim, dtype); }
inline Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p = std::nullopt) { return linalg::cond(self, p); }
inline Tensor& linalg_cond_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p) { return linalg::cond_out(out, self, p); }
inline Tensor linalg_cond(const Tensor& self, std::string_view p) { return linalg::cond(self, p); }
inline Tensor& linalg_cond_out(Tensor& out, const Tensor& self, std::string_view p) { return linalg::cond_out(out, self, p); }
inline Tensor linalg_multi_dot(TensorList tensors) { return linalg::multi_dot(tensors); }
inline Tensor& linalg_multi_dot_out(Tensor& out, TensorList tensors) { return linalg::multi_dot_out(out, tensors); }
inline Tensor linalg_matrix_power(const Tensor& self, int64_t n) { return linalg::matrix_power(self, n); }
inline Tensor& linalg_matrix_power_out(Tensor& out, const Tensor& self, int64_t n) { return linalg::matrix_power_out(out, self, n); }
inline Tensor linalg_matrix_exp(const Tensor& self) { return linalg::matrix_exp(self); }
inline Tensor linalg_tensorinv(const Tensor& self, int64_t ind = 2) { return linalg::tensorinv(self, ind); }
inline Tensor& linalg_tensorinv_out(Tensor& out, const Tensor& self, int64_t ind) { return linalg::tensorinv_out(out, self, ind); }
inline Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims = std::nullopt) { return linalg::tensorsolve(self, other, dims); }
inline Tensor& linalg_tensorsolve_out(Tensor& out, const Tensor& self, const Tensor& other, OptionalIntArrayRef dims) { return linalg::tensorsolve_out(out, self, other, dims); }
inline Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N = std::nullopt) { return linalg::vander(x, N); }
inline Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1) { return linalg::vecdot(x, y, dim); }
inline Tensor& linalg_vecdot_out(Tensor& out, const Tensor& x, const Tensor& y, int64_t dim) { return linalg::vecdot_out(out, x, y, dim); }
inline Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim = -1) { return linalg::cross(self, other, dim); }
inline Tensor& linalg_cross_out(Tensor& out, const Tensor& self, const Tensor& other, int64_t dim) { return linalg::cross_out(out, self, other, dim); }
inline Tensor linalg_diagonal(const Tensor& A, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) { return linalg::diagonal(A, offset, dim1, dim2); }
inline Tensor linalg_matmul(const Tensor& self, const Tensor& other) { return linalg::matmul(self, other); }
inline Tensor& linalg_matmul_out(Tensor& out, const Tensor& self, const Tensor& other) { return linalg::matmul_out(out, self, other); }

inline Tensor fft_fft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt) { return fft::fft(self, n, dim, norm); }
inline Tensor& fft_fft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm) { return fft::fft_out(out, self, n, dim, norm); }
inline Tensor fft_ifft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt) { return fft::ifft(self, n, dim, norm); }
inline Tensor& fft_ifft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm) { return fft::ifft_out(out, self, n, dim, norm); }
inline Tensor fft_rfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt) { return fft::rfft(self, n, dim, norm); }
inline Tensor& fft_rfft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm) { return fft::rfft_out(out, self, n, dim, norm); }
inline Tensor fft_irfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt) { return fft::irfft(self, n, dim, norm); }
inline Tensor& fft_irfft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm) { return fft::irfft_out(out, self, n, dim, norm); }
inline Tensor fft_hfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt) { return fft::hfft(self, n, dim, norm); }
inline Tensor& fft_hfft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm) { return fft::hfft_out(out, self, n, dim, norm); }
inline Tensor fft_ihfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, std::optional<std::string_view> norm = std::nullopt) { return fft::ihfft(self, n, dim, norm); }
inline Tensor& fft_ihfft_out(Tensor& out, const Tensor& self, std::optional<int64_t> n, int64_t dim, std::optional<std::string_view> norm) { return fft::ihfft_out(out, self, n, dim, norm); }
inline Tensor fft_fftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt) { return fft::fftn(self, s, dim, norm); }
inline Tensor& fft_fftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm) { return fft::fftn_out(out, self, s, dim, norm); }
inline Tensor fft_ifftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt) { return fft::ifftn(self, s, dim, norm); }
inline Tensor& fft_ifftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm) { return fft::ifftn_out(out, self, s, dim, norm); }
inline Tensor fft_rfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt) { return fft::rfftn(self, s, dim, norm); }
inline Tensor& fft_rfftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm) { return fft::rfftn_out(out, self, s, dim, norm); }
inline Tensor fft_irfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt) { return fft::irfftn(self, s, dim, norm); }
inline Tensor& fft_irfftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm) { return fft::irfftn_out(out, self, s, dim, norm); }
inline Tensor fft_hfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt) { return fft::hfftn(self, s, dim, norm); }
inline Tensor& fft_hfftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm) { return fft::hfftn_out(out, self, s, dim, norm); }
inline Tensor fft_ihfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt) { return fft::ihfftn(self, s, dim, norm); }
inline Tensor& fft_ihfftn_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, std::optional<std::string_view> norm) { return fft::ihfftn_out(out, self, s, dim, norm); }
inline Tensor fft_fft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt) { return fft::fft2(self, s, dim, norm); }
inline Tensor& fft_fft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm) { return fft::fft2_out(out, self, s, dim, norm); }
inline Tensor fft_ifft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt) { return fft::ifft2(self, s, dim, norm); }
inline Tensor& fft_ifft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm) { return fft::ifft2_out(out, self, s, dim, norm); }
inline Tensor fft_rfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt) { return fft::rfft2(self, s, dim, norm); }
inline Tensor& fft_rfft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm) { return fft::rfft2_out(out, self, s, dim, norm); }
inline Tensor fft_irfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt) { return fft::irfft2(self, s, dim, norm); }
inline Tensor& fft_irfft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm) { return fft::irfft2_out(out, self, s, dim, norm); }
inline Tensor fft_hfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt) { return fft::hfft2(self, s, dim, norm); }
inline Tensor& fft_hfft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm) { return fft::hfft2_out(out, self, s, dim, norm); }
inline Tensor fft_ihfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt) { return fft::ihfft2(self, s, dim, norm); }
inline Tensor& fft_ihfft2_out(Tensor& out, const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, std::optional<std::string_view> norm) { return fft::ihfft2_out(out, self, s, dim, norm); }
inline Tensor fft_fftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) { return fft::fftshift(self, dim); }
inline Tensor fft_ifftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) { return fft::ifftshift(self, dim); }
inline Tensor fft_fftfreq(int64_t n, double d = 1.0, TensorOptions options = {}) { return fft::fftfreq(n, d, options); }
inline Tensor& fft_fftfreq_out(Tensor& out, int64_t n, double d, TensorOptions options) { return fft::fftfreq_out(out, n, d, options); }
inline Tensor fft_fftfreq(int64_t n, TensorOptions options) { return fft::fftfreq(n, options); }
inline Tensor& fft_fftfreq_out(Tensor& out, int64_t n, TensorOptions options) { return fft::fftfreq_out(out, n, options); }
inline Tensor fft_rfftfreq(int64_t n, double d = 1.0, TensorOptions options = {}) { return fft::rfftfreq(n, d, options); }
inline Tensor& fft_rfftfreq_out(Tensor& out, int64_t n, double d, TensorOptions options) { return fft::rfftfreq_out(out, n, d, options); }
inline Tensor fft_rfftfreq(int64_t n, TensorOptions options) { return fft::rfftfreq(n, options); }
inline Tensor& fft_rfftfreq_out(Tensor& out, int64_t n, TensorOptions options) { return fft::rfftfreq_out(out, n, options); }

inline Tensor special_xlog1py(const Tensor& self, const Tensor& other) { return special::xlog1py(self, other); }
inline Tensor& special_xlog1py_(Tensor& self, const Tensor& other) { return special::xlog1py_(self, other); }
inline Tensor& special_xlog1py_out(Tensor& out, const Tensor& self, const Tensor& other) { return special::xlog1py_out(out, self, other); }
inline Tensor special_gammainc(const Tensor& self, const Tensor& other) { return special::gammainc(self, other); }
inline Tensor& special_gammainc_(Tensor& self, const Tensor& other) { return special::gammainc_(self, other); }
inline Tensor& special_gammainc_out(Tensor& out, const Tensor& self, const Tensor& other) { return special::gammainc_out(out, self, other); }
inline Tensor special_gammaincc(const Tensor& self, const Tensor& other) { return special::gammaincc(self, other); }
inline Tensor& special_gammaincc_(Tensor& self, const Tensor& other) { return special::gammaincc_(self, other); }
inline Tensor& special_gammaincc_out(Tensor& out, const Tensor& self, const Tensor& other) { return special::gammaincc_out(out, self, other); }
inline Tensor special_zeta(const Tensor& self, const Tensor& other) { return special::zeta(self, other); }
inline Tensor& special_zeta_(Tensor& self, const Tensor& other) { return special::zeta_(self, other); }
inline Tensor& special_zeta_out(Tensor& out, const Tensor& self, const Tensor& other) { return special::zeta_out(out, self, other); }
inline Tensor special_erfcx(const Tensor& self) { return special::erfcx(self); }
inline Tensor& special_erfcx_(Tensor& self) { return special::erfcx_(self); }
inline Tensor& special_erfcx_out(Tensor& out, const Tensor& self) { return special::erfcx_out(out, self); }
inline Tensor special_ndtri(const Tensor& self) { return special::ndtri(self); }
inline Tensor& special_ndtri_(Tensor& self) { return special::ndtri_(self); }
inline Tensor& special_ndtri_out(Tensor& out, const Tensor& self) { return special::ndtri_out(out, self); }
inline Tensor special_log_ndtr(const Tensor& self) { return special::log_ndtr(self); }
inline Tensor& special_log_ndtr_(Tensor& self) { return special::log_ndtr_(self); }
inline Tensor& special_log_ndtr_out(Tensor& out, const Tensor& self) { return special::log_ndtr_out(out, self); }
inline Tensor special_ndtr(const Tensor& self) { return special::ndtr(self); }
inline Tensor& special_ndtr_out(Tensor& out, const Tensor& self) { return special::ndtr_out(out, self); }
inline Tensor special_i0e(const Tensor& self) { return special::i0e(self); }
inline Tensor& special_i0e_(Tensor& self) { return special::i0e_(self); }
inline Tensor& special_i0e_out(Tensor& out, const Tensor& self) { return special::i0e_out(out, self); }
inline Tensor special_i1(const Tensor& self) { return special::i1(self); }
inline Tensor& special_i1_(Tensor& self) { return special::i1_(self); }
inline Tensor& special_i1_out(Tensor& out, const Tensor& self) { return special::i1_out(out, self); }
inline Tensor special_i1e(const Tensor& self) { return special::i1e(self); }
inline Tensor& special_i1e_(Tensor& self) { return special::i1e_(self); }
inline Tensor& special_i1e_out(Tensor& out, const Tensor& self) { return special::i1e_out(out, self); }
inline Tensor special_entr(const Tensor& self) { return special::entr(self); }
inline Tensor& special_entr_(Tensor& self) { return special::entr_(self); }
inline Tensor& special_entr_out(Tensor& out, const Tensor& self) { return special::entr_out(out, self); }
inline Tensor special_exp2(const Tensor& self) { return special::exp2(self); }
inline Tensor& special_exp2_out(Tensor& out, const Tensor& self) { return special::exp2_out(out, self); }
inline Tensor special_expm1(const Tensor& self) { return special::expm1(self); }
inline Tensor& special_expm1_out(Tensor& out, const Tensor& self) { return special::expm1_out(out, self); }
inline Tensor special_log1p(const Tensor& self) { return special::log1p(self); }
inline Tensor& special_log1p_out(Tensor& out, const Tensor& self) { return special::log1p_out(out, self); }
inline Tensor special_erf(const Tensor& self) { return special::erf(self); }
inline Tensor& special_erf_out(Tensor& out, const Tensor& self) { return special::erf_out(out, self); }
inline Tensor special_erfc(const Tensor& self) { return special::erfc(self); }
inline Tensor& special_erfc_out(Tensor& out, const Tensor& self) { return special::erfc_out(out, self); }
inline Tensor special_erfinv(const Tensor& self) { return special::erfinv(self); }
inline Tensor& special_erfinv_out(Tensor& out, const Tensor& self) { return special::erfinv_out(out, self); }
inline Tensor special_gammaln(const Tensor& self) { return special::gammaln(self); }
inline Tensor& special_gammaln_out(Tensor& out, const Tensor& self) { return special::gammaln_out(out, self); }
inline Tensor special_digamma(const Tensor& self) { return special::digamma(self); }
inline Tensor& special_digamma_out(Tensor& out, const Tensor& self) { return special::digamma_out(out, self); }
inline Tensor special_psi(const Tensor& self) { return special::psi(self); }
inline Tensor& special_psi_out(Tensor& out, const Tensor& self) { return special::psi_out(out, self); }
inline Tensor special_polygamma(int64_t n, const Tensor& self) { return special::polygamma(n, self); }
inline Tensor& special_polygamma_out(Tensor& out, int64_t n, const Tensor& self) { return special::polygamma_out(out, n, self); }
inline Tensor special_multigammaln(const Tensor& self, int64_t p) { return special::multigammaln(self, p); }
inline Tensor& special_multigammaln_out(Tensor& out, const Tensor& self, int64_t p) { return special::multigammaln_out(out, self, p); }
inline Tensor special_i0(const Tensor& self) { return special::i0(self); }
inline Tensor& special_i0_out(Tensor& out, const Tensor& self) { return special::i0_out(out, self); }
inline Tensor special_sinc(const Tensor& self) { return special::sinc(self); }
inline Tensor& special_sinc_out(Tensor& out, const Tensor& self) { return special::sinc_out(out, self); }
inline Tensor special_logit(const Tensor& self, std::optional<double> eps = std::nullopt) { return special::logit(self, eps); }
inline Tensor& special_logit_out(Tensor& out, const Tensor& self, std::optional<double> eps) { return special::logit_out(out, self, eps); }
inline Tensor special_xlogy(const Tensor& self, const Tensor& other) { return special::xlogy(self, other); }
inline Tensor& special_xlogy_out(Tensor& out, const Tensor& self, const Tensor& other) { return special::xlogy_out(out, self, other); }
inline Tensor special_round(const Tensor& self, int64_t decimals = 0) { return special::round(self, decimals); }
inline Tensor& special_round_out(Tensor& out, const Tensor& self, int64_t decimals) { return special::round_out(out, self, decimals); }
inline Tensor special_airy_ai(const Tensor& x) { return special::airy_ai(x); }
inline Tensor& special_airy_ai_out(Tensor& out, const Tensor& x) { return special::airy_ai_out(out, x); }
inline Tensor special_bessel_j0(const Tensor& self) { return special::bessel_j0(self); }
inline Tensor& special_bessel_j0_out(Tensor& out, const Tensor& self) { return special::bessel_j0_out(out, self); }
inline Tensor special_bessel_j1(const Tensor& self) { return special::bessel_j1(self); }
inline Tensor& special_bessel_j1_out(Tensor& out, const Tensor& self) { return special::bessel_j1_out(out, self); }
inline Tensor special_bessel_y0(const Tensor& self) { return special::bessel_y0(self); }
inline Tensor& special_bessel_y0_out(Tensor& out, const Tensor& self) { return special::bessel_y0_out(out, self); }
inline Tensor special_bessel_y1(const Tensor& self) { return special::bessel_y1(self); }
inline Tensor& special_bessel_y1_out(Tensor& out, const Tensor& self) { return special::bessel_y1_out(out, self); }
inline Tensor special_modified_bessel_i0(const Tensor& self) { return special::modified_bessel_i0(self); }
inline Tensor& special_modified_bessel_i0_out(Tensor& out, const Tensor& self) { return special::modified_bessel_i0_out(out, self); }
inline Tensor special_modified_bessel_i1(const Tensor& self) { return special::modified_bessel_i1(self); }
inline Tensor& special_modified_bessel_i1_out(Tensor& out, const Tensor& self) { return special::modified_bessel_i1_out(out, self); }
inline Tensor special_modified_bessel_k0(const Tensor& self) { return special::modified_bessel_k0(self); }
inline Tensor& special_modified_bessel_k0_out(Tensor& out, const Tensor& self) { return special::modified_bessel_k0_out(out, self); }
inline Tensor special_modified_bessel_k1(const Tensor& self) { return special::modified_bessel_k1(self); }
inline Tensor& special_modified_bessel_k1_out(Tensor& out, const Tensor& self) { return special::modified_bessel_k1_out(out, self); }
inline Tensor special_scaled_modified_bessel_k0(const Tensor& x) { return special::scaled_modified_bessel_k0(x); }
inline Tensor& special_scaled_modified_bessel_k0_out(Tensor& out, const Tensor& x) { return special::scaled_modified_bessel_k0_out(out, x); }
inline Tensor special_scaled_modified_bessel_k1(const Tensor& x) { return special::scaled_modified_bessel_k1(x); }
inline Tensor& special_scaled_modified_bessel_k1_out(Tensor& out, const Tensor& x) { return special::scaled_modified_bessel_k1_out(out, x); }
inline Tensor special_spherical_bessel_j0(const Tensor& x) { return special::spherical_bessel_j0(x); }
inline Tensor& special_spherical_bessel_j0_out(Tensor& out, const Tensor& x) { return special::spherical_bessel_j0_out(out, x); }
inline Tensor special_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) { return special::chebyshev_polynomial_t(x, n); }
inline Tensor& special_chebyshev_polynomial_t_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::chebyshev_polynomial_t_out(out, x, n); }
inline Tensor special_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) { return special::chebyshev_polynomial_u(x, n); }
inline Tensor& special_chebyshev_polynomial_u_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::chebyshev_polynomial_u_out(out, x, n); }
inline Tensor special_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) { return special::chebyshev_polynomial_v(x, n); }
inline Tensor& special_chebyshev_polynomial_v_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::chebyshev_polynomial_v_out(out, x, n); }
inline Tensor special_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) { return special::chebyshev_polynomial_w(x, n); }
inline Tensor& special_chebyshev_polynomial_w_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::chebyshev_polynomial_w_out(out, x, n); }
inline Tensor special_shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) { return special::shifted_chebyshev_polynomial_t(x, n); }
inline Tensor& special_shifted_chebyshev_polynomial_t_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::shifted_chebyshev_polynomial_t_out(out, x, n); }
inline Tensor special_shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) { return special::shifted_chebyshev_polynomial_u(x, n); }
inline Tensor& special_shifted_chebyshev_polynomial_u_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::shifted_chebyshev_polynomial_u_out(out, x, n); }
inline Tensor special_shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) { return special::shifted_chebyshev_polynomial_v(x, n); }
inline Tensor& special_shifted_chebyshev_polynomial_v_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::shifted_chebyshev_polynomial_v_out(out, x, n); }
inline Tensor special_shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) { return special::shifted_chebyshev_polynomial_w(x, n); }
inline Tensor& special_shifted_chebyshev_polynomial_w_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::shifted_chebyshev_polynomial_w_out(out, x, n); }
inline Tensor special_hermite_polynomial_h(const Tensor& x, const Tensor& n) { return special::hermite_polynomial_h(x, n); }
inline Tensor& special_hermite_polynomial_h_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::hermite_polynomial_h_out(out, x, n); }
inline Tensor special_hermite_polynomial_he(const Tensor& x, const Tensor& n) { return special::hermite_polynomial_he(x, n); }
inline Tensor& special_hermite_polynomial_he_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::hermite_polynomial_he_out(out, x, n); }
inline Tensor special_laguerre_polynomial_l(const Tensor& x, const Tensor& n) { return special::laguerre_polynomial_l(x, n); }
inline Tensor& special_laguerre_polynomial_l_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::laguerre_polynomial_l_out(out, x, n); }
inline Tensor special_legendre_polynomial_p(const Tensor& x, const Tensor& n) { return special::legendre_polynomial_p(x, n); }
inline Tensor& special_legendre_polynomial_p_out(Tensor& out, const Tensor& x, const Tensor& n) { return special::legendre_polynomial_p_out(out, x, n); }
inline Tensor special_expit(const Tensor& self) { return special::expit(self); }
inline Tensor& special_expit_out(Tensor& out, const Tensor& self) { return special::expit_out(out, self); }
inline Tensor special_logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false) { return special::logsumexp(self, dim, keepdim); }
inline Tensor& special_logsumexp_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim) { return special::logsumexp_out(out, self, dim, keepdim); }
inline Tensor special_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) { return special::softmax(self, dim, dtype); }
inline Tensor special_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) { return special::log_softmax(self, dim, dtype); }

}  // namespace rushlight
