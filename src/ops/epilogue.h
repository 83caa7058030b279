// Steps that operators leave to the next reader of an image. Note [Deferred epilogues]
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// image * scale + shift by channel, deferred; undefined where that cannot be deferred.
Tensor defer_affine(const Tensor& image, const Tensor& scale, const Tensor& shift);
// clamp(self, low, high) of a tensor with a deferred epilogue; undefined where it must be computed now.
Tensor defer_clamp(const Call& call, const Tensor& self, double low, double high);
// The same for the sum of two such tensors, one of which at least has a deferred epilogue.
Tensor defer_add(const Call& call, const Tensor& self, const Tensor& other);

}  // namespace rushlight
