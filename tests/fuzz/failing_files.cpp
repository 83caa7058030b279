// Files that fail at a chosen point, for tests/fuzz/failing_files.py: loaded before the C library
// (LD_PRELOAD), it answers one call on files below a folder, or all from one on, with an error, moves less
// than was asked, or ends the process there, as a kill or a loss of power would.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace {

enum Kind { kCount, kError, kShort, kKill, kPowerLoss };

struct Plan {
  std::string folder;
  Kind kind = kCount;
  long left = 0, made = 0;
  int error = 0;
  bool on = false, again = false, failed = false;
};
// What the disk knows of a file: its name now, and how much of it was synchronised.
struct Kept {
  std::string path;
  off_t synced = 0;
  bool dirty = false;
};

std::recursive_mutex lock;
Plan plan;
std::map<int, ino_t> files;  // descriptors below the folder
std::map<ino_t, Kept> kept;

long call(long number, auto... arguments) { return syscall(number, arguments...); }

bool below(const char* path) {
  if (!plan.on || !path) return false;
  const std::string text = path;
  return text.compare(0, plan.folder.size(), plan.folder) == 0;
}

// The data that no one synchronised is gone, whatever names were given since.
void lose_power() {
  for (const auto& [inode, file] : kept)
    if (file.dirty) call(SYS_truncate, file.path.c_str(), file.synced);
}

// What a call may be told: that it was interrupted, that there is no room left.
enum What { kName = 0, kInterruptible = 1, kTakesRoom = 2 };

// Whether this call fails; the answer for short transfers is in `half`.
bool fails(int what, bool* half = nullptr) {
  if (plan.kind == kError && plan.error == EINTR && !(what & kInterruptible)) return false;
  if (plan.kind == kError && plan.error == ENOSPC && !(what & kTakesRoom)) return false;
  ++plan.made;
  if (plan.kind == kCount) return false;
  if (plan.left-- > 0 || (plan.failed && !plan.again)) return false;
  if (plan.kind == kPowerLoss) lose_power();
  if (plan.kind == kKill || plan.kind == kPowerLoss) call(SYS_exit_group, 99);
  if (plan.kind == kShort) {
    if (!half) return ++plan.left, false;  // the next transfer
    plan.failed = *half = true;
    return false;
  }
  plan.failed = true;
  errno = plan.error;
  return true;
}

void opened(int file, const char* path, int flags) {
  if (file < 0) return;
  struct stat s;
  if (call(SYS_fstat, file, &s) != 0 || !S_ISREG(s.st_mode)) return;
  files[file] = s.st_ino;
  Kept& k = kept[s.st_ino];
  k.path = path;
  if (flags & O_TRUNC) k.synced = 0;
}

int open_file(int folder, const char* path, int flags, mode_t mode) {
  const std::lock_guard guard(lock);
  const bool ours = below(path);
  if (ours && fails(kInterruptible | (flags & O_CREAT ? kTakesRoom : 0))) return -1;
  const int file = static_cast<int>(call(SYS_openat, folder, path, flags, mode));
  if (ours) opened(file, path, flags);
  return file;
}

mode_t mode_of(int flags, va_list& rest) {
  return flags & (O_CREAT | O_TMPFILE) ? static_cast<mode_t>(va_arg(rest, int)) : 0;
}

bool is_ours(int file) { return plan.on && files.count(file); }

ssize_t transfer(int file, size_t n, bool writes, auto move) {
  const std::lock_guard guard(lock);
  bool half = false;
  if (is_ours(file)) {
    if (fails(kInterruptible | (writes ? kTakesRoom : 0), &half)) return -1;
    if (half && n > 1) n /= 2;
    if (writes) kept[files[file]].dirty = true;
  }
  return static_cast<ssize_t>(move(n));
}

int synchronise(int file, long number) {
  const std::lock_guard guard(lock);
  if (is_ours(file)) {
    if (fails(kInterruptible | kTakesRoom)) return -1;
    struct stat s;
    if (call(SYS_fstat, file, &s) == 0) kept[files[file]] = {kept[files[file]].path, s.st_size, false};
  }
  return static_cast<int>(call(number, file));
}

int move_file(const char* from, const char* to) {
  const std::lock_guard guard(lock);
  if ((below(from) || below(to)) && fails(kName)) return -1;
  const int status = static_cast<int>(call(SYS_rename, from, to));
  if (status == 0 && below(to)) {
    struct stat s;
    if (::stat(to, &s) == 0 && kept.count(s.st_ino)) kept[s.st_ino].path = to;
  }
  return status;
}

int cut(int file, off_t n) {
  const std::lock_guard guard(lock);
  if (is_ours(file) && fails(kInterruptible | kTakesRoom)) return -1;
  return static_cast<int>(call(SYS_ftruncate, file, n));
}

int removed(const char* path) {
  const std::lock_guard guard(lock);
  if (below(path) && fails(kName)) return -1;
  return static_cast<int>(call(SYS_unlink, path));
}

}  // namespace

extern "C" {

// The call on files below the folder after the next `left` fails in this way.
void failing_files_begin(const char* folder, int kind, long left, int error, int again) {
  const std::lock_guard guard(lock);
  files.clear(), kept.clear();
  plan = {folder, static_cast<Kind>(kind), left, 0, error, true, again != 0, false};
}
// The number of calls since then.
long failing_files_end() {
  const std::lock_guard guard(lock);
  plan.on = false;
  return plan.made;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(folder, path, flags, mode);
}
ssize_t read(int file, void* to, size_t n) {
  return transfer(file, n, false, [&](size_t m) { return call(SYS_read, file, to, m); });
}
ssize_t pread(int file, void* to, size_t n, off_t at) {
  return transfer(file, n, false, [&](size_t m) { return call(SYS_pread64, file, to, m, at); });
}
ssize_t pread64(int file, void* to, size_t n, off_t at) { return pread(file, to, n, at); }
ssize_t write(int file, const void* from, size_t n) {
  return transfer(file, n, true, [&](size_t m) { return call(SYS_write, file, from, m); });
}
ssize_t pwrite(int file, const void* from, size_t n, off_t at) {
  return transfer(file, n, true, [&](size_t m) { return call(SYS_pwrite64, file, from, m, at); });
}
ssize_t pwrite64(int file, const void* from, size_t n, off_t at) { return pwrite(file, from, n, at); }
// A short one writes the first part alone.
ssize_t writev(int file, const iovec* parts, int count) {
  return transfer(file, 2, true, [&](size_t m) {
    return m < 2 ? call(SYS_write, file, parts->iov_base, parts->iov_len)
                 : call(SYS_writev, file, parts, count);
  });
}
int fsync(int file) { return synchronise(file, SYS_fsync); }
int fdatasync(int file) { return synchronise(file, SYS_fdatasync); }
int ftruncate(int file, off_t n) { return cut(file, n); }
int ftruncate64(int file, off_t n) { return cut(file, n); }
int rename(const char* from, const char* to) { return move_file(from, to); }
int unlink(const char* path) { return removed(path); }
int close(int file) {
  const std::lock_guard guard(lock);
  if (is_ours(file)) {
    files.erase(file);
    if (fails(kName)) {  // a close that fails has closed all the same
      call(SYS_close, file);
      errno = plan.error;
      return -1;
    }
  }
  return static_cast<int>(call(SYS_close, file));
}
void* mmap(void* address, size_t n, int protection, int flags, int file, off_t offset) {
  {
    const std::lock_guard guard(lock);
    if (file >= 0 && is_ours(file) && fails(kName)) return MAP_FAILED;
  }
  return reinterpret_cast<void*>(call(SYS_mmap, address, n, protection, flags, file, offset));
}
void* mmap64(void* address, size_t n, int protection, int flags, int file, off_t offset) {
  return mmap(address, n, protection, flags, file, offset);
}
}
