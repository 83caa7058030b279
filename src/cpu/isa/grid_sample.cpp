// Grid sampling, for each instruction set.
#include <cstring>

#include "cpu/isa/grid_sample_inl.h"
#include "cpu/isa/tile_inl.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Vectors passed between functions of this file alone.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T>
using SampleTaps = Taps<T, false>;

template <int K, bool all_inside, class T>
void gather(const SampleTaps<T>& taps, const T* plane, int n, T* out) {
  using C = compute_type<T>;
  if constexpr (K == 1) {
    for (int i = 0; i < n; ++i) out[i] = T(pixel<all_inside>(plane, taps.offset[0][i]));
    return;
  }
  C sum[kBlock] = {};
  for (int k = 0; k < K; ++k) {
    const int32_t* at = taps.offset[k];
    const C* w = taps.weight[k];
    for (int i = 0; i < n; ++i) sum[i] += w[i] * pixel<all_inside>(plane, at[i]);
  }
  for (int i = 0; i < n; ++i) out[i] = T(sum[i]);
}

// Pixels of four points in one register, which what is read never leaves for memory.
template <class T>
struct Four {
  static constexpr int kLanes = 4;
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef T type __attribute__((vector_size(kLanes * sizeof(T))));
  typedef Bits Masks __attribute__((vector_size(kLanes * sizeof(T))));

  template <class V, class E>
  static V load(const E* from) {
    V to;
    std::memcpy(&to, from, sizeof(V));
    return to;
  }
  static type kept(const type& pixels, const Bits* mask) { return type(Masks(pixels) & load<Masks>(mask)); }
  static type pixels(const T* plane, const int32_t* at) {
    return type{plane[at[0]], plane[at[1]], plane[at[2]], plane[at[3]]};
  }
  struct Both {
    type first, second;
  };
  // The pixels at the places and those behind them.
  static Both neighbours(const T* plane, const int32_t* at) {
    if constexpr (sizeof(T) == 4) {
      typedef double Two __attribute__((vector_size(2 * sizeof(double))));
      const auto two = [&](int i) {
        double low, high;  // two pixels each
        std::memcpy(&low, plane + at[i], sizeof(low));
        std::memcpy(&high, plane + at[i + 1], sizeof(high));
        return type(Two{low, high});
      };
      const type left = two(0), right = two(2);
      return {__builtin_shufflevector(left, right, 0, 2, 4, 6),
              __builtin_shufflevector(left, right, 1, 3, 5, 7)};
    } else {
      return {pixels(plane, at), pixels(plane + 1, at)};
    }
  }
};

// Points of a plane of floats straight from the grid, a register at a time, which leaves out the table of
// taps: where coordinates outside stay there, are moved to the border or turned around.
struct PlanePoints {
  static constexpr int kCount = Lanes<float>::count;
  static constexpr float kFar = 1 << 22;  // rounded by what floats of this size cannot hold
  using V = Lanes<float>::type;
  using I = Lanes<int32_t>::type;
  struct Axis {
    float scale, shift, low, high;
    float start, span;  // where points turn around, and after which distance again
    int32_t size;
  };
  Axis x, y;
  bool reflects, cubic;  // of cubic weights the taps are turned around, not the point
  bool border;
  I far{};  // whether a point lies farther out than is computed here
  alignas(kAligned) float own[2 * kBlock];

  static bool fit(const SamplePlan& p) {
    constexpr int64_t kMost = 1 << 22;
    return p.dims == 2 && p.size[1] < kMost && p.size[2] < kMost;
  }
  explicit PlanePoints(const SamplePlan& p)
      : x(axis(p, 2)),
        y(axis(p, 1)),
        reflects(p.padding == SamplePadding::Reflection),
        cubic(p.mode == SampleMode::Bicubic),
        border(p.padding == SamplePadding::Border) {}
  static Axis axis(const SamplePlan& p, size_t d) {
    const auto size = static_cast<float>(p.size[d]);
    const float scale = (p.align_corners ? size - 1 : size) / 2, shift = p.align_corners ? 0.0f : -0.5f,
                span = p.align_corners ? size - 1 : size;
    const auto length = static_cast<int32_t>(p.size[d]);
    const bool reflects = p.padding == SamplePadding::Reflection;
    if (p.mode != SampleMode::Bicubic && (reflects || p.padding == SamplePadding::Border))
      return {scale, shift, 0.0f, size - 1, shift, span, length};
    if (reflects) return {scale, shift, -kFar, kFar, shift, span, length};
    // As far out as no tap reaches back, which the weight 0 of a pixel that is infinite would show.
    return {scale, shift, -3.0f, size + 1, shift, span, length};
  }
  // NaN goes to the lower end.
  template <bool turns>
  [[gnu::always_inline]] V pixels(const Axis& a, V given) {
    V moved = (given + 1.0f) * a.scale + a.shift;
    if constexpr (turns) {
      const V distance = moved - a.start, length = distance < 0.0f ? -distance : distance;
      far |= ~(length < kFar);
      const V bounded = length < kFar ? length : V{};
      const I flips = __builtin_convertvector(bounded / a.span, I);
      const V extra = bounded - __builtin_convertvector(flips, V) * a.span;
      const V turned = (flips & 1) != 0 ? a.span - extra : extra;
      if (!cubic) moved = turned + a.start;
    } else if (cubic && border) {  // cubic weights of infinity are NaN
      far |= ~((moved < 0.0f ? -moved : moved) < std::numeric_limits<float>::infinity());
    }
    const V low = V{} + a.low, high = V{} + a.high;
    const V raised = moved > low ? moved : low;
    return raised < high ? raised : high;
  }
  bool any_far() const {
    int32_t any = 0;
    for (int i = 0; i < kCount; ++i) any |= far[i];
    return any != 0;
  }
  [[gnu::always_inline]] static I whole_below(V x) {
    const I cut = __builtin_convertvector(x, I);
    return cut + (__builtin_convertvector(cut, V) > x);  // a true comparison is -1
  }
  // The pixel that stands for the one at a place that may lie outside, where pixels are repeated.
  [[gnu::always_inline]] I repeated(I at, const Axis& a) const {
    if (!border) {
      const I distance = a.start < 0 ? at ^ (at >> 31) : (at < 0 ? -at : at);
      const auto span = static_cast<int32_t>(a.span);
      const I flips = __builtin_convertvector(__builtin_convertvector(distance, V) / a.span, I);
      const I extra = distance - flips * span;
      const I back = (a.start < 0 ? span - 1 : span) - extra;
      at = (flips & 1) != 0 ? back : extra;
    }
    return bounded(at, a.size - 1);
  }
  // f(i, x, y) for the coordinates in pixels of the points from i on, up to the end of a step.
  template <class F>
  [[gnu::always_inline]] inline void each(const float* grid, int n, F&& f) {
    if (n < kBlock) {
      std::copy_n(grid, 2 * n, own);
      for (int i = n; i % kStep != 0; ++i) own[2 * i] = own[2 * n - 2], own[2 * i + 1] = own[2 * n - 1];
      grid = own;
    }
    reflects ? each_of<true>(grid, n, f) : each_of<false>(grid, n, f);
  }
  template <bool turns, class F>
  [[gnu::always_inline]] inline void each_of(const float* grid, int n, F& f) {
    for (int i = 0; i < n; i += kCount) {
      V first, second;
      load(first, grid + 2 * i), load(second, grid + 2 * i + kCount);
      f(i, pixels<turns>(x, every_other<0>(first, second)), pixels<turns>(y, every_other<1>(first, second)));
    }
  }
  template <int from>
  [[gnu::always_inline]] static V every_other(V a, V b) {
    return [&]<int... k>(std::integer_sequence<int, k...>) {
      return __builtin_shufflevector(a, b, (2 * k + from)...);
    }(std::make_integer_sequence<int, kCount>{});
  }
  [[gnu::always_inline]] static I inside(I at, const Axis& a) { return (at >= 0) & (at < a.size); }
  [[gnu::always_inline]] static I bounded(I at, int32_t last) {
    const I raised = at > 0 ? at : I{};
    return raised < last ? raised : I{} + last;
  }
};

// Calls four(i) for the first of each four of n points, which gives their results.
template <class T, class F>
[[gnu::always_inline]] inline void each_four(int n, T* out, F&& four) {
  T rest[kBlock];
  T* to = n % Four<T>::kLanes == 0 ? out : rest;
  for (int i = 0; i < n; i += Four<T>::kLanes) {
    const auto results = four(i);
    std::memcpy(to + i, &results, sizeof(results));
  }
  if (to == rest) std::copy_n(rest, n, out);
}

// Taps k and k + 1 read neighbours of a line: one load of both is half the work. A tap outside gets the place
// beside its neighbour's and the mask 0.
template <int K, class T>
struct Reads {
  using Bits = typename Four<T>::Bits;
  alignas(kAligned) int32_t offset[K / 2][kBlock];
  alignas(kAligned) T weight[K][kBlock];
  alignas(kAligned) Bits mask[K][kBlock];

  static bool fit(const SamplePlan& p) { return p.step[2] == 1 && p.size[2] >= 2 && p.size[2] < (1 << 24); }

  // False where the taps of a point are no neighbours, at borders that repeat a pixel.
  [[gnu::noinline]] bool fill(const SampleTaps<T>& taps, int n) {
    int32_t any = 0;
    alignas(kAligned) int32_t apart[kBlock];
    for (int j = 0; j < K; j += 2) {
      const int32_t *a = taps.offset[j], *b = taps.offset[j + 1];
      const T *u = taps.weight[j], *v = taps.weight[j + 1];
      each_point(n, [&](int i) {
        const int32_t left = ~(a[i] >> 31), right = ~(b[i] >> 31), both = left & right;
        // At the left end the second pixel comes first, at the right end the first one second.
        const int32_t before = std::max(a[i] - 1, 0);
        offset[j / 2][i] = (a[i] & both) | (b[i] & right & ~left) | (before & ~right);
        weight[j][i] = one_of(both, u[i], v[i]);
        weight[j + 1][i] = one_of(both, v[i], u[i]);
        mask[j][i] = right, mask[j + 1][i] = left;
        apart[i] = (b[i] - a[i] - 1) & both;
      });
      any |= any_bits(apart, n);
    }
    return any == 0;
  }

  // As both fills, for a plane of floats.
  [[gnu::noinline]] void fill(PlanePoints& points, const SamplePlan& p, const float* grid, int n)
    requires(K == 4 && std::is_same_v<T, float>)
  {
    using V = PlanePoints::V;
    using I = PlanePoints::I;
    const auto line = static_cast<int32_t>(p.step[1]);
    const PlanePoints::Axis across = points.x, down = points.y;
    points.each(grid, n, [&](int i, V x, V y) {
      const I left = PlanePoints::whole_below(x), top = PlanePoints::whole_below(y),
              start = PlanePoints::bounded(left, across.size - 2);
      const V u = x - __builtin_convertvector(left, V), v = y - __builtin_convertvector(top, V);
      const I moved = start != left;
      const V first = moved ? u : 1.0f - u, second = moved ? 1.0f - u : u;
      const I sees_left = PlanePoints::inside(left, across),
              sees_right = PlanePoints::inside(left + 1, across);
      for (int row = 0; row < 2; ++row) {
        const I at = top + row, sees = PlanePoints::inside(at, down);
        const V share = row ? v : 1.0f - v;
        keep(PlanePoints::bounded(at, down.size - 1) * line + start, &offset[row][i]);
        keep(share * first, &weight[2 * row][i]), keep(share * second, &weight[2 * row + 1][i]);
        keep(sees & sees_right, &mask[2 * row][i]), keep(sees & sees_left, &mask[2 * row + 1][i]);
      }
    });
  }
  [[gnu::always_inline]] static void cubic(PlanePoints::V u, PlanePoints::V* weight) {
    using V = PlanePoints::V;
    constexpr float a = -0.75f;
    const V far = u + 1.0f, mirrored = 1.0f - u, last = 2.0f - u;
    weight[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    weight[1] = ((a + 2) * u - (a + 3)) * u * u + 1.0f;
    weight[2] = ((a + 2) * mirrored - (a + 3)) * mirrored * mirrored + 1.0f;
    weight[3] = ((a * last - 5 * a) * last + 8 * a) * last - 4 * a;
  }
  // The same where pixels outside are repeated ones: the taps of a line lie among four neighbours, each of
  // which gets the weights of all taps that fall on it.
  [[gnu::noinline]] void fill_repeated(PlanePoints& points, const SamplePlan& p, const float* grid, int n)
    requires(K == 16 && std::is_same_v<T, float>)
  {
    using V = PlanePoints::V;
    using I = PlanePoints::I;
    const auto line = static_cast<int32_t>(p.step[1]);
    const PlanePoints::Axis across = points.x, down = points.y;
    points.each(grid, n, [&](int i, V x, V y) {
      const I left = PlanePoints::whole_below(x), top = PlanePoints::whole_below(y);
      V of_column[4], of_line[4];
      I column[4];
      cubic(x - __builtin_convertvector(left, V), of_column);
      cubic(y - __builtin_convertvector(top, V), of_line);
      for (int k = 0; k < 4; ++k) column[k] = points.repeated(left + (k - 1), across);
      I start = I{} + (across.size - 4);
      for (int k = 0; k < 4; ++k) start = column[k] < start ? column[k] : start;
      V share[4] = {};
      I met[4] = {};
      for (int k = 0; k < 4; ++k)
        for (int m = 0; m < 4; ++m) {
          const I falls = column[k] - start == m;
          share[m] += falls ? of_column[k] : V{};
          met[m] |= falls;
        }
      for (int row = 0; row < 4; ++row) {
        const I begin = points.repeated(top + (row - 1), down) * line + start;
        for (int tap = 4 * row; tap < 4 * row + 4; ++tap) {
          if (tap % 2 == 0) keep(begin + tap % 4, &offset[tap / 2][i]);
          keep(of_line[row] * share[tap % 4], &weight[tap][i]), keep(met[tap % 4], &mask[tap][i]);
        }
      }
    });
  }
  // The same of four times four pixels.
  [[gnu::noinline]] void fill(PlanePoints& points, const SamplePlan& p, const float* grid, int n)
    requires(K == 16 && std::is_same_v<T, float>)
  {
    using V = PlanePoints::V;
    using I = PlanePoints::I;
    const auto line = static_cast<int32_t>(p.step[1]);
    const PlanePoints::Axis across = points.x, down = points.y;
    points.each(grid, n, [&](int i, V x, V y) {
      const I left = PlanePoints::whole_below(x), top = PlanePoints::whole_below(y);
      V of_column[4], of_line[4], first[2], second[2];
      I start[2], sees_left[2], sees_right[2];
      cubic(x - __builtin_convertvector(left, V), of_column);
      cubic(y - __builtin_convertvector(top, V), of_line);
      for (int pair = 0; pair < 2; ++pair) {
        const I at = left + (2 * pair - 1);
        start[pair] = PlanePoints::bounded(at, across.size - 2);
        const I moved = start[pair] != at;
        const V &a = of_column[2 * pair], &b = of_column[2 * pair + 1];
        first[pair] = moved ? b : a, second[pair] = moved ? a : b;
        sees_left[pair] = PlanePoints::inside(at, across);
        sees_right[pair] = PlanePoints::inside(at + 1, across);
      }
      for (int row = 0; row < 4; ++row) {
        const I at = top + (row - 1), sees = PlanePoints::inside(at, down),
                begin = PlanePoints::bounded(at, down.size - 1) * line;
        for (int pair = 0; pair < 2; ++pair) {
          const int tap = 4 * row + 2 * pair;
          keep(begin + start[pair], &offset[tap / 2][i]);
          keep(of_line[row] * first[pair], &weight[tap][i]);
          keep(of_line[row] * second[pair], &weight[tap + 1][i]);
          keep(sees & sees_right[pair], &mask[tap][i]), keep(sees & sees_left[pair], &mask[tap + 1][i]);
        }
      }
    });
  }
  template <class V, class E>
  [[gnu::always_inline]] static void keep(const V& from, E* to) {
    std::memcpy(to, &from, sizeof(V));
  }
  static T one_of(Bits first, T x, T y) {
    return std::bit_cast<T>((std::bit_cast<Bits>(x) & first) | (std::bit_cast<Bits>(y) & ~first));
  }
  void gather(const T* plane, int n, T* out) const {
    using V = typename Four<T>::type;
    each_four(n, out, [&](int i) {
      V sum{};
      for (int j = 0; j < K; j += 2) {
        const auto read = Four<T>::neighbours(plane, &offset[j / 2][i]);
        sum += Four<T>::template load<V>(&weight[j][i]) * Four<T>::kept(read.first, &mask[j][i]);
        sum += Four<T>::template load<V>(&weight[j + 1][i]) * Four<T>::kept(read.second, &mask[j + 1][i]);
      }
      return sum;
    });
  }
};

// The nearest pixel alone.
template <class T>
struct Reads<1, T> {
  using Bits = typename Four<T>::Bits;
  alignas(kAligned) int32_t offset[kBlock];
  alignas(kAligned) Bits mask[kBlock];

  static bool fit(const SamplePlan&) { return true; }
  [[gnu::noinline]] bool fill(const SampleTaps<T>& taps, int n) {
    const int32_t* at = taps.offset[0];
    each_point(n, [&](int i) {
      const int32_t inside = ~(at[i] >> 31);
      offset[i] = at[i] & inside, mask[i] = inside;
    });
    return true;
  }
  [[gnu::noinline]] void fill(PlanePoints& points, const SamplePlan& p, const float* grid, int n)
    requires std::is_same_v<T, float>
  {
    using V = PlanePoints::V;
    using I = PlanePoints::I;
    const auto line = static_cast<int32_t>(p.step[1]), step = static_cast<int32_t>(p.step[2]);
    const PlanePoints::Axis across = points.x, down = points.y;
    const auto nearest = [](V x) {
      constexpr float kRound = 0x1.8p23f;
      return __builtin_bit_cast(I, x + kRound) - std::bit_cast<int32_t>(kRound);
    };
    points.each(grid, n, [&](int i, V x, V y) {
      const I column = nearest(x), row = nearest(y);
      const I sees = PlanePoints::inside(column, across) & PlanePoints::inside(row, down);
      const I at = (row * line + column * step) & sees;
      std::memcpy(&offset[i], &at, sizeof(at)), std::memcpy(&mask[i], &sees, sizeof(sees));
    });
  }
  void gather(const T* plane, int n, T* out) const {
#if defined(__AVX2__)
    if constexpr (std::is_same_v<T, float>) return gather_floats(plane, n, out);
#endif
    each_four(n, out, [&](int i) { return Four<T>::kept(Four<T>::pixels(plane, offset + i), mask + i); });
  }
#if defined(__AVX2__)
  // By the processor's own gathering; up to the end of a step all is filled.
  void gather_floats(const float* plane, int n, float* out) const {
    float rest[kBlock];
    float* to = n % PlanePoints::kCount == 0 ? out : rest;
    for (int i = 0; i < n; i += PlanePoints::kCount) {
#if defined(__AVX512F__)
      const __m512i at = _mm512_load_si512(offset + i), inside = _mm512_load_si512(mask + i);
      _mm512_storeu_ps(
          to + i, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), _mm512_test_epi32_mask(inside, inside), at,
                                           plane, 4));
#else
      const __m256i at = _mm256_load_si256(reinterpret_cast<const __m256i*>(offset + i));
      const __m256 inside = _mm256_load_ps(reinterpret_cast<const float*>(mask + i));
      _mm256_storeu_ps(to + i, _mm256_mask_i32gather_ps(_mm256_setzero_ps(), plane, at, inside, 4));
#endif
    }
    if (to == rest) std::copy_n(rest, n, out);
  }
#endif
};

// Each tap by itself, where they are no neighbours.
template <int K, bool all_inside, class T>
void gather_apart(const SampleTaps<T>& taps, const T* plane, int n, T* out) {
  using V = typename Four<T>::type;
  each_four(n, out, [&](int i) {
    V sum{};
    for (int k = 0; k < K; ++k) {
      int32_t at[Four<T>::kLanes];
      typename Four<T>::Bits mask[Four<T>::kLanes];
      for (int l = 0; l < Four<T>::kLanes; ++l) {
        const int32_t inside = ~(taps.offset[k][i + l] >> 31);
        at[l] = taps.offset[k][i + l] & inside, mask[l] = inside;
      }
      const V pixels = Four<T>::pixels(plane, all_inside ? &taps.offset[k][i] : at);
      sum +=
          Four<T>::template load<V>(&taps.weight[k][i]) * (all_inside ? pixels : Four<T>::kept(pixels, mask));
    }
    return sum;
  });
}

template <int K, class T>
void sample(const SamplePlan& p, const T* input, const T* grid, T* out) {
  for_blocks(p, p.channels * 8, [&](int64_t b, int64_t first, int n) {
    const auto each_plane = [&](auto&& run) {
      for (int64_t c = 0; c < p.channels; ++c)
        run(input + b * p.batch_step + c * p.channel_step, out + (b * p.channels + c) * p.points + first);
    };
    if constexpr (std::is_same_v<T, float> && (K <= 4 || K == 16)) {
      const bool repeats = K == 16 && p.padding != SamplePadding::Zeros;
      if (PlanePoints::fit(p) && Reads<K, T>::fit(p) && (!repeats || p.size[2] >= 4)) {
        PlanePoints points(p);
        Reads<K, T> reads;
        const T* at = grid + (b * p.points + first) * p.dims;
        if constexpr (K == 16)
          repeats ? reads.fill_repeated(points, p, at, n) : reads.fill(points, p, at, n);
        else
          reads.fill(points, p, at, n);
        if (!points.any_far()) return each_plane([&](const T* plane, T* to) { reads.gather(plane, n, to); });
      }
    }
    SampleTaps<T> taps;
    taps.fill(p, grid + (b * p.points + first) * p.dims, n);
    if constexpr (std::is_floating_point_v<T>) {
      if (Reads<K, T> reads; Reads<K, T>::fit(p) && reads.fill(taps, n))
        each_plane([&](const T* plane, T* to) { reads.gather(plane, n, to); });
      else if (taps.all_inside)
        each_plane([&](const T* plane, T* to) { gather_apart<K, true>(taps, plane, n, to); });
      else
        each_plane([&](const T* plane, T* to) { gather_apart<K, false>(taps, plane, n, to); });
    } else if (taps.all_inside) {
      each_plane([&](const T* plane, T* to) { gather<K, true>(taps, plane, n, to); });
    } else {
      each_plane([&](const T* plane, T* to) { gather<K, false>(taps, plane, n, to); });
    }
  });
}

}  // namespace

void grid_sample(const SamplePlan& p, const void* input, const void* grid, void* out) {
  visit_dtype(FloatTypes{}, p.dtype, "grid_sampler", [&]<class T>(T) {
    visit_taps(p, [&](auto taps) {
      sample<taps()>(p, static_cast<const T*>(input), static_cast<const T*>(grid), static_cast<T*>(out));
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
