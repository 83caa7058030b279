// Comparisons, logical operations and choosing by a condition.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

// A Python number or C++ Scalar comes in as a wrapped-number tensor; operators.h has the Scalar spellings.
inline Fn<Tensor(const Tensor& self, const Tensor& other)> eq, ne, lt, le, gt, ge;
inline Fn<Tensor(const Tensor& self, const Tensor& other)> logical_and, logical_or, logical_xor;
inline Fn<Tensor(const Tensor& self)> logical_not, isnan, isinf, isfinite, isposinf, isneginf, isreal;
inline Fn<Tensor(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan)> isclose;
inline Fn<bool(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan)> allclose;
inline Fn<bool(const Tensor& self, const Tensor& other)> equal;

// self where condition, else other.
inline Fn<Tensor(const Tensor& condition, const Tensor& self, const Tensor& other)> where;
inline Fn<Tensor(const Tensor& self, const Tensor& mask, const Tensor& value)> masked_fill;  // value is 0-dim

}  // namespace rushlight::ops
