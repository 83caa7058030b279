// What a device other than the CPU provides: memory, copies, and waiting. Its library registers one on
// loading.
#pragma once
#include <cstddef>

#include "core/device.h"

namespace rushlight {

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual int device_count() = 0;
  virtual int current_device() = 0;
  virtual void set_device(int device) = 0;

  // Memory for work on the device's current stream; the same stream may reuse it as soon as it is freed.
  virtual void* allocate(size_t nbytes, int device) = 0;
  virtual void deallocate(void* address, size_t nbytes, int device) noexcept = 0;

  // Bytes between two devices, or the CPU and one, in the order of the current stream. Host memory may be
  // reused on return unless `non_blocking` is set and the memory is pinned.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
                    bool non_blocking) = 0;
  // Returns when all work of a device is done; reports what failed since the last time.
  virtual void synchronize(int device) = 0;
};

// Called by a device's library when it is loaded.
void register_device_backend(DeviceType type, DeviceBackend* backend);
// Null where there is no such device: no library, no driver, no hardware. Loads the library on first use.
DeviceBackend* find_device_backend(DeviceType type);
// As above; fails with PyTorch's message, and says what is missing.
DeviceBackend& device_backend(DeviceType type);
// With its number: the current device of its type where none was named. CPU and meta have none.
Device numbered(Device device);

}  // namespace rushlight
