// Notices writes to memory that somebody computed from, those included that no version counts for him: writes
// through `.data` count a version of their own, and some operators count none.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace rushlight {

class WriteWatch {
 public:
  // Tensors of memory that can_watch.
  explicit WriteWatch(const std::vector<Tensor>& tensors);

  // Whether there was a chance that only this process, and through tensors only, writes to t's memory.
  static bool can_watch(const Tensor& t);
  // Whether these tensors are what they were when the watch of them began, to the last byte. The watch holds
  // their memory, but not them.
  bool unchanged(const std::vector<Tensor>& tensors) const;

 private:
  struct Seen {
    Storage storage;  // so that its address is nobody else's
    const void* data;
    int64_t offset;
    uint32_t stamp;
  };
  std::vector<Seen> seen_;  // per tensor
};

// Tells watches of a write that counts no version of the storage.
inline void note_write(StorageImpl& storage) { storage.note_unversioned_write(); }
// Another number after every write, counted or not.
inline uint32_t write_stamp(const StorageImpl& storage) {
  return storage.version.load(std::memory_order_relaxed) +
         storage.unversioned_writes.load(std::memory_order_relaxed);
}

}  // namespace rushlight
