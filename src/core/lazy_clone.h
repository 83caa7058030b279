// Note [Lazy clones]
// Storages of equal contents can share one memory until one of them is written to. Each of them is read-only
// meanwhile, so that reading costs nothing, and what writes comes by check_writable, which asks for
// own_contents: a copy, or the shared memory itself for the last that looks at it. The keeper owns the shared
// memory: a storage of its own, or, for contents that live inside a storage, that storage, which is itself
// one of those that share.
#pragma once
#include "core/storage.h"

namespace rushlight {

// Null where that can't be: memory that others own, or can write to.
Storage lazy_clone(StorageImpl& storage);
bool is_lazy_clone(const StorageImpl& storage);

// How many memories are shared now; hardly ever is there one.
extern std::atomic<size_t> shared_memories;
void own_shared(StorageImpl& storage);
void expose_shared(StorageImpl& storage);
// Before a write that check_writable does not see.
inline void own_contents(StorageImpl& storage) {
  if (shared_memories.load(std::memory_order_relaxed)) [[unlikely]]
    own_shared(storage);
}
// The same before somebody keeps the address.
inline void expose_contents(StorageImpl& storage) {
  if (shared_memories.load(std::memory_order_relaxed)) [[unlikely]]
    expose_shared(storage);
}
// While somebody looks into a storage's memory and may write there, it is not shared: between these two.
void begin_view(const StorageImpl& storage);
void end_view(const StorageImpl& storage);
// Whether this memory is, or was and still has to stay, that of lazy clones.
bool is_shared_memory(const void* memory);

}  // namespace rushlight
