// The derivative of a fused kernel where it may itself be differentiated: that of its reference
// implementation.
#pragma once
#include <functional>

#include "autograd/engine.h"
#include "ops/view.h"

namespace rushlight {

using ReferenceFunction = std::function<Tensor(const std::vector<Tensor>&)>;

// The gradients of those inputs that are defined, at a level of their own: within function transforms
// examples and tensors of levels that have ended record nothing themselves. Set by transform/.
inline std::vector<Tensor> (*gradients_at_own_level)(const ReferenceFunction& reference,
                                                     std::vector<Tensor> inputs, const Tensor& g) = nullptr;

// The gradients of `inputs` through reference(inputs), which is written in public operators, for the gradient
// g of its result. Inputs are looked at through aliases: what one of them owes to another stays out of it,
// and those that record nothing come to do so, by which a derivative in g alone, and forward mode, find their
// way.
inline Grads gradients_of_reference(const ReferenceFunction& reference, std::vector<Tensor> inputs,
                                    const Tensor& g) {
  Grads grads;
  size_t next = 0;
  if (dispatch_state.level) {
    const std::vector<Tensor> found = gradients_at_own_level(reference, inputs, g);
    for (const Tensor& t : inputs) grads.push_back(t.defined() ? found[next++] : Tensor());
    return grads;
  }
  const bool recorded = GradMode::enabled();
  GradMode on(true);
  std::vector<Tensor> wanted;
  for (Tensor& t : inputs) {
    if (!t.defined()) continue;
    t = t.requires_grad_flag() ? ops::alias(t) : ops::detach(t);
    if (!t.requires_grad_flag()) set_requires_grad(t, true);
    wanted.push_back(t);
  }
  const Tensor outputs[] = {reference(inputs)}, seeds[] = {g};
  const std::vector<Tensor> found =
      grad(outputs, wanted, seeds, true, {.keep_graph = true, .create_graph = true, .accumulate = false});
  for (const Tensor& t : inputs) {
    const Tensor part = t.defined() ? found[next++] : Tensor();
    grads.push_back(part.defined() && !recorded ? ops::detach(part) : part);
  }
  return grads;
}

}  // namespace rushlight
