// The few public operators that the engine itself uses. They record like any other call, so double backward
// needs nothing more. Filled by src/ops/gradient_ops.cpp: this layer must not know operators.
#pragma once
#include "dispatch/value.h"

namespace rushlight {

struct GradientOps {
  Tensor (*add)(const Tensor& a, const Tensor& b) = nullptr;
  void (*add_into)(const Tensor& target, const Tensor& value) = nullptr;  // in place
  Tensor (*sum_dims)(const Tensor& t, IntList dims) = nullptr;            // keeps the dimensions, with size 1
  Tensor (*reshape)(const Tensor& t, IntList sizes) = nullptr;
  Tensor (*cast)(const Tensor& t, DType dtype) = nullptr;
  Tensor (*real)(const Tensor& t) = nullptr;
  Tensor (*view_as_real)(const Tensor& t) = nullptr;
  Tensor (*view_as_complex)(const Tensor& t) = nullptr;
  Tensor (*turned)(const Tensor& t, uint32_t pending) = nullptr;  // conjugated, negated: core/pending.h
  Tensor (*clone)(const Tensor& t) = nullptr;
  Tensor (*clone_in_order)(const Tensor& t) = nullptr;  // of sparse tensors as they are
  Tensor (*detach)(const Tensor& t) = nullptr;          // seen by __torch_dispatch__
  Tensor (*as_strided)(const Tensor& t, IntList sizes, IntList strides, int64_t offset) = nullptr;
  Tensor (*new_empty_strided)(const Tensor& like, IntList sizes, IntList strides) = nullptr;
  void (*copy_into)(const Tensor& target, const Tensor& source) = nullptr;
  Tensor (*ones_like)(const Tensor& t) = nullptr;
  Tensor (*zeros)(IntList sizes, DType dtype, Device device) = nullptr;
  bool (*has_nan)(const Tensor& t) = nullptr;
};
extern GradientOps gradient_ops;

}  // namespace rushlight
