#include "core/host/memory.h"

#include <malloc.h>

#include <cstdint>

#include "core/host/windows/system.h"

namespace rushlight::host {
namespace {

constexpr uintptr_t kPage = 4096;

// A handle has 32 bits that count.
HANDLE handle_of(int number) { return reinterpret_cast<HANDLE>(static_cast<intptr_t>(number)); }
int number_of(HANDLE handle) { return static_cast<int>(reinterpret_cast<intptr_t>(handle)); }

}  // namespace

// Large pages need a right that few accounts have.
void* allocate_pages(size_t bytes, bool) {
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}
void free_pages(void* address, size_t) noexcept { VirtualFree(address, 0, MEM_RELEASE); }

void* allocate_aligned(size_t bytes, size_t alignment) { return _aligned_malloc(bytes, alignment); }
void free_aligned(void* address) noexcept { _aligned_free(address); }

// Pages that are not locked leave the working set by this; what it answers is an error then, as documented.
void forget_pages(const void* data, size_t nbytes) {
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + kPage - 1) / kPage * kPage;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + nbytes) / kPage * kPage;
  if (begin < end) VirtualUnlock(reinterpret_cast<void*>(begin), end - begin);
}

void fetch_pages(const void* data, size_t nbytes) {
  WIN32_MEMORY_RANGE_ENTRY range{const_cast<void*>(data), nbytes};
  PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}

// The system promises the memory of a whole section at once.
bool shared_memory_is_sparse() { return false; }
size_t most_shared_memory() { return SIZE_MAX; }

std::error_code create_shared(size_t bytes, SharedMemory* out) {
  const HANDLE section =
      CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE,
                         static_cast<DWORD>(uint64_t{bytes} >> 32), static_cast<DWORD>(bytes), nullptr);
  return section ? map_shared(number_of(section), bytes, out) : last_error();
}

std::error_code map_shared(int handle, size_t least_bytes, SharedMemory* out) {
  void* base = MapViewOfFile(handle_of(handle), FILE_MAP_ALL_ACCESS, 0, 0, 0);
  std::error_code error = base ? std::error_code() : last_error();
  MEMORY_BASIC_INFORMATION info{};
  if (base && VirtualQuery(base, &info, sizeof info) != 0 && info.RegionSize >= least_bytes) {
    *out = {handle, static_cast<std::byte*>(base), info.RegionSize};
    return {};
  }
  if (base) {
    UnmapViewOfFile(base);
    error = std::make_error_code(std::errc::invalid_argument);
  }
  close_shared(handle);
  return error;
}

void unmap_shared(const SharedMemory& memory) noexcept {
  UnmapViewOfFile(memory.base);
  close_shared(memory.handle);
}
void close_shared(int handle) noexcept { CloseHandle(handle_of(handle)); }

// Pages of a section stay promised as long as it is, but need not be written to the paging file any more.
void discard_shared(const SharedMemory& memory, size_t begin, size_t end) {
  if (begin < end) VirtualAlloc(memory.base + begin, end - begin, MEM_RESET, PAGE_READWRITE);
}

}  // namespace rushlight::host
