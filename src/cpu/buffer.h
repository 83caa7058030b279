// Memory from the caching allocator for the length of a scope. Not for files of isa/: those use scratch.h.
#pragma once
#include "core/cpu_allocator.h"

namespace rushlight::cpu {

class Buffer {
 public:
  explicit Buffer(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), data_(bytes ? cpu_allocate(bytes_) : nullptr) {}
  ~Buffer() {
    if (data_) cpu_deallocate(data_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  size_t bytes_;
  void* data_;
};

}  // namespace rushlight::cpu
