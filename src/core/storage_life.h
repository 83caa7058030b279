// Whether a storage still exists, asked by a number that it was given.
#pragma once
#include "core/storage.h"

namespace rushlight {

// A number that no other storage has; the same each time.
uint64_t life_of(const StorageImpl& storage);
bool has_ended(uint64_t life);

extern std::atomic<size_t> lives_known;
void end_life(const StorageImpl& storage);

}  // namespace rushlight
