#include "ops/arithmetic.h"

#include "ops/comparison.h"
#include "ops/complex.h"
#include "ops/pointwise.h"

namespace rushlight {

Tensor operator-(const Tensor& a) { return ops::neg(a); }
Tensor operator~(const Tensor& a) { return ops::bitwise_not(a); }
Tensor operator!(const Tensor& a) { return ops::logical_not(a); }

#define RL_OPERATOR(symbol, name)                                                                      \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return ops::name(a, b); }                 \
  Tensor operator symbol(const Tensor& a, const Scalar& b) { return ops::name(a, wrapped_number(b)); } \
  Tensor operator symbol(const Scalar& a, const Tensor& b) { return ops::name(wrapped_number(a), b); }
RL_OPERATOR(+, add)
RL_OPERATOR(-, sub)
RL_OPERATOR(*, mul)
RL_OPERATOR(/, div)
RL_OPERATOR(%, remainder)
RL_OPERATOR(<, lt)
RL_OPERATOR(<=, le)
RL_OPERATOR(>, gt)
RL_OPERATOR(>=, ge)
RL_OPERATOR(==, eq)
RL_OPERATOR(!=, ne)
RL_OPERATOR(&, bitwise_and)
RL_OPERATOR(|, bitwise_or)
RL_OPERATOR(^, bitwise_xor)
#undef RL_OPERATOR

Tensor eq(const Tensor& self, const Scalar& other) { return ops::eq(self, wrapped_number(other)); }
Tensor ne(const Tensor& self, const Scalar& other) { return ops::ne(self, wrapped_number(other)); }
Tensor pow(const Tensor& self, const Scalar& exponent) { return ops::pow(self, wrapped_number(exponent)); }
Tensor pow(const Scalar& self, const Tensor& exponent) { return ops::pow(wrapped_number(self), exponent); }
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  return ops::where(condition, self, other);
}
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return ops::where(condition, self, wrapped_number(other));
}
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return ops::where(condition, wrapped_number(self), other);
}
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return ops::where(condition, wrapped_number(self), wrapped_number(other));
}
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return ops::masked_fill(self, mask, wrapped_number(value));
}

}  // namespace rushlight
