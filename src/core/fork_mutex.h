#pragma once
#include <mutex>

namespace rushlight {

/// A mutex that no forked child finds locked: fork() waits until whoever holds it is done. For caches, whose
/// other threads do not exist in the child; nobody may lock, make or free another while holding one.
class ForkMutex {
 public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace rushlight
