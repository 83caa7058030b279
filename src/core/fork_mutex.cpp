#include "core/fork_mutex.h"

#include <algorithm>
#include <vector>

#include "core/cpu_allocator.h"
#include "core/host/process.h"

namespace rushlight {

namespace {

/// Never destroyed: caches in static storage leave it late.
struct ForkMutexes {
  std::mutex list;
  std::vector<ForkMutex*> all;

  static ForkMutexes& get() {
    static ForkMutexes& instance = *new ForkMutexes;
    return instance;
  }
  void lock() {
    list.lock();
    for (ForkMutex* m : all) m->lock();
  }
  void unlock() {
    for (ForkMutex* m : all) m->unlock();
    list.unlock();
  }

 private:
  ForkMutexes() {
    // Who holds one of these may allocate, so they are locked before the allocator: handlers run in reverse.
    cpu_memory_stats();
    host::around_fork([] { get().lock(); }, [] { get().unlock(); }, [] { get().unlock(); });
  }
};

}  // namespace

ForkMutex::ForkMutex() {
  ForkMutexes& mutexes = ForkMutexes::get();
  std::lock_guard guard(mutexes.list);
  mutexes.all.push_back(this);
}

ForkMutex::~ForkMutex() {
  ForkMutexes& mutexes = ForkMutexes::get();
  std::lock_guard guard(mutexes.list);
  std::erase(mutexes.all, this);
}

}  // namespace rushlight
