#include "core/shared_slab.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/host.h"

namespace rushlight::shared {

namespace {

constexpr size_t kPage = 4096;
constexpr int kProtection = PROT_READ | PROT_WRITE;

size_t page_up(size_t n) { return (n + kPage - 1) / kPage * kPage; }

uint64_t pid_namespace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

struct ProcessState {
  uint64_t start_time = 0;  ///< 0: unknown
  bool ended = false;
};

/// From /proc/PID/stat, without allocating: a forked child asks, too.
ProcessState process_state(pid_t pid) {
  char path[40], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return {};
  text[n] = 0;
  const char* p = std::strrchr(text, ')');  // the name may contain anything
  if (!p || p[1] != ' ') return {};
  ProcessState result;
  result.ended = p[2] == 'Z' || p[2] == 'X';
  for (int field = 2; p && field < 22; field++) p = std::strchr(p + 1, ' ');
  if (p) result.start_time = std::strtoull(p, nullptr, 10);
  return result;
}

bool lives(const Holder& holder) {
  const pid_t pid = holder.pid;
  static const uint64_t our_namespace = pid_namespace();
  if (holder.pid_namespace != our_namespace) return true;  // its number means nothing here
  if (kill(pid, 0) != 0 && errno == ESRCH) return false;
  const ProcessState state = process_state(pid);
  if (state.ended) return false;
  const uint64_t started = holder.start_time;
  return started == 0 || state.start_time == 0 || started == state.start_time;
}

void write_place(Holder& holder, pid_t pid) {
  holder.start_time = 0;
  holder.pid_namespace = pid_namespace();
  holder.pid = pid;
  holder.start_time = process_state(pid).start_time;
}

/// Twice what the machine has, less where the process is limited: pages are taken when they are touched. Of a
/// limited address space a small part, since it also holds the slabs of the processes that send tensors here.
size_t usual_capacity() {
  size_t capacity = page_up(std::max(host::usable_memory(), size_t{1} << 30)) * 2;
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    capacity = std::min<size_t>(capacity, limit.rlim_cur / kPage * kPage);
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    capacity = std::min<size_t>(capacity, page_up(limit.rlim_cur / 16));
  return capacity;
}

[[noreturn]] void fail(const char* what) {
  RL_FAIL("shared memory: ", what, ": ", std::strerror(errno), " (error ", errno, ")");
}

}  // namespace

Slab* Slab::create(size_t least_bytes) {
  const size_t least = kHeaderBytes + page_up(least_bytes);
  const int fd = memfd_create("rushlight", MFD_CLOEXEC);
  if (fd < 0) fail("cannot create a memory file");
  size_t capacity = std::max(usual_capacity(), least);
  void* base = MAP_FAILED;
  while (base == MAP_FAILED) {
    if (ftruncate(fd, static_cast<off_t>(capacity)) == 0)
      base = mmap(nullptr, capacity, kProtection, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base != MAP_FAILED) break;
    if (capacity == least) {
      close(fd);
      fail("cannot map it");
    }
    capacity = std::max(least, page_up(capacity / 2));  // the address space is limited
  }
  madvise(base, capacity, MADV_DONTDUMP);
  auto* slab = new Slab{.fd = fd, .base = static_cast<std::byte*>(base), .capacity = capacity, .owned = true};
  SlabHeader& header = slab->header();
  if (getrandom(header.id.data(), sizeof header.id, 0) != sizeof header.id) header.id = {};
  header.capacity = capacity;
  header.magic = SlabHeader::kMagic;
  slab->take_place();
  return slab;
}

Slab* Slab::map(int fd, const SlabId& expected) {
  struct stat info;
  const size_t capacity = fstat(fd, &info) == 0 ? static_cast<size_t>(info.st_size) : 0;
  void* base = MAP_FAILED;
  if (capacity >= kHeaderBytes)
    base = mmap(nullptr, capacity, kProtection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    close(fd);
    fail("cannot map the memory of another process");
  }
  madvise(base, capacity, MADV_DONTDUMP);
  auto* slab =
      new Slab{.fd = fd, .base = static_cast<std::byte*>(base), .capacity = capacity, .owned = false};
  const SlabHeader& header = slab->header();
  if (header.magic != SlabHeader::kMagic || header.id != expected || header.capacity != capacity) {
    delete slab;
    RL_FAIL("shared memory: the descriptor of the sending process is another file by now");
  }
  return slab;
}

Slab::~Slab() {
  leave();
  munmap(base, capacity);
  close(fd);
}

bool Slab::take_place() {
  if (holder < 0) holder = place_for_child();
  return holder >= 0;
}

int Slab::place_for_child() const {
  for (int i = owned ? 0 : 1; i < kHolders; i++) {
    int32_t nobody = 0;
    if (!header().holders[i].pid.compare_exchange_strong(nobody, getpid())) continue;
    write_place(header().holders[i], getpid());
    return i;
  }
  return -1;
}

uint64_t Slab::dead_holders() const {
  uint64_t dead = 0;
  for (int i = 0; i < kHolders; i++)
    if (i != holder && header().holders[i].pid != 0 && !lives(header().holders[i])) dead |= uint64_t{1} << i;
  return dead;
}

void Slab::clear_places(uint64_t places) const {
  for (int i = 0; i < kHolders; i++)
    if (places >> i & 1) header().holders[i].pid = 0;
}

void Slab::adopt_place(int index) const { write_place(header().holders[index], getpid()); }

void Slab::leave() const {
  if (holder > 0) header().holders[holder].pid = 0;
}

bool Slab::owner_lives() const { return !header().owner_gone && lives(header().holders[0]); }

void Slab::punch(uint64_t begin, uint64_t end) const {
  begin = page_up(begin);
  end = end / kPage * kPage;
  if (begin < end)
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(end - begin));
}

void Slab::give_back(uint64_t offset) const {
  if (header().owner_gone) {
    block(offset).magic = 0;
    punch(offset + sizeof(BlockHeader), offset + sizeof(BlockHeader) + block(offset).nbytes);
    return;
  }
  uint64_t first = header().freed;
  do block(offset).next_freed = first;
  while (!header().freed.compare_exchange_weak(first, offset));
}

}  // namespace rushlight::shared
