// Memory of devices that functions of others give: all of it, or that of a private pool.
#pragma once
#include <cstddef>

#include "core/caching_allocator.h"

namespace rushlight {

// As PyTorch's pluggable allocators: bytes, device, stream.
struct ForeignAllocator {
  void* (*allocate)(ptrdiff_t bytes, int device, void* stream) = nullptr;
  void (*release)(void* address, ptrdiff_t bytes, int device, void* stream) = nullptr;
};

namespace foreign {

// From now on all memory of all devices comes from it, and nothing is cached. Fails once memory was taken.
void give_all(const ForeignAllocator& allocator);
bool gives_all();
// The segments of a private pool come from it.
void give_pool(PoolId pool, const ForeignAllocator& allocator);
bool gives_pool(PoolId pool);

// For the whole device or, with a pool, for a segment of it. Null: no memory left.
void* allocate(size_t bytes, int device, void* stream, PoolId pool = 0);
// False for what was not given here.
bool release(void* address) noexcept;
// Releasing waits for this stream too.
void record_stream(void* address, StreamId stream);

}  // namespace foreign
}  // namespace rushlight
