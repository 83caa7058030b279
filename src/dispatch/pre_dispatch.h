// Modes that see a call as the program made it: before autocast, transforms, autograd, and composites whole.
#pragma once
#include <cstdint>

namespace rushlight {

// In dispatch_state.always while this thread has such modes; above the flags that tensors have.
inline constexpr uint32_t kPreDispatch = 1u << 30;

}  // namespace rushlight
