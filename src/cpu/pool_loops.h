// The loops of pooling, included by isa/pool.cpp and pool.cpp only.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "core/parallel.h"
#include "cpu/isa/half_inl.h"
#include "cpu/pool.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T>
T lowest() {
  if constexpr (is_floating_v<T>)
    return T(-std::numeric_limits<compute_type<T>>::infinity());
  else
    return std::numeric_limits<T>::lowest();
}
template <class C>
bool beats(C value, C best) {
  return value > best || value != value;  // NaN wins
}

// Calls f(d, h, w, index in the output plane) for outputs [begin, end) of a plane.
template <class F>
void for_outputs(const PoolPlan& p, int64_t begin, int64_t end, F&& f) {
  const int64_t height = p.axis[1].out, width = p.axis[2].out;
  int64_t w = begin % width, h = begin / width % height, d = begin / width / height;
  for (int64_t i = begin; i < end; ++i) {
    f(d, h, w, i);
    if (++w == width) {
      w = 0;
      if (++h == height) h = 0, ++d;
    }
  }
}

// Calls f(position in the input plane) for the window of output (d, h, w).
template <class F>
inline void for_window(const PoolPlan& p, int64_t d, int64_t h, int64_t w, F&& f) {
  const auto& [da, ha, wa] = p.axis;
  for (int64_t z = da.start[d]; z < da.end[d]; z += da.step)
    for (int64_t y = ha.start[h]; y < ha.end[h]; y += ha.step) {
      const int64_t row = (z * ha.in + y) * wa.in;
      for (int64_t x = wa.start[w]; x < wa.end[w]; x += wa.step) f(row + x);
    }
}

inline int64_t first_position(const PoolPlan& p, int64_t d, int64_t h, int64_t w) {
  return (p.axis[0].start[d] * p.axis[1].in + p.axis[1].start[h]) * p.axis[2].in + p.axis[2].start[w];
}

inline double divisor_of(const PoolPlan& p, int64_t d, int64_t h, int64_t w) {
  if (p.divisor != 0) return p.divisor;
  return static_cast<double>(p.axis[0].count[d] * p.axis[1].count[h] * p.axis[2].count[w]);
}

// Whole numbers that a double holds are divided by it, which is many times as fast and gives the same.
inline int64_t quotient(int64_t sum, int64_t divisor) {
  constexpr int64_t kHeld = int64_t{1} << 51;
  if (sum > -kHeld && sum < kHeld)
    return static_cast<int64_t>(static_cast<double>(sum) / static_cast<double>(divisor));
  return sum / divisor;
}
template <class C>
C quotient(C sum, C divisor) {
  return sum / divisor;
}

inline int64_t plane_grain(int64_t plane) {
  return std::max<int64_t>(1, kGrainSize / 4 / std::max<int64_t>(plane, 1));
}

// Splits by planes; in channels-last by outputs of all batches. `memory_of` makes what a thread works in.
template <class Memory, class F>
void for_planes(const PoolPlan& p, Memory&& memory_of, F&& f) {
  parallel_for(0, p.batch * p.channels, plane_grain(p.in_plane() + p.out_plane()),
               [&](int64_t begin, int64_t end) {
                 auto memory = memory_of();
                 for (int64_t plane = begin; plane < end; ++plane) f(plane, memory);
               });
}
template <class F>
void for_pixels(const PoolPlan& p, F&& f) {
  const int64_t out = p.out_plane();
  parallel_for(0, p.batch * out, plane_grain(p.channels * 8), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t n = begin / out, stop = std::min(end, (n + 1) * out);
      for_outputs(p, begin - n * out, stop - n * out,
                  [&](int64_t d, int64_t h, int64_t w, int64_t i) { f(n, d, h, w, i); });
      begin = stop;
    }
  });
}
// Backward in channels-last: windows overlap, so the work is split by batch and blocks of channels.
template <class F>
void for_channel_blocks(const PoolPlan& p, F&& f) {
  constexpr int64_t kBlock = 64;
  const int64_t blocks = (p.channels + kBlock - 1) / kBlock;
  parallel_for(0, p.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i % blocks * kBlock;
      f(i / blocks, from, std::min(kBlock, p.channels - from));
    }
  });
}

// Outputs [first, last) of an axis whose windows are of one size and follow each other at one distance.
struct Regular {
  int64_t first = 0, last = 0, size = 0, distance = 1;
};
inline Regular regular_part(const PoolAxis& a) {
  Regular r;
  const int64_t middle = a.out / 2;
  r.size = a.end[middle] - a.start[middle];
  r.distance = a.out < 2 ? 1 : middle ? a.start[middle] - a.start[middle - 1] : a.start[1] - a.start[0];
  const auto fits = [&](int64_t o) {
    return a.end[o] - a.start[o] == r.size && a.start[o] == a.start[middle] + (o - middle) * r.distance;
  };
  for (r.first = middle; r.first > 0 && fits(r.first - 1);) --r.first;
  for (r.last = middle + 1; r.last < a.out && fits(r.last);) ++r.last;
  return r;
}

// The greatest of the regular part's windows in one row of outputs, and where it is if `at` is given:
// position by position of the windows, for all of them at once. Distance 0 stands for any.
template <int64_t Distance, bool kPlaces, class T, class C>
void compare_windows(const T* x, int64_t position, int64_t distance, int64_t count, bool first, C* best,
                     int32_t* at) {
  const int64_t step = Distance ? Distance : distance;
  const T* from = x + position;
  if (first) {
    for (int64_t i = 0; i < count; ++i) best[i] = static_cast<C>(from[i * step]);
    if constexpr (kPlaces)
      for (int64_t i = 0; i < count; ++i) at[i] = static_cast<int32_t>(position + i * step);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const C value = static_cast<C>(from[i * step]);
    const bool better = (value > best[i]) | (value != value);
    best[i] = better ? value : best[i];
    if constexpr (kPlaces) at[i] = better ? static_cast<int32_t>(position + i * step) : at[i];
  }
}
template <bool kPlaces, class T, class C>
void max_windows(const PoolPlan& p, const Regular& regular, const T* x, int64_t d, int64_t h, C* best,
                 int32_t* at) {
  const auto& [da, ha, wa] = p.axis;
  const int64_t count = regular.last - regular.first;
  bool first = true;
  for (int64_t z = da.start[d]; z < da.end[d]; z += da.step)
    for (int64_t y = ha.start[h]; y < ha.end[h]; y += ha.step)
      for (int64_t k = 0; k < regular.size; k += wa.step) {
        const int64_t position = (z * ha.in + y) * wa.in + wa.start[regular.first] + k;
        if (regular.distance == 1)
          compare_windows<1, kPlaces>(x, position, 1, count, first, best, at);
        else if (regular.distance == 2)
          compare_windows<2, kPlaces>(x, position, 2, count, first, best, at);
        else
          compare_windows<0, kPlaces>(x, position, regular.distance, count, first, best, at);
        first = false;
      }
  if (!first) return;
  std::fill_n(best, count, static_cast<C>(lowest<T>()));  // of windows without a pixel
  if constexpr (kPlaces)
    for (int64_t i = 0; i < count; ++i)
      at[i] = static_cast<int32_t>(first_position(p, d, h, regular.first + i));
}

// One output in channels-last, by blocks of channels. Places are as narrow as the values, so that both fit
// the same lanes.
template <class Place, bool kPlaces, class T>
void max_of_pixels(const PoolPlan& p, const T* in, int64_t d, int64_t h, int64_t w, T* out,
                   int64_t* indices) {
  using C = compute_type<T>;
  constexpr int64_t kBlock = 64;
  [[maybe_unused]] const auto first = static_cast<Place>(first_position(p, d, h, w));
  for (int64_t from = 0; from < p.channels; from += kBlock) {
    const int64_t count = std::min(kBlock, p.channels - from);
    C best[kBlock];
    [[maybe_unused]] Place place[kBlock];
    std::fill_n(best, kBlock, static_cast<C>(lowest<T>()));
    if constexpr (kPlaces) std::fill_n(place, kBlock, first);
    for_window(p, d, h, w, [&](int64_t k) {
      const T* x = in + k * p.channels + from;
      for (int64_t c = 0; c < count; ++c) {
        const C value = static_cast<C>(x[c]);
        const bool better = (value > best[c]) | (value != value);
        best[c] = better ? value : best[c];
        if constexpr (kPlaces) place[c] = better ? static_cast<Place>(k) : place[c];
      }
    });
    for (int64_t c = 0; c < count; ++c) out[from + c] = T(best[c]);
    if constexpr (kPlaces)
      for (int64_t c = 0; c < count; ++c) indices[from + c] = place[c];
  }
}

#if defined(__AVX2__)
constexpr size_t kVectorBytes = 32;  // wider vectors than there are become single numbers
#else
constexpr size_t kVectorBytes = 16;
#endif

// The greatest of a window's rows and the first place of it, a vector of each at a time: the last of a row
// starts earlier, so that it ends with the row. False where there is NaN.
template <int Lanes, class C>
[[gnu::noinline]] bool max_of_rows(const PoolPlan& p, const C* x, int64_t d, int64_t h, int64_t w,
                                   int64_t& place) {
  using I = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
  using Values [[gnu::vector_size(Lanes * sizeof(C))]] = C;
  using Places [[gnu::vector_size(Lanes * sizeof(C))]] = I;
  const auto& [da, ha, wa] = p.axis;
  const int64_t first = wa.start[w], n = wa.end[w] - first;
  Values best = Values{} + lowest<C>();
  Places places{}, unequal{}, iota{};
  for (int l = 0; l < Lanes; ++l) iota[l] = static_cast<I>(l);
  places += static_cast<I>(first_position(p, d, h, w));
  for (int64_t z = da.start[d]; z < da.end[d]; z += da.step)
    for (int64_t y = ha.start[h]; y < ha.end[h]; y += ha.step) {
      const int64_t row = (z * ha.in + y) * wa.in + first;
      for (int64_t k = 0; k < n; k += Lanes) {
        const int64_t at = row + std::min(k, n - Lanes);
        Values value;
        std::memcpy(&value, x + at, sizeof(value));
        const Places better = value > best;
        best = better ? value : best;
        places = better ? iota + static_cast<I>(at) : places;
        unequal |= value != value;
      }
    }
  C greatest = best[0];
  I found = places[0], any = unequal[0];
  for (int l = 1; l < Lanes; ++l) {
    const bool before = best[l] > greatest || (best[l] == greatest && places[l] < found);
    greatest = before ? best[l] : greatest, found = before ? places[l] : found, any |= unequal[l];
  }
  place = found;
  return any == 0;
}
// Of windows whose rows have as many elements side by side.
template <class C>
bool max_by_vectors(const PoolPlan& p, const C* x, int64_t d, int64_t h, int64_t w, int64_t& place) {
  const auto& [da, ha, wa] = p.axis;
  const int64_t n = wa.end[w] - wa.start[w];
  constexpr int kFew = 16 / sizeof(C), kMany = kVectorBytes / sizeof(C);
  if (n < 4 || da.start[d] >= da.end[d] || ha.start[h] >= ha.end[h] || wa.step != 1 ||
      p.in_plane() > std::numeric_limits<int32_t>::max())
    return false;
  return n >= kMany ? max_of_rows<kMany>(p, x, d, h, w, place) : max_of_rows<kFew>(p, x, d, h, w, place);
}

// The greatest of one window, and where it is.
template <class C>
std::pair<C, int64_t> max_of_window(const PoolPlan& p, const C* x, int64_t d, int64_t h, int64_t w) {
  const auto& [da, ha, wa] = p.axis;
  if constexpr (std::is_floating_point_v<C>)
    if (int64_t found; max_by_vectors(p, x, d, h, w, found)) return {x[found], found};
  C best = static_cast<C>(lowest<C>());
  int64_t place = first_position(p, d, h, w);
  for (int64_t z = da.start[d]; z < da.end[d]; z += da.step)
    for (int64_t y = ha.start[h]; y < ha.end[h]; y += ha.step) {
      const int64_t row = (z * ha.in + y) * wa.in, end = row + wa.end[w];
      for (int64_t k = row + wa.start[w]; k < end; k += wa.step)
        if (beats(x[k], best)) [[unlikely]]  // a branch: a choice would wait for the one before
          best = x[k], place = k;
    }
  return {best, place};
}

// One row of outputs; `at` is only read if places are wanted.
template <bool kPlaces, class T, class C>
void max_row(const PoolPlan& p, const Regular& regular, const C* x, int64_t d, int64_t h, C* values,
             int32_t* places, T* y, int64_t* at) {
  const int64_t first = regular.first, count = regular.last - first;
  if (count > 0) {
    max_windows<kPlaces>(p, regular, x, d, h, values, places);
    narrow(values, y + first, count);
    if constexpr (kPlaces)
      for (int64_t k = 0; k < count; ++k) at[first + k] = places[k];
  }
  for (int64_t w = 0; w < p.axis[2].out; ++w) {
    if (w == first && count > 0) w = regular.last;
    if (w == p.axis[2].out) break;
    const auto [best, place] = max_of_window(p, x, d, h, w);
    y[w] = T(best);
    if constexpr (kPlaces) at[w] = place;
  }
}

// A plane in the type that is computed in, which halves become by vectors here.
template <class T, class C>
const C* plane_as(const T* plane, int64_t n, C* wide) {
  if constexpr (std::is_same_v<T, C>) {
    return plane;
  } else {
    widen(plane, wide, n);
    return wide;
  }
}

constexpr int64_t kFewWindows = 6;  // which are not worth loops side by side

template <bool kPlaces, class T>
void max_planes(const PoolPlan& p, const T* in, T* out, int64_t* indices) {
  using C = compute_type<T>;
  const int64_t in_plane = p.in_plane(), out_plane = p.out_plane();
  const PoolAxis& wa = p.axis[2];
  const bool counts = wa.out >= kFewWindows && in_plane < std::numeric_limits<int32_t>::max();
  Regular regular = counts ? regular_part(wa) : Regular();
  if (regular.last - regular.first < kFewWindows) regular = Regular();
  const int64_t count = regular.last - regular.first, wide = std::is_same_v<T, C> ? 0 : in_plane;
  struct Memory {
    std::unique_ptr<C[]> values;
    std::unique_ptr<int32_t[]> places;
  };
  const auto memory_of = [&] {
    return Memory{std::unique_ptr<C[]>(new C[static_cast<size_t>(count + wide)]),
                  std::unique_ptr<int32_t[]>(kPlaces ? new int32_t[static_cast<size_t>(count)] : nullptr)};
  };
  for_planes(p, memory_of, [&](int64_t plane, Memory& memory) {
    C* values = memory.values.get();
    const C* x = plane_as(in + plane * in_plane, in_plane, values + count);
    int64_t row = plane * out_plane;
    for (int64_t d = 0; d < p.axis[0].out; ++d)
      for (int64_t h = 0; h < p.axis[1].out; ++h, row += wa.out)
        max_row<kPlaces>(p, regular, x, d, h, values, memory.places.get(), out + row,
                         kPlaces ? indices + row : nullptr);
  });
}

template <bool kPlaces, class T>
void max_pixels(const PoolPlan& p, const T* in, T* out, int64_t* indices) {
  const int64_t in_plane = p.in_plane(), out_plane = p.out_plane();
  for_pixels(p, [&](int64_t n, int64_t d, int64_t h, int64_t w, int64_t i) {
    const T* image = in + n * in_plane * p.channels;
    const int64_t pixel = (n * out_plane + i) * p.channels;
    if (in_plane <= std::numeric_limits<int32_t>::max())
      max_of_pixels<int32_t, kPlaces>(p, image, d, h, w, out + pixel, kPlaces ? indices + pixel : nullptr);
    else
      max_of_pixels<int64_t, kPlaces>(p, image, d, h, w, out + pixel, kPlaces ? indices + pixel : nullptr);
  });
}

template <class T>
void max_pool(const PoolPlan& p, const void* in_data, void* out_data, int64_t* indices) {
  const T* in = static_cast<const T*>(in_data);
  T* out = static_cast<T*>(out_data);
  if (p.channels_last)
    return indices ? max_pixels<true>(p, in, out, indices) : max_pixels<false>(p, in, out, indices);
  return indices ? max_planes<true>(p, in, out, indices) : max_planes<false>(p, in, out, indices);
}

// The sums over a window's planes and rows, for each column of the input that it may look at: in `sums`, or
// the row itself where it is the only one.
template <class T, class C>
const C* sum_rows(const PoolPlan& p, const T* plane, int64_t d, int64_t h, C* sums) {
  const auto& [da, ha, wa] = p.axis;
  const int64_t width = wa.in;
  if constexpr (std::is_same_v<T, C>)
    if (da.start[d] + da.step >= da.end[d] && ha.start[h] + ha.step >= ha.end[h] && da.start[d] < da.end[d] &&
        ha.start[h] < ha.end[h])
      return plane + (da.start[d] * ha.in + ha.start[h]) * width;
  for (int64_t x = 0; x < width; ++x) sums[x] = 0;
  for (int64_t z = da.start[d]; z < da.end[d]; z += da.step)
    for (int64_t y = ha.start[h]; y < ha.end[h]; y += ha.step) {
      const T* row = plane + (z * ha.in + y) * width;
      for (int64_t x = 0; x < width; ++x) sums[x] += static_cast<C>(row[x]);
    }
  return sums;
}

// Long windows in several sums at once, none of which waits for the others.
template <class C>
C sum_span(const C* x, int64_t n, int64_t step) {
  constexpr int64_t kSums = 8;
  C sums[kSums] = {};
  int64_t i = 0;
  if (step == 1)
    for (; i + kSums <= n; i += kSums)
      for (int64_t k = 0; k < kSums; ++k) sums[k] += x[i + k];
  for (; i < n; i += step) sums[0] += x[i];
  for (int64_t k = 1; k < kSums; ++k) sums[0] += sums[k];
  return sums[0];
}

// One row of outputs from the sums over rows: windows of the regular part side by side.
template <class C>
void sum_windows(const PoolAxis& a, const Regular& regular, const C* sums, C* out) {
  for (int64_t w = 0; w < a.out; ++w) {
    const bool beside = w >= regular.first && w < regular.last;
    out[w] = beside ? C(0) : sum_span(sums + a.start[w], a.end[w] - a.start[w], a.step);
  }
  const int64_t count = regular.last - regular.first;
  C* to = out + regular.first;
  for (int64_t k = 0; k < regular.size; k += a.step) {
    const C* from = sums + a.start[regular.first] + k;
    if (regular.distance == 2)
      for (int64_t i = 0; i < count; ++i) to[i] += from[2 * i];
    else
      for (int64_t i = 0; i < count; ++i) to[i] += from[i * regular.distance];
  }
}

template <class T>
void mean_pool(const PoolPlan& p, const void* in_data, void* out_data) {
  using C = std::conditional_t<is_floating_v<T>, compute_type<T>, int64_t>;
  const T* in = static_cast<const T*>(in_data);
  T* out = static_cast<T*>(out_data);
  const int64_t in_plane = p.in_plane(), out_plane = p.out_plane();
  if (!p.channels_last) {
    const PoolAxis& wa = p.axis[2];
    Regular regular = wa.out > 0 ? regular_part(wa) : Regular();
    if (regular.last - regular.first < kFewWindows) regular = Regular();
    const auto memory_of = [&] {
      return std::unique_ptr<C[]>(new C[static_cast<size_t>(wa.in + 2 * wa.out)]);
    };
    for_planes(p, memory_of, [&](int64_t plane, const std::unique_ptr<C[]>& memory) {
      C *rows = memory.get(), *sums = rows + wa.in, *divisors = sums + wa.out;
      T* y = out + plane * out_plane;
      for (int64_t d = 0; d < p.axis[0].out; ++d)
        for (int64_t h = 0; h < p.axis[1].out; ++h, y += wa.out) {
          sum_windows(wa, regular, sum_rows(p, in + plane * in_plane, d, h, rows), sums);
          for (int64_t w = 0; w < wa.out; ++w) divisors[w] = static_cast<C>(divisor_of(p, d, h, w));
          for (int64_t w = 0; w < wa.out; ++w) y[w] = T(quotient(sums[w], divisors[w]));
        }
    });
    return;
  }
  for_pixels(p, [&](int64_t n, int64_t d, int64_t h, int64_t w, int64_t i) {
    T* y = out + (n * out_plane + i) * p.channels;
    const C divisor = static_cast<C>(divisor_of(p, d, h, w));
    // Blocks of known size stay in registers.
    const auto mean_of = [&]<int64_t kBlock>(int64_t from, int64_t count) {
      C sum[kBlock] = {};
      for_window(p, d, h, w, [&](int64_t k) {
        const T* x = in + (n * in_plane + k) * p.channels + from;
        for (int64_t c = 0; c < count; ++c) sum[c] += static_cast<C>(x[c]);
      });
      for (int64_t c = 0; c < count; ++c) y[from + c] = T(sum[c] / divisor);
    };
    int64_t from = 0;
    for (; from + 64 <= p.channels; from += 64) mean_of.template operator()<64>(from, 64);
    for (; from + 16 <= p.channels; from += 16) mean_of.template operator()<16>(from, 16);
    if (from < p.channels) mean_of.template operator()<16>(from, p.channels - from);
  });
}

template <class T>
void max_pool_backward(const PoolPlan& p, const void* grad_data, const int64_t* indices, void* result_data) {
  using C = compute_type<T>;
  const T* grad = static_cast<const T*>(grad_data);
  T* result = static_cast<T*>(result_data);
  const int64_t in_plane = p.in_plane(), out_plane = p.out_plane();
  auto add = [](T& target, T value) { target = T(static_cast<C>(target) + static_cast<C>(value)); };
  auto place = [&](int64_t at) {
    if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(in_plane)) [[unlikely]]
      place_outside_of_plane(at, in_plane);
    return at;
  };
  if (!p.channels_last) {
    for_planes(
        p, [] { return 0; },
        [&](int64_t plane, int) {
          T* x = result + plane * in_plane;
          for (int64_t i = plane * out_plane; i < (plane + 1) * out_plane; ++i)
            add(x[place(indices[i])], grad[i]);
        });
    return;
  }
  for_channel_blocks(p, [&](int64_t n, int64_t from, int64_t count) {
    for (int64_t i = n * out_plane; i < (n + 1) * out_plane; ++i)
      for (int64_t c = from; c < from + count; ++c) {
        const int64_t at = place(indices[i * p.channels + c]);
        add(result[(n * in_plane + at) * p.channels + c], grad[i * p.channels + c]);
      }
  });
}

template <class T>
void mean_pool_backward(const PoolPlan& p, const void* grad_data, void* result_data) {
  using C = compute_type<T>;
  const T* grad = static_cast<const T*>(grad_data);
  T* result = static_cast<T*>(result_data);
  const int64_t in_plane = p.in_plane(), out_plane = p.out_plane();
  if (!p.channels_last) {
    const auto& [da, ha, wa] = p.axis;
    const auto memory_of = [&] { return std::unique_ptr<C[]>(new C[static_cast<size_t>(p.axis[2].in)]); };
    for_planes(p, memory_of,
               [&](int64_t plane, const std::unique_ptr<C[]>& shares) {  // of one row of windows
                 T* x = result + plane * in_plane;
                 const T* g = grad + plane * out_plane;
                 for (int64_t d = 0; d < da.out; ++d)
                   for (int64_t h = 0; h < ha.out; ++h, g += wa.out) {
                     std::fill_n(shares.get(), wa.in, C(0));
                     for (int64_t w = 0; w < wa.out; ++w) {
                       const C share = static_cast<C>(g[w]) / static_cast<C>(divisor_of(p, d, h, w));
                       for (int64_t k = wa.start[w]; k < wa.end[w]; k += wa.step) shares[k] += share;
                     }
                     for (int64_t z = da.start[d]; z < da.end[d]; z += da.step)
                       for (int64_t y = ha.start[h]; y < ha.end[h]; y += ha.step) {
                         T* row = x + (z * ha.in + y) * wa.in;
                         for (int64_t k = 0; k < wa.in; ++k) row[k] = T(static_cast<C>(row[k]) + shares[k]);
                       }
                   }
               });
    return;
  }
  for_channel_blocks(p, [&](int64_t n, int64_t from, int64_t count) {
    for_outputs(p, 0, out_plane, [&](int64_t d, int64_t h, int64_t w, int64_t i) {
      const C scale = C(1) / static_cast<C>(divisor_of(p, d, h, w));
      const T* g = grad + (n * out_plane + i) * p.channels + from;
      for_window(p, d, h, w, [&](int64_t k) {
        T* x = result + (n * in_plane + k) * p.channels + from;
        for (int64_t c = 0; c < count; ++c) x[c] = T(static_cast<C>(x[c]) + static_cast<C>(g[c]) * scale);
      });
    });
  });
}

template <class T, bool kMax = true>
PoolKernels kernels_for() {
  PoolKernels k;
  if constexpr (kMax) k.max = max_pool<T>;
  k.max_backward = max_pool_backward<T>;
  if constexpr (is_floating_v<T> || std::is_same_v<T, int64_t>) {
    k.mean = mean_pool<T>;
    k.mean_backward = mean_pool_backward<T>;
  }
  return k;
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
