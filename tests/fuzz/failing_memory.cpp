// Memory that runs out at a chosen point, for tests/fuzz/failing_memory.py: loaded before the C library
// (LD_PRELOAD), it answers one allocation of the calling thread, or all from one on, as if there were no
// memory left. Either those of C and C++ count, or those of Python's objects (PyMem_SetAllocator). In a
// program without Python, FAILING_MEMORY=N lets one in N fail, by chance, in any thread, while the file that
// FAILING_MEMORY_WHILE names exists.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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
  bool python;             // Python's allocations count, and no others
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

// Failures by chance, in a program that knows nothing of it.
std::atomic<long> one_in{-1}, by_chance{0};
std::atomic<time_t> looked{0};
std::atomic<bool> wanted{false};

bool fails_by_chance(const void* caller) {
  static thread_local uint64_t state __attribute__((tls_model("initial-exec"))) = 0;
  static thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;
  if (inside) return false;
  long n = one_in.load(std::memory_order_relaxed);
  if (n < 0) {
    const char* text = std::getenv("FAILING_MEMORY");
    one_in.store(n = text ? std::atol(text) : 0);
  }
  if (n == 0) return false;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const time_t ticks = now.tv_sec * 20 + now.tv_nsec / 50'000'000;
  if (looked.exchange(ticks) != ticks) {
    const char* path = std::getenv("FAILING_MEMORY_WHILE");
    wanted.store(path && access(path, F_OK) == 0);
  }
  if (!wanted.load(std::memory_order_relaxed)) return false;
  if (state == 0) state = reinterpret_cast<uintptr_t>(&state) | 1;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  if (state % static_cast<uint64_t>(n) != 0) return false;
  inside = true;
  const bool harmless = !ends_the_process(caller);
  inside = false;
  if (!harmless) return false;
  by_chance.fetch_add(1, std::memory_order_relaxed);
  errno = ENOMEM;
  return true;
}

__attribute__((destructor)) void tell() {
  if (by_chance.load()) std::fprintf(stderr, "%ld allocations failed\n", by_chance.load());
}

// A child has no plan of its parent's.
__attribute__((constructor)) void begin() {
  pthread_atfork(nullptr, nullptr, [] { plan.on = false; });
}

// Of Python's allocations so many fail in a row: the interpreter goes round for ever where it never again
// gets the number with which it would enter an exception's handler.
constexpr long kInRow = 40;

bool fails_now() {
  ++plan.made;
  if (plan.left > 0) return --plan.left, false;
  if (plan.failed && (!plan.again || --plan.left < -kInRow)) return false;
  return plan.failed = true;
}

bool fails(const void* caller) {
  if (!plan.on) return fails_by_chance(caller);
  if (plan.python) return false;
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

// What Python.h declares of its allocators; this library is loaded into programs without Python, too.
struct PythonAllocator {
  void* context;
  void* (*malloc)(void*, size_t);
  void* (*calloc)(void*, size_t, size_t);
  void* (*realloc)(void*, void*, size_t);
  void (*free)(void*, void*);
};
constexpr int kDomains = 3;  // raw memory, memory, objects
PythonAllocator former[kDomains];
std::atomic<long> objects{0};

bool python_fails() { return plan.on && plan.python && fails_now(); }
void* object_counted(void* p) {
  if (p) objects.fetch_add(1, std::memory_order_relaxed);
  return p;
}
PythonAllocator& allocator(void* context) { return *static_cast<PythonAllocator*>(context); }
void* python_malloc(void* context, size_t n) {
  const PythonAllocator& a = allocator(context);
  return python_fails() ? nullptr : object_counted(a.malloc(a.context, n));
}
void* python_calloc(void* context, size_t n, size_t size) {
  const PythonAllocator& a = allocator(context);
  return python_fails() ? nullptr : object_counted(a.calloc(a.context, n, size));
}
void* python_realloc(void* context, void* p, size_t n) {
  const PythonAllocator& a = allocator(context);
  if (python_fails()) return nullptr;
  void* made = a.realloc(a.context, p, n);
  return p ? made : object_counted(made);
}
void python_free(void* context, void* p) {
  const PythonAllocator& a = allocator(context);
  if (p) objects.fetch_sub(1, std::memory_order_relaxed);
  a.free(a.context, p);
}

}  // namespace

extern "C" {

// The calling thread's allocation after the next `left` fails; negative: none, they are counted.
void failing_memory_begin(long left, int again) {
  plan = {left < 0 ? INT64_MAX : left, 0, true, again != 0, false, former[0].malloc != nullptr};
}
// From now on Python's allocations count, in place of those of C.
void failing_memory_of_python() {
  using Access = void (*)(int, PythonAllocator*);
  const auto get = reinterpret_cast<Access>(dlsym(RTLD_DEFAULT, "PyMem_GetAllocator"));
  const auto set = reinterpret_cast<Access>(dlsym(RTLD_DEFAULT, "PyMem_SetAllocator"));
  for (int domain = 0; domain < kDomains; ++domain) {
    get(domain, &former[domain]);
    PythonAllocator ours{&former[domain], python_malloc, python_calloc, python_realloc, python_free};
    set(domain, &ours);
  }
}
// The number of allocations since then.
long failing_memory_end() {
  plan.on = false;
  return plan.made;
}
// Blocks that are allocated in the process; of Python's, those since its allocations count.
long failing_memory_live() { return former[0].malloc ? objects.load() : live.load(); }

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
