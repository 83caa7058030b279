#include "core/write_watch.h"

#include <mutex>
#include <unordered_map>

#include "core/fork_mutex.h"

namespace rushlight {
namespace {

struct Watched {
  size_t watches = 0;
  std::atomic<uint32_t> writes{0};
};

struct Registry {
  ForkMutex mutex;
  std::unordered_map<const StorageImpl*, Watched> watched;  // nodes stay where they are
  std::atomic<size_t> count{0};
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }
};

}  // namespace

struct WriteWatch::Seen {
  Storage storage;  // so that its address is nobody else's
  const void* data;
  int64_t offset;
  uint32_t version, writes;
  Watched* watched;
};

bool WriteWatch::can_watch(const Tensor& t) {
  constexpr uint32_t kOther = kPythonDispatch | kWrapped | kForwardGrad | kSparseTensor | kNotCpu;
  return t.defined() && !(t->flags & kOther) && t->storage && t->storage->owns_memory() &&
         t->storage->resizable();
}

WriteWatch::WriteWatch(const std::vector<Tensor>& tensors) {
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  for (const Tensor& t : tensors) {
    Watched& watched = registry.watched[t->storage.get()];
    ++watched.watches;
    seen_.push_back({t->storage, t->storage->data(), t.storage_offset(), t->storage->version.load(),
                     watched.writes.load(), &watched});
  }
  registry.count = registry.watched.size();
}

WriteWatch::~WriteWatch() {
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  for (const Seen& s : seen_)
    if (--s.watched->watches == 0) registry.watched.erase(s.storage.get());
  registry.count = registry.watched.size();
}

bool WriteWatch::unchanged(const std::vector<Tensor>& tensors) const {
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Seen& s = seen_[i];
    const StorageImpl& storage = *s.storage;
    if (tensors[i]->storage.get() != &storage || storage.data() != s.data ||
        tensors[i].storage_offset() != s.offset ||
        storage.version.load(std::memory_order_relaxed) != s.version ||
        s.watched->writes.load(std::memory_order_relaxed) != s.writes || !storage.resizable())
      return false;
  }
  return true;
}

void note_write(const StorageImpl& storage) {
  Registry& registry = Registry::get();
  if (registry.count.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(registry.mutex);
  const auto found = registry.watched.find(&storage);
  if (found != registry.watched.end()) ++found->second.writes;
}

}  // namespace rushlight
