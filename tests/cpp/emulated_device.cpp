// A CUDA device made of host memory, for machines without one: loaded through RUSHLIGHT_CUDA_LIBRARY. Its
// memory can be touched only while one of its copies or loops runs, so that code which takes device memory
// for its own ends in a segmentation fault, as it would on hardware.
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

#include "core/device_backend.h"
#include "core/tensor.h"
#include "cpu/copy.h"
#include "cpu/loops.h"
#include "cpu/pointwise.h"
#include "dispatch/device_kernels.h"

namespace rushlight {
namespace {

constexpr int kDevices = 2;
constexpr size_t kPage = 4096;

class Memory {
 public:
  void* allocate(size_t nbytes) {
    const size_t size = (nbytes + kPage) / kPage * kPage;
    void* address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RL_CHECK_AS(OutOfMemory, address != MAP_FAILED, "CUDA out of memory. Tried to allocate ", nbytes,
                " bytes");
    const std::lock_guard lock(mutex_);
    blocks_[address] = size;
    if (open_) mprotect(address, size, PROT_READ | PROT_WRITE);
    return address;
  }
  void release(void* address) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    munmap(address, found->second);
    blocks_.erase(found);
  }
  void open(bool wanted) {
    const std::lock_guard lock(mutex_);
    open_ += wanted ? 1 : -1;
    if (open_ != (wanted ? 1 : 0)) return;
    for (const auto& [address, size] : blocks_)
      mprotect(address, size, wanted ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

 private:
  std::mutex mutex_;
  std::map<void*, size_t> blocks_;
  int open_ = 0;
};
Memory& memory() {
  static auto* one = new Memory;  // outlives the tensors of the interpreter's last breath
  return *one;
}

struct Running {
  Running() { memory().open(true); }
  ~Running() { memory().open(false); }
};

class EmulatedDevice final : public DeviceBackend {
 public:
  int device_count() override { return kDevices; }
  int current_device() override { return current_; }
  void set_device(int device) override { current_ = device; }
  void* allocate(size_t nbytes, int) override { return nbytes ? memory().allocate(nbytes) : nullptr; }
  void deallocate(void* address, size_t, int) noexcept override { memory().release(address); }
  void copy(void* to, Device, const void* from, Device, size_t nbytes, bool) override {
    const Running scope;
    std::memmove(to, from, nbytes);
  }
  void synchronize(int) override {}

 private:
  static thread_local int current_;
};
thread_local int EmulatedDevice::current_ = 0;

// The same elements, seen from the host.
Tensor seen(const Tensor& t) {
  if (t.is_cpu()) return t;
  const Storage& storage = t->storage;
  auto impl = Ref<TensorImpl>::adopt(
      new TensorImpl(StorageImpl::wrap(storage->data(), storage->nbytes(), Device{}, nullptr, nullptr),
                     t.storage_offset(), t.dtype(), Device{}));
  impl->set_layout(t.sizes(), t.strides());
  return Tensor(std::move(impl));
}

void check_one_device(const Tensor& out, const Tensor& input) {
  RL_ASSERT(input.device() == out.device() || (input.is_cpu() && input.dim() == 0),
            "an input on another device");
}

bool formula(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
             std::span<const Scalar> parameters) {
  if (is_complex(compute)) return false;  // so that the way round is tested too
  const Running scope;
  std::vector<Tensor> seen_inputs;
  for (const Tensor* t : inputs) check_one_device(out, *t), seen_inputs.push_back(seen(*t));
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : seen_inputs) pointers.push_back(&t);
  cpu::run_formula(f, compute, seen(out), pointers, parameters);
  return true;
}

bool where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  const Running scope;
  cpu::run_where(seen(out), seen(condition), seen(a), seen(b));
  return true;
}

void copy(const Tensor& out, const Tensor& source) {
  check_one_device(out, source);
  const Running scope;
  cpu::copy(seen(out), seen(source));
}

const bool registered = [] {
  static EmulatedDevice device;
  static const DeviceKernels kernels{formula, where, copy};
  register_device_backend(DeviceType::CUDA, &device);
  register_device_kernels(DeviceType::CUDA, &kernels);
  return true;
}();

}  // namespace
}  // namespace rushlight
