#include "core/host/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace rushlight::host {
namespace {

#ifdef __EMSCRIPTEN__  // has none, and takes back whole mappings alone
constexpr size_t kLargePage = SIZE_MAX;
#else
constexpr size_t kLargePage = size_t{2} << 20;
#endif

size_t page() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

void* allocate_pages(size_t bytes, [[maybe_unused]] bool large_pages) {
  const size_t slack = bytes >= kLargePage ? kLargePage : 0;
  if (bytes > SIZE_MAX - slack) return nullptr;
  void* p = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (!slack) return p;
  // Large pages need an aligned start: keep the aligned part of a longer mapping.
  char* start = static_cast<char*>(p);
  const size_t before = (kLargePage - reinterpret_cast<uintptr_t>(start) % kLargePage) % kLargePage;
  const size_t whole = (bytes + page() - 1) / page() * page();
  if (before) munmap(start, before);
  if (before < slack) munmap(start + before + whole, slack - before);
#ifdef MADV_HUGEPAGE
  if (large_pages && slack) madvise(start + before, bytes, MADV_HUGEPAGE);
#endif
  return start + before;
}

void free_pages(void* address, size_t bytes) noexcept { munmap(address, bytes); }

void* allocate_aligned(size_t bytes, size_t alignment) {
  void* p = nullptr;
  return posix_memalign(&p, alignment, bytes) == 0 ? p : nullptr;
}
void free_aligned(void* address) noexcept { std::free(address); }

void forget_pages(const void* data, size_t nbytes) {
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page() - 1) / page() * page();
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + nbytes) / page() * page();
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void fetch_pages(const void* data, size_t nbytes) {
#ifdef MADV_POPULATE_READ
  constexpr int kAdvice = MADV_POPULATE_READ;
#else
  constexpr int kAdvice = MADV_WILLNEED;
#endif
  const auto begin = reinterpret_cast<uintptr_t>(data), first = begin / page() * page();
  // Older kernels know no such advice: pages come as they are read then.
  madvise(reinterpret_cast<void*>(first), begin + nbytes - first, kAdvice);
}

size_t most_shared_memory() {
  rlimit limit;
  size_t most = SIZE_MAX;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    most = std::min<size_t>(most, limit.rlim_cur / page() * page());
  // Of a limited address space a small part, since it also holds what other processes send here.
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    most = std::min<size_t>(most, (limit.rlim_cur / 16 + page() - 1) / page() * page());
  return most;
}

std::error_code map_shared(int handle, size_t least_bytes, SharedMemory* out) {
  struct stat info{};
  int error = EINVAL;
  void* base = MAP_FAILED;
  if (fstat(handle, &info) != 0) error = errno;
  const auto bytes = static_cast<size_t>(info.st_size);
  if (bytes >= std::max<size_t>(least_bytes, 1)) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, handle, 0);
    error = errno;
  }
  if (base == MAP_FAILED) {
    close(handle);
    return {error, std::generic_category()};
  }
#ifdef MADV_DONTDUMP
  madvise(base, bytes, MADV_DONTDUMP);
#endif
  *out = {handle, static_cast<std::byte*>(base), bytes};
  return {};
}

void unmap_shared(const SharedMemory& memory) noexcept {
  munmap(memory.base, memory.bytes);
  close(memory.handle);
}
void close_shared(int handle) noexcept { close(handle); }

}  // namespace rushlight::host
