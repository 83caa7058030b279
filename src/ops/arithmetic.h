// + - * / and comparisons on Tensor and Scalar, as programs, derivatives and composites write them.
#pragma once
#include "core/tensor.h"

namespace rushlight {

Tensor operator-(const Tensor& a);
Tensor operator~(const Tensor& a);

#define RL_OPERATOR(symbol)                                 \
  Tensor operator symbol(const Tensor& a, const Tensor& b); \
  Tensor operator symbol(const Tensor& a, const Scalar& b); \
  Tensor operator symbol(const Scalar& a, const Tensor& b);
RL_OPERATOR(+)
RL_OPERATOR(-)
RL_OPERATOR(*)
RL_OPERATOR(/)
RL_OPERATOR(%)
RL_OPERATOR(<)
RL_OPERATOR(<=)
RL_OPERATOR(>)
RL_OPERATOR(>=)
RL_OPERATOR(==)
RL_OPERATOR(!=)
RL_OPERATOR(&)
RL_OPERATOR(|)
RL_OPERATOR(^)
#undef RL_OPERATOR
Tensor operator!(const Tensor& a);

// With plain numbers. Where `using namespace ops` holds, say rushlight::where(...).
Tensor eq(const Tensor& self, const Scalar& other);
Tensor ne(const Tensor& self, const Scalar& other);
Tensor pow(const Tensor& self, const Scalar& exponent);
Tensor pow(const Scalar& self, const Tensor& exponent);
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);

}  // namespace rushlight
