#include "core/host/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

namespace rushlight::host {

bool shared_memory_is_sparse() { return true; }

// A name is needed only until the memory is open.
std::error_code create_shared(size_t bytes, SharedMemory* out) {
  static std::atomic<unsigned> count{0};
  for (int tries = 0; tries < 100; ++tries) {
    char name[30];  // at most 31 characters
    std::snprintf(name, sizeof name, "/rushlight.%x.%x", static_cast<unsigned>(getpid()), ++count);
    const int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) break;
    shm_unlink(name);
    if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return map_shared(file, bytes, out);
    const int error = errno;
    close(file);
    return {error, std::generic_category()};
  }
  return {errno, std::generic_category()};
}

// Pages of 16 KB: a partial one holds others' data, too. Where the system refuses, they stay.
void discard_shared(const SharedMemory& memory, size_t begin, size_t end) {
  const auto page = static_cast<size_t>(getpagesize());
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) madvise(memory.base + begin, end - begin, MADV_FREE);
}

}  // namespace rushlight::host
