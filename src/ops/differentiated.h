// Whether derivatives in an operand may be asked for: some composites choose by that what they compute.
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// Within function transforms the tensor that records may be one that `t` stands for.
inline bool is_differentiated(const Tensor& t) {
  const TensorImpl* impl = t.defined() ? t.impl() : nullptr;
  while (impl && !(detail::flags_of(*impl) & dispatch_state.consider & (kAutograd | kForwardGrad)))
    impl = impl->wrapping ? wrapping_hooks.inner(*impl).impl() : nullptr;
  return impl != nullptr;
}

}  // namespace rushlight
