// The name under which extensions for PyTorch include it: the front end, and TORCH_LIBRARY.
#pragma once
#include "rushlight/extension.h"
#include "torch/names.h"

#define TORCH_LIBRARY RUSHLIGHT_LIBRARY
