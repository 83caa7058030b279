// Ranks of few keys, without branches on their order.
#pragma once
#include <cstdint>

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

constexpr int kMostRanked = 16;

// How many of n keys come before each; of equal ones the first stays first. Both arrays have room for
// kMostRanked, and what lies behind n is read and written.
template <class Key>
using RankKeys = void (*)(const Key* keys, int n, Key* rank);
struct RankKernels {
  RankKeys<int32_t> narrow;
  RankKeys<int64_t> wide;
};

// How many keys are less than each, of up to kMostCounted: there is room for them, and what lies behind n is
// read and written. Equal keys have one number.
constexpr int kMostCounted = 64;

RL_DECLARE_VARIANTS(RankKernels rank_kernels(); RankKernels count_kernels();)

}  // namespace rushlight::cpu
