// The derivative of a fused kernel where it may itself be differentiated: that of its reference
// implementation.
#pragma once
#include "autograd/engine.h"
#include "ops/view.h"

namespace rushlight {

// The gradients of `inputs` through reference(inputs), which is written in public operators, for the gradient
// g of its result. Inputs are looked at through aliases: what one of them owes to another stays out of it,
// and those that record nothing come to do so, by which a derivative in g alone, and forward mode, find their
// way.
template <class Reference>
Grads gradients_of_reference(Reference&& reference, std::vector<Tensor> inputs, const Tensor& g) {
  const bool recorded = GradMode::enabled();
  GradMode on(true);
  std::vector<Tensor> wanted;
  for (Tensor& t : inputs) {
    if (!t.defined()) continue;
    t = t.requires_grad_flag() ? ops::alias(t) : ops::detach(t);
    // An alias records nothing where the level of a function transform that recorded the input has ended.
    if (!t.requires_grad_flag()) set_requires_grad(t, true);
    wanted.push_back(t);
  }
  const Tensor outputs[] = {reference(inputs)}, seeds[] = {g};
  const std::vector<Tensor> found =
      grad(outputs, wanted, seeds, true, {.keep_graph = true, .create_graph = true, .accumulate = false});
  Grads grads;
  size_t next = 0;
  for (const Tensor& t : inputs) {
    const Tensor part = t.defined() ? found[next++] : Tensor();
    grads.push_back(part.defined() && !recorded ? ops::detach(part) : part);
  }
  return grads;
}

}  // namespace rushlight
