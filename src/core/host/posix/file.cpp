#include "core/host/file.h"

#include <fcntl.h>
#include <sys/mman.h>
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
#include "core/host/posix/restarted.h"

namespace rushlight::host {

static std::error_code last_error() { return {errno, std::generic_category()}; }

MappedBytes map_file(const std::string& path) {
  const int fd = restarted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  RL_CHECK(fd >= 0, "cannot open '", path, "': ", std::strerror(errno));
  struct stat info{};
  void* mapped = nullptr;
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = regular ? static_cast<size_t>(info.st_size) : 0;
  if (size > 0) mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);
  RL_CHECK(regular, "'", path, "' is not a file");
  RL_CHECK(mapped != MAP_FAILED, "cannot map '", path, "': ", std::strerror(error));
  return {static_cast<const std::byte*>(mapped), size};
}

void unmap_file(const MappedBytes& bytes) noexcept {
  if (bytes.data) ::munmap(const_cast<std::byte*>(bytes.data), bytes.size);
}

std::error_code FileReplacement::open(const std::string& path) {
  struct stat known{};
  const bool exists = ::stat(path.c_str(), &known) == 0;
  const std::unique_ptr<char, void (*)(void*)> real(exists ? ::realpath(path.c_str(), nullptr) : nullptr,
                                                    ::free);
  target_ = real ? real.get() : path;
  static std::atomic<uint64_t> count{0};
  const bool replaced = !exists || S_ISREG(known.st_mode);
  fresh_ = replaced ? str(target_, ".", ::getpid(), ".", ++count, ".tmp") : target_;
  const int file =
      restarted([&] { return ::open(fresh_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
  file_ = file;
  if (file < 0) return last_error();
  if (exists && replaced) (void)::fchmod(file, known.st_mode & 07777);
  return {};
}

FileReplacement::~FileReplacement() {
  if (file_ < 0) return;
  ::close(static_cast<int>(file_));
  remove();
}

void FileReplacement::remove() const {
  if (fresh_ != target_) std::remove(fresh_.c_str());
}

std::error_code FileReplacement::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = restarted([&] { return ::write(static_cast<int>(file_), bytes.data(), bytes.size()); });
    if (n < 0) return last_error();
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// A file system that cannot tell is taken as it is.
static bool reach_the_disk(int file) {
#ifdef F_FULLFSYNC  // fsync alone leaves the rest to the disk's own cache
  if (::fcntl(file, F_FULLFSYNC) == 0) return true;
#endif
  return restarted([&] { return ::fsync(file); }) == 0 || errno == EINVAL || errno == ENOSYS;
}

std::error_code FileReplacement::commit() {
  // The name must not reach the disk before the contents do.
  if (!reach_the_disk(static_cast<int>(file_))) return last_error();
  const bool closed = ::close(static_cast<int>(std::exchange(file_, -1))) == 0 || errno == EINTR;
  if (closed && (fresh_ == target_ || std::rename(fresh_.c_str(), target_.c_str()) == 0)) return {};
  const std::error_code error = last_error();
  remove();
  return error;
}

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

FileStamp file_stamp(const std::string& path) {
  struct stat s;
  if (::stat(path.c_str(), &s) != 0) return {};
#ifdef __APPLE__
  const timespec& changed = s.st_mtimespec;
#else
  const timespec& changed = s.st_mtim;
#endif
  return {static_cast<uint64_t>(s.st_dev), s.st_ino, s.st_size,
          int64_t{changed.tv_sec} * 1'000'000'000 + changed.tv_nsec};
}

}  // namespace rushlight::host
