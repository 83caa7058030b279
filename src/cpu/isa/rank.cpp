// How keys of short lines rank, for each instruction set.
#include "cpu/rank.h"

#include <algorithm>
#include <cstring>

#include "cpu/isa/register_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// A register of keys against all others at a time: a key comes before those that are greater, and before
// equal ones behind it.
template <int kBytes, class Key>
[[gnu::always_inline]] inline void rank_all(const Key* keys, int n, Key* rank) {
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(Key));
  typedef Key Lanes __attribute__((vector_size(kBytes)));
  Lanes behind;  // how far the lanes are behind key i
  for (int lane = 0; lane < kLanes; ++lane) behind[lane] = lane;
  for (int first = 0; first < n; first += kLanes) {
    Lanes own, before{}, left = behind + static_cast<Key>(first);
    std::memcpy(&own, keys + first, sizeof(own));
    for (int i = 0; i < n; ++i, left -= 1) {
      const Lanes key = Lanes{} + keys[i];
      before -= (key < own) | ((key == own) & (left > 0));
    }
    std::memcpy(rank + first, &before, sizeof(before));
  }
}

// Few wide keys take less time in two registers of 32 bytes than in one of 64.
template <class Key>
void rank(const Key* keys, int n, Key* to) {
  constexpr int kFew = 8, kHalf = 32;
  if (sizeof(Key) == sizeof(int64_t) && kRegisterBytes > kHalf && n <= kFew)
    rank_all<std::min(kHalf, kRegisterBytes)>(keys, n, to);
  else
    rank_all<kRegisterBytes>(keys, n, to);
}

// Some registers at a time, which stay where they are while all keys pass.
template <int kSome, class Key>
[[gnu::always_inline]] inline void count_some(const Key* keys, int n, const Key* from, Key* less) {
  typedef Key Lanes __attribute__((vector_size(kRegisterBytes)));
  Lanes own[kSome], before[kSome] = {};
  std::memcpy(&own, from, sizeof(own));
  for (int i = 0; i < n; ++i) {
    const Lanes key = Lanes{} + keys[i];
    for (int r = 0; r < kSome; ++r) before[r] -= key < own[r];
  }
  std::memcpy(less, &before, sizeof(before));
}
template <class Key>
void count_less(const Key* keys, int n, Key* less) {
  constexpr int kLanes = kRegisterBytes / static_cast<int>(sizeof(Key));
  int first = 0;
  for (; n - first > kLanes; first += 2 * kLanes) count_some<2>(keys, n, keys + first, less + first);
  if (first < n) count_some<1>(keys, n, keys + first, less + first);
}

}  // namespace

RankKernels rank_kernels() { return {&rank<int32_t>, &rank<int64_t>}; }
RankKernels count_kernels() { return {&count_less<int32_t>, &count_less<int64_t>}; }

}  // namespace rushlight::cpu::RL_ISA
