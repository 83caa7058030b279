#include "core/host/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace rushlight::host {

bool shared_memory_is_sparse() { return true; }

std::error_code create_shared(size_t bytes, SharedMemory* out) {
  const int file = memfd_create("rushlight", MFD_CLOEXEC);
  if (file < 0) return {errno, std::generic_category()};
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return map_shared(file, bytes, out);
  const int error = errno;
  close(file);
  return {error, std::generic_category()};
}

void discard_shared(const SharedMemory& memory, size_t begin, size_t end) {
  fallocate(memory.handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
            static_cast<off_t>(end - begin));
}

}  // namespace rushlight::host
