// The loops of reductions, included by isa/reduce_*.cpp only: everything is in the namespace of the
// instruction set. A formula F has types In and Acc and static functions init(), step(acc, x, centre),
// combine(a, b), finish(acc, params).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/isa/half_inl.h"
#include "cpu/reduce.h"

namespace rushlight::cpu::RL_ISA {

// Walks the index space `sizes` in row-major order, following the offsets of N arrays.
template <int N>
class Odometer {
 public:
  Odometer(IntList sizes, std::array<IntList, N> strides, int64_t start)
      : sizes_(sizes), strides_(strides), index_(sizes.size()) {
    for (size_t d = sizes.size(); d-- > 0 && start > 0; start /= sizes[d]) {
      index_[d] = start % sizes[d];
      for (int k = 0; k < N; ++k) offset[k] += index_[d] * strides_[k][d];
    }
  }
  void next() { advance(1); }
  // Moves on by `n` inside the innermost dimension, which must not be passed but may be completed.
  void advance(int64_t n) {
    size_t d = sizes_.size();
    if (d == 0) return;
    --d;
    index_[d] += n;
    for (int k = 0; k < N; ++k) offset[k] += n * strides_[k][d];
    while (index_[d] == sizes_[d] && d > 0) {
      index_[d] = 0;
      for (int k = 0; k < N; ++k) offset[k] += strides_[k][d - 1] - sizes_[d] * strides_[k][d];
      ++index_[--d];
    }
  }
  int64_t innermost() const { return index_.back(); }
  int64_t offset[N] = {};

 private:
  IntList sizes_;
  std::array<IntList, N> strides_;
  Dims index_;
};

// Elements of some bytes, `stride` apart, side by side: every second one is what vectors can pick.
template <size_t Bytes>
[[gnu::noinline]] void gather_strided(const void* from, int64_t n, int64_t stride, std::byte* to) {
  const auto* x = static_cast<const std::byte*>(from);
  if (stride == 2)
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * int64_t{Bytes}, x + i * int64_t{2 * Bytes}, Bytes);
  else
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(to + i * int64_t{Bytes}, x + i * stride * int64_t{Bytes}, Bytes);
}

template <class F>
struct ReduceLoops {
  using In = typename F::In;
  using Acc = typename F::Acc;
  using Out = typename F::Out;
  // Registers of the widest kind that run side by side: more for steps that take longer.
  static constexpr int kLanes = std::max<int>(8, F::kRegisters * 64 / static_cast<int>(sizeof(Acc)));
  static constexpr int kFew = 8;                         // of them for lines that are shorter
  static constexpr int64_t kLeaf = 64 * kLanes;          // elements summed before pairwise combination
  static constexpr int64_t kShort = 8;                   // lines too short to be worth a call each
  static constexpr int64_t kBlock = 4096 / sizeof(Acc);  // columns that are reduced together: a page of a row
  static constexpr int kRows = 4;                        // rows of them that are read together,
  static constexpr int64_t kRun = 64;                    // so many columns at a time

  // --- along contiguous elements
  [[gnu::noinline]] static Acc leaf(const In* x, int64_t n, Acc centre) {
    if constexpr (requires { F::sum_of(x, n); }) return F::sum_of(x, n);
    if constexpr (requires { F::kSticksToNan; } && std::is_floating_point_v<In>)
      if (Acc extreme; n >= kFew && extreme_without_nan(x, n, extreme)) return extreme;
    if constexpr (requires { F::kSticksToNan; } && (std::is_same_v<In, BFloat16> || std::is_same_v<In, Half>))
      return extreme_of_halves(x, n);
    if (n < kLanes) return few(x, n, centre);
    Acc lanes[kLanes];
    for (int l = 0; l < kLanes; ++l) lanes[l] = F::init();
    int64_t i = 0;
    if constexpr (std::is_same_v<In, Half> && std::is_same_v<Acc, float> && kLanes % kHalfBlock == 0) {
      for (; i + kLanes <= n; i += kLanes) {
        Acc wide[kLanes];
        for (int l = 0; l < kLanes; l += kHalfBlock) widen_block(x + i + l, wide + l);
        for (int l = 0; l < kLanes; ++l) lanes[l] = F::step(lanes[l], wide[l], centre);
      }
    } else {
      for (; i + kLanes <= n; i += kLanes)
        for (int l = 0; l < kLanes; ++l) lanes[l] = F::step(lanes[l], x[i + l], centre);
    }
    fold<kLanes / 2>(lanes);
    return i == n ? lanes[0] : F::combine(lanes[0], few(x + i, n - i, centre));
  }
  // Fewer than a block. The lanes stay in registers, because no loop over them has a variable length.
  [[gnu::noinline]] static Acc few(const In* x, int64_t n, Acc centre) {
    Acc last = F::init();
    int64_t i = 0;
    if (n >= kFew) {
      Acc lanes[kFew];
      for (int l = 0; l < kFew; ++l) lanes[l] = F::init();
      for (; i + kFew <= n; i += kFew) {
        if constexpr (std::is_same_v<In, Half> && std::is_same_v<Acc, float> && kFew % kHalfBlock == 0) {
          Acc wide[kFew];
          for (int l = 0; l < kFew; l += kHalfBlock) widen_block(x + i + l, wide + l);
          for (int l = 0; l < kFew; ++l) lanes[l] = F::step(lanes[l], wide[l], centre);
        } else {
          for (int l = 0; l < kFew; ++l) lanes[l] = F::step(lanes[l], x[i + l], centre);
        }
      }
      fold<kFew / 2>(lanes);
      last = lanes[0];
    }
    for (; i < n; ++i) last = F::step(last, x[i], centre);
    return last;
  }
  // Largest and smallest numbers as the processor finds them, which passes over NaN: sums tell whether one
  // was among them, or infinities of both signs.
  static bool extreme_without_nan(const In* x, int64_t n, Acc& result) {
    result = F::init();
    Acc sum = 0;
    const int64_t done = n >= kLanes ? extreme_of_blocks<kLanes>(x, n, result, sum) : 0;
    extreme_of_blocks<kFew>(x + done, n - done, result, sum);
    for (int64_t i = n - (n - done) % kFew; i < n; ++i) {
      result = F::closer(x[i], result);
      sum += x[i];
    }
    return sum == sum;
  }
  template <int Lanes>
  [[gnu::always_inline]] static int64_t extreme_of_blocks(const In* x, int64_t n, Acc& result, Acc& sum) {
    if (n < Lanes) return 0;
    Acc lanes[Lanes], sums[Lanes] = {};
    for (int l = 0; l < Lanes; ++l) lanes[l] = F::init();
    int64_t i = 0;
    for (; i + Lanes <= n; i += Lanes)
      for (int l = 0; l < Lanes; ++l) {
        lanes[l] = F::closer(x[i + l], lanes[l]);
        sums[l] += x[i + l];
      }
    fold<Lanes / 2>(sums, [](Acc a, Acc b) { return a + b; });
    fold<Lanes / 2>(lanes, [](Acc a, Acc b) { return F::closer(b, a); });
    result = F::closer(lanes[0], result);
    sum += sums[0];
    return i;
  }
  // By whole numbers in the same order as halves: their bits, flipped but for the sign where that is set.
  // What lies beyond the infinities is no number.
  static int16_t half_order(int16_t bits) { return static_cast<int16_t>(bits ^ (bits >> 15 & 0x7fff)); }
  static Acc extreme_of_halves(const In* x, int64_t n) {
    constexpr int kAtOnce = 64;
    const auto key = [&](int64_t i) { return half_order(static_cast<int16_t>(x[i].bits)); };
    const auto number = [](int16_t order) {
      In half;
      half.bits = static_cast<uint16_t>(half_order(order));
      return static_cast<Acc>(half);
    };
    int16_t low = key(0), high = low, lows[kAtOnce], highs[kAtOnce];
    int64_t i = 0;
    if (n >= kAtOnce) {
      std::fill_n(lows, kAtOnce, low), std::fill_n(highs, kAtOnce, high);
      for (; i + kAtOnce <= n; i += kAtOnce)
        for (int l = 0; l < kAtOnce; ++l) {
          const int16_t k = key(i + l);
          lows[l] = std::min(lows[l], k), highs[l] = std::max(highs[l], k);
        }
      for (int l = 0; l < kAtOnce; ++l) low = std::min(low, lows[l]), high = std::max(high, highs[l]);
    }
    for (; i < n; ++i) low = std::min(low, key(i)), high = std::max(high, key(i));
    const Acc least = number(low), greatest = number(high);
    return least != least ? least : greatest != greatest ? greatest : F::closer(least, greatest);
  }
  template <int Width, class Combine = decltype(&F::combine)>
  [[gnu::always_inline]] static void fold(Acc* lanes, Combine combine = F::combine) {
    if constexpr (Width > 0) {
      for (int l = 0; l < Width; ++l) lanes[l] = combine(lanes[l], lanes[l + Width]);
      fold<Width / 2>(lanes, combine);
    }
  }
  static Acc contiguous(const In* x, int64_t n, Acc centre) {  // pairwise: the error grows with log n
    if (n <= kLeaf) return leaf(x, n, centre);
    const int64_t half = n / 2 / kLanes * kLanes;
    const Acc left = contiguous(x, half, centre);
    return F::combine(left, contiguous(x + half, n - half, centre));
  }
  static Acc strided(const In* x, int64_t n, int64_t stride, Acc centre) {
    constexpr int64_t kGathered = 512;
    if (n > kGathered) {
      const int64_t half = n / 2 / kLanes * kLanes;
      const Acc left = strided(x, half, stride, centre);
      return F::combine(left, strided(x + half * stride, n - half, stride, centre));
    }
    alignas(64) std::byte adjacent[kGathered * sizeof(In)];
    gather_strided<sizeof(In)>(x, n, stride, adjacent);
    return leaf(reinterpret_cast<const In*>(adjacent), n, centre);
  }
  // Rows of a few adjacent elements: summed side by side first.
  static Acc short_rows(const In* x, int64_t stride, int64_t rows, int64_t width, Acc centre) {
    Acc acc[kBlock];
    for (int64_t j = 0; j < width; ++j) acc[j] = F::init();
    for (int64_t i = 0; i < rows; ++i, x += stride)
      for (int64_t j = 0; j < width; ++j) acc[j] = F::step(acc[j], x[j], centre);
    while (width > 1) {
      const int64_t half = (width + 1) / 2;
      for (int64_t j = 0; j < width / 2; ++j) acc[j] = F::combine(acc[j], acc[half + j]);
      width = half;
    }
    return acc[0];
  }
  // Reduced dimensions [level, end), of which the first counts from lo to hi.
  static Acc row(const ReduceNest& nest, const In* x, size_t level, int64_t lo, int64_t hi, Acc centre) {
    const int64_t stride = nest.reduced_in[level];
    if (level + 1 == nest.reduced.size())
      return stride == 1 ? contiguous(x + lo, hi - lo, centre)
                         : strided(x + lo * stride, hi - lo, stride, centre);
    const int64_t inner = nest.reduced[level + 1];
    if (level + 2 == nest.reduced.size() && nest.reduced_in[level + 1] == 1 && inner <= 2 * kLanes &&
        inner <= kBlock && hi - lo >= 4 && hi - lo <= 64)
      return short_rows(x + lo * stride, stride, hi - lo, inner, centre);
    if (hi - lo > 8) {
      const int64_t middle = lo + (hi - lo) / 2;
      const Acc left = row(nest, x, level, lo, middle, centre);
      return F::combine(left, row(nest, x, level, middle, hi, centre));
    }
    Acc acc = F::init();
    for (int64_t i = lo; i < hi; ++i)
      acc = F::combine(acc, row(nest, x + i * stride, level + 1, 0, nest.reduced[level + 1], centre));
    return acc;
  }

  // --- `width` adjacent outputs at once, walking down the reduced dimensions

  // Some rows at a time: fewer visits to the accumulators, and memory is asked for more than it takes to
  // answer. Runs of constant length keep the accumulators of a run in registers.
  static void step_rows(const In* x, int64_t stride, int64_t width, const Acc* centre, Acc* acc) {
    const auto step = [&](int64_t j) {
      Acc a = acc[j];
      for (int r = 0; r < kRows; ++r) a = F::step(a, x[r * stride + j], F::kCentred ? centre[j] : Acc());
      acc[j] = a;
    };
    int64_t first = 0;
    for (; first + kRun <= width; first += kRun)
#pragma GCC ivdep
      for (int64_t j = first; j < first + kRun; ++j) step(j);
#pragma GCC ivdep
    for (int64_t j = first; j < width; ++j) step(j);
  }
  static void columns(const ReduceNest& nest, const In* x, int64_t x_stride, int64_t width, size_t level,
                      int64_t lo, int64_t hi, const Acc* centre, Acc* acc) {
    const bool innermost = level + 1 == nest.reduced.size();
    const int64_t stride = nest.reduced_in[level];
    Acc other[kBlock];
    if (hi - lo > (innermost ? 64 : 8)) {
      const int64_t middle = lo + (hi - lo) / 2;
      columns(nest, x, x_stride, width, level, lo, middle, centre, acc);
      columns(nest, x, x_stride, width, level, middle, hi, centre, other);
      for (int64_t j = 0; j < width; ++j) acc[j] = F::combine(acc[j], other[j]);
      return;
    }
    for (int64_t j = 0; j < width; ++j) acc[j] = F::init();
    int64_t i = lo;
    if constexpr (std::is_floating_point_v<In>)  // the others gain less than their code takes
      if (innermost && x_stride == 1)
        for (; i + kRows <= hi; i += kRows) step_rows(x + i * stride, stride, width, centre, acc);
    for (; i < hi; ++i) {
      const In* line = x + i * stride;
      if (!innermost) {
        columns(nest, line, x_stride, width, level + 1, 0, nest.reduced[level + 1], centre, other);
        for (int64_t j = 0; j < width; ++j) acc[j] = F::combine(acc[j], other[j]);
      } else if (x_stride == 1 && std::is_same_v<In, Half>) {
        widen(line, other, width);
        for (int64_t j = 0; j < width; ++j)
          acc[j] = F::step(acc[j], other[j], F::kCentred ? centre[j] : Acc());
      } else if (x_stride == 1) {
        for (int64_t j = 0; j < width; ++j)
          acc[j] = F::step(acc[j], line[j], F::kCentred ? centre[j] : Acc());
      } else {
        for (int64_t j = 0; j < width; ++j)
          acc[j] = F::step(acc[j], line[j * x_stride], F::kCentred ? centre[j] : Acc());
      }
    }
  }

  static bool walks_columns(const ReduceNest& nest) {
    if (nest.kept.empty() || nest.kept.back() < 2) return false;
    if (nest.reduced.size() == 1 && nest.reduced[0] <= kShort && nest.kept.back() >= 2 * kShort) return true;
    const int64_t kept = std::abs(nest.kept_in.back()), reduced = std::abs(nest.reduced_in.back());
    return kept != 0 && (reduced == 0 || kept < reduced);  // what repeats is no way along memory
  }
  static void run(const ReduceNest& nest, int64_t begin, int64_t end, const ReduceParams& params,
                  void* partial_memory) {
    const In* in = static_cast<const In*>(nest.in);
    Out* out = static_cast<Out*>(nest.out);
    Acc* partial = static_cast<Acc*>(partial_memory);
    const Acc* centres = static_cast<const Acc*>(params.centre);
    Odometer<2> at(nest.kept, {IntList(nest.kept_in), IntList(nest.kept_out)}, begin);
    if (!walks_columns(nest)) {
      const bool lines = nest.reduced.size() == 1 && nest.reduced_in[0] == 1 && nest.reduced[0] <= kLeaf;
      for (int64_t o = begin; o < end; ++o, at.next()) {
        const Acc centre = F::kCentred ? centres[at.offset[1]] : Acc();
        const Acc acc = lines ? leaf(in + at.offset[0], nest.reduced[0], centre)
                              : row(nest, in + at.offset[0], 0, 0, nest.reduced[0], centre);
        if (partial)
          partial[o - begin] = acc;
        else
          out[at.offset[1]] = F::finish(acc, params);
      }
      return;
    }
    Acc acc[kBlock], centre[F::kCentred ? kBlock : 1];
    for (int64_t o = begin; o < end;) {
      const int64_t width = std::min({kBlock, nest.kept.back() - at.innermost(), end - o});
      const int64_t out_stride = nest.kept_out.back();
      if constexpr (F::kCentred)
        for (int64_t j = 0; j < width; ++j) centre[j] = centres[at.offset[1] + j * out_stride];
      columns(nest, in + at.offset[0], nest.kept_in.back(), width, 0, 0, nest.reduced[0], centre, acc);
      for (int64_t j = 0; j < width; ++j) {
        if (partial)
          partial[o - begin + j] = acc[j];
        else
          out[at.offset[1] + j * out_stride] = F::finish(acc[j], params);
      }
      o += width;
      at.advance(width);
    }
  }
  static void finish(const ReduceNest& nest, const void* memory, int64_t pieces, const ReduceParams& params) {
    const Acc* partial = static_cast<const Acc*>(memory);
    Out* out = static_cast<Out*>(nest.out);
    Odometer<1> at(nest.kept, {IntList(nest.kept_out)}, 0);
    for (int64_t o = 0; o < nest.outputs; ++o, at.next()) {
      Acc acc = partial[o];
      for (int64_t p = 1; p < pieces; ++p) acc = F::combine(acc, partial[p * nest.outputs + o]);
      out[at.offset[0]] = F::finish(acc, params);
    }
  }
  static void flat(const void* in, int64_t n, void* out, const ReduceParams& params) {
    const Acc centre = F::kCentred ? *static_cast<const Acc*>(params.centre) : Acc();
    *static_cast<Out*>(out) = F::finish(contiguous(static_cast<const In*>(in), n, centre), params);
  }
};

template <class F>
constexpr ReduceKernel reduce_kernel_of() {
  using L = ReduceLoops<F>;
  return {&L::run, &L::finish, &L::flat, sizeof(typename F::Acc)};
}

// What most formulas share: In -> accumulator of the compute type -> In.
template <class T>
struct FormulaBase {
  using In = T;
  using Acc = compute_type<T>;
  using Out = T;
  static constexpr bool kCentred = false;
  static constexpr int kRegisters = 2;
  static Acc load(T x) { return static_cast<Acc>(x); }
  static Out finish(Acc a, const ReduceParams&) { return static_cast<Out>(a); }
};

// The kernel of Formula<T> for the T that `dtype` names, or an empty one.
template <template <class> class Formula, class... Ts>
ReduceKernel pick_kernel(TypeList<Ts...>, DType dtype) {
  ReduceKernel kernel;
  (void)((dtype == dtype_of<Ts> && ((kernel = reduce_kernel_of<Formula<Ts>>()), true)) || ...);
  return kernel;
}

}  // namespace rushlight::cpu::RL_ISA
