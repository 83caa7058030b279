// The derivative of a fused kernel where gradients are themselves recorded: that of its slow twin.
#pragma once
#include "autograd/engine.h"

namespace rushlight {

// Gradients of `inputs`, as far as they want one, through y, which was computed from them in public
// operators.
inline Grads gradients_by_twin(const Tensor& y, std::initializer_list<Tensor> inputs, const Tensor& g) {
  std::vector<Tensor> wanted;
  for (const Tensor& t : inputs)
    if (t.defined() && t.requires_grad_flag()) wanted.push_back(t);
  const Tensor outputs[] = {y}, seeds[] = {g};
  const std::vector<Tensor> found =
      grad(outputs, wanted, seeds, true, {.keep_graph = true, .create_graph = true, .accumulate = false});
  Grads grads;
  size_t next = 0;
  for (const Tensor& t : inputs)
    grads.push_back(t.defined() && t.requires_grad_flag() ? found[next++] : Tensor());
  return grads;
}

}  // namespace rushlight
