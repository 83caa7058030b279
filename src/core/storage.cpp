#include "core/storage.h"

#include <algorithm>
#include <cstring>

#include "core/cpu_allocator.h"
#include "core/device_backend.h"
#include "core/storage_source.h"

namespace rushlight {

__attribute__((tls_model("initial-exec"))) thread_local StorageSource* storage_source = nullptr;

namespace {

std::byte* allocate_on(Device device, size_t nbytes) {
  void* found =
      device.is_cpu() ? cpu_allocate(nbytes) : device_backend(device.type()).allocate(nbytes, device.index());
  return static_cast<std::byte*>(found);
}

}  // namespace

// Contents this small live inside the object, on the CPU.
bool StorageImpl::fits_inside(size_t nbytes) const { return device_.is_cpu() && nbytes <= kInlineBytes; }

void StorageImpl::acquire(size_t nbytes) {
  nbytes_ = nbytes;
  if (storage_source && device_.is_cpu() && !fits_inside(nbytes)) [[unlikely]] {
    const StorageBlock block = storage_source->take(nbytes);
    data_ = static_cast<std::byte*>(block.data);
    deleter_ = block.deleter;
    context_ = block.context;
    if (data_) return;
  }
  data_ = fits_inside(nbytes) ? inline_ : allocate_on(device_, nbytes);
}

void StorageImpl::free_data() {
  if (deleter_)
    deleter_(context_, data_, nbytes_);
  else if (data_ && data_ != inline_ && device_.is_cpu())
    cpu_deallocate(data_, nbytes_);
  else if (data_ && data_ != inline_)
    find_device_backend(device_.type())->deallocate(data_, nbytes_, device_.index());
  data_ = nullptr;
  deleter_ = nullptr;
}

Ref<StorageImpl> StorageImpl::allocate(size_t nbytes, Device device) {
  auto storage = Ref<StorageImpl>::adopt(new StorageImpl);
  storage->device_ = numbered(device);
  if (device.is_meta())
    storage->nbytes_ = nbytes;
  else
    storage->acquire(nbytes);
  return storage;
}

Ref<StorageImpl> StorageImpl::wrap(void* data, size_t nbytes, Device device, Deleter deleter, void* context,
                                   bool read_only) {
  static constexpr Deleter keep = [](void*, void*, size_t) {};
  auto storage = Ref<StorageImpl>::adopt(new StorageImpl);
  storage->data_ = static_cast<std::byte*>(data);
  storage->nbytes_ = nbytes;
  storage->device_ = device;
  storage->deleter_ = deleter ? deleter : keep;
  storage->context_ = context;
  storage->read_only_ = read_only;
  storage->resizable_ = false;
  return storage;
}

void StorageImpl::destroy(StorageImpl* s) {
  s->free_data();
  delete s;
}

void StorageImpl::resize(size_t nbytes) {
  if (nbytes == nbytes_) return;
  RL_CHECK(resizable_, "Trying to resize storage that is not resizable");
  if (device_.is_meta()) {
    nbytes_ = nbytes;
    return;
  }
  if (nbytes == 0) free_data();  // to read what is left of its tensors is an error (TensorImpl::no_data)
  if (nbytes == 0 || (data_ == inline_ && fits_inside(nbytes))) {
    nbytes_ = nbytes;
    return;
  }
  std::byte* grown = fits_inside(nbytes) ? inline_ : allocate_on(device_, nbytes);
  const size_t kept = data_ ? std::min(nbytes, nbytes_) : 0;
  if (kept && device_.is_cpu()) std::memcpy(grown, data_, kept);
  if (kept && !device_.is_cpu())
    device_backend(device_.type()).copy(grown, device_, data_, device_, kept, false);
  free_data();
  data_ = grown;
  nbytes_ = nbytes;
}

void StorageImpl::swap_contents(StorageImpl& other) {
  const bool mine_inline = data_ == inline_, theirs_inline = other.data_ == other.inline_;
  // What somebody may have kept the address of stays readable there.
  if (mine_inline && theirs_inline)
    std::swap_ranges(inline_, inline_ + kInlineBytes, other.inline_);
  else if (mine_inline)
    std::memcpy(other.inline_, inline_, kInlineBytes);
  else if (theirs_inline)
    std::memcpy(inline_, other.inline_, kInlineBytes);
  std::swap(data_, other.data_);
  std::swap(nbytes_, other.nbytes_);
  std::swap(deleter_, other.deleter_);
  std::swap(context_, other.context_);
  std::swap(read_only_, other.read_only_);
  std::swap(resizable_, other.resizable_);
  if (theirs_inline) data_ = inline_;
  if (mine_inline) other.data_ = other.inline_;
}

}  // namespace rushlight
