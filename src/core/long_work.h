// Work whose amount an argument sets: refused before it begins where nothing holds its results, and open to
// interrupts on its way.
#pragma once
#include <atomic>
#include <cstdint>

namespace rushlight {

/// Set by the Python module: throws where the program was interrupted.
inline std::atomic<void (*)()> throw_if_interrupted{nullptr};

/// Asks now and then, at no cost that a loop over tensors would show.
class InterruptPoll {
 public:
  /// After a round that takes as long as so many short ones.
  void operator()(int64_t rounds = 1) {
    if ((rounds_ += rounds) < kRounds) return;
    rounds_ = 0;
    if (auto* ask = throw_if_interrupted.load(std::memory_order_relaxed)) ask();
  }

 private:
  static constexpr int64_t kRounds = 0x1000;
  int64_t rounds_ = 0;
};

/// Fails like the allocator if this machine has no memory for so many results of so many bytes.
void check_memory_for(int64_t count, int64_t bytes_each);
/// The same for tensors, of which each takes some hundred bytes whatever it views.
inline void check_memory_for_tensors(int64_t count) {
  if (count > (1 << 20)) check_memory_for(count, 256);
}

}  // namespace rushlight
