#include "python/free_threading.h"

#include <cstdint>

namespace rushlight::python {

Name*& Name::first() {
  static constinit Name* list = nullptr;
  return list;
}

ShortLock& IdentityLock::lock_of(const void* address) {
  struct alignas(64) Padded {
    ShortLock lock;
  };
  static constinit Padded locks[64];
  return locks[(reinterpret_cast<uintptr_t>(address) >> 6) * 0x9E3779B97F4A7C15u >> 58].lock;
}

}  // namespace rushlight::python
