// Memory from the caching allocator for the length of a scope. Not for files of isa/: those use scratch.h.
#pragma once
#include <new>
#include <utility>
#include <vector>

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

// A vector of such memory: large ones lie in huge pages, which pay for no faults and little translation when
// they are taken again. Elements that are not given a value have none.
template <class T>
struct FromCache {
  using value_type = T;
  FromCache() = default;
  template <class U>
  FromCache(const FromCache<U>&) {}  // NOLINT: implicit, as allocators are rebound
  T* allocate(size_t n) { return static_cast<T*>(cpu_allocate(n * sizeof(T))); }
  void deallocate(T* data, size_t n) noexcept { cpu_deallocate(data, n * sizeof(T)); }
  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
  bool operator==(const FromCache&) const { return true; }
};
template <class T>
using CachedVector = std::vector<T, FromCache<T>>;

}  // namespace rushlight::cpu
