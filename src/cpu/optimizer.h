// One step of an optimizer over many parameters at once.
#pragma once
#include <span>

#include "core/dtype.h"

namespace rushlight::cpu {

// The arrays of one parameter, all of the same type and layout.
struct StepArrays {
  void* param;
  void* grad;
  void* first = nullptr;    // momentum, or the running mean of gradients
  void* second = nullptr;   // the running mean of squared gradients
  void* largest = nullptr;  // AMSGrad's maximum of `second`
  int64_t size = 0;
  double correction1 = 1, correction2 = 1;  // Adam: 1 - beta^step
};

struct SgdOptions {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first_step;  // the momentum starts as the gradient
};

struct AdamOptions {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;  // AdamW: weight decay apart from the gradient
  bool maximize;
};

// Half types compute in float.
void sgd_step(DType dtype, std::span<const StepArrays> params, const SgdOptions& options);
void adam_step(DType dtype, std::span<const StepArrays> params, const AdamOptions& options);
// grad /= scale, as a gradient scaler asks.
void unscale_grads(DType dtype, std::span<const StepArrays> params, double scale);

// The loops over elements [begin, end) of one parameter; one set per instruction set and type.
struct StepLoops {
  void (*sgd)(const StepArrays&, const SgdOptions&, int64_t begin, int64_t end);
  void (*adam)(const StepArrays&, const AdamOptions&, int64_t begin, int64_t end);
  void (*unscale)(const StepArrays&, double scale, int64_t begin, int64_t end);
};

}  // namespace rushlight::cpu
