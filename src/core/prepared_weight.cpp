#include "core/prepared_weight.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/host/processor.h"
#include "core/write_watch.h"

namespace rushlight {
namespace {

constexpr uint32_t kQuietReads = 3;      // without a write, before anything is kept
constexpr size_t kLeastBytes = 4 << 10;  // smaller weights are put in order in no time

// A sixteenth of the memory that this process may use, or RUSHLIGHT_PREPARED_WEIGHTS in MB.
size_t most_bytes() {
  static const size_t most = [] {
    const char* text = std::getenv("RUSHLIGHT_PREPARED_WEIGHTS");
    size_t megabytes = 0;
    if (text && std::from_chars(text, text + std::strlen(text), megabytes).ec == std::errc{})
      return megabytes << 20;
    return host::usable_memory() / 16;
  }();
  return most;
}

}  // namespace

struct PreparedWeight::Contents {
  StorageImpl* storage;  // null once it died or changed
  const void* memory;
  uint32_t stamp;
  ConstantSet constants;
  size_t counted = 0;  // of its bytes, in the registry's sum
  std::list<StorageImpl*>::iterator place;
};

class PreparedWeight::Registry {
 public:
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }

  // What belongs to these bytes, or an empty one.
  std::shared_ptr<Contents> find(StorageImpl& storage, uint32_t stamp) {
    // Freed and made without the lock: both lock the list of such mutexes, which a fork locks first.
    std::shared_ptr<Contents> stale, made;
    for (;; made = std::make_shared<Contents>()) {
      std::lock_guard lock(mutex_);
      const auto found = contents_.find(&storage);
      if (found != contents_.end() && is_of(*found->second, storage, stamp)) {
        order_.splice(order_.begin(), order_, found->second->place);
        return found->second;
      }
      if (!made) continue;
      if (found != contents_.end()) stale = drop(storage);
      made->storage = &storage, made->memory = storage.data(), made->stamp = stamp;
      const auto entry = contents_.emplace(&storage, made).first;
      try {
        made->place = order_.insert(order_.begin(), &storage);
      } catch (...) {
        contents_.erase(entry);
        throw;
      }
      storage.prepared = true;
      return made;
    }
  }

  // Sums up after a use, and gives up what is too much.
  void count(const std::shared_ptr<Contents>& used) {
    const size_t bytes = used->constants.made_bytes();
    if (bytes == used->counted) return;
    std::vector<std::shared_ptr<Contents>> dropped;
    std::lock_guard lock(mutex_);
    if (!used->storage) return;
    total_ += bytes - used->counted;
    used->counted = bytes;
    while (total_ > most_bytes() && !order_.empty()) dropped.push_back(give_up(*order_.back()));
  }

  std::shared_ptr<Contents> forget(StorageImpl& storage) {
    std::lock_guard lock(mutex_);
    return contents_.contains(&storage) ? give_up(storage) : nullptr;
  }
  size_t total() {
    std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  static bool is_of(const Contents& contents, const StorageImpl& storage, uint32_t stamp) {
    return contents.stamp == stamp && contents.memory == storage.data();
  }
  std::shared_ptr<Contents> drop(StorageImpl& storage) {
    const auto found = contents_.find(&storage);
    std::shared_ptr<Contents> contents = std::move(found->second);
    total_ -= contents->counted;
    order_.erase(contents->place);
    contents->storage = nullptr;
    contents_.erase(found);
    return contents;
  }
  std::shared_ptr<Contents> give_up(StorageImpl& storage) {
    storage.quiet_reads = 0;  // its flag stays: others may wait for its death, too (storage_life.h)
    return drop(storage);
  }

  ForkMutex mutex_;
  std::unordered_map<StorageImpl*, std::shared_ptr<Contents>> contents_;
  std::list<StorageImpl*> order_;  // last used first
  size_t total_ = 0;
};

PreparedWeight::PreparedWeight(const Tensor& weight) {
  if (!weight.defined() || !weight->storage) return;
  StorageImpl& storage = *weight->storage;
  if (storage.nbytes() < kLeastBytes) return;
  // Threads may miscount here, which does no harm.
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const uint32_t stamp = write_stamp(storage);
  const uint32_t reads = storage.quiet_stamp.load(kRelaxed) == stamp ? storage.quiet_reads.load(kRelaxed) : 0;
  storage.quiet_stamp.store(stamp, kRelaxed);
  if (reads < kQuietReads)
    storage.quiet_reads.store(reads + 1, kRelaxed);
  else
    use(weight);
}

void PreparedWeight::use(const Tensor& weight) {
  if (weight.nbytes() < kLeastBytes || !WriteWatch::can_watch(weight) || most_bytes() == 0) return;
  const void* data = weight.data_ptr();
  if (ConstantMemory::contains(data)) return;  // a model's, which keeps it longer
  contents_ = Registry::get().find(*weight->storage, write_stamp(*weight->storage));
  if (!contents_->constants.contains(data)) contents_->constants.add(data, weight.nbytes(), false);
  use_.emplace(&contents_->constants);
}

PreparedWeight::~PreparedWeight() {
  use_.reset();
  if (contents_) Registry::get().count(contents_);
}

void forget_prepared(StorageImpl& storage) { PreparedWeight::Registry::get().forget(storage); }
size_t prepared_bytes() { return PreparedWeight::Registry::get().total(); }

}  // namespace rushlight
