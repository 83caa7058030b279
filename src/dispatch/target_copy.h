#pragma once
#include "core/tensor.h"

namespace rushlight {

// A copy of what a composite is about to write to, made by an operator that modes and transforms see. Filled
// by src/ops/copy.cpp: this layer must not know operators.
extern Tensor (*copy_of_target)(const Tensor& target);

}  // namespace rushlight
