#include "cuda/device.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "core/caching_allocator.h"
#include "core/device_backend.h"
#include "cuda/check.h"
#include "cuda/kernels.h"
#include "dispatch/device_kernels.h"

namespace rushlight::cuda {
namespace {

bool is_blocking() {
  static const bool blocking = [] {
    const char* given = std::getenv("RUSHLIGHT_CUDA_BLOCKING");
    return given && std::string_view(given) == "1";
  }();
  return blocking;
}

// Device memory, for the block logic of core.
class DeviceMemory final : public BlockSource {
 public:
  explicit DeviceMemory(int device) : device_(device) {}

  void* allocate_segment(size_t bytes) override {
    const DeviceScope scope(device_);
    void* address = nullptr;
    const cudaError_t error = cudaMalloc(&address, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // known: not to be reported by the next call
      return nullptr;
    }
    check(error, "cudaMalloc");
    return address;
  }
  void free_segment(void* address, size_t) noexcept override {
    const cudaError_t error = cudaFree(address);
    (void)error;  // the driver shuts down before the last tensors of a program
  }
  Event record_event(StreamId stream) override {
    const DeviceScope scope(device_);
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventRecord(event, reinterpret_cast<cudaStream_t>(stream)), "cudaEventRecord");
    return reinterpret_cast<Event>(event);
  }
  bool query_event(Event event) override {
    const cudaError_t error = cudaEventQuery(reinterpret_cast<cudaEvent_t>(event));
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(error, "cudaEventQuery");
    return true;
  }
  void wait_event(Event event) override {
    check(cudaEventSynchronize(reinterpret_cast<cudaEvent_t>(event)), "cudaEventSynchronize");
  }
  void release_event(Event event) noexcept override {
    cudaEventDestroy(reinterpret_cast<cudaEvent_t>(event));
  }
  std::string name() const override { return str("CUDA device ", device_); }

 private:
  int device_;
};

struct Pools {
  explicit Pools(int device) : source(device), blocks(source) {}
  DeviceMemory source;
  CachingAllocator blocks;
};

class CudaDevices final : public DeviceBackend {
 public:
  explicit CudaDevices(int count) {
    for (int i = 0; i < count; ++i) pools_.push_back(std::make_unique<Pools>(i));
  }
  int device_count() override { return static_cast<int>(pools_.size()); }
  int current_device() override {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }
  void set_device(int device) override { check(cudaSetDevice(device), "cudaSetDevice"); }

  void* allocate(size_t nbytes, int device) override {
    return pools_[device]->blocks.allocate(nbytes, reinterpret_cast<StreamId>(current_stream(device)));
  }
  void deallocate(void* address, size_t, int device) noexcept override {
    pools_[device]->blocks.deallocate(address);
  }

  void copy(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
            bool non_blocking) override {
    const Device ruling = to_device.is_cpu() ? from_device : to_device;
    const DeviceScope scope(ruling.index);
    const cudaStream_t stream = current_stream(ruling.index);
    check(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    const bool host = to_device.is_cpu() || from_device.is_cpu();
    if ((host && !non_blocking) || is_blocking()) check(cudaStreamSynchronize(stream), "copy");
  }
  void synchronize(int device) override {
    const DeviceScope scope(device);
    check(cudaDeviceSynchronize(), "synchronize");
  }

 private:
  std::vector<std::unique_ptr<Pools>> pools_;
};

// Registers when the library is loaded, if there is a driver and a device.
const bool registered = [] {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return false;
  register_device_backend(DeviceType::CUDA, new CudaDevices(count));  // outlives every tensor
  register_device_kernels(DeviceType::CUDA, &kernels());
  return true;
}();

}  // namespace

cudaStream_t current_stream(int) { return nullptr; }  // the default stream of each device

DeviceScope::DeviceScope(int device) {
  check(cudaGetDevice(&previous_), "cudaGetDevice");
  if (device >= 0 && device != previous_) check(cudaSetDevice(device), "cudaSetDevice");
}
DeviceScope::~DeviceScope() { cudaSetDevice(previous_); }

void fail(cudaError_t error, const char* what) {
  RL_FAIL(
      "CUDA error: ", cudaGetErrorString(error), " (in ", what,
      ").\nWork on the device is reported late: RUSHLIGHT_CUDA_BLOCKING=1 names the operator that failed.");
}

void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
  if (is_blocking()) check(cudaDeviceSynchronize(), kernel);
}

}  // namespace rushlight::cuda
