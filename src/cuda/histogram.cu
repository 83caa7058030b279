// Extremes and counts of whole vectors. Counts are kept in the memory of teams while they are few enough, in
// several tables so that warps seldom meet.
#include <algorithm>

#include "cuda/memory.h"
#include "cuda/order.h"
#include "cuda/team.h"
#include "cuda/update.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {
namespace {

constexpr int kAhead = 4;

template <class S>
using Compared = std::conditional_t<is_stored_half<S>, float, S>;

// NaN stays once it is there.
template <class S>
struct Both {
  S least, greatest;
};
template <class S>
struct JoinBoth {
  RL_BOTH Both<S> operator()(const Both<S>& a, const Both<S>& b) const {
    using C = Compared<S>;
    const C low = number<C>(a.least), other_low = number<C>(b.least);
    const C high = number<C>(a.greatest), other_high = number<C>(b.greatest);
    return {low < other_low || low != low ? a.least : b.least,
            high > other_high || high != high ? a.greatest : b.greatest};
  }
};
template <class S>
struct ExtremesOfPart {
  const S* in;
  Both<S>* out;
  int64_t n, parts;
  RL_DEVICE void operator()(const Block& block) const {
    const JoinBoth<S> join;
    const int64_t step = int64_t{block.threads} * parts;
    int64_t i = block.index * block.threads + block.thread;
    Both<S> both{in[0], in[0]};
    for (; i + (kAhead - 1) * step < n; i += kAhead * step) {
      S x[kAhead];
      for (int j = 0; j < kAhead; ++j) x[j] = in[i + j * step];
      for (int j = 0; j < kAhead; ++j) both = join(both, Both<S>{x[j], x[j]});
    }
    for (; i < n; i += step) both = join(both, Both<S>{in[i], in[i]});
    both = block_reduce(block, both, join);
    if (block.thread == 0) out[block.index] = both;
  }
};
template <class S>
struct ExtremesOfParts {
  const Both<S>* parts;
  Both<S>* out;
  int64_t count;
  RL_DEVICE void operator()(const Block& block) const {
    const JoinBoth<S> join;
    Both<S> both = parts[0];
    for (int64_t i = block.thread; i < count; i += block.threads) both = join(both, parts[i]);
    both = block_reduce(block, both, join);
    if (block.thread == 0) *out = both;
  }
};

RL_BOTH inline void add_one(uint32_t* count) {
#ifdef __CUDA_ARCH__
  atomicAdd(count, 1u);
#else
  ++*count;
#endif
}
RL_BOTH inline void add_count(int64_t* count, int64_t value) {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(count), static_cast<unsigned long long>(value));
#else
  *count += value;
#endif
}

// The bin of an element, -1 for none.
template <class S>
struct Own {
  int64_t bins;
  RL_BOTH int64_t operator()(S x) const { return static_cast<int64_t>(x); }
};
// In the input's precision, so that elements near an edge fall on the same side as on the CPU.
template <class T>
struct Between {
  T from, range, scale;
  double low, high;
  int64_t bins;
  Between(double least, double greatest, int64_t count)
      : from(static_cast<T>(least)),
        range(static_cast<T>(greatest) - from),
        scale(static_cast<T>(count)),
        low(least),
        high(greatest),
        bins(count) {}
  RL_BOTH int64_t operator()(T x) const {
    const auto value = static_cast<double>(x);
    if (!(value >= low && value <= high)) return -1;
    const auto bin = static_cast<int64_t>((x - from) * scale / range);
    return bin < bins - 1 ? bin : bins - 1;
  }
};

template <class S, class Bin>
struct CountInTables {
  const S* in;
  Bin bin;
  int64_t* counts;
  int64_t n, teams, bins;
  uint32_t tables;
  RL_DEVICE void operator()(const Team& team) const {
    auto* all = reinterpret_cast<uint32_t*>(team.memory);
    team.each([&](uint32_t t) {
      for (int64_t b = t; b < bins * tables; b += kTeamThreads) all[b] = 0;
    });
    team.each([&](uint32_t t) {
      uint32_t* table = all + t / 32 % tables * bins;
      const int64_t step = teams * kTeamThreads;
      int64_t i = team.index * kTeamThreads + t;
      for (; i + (kAhead - 1) * step < n; i += kAhead * step) {
        S x[kAhead];
        for (int j = 0; j < kAhead; ++j) x[j] = in[i + j * step];
        for (int j = 0; j < kAhead; ++j) count(table, x[j]);
      }
      for (; i < n; i += step) count(table, in[i]);
    });
    team.each([&](uint32_t t) {
      for (int64_t b = t; b < bins; b += kTeamThreads) {
        int64_t sum = 0;
        for (uint32_t table = 0; table < tables; ++table) sum += all[table * bins + b];
        if (sum) add_count(counts + b, sum);
      }
    });
  }
  RL_DEVICE void count(uint32_t* table, S x) const {
    const int64_t at = bin(x);
    if (at >= 0) add_one(table + at);
  }
};
template <class S, class Bin>
struct CountEach {
  const S* in;
  Bin bin;
  int64_t* counts;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t at = bin(in[i]);
    if (at >= 0) add_count(counts + at, 1);
  }
};
template <class S, class Bin, class W>
struct AddWeights {
  const S* in;
  Bin bin;
  const W* weights;
  W* sums;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t at = bin(in[i]);
    if (at >= 0) add_to(sums + at, weights[i]);
  }
};

template <class S, class Bin>
void count_as(const DeviceBins& a, const Bin& bin) {
  const Launch at{a.device, "histogram"};
  const S* in = static_cast<const S*>(a.in);
  if (a.weights && a.counts_dtype == DType::Float32)
    return for_each_index(at, a.n,
                          AddWeights<S, Bin, float>{in, bin, static_cast<const float*>(a.weights),
                                                    static_cast<float*>(a.counts)});
  if (a.weights)
    return for_each_index(at, a.n,
                          AddWeights<S, Bin, double>{in, bin, static_cast<const double*>(a.weights),
                                                     static_cast<double*>(a.counts)});
  auto* counts = static_cast<int64_t*>(a.counts);
  constexpr int64_t kMostBins = 8192, kMostTeams = 1056, kTeamLeast = 4096;
  const int64_t teams = std::clamp<int64_t>(a.n / kTeamLeast, 1, kMostTeams);
  if (a.bins > kMostBins || a.n < a.bins || a.n / teams > UINT32_MAX)
    return for_each_index(at, a.n, CountEach<S, Bin>{in, bin, counts});
  const auto tables = static_cast<uint32_t>(std::clamp<int64_t>(kMostBins / a.bins / 2, 1, kTeamWarps));
  for_each_team(at, teams, static_cast<size_t>(a.bins * tables) * sizeof(uint32_t),
                CountInTables<S, Bin>{in, bin, counts, a.n, teams, a.bins, tables});
}

template <class S>
void extremes_as(const Launch& at, const S* in, int64_t n, Both<S>* both) {
  constexpr int64_t kMostParts = 1056, kLeast = 4096;
  const int64_t parts = std::clamp<int64_t>(n / kLeast, 1, kMostParts);
  const Workspace memory(static_cast<size_t>(parts) * sizeof(Both<S>), at.device);
  auto* partial = static_cast<Both<S>*>(memory.data());
  for_each_block(at, parts, ExtremesOfPart<S>{in, partial, n, parts});
  for_each_block(at, 1, ExtremesOfParts<S>{partial, both, parts});
}

}  // namespace

void extremes(int device, DType dtype, const void* in, int64_t n, void* both) {
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    extremes_as({device, "extremes"}, static_cast<const S*>(in), n, static_cast<Both<S>*>(both));
  });
}

void count_bins(const DeviceBins& a) {
  if (a.between)
    return a.dtype == DType::Float32 ? count_as<float>(a, Between<float>(a.low, a.high, a.bins))
                                     : count_as<double>(a, Between<double>(a.low, a.high, a.bins));
  visit_stored(a.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<S> && !std::is_same_v<S, bool>) count_as<S>(a, Own<S>{a.bins});
  });
}

}  // namespace rushlight::cuda
