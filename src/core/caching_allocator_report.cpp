// What the allocator tells of itself: counts, a picture of its segments, its history, and why memory ran out.
#include <algorithm>
#include <cstdio>

#include "core/caching_allocator_block.h"

namespace rushlight {

using Stats = AllocatorStats;

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
    const Pool& pool = *head->pool;
    SegmentInfo segment{address, 0, pool.stream, pool.large, pool.id, pool.range.base != nullptr, {}};
    for (const Block* b = head; b; b = b->next) {
      auto state = b->allocated ? BlockInfo::kAllocated
                   : b->events  ? BlockInfo::kAwaitingEvents
                                : BlockInfo::kFree;
      segment.blocks.push_back({b->address, b->size, b->requested, state, b->label, b->context});
      segment.size += b->size;
    }
    result.push_back(std::move(segment));
  }
  return result;
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
  const auto allocated = static_cast<size_t>(stats_.allocated_bytes[Stats::kAll].current);
  const size_t unused = reserved_ - allocated;
  std::string text = source_.name() + " out of memory. Tried to allocate " + format_bytes(bytes) + ". ";
  if (const std::string about = source_.describe(); !about.empty()) text += about + ". ";
  text += format_bytes(allocated) + " is allocated in " +
          std::to_string(stats_.allocation[Stats::kAll].current) + " blocks, " + format_bytes(reserved_) +
          " is reserved";
  if (config_.memory_limit != SIZE_MAX) text += ", the limit is " + format_bytes(config_.memory_limit);
  std::vector<const Block*> largest;
  for (auto& [address, block] : live_) largest.push_back(block);
  const size_t named = std::min(kNamed, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + static_cast<ptrdiff_t>(named), largest.end(),
                    [](const Block* a, const Block* b) { return BySize{}(b, a); });
  for (size_t i = 0; i < named; i++) {
    text += i ? ", " : ". Largest live allocations: ";
    text += format_bytes(largest[i]->requested);
    if (!largest[i]->label.empty()) text += str(" (", largest[i]->label, ")");
  }
  // Advice that applies: the memory is there but in pieces, or it is not there.
  if (unused < bytes) return text + ". Free tensors that are no longer needed or use smaller batches.";
  text +=
      str(". ", format_bytes(unused), " is reserved but in pieces that are too small or on other streams");
  return text + (config_.expandable || !source_.mapping_step()
                     ? std::string(".")
                     : ": PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets segments grow instead.");
}

void CachingAllocator::record_history(size_t events, ContextMaker context) {
  std::lock_guard guard(mutex_);
  context_maker_ = context;
  history_limit_ = events;
  if (!events) history_.clear();
}

std::vector<AllocatorEvent> CachingAllocator::history() const {
  std::lock_guard guard(mutex_);
  return {history_.begin(), history_.end()};
}

}  // namespace rushlight
