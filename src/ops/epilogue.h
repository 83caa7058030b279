// Steps that operators leave to the next reader of an image. Note [Unfinished images]
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// image * scale + shift by channel, hidden; undefined where it cannot be left for later.
Tensor affine_later(const Tensor& image, const Tensor& scale, const Tensor& shift);
// clamp(self, low, high) of a tensor whose image is unfinished; undefined where it must be computed now.
Tensor clamp_later(const Call& call, const Tensor& self, double low, double high);
// The same for the sum of two such tensors, one of which at least is unfinished.
Tensor add_later(const Call& call, const Tensor& self, const Tensor& other);

}  // namespace rushlight
