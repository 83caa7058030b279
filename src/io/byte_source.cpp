#include "io/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace rushlight::io {

size_t MemorySource::read(uint64_t at, void* to, size_t nbytes) {
  const size_t count = at < bytes_.size() ? std::min<size_t>(nbytes, bytes_.size() - at) : 0;
  if (count) std::memcpy(to, bytes_.data() + at, count);
  return count;
}

FileSource::FileSource(const std::string& path)
    : ByteSource(0), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  RL_CHECK(fd_ >= 0, "cannot open '", path, "': ", std::strerror(errno));
  struct stat info{};
  const bool regular = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular) ::close(fd_);
  RL_CHECK(regular, "'", path, "' is not a file");
  size_ = static_cast<uint64_t>(info.st_size);
}

FileSource::~FileSource() { ::close(fd_); }

size_t FileSource::read(uint64_t at, void* to, size_t nbytes) {
  size_t done = 0;
  while (done < nbytes) {
    const ssize_t n =
        ::pread(fd_, static_cast<char*>(to) + done, nbytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    RL_CHECK(n >= 0, "cannot read: ", std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

}  // namespace rushlight::io
