#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "core/error.h"
#include "io/restarted.h"

namespace rushlight::io {
namespace {

constexpr size_t kBuffered = size_t{1} << 16;

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string what) : path_(std::move(path)), what_(std::move(what)) {
  // A link stays one, and what is no file of the disk (a pipe, /dev/null) cannot be replaced.
  struct stat known{};
  const bool exists = ::stat(path_.c_str(), &known) == 0;
  const std::unique_ptr<char, void (*)(void*)> real(exists ? ::realpath(path_.c_str(), nullptr) : nullptr,
                                                    ::free);
  target_ = real ? real.get() : path_;
  static std::atomic<uint64_t> count{0};
  fresh_ = exists && !S_ISREG(known.st_mode) ? target_ : str(target_, ".", ::getpid(), ".", ++count, ".tmp");
  file_ = restarted([&] { return ::open(fresh_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
  if (file_ < 0) fail();
  if (exists && fresh_ != target_) (void)::fchmod(file_, known.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  remove();
}

void AtomicFile::remove() const {
  if (fresh_ != target_) std::remove(fresh_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  written_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBuffered) flush();
  if (bytes.size() > kBuffered)
    put(bytes);
  else
    buffer_ += bytes;
}

void AtomicFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void AtomicFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = restarted([&] { return ::write(file_, bytes.data(), bytes.size()); });
    if (n < 0) fail();
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void AtomicFile::commit() {
  flush();
  // The name must not reach the disk before the contents do. A file system that cannot tell is taken as it
  // is.
  if (restarted([&] { return ::fsync(file_); }) < 0 && errno != EINVAL && errno != ENOSYS) fail();
  const bool closed = ::close(std::exchange(file_, -1)) == 0 || errno == EINTR;
  if (closed && (fresh_ == target_ || std::rename(fresh_.c_str(), target_.c_str()) == 0)) return;
  const int error = errno;
  remove();
  errno = error;
  fail();
}

void AtomicFile::fail() const { RL_FAIL(what_, " '", path_, "': ", std::strerror(errno)); }

}  // namespace rushlight::io
