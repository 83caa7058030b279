// What rows cost in batches of 1, 2, 4, … of them, learnt from the batches that were computed, and the size
// that pays.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rushlight::serve {

// Seconds of the last few runs of one kind.
class Costs {
 public:
  void add(double seconds) { last_[count_++ % kKept] = seconds; }
  uint64_t count() const { return count_; }
  // Another process makes a run longer, nothing makes it shorter.
  double least() const {
    if (!count_) return std::numeric_limits<double>::infinity();
    return *std::min_element(last_.begin(),
                             last_.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(count_, kKept)));
  }

 private:
  static constexpr size_t kKept = 4;
  std::array<double, kKept> last_{};
  uint64_t count_ = 0;
};

class BatchCosts {
 public:
  void add(int64_t rows, double seconds) {
    Size& size = sizes_[index(rows)];
    size.per_row.add(seconds / static_cast<double>(rows));
    size.last = ++batches_;
  }

  // How many of the rows that wait should be computed together: a power of two. What is not known is tried,
  // the largest first; later each size once in a while, since machines and their load change.
  int64_t choose(int64_t waiting) const {
    const size_t most = index(waiting);
    for (const size_t i : {most, size_t{0}})
      if (sizes_[i].per_row.count() < kTrials) return int64_t{1} << i;
    size_t chosen = most;
    if (batches_ % kRound == 0) {
      for (size_t i = 0; i < most; ++i)
        if (sizes_[i].last < sizes_[chosen].last) chosen = i;
    } else {
      // A larger batch needs fewer runs, so it may cost a little more.
      for (size_t i = most; i-- > 0;)
        if (sizes_[i].per_row.least() < 0.97 * sizes_[chosen].per_row.least()) chosen = i;
    }
    return int64_t{1} << chosen;
  }

 private:
  static constexpr size_t kSizes = 40, kTrials = 2;
  static constexpr uint64_t kRound = 16;
  struct Size {
    Costs per_row;
    uint64_t last = 0;
  };

  static size_t index(int64_t rows) {
    return std::min<size_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(rows, 1))) - 1,
                            kSizes - 1);
  }

  std::array<Size, kSizes> sizes_;
  uint64_t batches_ = 0;
};

}  // namespace rushlight::serve
