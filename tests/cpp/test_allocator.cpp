#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "core/caching_allocator.h"

namespace rushlight {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

/// Address space without memory behind it: nothing here is ever dereferenced.
class FakeDevice : public BlockSource {
 public:
  void* allocate_segment(size_t bytes) override {
    calls++;
    if (fail_next > 0 && fail_next--) return nullptr;
    if (bytes > capacity - used) return nullptr;
    used += bytes;
    void* address = reinterpret_cast<void*>(next_address_);
    next_address_ += (bytes + kMiB) / kMiB * kMiB + kMiB;
    segments.emplace(address, bytes);
    return address;
  }
  void free_segment(void* address, size_t bytes) noexcept override {
    calls++;
    auto it = segments.find(address);
    if (it == segments.end() || it->second != bytes) std::abort();
    segments.erase(it);
    used -= bytes;
  }
  Event record_event(StreamId) override {
    live_events++;
    return ++last_event_;
  }
  bool query_event(Event e) override { return e <= completed; }
  void wait_event(Event e) override { completed = std::max(completed, e); }
  void release_event(Event) noexcept override { live_events--; }
  std::string name() const override { return "Fake device"; }
  void complete_all() { completed = last_event_; }

  // Expandable segments, where a test wants them: `mapped` by address.
  size_t mapping_step() override { return step; }
  void* reserve_addresses(size_t* bytes) override {
    *bytes = capacity;
    void* address = reinterpret_cast<void*>(next_address_);
    next_address_ += capacity + kMiB;
    mapped.emplace(address, 0);
    return address;
  }
  void release_addresses(void* address, size_t) noexcept override { mapped.erase(address); }
  bool map_memory(void* address, size_t bytes) override {
    calls++;
    if (fail_next > 0 && fail_next--) return false;
    if (bytes > capacity - used || bytes % step) return false;
    auto range = std::prev(mapped.upper_bound(address));
    if (static_cast<char*>(range->first) + range->second != address) std::abort();  // behind what is there
    range->second += bytes;
    used += bytes;
    return true;
  }
  void unmap_memory(void* address, size_t bytes) noexcept override {
    auto range = std::prev(mapped.upper_bound(address));
    if (static_cast<char*>(range->first) + range->second != static_cast<char*>(address) + bytes) std::abort();
    range->second -= bytes;
    used -= bytes;
  }
  size_t step = 0;
  std::map<void*, size_t> mapped;

  size_t capacity = size_t{1} << 40, used = 0;
  int fail_next = 0, calls = 0, live_events = 0;
  Event completed = 0;
  std::map<void*, size_t> segments;

 private:
  uintptr_t next_address_ = 1 << 20;
  Event last_event_ = 0;
};

char* at(void* p, size_t offset) { return static_cast<char*>(p) + offset; }

TEST(CachingAllocator, RoundsSizesAndIgnoresZero) {
  FakeDevice device;
  CachingAllocator a(device);
  EXPECT_EQ(a.allocate(0), nullptr);
  a.deallocate(nullptr);
  EXPECT_EQ(device.calls, 0);
  void* p = a.allocate(1);
  EXPECT_EQ(a.allocation_size(p), 512u);
  void* q = a.allocate(513);
  EXPECT_EQ(a.allocation_size(q), 1024u);
  EXPECT_EQ(q, at(p, 512));
  EXPECT_EQ(device.segments.size(), 1u);
  a.deallocate(p);
  a.deallocate(q);
  EXPECT_ANY_THROW(a.deallocate(q));
}

TEST(CachingAllocator, SizeClassesOfSegments) {
  FakeDevice device;
  CachingAllocator a(device);
  a.allocate(kMiB);
  EXPECT_EQ(device.used, 2 * kMiB);
  a.allocate(kMiB + 1);
  EXPECT_EQ(device.used, 22 * kMiB);
  a.allocate(31 * kMiB - 5);
  EXPECT_EQ(device.used, 54 * kMiB);
}

TEST(CachingAllocator, SteadyStateMakesNoSourceCall) {
  FakeDevice device;
  CachingAllocator a(device);
  const size_t sizes[] = {100, 5 * kKiB, 700 * kKiB, 3 * kMiB, 64 * kMiB, 900, 12 * kMiB};
  auto step = [&] {
    std::vector<void*> blocks;
    for (size_t n : sizes) blocks.push_back(a.allocate(n));
    for (void* p : blocks) a.deallocate(p);
  };
  step();
  const int calls = device.calls;
  for (int i = 0; i < 100; i++) step();
  EXPECT_EQ(device.calls, calls);
}

TEST(CachingAllocator, MergesNeighboursInAnyOrder) {
  int order[] = {0, 1, 2};
  do {
    FakeDevice device;
    CachingAllocator a(device);
    void* p[] = {a.allocate(600 * kKiB), a.allocate(600 * kKiB), a.allocate(848 * kKiB)};
    ASSERT_EQ(device.segments.size(), 1u);
    for (int i : order) a.deallocate(p[i]);
    auto segments = a.snapshot();
    ASSERT_EQ(segments.size(), 1u);
    EXPECT_EQ(segments[0].blocks.size(), 1u);
    EXPECT_EQ(a.stats().inactive_split[AllocatorStats::kAll].current, 0);
    EXPECT_EQ(a.empty_cache(), 2 * kMiB);
    EXPECT_EQ(device.used, 0u);
  } while (std::next_permutation(order, order + 3));
}

TEST(CachingAllocator, LargeBlocksKeepSmallRests) {
  FakeDevice device;
  CachingAllocator a(device);
  void* p = a.allocate(20 * kMiB - 512 * kKiB);
  EXPECT_EQ(a.allocation_size(p), 20 * kMiB);
}

TEST(CachingAllocator, StreamsDoNotShareBlocks) {
  FakeDevice device;
  CachingAllocator a(device);
  void* p = a.allocate(4 * kMiB, 1);
  a.deallocate(p);
  void* q = a.allocate(4 * kMiB, 2);
  EXPECT_NE(p, q);
  EXPECT_EQ(a.allocate(4 * kMiB, 1), p);
}

TEST(CachingAllocator, OtherStreamsDelayReuse) {
  FakeDevice device;
  CachingAllocator a(device);
  void* p = a.allocate(kMiB, 1);
  a.record_stream(p, 1);
  a.record_stream(p, 2);
  a.record_stream(p, 2);
  a.record_stream(p, 3);
  a.deallocate(p);
  EXPECT_EQ(device.live_events, 2);
  EXPECT_EQ(a.stats().allocated_bytes[AllocatorStats::kAll].current, 0);
  EXPECT_EQ(a.stats().active_bytes[AllocatorStats::kAll].current, static_cast<int64_t>(kMiB));
  void* q = a.allocate(kMiB, 1);
  EXPECT_NE(q, p);
  device.complete_all();
  EXPECT_EQ(a.allocate(kMiB, 1), p);
  EXPECT_EQ(device.live_events, 0);
}

TEST(CachingAllocator, EmptyCacheWaitsForEvents) {
  FakeDevice device;
  CachingAllocator a(device);
  void* p = a.allocate(8 * kMiB);
  a.record_stream(p, 7);
  a.deallocate(p);
  EXPECT_EQ(a.empty_cache(), 20 * kMiB);
  EXPECT_EQ(device.live_events, 0);
  EXPECT_EQ(device.used, 0u);
}

TEST(CachingAllocator, FlushesTheCacheBeforeGivingUp) {
  FakeDevice device;
  device.capacity = 64 * kMiB;
  CachingAllocator a(device);
  a.deallocate(a.allocate(40 * kMiB));
  void* p = a.allocate(50 * kMiB);
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(a.stats().num_alloc_retries, 1);
  EXPECT_EQ(a.stats().num_ooms, 0);
  device.fail_next = 1;
  EXPECT_NE(a.allocate(3 * kMiB), nullptr) << "a transient failure is retried";
  device.capacity = device.used + 5 * kMiB;
  EXPECT_NE(a.allocate(5 * kMiB), nullptr) << "no whole step is left, but the request itself fits";
}

TEST(CachingAllocator, OutOfMemoryNamesTheLargestAllocations) {
  FakeDevice device;
  device.capacity = 100 * kMiB;
  CachingAllocator a(device);
  a.allocate(30 * kMiB, 0, "conv2d");
  a.allocate(50 * kMiB, 0, "matmul");
  a.allocate(100);
  try {
    a.allocate(40 * kMiB);
    FAIL();
  } catch (const OutOfMemory& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("Fake device out of memory. Tried to allocate 40.00 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("Largest live allocations: 50.00 MiB (matmul), 30.00 MiB (conv2d), 100 bytes"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(a.stats().num_ooms, 1);
  EXPECT_THROW(a.allocate(SIZE_MAX - 3), OutOfMemory);
  EXPECT_NE(a.allocate(1000), nullptr) << "the allocator works on after a failure";
}

TEST(CachingAllocator, HonoursLimits) {
  FakeDevice device;
  CachingAllocator a(device);
  a.set_memory_limit(32 * kMiB);
  void* p = a.allocate(24 * kMiB);
  EXPECT_THROW(a.allocate(10 * kMiB), OutOfMemory);
  a.deallocate(p);
  EXPECT_NE(a.allocate(30 * kMiB), nullptr);

  FakeDevice other;
  CachingAllocator b(other);
  b.set_cache_limit(50 * kMiB);
  void* blocks[] = {b.allocate(40 * kMiB), b.allocate(40 * kMiB), b.allocate(40 * kMiB)};
  for (void* q : blocks) b.deallocate(q);
  EXPECT_EQ(other.used, 40 * kMiB);
}

TEST(CachingAllocator, ResetsStatistics) {
  FakeDevice device;
  CachingAllocator a(device);
  a.deallocate(a.allocate(10 * kMiB));
  auto all = [&] { return a.stats().allocated_bytes[AllocatorStats::kAll]; };
  EXPECT_EQ(all().peak, static_cast<int64_t>(10 * kMiB));
  EXPECT_EQ(all().allocated, all().freed);
  a.reset_peak_stats();
  a.reset_accumulated_stats();
  EXPECT_EQ(all().peak, 0);
  EXPECT_EQ(all().allocated, 0);
}

TEST(CachingAllocator, ExpandableSegmentsGrowInPlace) {
  FakeDevice device;
  device.step = 2 * kMiB;
  CachingAllocator a(device, {.expandable = true});
  void* p = a.allocate(30 * kMiB);
  void* q = a.allocate(50 * kMiB);
  EXPECT_EQ(q, at(p, 30 * kMiB));
  EXPECT_EQ(a.snapshot().size(), 1u);
  EXPECT_EQ(device.used, 80 * kMiB) << "whole steps of 20 MiB; the second request took what the first left";
  a.deallocate(q);
  EXPECT_EQ(a.allocate(60 * kMiB), q) << "a free end grows";
  a.deallocate(p);
  EXPECT_EQ(a.allocate(20 * kMiB), p) << "holes are used again";
  a.deallocate(q);
  a.empty_cache();
  EXPECT_EQ(device.used, 20 * kMiB) << "the free end went back";
  a.deallocate(p);
  a.empty_cache();
  EXPECT_EQ(device.used, 0u);
  EXPECT_TRUE(a.snapshot().empty());
  EXPECT_EQ(a.allocate(5 * kMiB), p) << "the addresses stay";
}

TEST(CachingAllocator, PrivatePoolsKeepTheirMemory) {
  FakeDevice device;
  CachingAllocator a(device);
  a.retain_pool(7);
  void* p = a.allocate(4 * kMiB, 0, {}, 7);
  a.deallocate(p);
  EXPECT_NE(a.allocate(4 * kMiB), p);
  EXPECT_EQ(a.empty_cache(), 0u) << "somebody holds the pool";
  EXPECT_EQ(a.allocate(4 * kMiB, 0, {}, 7), p);
  a.deallocate(p);
  a.release_pool(7);
  EXPECT_EQ(a.empty_cache(), 20 * kMiB);
  EXPECT_ANY_THROW(a.release_pool(7));
}

TEST(CachingAllocator, CollectsOldSegmentsAboveTheThreshold) {
  FakeDevice device;
  CachingAllocator a(device, {.memory_limit = 100 * kMiB, .collect_above = 0.6});
  void *older = a.allocate(22 * kMiB), *newer = a.allocate(24 * kMiB);
  a.deallocate(older);
  a.deallocate(newer);
  void* p = a.allocate(30 * kMiB);
  EXPECT_EQ(device.used, 54 * kMiB) << "the older one went, the newer one fits";
  EXPECT_EQ(a.allocate(23 * kMiB), newer);
  EXPECT_NE(p, nullptr);
}

TEST(CachingAllocator, LargeBlocksStayWhole) {
  FakeDevice device;
  CachingAllocator a(device, {.max_split = 64 * kMiB});
  void* p = a.allocate(100 * kMiB);
  a.deallocate(p);
  EXPECT_NE(a.allocate(10 * kMiB), p) << "small requests leave it alone";
  EXPECT_NE(a.allocate(70 * kMiB), p) << "and so do those that would waste too much";
  EXPECT_EQ(a.allocate(90 * kMiB), p);
  EXPECT_EQ(a.allocation_size(p), 100 * kMiB);
}

TEST(CachingAllocator, RemembersWhatHappened) {
  FakeDevice device;
  CachingAllocator a(device);
  a.record_history(4, [] { return uint64_t{42}; });
  void* p = a.allocate(kMiB);
  a.deallocate(p);
  const auto events = a.history();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].action, AllocatorEvent::kSegmentAllocate);
  EXPECT_EQ(events[1].action, AllocatorEvent::kAllocate);
  EXPECT_EQ(events[1].context, 42u);
  EXPECT_EQ(events[3].action, AllocatorEvent::kFreeCompleted);
  for (int i = 0; i < 10; i++) a.deallocate(a.allocate(100));
  EXPECT_EQ(a.history().size(), 4u);
  a.record_history(0);
  EXPECT_TRUE(a.history().empty());
}

TEST(CachingAllocator, KnowsWhoseMemoryItIs) {
  FakeDevice device;
  CachingAllocator a(device);
  void *p = a.allocate(1000), *q = a.allocate(1000);
  EXPECT_EQ(a.base_of(at(p, 1000)), p);
  EXPECT_EQ(a.base_of(q), q);
  a.deallocate(q);
  EXPECT_FALSE(a.owns(q));
  EXPECT_FALSE(a.owns(nullptr));
}

TEST(CachingAllocator, ParsesOptions) {
  const AllocatorConfig c = parse_allocator_config(
      "expandable_segments:True,garbage_collection_threshold:0.5,max_split_size_mb:100");
  EXPECT_TRUE(c.expandable);
  EXPECT_EQ(c.collect_above, 0.5);
  EXPECT_EQ(c.max_split, 100 * kMiB);
  for (const char* wrong : {"expandable_segments:yes", "garbage_collection_threshold:2",
                            "max_split_size_mb:x", "unknown:1", "expandable_segments"})
    EXPECT_ANY_THROW(parse_allocator_config(wrong)) << wrong;
}

// What snapshot() says must tile every segment, agree with the statistics and with what the client holds.
void check_invariants(const CachingAllocator& a, const FakeDevice& device,
                      const std::map<void*, size_t>& held) {
  size_t reserved = 0, allocated = 0, active = 0, requested = 0, inactive = 0, inactive_count = 0, blocks = 0;
  std::map<const void*, size_t> seen;
  for (const SegmentInfo& segment : a.snapshot()) {
    const auto& known = segment.expandable ? device.mapped : device.segments;
    auto it = known.find(const_cast<void*>(segment.address));
    ASSERT_TRUE(it != known.end());
    ASSERT_EQ(it->second, segment.size);
    reserved += segment.size;
    const char* expected = static_cast<const char*>(segment.address);
    bool previous_free = false;
    for (const BlockInfo& b : segment.blocks) {
      ASSERT_EQ(b.address, expected);
      ASSERT_EQ(b.size % 512, 0u);
      expected += b.size;
      const bool is_free = b.state == BlockInfo::kFree;
      ASSERT_FALSE(is_free && previous_free) << "free neighbours were not merged";
      previous_free = is_free;
      if (is_free && segment.blocks.size() > 1) inactive += b.size, inactive_count++;
      if (!is_free) active += b.size;
      if (b.state != BlockInfo::kAllocated) continue;
      blocks++;
      allocated += b.size;
      requested += b.requested;
      ASSERT_GE(b.size, b.requested);
      seen[b.address] = b.requested;
    }
  }
  ASSERT_EQ(seen.size(), held.size());
  for (auto& [address, size] : held) ASSERT_EQ(seen[address], size);
  const AllocatorStats s = a.stats();
  auto current = [&](auto member) { return static_cast<size_t>((s.*member)[AllocatorStats::kAll].current); };
  ASSERT_EQ(current(&AllocatorStats::reserved_bytes), reserved);
  ASSERT_EQ(device.used, reserved);
  const auto ranges =
      std::count_if(device.mapped.begin(), device.mapped.end(), [](auto& m) { return m.second; });
  ASSERT_EQ(current(&AllocatorStats::segment), device.segments.size() + static_cast<size_t>(ranges));
  ASSERT_EQ(current(&AllocatorStats::allocated_bytes), allocated);
  ASSERT_EQ(current(&AllocatorStats::allocation), blocks);
  ASSERT_EQ(current(&AllocatorStats::active_bytes), active);
  ASSERT_EQ(current(&AllocatorStats::requested_bytes), requested);
  ASSERT_EQ(current(&AllocatorStats::inactive_split_bytes), inactive);
  ASSERT_EQ(current(&AllocatorStats::inactive_split), inactive_count);
  for (auto member : {&AllocatorStats::allocation, &AllocatorStats::segment, &AllocatorStats::active,
                      &AllocatorStats::allocated_bytes, &AllocatorStats::reserved_bytes}) {
    const auto& groups = s.*member;
    const auto &all = groups[AllocatorStats::kAll], &small = groups[AllocatorStats::kSmall],
               &large = groups[AllocatorStats::kLarge];
    ASSERT_EQ(all.current, small.current + large.current);
    ASSERT_EQ(all.current, all.allocated - all.freed);
    ASSERT_GE(all.peak, all.current);
  }
}

TEST(CachingAllocator, RandomHistoriesKeepEveryInvariant) {
  for (unsigned seed = 0; seed < 20; seed++) {
    std::mt19937 random(seed);
    FakeDevice device;
    device.capacity = 400 * kMiB;
    device.step = 2 * kMiB;
    CachingAllocator a(device, {.expandable = seed % 2 == 1});
    if (seed % 3 == 1) a.set_cache_limit(64 * kMiB);
    std::map<void*, size_t> held;
    auto free_one = [&] {
      auto it = std::next(held.begin(), random() % held.size());
      a.deallocate(it->first);
      held.erase(it);
    };
    for (int step = 0; step < 1500; step++) {
      const unsigned action = random() % 100;
      if (action < 52) {
        const size_t bytes = 1 + random() % (size_t{1} << (4 + random() % 22));
        if (random() % 20 == 0) device.fail_next = random() % 4;
        try {
          void* p = a.allocate(bytes, random() % 3, {}, random() % 2);
          ASSERT_TRUE(held.emplace(p, bytes).second);
        } catch (const OutOfMemory&) {
          for (int i = 0; i < 10 && !held.empty(); i++) free_one();
        }
      } else if (action < 90) {
        if (!held.empty()) free_one();
      } else if (action < 96) {
        if (!held.empty())
          a.record_stream(std::next(held.begin(), random() % held.size())->first, random() % 4);
      } else if (action < 99) {
        device.complete_all();
      } else {
        a.empty_cache();
      }
      if (step % 16 == 0) {
        ASSERT_NO_FATAL_FAILURE(check_invariants(a, device, held)) << "seed " << seed;
      }
    }
    while (!held.empty()) free_one();
    a.empty_cache();
    ASSERT_NO_FATAL_FAILURE(check_invariants(a, device, held));
    EXPECT_TRUE(device.segments.empty()) << "every segment is whole again and was given back";
    EXPECT_EQ(device.live_events, 0);
  }
}

TEST(CachingAllocator, ThreadsShareIt) {
  FakeDevice device;
  {
    CachingAllocator a(device);
    auto work = [&](unsigned seed) {
      std::mt19937 random(seed);
      std::vector<void*> held;
      for (int i = 0; i < 5000; i++) {
        if (held.empty() || random() % 2) {
          held.push_back(a.allocate(1 + random() % 100000));
        } else {
          a.deallocate(held.back());
          held.pop_back();
        }
      }
      for (void* p : held) a.deallocate(p);
    };
    std::thread other(work, 1);
    work(2);
    other.join();
    check_invariants(a, device, {});
  }
  EXPECT_EQ(device.used, 0u);
}

TEST(CachingAllocator, FormatsBytes) {
  EXPECT_EQ(format_bytes(12), "12 bytes");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(size_t{20} << 20), "20.00 MiB");
}

}  // namespace
}  // namespace rushlight
