// Whether a composite may compute by itself what it would have operators do.
#pragma once
#include "dispatch/table.h"

namespace rushlight::ops {

// Whether the gate would lead a call on `t` straight to the CPU's kernel: nobody else may ask for results
// besides the first, or for the steps in between.
inline bool is_plain(const Tensor& t) {
  const DispatchState& state = dispatch_state;
  return t.is_cpu() && ((state.always | (detail::flags_of(t) & state.consider)) & kDispatchBits) == 0;
}

}  // namespace rushlight::ops
