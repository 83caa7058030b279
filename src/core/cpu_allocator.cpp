#include "core/cpu_allocator.h"

#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/allocation_observer.h"
#include "core/host/memory.h"
#include "core/host/process.h"
#include "core/host/processor.h"
#include "core/long_work.h"

namespace rushlight {

constinit std::atomic<AllocationObserver> allocation_observer{nullptr};

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaches = false;
#else
constexpr bool kCaches = true;
#endif

constexpr size_t kTinyLimit = 4096;
constexpr size_t kTinyClasses = kTinyLimit / kCpuAlignment;
constexpr size_t kTinyCachedPerClass = 32 * 1024;

size_t tiny_class(size_t bytes) { return (bytes - 1) / kCpuAlignment; }
size_t tiny_size(size_t index) { return (index + 1) * kCpuAlignment; }

/// Only its own thread writes, others read for statistics: a relaxed load and store, no locked instruction.
class Counter {
 public:
  void add(int64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

/// Note [Tiny blocks]
/// Requests up to 4 KiB come from lists that belong to the calling thread, one for each multiple of 64 bytes,
/// and go back to the list of the thread that frees them; malloc stands behind. Blocks carry no header, so
/// that they may wander between threads; a list holds at most 32 KiB (of each size), the rest goes to malloc
/// at once.
struct TinyCache {
  struct FreeBlock {
    FreeBlock* next;
  };
  FreeBlock* head[kTinyClasses] = {};
  uint32_t count[kTinyClasses] = {};
  Counter allocations, allocated_bytes, cached_bytes;
  TinyCache *previous = nullptr, *next = nullptr;

  size_t clear() {
    size_t released = 0;
    for (size_t i = 0; i < kTinyClasses; i++) {
      for (FreeBlock* block = head[i]; block;) {
        FreeBlock* following = block->next;
        host::free_aligned(block);
        block = following;
      }
      released += count[i] * tiny_size(i);
      head[i] = nullptr;
      count[i] = 0;
    }
    cached_bytes.add(-static_cast<int64_t>(released));
    return released;
  }
};

/// All threads' caches, for statistics; what ended threads counted is folded into `ended`.
struct TinyRegistry {
  std::mutex mutex;
  TinyCache* first = nullptr;
  std::atomic<int64_t> ended_allocations{0}, ended_bytes{0};
};

class PageSource : public BlockSource {
 public:
  // Large pages, where neither translation nor the processor's look-ahead ends with each 4 kB: weights that
  // are read once a run come faster from them. But for the first segments of small blocks, so that small
  // programs stay as large as what they use.
  void* allocate_segment(size_t bytes) override {
    constexpr size_t kSmallSegment = 2 << 20, kSmallProgram = 4 << 20;
    const size_t held = held_ += bytes;
    return host::allocate_pages(bytes, bytes > kSmallSegment || held > kSmallProgram);
  }
  void free_segment(void* address, size_t bytes) noexcept override {
    held_ -= bytes;
    host::free_pages(address, bytes);
  }
  std::string name() const override { return "CPU"; }

 private:
  std::atomic<size_t> held_{0};
};

/// Never destroyed: tensors in static storage are freed after the end of main().
struct CpuMemory {
  PageSource source;
  CachingAllocator blocks;
  TinyRegistry tiny;

  CpuMemory() : blocks(source, {.cache_limit = host::usable_memory() / 4}) {
    host::around_fork([] { CpuMemory::get().lock(); }, [] { CpuMemory::get().unlock(); },
                      [] { CpuMemory::get().unlock(); });
  }
  static CpuMemory& get() {
    static CpuMemory& instance = *new CpuMemory;
    return instance;
  }
  void lock() {
    tiny.mutex.lock();
    blocks.lock_for_fork();
  }
  void unlock() {
    blocks.unlock_after_fork();
    tiny.mutex.unlock();
  }
};

// Initial-exec keeps the access at one instruction inside a shared library; one pointer is all the static TLS
// it needs.
__attribute__((tls_model("initial-exec"))) constinit thread_local TinyCache* t_cache = nullptr;
constinit thread_local bool t_thread_ends = false;

/// Returns this thread's blocks when it ends. Later frees by other thread-local destructors bypass the lists.
struct TinyCacheOwner {
  TinyCacheOwner() {
    TinyRegistry& registry = CpuMemory::get().tiny;
    auto* cache = new TinyCache;
    std::lock_guard guard(registry.mutex);
    cache->next = registry.first;
    if (registry.first) registry.first->previous = cache;
    registry.first = cache;
    t_cache = cache;
  }
  ~TinyCacheOwner() {
    TinyCache* cache = std::exchange(t_cache, nullptr);
    t_thread_ends = true;
    cache->clear();
    TinyRegistry& registry = CpuMemory::get().tiny;
    std::lock_guard guard(registry.mutex);
    (cache->previous ? cache->previous->next : registry.first) = cache->next;
    if (cache->next) cache->next->previous = cache->previous;
    registry.ended_allocations += cache->allocations.get();
    registry.ended_bytes += cache->allocated_bytes.get();
    delete cache;
  }
};

/// nullptr once the thread is ending.
TinyCache* this_thread_cache() {
  if (t_cache || t_thread_ends) return t_cache;
  static thread_local TinyCacheOwner owner;
  return t_cache;
}

[[noreturn]] void fail_allocation(size_t bytes, std::string_view detail) {
  RL_FAIL("DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes,
          " bytes. Error code 12 (Cannot allocate memory)", detail.empty() ? "" : "\n", detail);
}

void* allocate_aligned(size_t bytes, size_t asked) {
  void* p = bytes < asked ? nullptr : host::allocate_aligned(bytes, kCpuAlignment);
  if (!p) fail_allocation(asked, "");
  return p;
}

void* allocate_tiny_slowly(size_t index, size_t bytes) {
  TinyCache* cache = this_thread_cache();  // first: making it may fail
  void* p = allocate_aligned(tiny_size(index), bytes);
  const auto size = static_cast<int64_t>(tiny_size(index));
  if (cache) {
    cache->allocations.add(1);
    cache->allocated_bytes.add(size);
  } else {
    CpuMemory::get().tiny.ended_allocations += 1;
    CpuMemory::get().tiny.ended_bytes += size;
  }
  return p;
}

void free_tiny_slowly(void* address, size_t index) {
  host::free_aligned(address);
  const auto size = static_cast<int64_t>(tiny_size(index));
  if (TinyCache* cache = this_thread_cache()) {
    cache->allocations.add(-1);
    cache->allocated_bytes.add(-size);
  } else {
    CpuMemory::get().tiny.ended_allocations -= 1;
    CpuMemory::get().tiny.ended_bytes -= size;
  }
}

inline void* allocate_block(size_t bytes) {
  if (!kCaches) return allocate_aligned(bytes, bytes);
  if (bytes <= kTinyLimit) {
    const size_t index = tiny_class(bytes);
    TinyCache* cache = t_cache;
    if (!cache || !cache->head[index]) return allocate_tiny_slowly(index, bytes);
    const auto size = static_cast<int64_t>(tiny_size(index));
    cache->allocations.add(1);
    cache->allocated_bytes.add(size);
    cache->cached_bytes.add(-size);
    cache->count[index]--;
    return std::exchange(cache->head[index], cache->head[index]->next);
  }
  try {
    return CpuMemory::get().blocks.allocate(bytes);
  } catch (const OutOfMemory& e) {
    fail_allocation(bytes, e.what());
  }
}

inline void free_block(void* address, size_t bytes) noexcept {
  if (!kCaches) return host::free_aligned(address);
  if (bytes > kTinyLimit) return CpuMemory::get().blocks.deallocate(address);
  const size_t index = tiny_class(bytes);
  TinyCache* cache = t_cache;
  const size_t size = tiny_size(index);
  if (!cache || cache->count[index] * size >= kTinyCachedPerClass) return free_tiny_slowly(address, index);
  cache->allocations.add(-1);
  cache->allocated_bytes.add(-static_cast<int64_t>(size));
  cache->cached_bytes.add(static_cast<int64_t>(size));
  cache->count[index]++;
  cache->head[index] = new (address) TinyCache::FreeBlock{cache->head[index]};
}

inline void tell(void* address, int64_t bytes) noexcept {
  if (const AllocationObserver observer = allocation_observer.load(std::memory_order_relaxed); observer)
      [[unlikely]]
    observer(address, bytes);
}

}  // namespace

void* cpu_allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* address = allocate_block(bytes);
  tell(address, static_cast<int64_t>(bytes));
  return address;
}

void cpu_deallocate(void* address, size_t bytes) noexcept {
  if (!address) return;
  tell(address, -static_cast<int64_t>(bytes));  // before another thread can be given the block
  free_block(address, bytes);
}

CpuMemoryStats cpu_memory_stats() {
  CpuMemory& memory = CpuMemory::get();
  CpuMemoryStats result{memory.blocks.stats(), 0, 0, 0};
  std::lock_guard guard(memory.tiny.mutex);
  result.tiny_allocated_bytes = memory.tiny.ended_bytes;
  result.tiny_allocations = memory.tiny.ended_allocations;
  for (TinyCache* cache = memory.tiny.first; cache; cache = cache->next) {
    result.tiny_allocated_bytes += cache->allocated_bytes.get();
    result.tiny_allocations += cache->allocations.get();
    result.tiny_cached_bytes += cache->cached_bytes.get();
  }
  return result;
}

size_t cpu_empty_cache() {
  const size_t tiny = t_cache ? t_cache->clear() : 0;
  return tiny + CpuMemory::get().blocks.empty_cache();
}

bool cpu_allocator_caches() { return kCaches; }

void check_memory_for(int64_t count, int64_t bytes_each) {
  size_t bytes = 0;
  const bool overflows =
      __builtin_mul_overflow(static_cast<size_t>(count), static_cast<size_t>(bytes_each), &bytes);
  if (!overflows && bytes <= (size_t{1} << 26)) return;
  static const size_t usable = host::usable_memory();
  if (overflows || bytes > usable) fail_allocation(overflows ? SIZE_MAX : bytes, "");
}

}  // namespace rushlight
