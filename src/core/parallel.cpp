#include "core/parallel.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/host/process.h"
#include "core/host/processor.h"
#include "core/long_work.h"
#include "core/thread_pool.h"

#ifdef RUSHLIGHT_WITH_TBB
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#endif

namespace rushlight {

namespace {

// Several tasks for each thread, so that one delayed by other processes does not hold up the rest.
constexpr int64_t kTasksPerThread = 4;
constexpr int64_t kMostPieces = 1024;
// Nobody waits for more than this before a call looks whether it is interrupted: about a tenth of a second.
constexpr int64_t kMostGrains = 4096;
constexpr int64_t kLongPiece = int64_t{1} << 28, kMostLongPieces = 1 << 18;

std::atomic<int> num_threads{0};
// Set in a child that was forked after the pool had started: its workers do not exist there.
std::atomic<bool> pool_lost{false};
std::atomic<bool> pool_started{false};
__attribute__((tls_model("initial-exec"))) constinit thread_local bool t_in_parallel = false;

int threads_from(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::max(0, std::atoi(text))
              : 0;  // OMP_NUM_THREADS may list one number a level: the first counts
}

int initial_threads() {
  for (const char* variable : {"RUSHLIGHT_NUM_THREADS", "OMP_NUM_THREADS"})
    if (int n = threads_from(variable)) return n;
  return host::usable_cores();
}

struct ParallelRegion {
  bool outer = std::exchange(t_in_parallel, true);
  ~ParallelRegion() { t_in_parallel = outer; }
};

// Between the tasks of a long call its caller looks whether the program was interrupted.
class TaskPoll {
 public:
  TaskPoll() : last_(Clock::now()) {}
  void operator()() {
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(250)) return;
    last_ = now;
    if (auto* ask = throw_if_interrupted.load(std::memory_order_relaxed)) ask();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_;
};

bool run_serially() {
  return t_in_parallel || pool_lost.load(std::memory_order_relaxed) || get_num_threads() == 1;
}

void start_pool();

#ifdef RUSHLIGHT_WITH_TBB
/// Each calling thread has its own arena, so that callers never wait for each other's slots; workers are
/// shared.
struct CallerArena {
  std::unique_ptr<tbb::task_arena> arena;
  int threads = 0;

  tbb::task_arena& get(int wanted) {
    if (threads != wanted) {
      start_pool();
      arena = std::make_unique<tbb::task_arena>(wanted);
      threads = wanted;
    }
    return *arena;
  }
};

thread_local CallerArena t_arena, t_alone;
#endif

void lose_pool() {
  if (!pool_started) return;
  pool_lost = true;
#ifdef RUSHLIGHT_WITH_TBB
  for (CallerArena* a : {&t_arena, &t_alone}) {
    (void)a->arena.release();  // its workers are gone, taking it down could wait for them
    a->threads = 0;
  }
#endif
}

void start_pool() {
  static std::once_flag once;
  std::call_once(once, host::around_fork, nullptr, nullptr, lose_pool);
  pool_started = true;
}

}  // namespace

int get_num_threads() {
  int n = num_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = initial_threads();
    int unset = 0;
    if (!num_threads.compare_exchange_strong(unset, n)) n = unset;
  }
  return n;
}

void set_num_threads(int threads) {
  RL_CHECK(threads >= 1, "set_num_threads expects a positive integer, got ", threads);
  num_threads = threads;
}

bool in_parallel_region() { return t_in_parallel; }

int get_thread_num() {
#ifdef RUSHLIGHT_WITH_TBB
  if (t_in_parallel) return std::max(0, tbb::this_task_arena::current_thread_index());
  return 0;
#else
  return detail::worker_number();
#endif
}

namespace detail {

int64_t reduction_piece(int64_t size, int64_t grain) {
  grain = std::max<int64_t>(grain, 1);
  const int64_t most = std::clamp(size / kLongPiece, kMostPieces, kMostLongPieces);
  return std::max(grain, (size + most - 1) / most);
}

static void run_task(const FunctionRef<void(int64_t)>& f, int64_t i) {
  ParallelRegion region;
  f(i);
}

void parallel_tasks(int64_t count, FunctionRef<void(int64_t)> f) {
  TaskPoll poll;
  if (count > 1 && !run_serially()) {
#ifdef RUSHLIGHT_WITH_TBB
    const std::thread::id caller = std::this_thread::get_id();
    t_arena.get(get_num_threads()).execute([&] {
      // Isolated: while it waits the caller must not pick up other callers' work, whose locks it may hold.
      tbb::this_task_arena::isolate([&] {
        tbb::parallel_for(
            tbb::blocked_range<int64_t>(0, count, 1),
            [&](const tbb::blocked_range<int64_t>& range) {
              for (int64_t i = range.begin(); i != range.end(); i++) {
                run_task(f, i);
                if (std::this_thread::get_id() == caller) poll();
              }
            },
            tbb::simple_partitioner());
      });
    });
#else
    start_pool();
    run_on_workers(count, get_num_threads(), [&](int64_t i) { run_task(f, i); }, poll);
#endif
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    f(i);
    if (!t_in_parallel) poll();
  }
}

void parallel_for_slowly(int64_t begin, int64_t end, int64_t grain, RangeFunction f) {
  grain = std::max<int64_t>(grain, 1);
  const int64_t size = end - begin, longest = grain < size / kMostGrains ? grain * kMostGrains : size;
  if (run_serially() && (t_in_parallel || longest == size)) return f(begin, end);
  const int64_t most = run_serially() ? 1 : get_num_threads() * kTasksPerThread;
  const int64_t piece = std::min(longest, std::max(grain, (size + most - 1) / most));
  parallel_tasks((size + piece - 1) / piece, [&](int64_t i) {
    const int64_t b = begin + i * piece;
    f(b, std::min(end, b + piece));
  });
}

}  // namespace detail

void run_in_pool(detail::FunctionRef<void()> f) {
#ifdef RUSHLIGHT_WITH_TBB
  // Inside a region the arena is the right one already. In a child without workers even making an arena could
  // wait for a lock that one of them held.
  if (t_in_parallel || pool_lost) return f();
  t_arena.get(get_num_threads()).execute([&] { f(); });
#else
  f();
#endif
}

void run_alone(detail::FunctionRef<void()> f) {
#ifdef RUSHLIGHT_WITH_TBB
  if (pool_lost) return f();
  t_alone.get(1).execute([&] { f(); });
#else
  f();
#endif
}

}  // namespace rushlight
