#pragma once
#include "autograd/accumulate.h"

namespace rushlight {

// Whether nobody but this view can name its base: composites end in such reshapes of what they computed, and
// `leave_base` makes them tensors of their own.
inline bool has_lone_base(const Tensor& t) {
  return t->view_base && !t->wrapping && t->view_base->use_count() == 1 && !t->view_base->pyobj;
}

}  // namespace rushlight
