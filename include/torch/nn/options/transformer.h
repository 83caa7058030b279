// For programs that include PyTorch's header of this name.
#pragma once
#include "torch/names.h"
