#include "core/lazy_clone.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

namespace rushlight {

std::atomic<size_t> shared_memories{0};

namespace {

struct Shared {
  int sharers = 0;
  StorageImpl* inside = nullptr;  // the storage whose inner bytes they are; it shares too while it is lazy
  Storage keeper;                 // otherwise
};

// By the address of the memory.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, Shared> shared;
  std::unordered_map<const StorageImpl*, int> views;  // how many look into its memory now
  static Registry& get() {
    static auto* one = new Registry;  // storages may die after static objects
    return *one;
  }
};

// One of them no longer looks there.
Shared leave(const void* memory) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  const auto found = registry.shared.find(memory);
  if (found == registry.shared.end() || --found->second.sharers) return {};
  Shared last = std::move(found->second);  // freed after the lock
  registry.shared.erase(found);
  shared_memories.store(registry.shared.size(), std::memory_order_relaxed);
  return last;
}

void release(void* context, void* memory, size_t) {
  const auto inside = Storage::adopt(static_cast<StorageImpl*>(context));  // alive until all have left
  leave(memory);
}

Storage look_at(const StorageImpl& storage, StorageImpl* inside) {
  if (inside) inside->retain();
  return StorageImpl::wrap(storage.data(), storage.nbytes(), storage.device(), release, inside, true);
}

void copy_out(StorageImpl& storage) {
  const Storage fresh = StorageImpl::allocate(storage.nbytes(), storage.device());
  std::memcpy(fresh->data(), storage.data(), storage.nbytes());
  storage.swap_contents(*fresh);
}

bool is_viewed(const StorageImpl& storage) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  return registry.views.contains(&storage);
}

bool lies_inside(const StorageImpl& storage) {
  const auto* object = reinterpret_cast<const std::byte*>(&storage);
  return storage.data() >= object && storage.data() < object + sizeof(StorageImpl);
}

}  // namespace

bool is_shared_memory(const void* memory) {
  if (!shared_memories.load(std::memory_order_relaxed)) return false;
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  return registry.shared.contains(memory);
}

bool is_lazy_clone(const StorageImpl& storage) {
  return storage.read_only() && is_shared_memory(storage.data());
}

Storage lazy_clone(StorageImpl& storage) {
  const bool sharing = is_shared_memory(storage.data());
  if (!storage.device().is_cpu() || !storage.data() || !storage.nbytes()) return {};
  if (!sharing && (!storage.owns_memory() || storage.exposed() || storage.read_only())) return {};
  if (is_viewed(storage)) return {};
  Shared shared;
  if (!sharing && lies_inside(storage)) {
    shared.inside = &storage;
  } else if (!sharing) {
    shared.keeper = StorageImpl::allocate(0, storage.device());
    shared.keeper->swap_contents(storage);
    storage.swap_contents(*look_at(*shared.keeper, nullptr));
  }
  storage.set_read_only(true);
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  Shared& all = registry.shared.try_emplace(storage.data(), std::move(shared)).first->second;
  shared_memories.store(registry.shared.size(), std::memory_order_relaxed);
  all.sharers += sharing ? 1 : 2;
  return look_at(storage, all.inside);
}

void own_shared(StorageImpl& storage) {
  if (!is_lazy_clone(storage)) [[likely]]
    return;
  const void* memory = storage.data();
  const bool own = lies_inside(storage);
  int sharers;
  Storage keeper;
  {
    Registry& registry = Registry::get();
    std::lock_guard guard(registry.mutex);
    sharers = registry.shared.at(memory).sharers;
    keeper = registry.shared.at(memory).keeper;
  }
  storage.set_read_only(false);
  if (sharers > 1) {
    copy_out(storage);
    if (own) leave(memory);
  } else if (own) {
    leave(memory);
  } else if (keeper) {  // which has what looked at it now
    storage.swap_contents(*keeper);
    leave(memory);
  }
}

void begin_view(const StorageImpl& storage) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  ++registry.views[&storage];
}

void end_view(const StorageImpl& storage) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  const auto found = registry.views.find(&storage);
  if (found != registry.views.end() && --found->second == 0) registry.views.erase(found);
}

void expose_shared(StorageImpl& storage) {
  own_shared(storage);
  if (is_shared_memory(storage.data())) copy_out(storage);
}

}  // namespace rushlight
