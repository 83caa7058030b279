// cuBLAS, whose handles matrix products and linear algebra share: each handle holds memory of the device.
#pragma once
#include "cuda/library.h"

namespace rushlight::cuda {

Library& cublas_library();

// This thread's handle for a device, which must be the current one, put on its current stream. Fails where
// the library is missing; `wish` is what needs it.
void* blas_handle(int device, const char* wish);

}  // namespace rushlight::cuda
