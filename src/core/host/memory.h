// Memory of the system: pages, aligned blocks, and memory that several processes see.
#pragma once
#include <cstddef>
#include <system_error>

namespace rushlight::host {

/// Pages of zeros for this process alone; nullptr where there are none. Large ones lie so that the system can
/// use its large pages for them, and it is asked to where `large_pages` says so: all of one is resident then.
void* allocate_pages(size_t bytes, bool large_pages = true);
/// Takes back what allocate_pages gave for as many bytes.
void free_pages(void* address, size_t bytes) noexcept;

/// A block for free_aligned; nullptr where there is no memory. `alignment`: a power of two, from a pointer's
/// size on.
void* allocate_aligned(size_t bytes, size_t alignment);
void free_aligned(void* address) noexcept;

/// Of a mapped file: its whole pages leave memory, and are read again when they are looked at.
void forget_pages(const void* data, size_t nbytes);
/// All its pages come at once, where the system can do that.
void fetch_pages(const void* data, size_t nbytes);

/// Memory that other processes map by a copy of its handle: on POSIX a file descriptor.
struct SharedMemory {
  int handle = -1;
  std::byte* base = nullptr;
  size_t bytes = 0;
};
/// Whether pages of shared memory cost nothing before they are touched, so that far more than is needed may
/// be asked for.
bool shared_memory_is_sparse();
/// The most bytes worth asking for: less than SIZE_MAX where this process is limited.
size_t most_shared_memory();
/// Zeros.
std::error_code create_shared(size_t bytes, SharedMemory* out);
/// The memory behind a handle, of at least so many bytes. The handle is closed if that fails.
std::error_code map_shared(int handle, size_t least_bytes, SharedMemory* out);
void unmap_shared(const SharedMemory& memory) noexcept;
void close_shared(int handle) noexcept;
/// Gives pages back to the system; begin and end are multiples of 4096. They may read as zeros or as before.
void discard_shared(const SharedMemory& memory, size_t begin, size_t end);

}  // namespace rushlight::host
