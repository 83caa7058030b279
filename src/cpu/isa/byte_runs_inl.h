// Products of bytes with AVX2 and without VNNI. The instruction that multiplies bytes adds pairs of products
// in words, which saturate. Of seven bits words hold the products of a step, and of several steps where the
// weights are small enough: such runs stand first in a panel, and a plan behind it says how long they are.
// High bits are multiplied apart, in the few steps that have some: words hold many such sums. Rows that are
// short, or have many high bits, are widened to words.
#pragma once
#include <algorithm>
#include <cstring>

#include "cpu/isa/byte_steps_inl.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__AVX2__) && !defined(__AVX512BW__)
struct Runs {
  using Element = uint8_t;
  static constexpr int64_t depth = 4;
};
template <class P>
constexpr bool kPlanned = std::is_same_v<P, Runs>;
constexpr int64_t kStepBytes = Runs::depth * kColumns;

// What stands behind a panel: how many runs have four steps, three, two and one; which step each place of the
// panel has, and which place each step.
constexpr int kRunLengths = 4;
struct Plan {
  int32_t *counts, *steps, *places;
  Plan(int8_t* panel, int64_t steps_in_panel)
      : counts(reinterpret_cast<int32_t*>(panel + steps_in_panel * kStepBytes)),
        steps(counts + kRunLengths),
        places(steps + steps_in_panel) {}
  static int64_t bytes(int64_t steps) {
    return (static_cast<int64_t>(sizeof(int32_t)) * (kRunLengths + 2 * steps) + 63) / 64 * 64;
  }
};

// Sums of pairs of factors above zero, and of pairs below.
struct PairSums {
  __m256i above[kVectors], below[kVectors];
  static PairSums of(const int8_t* step) {
    PairSums sums;
    const __m256i ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    for (int v = 0; v < kVectors; ++v) {
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(step + 32 * v));
      sums.above[v] = _mm256_maddubs_epi16(ones, _mm256_max_epi8(w, zero));
      sums.below[v] = _mm256_sub_epi16(sums.above[v], _mm256_maddubs_epi16(ones, w));
    }
    return sums;
  }
  // Whether words hold the products of both with numbers up to 127; takes the other's in if so.
  bool take(const PairSums& other) {
    constexpr int16_t kMost = 32767 / 127;
    PairSums both;
    __m256i most = _mm256_setzero_si256();
    for (int v = 0; v < kVectors; ++v) {
      both.above[v] = _mm256_add_epi16(above[v], other.above[v]);
      both.below[v] = _mm256_add_epi16(below[v], other.below[v]);
      most = _mm256_max_epi16(most, _mm256_max_epi16(both.above[v], both.below[v]));
    }
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi16(most, _mm256_set1_epi16(kMost)))) return false;
    *this = both;
    return true;
  }
};

// Orders the steps of a panel, and writes the plan behind them.
void plan_runs(int8_t* panel, int64_t steps) {
  constexpr int64_t kAhead = 16;  // steps that are looked at
  const Plan plan(panel, steps);
  auto* memory = static_cast<char*>(take_scratch(steps * (kStepBytes + 9)));
  auto* copy = reinterpret_cast<int8_t*>(memory);
  auto* runs = reinterpret_cast<int32_t*>(memory + steps * kStepBytes);  // steps of each, in the order found
  auto* lengths = reinterpret_cast<uint8_t*>(runs + steps);              // of each run
  auto* taken = lengths + steps;
  std::memcpy(copy, panel, static_cast<size_t>(steps * kStepBytes));
  std::memset(taken, 0, static_cast<size_t>(steps));
  std::fill_n(plan.counts, kRunLengths, 0);
  int64_t found = 0, number = 0;
  for (int64_t first = 0; first < steps; ++first) {
    if (taken[first]) continue;
    PairSums sums = PairSums::of(copy + first * kStepBytes);
    int length = 1;
    runs[found++] = static_cast<int32_t>(first);
    for (int64_t next = first + 1; next < std::min(steps, first + kAhead) && length < kRunLengths; ++next) {
      if (taken[next] || !sums.take(PairSums::of(copy + next * kStepBytes))) continue;
      taken[next] = 1, ++length;
      runs[found++] = static_cast<int32_t>(next);
    }
    lengths[number++] = static_cast<uint8_t>(length);
    ++plan.counts[kRunLengths - length];
  }
  int64_t at = 0;
  for (int length = kRunLengths; length > 0; --length) {
    const int32_t* run = runs;
    for (int64_t r = 0; r < number; run += lengths[r++])
      for (int i = 0; lengths[r] == length && i < length; ++i) plan.steps[at++] = run[i];
  }
  for (int64_t g = 0; g < steps; ++g) {
    std::memcpy(panel + g * kStepBytes, copy + plan.steps[g] * kStepBytes, kStepBytes);
    plan.places[plan.steps[g]] = static_cast<int32_t>(g);
  }
  give_scratch(memory);
}

// Activations are taken as low + 128 * high + offset, where `low` has seven bits and `high` is mostly zero:
// -1, 0 or 1. The offset puts the zero point where numbers around it need no high bits.
constexpr int64_t kFewSteps = 48;  // of rows that are not worth splitting
inline int32_t offset_for(int32_t zero_point, int64_t steps) {
  return steps < kFewSteps ? 0 : std::clamp(zero_point - 64, 0, 128);
}

// The steps in which some of a few rows have high bits, and what these are for each row there; plus one where
// an offset makes some of them negative.
struct HighBits {
  bool plus_one;
  int64_t count;
  int32_t *steps, *factors;
};
constexpr int kHighRows = 3;
constexpr int64_t kChunk = 32;  // bytes of a row that are looked at together

// A chunk of R rows.
template <int R>
[[gnu::always_inline]] inline void split_chunk(const char* const* rows, __m256i offset, int64_t step,
                                               char* low, int64_t low_row, HighBits& h) {
  const __m256i seven = _mm256_set1_epi8(127);
  __m256i any = _mm256_setzero_si256();
#pragma GCC unroll 3
  for (int r = 0; r < R; ++r) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r]));
    const __m256i y = _mm256_sub_epi8(x, offset);
    any = _mm256_or_si256(any, y);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(low + r * low_row), _mm256_and_si256(y, seven));
  }
  auto bits = static_cast<uint32_t>(_mm256_movemask_epi8(any));
  if (!bits) return;
  const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi8(1);
  alignas(32) int32_t high[R][kChunk / 4];
#pragma GCC unroll 3
  for (int r = 0; r < R; ++r) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r]));
    const __m256i beyond = _mm256_cmpgt_epi8(zero, _mm256_sub_epi8(x, offset)),
                  above = _mm256_cmpeq_epi8(_mm256_max_epu8(x, offset), x);  // else below
    const __m256i sign = _mm256_or_si256(_mm256_cmpeq_epi8(above, zero), one);
    _mm256_store_si256(reinterpret_cast<__m256i*>(high[r]),
                       _mm256_add_epi8(h.plus_one ? one : zero, _mm256_and_si256(beyond, sign)));
  }
  while (bits) {
    const int at = __builtin_ctz(bits) / 4;
    bits &= ~(15u << 4 * at);
    h.steps[h.count] = static_cast<int32_t>(step + at);
#pragma GCC unroll 3
    for (int r = 0; r < R; ++r) h.factors[h.count * R + r] = high[r][at];
    ++h.count;
  }
}
// Rows of `steps` steps each.
template <int R>
[[gnu::noinline]] void split_rows(const char* a, int64_t row, int64_t steps, int32_t offset_number, char* low,
                                  int64_t low_row, HighBits& h) {
  const __m256i offset = _mm256_set1_epi8(static_cast<char>(offset_number));
  const int64_t bytes = 4 * steps, whole = bytes / kChunk * kChunk;
  const char* rows[R];
  h.plus_one = offset_number != 0, h.count = 0;
  for (int64_t c = 0; c < whole; c += kChunk) {
    for (int r = 0; r < R; ++r) rows[r] = a + r * row + c;
    split_chunk<R>(rows, offset, c / 4, low + c, low_row, h);
  }
  if (whole == bytes) return;
  alignas(32) char last[R][kChunk];
  for (int r = 0; r < R; ++r) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(last[r]), offset);
    std::memcpy(last[r], a + r * row + whole, static_cast<size_t>(bytes - whole));
    rows[r] = last[r];
  }
  split_chunk<R>(rows, offset, whole / 4, low + whole, low_row, h);
}
template <int R>
bool has_high_bits(const char* a, int64_t row, int64_t bytes) {
  uint64_t all = 0;
  for (int r = 0; r < R; ++r, a += row) {
    int64_t c = 0;
    __m256i any = _mm256_setzero_si256();
    for (; c + kChunk <= bytes; c += kChunk)
      any = _mm256_or_si256(any, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + c)));
    all |= static_cast<uint32_t>(_mm256_movemask_epi8(any));
    for (; c < bytes; ++c) all |= static_cast<uint8_t>(a[c]) & 128u;
  }
  return all != 0;
}

template <int R, bool PlusOne>
[[gnu::noinline]] void add_high_steps(const HighBits& h, const int32_t* places, const int8_t* panel,
                                      __m256i* sums) {
  constexpr int64_t kMost = 64;  // steps whose sums words hold
  const __m256i weight = _mm256_set1_epi16(128), ones = _mm256_set1_epi8(1);
  for (int64_t i = 0; i < h.count;) {
    __m256i words[R][kVectors] = {}, once[kVectors] = {};
    for (const int64_t end = std::min(h.count, i + kMost); i < end; ++i) {
      const int8_t* step = panel + places[h.steps[i]] * kStepBytes;
      __m256i w[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        w[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(step + v * 32));
        if constexpr (PlusOne) once[v] = _mm256_add_epi16(once[v], _mm256_maddubs_epi16(ones, w[v]));
      }
#pragma GCC unroll 3
      for (int r = 0; r < R; ++r) {
        const __m256i factor = _mm256_set1_epi32(h.factors[i * R + r]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v)
          words[r][v] = _mm256_add_epi16(words[r][v], _mm256_maddubs_epi16(factor, w[v]));
      }
    }
#pragma GCC unroll 3
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sums[r * kVectors + v] = _mm256_add_epi32(
            sums[r * kVectors + v], _mm256_madd_epi16(_mm256_sub_epi16(words[r][v], once[v]), weight));
  }
}
template <int R>
void add_high_bits(const HighBits& h, const int32_t* places, const int8_t* panel, __m256i* sums) {
  h.plus_one ? add_high_steps<R, true>(h, places, panel, sums)
             : add_high_steps<R, false>(h, places, panel, sums);
}

// sums[R][kVectors] += one run of N steps.
template <int R, int N>
[[gnu::always_inline]] inline void add_run(const TileRows& a, const int32_t* order, const int8_t* panel,
                                           __m256i* sums) {
  __m256i words[R][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    const int64_t at = 4 * int64_t{order[i]};
    __m256i w[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      w[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + (i * kVectors + v) * 32));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i factor = _mm256_set1_epi32(a.read<int32_t>(r, at));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const __m256i product = _mm256_maddubs_epi16(factor, w[v]);
        words[r][v] = i ? _mm256_add_epi16(words[r][v], product) : product;
        // Here and now: compilers would multiply all steps first, and have no registers for that.
        asm volatile("" : "+x"(words[r][v]));
      }
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sums[r * kVectors + v] = _mm256_add_epi32(sums[r * kVectors + v], _mm256_madd_epi16(words[r][v], ones));
}
template <int R, int N>
[[gnu::always_inline]] inline void add_runs(const TileRows& a, const int32_t* counts, const int32_t*& order,
                                            const int8_t*& panel, __m256i* sums) {
  for (int32_t left = counts[kRunLengths - N]; left > 0; --left, order += N, panel += N * kStepBytes)
    add_run<R, N>(a, order, panel, sums);
}
// The products of R rows that have seven bits, and what there is `before` (null: nothing).
template <int R>
[[gnu::noinline]] void add_low_bits(const char* a, int64_t row, const int8_t* panel, const Plan& plan,
                                    const __m256i* before, Ints* out) {
  const int32_t* order = plan.steps;
  const TileRows rows(a, row);
  __m256i sums[R * kVectors] = {};
  add_runs<R, 4>(rows, plan.counts, order, panel, sums);
  add_runs<R, 3>(rows, plan.counts, order, panel, sums);
  add_runs<R, 2>(rows, plan.counts, order, panel, sums);
  add_runs<R, 1>(rows, plan.counts, order, panel, sums);
  if (before)
    for (int i = 0; i < R * kVectors; ++i) sums[i] = _mm256_add_epi32(sums[i], before[i]);
  std::memcpy(out, sums, sizeof(sums));
}

// Words, by half of a panel's columns: the sums of each lie in two lanes.
template <int R>
[[gnu::noinline]] void add_half(const char* a, int64_t row, int64_t steps, const int8_t* panel,
                                const int32_t* order, __m256i* out) {
  const TileRows rows(a, row);
  __m256i sums[R][2] = {};
  for (int64_t g = 0; g < steps; ++g, panel += kStepBytes) {
    const int64_t at = 8 * int64_t{order[g]};
    __m256i w[2];
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      w[v] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(panel + 16 * v)));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i factor = _mm256_set1_epi64x(rows.read<long long>(r, at));
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(factor, w[v]));
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) out[2 * r + v] = sums[r][v];
}
template <int R>
void add_words(const char* a, int64_t row, int64_t steps, const int8_t* panel, const Plan& plan, Ints* out) {
  for (int half = 0; half < kVectors; ++half) {
    __m256i sums[2 * R];
    add_half<R>(a, row, steps, panel + half * kStepBytes / kVectors, plan.steps, sums);
    for (int r = 0; r < R; ++r)
      out[r * kVectors + half] =
          Ints(_mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[2 * r], sums[2 * r + 1]), 0xd8));
  }
}
inline void widen(const char* bytes, int64_t n, int32_t offset, char* words) {
  const __m256i less = _mm256_set1_epi16(static_cast<int16_t>(offset));
  int64_t c = 0;
  for (; c + 16 <= n; c += 16)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(words + 2 * c),
        _mm256_sub_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + c))),
                         less));
  for (; c < n; ++c) {
    const auto word = static_cast<int16_t>(static_cast<uint8_t>(bytes[c]) - offset);
    std::memcpy(words + 2 * c, &word, sizeof(word));
  }
}

// A block of rows, split before its panels. What there is of each row is found by its number in the block.
class SplitRows {
 public:
  SplitRows(int64_t rows, int64_t steps)
      : rows_(rows),
        steps_(steps),
        row_((4 * steps + kChunk - 1) / kChunk * kChunk),
        memory_(static_cast<char*>(take_scratch(rows * (static_cast<int64_t>(sizeof(Group)) + 3 * row_)))) {}
  ~SplitRows() { give_scratch(memory_); }
  SplitRows(const SplitRows&) = delete;
  SplitRows& operator=(const SplitRows&) = delete;

  template <int R>
  void split(const char* a, int64_t row, int32_t offset, int64_t at) {
    Group& group = group_of(at);
    if (offset == 0 && !has_high_bits<R>(a, row, 4 * steps_)) {
      group.form = kAsIs, group.low = a, group.row = row;
      return;
    }
    group.form = kSplit, group.low = low(at), group.row = row_;
    if (steps_ >= kFewSteps && few_) {
      split_some<std::min(R, kHighRows)>(a, row, offset, at, group.high[0]);
      int64_t count = group.high[0].count;
      if constexpr (R > kHighRows) {
        split_some<R - kHighRows>(a + kHighRows * row, row, offset, at + kHighRows, group.high[1]);
        count = (count + group.high[1].count) / 2;
      }
      if (4 * count <= steps_) return;
    }
    few_ = false;
    group.form = kWords, group.low = lists(at), group.row = 2 * row_;
    for (int r = 0; r < R; ++r) widen(a + r * row, 4 * steps_, offset, lists(at + r));
  }
  // The sums of R rows, in a panel.
  template <int R>
  void multiply(const int8_t* panel, const Plan& plan, int64_t at, Ints* out) const {
    const Group& group = group_of(at);
    if (group.form == kWords) return add_words<R>(group.low, group.row, steps_, panel, plan, out);
    if (group.form == kAsIs) return add_low_bits<R>(group.low, group.row, panel, plan, nullptr, out);
    __m256i sums[R * kVectors] = {};
    add_high_bits<std::min(R, kHighRows)>(group.high[0], plan.places, panel, sums);
    if constexpr (R > kHighRows)
      add_high_bits<R - kHighRows>(group.high[1], plan.places, panel, sums + kHighRows * kVectors);
    add_low_bits<R>(group.low, group.row, panel, plan, sums, out);
  }

 private:
  enum Form { kAsIs, kSplit, kWords };
  struct Group {  // of a tile's rows
    Form form;
    const char* low;
    int64_t row;
    HighBits high[2];
  };
  template <int R>
  void split_some(const char* a, int64_t row, int32_t offset, int64_t at, HighBits& h) {
    h.steps = reinterpret_cast<int32_t*>(lists(at));
    h.factors = h.steps + row_ / 4;
    split_rows<R>(a, row, steps_, offset, low(at), row_, h);
  }
  Group& group_of(int64_t at) const { return reinterpret_cast<Group*>(memory_)[at]; }
  // Rows less their high bits; behind those, twice as long, lists of steps and factors, or words.
  char* low(int64_t at) const { return memory_ + rows_ * static_cast<int64_t>(sizeof(Group)) + at * row_; }
  char* lists(int64_t at) const { return low(rows_) + at * 2 * row_; }
  int64_t rows_, steps_, row_;  // bytes of a row
  bool few_ = true;             // high bits, as far as was seen
  char* memory_;
};
#else
template <class P>
constexpr bool kPlanned = false;
#endif

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
