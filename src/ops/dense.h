// Tensors for loops that know no strides.
#pragma once
#include "ops/copy.h"

namespace rushlight {

// All elements follow each other, in any order of dimensions: the tensor itself, or a copy.
inline Tensor dense(const Tensor& t) {
  return is_dense_from_data(t) ? t : ops::clone(t, MemoryFormat::Preserve);
}

}  // namespace rushlight
