// Dense linear algebra on this device, as dispatch/device_linalg.h names it, and its small kernels.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight {
struct DeviceLinalg;
}

namespace rushlight::cuda {

DeviceLinalg linalg();

// pointers[i] = base + i * bytes, on the device.
void point_at(int device, int64_t count, void* base, int64_t bytes, void** pointers);
// out[columns, rows] = the adjoint of in[rows, columns]; both by columns.
void adjoint(int device, DType dtype, int64_t rows, int64_t columns, const void* in, void* out);
void permutation(int device, int64_t count, int64_t k, int64_t size, const int32_t* pivots, int64_t* rows);

}  // namespace rushlight::cuda
