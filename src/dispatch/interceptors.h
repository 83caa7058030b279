// Which interceptors a call may meet.
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// An operator without a derivative meets no autograd, but where its in-place form writes: the history of what
// is overwritten ends there.
inline uint32_t interceptors_of(const Op& op, bool inplace) {
  return op.intercepted | (inplace && op.refusal ? uint32_t{kAutograd} : 0);
}

}  // namespace rushlight
