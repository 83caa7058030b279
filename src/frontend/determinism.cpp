#include "rushlight/determinism.h"

#include "core/device_math.h"

namespace rushlight {

void use_batch_invariant(bool mode) { device_math().batch_invariant = mode; }
bool is_batch_invariant_enabled() { return device_math().batch_invariant; }

}  // namespace rushlight
