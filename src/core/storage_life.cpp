#include "core/storage_life.h"

#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace rushlight {

namespace {

struct Lives {
  std::mutex mutex;
  uint64_t next = 1;
  std::unordered_map<const StorageImpl*, uint64_t> of;
  std::unordered_set<uint64_t> going_on;
  static Lives& get() {
    static auto* one = new Lives;  // storages may die after static objects
    return *one;
  }
};

}  // namespace

uint64_t life_of(StorageImpl& storage) {
  Lives& lives = Lives::get();
  std::lock_guard guard(lives.mutex);
  const auto [found, is_new] = lives.of.try_emplace(&storage, lives.next);
  if (is_new) {
    lives.going_on.insert(lives.next++);
    storage.prepared = true;
  }
  return found->second;
}

bool has_ended(uint64_t life) {
  Lives& lives = Lives::get();
  std::lock_guard guard(lives.mutex);
  return !lives.going_on.contains(life);
}

void end_life(const StorageImpl& storage) {
  Lives& lives = Lives::get();
  std::lock_guard guard(lives.mutex);
  const auto found = lives.of.find(&storage);
  if (found == lives.of.end()) return;
  lives.going_on.erase(found->second);
  lives.of.erase(found);
}

}  // namespace rushlight
