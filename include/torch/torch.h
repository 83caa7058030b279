// The name under which programs for PyTorch's C++ library include the front end: torch::, at:: and c10:: are
// its name space.
#pragma once
#include "torch/names.h"
