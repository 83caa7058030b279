// The loops of pooling, included by isa/pool.cpp and pool.cpp only.
#include <limits>

#include "core/parallel.h"
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

inline int64_t plane_grain(int64_t plane) {
  return std::max<int64_t>(1, kGrainSize / 4 / std::max<int64_t>(plane, 1));
}

// Splits by planes; in channels-last by outputs of all batches.
template <class F>
void for_planes(const PoolPlan& p, F&& f) {
  parallel_for(0, p.batch * p.channels, plane_grain(p.in_plane() + p.out_plane()),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane) f(plane);
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

template <class T>
void max_pool(const PoolPlan& p, const void* in_data, void* out_data, int64_t* indices) {
  using C = compute_type<T>;
  const T* in = static_cast<const T*>(in_data);
  T* out = static_cast<T*>(out_data);
  const int64_t in_plane = p.in_plane(), out_plane = p.out_plane();
  if (!p.channels_last) {
    for_planes(p, [&](int64_t plane) {
      const T* x = in + plane * in_plane;
      for_outputs(p, 0, out_plane, [&](int64_t d, int64_t h, int64_t w, int64_t i) {
        C best = static_cast<C>(lowest<T>());
        int64_t at = first_position(p, d, h, w);
        for_window(p, d, h, w, [&](int64_t k) {
          const C value = static_cast<C>(x[k]);
          if (beats(value, best)) best = value, at = k;
        });
        out[plane * out_plane + i] = T(best);
        indices[plane * out_plane + i] = at;
      });
    });
    return;
  }
  for_pixels(p, [&](int64_t n, int64_t d, int64_t h, int64_t w, int64_t i) {
    T* y = out + (n * out_plane + i) * p.channels;
    int64_t* at = indices + (n * out_plane + i) * p.channels;
    const int64_t first = first_position(p, d, h, w);
    for (int64_t c = 0; c < p.channels; ++c) y[c] = lowest<T>(), at[c] = first;
    for_window(p, d, h, w, [&](int64_t k) {
      const T* x = in + (n * in_plane + k) * p.channels;
      for (int64_t c = 0; c < p.channels; ++c) {
        const bool better = beats(static_cast<C>(x[c]), static_cast<C>(y[c]));
        y[c] = better ? x[c] : y[c];
        at[c] = better ? k : at[c];
      }
    });
  });
}

template <class T>
void mean_pool(const PoolPlan& p, const void* in_data, void* out_data) {
  using C = std::conditional_t<is_floating_v<T>, compute_type<T>, int64_t>;
  const T* in = static_cast<const T*>(in_data);
  T* out = static_cast<T*>(out_data);
  const int64_t in_plane = p.in_plane(), out_plane = p.out_plane();
  if (!p.channels_last) {
    for_planes(p, [&](int64_t plane) {
      const T* x = in + plane * in_plane;
      for_outputs(p, 0, out_plane, [&](int64_t d, int64_t h, int64_t w, int64_t i) {
        C sum = 0;
        for_window(p, d, h, w, [&](int64_t k) { sum += static_cast<C>(x[k]); });
        out[plane * out_plane + i] = T(sum / static_cast<C>(divisor_of(p, d, h, w)));
      });
    });
    return;
  }
  for_pixels(p, [&](int64_t n, int64_t d, int64_t h, int64_t w, int64_t i) {
    T* y = out + (n * out_plane + i) * p.channels;
    const C divisor = static_cast<C>(divisor_of(p, d, h, w));
    constexpr int64_t kBlock = 128;
    for (int64_t from = 0; from < p.channels; from += kBlock) {
      const int64_t count = std::min(kBlock, p.channels - from);
      C sum[kBlock] = {};
      for_window(p, d, h, w, [&](int64_t k) {
        const T* x = in + (n * in_plane + k) * p.channels + from;
        for (int64_t c = 0; c < count; ++c) sum[c] += static_cast<C>(x[c]);
      });
      for (int64_t c = 0; c < count; ++c) y[from + c] = T(sum[c] / divisor);
    }
  });
}

template <class T>
void max_pool_backward(const PoolPlan& p, const void* grad_data, const int64_t* indices, void* result_data) {
  using C = compute_type<T>;
  const T* grad = static_cast<const T*>(grad_data);
  T* result = static_cast<T*>(result_data);
  const int64_t in_plane = p.in_plane(), out_plane = p.out_plane();
  auto add = [](T& target, T value) { target = T(static_cast<C>(target) + static_cast<C>(value)); };
  if (!p.channels_last) {
    for_planes(p, [&](int64_t plane) {
      T* x = result + plane * in_plane;
      for (int64_t i = plane * out_plane; i < (plane + 1) * out_plane; ++i)
        if (static_cast<uint64_t>(indices[i]) < static_cast<uint64_t>(in_plane)) add(x[indices[i]], grad[i]);
    });
    return;
  }
  for_channel_blocks(p, [&](int64_t n, int64_t from, int64_t count) {
    for (int64_t i = n * out_plane; i < (n + 1) * out_plane; ++i)
      for (int64_t c = from; c < from + count; ++c) {
        const int64_t at = indices[i * p.channels + c];
        if (static_cast<uint64_t>(at) < static_cast<uint64_t>(in_plane))
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
    for_planes(p, [&](int64_t plane) {
      T* x = result + plane * in_plane;
      for_outputs(p, 0, out_plane, [&](int64_t d, int64_t h, int64_t w, int64_t i) {
        const C share = static_cast<C>(grad[plane * out_plane + i]) / static_cast<C>(divisor_of(p, d, h, w));
        for_window(p, d, h, w, [&](int64_t k) { x[k] = T(static_cast<C>(x[k]) + share); });
      });
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

template <class T>
PoolKernels kernels_for() {
  PoolKernels k;
  k.max = max_pool<T>;
  k.max_backward = max_pool_backward<T>;
  if constexpr (is_floating_v<T> || std::is_same_v<T, int64_t>) {
    k.mean = mean_pool<T>;
    k.mean_backward = mean_pool_backward<T>;
  }
  return k;
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
