#include "core/shared_memory.h"

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "core/caching_allocator.h"
#include "core/deferred_layout.h"
#include "core/error.h"
#include "core/host/memory.h"
#include "core/host/process.h"
#include "core/host/processor.h"
#include "core/shared_slab.h"

namespace rushlight::shared {

namespace {

constexpr int64_t kReapEveryNs = 500'000'000;
constexpr size_t kIdleSlabs = 16;  // of other processes, kept mapped in case more arrives from them

int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

/// Segments of our own slabs for the caching allocator. A second slab is made only if the first is used up.
class SlabSource : public BlockSource {
 public:
  explicit SlabSource(std::map<const std::byte*, Slab*>& slabs) : slabs_(slabs) {}

  void* allocate_segment(size_t bytes) override {
    const size_t size = (bytes + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
    for (int round = 0; round < 2; round++) {
      for (auto range = free_.begin(); range != free_.end(); ++range) {
        if (range->second < size) continue;
        auto [start, length] = *range;
        free_.erase(range);
        if (length > size) free_.emplace(start + size, length - size);
        return start;
      }
      Slab* slab = Slab::create(size);
      slabs_.emplace(slab->base, slab);
      free_.emplace(slab->base + kHeaderBytes, slab->capacity - kHeaderBytes);
    }
    return nullptr;
  }

  void free_segment(void* address, size_t bytes) noexcept override {
    auto* start = static_cast<std::byte*>(address);
    size_t size = (bytes + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
    const Slab& slab = *std::prev(slabs_.upper_bound(start))->second;
    slab.punch(static_cast<uint64_t>(start - slab.base), static_cast<uint64_t>(start - slab.base) + size);
    auto next = free_.lower_bound(start);
    if (next != free_.end() && next->first == start + size) {
      size += next->second;
      next = free_.erase(next);
    }
    // A slab's header separates its ranges from those of another slab before it.
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == start)
      std::prev(next)->second += size;
    else
      free_.emplace(start, size);
  }

  std::string name() const override { return "Shared memory"; }

 private:
  std::map<const std::byte*, Slab*>& slabs_;
  std::map<std::byte*, size_t> free_;
};

/// What this process allocates for sharing.
struct OwnBlocks {
  SlabSource source;
  CachingAllocator blocks;
  std::unordered_set<BlockHeader*> pending;  ///< held by others or by messages only
  int64_t last_reap = 0;

  explicit OwnBlocks(std::map<const std::byte*, Slab*>& slabs)
      : source(slabs),
        blocks(source,
               {.small_limit = (size_t{1} << 20) + kHeaderBytes, .cache_limit = host::usable_memory() / 16}) {
  }
};

/// Everything this process knows about shared memory. Never destroyed: tensors may outlive main(). Nothing
/// that needs the GIL, or frees other memory, happens under its mutex.
class Registry {
 public:
  static Registry& get() {
    static Registry& instance = *new Registry;
    return instance;
  }

  std::mutex mutex;
  std::map<const std::byte*, Slab*> slabs;
  std::unique_ptr<OwnBlocks> own;

  Slab* slab_at(const void* data) const {
    auto after = slabs.upper_bound(static_cast<const std::byte*>(data));
    if (after == slabs.begin()) return nullptr;
    Slab* slab = std::prev(after)->second;
    return slab->contains(data) ? slab : nullptr;
  }
  Slab* slab_named(const SlabId& id) const {
    for (auto& [base, slab] : slabs)
      if (slab->header().id == id) return slab;
    return nullptr;
  }
  /// The slab whose block the storage looks into, or nullptr.
  Slab* slab_of(const StorageImpl& s) const {
    Slab* slab = slab_at(s.data());
    return slab && slab->local.contains(slab->offset_of(s.data())) ? slab : nullptr;
  }

  Storage allocate(size_t nbytes);
  Storage wrap(Slab& slab, uint64_t offset, size_t nbytes);
  Storage release(Slab& slab, uint64_t offset);
  bool take(Slab& slab, const Handle& handle);
  void drop_idle_slabs();
  void free_own(BlockHeader* block) {
    own->pending.erase(block);
    block->magic = 0;
    own->blocks.deallocate(block);
  }
  void collect_freed();
  void reap_dead_holders();
  void close_owned();

 private:
  Registry();
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
};

Registry::Registry() {
  host::around_fork([] { get().before_fork(); }, [] { get().after_fork_in_parent(); },
                    [] { get().after_fork_in_child(); });
}

void release_storage(void* context, void* data, size_t) {
  Storage former;  // freed after the lock
  std::lock_guard guard(Registry::get().mutex);
  auto& slab = *static_cast<Slab*>(context);
  former = Registry::get().release(slab, slab.offset_of(data));
}

Storage Registry::allocate(size_t nbytes) {
  RL_CHECK(nbytes < SIZE_MAX / 4, "shared memory: cannot allocate ", nbytes, " bytes");
  if (!own) own = std::make_unique<OwnBlocks>(slabs);
  collect_freed();
  if (!own->pending.empty() && now_ns() - own->last_reap > kReapEveryNs) reap_dead_holders();
  auto* block =
      static_cast<BlockHeader*>(own->blocks.allocate(sizeof(BlockHeader) + std::max<size_t>(nbytes, 1)));
  Slab& slab = *slab_at(block);
  block->state = slab.bit();
  block->generation = ++slab.header().generation;
  block->nbytes = nbytes;
  block->magic = BlockHeader::kMagic;
  return wrap(slab, slab.offset_of(block + 1), nbytes);
}

/// Our bit is set already.
Storage Registry::wrap(Slab& slab, uint64_t offset, size_t nbytes) {
  LocalBlock& local = slab.local[offset];
  Storage storage = StorageImpl::wrap(slab.data(offset), nbytes, Device{}, release_storage, &slab);
  local.storages++;
  local.storage = storage.get();
  return storage;
}

/// A storage of this process is gone. Returns memory to be freed without the lock.
Storage Registry::release(Slab& slab, uint64_t offset) {
  auto found = slab.local.find(offset);
  LocalBlock& local = found->second;
  local.storage = nullptr;  // perhaps the one that is gone: the next receiver makes another
  if (--local.storages > 0) return {};
  Storage former = std::move(local.former);
  const uint64_t bit = slab.bit();
  const bool counted = local.counted;
  slab.local.erase(found);
  BlockHeader& block = slab.block(offset);
  const uint64_t state =
      counted ? block.state.fetch_sub(kMessage) - kMessage : block.state.fetch_and(~bit) & ~bit;
  if (slab.owned && own) {
    if (state == 0)
      free_own(&block);
    else
      own->pending.insert(&block);
  } else if (state == 0) {
    slab.give_back(offset);
  }
  return former;
}

/// Turns one message into a hold of ours; false if the block belongs to something else by now.
bool Registry::take(Slab& slab, const Handle& handle) {
  const uint64_t end = handle.offset + sizeof(BlockHeader) + handle.nbytes;
  if (handle.offset % alignof(BlockHeader) || handle.offset < kHeaderBytes || end < handle.offset ||
      end > slab.capacity)
    return false;
  BlockHeader& block = slab.block(handle.offset);
  auto is_it = [&] {
    return block.magic == BlockHeader::kMagic && block.generation == handle.generation &&
           block.nbytes == handle.nbytes;
  };
  if (!is_it()) return false;
  const bool held = slab.local.contains(handle.offset);
  const uint64_t bit = held ? 0 : slab.bit();
  uint64_t state = block.state, taken;
  do {
    if (state == 0) return false;
    taken = state | bit;
    if (held || bit)
      taken -= messages(state) ? kMessage : 0;
    else
      taken += messages(state) ? 0 : kMessage;  // the message stays, as our hold
  } while (!block.state.compare_exchange_weak(state, taken));
  if (!is_it()) {  // until the exchange the owner was free to give the block away
    block.state += state - taken;
    return false;
  }
  if (!held) slab.local[handle.offset].counted = !bit;
  return true;
}

/// Takes back what other processes freed.
void Registry::collect_freed() {
  for (auto& [base, slab] : slabs) {
    if (!slab->owned || slab->header().freed.load(std::memory_order_relaxed) == 0) continue;
    uint64_t offset = slab->header().freed.exchange(0);
    while (offset) {
      BlockHeader& block = slab->block(offset);
      offset = block.next_freed;
      if (own->pending.contains(&block)) free_own(&block);
    }
  }
}

/// Clears the bits of processes that died, by which blocks may become free.
void Registry::reap_dead_holders() {
  own->last_reap = now_ns();
  for (auto& [base, slab] : slabs) {
    if (!slab->owned) continue;
    const uint64_t dead = slab->dead_holders();
    if (!dead) continue;
    for (auto& [offset, local] : slab->local) slab->block(offset).state &= ~dead;
    std::vector<BlockHeader*> freed;
    for (BlockHeader* block : own->pending)
      if (slab->contains(block) && block->state & dead && (block->state.fetch_and(~dead) & ~dead) == 0)
        freed.push_back(block);
    for (BlockHeader* block : freed) free_own(block);
    slab->clear_places(dead);
  }
}

/// Unmaps slabs of other processes that nothing here looks into: dead ones, and the rest beyond a number.
void Registry::drop_idle_slabs() {
  size_t idle = 0;
  for (auto it = slabs.begin(); it != slabs.end();) {
    Slab* slab = it->second;
    if (!slab->owned && slab->local.empty() && (++idle > kIdleSlabs || !slab->owner_lives())) {
      it = slabs.erase(it);
      delete slab;
    } else {
      ++it;
    }
  }
}

void Registry::close_owned() {
  if (!own) return;
  collect_freed();
  reap_dead_holders();
  own->blocks.empty_cache();
  for (const SegmentInfo& segment : own->blocks.snapshot())
    for (const BlockInfo& b : segment.blocks) {
      const Slab& slab = *slab_at(b.address);
      const auto start = static_cast<uint64_t>(static_cast<const std::byte*>(b.address) - slab.base);
      if (b.state == BlockInfo::kFree) slab.punch(start, start + b.size);
    }
  for (auto& [base, slab] : slabs)
    if (slab->owned) slab->header().owner_gone = 1;
}

void Registry::before_fork() {
  mutex.lock();
  for (auto& [base, slab] : slabs) {
    if (slab->local.empty()) continue;
    if (slab->owned && own && slab->nearly_full()) reap_dead_holders();
    slab->child_holder = slab->place_for_child();
    const uint64_t bit = slab->child_holder < 0 ? 0 : uint64_t{1} << slab->child_holder;
    for (auto& [offset, local] : slab->local)
      if (bit)
        slab->block(offset).state |= bit;
      else
        slab->block(offset).state += kMessage;
  }
}

void Registry::after_fork_in_parent() {
  for (auto& [base, slab] : slabs) slab->child_holder = -1;
  mutex.unlock();
}

void Registry::after_fork_in_child() {
  (void)own.release();  // the parent's: leaving it alone costs less than taking it down
  for (auto& [base, slab] : slabs) {
    slab->holder = std::exchange(slab->child_holder, -1);
    slab->owned = false;
    if (slab->holder >= 0) slab->adopt_place(slab->holder);
    for (auto& [offset, local] : slab->local) local.counted = slab->holder < 0;
  }
  mutex.unlock();
}

}  // namespace

Storage allocate(size_t nbytes) {
  std::lock_guard guard(Registry::get().mutex);
  return Registry::get().allocate(nbytes);
}

bool is_shared(const StorageImpl& storage) {
  std::lock_guard guard(Registry::get().mutex);
  return Registry::get().slab_of(storage) != nullptr;
}

void share(StorageImpl& storage, bool keep_former) {
  RL_CHECK(storage.device().is_cpu(), "share_memory_: only CPU memory can be shared, got device ",
           storage.device());
  materialize_layout(storage);
  Registry& registry = Registry::get();
  Storage former;  // freed after the lock
  std::lock_guard guard(registry.mutex);
  if (registry.slab_of(storage)) return;
  former = registry.allocate(storage.nbytes());
  if (storage.nbytes()) std::memcpy(former->data(), storage.data(), storage.nbytes());
  keep_former |= !storage.resizable();
  storage.swap_contents(*former);
  Slab& slab = *registry.slab_at(storage.data());
  LocalBlock& local = slab.local[slab.offset_of(storage.data())];
  local.storage = &storage;
  if (keep_former) local.former = std::move(former);
}

Handle send(StorageImpl& storage) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  Slab* slab = registry.slab_of(storage);
  RL_CHECK(slab, "shared memory: the storage is not shared; call share_memory_() first");
  const uint64_t offset = slab->offset_of(storage.data());
  BlockHeader& block = slab->block(offset);
  if (slab->owned && registry.own && slab->nearly_full() && now_ns() - registry.own->last_reap > kReapEveryNs)
    registry.reap_dead_holders();
  block.state += kMessage;
  return {slab->header().id, offset, storage.nbytes(), block.generation, slab->memory.handle};
}

bool is_attached(const SlabId& slab) {
  std::lock_guard guard(Registry::get().mutex);
  return Registry::get().slab_named(slab) != nullptr;
}

void attach(int fd, const SlabId& expected) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  if (registry.slab_named(expected)) {
    host::close_shared(fd);
    return;
  }
  registry.drop_idle_slabs();
  Slab* slab = Slab::map(fd, expected);
  registry.slabs.emplace(slab->base, slab);
}

Storage receive(const Handle& handle, detail::FunctionRef<bool(StorageImpl*)> reuse) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  Slab* slab = registry.slab_named(handle.slab);
  RL_CHECK(slab && registry.take(*slab, handle),
           "shared memory: the memory of a received tensor is gone; its sender must keep it, or a message "
           "must be received once only");
  auto known = slab->local.find(handle.offset);
  if (known != slab->local.end() && known->second.storage && reuse(known->second.storage))
    return Storage::share(known->second.storage);
  return registry.wrap(*slab, handle.offset, handle.nbytes);
}

void abandon(const Handle& handle) {
  receive(handle, [](StorageImpl*) { return false; });
}

void release_idle() {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  registry.drop_idle_slabs();
  if (!registry.own) return;
  registry.collect_freed();
  registry.reap_dead_holders();
  registry.own->blocks.empty_cache();
}

void close_owned() {
  std::lock_guard guard(Registry::get().mutex);
  Registry::get().close_owned();
}

Stats stats() {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  Stats result;
  if (registry.own) registry.collect_freed();
  result.slabs = registry.slabs.size();
  for (auto& [base, slab] : registry.slabs) result.held_blocks += slab->local.size();
  if (!registry.own) return result;
  const AllocatorStats s = registry.own->blocks.stats();
  result.pending_blocks = registry.own->pending.size();
  result.allocated_bytes = static_cast<size_t>(s.allocated_bytes[AllocatorStats::kAll].current);
  result.reserved_bytes = static_cast<size_t>(s.reserved_bytes[AllocatorStats::kAll].current);
  return result;
}

}  // namespace rushlight::shared
