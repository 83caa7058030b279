// Fused programs as kernels of their own, compiled by NVRTC when they are first met.
#include "cpu/fused.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/device_backend.h"
#include "cuda/check.h"
#include "cuda/fused_source.h"
#include "cuda/kernels.h"
#include "cuda/nvrtc.h"

namespace rushlight::cuda {
namespace {

// A kernel of all devices of one compute capability.
cudaKernel_t load(const std::string& source, int capability) {
  const std::vector<char> code = compile_source(source, capability);
  cudaLibrary_t library = nullptr;  // stays loaded, as does its kernel
  check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cudaLibraryLoadData");
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, "fused"), "cudaLibraryGetKernel");
  return kernel;
}

using Load = std::function<cudaKernel_t()>;

// The kernel of a launch, loaded once for each capability; other threads go on with theirs meanwhile.
cudaKernel_t find(const std::string& key, int capability, const Load& load) {
  struct Entry {
    std::once_flag once;
    cudaKernel_t kernel = nullptr;
  };
  static std::mutex mutex;
  static std::unordered_map<std::string, std::unique_ptr<Entry>> kernels;
  Entry* entry;
  {
    const std::lock_guard guard(mutex);
    auto& place = kernels[str(capability, ' ', key)];
    if (!place) place = std::make_unique<Entry>();
    entry = place.get();
  }
  std::call_once(entry->once, [&] { entry->kernel = load(); });
  return entry->kernel;
}

}  // namespace

bool run_fused(const cpu::FusedProgram& program, std::span<const Tensor> inputs,
               std::span<const Tensor> outputs) {
  if (!std::ranges::all_of(inputs, [](const Tensor& t) { return loads(t.dtype()); })) return false;
  if (outputs[0].numel() == 0) return true;
  FusedLaunch launch = fused_launch(program, inputs, outputs);
  const int device = outputs[0].device().index();
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const DeviceProperties& p = backend.properties(device);
  const DeviceScope scope(backend.driver(), device);
  const int capability = p.major * 10 + p.minor;
  const cudaKernel_t kernel =
      find(launch.key, capability, [&] { return load(fused_source(program, inputs, outputs), capability); });
  void* arguments[] = {launch.arguments.data()};
  auto* const stream = static_cast<cudaStream_t>(backend.stream(backend.current_stream(device)).handle);
  check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), launch.blocks, launch.threads, arguments, 0,
                         stream),
        "fused");
  backend.launched(device, "fused");
  return true;
}

}  // namespace rushlight::cuda
