// Printed from the operator table by `python tools/print_operators.py`; do not edit.
// clang-format off

#include "frontend/call.h"
#include "rushlight/printed/functions.h"

namespace rushlight {

using namespace frontend;

Tensor& Tensor::copy_(const Tensor& src, bool non_blocking) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::copy_(self, src, non_blocking); }
Tensor& Tensor::fill_diagonal_(const Scalar& fill_value, bool wrap) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::fill_diagonal_(self, fill_value, wrap); }
Tensor& Tensor::fill_(const Tensor& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::fill_(self, value); }
Tensor& Tensor::fill_(const Scalar& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::fill_(self, value); }
Tensor& Tensor::zero_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::zero_(self); }
Tensor Tensor::clone(std::optional<MemoryFormat> memory_format) const { return rushlight::clone(*this, memory_format); }
Tensor Tensor::type_as(const Tensor& other) const { static const Op& op = find_operator("type_as"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor Tensor::half(std::optional<MemoryFormat> memory_format) const { static const Op& op = find_operator("half"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(memory_format)}; return call<Tensor>(op, boxed); }
Tensor Tensor::bfloat16(std::optional<MemoryFormat> memory_format) const { static const Op& op = find_operator("bfloat16"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(memory_format)}; return call<Tensor>(op, boxed); }
Tensor Tensor::byte(std::optional<MemoryFormat> memory_format) const { static const Op& op = find_operator("byte"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(memory_format)}; return call<Tensor>(op, boxed); }
Tensor Tensor::chalf(std::optional<MemoryFormat> memory_format) const { static const Op& op = find_operator("chalf"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(memory_format)}; return call<Tensor>(op, boxed); }
Tensor Tensor::cfloat(std::optional<MemoryFormat> memory_format) const { static const Op& op = find_operator("cfloat"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(memory_format)}; return call<Tensor>(op, boxed); }
Tensor Tensor::cdouble(std::optional<MemoryFormat> memory_format) const { static const Op& op = find_operator("cdouble"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(memory_format)}; return call<Tensor>(op, boxed); }
Tensor Tensor::new_empty(IntArrayRef size, TensorOptions options) const { static const Op& op = find_operator("new_empty"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(size), Value(options.dtype_opt()), Value(options.layout_opt()), Value(options.device_opt()), Value(options.pin_memory_opt())}; return made(call<Tensor>(op, boxed), options); }
Tensor Tensor::new_zeros(IntArrayRef size, TensorOptions options) const { static const Op& op = find_operator("new_zeros"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(size), Value(options.dtype_opt()), Value(options.layout_opt()), Value(options.device_opt()), Value(options.pin_memory_opt())}; return made(call<Tensor>(op, boxed), options); }
Tensor Tensor::new_ones(IntArrayRef size, TensorOptions options) const { static const Op& op = find_operator("new_ones"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(size), Value(options.dtype_opt()), Value(options.layout_opt()), Value(options.device_opt()), Value(options.pin_memory_opt())}; return made(call<Tensor>(op, boxed), options); }
Tensor Tensor::new_full(IntArrayRef size, const Scalar& fill_value, TensorOptions options) const { static const Op& op = find_operator("new_full"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(size), Value(fill_value), Value(options.dtype_opt()), Value(options.layout_opt()), Value(options.device_opt()), Value(options.pin_memory_opt())}; return made(call<Tensor>(op, boxed), options); }
Tensor Tensor::new_empty_strided(IntArrayRef size, IntArrayRef stride, TensorOptions options) const { static const Op& op = find_operator("new_empty_strided"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(size), Value(stride), Value(options.dtype_opt()), Value(options.layout_opt()), Value(options.device_opt()), Value(options.pin_memory_opt())}; return made(call<Tensor>(op, boxed), options); }
Tensor Tensor::tril(int64_t diagonal) const { return rushlight::tril(*this, diagonal); }
Tensor& Tensor::tril_(int64_t diagonal) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::tril_(self, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return rushlight::triu(*this, diagonal); }
Tensor& Tensor::triu_(int64_t diagonal) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::triu_(self, diagonal); }
Tensor Tensor::add(const Tensor& other, const Scalar& alpha) const { return rushlight::add(*this, other, alpha); }
Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::add_(self, other, alpha); }
Tensor Tensor::add(const Scalar& other, const Scalar& alpha) const { return rushlight::add(*this, other, alpha); }
Tensor& Tensor::add_(const Scalar& other, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::add_(self, other, alpha); }
Tensor Tensor::sub(const Tensor& other, const Scalar& alpha) const { return rushlight::sub(*this, other, alpha); }
Tensor& Tensor::sub_(const Tensor& other, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sub_(self, other, alpha); }
Tensor Tensor::sub(const Scalar& other, const Scalar& alpha) const { return rushlight::sub(*this, other, alpha); }
Tensor& Tensor::sub_(const Scalar& other, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sub_(self, other, alpha); }
Tensor Tensor::rsub(const Tensor& other, const Scalar& alpha) const { return rushlight::rsub(*this, other, alpha); }
Tensor Tensor::rsub(const Scalar& other, const Scalar& alpha) const { return rushlight::rsub(*this, other, alpha); }
Tensor Tensor::subtract(const Tensor& other, const Scalar& alpha) const { return rushlight::subtract(*this, other, alpha); }
Tensor& Tensor::subtract_(const Tensor& other, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::subtract_(self, other, alpha); }
Tensor Tensor::subtract(const Scalar& other, const Scalar& alpha) const { return rushlight::subtract(*this, other, alpha); }
Tensor& Tensor::subtract_(const Scalar& other, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::subtract_(self, other, alpha); }
Tensor Tensor::mul(const Tensor& other) const { return rushlight::mul(*this, other); }
Tensor& Tensor::mul_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::mul_(self, other); }
Tensor Tensor::mul(const Scalar& other) const { return rushlight::mul(*this, other); }
Tensor& Tensor::mul_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::mul_(self, other); }
Tensor Tensor::multiply(const Tensor& other) const { return rushlight::multiply(*this, other); }
Tensor& Tensor::multiply_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::multiply_(self, other); }
Tensor Tensor::multiply(const Scalar& other) const { return rushlight::multiply(*this, other); }
Tensor& Tensor::multiply_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::multiply_(self, other); }
Tensor Tensor::div(const Tensor& other) const { return rushlight::div(*this, other); }
Tensor& Tensor::div_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::div_(self, other); }
Tensor Tensor::div(const Scalar& other) const { return rushlight::div(*this, other); }
Tensor& Tensor::div_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::div_(self, other); }
Tensor Tensor::div(const Tensor& other, std::optional<std::string_view> rounding_mode) const { return rushlight::div(*this, other, rounding_mode); }
Tensor& Tensor::div_(const Tensor& other, std::optional<std::string_view> rounding_mode) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::div_(self, other, rounding_mode); }
Tensor Tensor::div(const Scalar& other, std::optional<std::string_view> rounding_mode) const { return rushlight::div(*this, other, rounding_mode); }
Tensor& Tensor::div_(const Scalar& other, std::optional<std::string_view> rounding_mode) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::div_(self, other, rounding_mode); }
Tensor Tensor::divide(const Tensor& other) const { return rushlight::divide(*this, other); }
Tensor& Tensor::divide_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::divide_(self, other); }
Tensor Tensor::divide(const Scalar& other) const { return rushlight::divide(*this, other); }
Tensor& Tensor::divide_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::divide_(self, other); }
Tensor Tensor::divide(const Tensor& other, std::optional<std::string_view> rounding_mode) const { return rushlight::divide(*this, other, rounding_mode); }
Tensor& Tensor::divide_(const Tensor& other, std::optional<std::string_view> rounding_mode) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::divide_(self, other, rounding_mode); }
Tensor Tensor::divide(const Scalar& other, std::optional<std::string_view> rounding_mode) const { return rushlight::divide(*this, other, rounding_mode); }
Tensor& Tensor::divide_(const Scalar& other, std::optional<std::string_view> rounding_mode) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::divide_(self, other, rounding_mode); }
Tensor Tensor::true_divide(const Tensor& other) const { return rushlight::true_divide(*this, other); }
Tensor& Tensor::true_divide_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::true_divide_(self, other); }
Tensor Tensor::true_divide(const Scalar& other) const { return rushlight::true_divide(*this, other); }
Tensor& Tensor::true_divide_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::true_divide_(self, other); }
Tensor Tensor::floor_divide(const Tensor& other) const { return rushlight::floor_divide(*this, other); }
Tensor& Tensor::floor_divide_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::floor_divide_(self, other); }
Tensor Tensor::remainder(const Tensor& other) const { return rushlight::remainder(*this, other); }
Tensor& Tensor::remainder_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::remainder_(self, other); }
Tensor Tensor::remainder(const Scalar& other) const { return rushlight::remainder(*this, other); }
Tensor& Tensor::remainder_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::remainder_(self, other); }
Tensor Tensor::fmod(const Tensor& other) const { return rushlight::fmod(*this, other); }
Tensor& Tensor::fmod_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::fmod_(self, other); }
Tensor Tensor::fmod(const Scalar& other) const { return rushlight::fmod(*this, other); }
Tensor& Tensor::fmod_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::fmod_(self, other); }
Tensor Tensor::maximum(const Tensor& other) const { return rushlight::maximum(*this, other); }
Tensor& Tensor::maximum_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::maximum_(self, other); }
Tensor Tensor::minimum(const Tensor& other) const { return rushlight::minimum(*this, other); }
Tensor& Tensor::minimum_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::minimum_(self, other); }
Tensor Tensor::fmax(const Tensor& other) const { return rushlight::fmax(*this, other); }
Tensor Tensor::fmin(const Tensor& other) const { return rushlight::fmin(*this, other); }
Tensor Tensor::clamp(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const { return rushlight::clamp(*this, min, max); }
Tensor& Tensor::clamp_(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::clamp_(self, min, max); }
Tensor Tensor::clamp(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const { return rushlight::clamp(*this, min, max); }
Tensor& Tensor::clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::clamp_(self, min, max); }
Tensor Tensor::clamp_min(const Tensor& min) const { return rushlight::clamp_min(*this, min); }
Tensor& Tensor::clamp_min_(const Tensor& min) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::clamp_min_(self, min); }
Tensor Tensor::clamp_max(const Tensor& max) const { return rushlight::clamp_max(*this, max); }
Tensor& Tensor::clamp_max_(const Tensor& max) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::clamp_max_(self, max); }
Tensor Tensor::clamp_min(const Scalar& min) const { return rushlight::clamp_min(*this, min); }
Tensor& Tensor::clamp_min_(const Scalar& min) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::clamp_min_(self, min); }
Tensor Tensor::clamp_max(const Scalar& max) const { return rushlight::clamp_max(*this, max); }
Tensor& Tensor::clamp_max_(const Scalar& max) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::clamp_max_(self, max); }
Tensor Tensor::clip(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const { return rushlight::clip(*this, min, max); }
Tensor& Tensor::clip_(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::clip_(self, min, max); }
Tensor Tensor::clip(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const { return rushlight::clip(*this, min, max); }
Tensor& Tensor::clip_(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::clip_(self, min, max); }
Tensor Tensor::lerp(const Tensor& end_, const Tensor& weight) const { return rushlight::lerp(*this, end_, weight); }
Tensor& Tensor::lerp_(const Tensor& end_, const Tensor& weight) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::lerp_(self, end_, weight); }
Tensor Tensor::lerp(const Tensor& end_, const Scalar& weight) const { return rushlight::lerp(*this, end_, weight); }
Tensor& Tensor::lerp_(const Tensor& end_, const Scalar& weight) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::lerp_(self, end_, weight); }
Tensor Tensor::addcmul(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const { return rushlight::addcmul(*this, tensor1, tensor2, value); }
Tensor& Tensor::addcmul_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::addcmul_(self, tensor1, tensor2, value); }
Tensor Tensor::addcdiv(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const { return rushlight::addcdiv(*this, tensor1, tensor2, value); }
Tensor& Tensor::addcdiv_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::addcdiv_(self, tensor1, tensor2, value); }
Tensor Tensor::neg() const { return rushlight::neg(*this); }
Tensor& Tensor::neg_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::neg_(self); }
Tensor Tensor::negative() const { return rushlight::negative(*this); }
Tensor& Tensor::negative_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::negative_(self); }
Tensor Tensor::positive() const { return rushlight::positive(*this); }
Tensor Tensor::abs() const { return rushlight::abs(*this); }
Tensor& Tensor::abs_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::abs_(self); }
Tensor Tensor::absolute() const { return rushlight::absolute(*this); }
Tensor& Tensor::absolute_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::absolute_(self); }
Tensor Tensor::sign() const { return rushlight::sign(*this); }
Tensor& Tensor::sign_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sign_(self); }
Tensor Tensor::sgn() const { return rushlight::sgn(*this); }
Tensor& Tensor::sgn_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sgn_(self); }
Tensor Tensor::floor() const { return rushlight::floor(*this); }
Tensor& Tensor::floor_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::floor_(self); }
Tensor Tensor::ceil() const { return rushlight::ceil(*this); }
Tensor& Tensor::ceil_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::ceil_(self); }
Tensor Tensor::trunc() const { return rushlight::trunc(*this); }
Tensor& Tensor::trunc_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::trunc_(self); }
Tensor Tensor::fix() const { return rushlight::fix(*this); }
Tensor& Tensor::fix_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::fix_(self); }
Tensor Tensor::frac() const { return rushlight::frac(*this); }
Tensor& Tensor::frac_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::frac_(self); }
Tensor Tensor::round(int64_t decimals) const { return rushlight::round(*this, decimals); }
Tensor& Tensor::round_(int64_t decimals) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::round_(self, decimals); }
Tensor Tensor::exp() const { return rushlight::exp(*this); }
Tensor& Tensor::exp_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::exp_(self); }
Tensor Tensor::exp2() const { return rushlight::exp2(*this); }
Tensor& Tensor::exp2_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::exp2_(self); }
Tensor Tensor::expm1() const { return rushlight::expm1(*this); }
Tensor& Tensor::expm1_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::expm1_(self); }
Tensor Tensor::log() const { return rushlight::log(*this); }
Tensor& Tensor::log_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::log_(self); }
Tensor Tensor::log2() const { return rushlight::log2(*this); }
Tensor& Tensor::log2_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::log2_(self); }
Tensor Tensor::log10() const { return rushlight::log10(*this); }
Tensor& Tensor::log10_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::log10_(self); }
Tensor Tensor::log1p() const { return rushlight::log1p(*this); }
Tensor& Tensor::log1p_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::log1p_(self); }
Tensor Tensor::sqrt() const { return rushlight::sqrt(*this); }
Tensor& Tensor::sqrt_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sqrt_(self); }
Tensor Tensor::rsqrt() const { return rushlight::rsqrt(*this); }
Tensor& Tensor::rsqrt_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::rsqrt_(self); }
Tensor Tensor::reciprocal() const { return rushlight::reciprocal(*this); }
Tensor& Tensor::reciprocal_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::reciprocal_(self); }
Tensor Tensor::square() const { return rushlight::square(*this); }
Tensor& Tensor::square_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::square_(self); }
Tensor Tensor::pow(const Tensor& exponent) const { return rushlight::pow(*this, exponent); }
Tensor& Tensor::pow_(const Tensor& exponent) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::pow_(self, exponent); }
Tensor Tensor::pow(const Scalar& exponent) const { return rushlight::pow(*this, exponent); }
Tensor& Tensor::pow_(const Scalar& exponent) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::pow_(self, exponent); }
Tensor Tensor::float_power(const Tensor& exponent) const { return rushlight::float_power(*this, exponent); }
Tensor& Tensor::float_power_(const Tensor& exponent) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::float_power_(self, exponent); }
Tensor Tensor::float_power(const Scalar& exponent) const { return rushlight::float_power(*this, exponent); }
Tensor& Tensor::float_power_(const Scalar& exponent) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::float_power_(self, exponent); }
Tensor Tensor::sin() const { return rushlight::sin(*this); }
Tensor& Tensor::sin_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sin_(self); }
Tensor Tensor::cos() const { return rushlight::cos(*this); }
Tensor& Tensor::cos_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::cos_(self); }
Tensor Tensor::tan() const { return rushlight::tan(*this); }
Tensor& Tensor::tan_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::tan_(self); }
Tensor Tensor::asin() const { return rushlight::asin(*this); }
Tensor& Tensor::asin_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::asin_(self); }
Tensor Tensor::acos() const { return rushlight::acos(*this); }
Tensor& Tensor::acos_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::acos_(self); }
Tensor Tensor::atan() const { return rushlight::atan(*this); }
Tensor& Tensor::atan_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::atan_(self); }
Tensor Tensor::sinh() const { return rushlight::sinh(*this); }
Tensor& Tensor::sinh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sinh_(self); }
Tensor Tensor::cosh() const { return rushlight::cosh(*this); }
Tensor& Tensor::cosh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::cosh_(self); }
Tensor Tensor::tanh() const { return rushlight::tanh(*this); }
Tensor& Tensor::tanh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::tanh_(self); }
Tensor Tensor::asinh() const { return rushlight::asinh(*this); }
Tensor& Tensor::asinh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::asinh_(self); }
Tensor Tensor::acosh() const { return rushlight::acosh(*this); }
Tensor& Tensor::acosh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::acosh_(self); }
Tensor Tensor::atanh() const { return rushlight::atanh(*this); }
Tensor& Tensor::atanh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::atanh_(self); }
Tensor Tensor::deg2rad() const { return rushlight::deg2rad(*this); }
Tensor& Tensor::deg2rad_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::deg2rad_(self); }
Tensor Tensor::rad2deg() const { return rushlight::rad2deg(*this); }
Tensor& Tensor::rad2deg_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::rad2deg_(self); }
Tensor Tensor::arcsin() const { return rushlight::arcsin(*this); }
Tensor& Tensor::arcsin_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::arcsin_(self); }
Tensor Tensor::arccos() const { return rushlight::arccos(*this); }
Tensor& Tensor::arccos_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::arccos_(self); }
Tensor Tensor::arctan() const { return rushlight::arctan(*this); }
Tensor& Tensor::arctan_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::arctan_(self); }
Tensor Tensor::arcsinh() const { return rushlight::arcsinh(*this); }
Tensor& Tensor::arcsinh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::arcsinh_(self); }
Tensor Tensor::arccosh() const { return rushlight::arccosh(*this); }
Tensor& Tensor::arccosh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::arccosh_(self); }
Tensor Tensor::arctanh() const { return rushlight::arctanh(*this); }
Tensor& Tensor::arctanh_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::arctanh_(self); }
Tensor Tensor::bitwise_and(const Tensor& other) const { return rushlight::bitwise_and(*this, other); }
Tensor& Tensor::bitwise_and_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_and_(self, other); }
Tensor Tensor::bitwise_and(const Scalar& other) const { return rushlight::bitwise_and(*this, other); }
Tensor& Tensor::bitwise_and_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_and_(self, other); }
Tensor Tensor::bitwise_or(const Tensor& other) const { return rushlight::bitwise_or(*this, other); }
Tensor& Tensor::bitwise_or_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_or_(self, other); }
Tensor Tensor::bitwise_or(const Scalar& other) const { return rushlight::bitwise_or(*this, other); }
Tensor& Tensor::bitwise_or_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_or_(self, other); }
Tensor Tensor::bitwise_xor(const Tensor& other) const { return rushlight::bitwise_xor(*this, other); }
Tensor& Tensor::bitwise_xor_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_xor_(self, other); }
Tensor Tensor::bitwise_xor(const Scalar& other) const { return rushlight::bitwise_xor(*this, other); }
Tensor& Tensor::bitwise_xor_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_xor_(self, other); }
Tensor Tensor::bitwise_left_shift(const Tensor& other) const { return rushlight::bitwise_left_shift(*this, other); }
Tensor& Tensor::bitwise_left_shift_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_left_shift_(self, other); }
Tensor Tensor::bitwise_left_shift(const Scalar& other) const { return rushlight::bitwise_left_shift(*this, other); }
Tensor& Tensor::bitwise_left_shift_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_left_shift_(self, other); }
Tensor Tensor::bitwise_right_shift(const Tensor& other) const { return rushlight::bitwise_right_shift(*this, other); }
Tensor& Tensor::bitwise_right_shift_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_right_shift_(self, other); }
Tensor Tensor::bitwise_right_shift(const Scalar& other) const { return rushlight::bitwise_right_shift(*this, other); }
Tensor& Tensor::bitwise_right_shift_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_right_shift_(self, other); }
Tensor Tensor::gcd(const Tensor& other) const { return rushlight::gcd(*this, other); }
Tensor& Tensor::gcd_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::gcd_(self, other); }
Tensor Tensor::lcm(const Tensor& other) const { return rushlight::lcm(*this, other); }
Tensor& Tensor::lcm_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::lcm_(self, other); }
Tensor Tensor::bitwise_not() const { return rushlight::bitwise_not(*this); }
Tensor& Tensor::bitwise_not_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bitwise_not_(self); }
Tensor Tensor::atan2(const Tensor& other) const { return rushlight::atan2(*this, other); }
Tensor& Tensor::atan2_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::atan2_(self, other); }
Tensor Tensor::arctan2(const Tensor& other) const { return rushlight::arctan2(*this, other); }
Tensor& Tensor::arctan2_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::arctan2_(self, other); }
Tensor Tensor::hypot(const Tensor& other) const { return rushlight::hypot(*this, other); }
Tensor& Tensor::hypot_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::hypot_(self, other); }
Tensor Tensor::logaddexp(const Tensor& other) const { return rushlight::logaddexp(*this, other); }
Tensor& Tensor::logaddexp_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::logaddexp_(self, other); }
Tensor Tensor::logaddexp2(const Tensor& other) const { return rushlight::logaddexp2(*this, other); }
Tensor& Tensor::logaddexp2_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::logaddexp2_(self, other); }
Tensor Tensor::xlogy(const Tensor& other) const { return rushlight::xlogy(*this, other); }
Tensor& Tensor::xlogy_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::xlogy_(self, other); }
Tensor Tensor::xlogy(const Scalar& other) const { return rushlight::xlogy(*this, other); }
Tensor& Tensor::xlogy_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::xlogy_(self, other); }
Tensor Tensor::copysign(const Tensor& other) const { return rushlight::copysign(*this, other); }
Tensor& Tensor::copysign_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::copysign_(self, other); }
Tensor Tensor::copysign(const Scalar& other) const { return rushlight::copysign(*this, other); }
Tensor& Tensor::copysign_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::copysign_(self, other); }
Tensor Tensor::nextafter(const Tensor& other) const { return rushlight::nextafter(*this, other); }
Tensor& Tensor::nextafter_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::nextafter_(self, other); }
Tensor Tensor::heaviside(const Tensor& values) const { return rushlight::heaviside(*this, values); }
Tensor& Tensor::heaviside_(const Tensor& values) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::heaviside_(self, values); }
Tensor Tensor::ldexp(const Tensor& other) const { return rushlight::ldexp(*this, other); }
Tensor& Tensor::ldexp_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::ldexp_(self, other); }
Tensor Tensor::ldexp(const Scalar& other) const { return rushlight::ldexp(*this, other); }
Tensor& Tensor::ldexp_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::ldexp_(self, other); }
Tensor Tensor::lgamma() const { return rushlight::lgamma(*this); }
Tensor& Tensor::lgamma_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::lgamma_(self); }
Tensor Tensor::digamma() const { return rushlight::digamma(*this); }
Tensor& Tensor::digamma_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::digamma_(self); }
Tensor Tensor::polygamma(int64_t n) const { static const Op& op = find_operator("polygamma"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& Tensor::polygamma_(int64_t n) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::polygamma_(self, n); }
Tensor Tensor::mvlgamma(int64_t p) const { return rushlight::mvlgamma(*this, p); }
Tensor& Tensor::mvlgamma_(int64_t p) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::mvlgamma_(self, p); }
Tensor Tensor::igamma(const Tensor& other) const { return rushlight::igamma(*this, other); }
Tensor& Tensor::igamma_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::igamma_(self, other); }
Tensor Tensor::igammac(const Tensor& other) const { return rushlight::igammac(*this, other); }
Tensor& Tensor::igammac_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::igammac_(self, other); }
Tensor Tensor::erf() const { return rushlight::erf(*this); }
Tensor& Tensor::erf_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::erf_(self); }
Tensor Tensor::erfc() const { return rushlight::erfc(*this); }
Tensor& Tensor::erfc_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::erfc_(self); }
Tensor Tensor::erfinv() const { return rushlight::erfinv(*this); }
Tensor& Tensor::erfinv_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::erfinv_(self); }
Tensor Tensor::i0() const { return rushlight::i0(*this); }
Tensor& Tensor::i0_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::i0_(self); }
Tensor Tensor::sinc() const { return rushlight::sinc(*this); }
Tensor& Tensor::sinc_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sinc_(self); }
Tensor Tensor::logit(std::optional<double> eps) const { return rushlight::logit(*this, eps); }
Tensor& Tensor::logit_(std::optional<double> eps) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::logit_(self, eps); }
Tensor Tensor::nan_to_num(std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) const { return rushlight::nan_to_num(*this, nan, posinf, neginf); }
Tensor& Tensor::nan_to_num_(std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::nan_to_num_(self, nan, posinf, neginf); }
std::tuple<Tensor, Tensor> Tensor::frexp() const { return rushlight::frexp(*this); }
Tensor Tensor::eq(const Tensor& other) const { return rushlight::eq(*this, other); }
Tensor& Tensor::eq_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::eq_(self, other); }
Tensor Tensor::eq(const Scalar& other) const { return rushlight::eq(*this, other); }
Tensor& Tensor::eq_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::eq_(self, other); }
Tensor Tensor::ne(const Tensor& other) const { return rushlight::ne(*this, other); }
Tensor& Tensor::ne_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::ne_(self, other); }
Tensor Tensor::ne(const Scalar& other) const { return rushlight::ne(*this, other); }
Tensor& Tensor::ne_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::ne_(self, other); }
Tensor Tensor::lt(const Tensor& other) const { return rushlight::lt(*this, other); }
Tensor& Tensor::lt_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::lt_(self, other); }
Tensor Tensor::lt(const Scalar& other) const { return rushlight::lt(*this, other); }
Tensor& Tensor::lt_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::lt_(self, other); }
Tensor Tensor::le(const Tensor& other) const { return rushlight::le(*this, other); }
Tensor& Tensor::le_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::le_(self, other); }
Tensor Tensor::le(const Scalar& other) const { return rushlight::le(*this, other); }
Tensor& Tensor::le_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::le_(self, other); }
Tensor Tensor::gt(const Tensor& other) const { return rushlight::gt(*this, other); }
Tensor& Tensor::gt_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::gt_(self, other); }
Tensor Tensor::gt(const Scalar& other) const { return rushlight::gt(*this, other); }
Tensor& Tensor::gt_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::gt_(self, other); }
Tensor Tensor::ge(const Tensor& other) const { return rushlight::ge(*this, other); }
Tensor& Tensor::ge_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::ge_(self, other); }
Tensor Tensor::ge(const Scalar& other) const { return rushlight::ge(*this, other); }
Tensor& Tensor::ge_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::ge_(self, other); }
Tensor Tensor::not_equal(const Tensor& other) const { return rushlight::not_equal(*this, other); }
Tensor& Tensor::not_equal_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::not_equal_(self, other); }
Tensor Tensor::not_equal(const Scalar& other) const { return rushlight::not_equal(*this, other); }
Tensor& Tensor::not_equal_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::not_equal_(self, other); }
Tensor Tensor::less(const Tensor& other) const { return rushlight::less(*this, other); }
Tensor& Tensor::less_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::less_(self, other); }
Tensor Tensor::less(const Scalar& other) const { return rushlight::less(*this, other); }
Tensor& Tensor::less_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::less_(self, other); }
Tensor Tensor::less_equal(const Tensor& other) const { return rushlight::less_equal(*this, other); }
Tensor& Tensor::less_equal_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::less_equal_(self, other); }
Tensor Tensor::less_equal(const Scalar& other) const { return rushlight::less_equal(*this, other); }
Tensor& Tensor::less_equal_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::less_equal_(self, other); }
Tensor Tensor::greater(const Tensor& other) const { return rushlight::greater(*this, other); }
Tensor& Tensor::greater_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::greater_(self, other); }
Tensor Tensor::greater(const Scalar& other) const { return rushlight::greater(*this, other); }
Tensor& Tensor::greater_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::greater_(self, other); }
Tensor Tensor::greater_equal(const Tensor& other) const { return rushlight::greater_equal(*this, other); }
Tensor& Tensor::greater_equal_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::greater_equal_(self, other); }
Tensor Tensor::greater_equal(const Scalar& other) const { return rushlight::greater_equal(*this, other); }
Tensor& Tensor::greater_equal_(const Scalar& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::greater_equal_(self, other); }
Tensor Tensor::logical_and(const Tensor& other) const { return rushlight::logical_and(*this, other); }
Tensor& Tensor::logical_and_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::logical_and_(self, other); }
Tensor Tensor::logical_or(const Tensor& other) const { return rushlight::logical_or(*this, other); }
Tensor& Tensor::logical_or_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::logical_or_(self, other); }
Tensor Tensor::logical_xor(const Tensor& other) const { return rushlight::logical_xor(*this, other); }
Tensor& Tensor::logical_xor_(const Tensor& other) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::logical_xor_(self, other); }
Tensor Tensor::logical_not() const { return rushlight::logical_not(*this); }
Tensor& Tensor::logical_not_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::logical_not_(self); }
Tensor Tensor::isnan() const { return rushlight::isnan(*this); }
Tensor Tensor::isinf() const { return rushlight::isinf(*this); }
Tensor Tensor::isfinite() const { return rushlight::isfinite(*this); }
Tensor Tensor::isposinf() const { return rushlight::isposinf(*this); }
Tensor Tensor::isneginf() const { return rushlight::isneginf(*this); }
Tensor Tensor::signbit() const { return rushlight::signbit(*this); }
Tensor Tensor::isreal() const { return rushlight::isreal(*this); }
Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const { return rushlight::isclose(*this, other, rtol, atol, equal_nan); }
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const { return rushlight::allclose(*this, other, rtol, atol, equal_nan); }
bool Tensor::equal(const Tensor& other) const { return rushlight::equal(*this, other); }
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const { return rushlight::masked_fill(*this, mask, value); }
Tensor& Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::masked_fill_(self, mask, value); }
Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& value) const { return rushlight::masked_fill(*this, mask, value); }
Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::masked_fill_(self, mask, value); }
Tensor Tensor::sigmoid() const { return rushlight::sigmoid(*this); }
Tensor& Tensor::sigmoid_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sigmoid_(self); }
Tensor& Tensor::silu_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::silu_(self); }
Tensor& Tensor::mish_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::mish_(self); }
Tensor& Tensor::gelu_(std::string_view approximate) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::gelu_(self, approximate); }
Tensor& Tensor::softplus_(const Scalar& beta, const Scalar& threshold) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::softplus_(self, beta, threshold); }
Tensor Tensor::relu() const { return rushlight::relu(*this); }
Tensor& Tensor::relu_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::relu_(self); }
Tensor& Tensor::threshold_(const Scalar& threshold, const Scalar& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::threshold_(self, threshold, value); }
Tensor& Tensor::leaky_relu_(const Scalar& negative_slope) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::leaky_relu_(self, negative_slope); }
Tensor& Tensor::hardtanh_(const Scalar& min_val, const Scalar& max_val) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::hardtanh_(self, min_val, max_val); }
Tensor& Tensor::hardsigmoid_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::hardsigmoid_(self); }
Tensor& Tensor::hardswish_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::hardswish_(self); }
Tensor Tensor::hardshrink(const Scalar& lambd) const { return rushlight::hardshrink(*this, lambd); }
Tensor& Tensor::elu_(const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::elu_(self, alpha, scale, input_scale); }
Tensor& Tensor::selu_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::selu_(self); }
Tensor& Tensor::celu_(const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::celu_(self, alpha); }
Tensor Tensor::prelu(const Tensor& weight) const { return rushlight::prelu(*this, weight); }
Tensor Tensor::conj_physical() const { return rushlight::conj_physical(*this); }
Tensor& Tensor::conj_physical_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::conj_physical_(self); }
Tensor Tensor::conj() const { return rushlight::conj(*this); }
Tensor Tensor::resolve_conj() const { return rushlight::resolve_conj(*this); }
Tensor Tensor::resolve_neg() const { return rushlight::resolve_neg(*this); }
Tensor Tensor::angle() const { return rushlight::angle(*this); }
Tensor Tensor::detach() const { return rushlight::detach(*this); }
Tensor Tensor::view(IntArrayRef size) const { static const Op& op = find_operator("view"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(size)}; return call<Tensor>(op, boxed); }
Tensor Tensor::view(ScalarType dtype) const { static const Op& op = find_operator("view.dtype"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(dtype)}; return call<Tensor>(op, boxed); }
Tensor Tensor::expand(IntArrayRef size, bool implicit) const { static const Op& op = find_operator("expand"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(size), Value(implicit)}; return call<Tensor>(op, boxed); }
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const { return rushlight::transpose(*this, dim0, dim1); }
Tensor Tensor::t() const { return rushlight::t(*this); }
Tensor Tensor::permute(IntArrayRef dims) const { return rushlight::permute(*this, dims); }
Tensor Tensor::squeeze() const { return rushlight::squeeze(*this); }
Tensor Tensor::squeeze(int64_t dim) const { return rushlight::squeeze(*this, dim); }
Tensor Tensor::squeeze(IntArrayRef dim) const { return rushlight::squeeze(*this, dim); }
Tensor Tensor::unsqueeze(int64_t dim) const { return rushlight::unsqueeze(*this, dim); }
Tensor Tensor::select(int64_t dim, int64_t index) const { return rushlight::select(*this, dim, index); }
Tensor Tensor::as_strided(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) const { return rushlight::as_strided(*this, size, stride, storage_offset); }
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const { return rushlight::diagonal(*this, offset, dim1, dim2); }
Tensor Tensor::unfold(int64_t dimension, int64_t size, int64_t step) const { static const Op& op = find_operator("unfold"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(dimension), Value(size), Value(step)}; return call<Tensor>(op, boxed); }
std::vector<Tensor> Tensor::unbind(int64_t dim) const { return rushlight::unbind(*this, dim); }
std::vector<Tensor> Tensor::split_with_sizes(IntArrayRef split_sizes, int64_t dim) const { return rushlight::split_with_sizes(*this, split_sizes, dim); }
std::vector<Tensor> Tensor::split(int64_t split_size, int64_t dim) const { return rushlight::split(*this, split_size, dim); }
Tensor Tensor::slice_inverse(const Tensor& src, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end_, int64_t step) const { return rushlight::slice_inverse(*this, src, dim, start, end_, step); }
Tensor Tensor::reshape(IntArrayRef shape) const { return rushlight::reshape(*this, shape); }
Tensor Tensor::view_as(const Tensor& other) const { static const Op& op = find_operator("view_as"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor Tensor::reshape_as(const Tensor& other) const { static const Op& op = find_operator("reshape_as"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor Tensor::expand_as(const Tensor& other) const { static const Op& op = find_operator("expand_as"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor Tensor::broadcast_to(IntArrayRef size) const { return rushlight::broadcast_to(*this, size); }
Tensor Tensor::swapaxes(int64_t axis0, int64_t axis1) const { return rushlight::swapaxes(*this, axis0, axis1); }
Tensor Tensor::swapdims(int64_t dim0, int64_t dim1) const { return rushlight::swapdims(*this, dim0, dim1); }
Tensor Tensor::matrix_H() const { static const Op& op = find_operator("matrix_H"); const Tensor& self = *this; const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor Tensor::mT() const { static const Op& op = find_operator("mT"); const Tensor& self = *this; const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor Tensor::mH() const { static const Op& op = find_operator("mH"); const Tensor& self = *this; const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor Tensor::adjoint() const { return rushlight::adjoint(*this); }
Tensor Tensor::movedim(IntArrayRef source, IntArrayRef destination) const { return rushlight::movedim(*this, source, destination); }
Tensor Tensor::movedim(int64_t source, int64_t destination) const { return rushlight::movedim(*this, source, destination); }
Tensor Tensor::moveaxis(IntArrayRef source, IntArrayRef destination) const { return rushlight::moveaxis(*this, source, destination); }
Tensor Tensor::moveaxis(int64_t source, int64_t destination) const { return rushlight::moveaxis(*this, source, destination); }
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const { return rushlight::narrow(*this, dim, start, length); }
Tensor Tensor::narrow(int64_t dim, const Tensor& start, int64_t length) const { return rushlight::narrow(*this, dim, start, length); }
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const { return rushlight::flatten(*this, start_dim, end_dim); }
Tensor Tensor::ravel() const { return rushlight::ravel(*this); }
Tensor Tensor::unflatten(int64_t dim, IntArrayRef sizes) const { return rushlight::unflatten(*this, dim, sizes); }
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const { return rushlight::chunk(*this, chunks, dim); }
std::vector<Tensor> Tensor::split(IntArrayRef split_size, int64_t dim) const { return rushlight::split(*this, split_size, dim); }
std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim) const { return rushlight::tensor_split(*this, sections, dim); }
std::vector<Tensor> Tensor::tensor_split(IntArrayRef indices, int64_t dim) const { return rushlight::tensor_split(*this, indices, dim); }
Tensor Tensor::flip(IntArrayRef dims) const { return rushlight::flip(*this, dims); }
Tensor Tensor::fliplr() const { return rushlight::fliplr(*this); }
Tensor Tensor::flipud() const { return rushlight::flipud(*this); }
Tensor Tensor::rot90(int64_t k, IntArrayRef dims) const { return rushlight::rot90(*this, k, dims); }
Tensor Tensor::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const { return rushlight::diag_embed(*this, offset, dim1, dim2); }
Tensor Tensor::diag(int64_t diagonal) const { return rushlight::diag(*this, diagonal); }
Tensor& Tensor::squeeze_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::squeeze_(self); }
Tensor& Tensor::squeeze_(int64_t dim) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::squeeze_(self, dim); }
Tensor& Tensor::squeeze_(IntArrayRef dim) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::squeeze_(self, dim); }
Tensor& Tensor::unsqueeze_(int64_t dim) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::unsqueeze_(self, dim); }
Tensor& Tensor::t_() const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::t_(self); }
Tensor& Tensor::transpose_(int64_t dim0, int64_t dim1) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::transpose_(self, dim0, dim1); }
Tensor& Tensor::swapaxes_(int64_t axis0, int64_t axis1) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::swapaxes_(self, axis0, axis1); }
Tensor& Tensor::swapdims_(int64_t dim0, int64_t dim1) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::swapdims_(self, dim0, dim1); }
Tensor& Tensor::as_strided_(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::as_strided_(self, size, stride, storage_offset); }
Tensor& Tensor::resize_(IntArrayRef size, std::optional<MemoryFormat> memory_format) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::resize_(self, size, memory_format); }
Tensor Tensor::alias_copy() const { return rushlight::alias_copy(*this); }
Tensor Tensor::detach_copy() const { return rushlight::detach_copy(*this); }
Tensor Tensor::view_as_complex_copy() const { return rushlight::view_as_complex_copy(*this); }
Tensor Tensor::view_as_real_copy() const { return rushlight::view_as_real_copy(*this); }
Tensor Tensor::as_strided_copy(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) const { return rushlight::as_strided_copy(*this, size, stride, storage_offset); }
Tensor Tensor::diagonal_copy(int64_t offset, int64_t dim1, int64_t dim2) const { return rushlight::diagonal_copy(*this, offset, dim1, dim2); }
Tensor Tensor::expand_copy(IntArrayRef size, bool implicit) const { return rushlight::expand_copy(*this, size, implicit); }
Tensor Tensor::narrow_copy(int64_t dim, int64_t start, int64_t length) const { return rushlight::narrow_copy(*this, dim, start, length); }
Tensor Tensor::permute_copy(IntArrayRef dims) const { return rushlight::permute_copy(*this, dims); }
Tensor Tensor::select_copy(int64_t dim, int64_t index) const { return rushlight::select_copy(*this, dim, index); }
Tensor Tensor::slice_copy(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end_, int64_t step) const { return rushlight::slice_copy(*this, dim, start, end_, step); }
std::vector<Tensor> Tensor::split_copy(int64_t split_size, int64_t dim) const { return rushlight::split_copy(*this, split_size, dim); }
std::vector<Tensor> Tensor::split_with_sizes_copy(IntArrayRef split_sizes, int64_t dim) const { return rushlight::split_with_sizes_copy(*this, split_sizes, dim); }
Tensor Tensor::squeeze_copy() const { return rushlight::squeeze_copy(*this); }
Tensor Tensor::squeeze_copy(int64_t dim) const { return rushlight::squeeze_copy(*this, dim); }
Tensor Tensor::squeeze_copy(IntArrayRef dim) const { return rushlight::squeeze_copy(*this, dim); }
Tensor Tensor::t_copy() const { return rushlight::t_copy(*this); }
Tensor Tensor::transpose_copy(int64_t dim0, int64_t dim1) const { return rushlight::transpose_copy(*this, dim0, dim1); }
std::vector<Tensor> Tensor::unbind_copy(int64_t dim) const { return rushlight::unbind_copy(*this, dim); }
Tensor Tensor::unfold_copy(int64_t dimension, int64_t size, int64_t step) const { return rushlight::unfold_copy(*this, dimension, size, step); }
Tensor Tensor::unsqueeze_copy(int64_t dim) const { return rushlight::unsqueeze_copy(*this, dim); }
Tensor Tensor::view_copy(IntArrayRef size) const { return rushlight::view_copy(*this, size); }
Tensor Tensor::select_scatter(const Tensor& src, int64_t dim, int64_t index) const { return rushlight::select_scatter(*this, src, dim, index); }
Tensor Tensor::slice_scatter(const Tensor& src, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end_, int64_t step) const { return rushlight::slice_scatter(*this, src, dim, start, end_, step); }
Tensor Tensor::diagonal_scatter(const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) const { return rushlight::diagonal_scatter(*this, src, offset, dim1, dim2); }
Tensor Tensor::as_strided_scatter(const Tensor& src, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) const { return rushlight::as_strided_scatter(*this, src, size, stride, storage_offset); }
std::vector<Tensor> Tensor::hsplit(int64_t sections) const { return rushlight::hsplit(*this, sections); }
std::vector<Tensor> Tensor::hsplit(IntArrayRef indices) const { return rushlight::hsplit(*this, indices); }
std::vector<Tensor> Tensor::vsplit(int64_t sections) const { return rushlight::vsplit(*this, sections); }
std::vector<Tensor> Tensor::vsplit(IntArrayRef indices) const { return rushlight::vsplit(*this, indices); }
std::vector<Tensor> Tensor::dsplit(int64_t sections) const { return rushlight::dsplit(*this, sections); }
std::vector<Tensor> Tensor::dsplit(IntArrayRef indices) const { return rushlight::dsplit(*this, indices); }
std::vector<Tensor> Tensor::tensor_split(const Tensor& tensor_indices_or_sections, int64_t dim) const { return rushlight::tensor_split(*this, tensor_indices_or_sections, dim); }
Tensor& Tensor::resize_as_(const Tensor& the_template, std::optional<MemoryFormat> memory_format) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::resize_as_(self, the_template, memory_format); }
Tensor Tensor::diagflat(int64_t offset) const { return rushlight::diagflat(*this, offset); }
std::vector<Tensor> Tensor::unsafe_split(int64_t split_size, int64_t dim) const { return rushlight::unsafe_split(*this, split_size, dim); }
std::vector<Tensor> Tensor::unsafe_split_with_sizes(IntArrayRef split_sizes, int64_t dim) const { return rushlight::unsafe_split_with_sizes(*this, split_sizes, dim); }
std::vector<Tensor> Tensor::unsafe_chunk(int64_t chunks, int64_t dim) const { return rushlight::unsafe_chunk(*this, chunks, dim); }
Tensor Tensor::mm(const Tensor& mat2) const { return rushlight::mm(*this, mat2); }
Tensor Tensor::addmm(const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) const { return rushlight::addmm(*this, mat1, mat2, beta, alpha); }
Tensor& Tensor::addmm_(const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::addmm_(self, mat1, mat2, beta, alpha); }
Tensor Tensor::bmm(const Tensor& mat2) const { return rushlight::bmm(*this, mat2); }
Tensor Tensor::baddbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) const { return rushlight::baddbmm(*this, batch1, batch2, beta, alpha); }
Tensor& Tensor::baddbmm_(const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::baddbmm_(self, batch1, batch2, beta, alpha); }
Tensor Tensor::mv(const Tensor& vec) const { return rushlight::mv(*this, vec); }
Tensor Tensor::dot(const Tensor& tensor) const { return rushlight::dot(*this, tensor); }
Tensor Tensor::vdot(const Tensor& other) const { return rushlight::vdot(*this, other); }
Tensor Tensor::outer(const Tensor& vec2) const { return rushlight::outer(*this, vec2); }
Tensor Tensor::ger(const Tensor& vec2) const { return rushlight::ger(*this, vec2); }
Tensor Tensor::addr(const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) const { return rushlight::addr(*this, vec1, vec2, beta, alpha); }
Tensor& Tensor::addr_(const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::addr_(self, vec1, vec2, beta, alpha); }
Tensor Tensor::addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) const { return rushlight::addmv(*this, mat, vec, beta, alpha); }
Tensor& Tensor::addmv_(const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::addmv_(self, mat, vec, beta, alpha); }
Tensor Tensor::addbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) const { return rushlight::addbmm(*this, batch1, batch2, beta, alpha); }
Tensor& Tensor::addbmm_(const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::addbmm_(self, batch1, batch2, beta, alpha); }
Tensor Tensor::matmul(const Tensor& other) const { return rushlight::matmul(*this, other); }
Tensor Tensor::inner(const Tensor& other) const { return rushlight::inner(*this, other); }
Tensor Tensor::sum(std::optional<ScalarType> dtype) const { return rushlight::sum(*this, dtype); }
Tensor Tensor::sum(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) const { return rushlight::sum(*this, dim, keepdim, dtype); }
Tensor Tensor::mean(std::optional<ScalarType> dtype) const { return rushlight::mean(*this, dtype); }
Tensor Tensor::mean(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) const { return rushlight::mean(*this, dim, keepdim, dtype); }
Tensor Tensor::nansum(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) const { return rushlight::nansum(*this, dim, keepdim, dtype); }
Tensor Tensor::nanmean(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) const { return rushlight::nanmean(*this, dim, keepdim, dtype); }
Tensor Tensor::sum_to_size(IntArrayRef size) const { static const Op& op = find_operator("sum_to_size"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(size)}; return call<Tensor>(op, boxed); }
Tensor Tensor::all() const { return rushlight::all(*this); }
Tensor Tensor::all(int64_t dim, bool keepdim) const { return rushlight::all(*this, dim, keepdim); }
Tensor Tensor::all(OptionalIntArrayRef dim, bool keepdim) const { return rushlight::all(*this, dim, keepdim); }
Tensor Tensor::any() const { return rushlight::any(*this); }
Tensor Tensor::any(int64_t dim, bool keepdim) const { return rushlight::any(*this, dim, keepdim); }
Tensor Tensor::any(OptionalIntArrayRef dim, bool keepdim) const { return rushlight::any(*this, dim, keepdim); }
Tensor Tensor::count_nonzero(IntArrayRef dim) const { return rushlight::count_nonzero(*this, dim); }
Tensor Tensor::count_nonzero(std::optional<int64_t> dim) const { return rushlight::count_nonzero(*this, dim); }
Tensor Tensor::trace() const { return rushlight::trace(*this); }
Tensor Tensor::prod(std::optional<ScalarType> dtype) const { return rushlight::prod(*this, dtype); }
Tensor Tensor::prod(int64_t dim, bool keepdim, std::optional<ScalarType> dtype) const { return rushlight::prod(*this, dim, keepdim, dtype); }
Tensor Tensor::amax(IntArrayRef dim, bool keepdim) const { return rushlight::amax(*this, dim, keepdim); }
Tensor Tensor::amin(IntArrayRef dim, bool keepdim) const { return rushlight::amin(*this, dim, keepdim); }
std::tuple<Tensor, Tensor> Tensor::aminmax(std::optional<int64_t> dim, bool keepdim) const { return rushlight::aminmax(*this, dim, keepdim); }
Tensor Tensor::max() const { return rushlight::max(*this); }
Tensor Tensor::max(const Tensor& other) const { return rushlight::max(*this, other); }
std::tuple<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const { return rushlight::max(*this, dim, keepdim); }
Tensor Tensor::min() const { return rushlight::min(*this); }
Tensor Tensor::min(const Tensor& other) const { return rushlight::min(*this, other); }
std::tuple<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const { return rushlight::min(*this, dim, keepdim); }
Tensor Tensor::argmax(std::optional<int64_t> dim, bool keepdim) const { return rushlight::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin(std::optional<int64_t> dim, bool keepdim) const { return rushlight::argmin(*this, dim, keepdim); }
Tensor Tensor::var(OptionalIntArrayRef dim, bool unbiased, bool keepdim) const { return rushlight::var(*this, dim, unbiased, keepdim); }
Tensor Tensor::var(bool unbiased) const { return rushlight::var(*this, unbiased); }
Tensor Tensor::var(OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim) const { return rushlight::var(*this, dim, correction, keepdim); }
Tensor Tensor::std(bool unbiased) const { return rushlight::std(*this, unbiased); }
Tensor Tensor::std(OptionalIntArrayRef dim, bool unbiased, bool keepdim) const { return rushlight::std(*this, dim, unbiased, keepdim); }
Tensor Tensor::std(OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim) const { return rushlight::std(*this, dim, correction, keepdim); }
Tensor Tensor::norm(const std::optional<Scalar>& p, ScalarType dtype) const { return rushlight::norm(*this, p, dtype); }
Tensor Tensor::norm(const Scalar& p) const { return rushlight::norm(*this, p); }
Tensor Tensor::norm(const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, ScalarType dtype) const { return rushlight::norm(*this, p, dim, keepdim, dtype); }
Tensor Tensor::norm(const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim) const { return rushlight::norm(*this, p, dim, keepdim); }
Tensor Tensor::logsumexp(IntArrayRef dim, bool keepdim) const { return rushlight::logsumexp(*this, dim, keepdim); }
Tensor Tensor::index_put(TensorList indices, const Tensor& values, bool accumulate) const { return rushlight::index_put(*this, indices, values, accumulate); }
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const { return rushlight::index_select(*this, dim, index); }
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const { return rushlight::index_add(*this, dim, index, source, alpha); }
Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::index_add_(self, dim, index, source, alpha); }
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const { return rushlight::index_copy(*this, dim, index, source); }
Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::index_copy_(self, dim, index, source); }
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Tensor& value) const { return rushlight::index_fill(*this, dim, index, value); }
Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::index_fill_(self, dim, index, value); }
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Scalar& value) const { return rushlight::index_fill(*this, dim, index, value); }
Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Scalar& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::index_fill_(self, dim, index, value); }
Tensor Tensor::take(const Tensor& index) const { return rushlight::take(*this, index); }
Tensor Tensor::put(const Tensor& index, const Tensor& source, bool accumulate) const { return rushlight::put(*this, index, source, accumulate); }
Tensor& Tensor::put_(const Tensor& index, const Tensor& source, bool accumulate) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::put_(self, index, source, accumulate); }
Tensor Tensor::gather(int64_t dim, const Tensor& index, bool sparse_grad) const { return rushlight::gather(*this, dim, index, sparse_grad); }
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const { return rushlight::scatter(*this, dim, index, src); }
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::scatter_(self, dim, index, src); }
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Scalar& value) const { return rushlight::scatter(*this, dim, index, value); }
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::scatter_(self, dim, index, value); }
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const { return rushlight::scatter_add(*this, dim, index, src); }
Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::scatter_add_(self, dim, index, src); }
Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src, bool include_self) const { return rushlight::scatter_reduce(*this, dim, index, src, include_self); }
Tensor& Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, bool include_self) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::scatter_reduce_(self, dim, index, src, include_self); }
Tensor Tensor::index_reduce(int64_t dim, const Tensor& index, const Tensor& source, bool include_self) const { return rushlight::index_reduce(*this, dim, index, source, include_self); }
Tensor& Tensor::index_reduce_(int64_t dim, const Tensor& index, const Tensor& source, bool include_self) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::index_reduce_(self, dim, index, source, include_self); }
Tensor Tensor::take_along_dim(const Tensor& indices, std::optional<int64_t> dim) const { return rushlight::take_along_dim(*this, indices, dim); }
Tensor Tensor::nonzero() const { return rushlight::nonzero(*this); }
Tensor Tensor::nonzero_static(int64_t size, int64_t fill_value) const { return rushlight::nonzero_static(*this, size, fill_value); }
Tensor Tensor::argwhere() const { return rushlight::argwhere(*this); }
Tensor Tensor::masked_select(const Tensor& mask) const { return rushlight::masked_select(*this, mask); }
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const { return rushlight::masked_scatter(*this, mask, source); }
Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::masked_scatter_(self, mask, source); }
Tensor Tensor::roll(IntArrayRef shifts, IntArrayRef dims) const { return rushlight::roll(*this, shifts, dims); }
Tensor Tensor::repeat(IntArrayRef repeats) const { static const Op& op = find_operator("repeat"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(repeats)}; return call<Tensor>(op, boxed); }
Tensor Tensor::tile(IntArrayRef dims) const { return rushlight::tile(*this, dims); }
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim, std::optional<int64_t> output_size) const { return rushlight::repeat_interleave(*this, repeats, dim, output_size); }
Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim, std::optional<int64_t> output_size) const { return rushlight::repeat_interleave(*this, repeats, dim, output_size); }
Tensor Tensor::cumsum(int64_t dim, std::optional<ScalarType> dtype) const { return rushlight::cumsum(*this, dim, dtype); }
Tensor& Tensor::cumsum_(int64_t dim, std::optional<ScalarType> dtype) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::cumsum_(self, dim, dtype); }
Tensor Tensor::cumprod(int64_t dim, std::optional<ScalarType> dtype) const { return rushlight::cumprod(*this, dim, dtype); }
Tensor& Tensor::cumprod_(int64_t dim, std::optional<ScalarType> dtype) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::cumprod_(self, dim, dtype); }
std::tuple<Tensor, Tensor> Tensor::cummax(int64_t dim) const { return rushlight::cummax(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::cummin(int64_t dim) const { return rushlight::cummin(*this, dim); }
Tensor Tensor::logcumsumexp(int64_t dim) const { return rushlight::logcumsumexp(*this, dim); }
Tensor Tensor::diff(int64_t n, int64_t dim, const std::optional<Tensor>& prepend, const std::optional<Tensor>& append) const { return rushlight::diff(*this, n, dim, prepend, append); }
std::tuple<Tensor, Tensor> Tensor::sort(std::optional<bool> stable, int64_t dim, bool descending) const { return rushlight::sort(*this, stable, dim, descending); }
std::tuple<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const { return rushlight::sort(*this, dim, descending); }
Tensor Tensor::argsort(bool stable, int64_t dim, bool descending) const { return rushlight::argsort(*this, stable, dim, descending); }
Tensor Tensor::argsort(int64_t dim, bool descending) const { return rushlight::argsort(*this, dim, descending); }
Tensor Tensor::msort() const { return rushlight::msort(*this); }
std::tuple<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const { return rushlight::topk(*this, k, dim, largest, sorted); }
std::tuple<Tensor, Tensor> Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const { return rushlight::kthvalue(*this, k, dim, keepdim); }
Tensor Tensor::median() const { return rushlight::median(*this); }
std::tuple<Tensor, Tensor> Tensor::median(int64_t dim, bool keepdim) const { return rushlight::median(*this, dim, keepdim); }
Tensor Tensor::nanmedian() const { return rushlight::nanmedian(*this); }
std::tuple<Tensor, Tensor> Tensor::nanmedian(int64_t dim, bool keepdim) const { return rushlight::nanmedian(*this, dim, keepdim); }
std::tuple<Tensor, Tensor> Tensor::mode(int64_t dim, bool keepdim) const { return rushlight::mode(*this, dim, keepdim); }
Tensor Tensor::quantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) const { return rushlight::quantile(*this, q, dim, keepdim, interpolation); }
Tensor Tensor::nanquantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) const { return rushlight::nanquantile(*this, q, dim, keepdim, interpolation); }
Tensor Tensor::quantile(double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) const { return rushlight::quantile(*this, q, dim, keepdim, interpolation); }
Tensor Tensor::nanquantile(double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) const { return rushlight::nanquantile(*this, q, dim, keepdim, interpolation); }
std::tuple<Tensor, Tensor> Tensor::histogram(const Tensor& bins, const std::optional<Tensor>& weight, bool density) const { return rushlight::histogram(*this, bins, weight, density); }
std::tuple<Tensor, Tensor> Tensor::histogram(int64_t bins, std::optional<ArrayRef<double>> range, const std::optional<Tensor>& weight, bool density) const { return rushlight::histogram(*this, bins, range, weight, density); }
Tensor Tensor::bincount(const std::optional<Tensor>& weights, int64_t minlength) const { return rushlight::bincount(*this, weights, minlength); }
Tensor Tensor::histc(int64_t bins, const Scalar& min, const Scalar& max) const { return rushlight::histc(*this, bins, min, max); }
Tensor Tensor::softmax(int64_t dim, std::optional<ScalarType> dtype) const { return rushlight::softmax(*this, dim, dtype); }
Tensor Tensor::log_softmax(int64_t dim, std::optional<ScalarType> dtype) const { return rushlight::log_softmax(*this, dim, dtype); }
Tensor& Tensor::uniform_(double from_, double to, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::uniform_(self, from_, to, generator); }
Tensor& Tensor::normal_(double mean, double std, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::normal_(self, mean, std, generator); }
Tensor& Tensor::log_normal_(double mean, double std, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::log_normal_(self, mean, std, generator); }
Tensor& Tensor::cauchy_(double median, double sigma, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::cauchy_(self, median, sigma, generator); }
Tensor& Tensor::exponential_(double lambd, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::exponential_(self, lambd, generator); }
Tensor& Tensor::geometric_(double p, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::geometric_(self, p, generator); }
Tensor& Tensor::bernoulli_(double p, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bernoulli_(self, p, generator); }
Tensor& Tensor::random_(Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::random_(self, generator); }
Tensor& Tensor::random_(int64_t to, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::random_(self, to, generator); }
Tensor& Tensor::random_(int64_t from_, std::optional<int64_t> to, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::random_(self, from_, to, generator); }
Tensor& Tensor::bernoulli_(const Tensor& p, Generator* generator) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::bernoulli_(self, p, generator); }
Tensor Tensor::bernoulli(Generator* generator) const { return rushlight::bernoulli(*this, generator); }
Tensor Tensor::bernoulli(double p, Generator* generator) const { return rushlight::bernoulli(*this, p, generator); }
Tensor Tensor::multinomial(int64_t num_samples, bool replacement, Generator* generator) const { return rushlight::multinomial(*this, num_samples, replacement, generator); }
Tensor Tensor::lu_solve(const Tensor& LU_data, const Tensor& LU_pivots) const { return rushlight::lu_solve(*this, LU_data, LU_pivots); }
Tensor Tensor::inverse() const { return rushlight::inverse(*this); }
Tensor Tensor::det() const { return rushlight::det(*this); }
std::tuple<Tensor, Tensor> Tensor::slogdet() const { return rushlight::slogdet(*this); }
Tensor Tensor::logdet() const { return rushlight::logdet(*this); }
std::tuple<Tensor, Tensor> Tensor::triangular_solve(const Tensor& A, bool upper, bool transpose, bool unitriangular) const { return rushlight::triangular_solve(*this, A, upper, transpose, unitriangular); }
Tensor Tensor::cholesky(bool upper) const { return rushlight::cholesky(*this, upper); }
Tensor Tensor::cholesky_solve(const Tensor& input2, bool upper) const { return rushlight::cholesky_solve(*this, input2, upper); }
Tensor Tensor::cholesky_inverse(bool upper) const { return rushlight::cholesky_inverse(*this, upper); }
std::tuple<Tensor, Tensor> Tensor::geqrf() const { return rushlight::geqrf(*this); }
std::tuple<Tensor, Tensor> Tensor::qr(bool some) const { return rushlight::qr(*this, some); }
Tensor Tensor::orgqr(const Tensor& input2) const { return rushlight::orgqr(*this, input2); }
Tensor Tensor::ormqr(const Tensor& input2, const Tensor& input3, bool left, bool transpose) const { return rushlight::ormqr(*this, input2, input3, left, transpose); }
std::tuple<Tensor, Tensor, Tensor> Tensor::svd(bool some, bool compute_uv) const { return rushlight::svd(*this, some, compute_uv); }
Tensor Tensor::pinverse(double rcond) const { return rushlight::pinverse(*this, rcond); }
Tensor Tensor::renorm(const Scalar& p, int64_t dim, const Scalar& maxnorm) const { return rushlight::renorm(*this, p, dim, maxnorm); }
Tensor& Tensor::renorm_(const Scalar& p, int64_t dim, const Scalar& maxnorm) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::renorm_(self, p, dim, maxnorm); }
Tensor Tensor::matrix_power(int64_t n) const { return rushlight::matrix_power(*this, n); }
Tensor Tensor::matrix_exp() const { return rushlight::matrix_exp(*this); }
Tensor Tensor::kron(const Tensor& other) const { return rushlight::kron(*this, other); }
Tensor Tensor::cross(const Tensor& other, std::optional<int64_t> dim) const { return rushlight::cross(*this, other, dim); }
Tensor Tensor::cov(int64_t correction, const std::optional<Tensor>& fweights, const std::optional<Tensor>& aweights) const { return rushlight::cov(*this, correction, fweights, aweights); }
Tensor Tensor::corrcoef() const { return rushlight::corrcoef(*this); }
Tensor Tensor::dist(const Tensor& other, const Scalar& p) const { return rushlight::dist(*this, other, p); }
Tensor Tensor::stft(int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool center, std::string_view pad_mode, bool normalized, std::optional<bool> onesided, std::optional<bool> return_complex, std::optional<bool> align_to_window) const { return rushlight::stft(*this, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window); }
Tensor Tensor::istft(int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool center, bool normalized, std::optional<bool> onesided, std::optional<int64_t> length, bool return_complex) const { return rushlight::istft(*this, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex); }
Tensor Tensor::hash_tensor(IntArrayRef dim, bool keepdim, int64_t mode) const { return rushlight::hash_tensor(*this, dim, keepdim, mode); }
Tensor Tensor::dequantize() const { return rushlight::dequantize(*this); }
Tensor Tensor::int_repr() const { return rushlight::int_repr(*this); }
double Tensor::q_scale() const { return rushlight::q_scale(*this); }
int64_t Tensor::q_zero_point() const { return rushlight::q_zero_point(*this); }
Tensor Tensor::q_per_channel_scales() const { return rushlight::q_per_channel_scales(*this); }
Tensor Tensor::q_per_channel_zero_points() const { return rushlight::q_per_channel_zero_points(*this); }
int64_t Tensor::q_per_channel_axis() const { return rushlight::q_per_channel_axis(*this); }
Tensor Tensor::indices() const { return rushlight::indices(*this); }
Tensor Tensor::crow_indices() const { return rushlight::crow_indices(*this); }
Tensor Tensor::col_indices() const { return rushlight::col_indices(*this); }
Tensor Tensor::ccol_indices() const { return rushlight::ccol_indices(*this); }
Tensor Tensor::row_indices() const { return rushlight::row_indices(*this); }
Tensor Tensor::values() const { return rushlight::values(*this); }
int64_t Tensor::sparse_dim() const { return rushlight::sparse_dim(*this); }
int64_t Tensor::dense_dim() const { return rushlight::dense_dim(*this); }
bool Tensor::is_coalesced() const { return rushlight::is_coalesced(*this); }
Tensor Tensor::coalesce() const { return rushlight::coalesce(*this); }
Tensor Tensor::sparse_mask(const Tensor& mask) const { static const Op& op = find_operator("sparse_mask"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(mask)}; return call<Tensor>(op, boxed); }
Tensor Tensor::to_dense(std::optional<ScalarType> dtype, std::optional<bool> masked_grad) const { static const Op& op = find_operator("to_dense"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(dtype), Value(masked_grad)}; return call<Tensor>(op, boxed); }
Tensor Tensor::to_sparse(int64_t sparse_dim) const { static const Op& op = find_operator("to_sparse.sparse_dim"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(sparse_dim)}; return call<Tensor>(op, boxed); }
Tensor Tensor::to_sparse(std::optional<Layout> layout, OptionalIntArrayRef blocksize, std::optional<int64_t> dense_dim) const { static const Op& op = find_operator("to_sparse"); const Tensor& self = *this; const ListOf blocksize_list(blocksize, 2); const Value boxed[] = {Value(self), Value(layout), blocksize_list.value(), Value(dense_dim)}; return call<Tensor>(op, boxed); }
Tensor Tensor::to_sparse_coo() const { static const Op& op = find_operator("to_sparse_coo"); const Tensor& self = *this; const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor Tensor::to_sparse_csr(std::optional<int64_t> dense_dim) const { static const Op& op = find_operator("to_sparse_csr"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(dense_dim)}; return call<Tensor>(op, boxed); }
Tensor Tensor::to_sparse_csc(std::optional<int64_t> dense_dim) const { static const Op& op = find_operator("to_sparse_csc"); const Tensor& self = *this; const Value boxed[] = {Value(self), Value(dense_dim)}; return call<Tensor>(op, boxed); }
Tensor Tensor::to_sparse_bsr(IntArrayRef blocksize, std::optional<int64_t> dense_dim) const { static const Op& op = find_operator("to_sparse_bsr"); const Tensor& self = *this; const ListOf blocksize_list(blocksize, 2); const Value boxed[] = {Value(self), blocksize_list.value(), Value(dense_dim)}; return call<Tensor>(op, boxed); }
Tensor Tensor::to_sparse_bsc(IntArrayRef blocksize, std::optional<int64_t> dense_dim) const { static const Op& op = find_operator("to_sparse_bsc"); const Tensor& self = *this; const ListOf blocksize_list(blocksize, 2); const Value boxed[] = {Value(self), blocksize_list.value(), Value(dense_dim)}; return call<Tensor>(op, boxed); }
Tensor& Tensor::sparse_resize_(IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sparse_resize_(self, size, sparse_dim, dense_dim); }
Tensor& Tensor::sparse_resize_and_clear_(IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) const { Tensor& self = const_cast<Tensor&>(*this); return rushlight::sparse_resize_and_clear_(self, size, sparse_dim, dense_dim); }

}  // namespace rushlight
