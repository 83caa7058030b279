// How losses are reduced, by libtorch's name.
#pragma once
#include "rushlight/tensor.h"

namespace rushlight {

namespace Reduction = reduction;

}  // namespace rushlight
