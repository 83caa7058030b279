// The way out for operators that a device lacks.
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// Note [Operators that a device lacks]
// An operator runs on a device when its record has a kernel there: a view, a composite, a kernel whose loops
// ask ops/device_loops.h, or one of the device's library. The others run on the CPU: operands are copied
// there, results and what was written in place are copied back, and the first call of each operator warns.
// RUSHLIGHT_CUDA_FALLBACK=error refuses instead, =silent does not warn.
void run_on_cpu(const Op& op, const Value* args, Results& results, Device device);

}  // namespace rushlight
