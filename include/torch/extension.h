// The name under which programs for PyTorch include it. Operators are functions here, torch::sin(x); tensors
// have few methods yet.
#pragma once
#include "rushlight/extension.h"

namespace rushlight {
using namespace ops;
}
namespace torch = rushlight;
namespace at = rushlight;

#define TORCH_CHECK RL_CHECK
#define TORCH_LIBRARY RUSHLIGHT_LIBRARY
