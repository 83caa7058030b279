// The gradients of grid sampling. The small runtime leaves them out (cmake/SmallRuntime.cmake).
#include "cpu/isa/grid_sample_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Adds to the gradient of a plane what the gradients of points say of it: one point after another, as they
// may meet at a pixel.
template <int K, bool all_inside, class T>
void scatter(const Taps<T, true>& taps, const T* grad, int n, T* plane) {
  using C = compute_type<T>;
  T nowhere{};
  for (int i = 0; i < n; ++i) {
    const C g = static_cast<C>(grad[i]);
#pragma GCC unroll 16
    for (int k = 0; k < K; ++k) {
      const int32_t at = taps.offset[k][i];
      T& to = all_inside || at >= 0 ? plane[at] : nowhere;
      to = T(static_cast<C>(to) + (K == 1 ? g : taps.weight[k][i] * g));
    }
  }
}

// What the gradients of a block of points say of each tap, over all channels.
template <class C>
struct Flow {
  C of[16][kBlock] = {};
};
template <int K, bool all_inside, class T>
void add_flow(const Taps<T, true>& taps, const T* plane, const T* grad, int n, Flow<compute_type<T>>& flow) {
  for (int i = 0; i < n; ++i) {
    const auto g = static_cast<compute_type<T>>(grad[i]);
#pragma GCC unroll 16
    for (int k = 0; k < K; ++k) flow.of[k][i] += pixel<all_inside>(plane, taps.offset[k][i]) * g;
  }
}

// Channels [begin, end) of blocks of points of sample b: each grad may be null.
template <int K, class T>
void backward_of_block(const SamplePlan& p, int64_t b, int64_t first, int n, int64_t begin, int64_t end,
                       const T* grad, const T* input, const T* grid, T* grad_input, T* grad_grid) {
  using C = compute_type<T>;
  const int64_t plane = p.plane();
  Taps<T, true> taps;
  taps.fill(p, grid + (b * p.points + first) * p.dims, n);
  Flow<C> flow;
  for (int64_t c = begin; c < end; ++c) {
    const T* g = grad + c * p.points + first;
    if (taps.all_inside) {
      if (grad_grid) add_flow<K, true>(taps, input + c * plane, g, n, flow);
      if (grad_input) scatter<K, true>(taps, g, n, grad_input + c * plane);
    } else {
      if (grad_grid) add_flow<K, false>(taps, input + c * plane, g, n, flow);
      if (grad_input) scatter<K, false>(taps, g, n, grad_input + c * plane);
    }
  }
  if (!grad_grid) return;
  T* to = grad_grid + (b * p.points + first) * p.dims;
  for (int d = 0; d < p.dims; ++d) {
    C sum[kBlock] = {}, w[kBlock];
    for (int k = 0; k < K; ++k) {
      taps.weigh(p, k, n, d, w);
      for (int i = 0; i < n; ++i) sum[i] += w[i] * flow.of[k][i];
    }
    for (int i = 0; i < n; ++i) to[i * p.dims + p.dims - 1 - d] = T(sum[i]);
  }
}

// Points of one sample may meet at a pixel: samples share the work, or their channels, and then what the
// grid gets, a sum over channels, is a pass of its own over points. Each sum is in the same order either way.
template <int K, class T>
void backward(const SamplePlan& p, const T* grad, const T* input, const T* grid, T* grad_input,
              T* grad_grid) {
  if (K == 1) grad_grid = nullptr;  // the nearest pixel does not move with the grid
  const int64_t threads = get_num_threads(), cost = p.channels * 16;
  const auto pass = [&](int64_t b, int64_t first, int n, int64_t begin, int64_t end, T* to_input,
                        T* to_grid) {
    backward_of_block<K>(p, b, first, n, begin, end, grad, input, grid, to_input, to_grid);
  };
  const auto all_points = [&](int64_t b, int64_t begin, int64_t end, T* to_grid) {
    for (int64_t first = 0; first < p.points; first += kBlock)
      pass(b, first, static_cast<int>(std::min<int64_t>(kBlock, p.points - first)), begin, end, grad_input,
           to_grid);
  };
  const bool small = p.batch * p.points * cost < 2 * kGrainSize;
  if (grad_input && (small || p.batch % threads == 0 || p.batch >= 4 * threads))
    return parallel_for(0, p.batch, small ? p.batch : 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) all_points(b, b * p.channels, (b + 1) * p.channels, grad_grid);
    });
  if (grad_input) {
    const int64_t planes = p.batch * p.channels;
    parallel_for(0, planes, (planes + threads - 1) / threads, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t b = begin / p.channels, stop = std::min(end, (b + 1) * p.channels);
        all_points(b, begin, stop, nullptr);
        begin = stop;
      }
    });
  }
  if (grad_grid)
    for_blocks(p, cost, [&](int64_t b, int64_t first, int n) {
      pass(b, first, n, b * p.channels, (b + 1) * p.channels, nullptr, grad_grid);
    });
}

}  // namespace

void grid_sample_backward(const SamplePlan& p, const void* grad, const void* input, const void* grid,
                          void* grad_input, void* grad_grid) {
  visit_dtype(FloatTypes{}, p.dtype, "grid_sampler_backward", [&]<class T>(T) {
    visit_taps(p, [&](auto taps) {
      backward<taps()>(p, static_cast<const T*>(grad), static_cast<const T*>(input),
                       static_cast<const T*>(grid), static_cast<T*>(grad_input), static_cast<T*>(grad_grid));
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
