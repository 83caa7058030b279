// zeros_like by its plain name, for files that don't say `using namespace ops` (the names would clash).
#pragma once
#include "ops/factory.h"
#include "ops/operators.h"

namespace rushlight {

inline Tensor zeros_like(const Tensor& t) { return ops::zeros_like(t); }

}  // namespace rushlight
