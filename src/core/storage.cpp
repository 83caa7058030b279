#include "core/storage.h"

#include <algorithm>
#include <cstring>

#include "core/cpu_allocator.h"

namespace rushlight {

void StorageImpl::acquire(size_t nbytes) {
  data_ = nbytes <= kInlineBytes ? inline_ : static_cast<std::byte*>(cpu_allocate(nbytes));
  nbytes_ = nbytes;
}

void StorageImpl::free_data() {
  if (deleter_)
    deleter_(context_, data_, nbytes_);
  else if (data_ && data_ != inline_)
    cpu_deallocate(data_, nbytes_);
  data_ = nullptr;
}

Ref<StorageImpl> StorageImpl::allocate(size_t nbytes, Device device) {
  auto storage = Ref<StorageImpl>::adopt(new StorageImpl);
  storage->device_ = device;
  if (device.is_meta())
    storage->nbytes_ = nbytes;
  else if (device.is_cpu())
    storage->acquire(nbytes);
  else
    RL_NOT_IMPLEMENTED("cannot allocate on device ", device, ": the CUDA backend is not part of this build");
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
  if (data_ == inline_ && nbytes <= kInlineBytes) {
    nbytes_ = nbytes;
    return;
  }
  std::byte* grown = nbytes <= kInlineBytes ? inline_ : static_cast<std::byte*>(cpu_allocate(nbytes));
  if (data_) std::memcpy(grown, data_, std::min(nbytes, nbytes_));
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
