#pragma once

#include <cstddef>
#include <cstdint>

#include "core/caching_allocator.h"

namespace rushlight {

inline constexpr size_t kCpuAlignment = 64;

/// 64-byte aligned memory; nullptr for zero bytes. Fails with PyTorch's DefaultCPUAllocator
/// text.
void* cpu_allocate(size_t bytes);
/// `bytes` must be what was asked for. Any thread may free what another one allocated.
void cpu_deallocate(void* address, size_t bytes) noexcept;

struct CpuMemoryStats {
  AllocatorStats blocks;         ///< requests above the tiny limit
  int64_t tiny_allocated_bytes;  ///< live requests served from the thread-local lists
  int64_t tiny_allocations;
  int64_t tiny_cached_bytes;  ///< idle in the lists of all threads
};

CpuMemoryStats cpu_memory_stats();
/// Gives back idle memory: every unused segment and this thread's tiny blocks. Returns the bytes released.
size_t cpu_empty_cache();

/// False in address-sanitizer builds, where every request goes to malloc so that overruns are seen.
bool cpu_allocator_caches();

}  // namespace rushlight
