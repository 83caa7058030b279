// Memory that a library needs during one call, from the pool of the current stream.
#pragma once
#include "core/device_backend.h"

namespace rushlight::cuda {

class Workspace {
 public:
  Workspace(size_t bytes, int device) : bytes_(bytes), device_(device) {
    if (bytes) data_ = device_backend(DeviceType::CUDA).allocate(bytes, device);
  }
  ~Workspace() {
    if (data_) device_backend(DeviceType::CUDA).deallocate(data_, bytes_, device_);
  }
  Workspace(const Workspace&) = delete;
  void* data() const { return data_; }

 private:
  size_t bytes_;
  int device_;
  void* data_ = nullptr;
};

}  // namespace rushlight::cuda
