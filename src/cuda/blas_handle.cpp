#include "cuda/blas_handle.h"

#include <array>

#include "core/device_backend.h"

namespace rushlight::cuda {

Library& cublas_library() {
  static Library one{"cuBLAS", {"cu13", "cublas"}, {"libcublas.so.13", "libcublas.so.12"}, "nvidia-cublas"};
  return one;
}

void* blas_handle(int device, const char* wish) {
  static const Entry<int(void**)> create{cublas_library(), "cublasCreate_v2"};
  static const Entry<int(void*, void*)> set_stream{cublas_library(), "cublasSetStream_v2"};
  cublas_library().require(wish);
  // A handle serves one caller at a time.
  thread_local std::array<void*, DeviceBackend::kMaxDevices> handles{};
  void*& handle = handles[static_cast<size_t>(device)];
  if (!handle) check_status("cuBLAS", create(&handle), "cublasCreate");
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  check_status("cuBLAS", set_stream(handle, backend.stream(backend.current_stream(device)).handle),
               "cublasSetStream");
  return handle;
}

}  // namespace rushlight::cuda
