#include "core/thread_pool.h"

#ifndef RUSHLIGHT_WITH_TBB

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/host/thread.h"

namespace rushlight::detail {

namespace {

// How often a worker looks for the next call before it sleeps: some 20 microseconds, and others may run
// meanwhile.
constexpr int kLooks = 40;

thread_local int t_number = 0;

/// One call of run_on_workers, on its caller's stack. What is not atomic is guarded by the pool's lock.
struct Call {
  Call(FunctionRef<void(int64_t)> f, int64_t n, int seats) : task(f), count(n), free_seats(seats) {}

  FunctionRef<void(int64_t)> task;
  const int64_t count;
  std::atomic<int64_t> next{0};
  int free_seats;
  int seated = 0;  // workers that came
  int inside = 0;  // workers that have not left
  std::exception_ptr error;
  std::condition_variable all_left;
};

class Pool {
 public:
  void run(Call& call, int workers, FunctionRef<void()> between) {
    open(call, workers);
    work(call, &between);
    std::unique_lock lock(mutex_);
    close(call);
    call.all_left.wait(lock, [&] { return call.inside == 0; });
    if (call.error) std::rethrow_exception(call.error);
  }

 private:
  void open(Call& call, int workers) {
    std::lock_guard lock(mutex_);
    while (workers_ < workers && start_worker()) {
    }
    call.free_seats = std::min(call.free_seats, workers_);
    if (!call.free_seats) return;
    open_.push_back(&call);
    open_calls_.store(static_cast<int>(open_.size()), std::memory_order_relaxed);
    for (int i = 0; i < std::min(call.free_seats, sleeping_); i++) came_.notify_one();
  }

  // Where no more threads are to be had, those that there are do the work.
  bool start_worker() {
    try {
      std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    workers_++;
    return true;
  }

  void close(Call& call) {
    const auto at = std::find(open_.begin(), open_.end(), &call);
    if (at != open_.end()) open_.erase(at);
    open_calls_.store(static_cast<int>(open_.size()), std::memory_order_relaxed);
  }

  void work(Call& call, FunctionRef<void()>* between) {
    try {
      for (int64_t i; (i = call.next.fetch_add(1, std::memory_order_relaxed)) < call.count;) {
        call.task(i);
        if (between) (*between)();
      }
    } catch (...) {
      call.next.store(call.count, std::memory_order_relaxed);
      std::lock_guard lock(mutex_);
      if (!call.error) call.error = std::current_exception();
    }
  }

  void serve() {
    host::set_thread_name("rushlight");
    std::unique_lock lock(mutex_);
    for (;;) {
      if (open_.empty()) {
        look_around(lock);
        sleeping_++;
        came_.wait(lock, [&] { return !open_.empty(); });
        sleeping_--;
      }
      Call& call = *open_.front();
      t_number = ++call.seated;
      call.inside++;
      if (--call.free_seats == 0) close(call);
      lock.unlock();
      work(call, nullptr);
      lock.lock();
      if (--call.inside == 0) call.all_left.notify_one();
      // One that was worked through is closed by its caller, who may have to wait for the lock.
      if (call.next.load(std::memory_order_relaxed) >= call.count) close(call);
    }
  }

  void look_around(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    for (int i = 0; i < kLooks && open_calls_.load(std::memory_order_relaxed) == 0; i++)
      std::this_thread::yield();
    lock.lock();
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Call*> open_;         // those with free seats
  std::atomic<int> open_calls_{0};  // how many these are, for who has no lock
  int workers_ = 0, sleeping_ = 0;
};

// It is never destroyed: its threads may outlive whoever would do that.
Pool& pool() {
  static Pool& pool = *new Pool;
  return pool;
}

}  // namespace

void run_on_workers(int64_t count, int threads, FunctionRef<void(int64_t)> task,
                    FunctionRef<void()> between) {
  const int workers = static_cast<int>(std::min<int64_t>(threads, count)) - 1;
  Call call(task, count, workers);
  pool().run(call, workers, between);
}

int worker_number() { return t_number; }

}  // namespace rushlight::detail

#endif
