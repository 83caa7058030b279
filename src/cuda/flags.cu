// What depends on how many flags are set: they are counted in parts, the counts added up, and each part is
// written where it begins. In order, without a sort.
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/order.h"

namespace rushlight::cuda {
namespace {

constexpr int kTurns = 8, kWarp = 32;

// Parts of a vector: whole tiles of what a block looks at together.
struct Parts {
  int64_t n, length, count;
  explicit Parts(int64_t all) : n(all), count(flag_parts(all)) {
    constexpr int64_t kTile = 256 * kTurns;
    length = ((n + count - 1) / count + kTile - 1) / kTile * kTile;
  }
  RL_BOTH int64_t begin(int64_t part) const { return part * length < n ? part * length : n; }
};

// Flags: bool operator()(i).
template <class S>
struct NotZero {
  const S* in;
  RL_BOTH bool operator()(int64_t i) const { return number<bool>(in[i]); }
};
template <class S>
struct Changes {
  const S* in;
  RL_BOTH bool operator()(int64_t i) const {
    if (i == 0) return true;
    if constexpr (is_stored_half<S>)
      return !(widened(in[i]) == widened(in[i - 1]));
    else
      return !(in[i] == in[i - 1]);  // NaN equals nothing
  }
};

template <class Flag>
struct CountPart {
  Flag flag;
  Parts parts;
  int64_t* starts;
  RL_DEVICE void operator()(const Block& block) const {
    int64_t mine = 0;
    const int64_t end = parts.begin(block.index + 1);
    int64_t i = parts.begin(block.index) + block.thread;
    for (; i + (kTurns - 1) * int64_t{block.threads} < end; i += kTurns * int64_t{block.threads}) {
      bool set[kTurns];
      for (int j = 0; j < kTurns; ++j) set[j] = flag(i + j * int64_t{block.threads});
      for (int j = 0; j < kTurns; ++j) mine += set[j];
    }
    for (; i < end; i += block.threads) mine += flag(i);
    mine = block_reduce(block, mine, [](int64_t a, int64_t b) { return a + b; });
    if (block.thread == 0) starts[block.index] = mine;
  }
};
// One block: counts become starts, with the total behind them.
template <class T>
struct AddUp {
  T* starts;
  int64_t count;
  RL_DEVICE void operator()(const Block& block) const {
    const int64_t each = (count + block.threads - 1) / block.threads;
    const int64_t begin = each * block.thread < count ? each * block.thread : count;
    const int64_t end = begin + each < count ? begin + each : count;
    T sum = 0, total = 0;
    for (int64_t i = begin; i < end; ++i) sum += starts[i];
    sum = block_scan(block, sum, T(0), [](T a, T b) { return a + b; }, &total);
    for (int64_t i = begin; i < end; ++i) {
      const T own = starts[i];
      starts[i] = sum;
      sum += own;
    }
    if (block.thread == 0) starts[count] = total;
  }
};

// write(i, whether its flag is set, how many are set before it) for each i of a part.
template <class Flag, class Write>
struct WritePart {
  Flag flag;
  Write write;
  Parts parts;
  const int64_t* starts;
  RL_DEVICE void operator()(const Block& block) const {
    const int64_t begin = parts.begin(block.index), end = parts.begin(block.index + 1);
    int64_t before = starts[block.index];
#ifdef __CUDACC__
    // Each warp looks at consecutive flags, a lane at every 32nd of them.
    __shared__ int counts[kBlockThreads / kWarp];
    const int lane = static_cast<int>(block.thread % kWarp), warp = static_cast<int>(block.thread / kWarp);
    for (int64_t tile = begin; tile < end; tile += kTurns * int64_t{kBlockThreads}) {
      const int64_t first = tile + warp * (kTurns * kWarp) + lane;
      bool set[kTurns];
      unsigned votes[kTurns];
      int count = 0;
#pragma unroll
      for (int j = 0; j < kTurns; ++j) {
        const int64_t i = first + j * kWarp;
        set[j] = i < end && flag(i);
      }
#pragma unroll
      for (int j = 0; j < kTurns; ++j) {
        votes[j] = __ballot_sync(0xffffffffu, set[j]);
        count += __popc(votes[j]);
      }
      if (lane == 0) counts[warp] = count;
      __syncthreads();
      int64_t at = before;
      for (int w = 0; w < kBlockThreads / kWarp; ++w) {
        if (w < warp) at += counts[w];
        before += counts[w];
      }
      __syncthreads();
#pragma unroll
      for (int j = 0; j < kTurns; ++j) {
        const int64_t i = first + j * kWarp;
        if (i < end) write(i, set[j], at + __popc(votes[j] & ((1u << lane) - 1)));
        at += __popc(votes[j]);
      }
    }
#else
    for (int64_t i = begin; i < end; ++i) {
      const bool set = flag(i);
      write(i, set, before);
      before += set;
    }
#endif
  }
};

template <class Flag>
void count_parts(const Launch& at, const Flag& flag, int64_t n, int64_t* starts) {
  const Parts parts(n);
  for_each_block(at, parts.count, CountPart<Flag>{flag, parts, starts});
  for_each_block(at, 1, AddUp<int64_t>{starts, parts.count});
}
template <class Flag, class Write>
void write_parts(const Launch& at, const Flag& flag, const Write& write, int64_t n, const int64_t* starts) {
  const Parts parts(n);
  for_each_block(at, parts.count, WritePart<Flag, Write>{flag, write, parts, starts});
}

struct Coordinates {
  int64_t* out;
  int64_t sizes[kMostCoordinates];
  Divider dividers[kMostCoordinates];
  int rank;
  bool small;  // places below 2^31
  RL_BOTH void operator()(int64_t i, bool set, int64_t before) const {
    if (!set) return;
    int64_t* row = out + before * rank;
    if (small) {
      auto rest = static_cast<uint32_t>(i);
      for (int d = rank - 1; d > 0; --d) {
        const uint32_t above = dividers[d].divide(rest);
        row[d] = rest - above * dividers[d].divisor, rest = above;
      }
      row[0] = rest;
    } else {
      for (int d = rank - 1; d > 0; --d) row[d] = i % sizes[d], i /= sizes[d];
      row[0] = i;
    }
  }
};

template <class Word>
struct Pick {
  const Word* from;
  Word* out;
  RL_BOTH void operator()(int64_t i, bool set, int64_t before) const {
    if (set) out[before] = from[i];
  }
};

template <class Word>
struct Spread {
  const Word* from;
  Word* out;
  RL_BOTH void operator()(int64_t i, bool set, int64_t before) const {
    if (set) out[i] = from[before];
  }
};

template <class S>
struct WriteGroups {
  const S* in;
  const int64_t* order;
  S* values;
  int64_t *begins, *inverse;
  RL_BOTH void operator()(int64_t i, bool set, int64_t before) const {
    if (set && values) values[before] = in[i];
    if (set && begins) begins[before] = i;
    if (inverse) inverse[order ? order[i] : i] = before + set - 1;
  }
};
struct Lengths {
  const int64_t* begins;
  int64_t* counts;
  int64_t groups, n;
  RL_BOTH void operator()(int64_t g) const { counts[g] = (g + 1 < groups ? begins[g + 1] : n) - begins[g]; }
};

}  // namespace

void count_flags(const DeviceFlags& a, bool changes) {
  const Launch at{a.device, "count_flags"};
  visit_stored(a.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    const auto* in = static_cast<const S*>(a.in);
    changes ? count_parts(at, Changes<S>{in}, a.n, a.starts) : count_parts(at, NotZero<S>{in}, a.n, a.starts);
  });
}

void places_of_flags(const DeviceFlags& a, const int64_t* sizes, int rank, int64_t* out) {
  Coordinates c{out, {}, {}, rank, a.n < INT32_MAX};
  for (int d = 0; d < rank; ++d) {
    c.sizes[d] = sizes[d];
    if (c.small) c.dividers[d] = Divider(static_cast<uint32_t>(sizes[d]));
  }
  visit_stored(a.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    write_parts({a.device, "nonzero"}, NotZero<S>{static_cast<const S*>(a.in)}, c, a.n, a.starts);
  });
}

void pick_flagged(const DeviceFlags& a, const void* from, size_t size, void* out) {
  visit_word(size, [&](auto tag) {
    using Word = typename decltype(tag)::type;
    write_parts({a.device, "masked_select"}, NotZero<bool>{static_cast<const bool*>(a.in)},
                Pick<Word>{static_cast<const Word*>(from), static_cast<Word*>(out)}, a.n, a.starts);
  });
}

void spread_flagged(const DeviceFlags& a, const void* from, size_t size, void* out) {
  visit_word(size, [&](auto tag) {
    using Word = typename decltype(tag)::type;
    write_parts({a.device, "masked_scatter"}, NotZero<bool>{static_cast<const bool*>(a.in)},
                Spread<Word>{static_cast<const Word*>(from), static_cast<Word*>(out)}, a.n, a.starts);
  });
}

void groups_of_sorted(const DeviceFlags& a, int64_t count, const DeviceGroups& g) {
  const Launch at{a.device, "unique"};
  visit_stored(a.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    const auto* in = static_cast<const S*>(a.in);
    write_parts(at, Changes<S>{in},
                WriteGroups<S>{in, g.order, static_cast<S*>(g.values), g.begins, g.inverse}, a.n, a.starts);
  });
  if (g.counts) for_each_index(at, count, Lengths{g.begins, g.counts, count, a.n});
}

}  // namespace rushlight::cuda
