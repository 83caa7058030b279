// Sums into rows that an index picks: what index_add, accumulating index_put and embeddings' gradients share.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// to[i] += from[i] * scale on adjacent elements, halves through float. Null for other than floating types.
using AddRun = void (*)(void* to, const void* from, double scale, int64_t n);
AddRun add_run_kernel(DType dtype);

}  // namespace rushlight::cpu
