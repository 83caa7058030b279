// Sampling images and volumes at any points. A thread has one point and some channels; what it reads of an
// image is the same in all of them.
#include <cmath>

#include "cpu/grid_sample.h"
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "cuda/update.h"

namespace rushlight::cuda {
namespace {

using cpu::SampleMode;
using cpu::SamplePadding;

// Threads that keep a device busy, and the channels that each has at least.
constexpr int64_t kEnoughThreads = int64_t{1} << 19, kLeastChannels = 8;

template <class C>
RL_BOTH inline C floor_of(C x) {
  using std::floor;
  return floor(x);
}
template <class C>
RL_BOTH inline C rounded(C x) {
  using std::nearbyint;
  return nearbyint(x);
}

template <class C>
RL_BOTH inline C reflect(C x, C low, C high, C& slope) {  // low and high given doubled
  if (low == high) {
    slope = 0;
    return 0;
  }
  const C start = low / 2, span = (high - low) / 2, distance = x - start;
  const C length = distance < 0 ? -distance : distance;
  const C flips = floor_of(length / span), extra = length - flips * span;
  const bool odd = flips - 2 * floor_of(flips / 2) != 0;
  if ((distance < 0) != odd) slope = -slope;
  return (odd ? span - extra : extra) + start;
}
template <class C>
RL_BOTH inline C padded(C x, int64_t size, const cpu::SamplePlan& p, C& slope) {
  const C last = static_cast<C>(size - 1);
  if (p.padding == SamplePadding::Zeros) return x;
  if (p.padding == SamplePadding::Reflection)
    x = p.align_corners ? reflect(x, C(0), 2 * last, slope) : reflect(x, C(-1), 2 * last + 1, slope);
  if (x <= 0 || x >= last) slope = 0;
  const C raised = x > 0 ? x : C(0);
  return raised < last ? raised : last;
}
// Numbers that no position can hold, NaN among them, lie outside.
template <class C>
RL_BOTH inline C sane(C x) {
  return x > C(-1e9) && x < C(1e9) ? x : C(-100);
}
template <class C>
RL_BOTH inline int32_t inside(C x, int64_t size) {
  return x >= 0 && x < static_cast<C>(size) ? static_cast<int32_t>(x) : -1;
}

// What a point reads along one dimension: positions (-1: outside), weights and their slopes.
template <class C, SampleMode mode>
struct AxisTaps {
  static constexpr int kCount = mode == SampleMode::Nearest ? 1 : mode == SampleMode::Bilinear ? 2 : 4;
  int32_t at[kCount];
  C weight[kCount], slope[kCount];

  RL_BOTH void fill(const cpu::SamplePlan& p, int64_t size, C given) {
    const C scale = (p.align_corners ? static_cast<C>(size - 1) : static_cast<C>(size)) / 2;
    C x = (given + 1) * scale + (p.align_corners ? C(0) : C(-0.5)), step = scale;
    if constexpr (mode == SampleMode::Bicubic) {
      constexpr C a = C(-0.75);
      const C base = floor_of(x), u = x - base;
      const C far = u + 1, near = u, mirrored = 1 - u, last = 2 - u;
      weight[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
      weight[1] = ((a + 2) * near - (a + 3)) * near * near + 1;
      weight[2] = ((a + 2) * mirrored - (a + 3)) * mirrored * mirrored + 1;
      weight[3] = ((a * last - 5 * a) * last + 8 * a) * last - 4 * a;
      slope[0] = ((3 * a * far - 10 * a) * far + 8 * a) * step;
      slope[1] = (3 * (a + 2) * near - 2 * (a + 3)) * near * step;
      slope[2] = -(3 * (a + 2) * mirrored - 2 * (a + 3)) * mirrored * step;
      slope[3] = -((3 * a * last - 10 * a) * last + 8 * a) * step;
      for (int k = 0; k < 4; ++k) {
        C unused = 0;
        at[k] = inside(rounded(sane(padded(base + static_cast<C>(k - 1), size, p, unused))), size);
      }
    } else {
      x = sane(padded(x, size, p, step));
      if constexpr (mode == SampleMode::Nearest) {
        at[0] = inside(rounded(x), size), weight[0] = 1, slope[0] = 0;
      } else {
        const C base = floor_of(x), u = x - base;
        at[0] = inside(base, size), at[1] = inside(base + 1, size);
        weight[0] = 1 - u, weight[1] = u;
        slope[0] = -step, slope[1] = step;
      }
    }
  }
};

// All of them: offsets in a plane, -1 outside.
template <class C, SampleMode mode, int dims>
struct Taps {
  using Axis = AxisTaps<C, mode>;
  static constexpr int kEach = Axis::kCount;
  static constexpr int kCount = dims == 2 ? kEach * kEach : kEach * kEach * kEach;
  Axis axis[dims];

  template <class S>
  RL_BOTH void fill(const cpu::SamplePlan& p, const int64_t (&size)[3], const S* point) {
    for (int d = 0; d < dims; ++d) axis[d].fill(p, size[3 - dims + d], number<C>(point[dims - 1 - d]));
  }
  // f(tap, offset, its tap along each dimension)
  template <class F>
  RL_BOTH void for_each(const int64_t (&size)[3], F&& f) const {
    RL_UNROLL
    for (int k = 0; k < kCount; ++k) {
      int j[dims], rest = k;
      for (int d = dims - 1; d >= 0; --d) j[d] = rest % kEach, rest /= kEach;
      int32_t offset = 0;
      for (int d = 0; d < dims; ++d) {
        const int32_t at = axis[d].at[j[d]];
        offset = offset < 0 || at < 0 ? -1 : offset * static_cast<int32_t>(size[3 - dims + d]) + at;
      }
      f(k, offset, j);
    }
  }
};

// The plan as a kernel takes it, which has none of std::array's functions.
struct Shape {
  cpu::SamplePlan plan;
  int64_t size[3], plane;
  explicit Shape(const cpu::SamplePlan& p)
      : plan(p), size{p.size[0], p.size[1], p.size[2]}, plane(p.plane()) {}
};

template <class S, SampleMode mode, int dims>
struct Sample {
  using C = ComputeOf<S>;
  using T = Taps<C, mode, dims>;
  static constexpr int kAtOnce = T::kCount <= 4 ? 4 : T::kCount <= 8 ? 2 : 1;  // channels read together
  Shape shape;
  int64_t chunks, chunk;  // of channels
  const S *input, *grid;
  S* out;
  RL_BOTH void operator()(int64_t i) const {
    const cpu::SamplePlan& p = shape.plan;
    const int64_t rest = quotient(i, p.points), point = i - rest * p.points;
    const int64_t b = quotient(rest, chunks), begin = (rest - b * chunks) * chunk;
    const int64_t end = begin + chunk < p.channels ? begin + chunk : p.channels;
    T taps;
    taps.fill(p, shape.size, grid + (b * p.points + point) * dims);
    int32_t offset[T::kCount];
    C weight[T::kCount];
    taps.for_each(shape.size, [&](int k, int32_t at, const int (&j)[dims]) {
      offset[k] = at, weight[k] = 1;
      for (int d = 0; d < dims; ++d) weight[k] *= taps.axis[d].weight[j[d]];
    });
    const S* plane = input + (b * p.channels + begin) * shape.plane;
    S* to = out + (b * p.channels + begin) * p.points + point;
    int64_t left = end - begin;
    for (; left >= kAtOnce; left -= kAtOnce, plane += kAtOnce * shape.plane, to += kAtOnce * p.points)
      sample<kAtOnce>(plane, offset, weight, to);
    for (; left > 0; --left, plane += shape.plane, to += p.points) sample<1>(plane, offset, weight, to);
  }

  // Of n channels, all of whose reads are under way together.
  template <int n>
  RL_BOTH void sample(const S* plane, const int32_t (&offset)[T::kCount], const C (&weight)[T::kCount],
                      S* to) const {
    C read[n][T::kCount];
    RL_UNROLL
    for (int c = 0; c < n; ++c) {
      RL_UNROLL
      for (int k = 0; k < T::kCount; ++k)
        read[c][k] = offset[k] >= 0 ? number<C>(plane[c * shape.plane + offset[k]]) : C(0);
    }
    RL_UNROLL
    for (int c = 0; c < n; ++c) {
      C sum = 0;
      RL_UNROLL
      for (int k = 0; k < T::kCount; ++k)
        if (offset[k] >= 0) sum += T::kCount == 1 ? read[c][k] : weight[k] * read[c][k];
      to[c * shape.plan.points] = number<S>(sum);
    }
  }
};

template <class S, SampleMode mode, int dims>
struct SampleBackward {
  using C = ComputeOf<S>;
  using T = Taps<C, mode, dims>;
  Shape shape;
  const S *grad, *input, *grid;
  C* grad_input;
  S* grad_grid;
  RL_BOTH void operator()(int64_t i) const {
    const cpu::SamplePlan& p = shape.plan;
    const int64_t b = quotient(i, p.points), point = i - b * p.points;
    T taps;
    taps.fill(p, shape.size, grid + i * dims);
    int32_t offset[T::kCount];
    C weight[T::kCount], flow[T::kCount];
    taps.for_each(shape.size, [&](int k, int32_t at, const int (&j)[dims]) {
      offset[k] = at, weight[k] = 1, flow[k] = 0;
      for (int d = 0; d < dims; ++d) weight[k] *= taps.axis[d].weight[j[d]];
    });
    for (int64_t c = b * p.channels; c < (b + 1) * p.channels; ++c) {
      const C g = number<C>(grad[c * p.points + point]);
      const int64_t begin = c * shape.plane;
      RL_UNROLL
      for (int k = 0; k < T::kCount; ++k) {
        if (offset[k] < 0) continue;
        if (grad_input) add_to(grad_input + begin + offset[k], weight[k] * g);
        if (grad_grid && T::kCount > 1) flow[k] += g * number<C>(input[begin + offset[k]]);
      }
    }
    if (!grad_grid) return;
    C sum[dims] = {};
    taps.for_each(shape.size, [&](int k, int32_t, const int (&j)[dims]) {
      for (int sloped = 0; sloped < dims; ++sloped) {
        C w = flow[k];  // 0 outside
        for (int d = 0; d < dims; ++d)
          w *= d == sloped ? taps.axis[d].slope[j[d]] : taps.axis[d].weight[j[d]];
        sum[sloped] += w;
      }
    });
    for (int d = 0; d < dims; ++d) grad_grid[i * dims + dims - 1 - d] = number<S>(sum[d]);
  }
};

template <class M, M m>
struct Constant {
  static constexpr M value = m;
};
// f(mode, dimensions), as constants.
template <class F>
void visit_plan(const cpu::SamplePlan& p, F&& f) {
  using Two = Constant<int, 2>;
  using Three = Constant<int, 3>;
  using Nearest = Constant<SampleMode, SampleMode::Nearest>;
  using Bilinear = Constant<SampleMode, SampleMode::Bilinear>;
  if (p.mode == SampleMode::Bicubic) return f(Constant<SampleMode, SampleMode::Bicubic>{}, Two{});
  if (p.mode == SampleMode::Nearest) return p.dims == 2 ? f(Nearest{}, Two{}) : f(Nearest{}, Three{});
  p.dims == 2 ? f(Bilinear{}, Two{}) : f(Bilinear{}, Three{});
}

}  // namespace

void grid_sample(int device, const cpu::SamplePlan& p, const void* input, const void* grid, void* out) {
  const Launch at{device, "grid_sample"};
  int64_t chunk = p.channels;
  auto chunks = [&] { return (p.channels + chunk - 1) / chunk; };
  while (chunk > kLeastChannels && p.batch * p.points * chunks() < kEnoughThreads)
    chunk = (chunk / 2 + kLeastChannels - 1) / kLeastChannels * kLeastChannels;
  visit_floating(p.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    visit_plan(p, [&](auto mode, auto dims) {
      for_each_index(at, p.batch * chunks() * p.points,
                     Sample<S, decltype(mode)::value, decltype(dims)::value>{
                         Shape(p), chunks(), chunk, static_cast<const S*>(input), static_cast<const S*>(grid),
                         static_cast<S*>(out)});
    });
  });
}

void grid_sample_backward(int device, const cpu::SamplePlan& p, const void* grad, const void* input,
                          const void* grid, void* grad_input, void* grad_grid) {
  const Launch at{device, "grid_sample_backward"};
  visit_floating(p.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    visit_plan(p, [&](auto mode, auto dims) {
      for_each_index(at, p.batch * p.points,
                     SampleBackward<S, decltype(mode)::value, decltype(dims)::value>{
                         Shape(p), static_cast<const S*>(grad), static_cast<const S*>(input),
                         static_cast<const S*>(grid), static_cast<ComputeOf<S>*>(grad_input),
                         static_cast<S*>(grad_grid)});
    });
  });
}

}  // namespace rushlight::cuda
