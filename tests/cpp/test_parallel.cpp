#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/host/processor.h"
#include "core/parallel.h"

namespace rushlight {
namespace {

struct Threads {
  int before = get_num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

void expect_each_once(int64_t begin, int64_t end, int64_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(std::max<int64_t>(0, end - begin)));
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    EXPECT_LT(b, e);
    for (int64_t i = b; i < e; i++) visits[static_cast<size_t>(i - begin)]++;
  });
  for (auto& v : visits) ASSERT_EQ(v, 1);
}

TEST(Parallel, CoversTheRangeOnce) {
  for (int threads : {1, 2, 3, 8}) {
    Threads scope(threads);
    expect_each_once(0, 0, 10);
    expect_each_once(5, 3, 10);
    expect_each_once(0, 10, 10);
    expect_each_once(-3, 100000, 7);
    expect_each_once(0, 1000, 0);
    expect_each_once(0, 1001, 1000);
  }
}

TEST(Parallel, SmallAndNestedWorkStaysOnTheCaller) {
  Threads scope(4);
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  parallel_for(0, 100, 100, [&](int64_t, int64_t) {
    calls++;
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_FALSE(in_parallel_region());
  });
  EXPECT_EQ(calls, 1);
  std::atomic<int64_t> sum{0};
  parallel_for(0, 64, 1, [&](int64_t b, int64_t e) {
    const auto outer = std::this_thread::get_id();
    EXPECT_LT(get_thread_num(), 4);
    parallel_for(0, 1000, 1, [&](int64_t bb, int64_t ee) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      sum += (e - b) * (ee - bb);
    });
  });
  EXPECT_EQ(sum, 64000);
  EXPECT_FALSE(in_parallel_region());
}

TEST(Parallel, RethrowsExceptions) {
  for (int threads : {1, 4}) {
    Threads scope(threads);
    EXPECT_THROW(parallel_for(0, 1000, 1,
                              [](int64_t b, int64_t) {
                                if (b >= 0) throw std::out_of_range("here");
                              }),
                 std::out_of_range);
    EXPECT_FALSE(in_parallel_region());
    expect_each_once(0, 1000, 1);
  }
}

TEST(Parallel, ReductionsDoNotDependOnTheThreads) {
  std::vector<float> values(300001);
  for (size_t i = 0; i < values.size(); i++) values[i] = std::sin(static_cast<float>(i)) * 1e3f;
  auto sum = [&] {
    return parallel_reduce(
        0, static_cast<int64_t>(values.size()), 1000, 0.0f,
        [&](int64_t b, int64_t e) { return std::accumulate(values.begin() + b, values.begin() + e, 0.0f); },
        [](float a, float b) { return a + b; });
  };
  std::vector<float> results;
  for (int threads : {1, 2, 5}) {
    Threads scope(threads);
    for (int i = 0; i < 5; i++) results.push_back(sum());
  }
  for (float r : results) EXPECT_EQ(r, results[0]);
  EXPECT_EQ(parallel_reduce(3, 3, 1, 42, [](int64_t, int64_t) { return 0; }, std::plus<int>{}), 42);
}

TEST(Parallel, ThreadsMayCallAtOnce) {
  Threads scope(3);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; t++)
    callers.emplace_back([] {
      for (int i = 0; i < 50; i++) expect_each_once(0, 5000, 100);
    });
  for (auto& t : callers) t.join();
}

// Two tasks that wait for each other: one thread would never end them.
TEST(Parallel, OthersTakePart) {
  if (host::usable_cores() < 2) GTEST_SKIP() << "one core";
  Threads scope(2);
  std::atomic<int> here{0}, waited_in_vain{0};
  detail::parallel_tasks(2, [&](int64_t) {
    here++;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (here < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    if (here < 2) waited_in_vain++;
  });
  EXPECT_EQ(waited_in_vain, 0);
}

TEST(Parallel, ThreadsOfACallHaveNumbersOfTheirOwn) {
  Threads scope(3);
  std::atomic<int> busy[3] = {}, clashes{0};
  for (int i = 0; i < 100; i++)
    parallel_for(0, 300, 1, [&](int64_t, int64_t) {
      const int number = get_thread_num();
      ASSERT_LT(number, 3);
      if (busy[number]++) clashes++;
      std::this_thread::yield();
      busy[number]--;
    });
  EXPECT_EQ(clashes, 0);
}

TEST(Parallel, RunsLibrariesInThePool) {
  Threads scope(2);
  int ran = 0;
  run_in_pool([&] { ran++; });
  parallel_for(0, 2, 1, [&](int64_t, int64_t) { run_in_pool([] {}); });
  EXPECT_EQ(ran, 1);
}

TEST(Parallel, RefusesNonsense) { EXPECT_ANY_THROW(set_num_threads(0)); }

// Runs `body` in a child; true when it ended well within the time limit.
template <class F>
bool in_child(F body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body() ? 7 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

bool sums_right() {
  std::atomic<int64_t> sum{0};
  parallel_for(0, 100000, 10, [&](int64_t b, int64_t e) { sum += e - b; });
  run_in_pool([&] { sum += 1; });
  return sum == 100001;
}

TEST(Parallel, SurvivesFork) {
  Threads scope(3);
  EXPECT_TRUE(sums_right());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) sums_right();
  });
  for (int i = 0; i < 20; i++)
    EXPECT_TRUE(in_child([] { return sums_right() && sums_right() && in_child(sums_right); }));
  stop = true;
  busy.join();
  EXPECT_TRUE(sums_right());
}

// A fresh process, since the number is read once.
TEST(Parallel, ReadsTheEnvironment) {
  auto threads_with = [](const char* variable, const char* value) {
    return in_child([&] {
      setenv(variable, value, 1);
      setenv("RUSHLIGHT_TEST_THREADS", "3", 1);
      const pid_t child = fork();
      if (child == 0) {
        execl("/proc/self/exe", "test", "--gtest_filter=Parallel.StartsWithTheNumberAskedFor", nullptr);
        _exit(1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    });
  };
  EXPECT_TRUE(threads_with("RUSHLIGHT_NUM_THREADS", "3"));
  EXPECT_TRUE(threads_with("OMP_NUM_THREADS", "3,2"));
}

TEST(Parallel, StartsWithTheNumberAskedFor) {
  if (!std::getenv("RUSHLIGHT_TEST_THREADS")) GTEST_SKIP() << "run by ReadsTheEnvironment";
  EXPECT_EQ(get_num_threads(), 3);
}

}  // namespace
}  // namespace rushlight
