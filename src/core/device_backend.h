// Devices other than the CPU: pools of memory, streams, pinned memory and graphs on what a device's library
// provides (core/device_driver.h).
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/caching_allocator.h"
#include "core/device.h"
#include "core/device_driver.h"

namespace rushlight {

struct StreamInfo {
  int device;
  int priority;
  DeviceDriver::Stream handle;
};

// Blocks that belong to one device, or to the pinned memory of the host, for which streams of all devices
// count.
class DeviceMemory final : public BlockSource {
 public:
  static constexpr int kPinned = -1;
  DeviceMemory(class DeviceBackend& backend, int device) : backend_(backend), device_(device) {}

  void* allocate_segment(size_t bytes) override;
  void free_segment(void* address, size_t bytes) noexcept override;
  size_t mapping_step() override;
  void* reserve_addresses(size_t* bytes) override;
  void release_addresses(void* address, size_t bytes) noexcept override;
  bool map_memory(void* address, size_t bytes) override;
  void unmap_memory(void* address, size_t bytes) noexcept override;
  Event record_event(StreamId stream) override;
  bool query_event(Event event) override;
  void wait_event(Event event) override;
  void release_event(Event event) noexcept override;
  std::string name() const override;
  std::string describe() override;

 private:
  DeviceBackend& backend_;
  int device_;
};

class DeviceBackend {
 public:
  static constexpr int kMaxDevices = 16;
  explicit DeviceBackend(DeviceDriver& driver);

  DeviceDriver& driver() { return driver_; }
  int device_count() const { return count_; }
  int current_device() { return driver_.current_device(); }
  void set_device(int device) { driver_.set_device(device); }
  const DeviceProperties& properties(int device);

  // Memory for work on the device's current stream; the same stream may reuse it as soon as it is freed.
  void* allocate(size_t nbytes, int device);
  void deallocate(void* address, size_t nbytes, int device) noexcept;
  CachingAllocator& memory(int device) { return *pools_[static_cast<size_t>(device)]; }
  // States that a stream also uses this memory. Memory of others (views of foreign buffers) is left alone.
  void record_stream(void* address, int device, StreamId stream);
  // At most this share of the device's memory is taken.
  void set_memory_fraction(int device, double fraction);
  double memory_fraction(int device) const { return fractions_[static_cast<size_t>(device)]; }

  // Page-locked memory of the host, reused when the copies from and to it are done.
  void* allocate_pinned(size_t nbytes);
  void deallocate_pinned(void* address) noexcept;
  bool is_pinned(const void* address) const { return pinned_.owns(address); }
  CachingAllocator& pinned_memory() { return pinned_; }

  // Streams. 0 ... device_count - 1 are the default streams of the devices.
  StreamId current_stream(int device) const;
  void set_current_stream(StreamId stream);
  StreamId default_stream(int device) const { return device; }
  // One of 32 streams of a priority, in turn.
  StreamId pooled_stream(int device, int priority);
  StreamId external_stream(int device, DeviceDriver::Stream handle);
  StreamInfo stream(StreamId id) const;
  void synchronize_stream(StreamId id);
  // What a stream is given from now on runs after what another has been given so far.
  void follow(StreamId later, StreamId earlier);

  // Bytes between two devices, or the CPU and one, in the order of the current streams of both. Host memory
  // may be reused on return unless `non_blocking` is set and the memory is pinned.
  void copy(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
            bool non_blocking);
  // Returns when all work of a device is done; reports what failed since the last time.
  void synchronize(int device);

  // Remembers which operator gave work to a device, for the report of a failure. Waits for it where
  // RUSHLIGHT_CUDA_BLOCKING=1 asks for that.
  void launched(int device, std::string_view what);
  // Adds to an error what may have caused it.
  std::string explain(int device, const char* what) const;

  // What this thread allocates on a device comes from a pool of its own until the end: for graphs.
  void begin_private_pool(int device, PoolId pool);
  void end_private_pool(int device);
  void release_private_pool(int device, PoolId pool);
  PoolId new_pool() { return next_pool_++; }

 private:
  static constexpr size_t kRemembered = 8;
  static constexpr size_t kPooledStreams = 32;
  struct Recent {
    std::array<std::string_view, kRemembered> names;
    size_t count = 0;
  };

  void copy_between_devices(void* to, int to_device, const void* from, int from_device, size_t nbytes);
  template <class F>
  auto reported(int device, F&& f);

  DeviceDriver& driver_;
  int count_;
  std::vector<std::unique_ptr<DeviceMemory>> sources_;
  std::vector<std::unique_ptr<CachingAllocator>> pools_;
  std::vector<double> fractions_;
  DeviceMemory pinned_source_;
  CachingAllocator pinned_;
  std::vector<std::unique_ptr<DeviceProperties>> properties_;
  mutable std::mutex mutex_;  // of what follows
  std::deque<StreamInfo> streams_;
  struct StreamPool {
    int device, priority;
    std::vector<StreamId> ids;
    size_t next = 0;
  };
  std::vector<StreamPool> stream_pools_;
  std::array<Recent, kMaxDevices> recent_;
  std::atomic<PoolId> next_pool_{1};
};

// Makes a device the current one of this thread until the end of the scope.
class DeviceScope {
 public:
  DeviceScope(DeviceDriver& driver, int device) : driver_(driver), previous_(driver.current_device()) {
    if (device != previous_) driver_.set_device(device);
  }
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;

 private:
  DeviceDriver& driver_;
  int previous_;
};

// The operator that this thread computes on a device, named in reports; the text lives as long as the
// process.
extern thread_local const std::string_view* device_operator;

// Called by a device's library when it is loaded.
void register_device_driver(DeviceType type, DeviceDriver* driver);
// Null where there is no such device: no library, no driver, no hardware. Loads the library on first use.
DeviceBackend* find_device_backend(DeviceType type);
// As above; fails with PyTorch's message, and in a forked child of a process that used the device.
DeviceBackend& device_backend(DeviceType type);
// Whether this process is such a child.
bool in_bad_fork();
// Whether this process has used a device.
bool device_in_use();
// With its number: the current device of its type where none was named. CPU and meta have none.
Device numbered(Device device);

}  // namespace rushlight
