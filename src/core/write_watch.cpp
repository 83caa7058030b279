#include "core/write_watch.h"

namespace rushlight {

bool WriteWatch::can_watch(const Tensor& t) {
  constexpr uint32_t kOther = kPythonDispatch | kWrapped | kForwardGrad | kSpecialElements | kNotCpu;
  return t.defined() && !(t->flags & kOther) && t->storage && t->storage->owns_memory() &&
         !t->storage->exposed();
}

WriteWatch::WriteWatch(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    seen_.push_back({t->storage, t->storage->data(), t.storage_offset(), write_stamp(*t->storage)});
}

bool WriteWatch::unchanged(const std::vector<Tensor>& tensors) const {
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Seen& s = seen_[i];
    if (tensors[i]->storage.get() != s.storage.get() || s.storage->data() != s.data ||
        tensors[i].storage_offset() != s.offset || write_stamp(*s.storage) != s.stamp || s.storage->exposed())
      return false;
  }
  return true;
}

}  // namespace rushlight
