// Errors of the CUDA runtime as PyTorch words them.
#pragma once
#include <cuda_runtime_api.h>

namespace rushlight::cuda {

[[noreturn]] void fail(cudaError_t error, const char* what);

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) [[unlikely]]
    fail(error, what);
}

}  // namespace rushlight::cuda
