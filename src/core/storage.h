// Storage: a block of bytes on a device that any number of tensors look into.
#pragma once
#include <atomic>
#include <cstddef>
#include <string_view>

#include "core/device.h"
#include "core/free_list.h"
#include "core/ref.h"
#include "core/shared_field.h"

namespace rushlight {

// Note [Version counters]
// A version counts the in-place writes that autograd must notice. It lives in the storage, so every view sees
// it; a tensor made by `.data` or `set_data` carries a counter of its own (TensorImpl::version_). Saved
// tensors remember the number at saving and compare it when read.
struct VersionCounter : RefCounted {
  std::atomic<uint32_t> value{0};
  static void destroy(VersionCounter* v) { delete v; }
};

class StorageImpl final : public RefCounted {
 public:
  using Deleter = void (*)(void* context, void* data, size_t nbytes);
#if defined(__SANITIZE_ADDRESS__)
  static constexpr size_t kInlineBytes = 0;  // the sanitizer knows the bounds of blocks, not of members
#else
  static constexpr size_t kInlineBytes = 64;  // contents this small live inside the object
#endif

  // Uninitialised memory from the device's allocator. Negative or overflowing sizes must be refused before.
  static Ref<StorageImpl> allocate(size_t nbytes, Device device = {});
  // Memory that somebody else owns; `deleter(context, data, nbytes)` runs when the storage dies.
  static Ref<StorageImpl> wrap(void* data, size_t nbytes, Device device, Deleter deleter, void* context,
                               bool read_only = false);
  static void destroy(StorageImpl* s);

  std::byte* data() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  bool read_only() const { return read_only_.load(std::memory_order_relaxed); }
  void set_read_only(bool value) { read_only_.store(value, std::memory_order_relaxed); }
  bool resizable() const { return resizable_.load(std::memory_order_relaxed); }
  void forbid_resize() {
    resizable_.store(false, std::memory_order_relaxed);
  }  // somebody else keeps the address
  // Somebody holds the address and may write at any time.
  bool exposed() const { return exposed_.load(std::memory_order_relaxed) || !resizable(); }
  void expose() { exposed_.store(true, std::memory_order_relaxed); }
  bool owns_memory() const { return deleter_.load(std::memory_order_relaxed) == nullptr; }
  // Grows or shrinks, keeping the common bytes. Fails for memory that is borrowed.
  void resize(size_t nbytes);
  // Exchanges the contents of two storages; tensors keep pointing at the same objects.
  void swap_contents(StorageImpl& other);
  // Gives a storage without memory what `other` has, of the same size. Others may read meanwhile: they see no
  // memory, or all of it.
  void take_contents(StorageImpl& other);

  std::atomic<uint32_t> version{0};
  // Writes, or chances to write, that no version counts; see core/write_watch.h.
  std::atomic<uint32_t> unversioned_writes{0};
  void note_unversioned_write() { unversioned_writes.fetch_add(1, std::memory_order_relaxed); }
  // Note [Prepared weights]
  std::atomic<uint32_t> quiet_stamp{0}, quiet_reads{0};
  std::atomic<bool> prepared{false};
  std::atomic<const std::string_view*> last_writer{nullptr};  // name of the operator that wrote in place last
  Published<void> pyobj;  // the Python UntypedStorage, if one lives (borrowed; owned by src/python)

  static void* operator new(size_t) { return Pool::take(); }
  static void operator delete(void* memory) { Pool::give(memory); }

 private:
  StorageImpl() = default;
  ~StorageImpl() = default;
  bool fits_inside(size_t nbytes) const;
  void acquire(size_t nbytes);
  void free_data();
  using Pool = FreeList<192, 64>;

  Published<std::byte> data_;
  size_t nbytes_ = 0;
  std::atomic<Deleter> deleter_{nullptr};  // null: ours (inline or from the allocator)
  void* context_ = nullptr;
  Device device_;
  std::atomic<bool> read_only_{false};
  std::atomic<bool> resizable_{true}, exposed_{false};
  alignas(64) std::byte inline_[64];
};
using Storage = Ref<StorageImpl>;

}  // namespace rushlight
