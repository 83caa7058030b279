// Sorting digit by digit, the least significant one first.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "cpu/buffer.h"

namespace rushlight::cpu {

// One pass: items ordered by kBits of their keys from `shift` on, in pieces that threads count and move
// apart. False where all keys share the digit.
template <class Traits, int kBits>
bool radix_pass(const CachedVector<typename Traits::Item>& items, CachedVector<typename Traits::Item>& sorted,
                int shift, int64_t pieces, std::vector<int64_t>& counts) {
  constexpr int64_t kDigits = int64_t{1} << kBits;
  const auto n = static_cast<int64_t>(items.size());
  const int64_t piece = (n + pieces - 1) / pieces;
  const auto digit = [&](const auto& item) { return Traits::key(item) >> shift & (kDigits - 1); };
  counts.assign(static_cast<size_t>(pieces * kDigits), 0);
  parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = p * piece; i < std::min(n, (p + 1) * piece); ++i)
        ++counts[p * kDigits + static_cast<int64_t>(digit(items[i]))];
  });
  int64_t before = 0;
  for (int64_t d = 0; d < kDigits; ++d) {
    const int64_t start = before;
    for (int64_t p = 0; p < pieces; ++p) before += std::exchange(counts[p * kDigits + d], before);
    if (before - start == n) return false;
  }
  parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t* next = counts.data() + p * kDigits;
      for (int64_t i = p * piece; i < std::min(n, (p + 1) * piece); ++i)
        sorted[next[digit(items[i])]++] = items[i];
    }
  });
  return true;
}

// Least significant digit first, which is stable; digits that all keys share are not moved.
template <class Traits>
void radix_sort(CachedVector<typename Traits::Item>& items, CachedVector<typename Traits::Item>& other) {
  using K = decltype(Traits::key(items[0]));
  const auto n = static_cast<int64_t>(items.size());
  K any = 0, all = ~K{0};
  for (const auto& item : items) any |= Traits::key(item), all &= Traits::key(item);
  const K varying = any ^ all;
  other.resize(items.size());
  const bool large = n >= (1 << 16);
  const int64_t pieces = large && !in_parallel_region() ? get_num_threads() : 1;
  std::vector<int64_t> counts;
  for (int shift = 0; shift < static_cast<int>(sizeof(K) * 8); shift += large ? 11 : 8) {
    if ((varying >> shift & (large ? 0x7ff : 0xff)) == 0) continue;
    if (large ? radix_pass<Traits, 11>(items, other, shift, pieces, counts)
              : radix_pass<Traits, 8>(items, other, shift, pieces, counts))
      items.swap(other);
  }
}

}  // namespace rushlight::cpu
