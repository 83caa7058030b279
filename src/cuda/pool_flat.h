// Pooling over two dimensions by square windows of a few elements, in 32 bits: what networks mostly ask for.
#pragma once
#include "cuda/channels.h"
#include "cuda/geometry.h"
#include "device/layers.h"

namespace rushlight::cuda {

// Planes [planes, height, width, inner].
struct FlatPool {
  Divider inner, out_width, out_height;
  int32_t height, width, stride, padding;
  bool counts_padding;
  float divisor;  // 0: the counts

  struct Place {
    uint32_t plane, inner;
    int32_t y, x;  // the first of the window
  };
  RL_BOTH Place place_of(uint32_t i) const {
    const uint32_t pixel = inner.divide(i), row = out_width.divide(pixel), plane = out_height.divide(row);
    return {plane, i - pixel * inner.divisor,
            static_cast<int32_t>(row - plane * out_height.divisor) * stride - padding,
            static_cast<int32_t>(pixel - row * out_width.divisor) * stride - padding};
  }
  // f(number in the window, position in the plane) for those within the plane.
  template <int kernel, class F>
  RL_BOTH void window(const Place& p, F&& f) const {
    RL_UNROLL for (int dy = 0; dy < kernel; ++dy) RL_UNROLL for (int dx = 0; dx < kernel; ++dx) {
      const int32_t y = p.y + dy, x = p.x + dx;
      if (static_cast<uint32_t>(y) < static_cast<uint32_t>(height) &&
          static_cast<uint32_t>(x) < static_cast<uint32_t>(width))
        f(dy * kernel + dx, y * width + x);
    }
  }
  RL_BOTH uint32_t input_at(const Place& p, int32_t position) const {
    return (p.plane * static_cast<uint32_t>(height * width) + static_cast<uint32_t>(position)) *
               inner.divisor +
           p.inner;
  }
  // Elements of one side that a mean counts.
  RL_BOTH int32_t counted(int32_t start, int kernel, int32_t size) const {
    const int32_t last = counts_padding ? size + padding : size,
                  first = counts_padding || start > 0 ? start : 0;
    return (start + kernel < last ? start + kernel : last) - first;
  }
  template <int kernel, class C>
  RL_BOTH C count(int32_t y, int32_t x) const {
    return divisor != 0 ? static_cast<C>(divisor)
                        : static_cast<C>(counted(y, kernel, height) * counted(x, kernel, width));
  }
};

template <class S, int kernel>
struct FlatMaxPool {
  using C = ComputeOf<S>;
  FlatPool pool;
  const S* in;
  S* out;
  int64_t* indices;
  RL_BOTH void operator()(int64_t i) const {
    const FlatPool::Place p = pool.place_of(static_cast<uint32_t>(i));
    C values[kernel * kernel];  // all are asked for before the first is looked at
    pool.template window<kernel>(
        p, [&](int k, int32_t position) { values[k] = number<C>(in[pool.input_at(p, position)]); });
    int32_t best = 0;
    C largest = 0;
    bool any = false;
    pool.template window<kernel>(p, [&](int k, int32_t position) {
      const C value = values[k];
      if (any && !(value > largest || value != value)) return;
      any = true, largest = value, best = position;
    });
    out[i] = number<S>(largest);
    indices[i] = best;
  }
};

template <class S, int kernel>
struct FlatMeanPool {
  using C = ComputeOf<S>;
  FlatPool pool;
  const S* in;
  S* out;
  RL_BOTH void operator()(int64_t i) const {
    const FlatPool::Place p = pool.place_of(static_cast<uint32_t>(i));
    C sum = 0;
    pool.template window<kernel>(
        p, [&](int, int32_t position) { sum += number<C>(in[pool.input_at(p, position)]); });
    out[i] = number<S>(sum / pool.template count<kernel, C>(p.y, p.x));
  }
};

// Of windows that lie side by side: an input has one output at most.
template <class S, int kernel>
struct FlatMeanPoolBackward {
  using C = ComputeOf<S>;
  FlatPool pool;  // without padding
  Divider in_width, in_height;
  const S* grad;
  S* grad_in;
  RL_BOTH void operator()(int64_t i) const {
    const uint32_t pixel = pool.inner.divide(static_cast<uint32_t>(i)), row = in_width.divide(pixel),
                   plane = in_height.divide(row), y = row - plane * in_height.divisor,
                   x = pixel - row * in_width.divisor, to_y = y / kernel, to_x = x / kernel;
    C flow = 0;
    if (to_y < pool.out_height.divisor && to_x < pool.out_width.divisor) {
      const uint32_t from = (plane * pool.out_height.divisor + to_y) * pool.out_width.divisor + to_x;
      flow = number<C>(
                 grad[from * pool.inner.divisor + (static_cast<uint32_t>(i) - pixel * pool.inner.divisor)]) /
             pool.template count<kernel, C>(static_cast<int32_t>(to_y) * kernel,
                                            static_cast<int32_t>(to_x) * kernel);
    }
    grad_in[i] = number<S>(flow);
  }
};

// f(FlatPool, the kernel's side) where that is how these planes are pooled.
template <class F>
bool visit_flat(const DevicePool& pool, F&& f) {
  const auto &y = pool.axis[1], &x = pool.axis[2], &z = pool.axis[0];
  constexpr int64_t kMost = int64_t{1} << 31;
  if (z.in != 1 || z.out != 1 || (!z.adaptive && (z.kernel != 1 || z.padding)) || y.adaptive || x.adaptive ||
      y.kernel != x.kernel || y.stride != x.stride || y.padding != x.padding || y.dilation != 1 ||
      x.dilation != 1 || y.counts_padding != x.counts_padding || x.out < 1 || y.out < 1 ||
      pool.planes * y.in * x.in * pool.inner >= kMost || pool.planes * y.out * x.out * pool.inner >= kMost)
    return false;
  FlatPool flat{Divider(static_cast<uint32_t>(pool.inner)),
                Divider(static_cast<uint32_t>(x.out)),
                Divider(static_cast<uint32_t>(y.out)),
                static_cast<int32_t>(y.in),
                static_cast<int32_t>(x.in),
                static_cast<int32_t>(x.stride),
                static_cast<int32_t>(x.padding),
                x.counts_padding,
                static_cast<float>(pool.divisor)};
  if (x.kernel == 2)
    f(flat, std::integral_constant<int, 2>{});
  else if (x.kernel == 3)
    f(flat, std::integral_constant<int, 3>{});
  else
    return false;
  return true;
}

}  // namespace rushlight::cuda
