#include "core/storage.h"

#include <algorithm>
#include <cstring>

#include "core/cpu_allocator.h"
#include "core/device_backend.h"
#include "core/lazy_clone.h"
#include "core/prepared_weight.h"
#include "core/storage_life.h"
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
    deleter_.store(block.deleter, std::memory_order_relaxed);
    context_ = block.context;
    if (data_) return;
  }
  data_ = fits_inside(nbytes) ? inline_ : allocate_on(device_, nbytes);
}

void StorageImpl::free_data() {
  std::byte* const memory = data_;
  if (const Deleter deleter = deleter_.load(std::memory_order_relaxed))
    deleter(context_, memory, nbytes_);
  else if (memory && memory != inline_ && device_.is_cpu())
    cpu_deallocate(memory, nbytes_);
  else if (memory && memory != inline_)
    find_device_backend(device_.type())->deallocate(memory, nbytes_, device_.index());
  data_ = nullptr;
  deleter_.store(nullptr, std::memory_order_relaxed);
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
  storage->deleter_.store(deleter ? deleter : keep, std::memory_order_relaxed);
  storage->context_ = context;
  storage->set_read_only(read_only);
  storage->forbid_resize();
  return storage;
}

void StorageImpl::destroy(StorageImpl* s) {
  if (s->prepared.load(std::memory_order_relaxed)) [[unlikely]] {
    forget_prepared(*s);
    end_life(*s);
  }
  if (s->read_only() && s->data_ == s->inline_) [[unlikely]]
    own_contents(*s);  // nobody else looks there
  s->free_data();
  delete s;
}

void StorageImpl::resize(size_t nbytes) {
  if (nbytes == nbytes_) return;
  own_contents(*this);
  const bool shared = is_shared_memory(data_);
  RL_CHECK(resizable() || shared, "Trying to resize storage that is not resizable");
  if (shared) resizable_.store(true, std::memory_order_relaxed);
  if (device_.is_meta()) {
    nbytes_ = nbytes;
    return;
  }
  if (nbytes == 0) free_data();  // to read what is left of its tensors is an error (TensorImpl::no_data)
  if (nbytes == 0 || (data_ == inline_ && fits_inside(nbytes))) {
    nbytes_ = nbytes;
    return;
  }
  std::byte* grown =
      fits_inside(nbytes) && !is_shared_memory(inline_) ? inline_ : allocate_on(device_, nbytes);
  const size_t kept = data_ ? std::min(nbytes, nbytes_) : 0;
  if (kept && device_.is_cpu()) std::memcpy(grown, data_, kept);
  if (kept && !device_.is_cpu())
    device_backend(device_.type()).copy(grown, device_, data_, device_, kept, false);
  free_data();
  data_ = grown;
  nbytes_ = nbytes;
}

void StorageImpl::swap_contents(StorageImpl& other) {
  own_contents(*this);
  own_contents(other);
  if (is_shared_memory(inline_) || is_shared_memory(other.inline_)) [[unlikely]]
    for (StorageImpl* s : {this, &other}) {  // lazy clones still read what lies inside
      if (s->data_ != s->inline_) continue;
      std::byte* const outside = allocate_on(s->device_, std::max<size_t>(s->nbytes_, 1));
      std::memcpy(outside, s->inline_, s->nbytes_);
      s->data_ = outside;
    }
  const bool mine_inline = data_ == inline_, theirs_inline = other.data_ == other.inline_;
  // What somebody may have kept the address of stays readable there.
  if (mine_inline && theirs_inline)
    std::swap_ranges(inline_, inline_ + kInlineBytes, other.inline_);
  else if (mine_inline)
    std::memcpy(other.inline_, inline_, kInlineBytes);
  else if (theirs_inline)
    std::memcpy(inline_, other.inline_, kInlineBytes);
  std::byte *const mine = data_, *const theirs = other.data_;
  data_ = theirs_inline ? inline_ : theirs;
  other.data_ = mine_inline ? other.inline_ : mine;
  std::swap(nbytes_, other.nbytes_);
  std::swap(context_, other.context_);
  deleter_ = other.deleter_.exchange(deleter_);
  read_only_ = other.read_only_.exchange(read_only_);
  resizable_ = other.resizable_.exchange(resizable_);
}

void StorageImpl::take_contents(StorageImpl& other) {
  const bool theirs_inline = other.data_ == other.inline_;
  std::byte* const memory = theirs_inline ? inline_ : other.data_;
  if (theirs_inline) std::memcpy(inline_, other.inline_, kInlineBytes);
  other.data_ = nullptr;
  data_ = memory;  // first: a reader that finds no memory must find the deleter that says why
  std::swap(context_, other.context_);
  deleter_ = other.deleter_.exchange(deleter_);
  resizable_ = other.resizable_.exchange(resizable_);
}

}  // namespace rushlight
