// What nodes are called: grad_fn.name(), graph viewers and debuggers show it, and programs match on it.
#pragma once
#include <string>

#include "autograd/node.h"
#include "dispatch/op.h"

namespace rushlight {

// "AddBackward0" for the record `add`. `numbers` has a bit for each parameter that was given a Python number
// where a tensor may stand: PyTorch has other derivatives for those, and numbers them.
std::string backward_name(const Op& op, uint32_t numbers = 0);

// The same for the composite that `node` ends.
std::string name_of_composite(const Node& node);

}  // namespace rushlight
