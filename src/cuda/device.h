// CUDA devices: streams, and the memory pools on them.
#pragma once
#include <cuda_runtime_api.h>

namespace rushlight::cuda {

// The stream that work of this thread goes to, on a device.
cudaStream_t current_stream(int device);
// Makes a device the current one of this thread until the end of the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;

 private:
  int previous_;
};

}  // namespace rushlight::cuda
