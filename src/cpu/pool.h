// Pooling: maxima and means over windows of the last one to three dimensions.
#pragma once
#include <array>

#include "core/dims.h"
#include "core/dtype.h"
#include "formulas/pool_window.h"

namespace rushlight::cpu {

// The windows along one dimension: output o looks at start[o], start[o] + step, ... below end[o].
struct PoolAxis {
  int64_t in = 1, out = 1, step = 1;
  Dims start{0}, end{1};
  Dims count{1};            // what a mean divides by, as a product over the axes
  formulas::PoolRule rule;  // which the tables come from
};

// One layout for all: [batch, channels, axes...] contiguous, or channels last.
struct PoolPlan {
  int64_t batch = 1, channels = 1;
  std::array<PoolAxis, 3> axis;
  bool channels_last = false;
  double divisor = 0;  // replaces the counts unless 0

  int64_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_plane() const { return axis[0].out * axis[1].out * axis[2].out; }
};

struct PoolKernels {
  // indices: position in the plane of the input; null if nobody wants them.
  void (*max)(const PoolPlan&, const void* in, void* out, int64_t* indices) = nullptr;
  void (*mean)(const PoolPlan&, const void* in, void* out) = nullptr;
  // Both add into grad_in, which starts as zeros. Indices outside of the plane raise.
  void (*max_backward)(const PoolPlan&, const void* grad_out, const int64_t* indices,
                       void* grad_in) = nullptr;
  void (*mean_backward)(const PoolPlan&, const void* grad_out, void* grad_in) = nullptr;
};

using MaxPool = decltype(PoolKernels::max);

[[noreturn]] void place_outside_of_plane(int64_t place, int64_t plane);

// Fails with PyTorch's "not implemented for" text under the name `who`.
PoolKernels pool_kernels(DType dtype, const char* who);

}  // namespace rushlight::cpu
