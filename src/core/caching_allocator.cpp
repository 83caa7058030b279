#include <algorithm>
#include <chrono>
#include <utility>

#include "core/caching_allocator_block.h"

namespace rushlight {

using Stats = AllocatorStats;

bool CachingAllocator::BySize::operator()(const Block* a, const Block* b) const {
  return a->size != b->size ? a->size < b->size : a->address < b->address;
}

static size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

CachingAllocator::CachingAllocator(BlockSource& source, AllocatorConfig config)
    : source_(source), config_(config) {}

CachingAllocator::~CachingAllocator() {
  wait_for_events();
  for (auto& [address, head] : segments_) {
    size_t bytes = 0;
    const bool in_range = head->pool->range.base == address;
    for (Block* b = head; b;) {
      bytes += b->size;
      delete std::exchange(b, b->next);
    }
    if (!in_range) source_.free_segment(const_cast<void*>(address), bytes);
  }
  while (spare_) delete std::exchange(spare_, spare_->next);
  each_pool([&](Pool& pool) {
    if (!pool.range.base) return;
    source_.unmap_memory(pool.range.base, pool.range.mapped);
    source_.release_addresses(pool.range.base, pool.range.capacity);
  });
}

template <class F>
void CachingAllocator::each_pool(F&& f) {
  for (auto& [stream, pools] : pools_) f(pools->small), f(pools->large);
  for (auto& [key, pools] : private_pools_) f(pools->small), f(pools->large);
}

void* CachingAllocator::allocate(size_t bytes, StreamId stream, std::string_view label, PoolId pool_id) {
  if (bytes == 0) return nullptr;
  uint64_t context = 0;
  if (history_limit_.load(std::memory_order_relaxed)) [[unlikely]]
    if (const ContextMaker make = context_maker_.load()) context = make();
  std::lock_guard guard(mutex_);
  if (bytes > SIZE_MAX / 2) {
    stats_.num_ooms++;
    throw OutOfMemory(out_of_memory_text(bytes));
  }
  const size_t size = round_up(bytes, config_.granule);
  process_events();
  Pool& pool = pool_for(size, stream, pool_id);
  prepare_blocks();
  Block* block = take_free(pool, size);
  if (!block) block = grow(pool, size, false);
  if (!block) block = allocate_slowly(pool, size, bytes);
  if (worth_splitting(block, size)) split(block, size);

  block->allocated = true;
  block->requested = bytes;
  block->label = label;
  if (history_limit_) [[unlikely]] {
    block->context = context;
    note(AllocatorEvent::kAllocate, block->address, block->size, pool, context);
  }
  block->entry.key() = block->address;
  live_.insert(std::move(block->entry));
  idle_ -= block->size;
  add(&Stats::allocation, pool, 1);
  add(&Stats::allocated_bytes, pool, block->size);
  add(&Stats::active, pool, 1);
  add(&Stats::active_bytes, pool, block->size);
  add(&Stats::requested_bytes, pool, bytes);
  return block->address;
}

void CachingAllocator::deallocate(void* address) {
  if (!address) return;
  std::lock_guard guard(mutex_);
  Block* block = find_live(address);
  Pool& pool = *block->pool;
  block->entry = live_.extract(address);
  block->allocated = false;
  block->label = {};
  if (history_limit_) [[unlikely]]
    note(AllocatorEvent::kFreeRequested, block->address, block->size, pool, block->context);
  block->context = 0;
  subtract(&Stats::allocation, pool, 1);
  subtract(&Stats::allocated_bytes, pool, block->size);
  subtract(&Stats::requested_bytes, pool, block->requested);
  while (!block->other_streams.empty()) {
    Pending& use = block->other_streams.front();
    use.event = source_.record_event(use.stream);
    std::list<Pending>& queue = pending_[use.stream];
    queue.splice(queue.end(), block->other_streams, block->other_streams.begin());
    block->events++;
  }
  if (block->events == 0) return_block(block);
}

void CachingAllocator::record_stream(void* address, StreamId stream) {
  if (!address) return;
  std::lock_guard guard(mutex_);
  Block* block = find_live(address);
  auto& uses = block->other_streams;
  const bool known = std::any_of(uses.begin(), uses.end(), [&](auto& use) { return use.stream == stream; });
  if (known || stream == block->pool->stream) return;
  pending_[stream];  // its queue
  uses.push_back({stream, block});
}

size_t CachingAllocator::empty_cache() {
  std::lock_guard guard(mutex_);
  wait_for_events();
  return release_empty_segments();
}

size_t CachingAllocator::allocation_size(const void* address) const {
  std::lock_guard guard(mutex_);
  return find_live(address)->size;
}

CachingAllocator::Pool& CachingAllocator::pool_for(size_t size, StreamId stream, PoolId id) {
  auto& pools = id ? private_pools_[{id, stream}] : pools_[stream];
  if (!pools) pools.reset(new StreamPools{{stream, false, id}, {stream, true, id}});
  return size <= config_.small_limit ? pools->small : pools->large;
}

CachingAllocator::Block* CachingAllocator::find_live(const void* address) const {
  auto it = live_.find(address);
  RL_ASSERT(it != live_.end(), "caching allocator: the pointer is not a live allocation");
  return it->second;
}

void* CachingAllocator::base_of(const void* address) const {
  std::lock_guard guard(mutex_);
  auto segment = segments_.upper_bound(address);
  if (segment == segments_.begin()) return nullptr;
  const auto* at = static_cast<const char*>(address);
  for (const Block* b = (--segment)->second; b; b = b->next)
    if (b->allocated && at >= b->address && at < b->address + b->size) return b->address;
  return nullptr;
}

void CachingAllocator::retain_pool(PoolId pool) {
  std::lock_guard guard(mutex_);
  retained_[pool]++;
}

void CachingAllocator::release_pool(PoolId pool) {
  std::lock_guard guard(mutex_);
  auto it = retained_.find(pool);
  RL_ASSERT(it != retained_.end(), "a private pool was released more often than retained");
  if (--it->second == 0) retained_.erase(it);
}

/// Best fit: the smallest free block that holds `size`.
CachingAllocator::Block* CachingAllocator::take_free(Pool& pool, size_t size) {
  Block key{.address = nullptr, .size = size, .pool = &pool};
  auto it = pool.free.lower_bound(&key);
  if (it == pool.free.end()) return nullptr;
  Block* block = *it;
  const bool whole = block->size >= config_.max_split;  // never cut: only for requests of about its size
  if (whole && (size < config_.max_split || block->size >= size + config_.large_segment)) return nullptr;
  block->place = pool.free.extract(it);
  count_inactive_split(block, false);
  return block;
}

size_t CachingAllocator::segment_size(const Pool& pool, size_t size, bool exact) const {
  if (exact) return size;
  if (!pool.large) return std::max(config_.small_segment, size);
  if (size < config_.large_step_limit) return std::max(config_.large_segment, size);
  return round_up(size, config_.large_round);
}

/// A new segment as one block outside the free set, or nullptr.
CachingAllocator::Block* CachingAllocator::grow(Pool& pool, size_t size, bool exact) {
  const size_t bytes = segment_size(pool, size, exact);
  if (config_.collect_above > 0) [[unlikely]]
    collect_garbage(bytes);
  if (config_.expandable && source_.mapping_step()) return grow_range(pool, size, exact);
  if (!may_reserve(bytes)) return nullptr;
  void* address = source_.allocate_segment(bytes);
  if (!address) return nullptr;
  stats_.num_source_allocations++;
  Block* block = new_block(pool, static_cast<char*>(address), bytes);
  try {
    segments_.emplace(address, block);
  } catch (...) {
    source_.free_segment(address, bytes);
    recycle(block);
    throw;
  }
  add(&Stats::segment, pool, 1);
  count_reserved(pool, bytes, true);
  if (history_limit_) note(AllocatorEvent::kSegmentAllocate, address, bytes, pool);
  return block;
}

bool CachingAllocator::may_reserve(size_t bytes) const {
  return bytes <= config_.memory_limit && reserved_ <= config_.memory_limit - bytes;
}

void CachingAllocator::count_reserved(const Pool& pool, size_t bytes, bool more) {
  reserved_ += more ? bytes : -bytes;
  idle_ += more ? bytes : -bytes;
  more ? add(&Stats::reserved_bytes, pool, bytes) : subtract(&Stats::reserved_bytes, pool, bytes);
}

/// Maps memory behind what the pool's range has; a free block at the end grows, and comes out of the free
/// set.
CachingAllocator::Block* CachingAllocator::grow_range(Pool& pool, size_t size, bool exact) {
  Expandable& range = pool.range;
  if (!range.base) range.base = static_cast<char*>(source_.reserve_addresses(&range.capacity));
  if (!range.base) return nullptr;
  Block* last = range.last;
  const bool extends = last && last->free();
  const size_t missing = extends ? size - last->size : size;
  const size_t step = exact        ? source_.mapping_step()
                      : pool.large ? std::max(config_.large_segment, source_.mapping_step())
                                   : std::max(config_.small_segment, source_.mapping_step());
  const size_t bytes = round_up(missing, step);
  if (bytes > range.capacity - range.mapped || !may_reserve(bytes)) return nullptr;
  char* address = range.base + range.mapped;
  if (!last) segments_.emplace(address, nullptr);
  if (!source_.map_memory(address, bytes)) {
    if (!last) segments_.erase(address);
    return nullptr;
  }
  stats_.num_source_allocations++;
  range.mapped += bytes;
  count_reserved(pool, bytes, true);
  if (history_limit_) note(AllocatorEvent::kSegmentAllocate, address, bytes, pool);
  if (extends) {
    unfile(last);
    last->size += bytes;
    return last;
  }
  Block* block = new_block(pool, address, bytes);
  block->previous = last;
  if (last) {
    last->next = block;
  } else {
    segments_[address] = block;
    add(&Stats::segment, pool, 1);
  }
  range.last = block;
  return block;
}

/// Gives back what is free at the end of a pool's range.
void CachingAllocator::shrink_range(Pool& pool) {
  Expandable& range = pool.range;
  Block* last = range.last;
  if (!last || !last->free()) return;
  const size_t step = source_.mapping_step();
  const size_t kept = round_up(static_cast<size_t>(last->address - range.base), step);
  if (kept >= range.mapped) return;
  const size_t bytes = range.mapped - kept;
  unfile(last);
  source_.unmap_memory(range.base + kept, bytes);
  stats_.num_source_frees++;
  range.mapped = kept;
  count_reserved(pool, bytes, false);
  if (history_limit_) note(AllocatorEvent::kSegmentFree, range.base + kept, bytes, pool);
  last->size -= bytes;
  if (last->size) return file(last);
  range.last = last->previous;
  if (range.last) {
    range.last->next = nullptr;
  } else {
    segments_.erase(range.base);
    subtract(&Stats::segment, pool, 1);
  }
  recycle(last);
}

/// Above the threshold, whole segments go back, those first that were idle longest, until `wanted` fits
/// below.
void CachingAllocator::collect_garbage(size_t wanted) {
  if (config_.memory_limit == SIZE_MAX) return;
  const double allowed = config_.collect_above * static_cast<double>(config_.memory_limit);
  auto above = [&] { return static_cast<double>(reserved_ + wanted) > allowed; };
  if (!above()) return;
  std::vector<Block*> idle;
  for (auto& [address, head] : segments_)
    if (head->free() && !head->is_split() && head->pool->large && !head->pool->range.base)
      idle.push_back(head);
  std::sort(idle.begin(), idle.end(),
            [](const Block* a, const Block* b) { return a->freed_at < b->freed_at; });
  for (Block* block : idle) {
    if (!above()) return;
    unfile(block);
    release_segment(block);
  }
}

/// The source refused: flush the cache, then try again, at last with a segment of just this size.
CachingAllocator::Block* CachingAllocator::allocate_slowly(Pool& pool, size_t size, size_t bytes) {
  stats_.num_alloc_retries++;
  wait_for_events();
  Block* block = take_free(pool, size);
  if (!block) {
    release_empty_segments();
    block = grow(pool, size, false);
  }
  if (!block) block = grow(pool, size, true);
  if (block) return block;
  stats_.num_ooms++;
  if (history_limit_) note(AllocatorEvent::kOutOfMemory, nullptr, bytes, pool);
  throw OutOfMemory(out_of_memory_text(bytes));
}

bool CachingAllocator::worth_splitting(const Block* block, size_t size) const {
  const size_t rest = block->size - size;
  if (block->size >= config_.max_split) return false;
  return block->pool->large ? rest > config_.small_limit : rest >= config_.granule;
}

/// Cuts the block after `size` bytes and files the rest as free.
void CachingAllocator::split(Block* block, size_t size) {
  Block* rest = new_block(*block->pool, block->address + size, block->size - size);
  rest->previous = block;
  rest->next = block->next;
  if (rest->next) rest->next->previous = rest;
  if (block->pool->range.last == block) block->pool->range.last = rest;
  block->next = rest;
  block->size = size;
  file(rest);
}

CachingAllocator::Block* CachingAllocator::absorb_next(Block* block) {
  Block* next = block->next;
  if (block->pool->range.last == next) block->pool->range.last = block;
  block->size += next->size;
  block->next = next->next;
  if (block->next) block->next->previous = block;
  recycle(next);
  return block;
}

/// The last user is gone: merge with free neighbours and file the result.
void CachingAllocator::return_block(Block* block) {
  Pool& pool = *block->pool;
  subtract(&Stats::active, pool, 1);
  subtract(&Stats::active_bytes, pool, block->size);
  idle_ += block->size;
  if (history_limit_) [[unlikely]]
    note(AllocatorEvent::kFreeCompleted, block->address, block->size, pool);
  block->requested = 0;
  block->freed_at = ++clock_;
  for (Block* neighbour : {block->previous, block->next}) {
    if (!neighbour || !neighbour->free()) continue;
    unfile(neighbour);
    block = absorb_next(neighbour == block->next ? block : neighbour);
  }
  block->freed_at = clock_;
  if (!block->is_split() && idle_ > config_.cache_limit && !pool.range.base) return release_segment(block);
  file(block);
}

/// `block` spans its whole segment and is in no free set.
void CachingAllocator::release_segment(Block* block) {
  Pool& pool = *block->pool;
  subtract(&Stats::segment, pool, 1);
  count_reserved(pool, block->size, false);
  if (history_limit_) note(AllocatorEvent::kSegmentFree, block->address, block->size, pool);
  segments_.erase(block->address);
  source_.free_segment(block->address, block->size);
  stats_.num_source_frees++;
  recycle(block);
}

size_t CachingAllocator::release_empty_segments() {
  const size_t before = reserved_;
  for (auto it = segments_.begin(); it != segments_.end();) {
    Block* head = (it++)->second;
    if (!head->free() || head->is_split() || head->pool->range.base || retained_.count(head->pool->id))
      continue;
    unfile(head);
    release_segment(head);
  }
  each_pool([&](Pool& pool) {
    if (!retained_.count(pool.id)) shrink_range(pool);
  });
  return before - reserved_;
}

void CachingAllocator::process_events() {
  for (auto& [stream, queue] : pending_) {
    // Events of one stream complete in order, so the first incomplete one ends the scan.
    while (!queue.empty() && source_.query_event(queue.front().event)) {
      auto [other, block, event] = queue.front();
      queue.pop_front();
      source_.release_event(event);
      if (--block->events == 0) return_block(block);
    }
  }
}

void CachingAllocator::wait_for_events() {
  for (auto& [stream, queue] : pending_)
    if (!queue.empty()) source_.wait_event(queue.back().event);
  process_events();
}

void CachingAllocator::set_memory_limit(size_t bytes) {
  std::lock_guard guard(mutex_);
  config_.memory_limit = bytes;
}

void CachingAllocator::set_cache_limit(size_t bytes) {
  std::lock_guard guard(mutex_);
  config_.cache_limit = bytes;
}

void CachingAllocator::note(AllocatorEvent::Action action, const void* address, size_t size, const Pool& pool,
                            uint64_t context) noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  try {
    history_.push_back({action, address, size, pool.stream, time, context});
  } catch (const std::bad_alloc&) {  // the history has a gap
  }
  while (history_.size() > history_limit_) history_.pop_front();
}

void CachingAllocator::add(Stats::Grouped Stats::* stat, const Pool& pool, size_t n) {
  (stats_.*stat)[Stats::kAll].increase(static_cast<int64_t>(n));
  (stats_.*stat)[pool.large ? Stats::kLarge : Stats::kSmall].increase(static_cast<int64_t>(n));
}

void CachingAllocator::subtract(Stats::Grouped Stats::* stat, const Pool& pool, size_t n) {
  (stats_.*stat)[Stats::kAll].decrease(static_cast<int64_t>(n));
  (stats_.*stat)[pool.large ? Stats::kLarge : Stats::kSmall].decrease(static_cast<int64_t>(n));
}

/// A free block enters or leaves its pool's set; only parts of a segment count as inactive splits.
void CachingAllocator::count_inactive_split(const Block* block, bool entering) {
  if (!block->is_split()) return;
  auto change = entering ? &CachingAllocator::add : &CachingAllocator::subtract;
  (this->*change)(&Stats::inactive_split, *block->pool, 1);
  (this->*change)(&Stats::inactive_split_bytes, *block->pool, block->size);
}

/// Two blocks lie ready, for a new segment and for what is cut off it, and a place for one more live block.
void CachingAllocator::prepare_blocks() {
  live_.reserve(live_.size() + 1);
  for (const Block* known = spare_; !known || !known->next; known = spare_) {
    auto block = std::make_unique<Block>();
    FreeSet places;
    block->place = places.extract(places.insert(block.get()).first);
    LiveBlocks entries;
    block->entry = entries.extract(entries.emplace(nullptr, block.get()).first);
    recycle(block.release());
  }
}

/// One of those that lie ready.
CachingAllocator::Block* CachingAllocator::new_block(Pool& pool, char* address, size_t size) noexcept {
  Block* block = std::exchange(spare_, spare_->next);
  *block = Block{.address = address,
                 .size = size,
                 .pool = &pool,
                 .place = std::move(block->place),
                 .entry = std::move(block->entry)};
  return block;
}

void CachingAllocator::recycle(Block* block) noexcept { block->next = std::exchange(spare_, block); }

/// Into the free set of the block's pool, and out of it.
void CachingAllocator::file(Block* block) {
  block->pool->free.insert(std::move(block->place));
  count_inactive_split(block, true);
}
void CachingAllocator::unfile(Block* block) {
  block->place = block->pool->free.extract(block);
  count_inactive_split(block, false);
}

}  // namespace rushlight
