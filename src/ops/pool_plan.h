// The windows of a pooling operator, checked and worked out for one input.
#pragma once

#include <string_view>

#include "core/tensor.h"
#include "cpu/pool.h"
#include "device/layers.h"
#include "dispatch/value.h"

namespace rushlight::ops {

// A window's parameters, spread to one number a dimension.
struct PoolWindow {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

// One dimension has a kernel and words of its own in PyTorch.
inline constexpr std::string_view kMaxPool1d = "max_pool1d", kAdaptiveAvgPool1d = "adaptive_avg_pool1d";

// One number for every dimension, or as many as there are.
Dims pool_spread(const char* who, const char* what, IntList given, size_t n);

PoolWindow pool_window_of(const char* who, size_t n, IntList kernel, const OptIntList& stride,
                          IntList padding, IntList dilation, bool ceil_mode);

// The plan for tensors shaped as `sizes`, whose last `n` dimensions are pooled; `pool_plan_of` leaves the
// axes to the caller.
cpu::PoolPlan pool_plan_of(IntList sizes, int64_t n, bool channels_last);
cpu::PoolPlan window_plan(const char* who, IntList sizes, int64_t n, const PoolWindow& w, bool channels_last,
                          bool count_include_pad = true);
cpu::PoolPlan adaptive_plan(const char* who, IntList sizes, int64_t n, IntList output_size,
                            bool channels_last);
Dims pooled_sizes(IntList sizes, int64_t n, const cpu::PoolPlan& p);

// The same windows where the last dimension has one element: it changes places with those before it, as loops
// run along the last. Positions in a plane stay what they are.
cpu::PoolPlan with_long_rows(const cpu::PoolPlan& given);
// What kernels of a device need of a plan: the axes' rules instead of their tables.
DevicePool device_plan(const cpu::PoolPlan& p);

}  // namespace rushlight::ops
