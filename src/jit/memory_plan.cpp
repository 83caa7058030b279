#include "jit/memory_plan.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/cpu_allocator.h"

namespace rushlight::jit {
namespace {

size_t aligned(size_t nbytes) { return (nbytes + kCpuAlignment - 1) / kCpuAlignment * kCpuAlignment; }

// The smallest gap of at least `nbytes` between the occupied spans, or the end of the last one.
size_t best_gap(std::vector<std::pair<size_t, size_t>>& occupied, size_t nbytes) {
  std::ranges::sort(occupied);
  size_t best = MemoryPlan::kNotPlanned, best_size = SIZE_MAX, free_from = 0;
  for (const auto& [begin, end] : occupied) {
    if (begin >= free_from + nbytes && begin - free_from < best_size)
      best = free_from, best_size = begin - free_from;
    free_from = std::max(free_from, end);
  }
  return best == MemoryPlan::kNotPlanned ? free_from : best;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Request>& requests) {
  MemoryPlan plan;
  for (const Request& r : requests) plan.slots.push_back({r.nbytes, MemoryPlan::kNotPlanned});
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return requests[i].end == 0; });
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return requests[i].nbytes; });
  std::vector<std::pair<size_t, size_t>> occupied;
  for (size_t n = 0; n < order.size(); ++n) {
    const Request& r = requests[order[n]];
    occupied.clear();
    for (size_t k = 0; k < n; ++k) {
      const Request& other = requests[order[k]];
      const size_t at = plan.slots[order[k]].offset;
      if (other.begin < r.end && r.begin < other.end) occupied.emplace_back(at, at + aligned(other.nbytes));
    }
    const size_t offset = best_gap(occupied, aligned(r.nbytes));
    plan.slots[order[n]].offset = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + aligned(r.nbytes));
  }
  return plan;
}

// --- recording

struct MemoryRecorder::Log : RefCounted {
  static void destroy(Log* log) { delete log; }
  std::mutex mutex;  // blocks may be freed by other threads, and later
  std::vector<Request> requests;
  uint32_t clock = 0;
};

struct MemoryRecorder::Block {
  Ref<Log> log;
  size_t request;

  static void free(void* context, void* data, size_t nbytes) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    {
      std::lock_guard lock(block->log->mutex);
      Log& log = *block->log;
      if (block->request < log.requests.size()) log.requests[block->request].end = ++log.clock;
    }
    cpu_deallocate(data, nbytes);
  }
};

MemoryRecorder::MemoryRecorder() : log_(make_ref<Log>()) {}
MemoryRecorder::~MemoryRecorder() = default;

StorageBlock MemoryRecorder::take(size_t nbytes) {
  if (nbytes <= kPlannedBytes) return {};
  auto block = std::make_unique<Block>();
  block->log = log_;
  void* data = cpu_allocate(nbytes);
  std::lock_guard lock(log_->mutex);
  block->request = log_->requests.size();
  log_->requests.push_back({nbytes, ++log_->clock, 0});
  return {data, Block::free, block.release()};
}

std::vector<Request> MemoryRecorder::finish() {
  std::lock_guard lock(log_->mutex);
  return std::exchange(log_->requests, {});
}

// --- serving

Arena::Arena(size_t nbytes) : data_(static_cast<std::byte*>(cpu_allocate(nbytes))), nbytes_(nbytes) {}
Arena::~Arena() { cpu_deallocate(data_, nbytes_); }

StorageBlock Arena::take(size_t offset, size_t nbytes) {
  const size_t end = offset + nbytes;
  {
    std::lock_guard lock(mutex_);
    for (const Span& s : live_)
      if (s.begin < end && offset < s.end) return {};
    live_.push_back({offset, end});
  }
  retain();
  return {data_ + offset, give_back, this};
}

void Arena::give_back(void* context, void* data, size_t) {
  const Ref<Arena> arena = Ref<Arena>::adopt(static_cast<Arena*>(context));
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(data) - arena->data_);
  std::lock_guard lock(arena->mutex_);
  const auto found = std::ranges::find(arena->live_, offset, &Span::begin);
  *found = arena->live_.back();
  arena->live_.pop_back();
}

// A run may ask for less than the first one did, when kernels keep what they made then: a few slots are
// passed over in search of one of this size.
StorageBlock PlannedMemory::take(size_t nbytes) {
  if (nbytes <= kPlannedBytes) return {};
  constexpr size_t kLookAhead = 8;
  for (size_t i = next_; i < std::min(next_ + kLookAhead, plan_.slots.size()); ++i) {
    const MemoryPlan::Slot& slot = plan_.slots[i];
    if (slot.nbytes != nbytes) continue;
    next_ = i + 1;
    return slot.offset == MemoryPlan::kNotPlanned ? StorageBlock{} : arena_.take(slot.offset, nbytes);
  }
  return {};
}

}  // namespace rushlight::jit
