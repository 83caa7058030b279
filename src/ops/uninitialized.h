// Memory that nothing has been written to, in deterministic mode: NaN, or the largest integer.
#pragma once
#include "core/tensor.h"

namespace rushlight {

// Whether torch.use_deterministic_algorithms and torch.utils.deterministic.fill_uninitialized_memory ask for
// it.
bool fills_uninitialized();
void fill_uninitialized(const Tensor& t);

}  // namespace rushlight
