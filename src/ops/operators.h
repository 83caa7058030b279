// + - * / and comparisons on Tensor and Scalar, as derivatives and composites write them.
#pragma once
#include "ops/comparison.h"
#include "ops/complex.h"
#include "ops/pointwise.h"

namespace rushlight {

inline Tensor operator-(const Tensor& a) { return ops::neg(a); }

#define RL_OPERATOR(symbol, name)                                                             \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return ops::name(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) {                           \
    return ops::name(a, wrapped_number(b));                                                   \
  }                                                                                           \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { return ops::name(wrapped_number(a), b); }
RL_OPERATOR(+, add)
RL_OPERATOR(-, sub)
RL_OPERATOR(*, mul)
RL_OPERATOR(/, div)
RL_OPERATOR(<, lt)
RL_OPERATOR(<=, le)
RL_OPERATOR(>, gt)
RL_OPERATOR(>=, ge)
RL_OPERATOR(&, bitwise_and)
RL_OPERATOR(|, bitwise_or)
RL_OPERATOR(^, bitwise_xor)
#undef RL_OPERATOR
inline Tensor operator~(const Tensor& a) { return ops::bitwise_not(a); }

// With plain numbers. Where `using namespace ops` holds, say rushlight::where(...).
inline Tensor eq(const Tensor& a, const Scalar& b) { return ops::eq(a, wrapped_number(b)); }
inline Tensor ne(const Tensor& a, const Scalar& b) { return ops::ne(a, wrapped_number(b)); }
inline Tensor pow(const Tensor& a, const Scalar& b) { return ops::pow(a, wrapped_number(b)); }
inline Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return ops::where(condition, a, b);
}
inline Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b) {
  return ops::where(condition, a, wrapped_number(b));
}
inline Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b) {
  return ops::where(condition, wrapped_number(a), b);
}
inline Tensor masked_fill(const Tensor& t, const Tensor& mask, const Scalar& value) {
  return ops::masked_fill(t, mask, wrapped_number(value));
}

}  // namespace rushlight
