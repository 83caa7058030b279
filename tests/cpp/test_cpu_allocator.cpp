#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/cpu_allocator.h"
#include "core/host/linux/cgroup.h"
#include "core/host/processor.h"

namespace rushlight {
namespace {

int64_t live_bytes() {
  const CpuMemoryStats s = cpu_memory_stats();
  return s.tiny_allocated_bytes + s.blocks.allocated_bytes[AllocatorStats::kAll].current;
}

#define SKIP_WITHOUT_CACHES() \
  if (!cpu_allocator_caches()) GTEST_SKIP() << "address-sanitizer builds use malloc"

TEST(CpuAllocator, AlignsEverySize) {
  EXPECT_EQ(cpu_allocate(0), nullptr);
  cpu_deallocate(nullptr, 0);
  for (size_t bytes : {1, 63, 64, 65, 4095, 4096, 4097, 100000, 3 << 20, 50 << 20}) {
    void* p = cpu_allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % kCpuAlignment, 0u);
    std::memset(p, 1, bytes);
    cpu_deallocate(p, bytes);
  }
}

TEST(CpuAllocator, ReusesTinyBlocks) {
  SKIP_WITHOUT_CACHES();
  void* p = cpu_allocate(100);
  cpu_deallocate(p, 100);
  EXPECT_EQ(cpu_allocate(128), p) << "100 and 128 bytes share a class";
  EXPECT_NE(cpu_allocate(128), p);
}

TEST(CpuAllocator, ReportsFailureLikePyTorch) {
  SKIP_WITHOUT_CACHES();
  for (size_t bytes : {SIZE_MAX - 5, size_t{1} << 60}) {
    try {
      cpu_allocate(bytes);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Runtime);
      const std::string expected = "DefaultCPUAllocator: can't allocate memory: you tried to allocate " +
                                   std::to_string(bytes) + " bytes.";
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
}

TEST(CpuAllocator, BlocksWanderBetweenThreads) {
  SKIP_WITHOUT_CACHES();
  const int64_t before = live_bytes();
  std::vector<std::pair<void*, size_t>> blocks;
  std::thread producer([&] {
    std::mt19937 random(1);
    for (int i = 0; i < 3000; i++) {
      const size_t bytes = 1 + random() % 9000;
      blocks.emplace_back(cpu_allocate(bytes), bytes);
      std::memset(blocks.back().first, i, bytes);
    }
  });
  producer.join();
  EXPECT_GT(live_bytes(), before);
  std::thread consumer([&] {
    for (auto [p, bytes] : blocks) cpu_deallocate(p, bytes);
  });
  consumer.join();
  EXPECT_EQ(live_bytes(), before);
  cpu_empty_cache();
  EXPECT_EQ(cpu_memory_stats().tiny_cached_bytes, 0) << "ended threads gave their lists back";
}

TEST(CpuAllocator, ListsAreBounded) {
  SKIP_WITHOUT_CACHES();
  cpu_empty_cache();
  const int64_t before = cpu_memory_stats().tiny_cached_bytes;
  std::vector<void*> blocks;
  for (int i = 0; i < 5000; i++) blocks.push_back(cpu_allocate(4000));
  for (void* p : blocks) cpu_deallocate(p, 4000);
  EXPECT_LE(cpu_memory_stats().tiny_cached_bytes - before, 36 * 1024);
}

TEST(CpuAllocator, FreesAfterTheThreadsListIsGone) {
  SKIP_WITHOUT_CACHES();
  struct Late {
    void* p = nullptr;
    ~Late() {
      cpu_deallocate(p, 200);
      cpu_deallocate(cpu_allocate(300), 300);
    }
  };
  const int64_t before = live_bytes();
  std::thread([] {
    static thread_local Late late;
    late.p = cpu_allocate(200);
  }).join();
  EXPECT_EQ(live_bytes(), before);
}

TEST(CpuAllocator, SurvivesFork) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      void* p = cpu_allocate(1 << 16);
      cpu_deallocate(p, 1 << 16);
      cpu_memory_stats();
    }
  });
  for (int i = 0; i < 30; i++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      for (size_t bytes : {100, 10000, 3000000}) {
        void* p = cpu_allocate(bytes);
        std::memset(p, 1, bytes);
        cpu_deallocate(p, bytes);
      }
      cpu_memory_stats();
      _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "the child hung or died";
  }
  stop = true;
  busy.join();
}

TEST(Host, ReadsLimits) {
  EXPECT_GE(host::usable_cores(), 1);
  EXPECT_GT(host::usable_memory(), size_t{1} << 20);
  EXPECT_EQ(host::parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(host::parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(host::parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(host::parse_cfs("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(host::parse_cfs("200000", "100000"), 2.0);
  EXPECT_EQ(host::parse_cfs("200000", "0"), std::nullopt);
  const char* v1 = "12:memory:/a\n4:cpu,cpuacct:/docker/x\n";
  EXPECT_EQ(host::cgroup_path(v1, "cpu"), "/docker/x");
  EXPECT_EQ(host::cgroup_path(v1, "pids"), std::nullopt);
  EXPECT_EQ(host::cgroup_path("0::/user.slice\n", ""), "/user.slice");
}

}  // namespace
}  // namespace rushlight
