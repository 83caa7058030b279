#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "io/restarted.h"

namespace rushlight::io {

Ref<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = restarted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  RL_CHECK(fd >= 0, "cannot open '", path, "': ", std::strerror(errno));
  struct stat info{};
  void* mapped = nullptr;
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = regular ? static_cast<size_t>(info.st_size) : 0;
  if (size > 0) mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  RL_CHECK(regular, "'", path, "' is not a file");
  RL_CHECK(mapped != MAP_FAILED, "cannot map '", path, "': ", std::strerror(errno));
  return Ref<MappedFile>::adopt(new MappedFile(static_cast<const std::byte*>(mapped), size));
}

void MappedFile::fetch(std::span<const std::byte> part) {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data()), first = begin / page * page;
  // Older kernels know no such advice: pages come as they are read then.
  ::madvise(reinterpret_cast<void*>(first), begin + part.size() - first, MADV_POPULATE_READ);
#else
  (void)part;
#endif
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

Storage MappedFile::storage(size_t offset, size_t nbytes) {
  retain();
  auto* start = const_cast<std::byte*>(data_ + offset);
  const auto release = [](void* file, void*, size_t) {
    Ref<MappedFile>::adopt(static_cast<MappedFile*>(file));
  };
  return StorageImpl::wrap(start, nbytes, {}, release, this, true);
}

}  // namespace rushlight::io
