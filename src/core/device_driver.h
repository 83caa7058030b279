// What a device's library provides: memory, streams, events and copies, as the CUDA runtime names them.
// Pools, current streams, pinned memory and error reports are built on it once, in core/device_backend.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace rushlight {

struct DeviceProperties {
  std::string name, uuid;
  int major = 0, minor = 0;
  size_t total_memory = 0;
  int multi_processor_count = 0, warp_size = 32;
  int max_threads_per_block = 0, max_threads_per_multi_processor = 0;
  int regs_per_multiprocessor = 0, clock_rate = 0, memory_clock_rate = 0, memory_bus_width = 0;
  size_t shared_memory_per_block = 0, shared_memory_per_block_optin = 0;
  size_t shared_memory_per_multiprocessor = 0, l2_cache_size = 0;
  int pci_bus = 0, pci_device = 0, pci_domain = 0;
  bool integrated = false, multi_gpu_board = false;
};

// Work failed on the device, now or earlier; the device is lost for this process.
class DeviceError : public Error {
 public:
  DeviceError(std::string message, int code) : Error(ErrorKind::Runtime, std::move(message)), code(code) {}
  int code;
};

// Work that a device did while it was observed. Times are the steady clock's, in nanoseconds.
struct DeviceActivity {
  enum class Kind : uint8_t { Kernel, Copy, Fill };
  Kind kind = Kind::Kernel;
  std::string name;
  int device = 0;
  uint64_t stream = 0;  // a number of the driver's
  int64_t start = 0, end = 0, bytes = 0;
  uint64_t cause = 0;  // what push_cause named when it was launched; 0: nothing
};

// Handles are the library's own pointers; the stream nullptr is the default one of the current device. Calls
// that take a stream or an event run with its device as the current one. All fail with DeviceError.
class DeviceDriver {
 public:
  using Stream = void*;
  using Event = void*;
  using Graph = void*;

  virtual ~DeviceDriver() = default;
  virtual int device_count() = 0;
  virtual int current_device() = 0;
  virtual void set_device(int device) = 0;
  virtual DeviceProperties properties(int device) = 0;
  virtual std::string architectures() = 0;  // that the kernels were compiled for: "sm_90 sm_100"
  virtual bool can_access_peer(int device, int peer) = 0;

  // On the current device; null when it has no such memory left.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* address, size_t bytes) noexcept = 0;
  virtual std::pair<size_t, size_t> memory_info() = 0;  // free and total bytes
  // Page-locked memory of the host.
  virtual void* allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(void* address, size_t bytes) noexcept = 0;

  // Expandable segments: a range of addresses, of which parts have memory. A step of zero: not supported.
  virtual size_t mapping_step() { return 0; }
  virtual void* reserve_addresses(size_t) { return nullptr; }
  virtual void release_addresses(void*, size_t) noexcept {}
  virtual bool map_memory(void*, size_t) { return false; }
  virtual void unmap_memory(void*, size_t) noexcept {}

  // From the highest number, the least urgent, to the lowest.
  virtual std::pair<int, int> priority_range() = 0;
  virtual Stream make_stream(int priority) = 0;
  virtual bool query_stream(Stream stream) = 0;
  virtual void synchronize_stream(Stream stream) = 0;
  virtual void synchronize_device() = 0;
  virtual void call_host(Stream stream, std::function<void()> f) = 0;

  virtual Event make_event(bool timing, bool blocking) = 0;
  virtual void release_event(Event event) noexcept = 0;
  virtual void record_event(Event event, Stream stream) = 0;
  virtual void wait_event(Stream stream, Event event) = 0;
  virtual bool query_event(Event event) = 0;
  virtual void synchronize_event(Event event) = 0;
  virtual float elapsed_milliseconds(Event from, Event to) = 0;

  // Between any two places; the host's memory must be pinned for this to return before it is done.
  virtual void copy(void* to, const void* from, size_t bytes, Stream stream) = 0;

  // Graphs of CUDA. `mode`: 0 global, 1 thread-local, 2 relaxed.
  virtual void begin_capture(Stream stream, int mode) = 0;
  virtual Graph end_capture(Stream stream) = 0;
  virtual bool is_capturing(Stream stream) = 0;
  virtual void launch_graph(Graph graph, Stream stream) = 0;
  virtual void release_graph(Graph graph) noexcept = 0;

  // Records what all devices do. Stopping waits for what was launched. False: this driver cannot tell.
  virtual bool start_observing() { return false; }
  virtual std::vector<DeviceActivity> stop_observing() { return {}; }
  // What this thread launches from now on is caused by `id`, until it is popped.
  virtual void push_cause(uint64_t) {}
  virtual void pop_cause() {}

  // An event that other processes may wait for, by what `event_handle` says of it.
  virtual Event make_shared_event(bool blocking) = 0;
  virtual std::string event_handle(Event event) = 0;
  virtual Event open_event(const std::string& handle) = 0;

  // The device whose memory holds an address, or -1: the host's, or nobody's.
  virtual int device_of(const void* address) = 0;
};

}  // namespace rushlight
