// Errors of the CUDA runtime as PyTorch words them.
#pragma once
#include <cuda_runtime_api.h>

#include "core/error.h"

namespace rushlight::cuda {

[[noreturn]] void fail(cudaError_t error, const char* what);

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) [[unlikely]]
    fail(error, what);
}
// After a launch: refused launches are reported at once; what fails while running, at the next
// synchronisation, or here with RUSHLIGHT_CUDA_BLOCKING=1.
void check_launch(const char* kernel);

}  // namespace rushlight::cuda
