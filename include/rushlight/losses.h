// Losses as functions, with the arguments that programs leave out.
#pragma once
#include "rushlight/tensor.h"

namespace rushlight {

namespace Reduction = reduction;

inline Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return smooth_l1_loss(self, target, reduction, 1.0);
}
inline Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return huber_loss(self, target, reduction, 1.0);
}
inline Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean,
                     bool log_target = false) {
  const Tensor each = log_target ? target.exp() * (target - self) : xlogy(target, target) - target * self;
  if (reduction == Reduction::None) return each;
  return reduction == Reduction::Mean ? each.mean() : each.sum();
}

}  // namespace rushlight
