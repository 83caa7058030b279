// Whether a storage still exists, asked by a number that it was given.
#pragma once
#include "core/storage.h"

namespace rushlight {

// A number that no other storage has; the same each time.
uint64_t life_of(StorageImpl& storage);
bool has_ended(uint64_t life);

// Called as a storage dies that has a number, or had prepared contents: one flag tells of both.
void end_life(const StorageImpl& storage);

}  // namespace rushlight
