// For nodes that stand for several steps: they run the hooks of their outputs themselves.
#pragma once
#include "autograd/node.h"

namespace rushlight {

// The hooks of one output of a node.
void run_hooks_of_output(Node& node, uint32_t output, Gradients& grads);
// Tensor.retain_grad() of all outputs.
void keep_retained_gradients(Node& node, const Gradients& grads);
// Whether somebody wants to know or change the gradient of an output: a hook, Tensor.retain_grad(), or the
// running pass, which is about to execute `node`, because it was asked for it.
bool is_gradient_watched(Node& node, uint32_t output);

}  // namespace rushlight
