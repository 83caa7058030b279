// Elements of tensors that serve as lists of numbers.
#pragma once
#include "ops/view.h"

namespace rushlight {

// Element i of a tensor of one dimension, or the number that a tensor of none is. Within a program that is
// being captured the element is a tensor of its own, so that the program names it.
inline Scalar read_element(const Tensor& list, int64_t i) {
  if (list.dim() == 0) return read_scalar(list);
  return list.has_data() ? read_scalar(list, i * list.stride(0)) : read_scalar(ops::select(list, 0, i));
}

}  // namespace rushlight
