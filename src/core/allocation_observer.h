#pragma once

#include <atomic>
#include <cstdint>

namespace rushlight {

/// Told of every block of CPU memory that is handed out (positive bytes) or given back (negative), by the
/// thread that does it, with no lock of the allocator held.
using AllocationObserver = void (*)(void* address, int64_t bytes) noexcept;

/// Null unless a profiler wants to know: then the allocator pays a load and a branch.
extern std::atomic<AllocationObserver> allocation_observer;

}  // namespace rushlight
