// Operators whose results depend on an order that their definition leaves open: which of several values for
// one place wins.
#pragma once
#include "core/device_math.h"
#include "dispatch/op.h"

namespace rushlight {

// Refuses the operator, or warns of it, where torch.use_deterministic_algorithms asks for that. Our kernels
// have an order; programs that ask want no result that others give otherwise. `name` is what PyTorch calls it
// there.
inline void check_ordered(const char* name) {
  if (!device_math().deterministic_algorithms) [[likely]]
    return;
  const std::string told =
      str(name,
          " does not have a deterministic implementation, but you set "
          "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this operation, "
          "or you can use the 'warn_only=True' option, if that's acceptable for your application.");
  RL_CHECK(device_math().deterministic_warn_only, told);
  show_warning(told);
}

}  // namespace rushlight
