#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"

namespace rushlight {

/// Memory is reused in stream order, so every stream owns its own pools. The CPU uses stream 0 only.
using StreamId = int64_t;
/// Blocks of a private pool are given to nobody else while it is held: a recorded graph writes to them again.
/// 0 is the pool of all others.
using PoolId = uint64_t;

/// What the block logic needs from a device. Called with the allocator's lock held.
class BlockSource {
 public:
  /// Opaque marker in a stream's work queue.
  using Event = uint64_t;

  virtual ~BlockSource() = default;
  /// nullptr when the device has no such memory left.
  virtual void* allocate_segment(size_t bytes) = 0;
  virtual void free_segment(void* address, size_t bytes) noexcept = 0;

  /// Expandable segments: addresses are reserved once and get memory step by step. 0: not supported.
  virtual size_t mapping_step() { return 0; }
  /// `bytes`: out, how many addresses were reserved.
  virtual void* reserve_addresses(size_t* /*bytes*/) { return nullptr; }
  virtual void release_addresses(void*, size_t) noexcept {}
  virtual bool map_memory(void*, size_t) { return false; }
  virtual void unmap_memory(void*, size_t) noexcept {}

  /// A device without asynchronous streams keeps these defaults: every event is complete at once.
  virtual Event record_event(StreamId) { return 0; }
  virtual bool query_event(Event) { return true; }
  virtual void wait_event(Event) {}
  virtual void release_event(Event) noexcept {}

  /// Human name for error messages ("CPU", "CUDA").
  virtual std::string name() const = 0;
  /// A sentence about the whole memory, for errors ("GPU 0 has a total capacity of ..."); may be empty.
  virtual std::string describe() { return {}; }
};

/// A counter with its peak and running totals, as PyTorch's memory_stats() reports it.
struct AllocatorStat {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;

  void increase(int64_t n) {
    current += n;
    allocated += n;
    if (current > peak) peak = current;
  }
  void decrease(int64_t n) {
    current -= n;
    freed += n;
  }
};

struct AllocatorStats {
  enum Group { kAll, kSmall, kLarge, kGroups };
  using Grouped = std::array<AllocatorStat, kGroups>;

  Grouped allocation, segment, active, inactive_split;
  Grouped allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
  int64_t num_alloc_retries = 0, num_ooms = 0, num_source_allocations = 0, num_source_frees = 0;
};

struct BlockInfo {
  enum State { kFree, kAllocated, kAwaitingEvents };
  const void* address;
  size_t size, requested;
  State state;
  std::string_view label;
  uint64_t context;
};

/// What happened, while the history is recorded.
struct AllocatorEvent {
  enum Action { kAllocate, kFreeRequested, kFreeCompleted, kSegmentAllocate, kSegmentFree, kOutOfMemory };
  Action action;
  const void* address;
  size_t size;
  StreamId stream;
  int64_t microseconds;  // of the system's clock
  uint64_t context;      // what the context maker gave; 0: nothing
};

struct SegmentInfo {
  const void* address;
  size_t size;
  StreamId stream;
  bool large;
  PoolId pool;
  bool expandable;
  std::vector<BlockInfo> blocks;
};

class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(std::string text) : Error(ErrorKind::OutOfMemory, std::move(text)) {}
};

struct AllocatorConfig {
  size_t granule = 512;                  ///< sizes are rounded up to this
  size_t small_limit = size_t{1} << 20;  ///< requests up to this share small segments
  size_t small_segment = size_t{2} << 20;
  size_t large_step_limit = size_t{10} << 20;  ///< below this a large request grows by a whole step
  size_t large_segment = size_t{20} << 20;
  size_t large_round = size_t{2} << 20;
  size_t memory_limit = SIZE_MAX;  ///< bytes of segments that may be held
  size_t cache_limit = SIZE_MAX;   ///< idle bytes above which empty segments go back at once
  size_t max_split = SIZE_MAX;     ///< blocks of this size and more are not cut
  bool expandable = false;         ///< where the source supports it
  double collect_above = 0;        ///< share of memory_limit above which old empty segments go back; 0: never
};
/// What PYTORCH_CUDA_ALLOC_CONF (or PYTORCH_ALLOC_CONF) asks for.
AllocatorConfig allocator_config_from_environment();
AllocatorConfig parse_allocator_config(std::string_view text);

/// Note [Block logic]
/// A segment is what the source hands out; it is cut into blocks that form a doubly linked chain by address.
/// Blocks are split when the rest is worth keeping and merged with free neighbours when freed, so that a
/// segment whose blocks are all free is one block again and can be given back. The leftmost Block object of a
/// chain lives as long as its segment. A block used on other streams is not reusable until an event recorded
/// on each of them has passed.
///
/// Note [Freeing without memory]
/// Blocks are freed while memory is short: by whoever unwinds from an allocation that failed. So freeing
/// takes no memory. A block brings its places in the free set and in the table of live blocks, and what waits
/// for an event its place in the queue; `allocate` has all of these before it takes a block, and changes
/// nothing where one is refused.
class CachingAllocator {
 public:
  explicit CachingAllocator(BlockSource& source, AllocatorConfig config = {});
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// nullptr for zero bytes; throws OutOfMemory. The label (static storage) is shown by snapshots and errors.
  void* allocate(size_t bytes, StreamId stream = 0, std::string_view label = {}, PoolId pool = 0);
  /// Accepts nullptr; any other pointer must come from allocate().
  void deallocate(void* address);
  /// States that `stream` also uses the block: freeing it waits, without blocking, for the work queued there.
  void record_stream(void* address, StreamId stream);
  /// Gives every unused segment back; returns the bytes released.
  size_t empty_cache();

  /// A private pool lives as long as somebody retains it; then its free blocks may go back to the source.
  void retain_pool(PoolId pool);
  void release_pool(PoolId pool);

  /// Usable bytes of a live allocation (its rounded size).
  size_t allocation_size(const void* address) const;
  /// Whether an address lies in a live allocation, and where that one starts (null if not).
  bool owns(const void* address) const { return base_of(address) != nullptr; }
  void* base_of(const void* address) const;
  AllocatorStats stats() const;
  void reset_peak_stats();
  void reset_accumulated_stats();
  std::vector<SegmentInfo> snapshot() const;
  void set_memory_limit(size_t bytes);
  void set_cache_limit(size_t bytes);
  const AllocatorConfig& config() const { return config_; }

  /// Keeps the last `events`; 0 stops. The context is asked for without a lock, by the thread that allocates.
  using ContextMaker = uint64_t (*)();
  void record_history(size_t events, ContextMaker context = nullptr);
  std::vector<AllocatorEvent> history() const;

  /// For pthread_atfork: holds every internal lock across a fork.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct Pool;
  struct Block;
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  using FreeSet = std::set<Block*, BySize>;
  using LiveBlocks = std::unordered_map<const void*, Block*>;
  /// Reserved addresses of which a beginning has memory.
  struct Expandable {
    char* base = nullptr;
    size_t capacity = 0, mapped = 0;
    Block* last = nullptr;  // of the chain that tiles what is mapped
  };
  struct Pool {
    StreamId stream;
    bool large;
    PoolId id = 0;
    FreeSet free = {};
    Expandable range = {};
  };
  struct StreamPools {
    Pool small, large;
  };
  /// A use of a block on another stream, and once it is freed the event to wait for.
  struct Pending {
    StreamId stream;
    Block* block;
    BlockSource::Event event = {};
  };

  Pool& pool_for(size_t size, StreamId stream, PoolId id);
  template <class F>
  void each_pool(F&& f);
  Block* find_live(const void* address) const;
  Block* take_free(Pool& pool, size_t size);
  Block* grow(Pool& pool, size_t size, bool exact);
  Block* grow_range(Pool& pool, size_t size, bool exact);
  bool may_reserve(size_t bytes) const;
  void count_reserved(const Pool& pool, size_t bytes, bool more);
  void shrink_range(Pool& pool);
  void collect_garbage(size_t wanted);
  Block* allocate_slowly(Pool& pool, size_t size, size_t bytes);
  void split(Block* block, size_t size);
  Block* absorb_next(Block* block);
  void return_block(Block* block);
  void release_segment(Block* block);
  size_t release_empty_segments();
  void process_events();
  void wait_for_events();
  size_t segment_size(const Pool& pool, size_t size, bool exact) const;
  bool worth_splitting(const Block* block, size_t size) const;
  std::string out_of_memory_text(size_t bytes) const;
  void add(AllocatorStats::Grouped AllocatorStats::* stat, const Pool& pool, size_t n);
  void subtract(AllocatorStats::Grouped AllocatorStats::* stat, const Pool& pool, size_t n);
  void count_inactive_split(const Block* block, bool entering);
  void prepare_blocks();
  Block* new_block(Pool& pool, char* address, size_t size) noexcept;
  void recycle(Block* block) noexcept;
  void file(Block* block);
  void unfile(Block* block);
  void note(AllocatorEvent::Action action, const void* address, size_t size, const Pool& pool,
            uint64_t context = 0) noexcept;

  BlockSource& source_;
  AllocatorConfig config_;
  mutable std::mutex mutex_;
  std::unordered_map<StreamId, std::unique_ptr<StreamPools>> pools_;
  std::map<std::pair<PoolId, StreamId>, std::unique_ptr<StreamPools>> private_pools_;
  std::unordered_map<PoolId, int> retained_;
  LiveBlocks live_;
  std::map<const void*, Block*> segments_;
  std::unordered_map<StreamId, std::list<Pending>> pending_;
  Block* spare_ = nullptr;  // a chain, by `next`
  AllocatorStats stats_;
  size_t reserved_ = 0, idle_ = 0;
  uint64_t clock_ = 0;  // counts what was freed: the age of idle blocks
  std::deque<AllocatorEvent> history_;
  std::atomic<size_t> history_limit_{0};
  std::atomic<ContextMaker> context_maker_{nullptr};
};

/// "1.50 GiB", as PyTorch prints sizes.
std::string format_bytes(size_t bytes);

}  // namespace rushlight
