// Fourier transforms by cuFFT, which is found at run time.
#include <memory>

#include "cuda/check.h"
#include "cuda/fft_plan.h"
#include "cuda/launch.h"
#include "cuda/layers.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {
namespace {

using Handle = int;

struct Cufft {
  Library library{"cuFFT", {"cu13", "cufft"}, {"libcufft.so.12", "libcufft.so.11"}, "nvidia-cufft"};
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*auto_allocation)(Handle, int) = nullptr;
  int (*make_plan)(Handle, int rank, long long* sizes, long long* in_embed, long long in_stride,
                   long long in_distance, long long* out_embed, long long out_stride, long long out_distance,
                   int type, long long batch, size_t* workspace) = nullptr;
  int (*workspace_size)(Handle, size_t*) = nullptr;
  int (*set_stream)(Handle, cudaStream_t) = nullptr;
  int (*set_workspace)(Handle, void*) = nullptr;
  int (*c2c)(Handle, void*, void*, int) = nullptr;
  int (*z2z)(Handle, void*, void*, int) = nullptr;
  int (*r2c)(Handle, void*, void*) = nullptr;
  int (*d2z)(Handle, void*, void*) = nullptr;
  int (*c2r)(Handle, void*, void*) = nullptr;
  int (*z2d)(Handle, void*, void*) = nullptr;

  Cufft() {
    library.entry("cufftCreate", &create);
    library.entry("cufftDestroy", &destroy);
    library.entry("cufftSetAutoAllocation", &auto_allocation);
    library.entry("cufftMakePlanMany64", &make_plan);
    library.entry("cufftGetSize", &workspace_size);
    library.entry("cufftSetStream", &set_stream);
    library.entry("cufftSetWorkArea", &set_workspace);
    library.entry("cufftExecC2C", &c2c);
    library.entry("cufftExecZ2Z", &z2z);
    library.entry("cufftExecR2C", &r2c);
    library.entry("cufftExecD2Z", &d2z);
    library.entry("cufftExecC2R", &c2r);
    library.entry("cufftExecZ2D", &z2d);
  }
};

const Cufft& api() {
  static const Cufft one;
  one.library.require("Fourier transforms");
  return one;
}

void check(int status, const char* function) { check_status("cuFFT", status, function); }

Handle make_plan(FftPlan p) {
  Handle handle = 0;
  size_t bytes = 0;
  check(api().create(&handle), "cufftCreate");
  check(api().auto_allocation(handle, 0), "cufftSetAutoAllocation");  // memory comes from our pool
  // Without embeddings operands are contiguous, and their distances follow from the sizes.
  const int status = api().make_plan(handle, p.rank, p.sizes.data(), nullptr, 1, p.in_distance, nullptr, 1,
                                     p.out_distance, p.type, p.batch, &bytes);
  if (status != 0) api().destroy(handle);
  check(status, "cufftMakePlanMany64");
  return handle;
}

// A plan serves one caller at a time, so each thread has its own for each device.
Handle plan_of(int device, const FftPlan& plan) {
  constexpr size_t kMost = 64;
  using Plans = FftPlans<Handle>;
  thread_local std::array<std::unique_ptr<Plans>, DeviceBackend::kMaxDevices> known;
  std::unique_ptr<Plans>& plans = known[static_cast<size_t>(device)];
  if (!plans) plans = std::make_unique<Plans>(kMost, [](Handle h) { api().destroy(h); });
  return plans->of(plan, [&] { return make_plan(plan); });
}

int execute(Handle handle, const FftPlan& plan, bool forward, void* in, void* out) {
  const int direction = forward ? cufft::kForward : cufft::kInverse;
  switch (plan.type) {
    case cufft::kC2C:
      return api().c2c(handle, in, out, direction);
    case cufft::kZ2Z:
      return api().z2z(handle, in, out, direction);
    case cufft::kR2C:
      return api().r2c(handle, in, out);
    case cufft::kD2Z:
      return api().d2z(handle, in, out);
    case cufft::kC2R:
      return api().c2r(handle, in, out);
    default:
      return api().z2d(handle, in, out);
  }
}

}  // namespace

void fft(int device, const DeviceFft& f, void* in, void* out) {
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const DeviceScope scope(backend.driver(), device);
  const FftPlan plan = fft_plan(f);
  const Handle handle = plan_of(device, plan);
  const StreamInfo stream = backend.stream(backend.current_stream(device));
  size_t bytes = 0;
  check(api().workspace_size(handle, &bytes), "cufftGetSize");
  const Workspace workspace(bytes, device);
  check(api().set_stream(handle, static_cast<cudaStream_t>(stream.handle)), "cufftSetStream");
  check(api().set_workspace(handle, workspace.data()), "cufftSetWorkArea");
  check(execute(handle, plan, f.forward, in, out), "a transform");
  backend.launched(device, "fft");
}

}  // namespace rushlight::cuda
