#include "core/caching_allocator.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace rushlight {

using Stats = AllocatorStats;

struct CachingAllocator::Block {
  char* address;
  size_t size;
  size_t requested = 0;
  Pool* pool;
  Block* previous = nullptr;
  Block* next = nullptr;
  bool allocated = false;
  int events = 0;
  const char* label = nullptr;
  std::vector<StreamId> other_streams = {};

  bool free() const { return !allocated && events == 0; }
  bool is_split() const { return previous || next; }
};

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
    for (Block* b = head; b;) {
      bytes += b->size;
      delete std::exchange(b, b->next);
    }
    source_.free_segment(const_cast<void*>(address), bytes);
  }
}

void* CachingAllocator::allocate(size_t bytes, StreamId stream, const char* label) {
  if (bytes == 0) return nullptr;
  std::lock_guard guard(mutex_);
  if (bytes > SIZE_MAX / 2) {
    stats_.num_ooms++;
    throw OutOfMemory(out_of_memory_text(bytes));
  }
  const size_t size = round_up(bytes, config_.granule);
  process_events();
  Pool& pool = pool_for(size, stream);
  Block* block = take_free(pool, size);
  if (!block) block = grow(pool, size, false);
  if (!block) block = allocate_slowly(pool, size, bytes);
  if (worth_splitting(block, size)) split(block, size);

  block->allocated = true;
  block->requested = bytes;
  block->label = label;
  live_.emplace(block->address, block);
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
  live_.erase(address);
  block->allocated = false;
  block->label = nullptr;
  subtract(&Stats::allocation, pool, 1);
  subtract(&Stats::allocated_bytes, pool, block->size);
  subtract(&Stats::requested_bytes, pool, block->requested);
  for (StreamId stream : block->other_streams) {
    pending_[stream].push_back({source_.record_event(stream), block});
    block->events++;
  }
  block->other_streams.clear();
  if (block->events == 0) return_block(block);
}

void CachingAllocator::record_stream(void* address, StreamId stream) {
  if (!address) return;
  std::lock_guard guard(mutex_);
  Block* block = find_live(address);
  auto& streams = block->other_streams;
  if (stream != block->pool->stream && std::find(streams.begin(), streams.end(), stream) == streams.end())
    streams.push_back(stream);
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

CachingAllocator::Pool& CachingAllocator::pool_for(size_t size, StreamId stream) {
  auto& pools = pools_[stream];
  if (!pools) pools.reset(new StreamPools{{stream, false, {}}, {stream, true, {}}});
  return size <= config_.small_limit ? pools->small : pools->large;
}

CachingAllocator::Block* CachingAllocator::find_live(const void* address) const {
  auto it = live_.find(address);
  RL_ASSERT(it != live_.end(), "caching allocator: the pointer is not a live allocation");
  return it->second;
}

/// Best fit: the smallest free block that holds `size`.
CachingAllocator::Block* CachingAllocator::take_free(Pool& pool, size_t size) {
  Block key{.address = nullptr, .size = size, .pool = &pool};
  auto it = pool.free.lower_bound(&key);
  if (it == pool.free.end()) return nullptr;
  Block* block = *it;
  pool.free.erase(it);
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
  if (bytes > config_.memory_limit || reserved_ > config_.memory_limit - bytes) return nullptr;
  void* address = source_.allocate_segment(bytes);
  if (!address) return nullptr;
  stats_.num_source_allocations++;
  Block* block = new_block(pool, static_cast<char*>(address), bytes);
  segments_.emplace(address, block);
  reserved_ += bytes;
  idle_ += bytes;
  add(&Stats::segment, pool, 1);
  add(&Stats::reserved_bytes, pool, bytes);
  return block;
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
  throw OutOfMemory(out_of_memory_text(bytes));
}

bool CachingAllocator::worth_splitting(const Block* block, size_t size) const {
  const size_t rest = block->size - size;
  return block->pool->large ? rest > config_.small_limit : rest >= config_.granule;
}

/// Cuts the block after `size` bytes and files the rest as free.
void CachingAllocator::split(Block* block, size_t size) {
  Block* rest = new_block(*block->pool, block->address + size, block->size - size);
  rest->previous = block;
  rest->next = block->next;
  if (rest->next) rest->next->previous = rest;
  block->next = rest;
  block->size = size;
  block->pool->free.insert(rest);
  count_inactive_split(rest, true);
}

CachingAllocator::Block* CachingAllocator::absorb_next(Block* block) {
  Block* next = block->next;
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
  block->requested = 0;
  for (Block* neighbour : {block->previous, block->next}) {
    if (!neighbour || !neighbour->free()) continue;
    pool.free.erase(neighbour);
    count_inactive_split(neighbour, false);
    block = absorb_next(neighbour == block->next ? block : neighbour);
  }
  if (!block->is_split() && idle_ > config_.cache_limit) return release_segment(block);
  pool.free.insert(block);
  count_inactive_split(block, true);
}

/// `block` spans its whole segment and is in no free set.
void CachingAllocator::release_segment(Block* block) {
  Pool& pool = *block->pool;
  subtract(&Stats::segment, pool, 1);
  subtract(&Stats::reserved_bytes, pool, block->size);
  reserved_ -= block->size;
  idle_ -= block->size;
  segments_.erase(block->address);
  source_.free_segment(block->address, block->size);
  stats_.num_source_frees++;
  recycle(block);
}

size_t CachingAllocator::release_empty_segments() {
  const size_t before = reserved_;
  std::vector<Block*> empty;
  for (auto& [address, head] : segments_)
    if (head->free() && !head->is_split()) empty.push_back(head);
  for (Block* block : empty) {
    block->pool->free.erase(block);
    release_segment(block);
  }
  return before - reserved_;
}

void CachingAllocator::process_events() {
  for (auto& [stream, queue] : pending_) {
    // Events of one stream complete in order, so the first incomplete one ends the scan.
    while (!queue.empty() && source_.query_event(queue.front().event)) {
      auto [event, block] = queue.front();
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

Stats CachingAllocator::stats() const {
  std::lock_guard guard(mutex_);
  return stats_;
}

static constexpr AllocatorStats::Grouped AllocatorStats::* kAllStats[] = {
    &Stats::allocation,      &Stats::segment,        &Stats::active,       &Stats::inactive_split,
    &Stats::allocated_bytes, &Stats::reserved_bytes, &Stats::active_bytes, &Stats::inactive_split_bytes,
    &Stats::requested_bytes};

void CachingAllocator::reset_peak_stats() {
  std::lock_guard guard(mutex_);
  for (auto member : kAllStats)
    for (AllocatorStat& stat : stats_.*member) stat.peak = stat.current;
}

void CachingAllocator::reset_accumulated_stats() {
  std::lock_guard guard(mutex_);
  for (auto member : kAllStats)
    for (AllocatorStat& stat : stats_.*member) stat.allocated = stat.freed = 0;
  stats_.num_alloc_retries = stats_.num_ooms = 0;
  stats_.num_source_allocations = stats_.num_source_frees = 0;
}

std::vector<SegmentInfo> CachingAllocator::snapshot() const {
  std::lock_guard guard(mutex_);
  std::vector<SegmentInfo> result;
  result.reserve(segments_.size());
  for (auto& [address, head] : segments_) {
    SegmentInfo segment{address, 0, head->pool->stream, head->pool->large, {}};
    for (const Block* b = head; b; b = b->next) {
      auto state = b->allocated ? BlockInfo::kAllocated
                   : b->events  ? BlockInfo::kAwaitingEvents
                                : BlockInfo::kFree;
      segment.blocks.push_back({b->address, b->size, b->requested, state, b->label});
      segment.size += b->size;
    }
    result.push_back(std::move(segment));
  }
  return result;
}

void CachingAllocator::set_memory_limit(size_t bytes) {
  std::lock_guard guard(mutex_);
  config_.memory_limit = bytes;
}

void CachingAllocator::set_cache_limit(size_t bytes) {
  std::lock_guard guard(mutex_);
  config_.cache_limit = bytes;
}

std::string format_bytes(size_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) value /= 1024, unit++;
  char text[48];
  std::snprintf(text, sizeof text, unit ? "%.2f %s" : "%.0f %s", value, kUnits[unit]);
  return text;
}

std::string CachingAllocator::out_of_memory_text(size_t bytes) const {
  static constexpr size_t kNamed = 5;
  std::string text = source_.name() + " out of memory. Tried to allocate " + format_bytes(bytes) + ". " +
                     format_bytes(stats_.allocated_bytes[Stats::kAll].current) + " is allocated in " +
                     std::to_string(stats_.allocation[Stats::kAll].current) + " blocks, " +
                     format_bytes(reserved_) + " is reserved";
  if (config_.memory_limit != SIZE_MAX) text += ", the limit is " + format_bytes(config_.memory_limit);
  std::vector<const Block*> largest;
  for (auto& [address, block] : live_) largest.push_back(block);
  const size_t named = std::min(kNamed, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + named, largest.end(),
                    [](const Block* a, const Block* b) { return BySize{}(b, a); });
  for (size_t i = 0; i < named; i++) {
    text += i ? ", " : ". Largest live allocations: ";
    text += format_bytes(largest[i]->requested);
    if (largest[i]->label) text += std::string(" (") + largest[i]->label + ")";
  }
  return text + ". Free tensors that are no longer needed or use smaller batches.";
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

CachingAllocator::Block* CachingAllocator::new_block(Pool& pool, char* address, size_t size) {
  if (spare_.empty()) return new Block{.address = address, .size = size, .pool = &pool};
  Block* block = spare_.back().release();
  spare_.pop_back();
  *block = Block{.address = address, .size = size, .pool = &pool};
  return block;
}

void CachingAllocator::recycle(Block* block) { spare_.emplace_back(block); }

}  // namespace rushlight
