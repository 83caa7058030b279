// One step of an optimizer over many parameters at once.
#pragma once
#include <array>
#include <span>

#include "core/dtype.h"

namespace rushlight::cpu {

// The arrays of one parameter, all of the same type and layout.
struct StepArrays {
  void* param;
  void* grad;
  void* first = nullptr;   // momentum, or the running mean of gradients
  void* second = nullptr;  // the running mean of squared gradients
  void* third = nullptr;   // AMSGrad's maximum of `second`
  int64_t size = 0;
  const double* factors = nullptr;          // of this parameter, for update_step
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

// The other optimizers: what becomes of an element p with gradient g and its states a, b, c (`first`,
// `second`, `third`), by numbers n of the group and factors f of the parameter. Weight decay has been added
// to g.
//   Adagrad   a += g^2; p -= f0 g / (sqrt a + n0)
//   RMSprop   a += (1 - n1) (g^2 - a); with c: c += (1 - n1) (g - c), a less c^2 below;
//             d = g / (sqrt a + n0); with b: b = n3 b + d, which is d; p -= n2 d
//   Adadelta  a += (1 - n1) (g^2 - a); d = g sqrt(b + n0) / sqrt(a + n0); b += (1 - n1) (d^2 - b); p -= n2 d
//   Adamax    a += (1 - n1) (g - a); b = max(n2 b, |g| + n0); p -= f0 a / b
//   NAdam     a += (1 - n1) (g - a); b += (1 - n2) (g^2 - b); p -= (f0 g + f1 a) / (sqrt(b / f2) + n0)
//   RAdam     a, b as NAdam; p -= f0 a, or with f1 != 0: f0 f1 a / (sqrt b + n0)
//   ASGD      p = p (1 - f0 n0) - f0 g; a += f1 (p - a)
//   Rprop     b is scaled by n0, n1 or 1 and kept in [n2, n3] as g a is below, above or 0; below: g = 0;
//             p -= sign(g) b; a = g
enum class UpdateRule : uint8_t { Adagrad, RMSprop, Adadelta, Adamax, NAdam, RAdam, ASGD, Rprop };
constexpr size_t kUpdateRules = 8, kUpdateNumbers = 4;

struct UpdateOptions {
  UpdateRule rule;
  std::array<double, kUpdateNumbers> numbers;
  double weight_decay;
  double shrink;  // decoupled weight decay: 1 - lr * decay
  bool maximize;
};

// Half types compute in float.
void sgd_step(DType dtype, std::span<const StepArrays> params, const SgdOptions& options);
void adam_step(DType dtype, std::span<const StepArrays> params, const AdamOptions& options);
void update_step(DType dtype, std::span<const StepArrays> params, const UpdateOptions& options);
// grad /= scale, as a gradient scaler asks.
void unscale_grads(DType dtype, std::span<const StepArrays> params, double scale);

// The loops over elements [begin, end) of one parameter; one set per instruction set and type.
struct StepLoops {
  void (*sgd)(const StepArrays&, const SgdOptions&, int64_t begin, int64_t end);
  void (*adam)(const StepArrays&, const AdamOptions&, int64_t begin, int64_t end);
  void (*update[kUpdateRules])(const StepArrays&, const UpdateOptions&, int64_t begin, int64_t end);
  void (*unscale)(const StepArrays&, double scale, int64_t begin, int64_t end);
};

}  // namespace rushlight::cpu
