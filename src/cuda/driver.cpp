// The CUDA runtime as core/device_driver.h wants it.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "core/device_backend.h"
#include "core/device_math.h"
#include "cuda/check.h"
#include "cuda/cupti.h"
#include "cuda/gemm_plan.h"
#include "cuda/kernels.h"
#include "cuda/layers.h"
#include "cuda/nvrtc.h"
#include "cuda/operands.h"
#include "cuda/solver.h"
#include "device/kernels.h"
#include "device/layers.h"
#include "device/linalg.h"
#include "device/moves.h"

namespace rushlight::cuda {
namespace {

[[noreturn]] void refuse(cudaError_t error, const char* what) {
  // Reported once: the next launch asks for the last error and is not to be blamed for this one. A lost
  // device answers with it again.
  (void)cudaGetLastError();
  std::string text = str("CUDA error: ", cudaGetErrorString(error), " (in ", what, ")");
  if (error == cudaErrorNoKernelImageForDevice) {
    int device = 0, major = 0, minor = 0;
    (void)cudaGetDevice(&device);
    (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    text += str("\nThe device has compute capability ", major, ".", minor, "; the kernels were compiled for ",
                RL_CUDA_ARCHITECTURES, " (RUSHLIGHT_CUDA_ARCHITECTURES when building).");
  }
  throw DeviceError(text, static_cast<int>(error));
}

// Of this file's calls of the runtime; the backend adds what may have caused an error. Kernels' launches ask
// fail below.
void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) [[unlikely]]
    refuse(error, what);
}

// What a kernel does wrong, which any later call may report.
bool is_fault(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

// A function of the driver's own, which the runtime finds; null where it is missing.
template <class F>
class DriverEntry {
 public:
  explicit DriverEntry(const char* name) {
    cudaDriverEntryPointQueryResult found;
    void* address = nullptr;
    if (cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found) == cudaSuccess &&
        found == cudaDriverEntryPointSuccess)
      function_ = reinterpret_cast<F*>(address);
    cudaGetLastError();
  }
  operator F*() const { return function_; }

 private:
  F* function_ = nullptr;
};

// Mapping memory, for which the runtime has no functions.
struct MappingFunctions {
  DriverEntry<decltype(cuMemAddressReserve)> reserve{"cuMemAddressReserve"};
  DriverEntry<decltype(cuMemAddressFree)> free{"cuMemAddressFree"};
  DriverEntry<decltype(cuMemCreate)> create{"cuMemCreate"};
  DriverEntry<decltype(cuMemRelease)> release{"cuMemRelease"};
  DriverEntry<decltype(cuMemMap)> map{"cuMemMap"};
  DriverEntry<decltype(cuMemUnmap)> unmap{"cuMemUnmap"};
  DriverEntry<decltype(cuMemSetAccess)> set_access{"cuMemSetAccess"};

  bool complete() const { return reserve && free && create && release && map && unmap && set_access; }
};

const MappingFunctions& mapping() {
  static const MappingFunctions functions;
  return functions;
}

// Allocations are legal while a stream is captured: graphs own pools that they grow.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

cudaStream_t stream_of(void* s) { return static_cast<cudaStream_t>(s); }
cudaEvent_t event_of(void* e) { return static_cast<cudaEvent_t>(e); }

// cudaErrorNotReady is an answer, not an error.
bool is_ready(cudaError_t error, const char* what) {
  if (error != cudaErrorNotReady) {
    check(error, what);
    return true;
  }
  cudaGetLastError();
  return false;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += byte;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

class CudaDriver final : public DeviceDriver {
 public:
  explicit CudaDriver(int count) : count_(count) {}

  int device_count() override { return count_; }
  int current_device() override {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }
  void set_device(int device) override { check(cudaSetDevice(device), "cudaSetDevice"); }
  DeviceProperties properties(int device) override;
  std::string architectures() override { return RL_CUDA_ARCHITECTURES; }
  bool can_access_peer(int device, int peer) override {
    int can = 0;
    check(cudaDeviceCanAccessPeer(&can, device, peer), "cudaDeviceCanAccessPeer");
    return can != 0;
  }

  void* allocate(size_t bytes) override {
    const RelaxedCapture relaxed;
    void* address = nullptr;
    const cudaError_t error = cudaMalloc(&address, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // known: not to be reported by the next call
      return nullptr;
    }
    check(error, "cudaMalloc");
    return address;
  }
  // The CUDA driver may have shut down before the last tensors of a program.
  void release(void* address, size_t) noexcept override { (void)cudaFree(address); }
  std::pair<size_t, size_t> memory_info() override {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return {free, total};
  }
  void* allocate_pinned(size_t bytes) override {
    const RelaxedCapture relaxed;
    void* address = nullptr;
    const cudaError_t error = cudaHostAlloc(&address, bytes, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check(error, "cudaHostAlloc");
    return address;
  }
  void release_pinned(void* address, size_t) noexcept override { (void)cudaFreeHost(address); }
  int device_of(const void* address) override {
    cudaPointerAttributes found;
    if (cudaPointerGetAttributes(&found, address) != cudaSuccess) {
      cudaGetLastError();
      return -1;
    }
    return found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged ? found.device : -1;
  }

  size_t mapping_step() override { return mapping().complete() ? size_t{2} << 20 : 0; }
  void* reserve_addresses(size_t bytes) override {
    CUdeviceptr address = 0;
    return mapping().reserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS ? reinterpret_cast<void*>(address)
                                                                       : nullptr;
  }
  void release_addresses(void* address, size_t bytes) noexcept override {
    mapping().free(reinterpret_cast<CUdeviceptr>(address), bytes);
  }
  bool map_memory(void* address, size_t bytes) override;
  void unmap_memory(void* address, size_t bytes) noexcept override {
    cudaDeviceSynchronize();
    for (size_t at = 0; at < bytes; at += mapping_step())
      mapping().unmap(reinterpret_cast<CUdeviceptr>(address) + at, mapping_step());
  }

  std::pair<int, int> priority_range() override {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    return {least, greatest};
  }
  Stream make_stream(int priority) override {
    const RelaxedCapture relaxed;
    cudaStream_t stream;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreate");
    return stream;
  }
  bool query_stream(Stream s) override { return is_ready(cudaStreamQuery(stream_of(s)), "cudaStreamQuery"); }
  void synchronize_stream(Stream s) override {
    check(cudaStreamSynchronize(stream_of(s)), "cudaStreamSynchronize");
  }
  void synchronize_device() override { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }
  void call_host(Stream s, std::function<void()> f) override {
    auto run = [](void* context) {
      const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(context));
      (*work)();
    };
    check(cudaLaunchHostFunc(stream_of(s), run, new std::function<void()>(std::move(f))),
          "cudaLaunchHostFunc");
  }

  Event make_event(bool timing, bool blocking) override {
    cudaEvent_t event;
    const unsigned flags =
        (timing ? 0u : unsigned{cudaEventDisableTiming}) | (blocking ? unsigned{cudaEventBlockingSync} : 0u);
    check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreate");
    return event;
  }
  Event make_shared_event(bool blocking) override {
    cudaEvent_t event;
    const unsigned flags =
        cudaEventInterprocess | cudaEventDisableTiming | (blocking ? unsigned{cudaEventBlockingSync} : 0u);
    check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreate");
    return event;
  }
  std::string event_handle(Event e) override {
    cudaIpcEventHandle_t handle;
    check(cudaIpcGetEventHandle(&handle, event_of(e)), "cudaIpcGetEventHandle");
    return {handle.reserved, sizeof handle.reserved};
  }
  Event open_event(const std::string& text) override {
    cudaIpcEventHandle_t handle;
    RL_CHECK_VALUE(text.size() == sizeof handle.reserved, "an event's handle has ", sizeof handle.reserved,
                   " bytes, got ", text.size());
    std::memcpy(handle.reserved, text.data(), text.size());
    cudaEvent_t event;
    check(cudaIpcOpenEventHandle(&event, handle), "cudaIpcOpenEventHandle");
    return event;
  }
  void release_event(Event e) noexcept override { (void)cudaEventDestroy(event_of(e)); }
  void record_event(Event e, Stream s) override {
    check(cudaEventRecord(event_of(e), stream_of(s)), "cudaEventRecord");
  }
  void wait_event(Stream s, Event e) override {
    check(cudaStreamWaitEvent(stream_of(s), event_of(e), 0), "cudaStreamWaitEvent");
  }
  bool query_event(Event e) override { return is_ready(cudaEventQuery(event_of(e)), "cudaEventQuery"); }
  void synchronize_event(Event e) override {
    check(cudaEventSynchronize(event_of(e)), "cudaEventSynchronize");
  }
  float elapsed_milliseconds(Event from, Event to) override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to)), "cudaEventElapsedTime");
    return milliseconds;
  }

  void copy(void* to, const void* from, size_t bytes, Stream s) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(s)), "cudaMemcpyAsync");
  }

  void begin_capture(Stream s, int mode) override {
    check(cudaStreamBeginCapture(stream_of(s), static_cast<cudaStreamCaptureMode>(mode)),
          "cudaStreamBeginCapture");
  }
  Graph end_capture(Stream s) override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_of(s), &graph), "cudaStreamEndCapture");
    cudaGraphExec_t ready = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&ready, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch);
    cudaGraphDestroy(graph);
    check(error, "cudaGraphInstantiate");
    return ready;
  }
  bool is_capturing(Stream s) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream_of(s), &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }
  void launch_graph(Graph graph, Stream s) override {
    check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(s)), "cudaGraphLaunch");
  }
  void release_graph(Graph graph) noexcept override {
    (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
  }

  bool start_observing() override { return cupti_start(); }
  std::vector<DeviceActivity> stop_observing() override {
    for (int device = 0; device < count_; ++device) {
      const DeviceScope scope(*this, device);
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    return cupti_stop();
  }
  void push_cause(uint64_t id) override { cupti_push(id); }
  void pop_cause() override { cupti_pop(); }

 private:
  int count_;
};

DeviceProperties CudaDriver::properties(int device) {
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties");
  auto attribute = [&](cudaDeviceAttr a) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, a, device), "cudaDeviceGetAttribute");
    return value;
  };
  DeviceProperties out;
  out.name = p.name, out.uuid = uuid_text(p.uuid);
  out.major = p.major, out.minor = p.minor;
  out.total_memory = p.totalGlobalMem;
  out.multi_processor_count = p.multiProcessorCount, out.warp_size = p.warpSize;
  out.max_threads_per_block = p.maxThreadsPerBlock;
  out.max_threads_per_multi_processor = p.maxThreadsPerMultiProcessor;
  out.regs_per_multiprocessor = p.regsPerMultiprocessor;
  out.clock_rate = attribute(cudaDevAttrClockRate);
  out.memory_clock_rate = attribute(cudaDevAttrMemoryClockRate), out.memory_bus_width = p.memoryBusWidth;
  out.shared_memory_per_block = p.sharedMemPerBlock;
  out.shared_memory_per_block_optin = p.sharedMemPerBlockOptin;
  out.shared_memory_per_multiprocessor = p.sharedMemPerMultiprocessor;
  out.l2_cache_size = static_cast<size_t>(p.l2CacheSize);
  out.pci_bus = p.pciBusID, out.pci_device = p.pciDeviceID, out.pci_domain = p.pciDomainID;
  out.integrated = p.integrated != 0, out.multi_gpu_board = p.isMultiGpuBoard != 0;
  return out;
}

// One physical piece per step, so that any part can be unmapped again.
bool CudaDriver::map_memory(void* address, size_t bytes) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = current_device();
  CUmemAccessDesc access{};
  access.location = wanted.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const size_t step = mapping_step();
  const auto start = reinterpret_cast<CUdeviceptr>(address);
  size_t done = 0;
  for (; done < bytes; done += step) {
    CUmemGenericAllocationHandle piece;
    if (mapping().create(&piece, step, &wanted, 0) != CUDA_SUCCESS) break;
    const bool mapped = mapping().map(start + done, step, 0, piece, 0) == CUDA_SUCCESS;
    mapping().release(piece);  // what is mapped stays until it is unmapped
    if (!mapped) break;
  }
  if (done == bytes && mapping().set_access(start, bytes, &access, 1) == CUDA_SUCCESS) return true;
  for (size_t at = 0; at < done; at += step) mapping().unmap(start + at, step);
  return false;
}

GemmSwitches allowed() {
  const DeviceMath& math = device_math();
  return {math.matmul_tf32, math.half_sums, math.bfloat16_sums, math.half_accumulation};
}
bool product(const Tensor& out, const Tensor& a, const Tensor& b, double alpha, double beta) {
  return run_product(view_of(out), view_of(a), view_of(b), alpha, beta, allowed());
}
bool product_bias(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias,
                  DeviceKernels::Activation activation) {
  return run_product_bias(view_of(out), view_of(a), view_of(b), bias.data_ptr(),
                          static_cast<Epilogue>(activation), allowed());
}

// Registers when the library is loaded, if there is a driver and a device.
const bool registered = [] {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return false;
  register_device_driver(DeviceType::CUDA, new CudaDriver(count));  // outlives every tensor
  static DeviceKernels all = kernels();
  all.formula = run_formula;
  all.formulas = run_formulas;
  all.product = product;
  all.product_bias = product_bias;
  all.fused = run_fused;
  all.fuses = has_nvrtc;
  register_device_kernels(DeviceType::CUDA, &all);
  static const DeviceMoves all_moves = moves();
  register_device_moves(DeviceType::CUDA, &all_moves);
  static DeviceLayers all_layers = layers();
  all_layers.convolve = convolve;
  all_layers.cudnn_version = cudnn_version;
  all_layers.fft = fft;
  register_device_layers(DeviceType::CUDA, &all_layers);
  static const DeviceLinalg solvers = linalg();
  register_device_linalg(DeviceType::CUDA, &solvers);
  return true;
}();

}  // namespace

void fail(cudaError_t error, const char* what) {
  if (!is_fault(error)) refuse(error, what);
  (void)cudaGetLastError();
  int device = 0;
  (void)cudaGetDevice(&device);
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  backend.launched(device, what);  // where launches are waited for, this reports the fault
  throw DeviceError(backend.explain(device, str("CUDA error: ", cudaGetErrorString(error)).c_str()),
                    static_cast<int>(error));
}

}  // namespace rushlight::cuda
