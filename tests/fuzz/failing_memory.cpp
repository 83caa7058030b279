// Memory that runs out at a chosen point, for tests/fuzz/failing_memory.py: loaded before the C library
// (LD_PRELOAD), it answers one allocation of the calling thread, or all from one on, as if there were no
// memory left.
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

struct Plan {
  long left;  // allocations before the one that fails
  long made;
  bool on, again, failed;  // again: all later ones fail too
};
thread_local Plan plan __attribute__((tls_model("initial-exec")));
std::atomic<long> live{0};

// The C library itself ends the process where it cannot note a thread's variables: those are no library's
// fault.
bool ends_the_process(const void* caller) {
  const Plan kept = plan;
  plan.on = false;  // dladdr may allocate
  Dl_info info{};
  const bool known = dladdr(caller, &info) != 0;
  plan = kept;
  if (!known) return false;
  const std::string_view file = info.dli_fname ? info.dli_fname : "",
                         name = info.dli_sname ? info.dli_sname : "";
  return file.find("/ld-linux") != file.npos || file.find("/libdnnl") != file.npos ||
         name == "__cxa_thread_atexit_impl";
}

bool fails(const void* caller) {
  if (!plan.on) return false;
  ++plan.made;
  if (plan.left > 0) return --plan.left, false;
  if ((plan.failed && !plan.again) || ends_the_process(caller)) return false;
  plan.failed = true;
  errno = ENOMEM;
  return true;
}
void* counted(void* p) {
  if (p) live.fetch_add(1, std::memory_order_relaxed);
  return p;
}

}  // namespace

extern "C" {

// The calling thread's allocation after the next `left` fails; negative: none, they are counted.
void failing_memory_begin(long left, int again) {
  plan = {left < 0 ? INT64_MAX : left, 0, true, again != 0, false};
}
// The number of allocations since then.
long failing_memory_end() {
  plan.on = false;
  return plan.made;
}
// Blocks that are allocated in the process.
long failing_memory_live() { return live.load(); }

void* malloc(size_t n) { return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_malloc(n)); }
void* calloc(size_t n, size_t size) {
  return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_calloc(n, size));
}
void* realloc(void* p, size_t n) {
  if (!p) return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_malloc(n));
  if (n == 0) live.fetch_sub(1, std::memory_order_relaxed);
  return n && fails(__builtin_return_address(0)) ? nullptr : __libc_realloc(p, n);
}
void* memalign(size_t alignment, size_t n) {
  return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_memalign(alignment, n));
}
void* aligned_alloc(size_t alignment, size_t n) {
  return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_memalign(alignment, n));
}
int posix_memalign(void** p, size_t alignment, size_t n) {
  void* made = fails(__builtin_return_address(0)) ? nullptr : counted(__libc_memalign(alignment, n));
  if (!made) return ENOMEM;
  *p = made;
  return 0;
}
void free(void* p) {
  if (p) live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(p);
}
void* mmap(void* address, size_t n, int protection, int flags, int file, off_t offset) {
  if (fails(__builtin_return_address(0))) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, n, protection, flags, file, offset));
}
void* mmap64(void* address, size_t n, int protection, int flags, int file, off_t offset) {
  if (fails(__builtin_return_address(0))) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, n, protection, flags, file, offset));
}
int memfd_create(const char* name, unsigned flags) {
  return fails(__builtin_return_address(0)) ? -1 : static_cast<int>(syscall(SYS_memfd_create, name, flags));
}
}
