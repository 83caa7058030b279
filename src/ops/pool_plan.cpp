#include "ops/pool_plan.h"

#include <algorithm>

namespace rushlight::ops {

Dims pool_spread(const char* who, const char* what, IntList given, size_t n) {
  RL_CHECK(given.size() == 1 || given.size() == n, who, ": ", what,
           " must either be a single int, or a tuple of ", n, " ints, got ", given);
  return given.size() == n ? given.dims() : Dims(n, given[0]);
}

PoolWindow pool_window_of(const char* who, size_t n, IntList kernel, const OptIntList& stride,
                          IntList padding, IntList dilation, bool ceil_mode) {
  PoolWindow w{pool_spread(who, "kernel_size", kernel, n),
               {},
               pool_spread(who, "padding", padding, n),
               pool_spread(who, "dilation", dilation, n),
               ceil_mode};
  w.stride = stride && !stride->empty() ? pool_spread(who, "stride", *stride, n) : w.kernel;
  if (who == kMaxPool1d) {
    RL_CHECK(w.kernel[0] > 0, who, "() kernel_size must be greater than zero, but got ", w.kernel[0]);
    RL_CHECK(w.stride[0] > 0, who, "() stride must be greater than zero, but got ", w.stride[0]);
    RL_CHECK(w.dilation[0] > 0, who, "() dilation must be greater than zero, but got ", w.dilation[0]);
  }
  for (size_t i = 0; i < n; ++i) {
    RL_CHECK(w.kernel[i] > 0, who, ": kernel size should be greater than zero, but got ", w.kernel);
    RL_CHECK(w.stride[i] > 0, who, ": stride should not be zero, or less, but got ", w.stride);
    RL_CHECK(w.dilation[i] > 0, who, ": dilation should be greater than zero, but got ", w.dilation);
    RL_CHECK(w.padding[i] >= 0, "pad must be non-negative, but got pad: ", w.padding[i], " (", who, ")");
    const int64_t reach = checked_numel(IntList{w.kernel[i] - 1, w.dilation[i]}) + 1;
    RL_CHECK(w.padding[i] <= reach / 2,
             "pad should be at most half of effective kernel size, but got pad=", w.padding[i],
             ", kernel_size=", w.kernel[i], " and dilation=", w.dilation[i]);
    RL_CHECK(std::max({reach, w.stride[i], w.padding[i]}) < (int64_t{1} << 40), who,
             ": kernel_size or stride is too large");
  }
  return w;
}

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

int64_t output_length(int64_t in, const PoolWindow& w, size_t i) {
  const int64_t reach = w.dilation[i] * (w.kernel[i] - 1) + 1;
  int64_t out =
      floor_div(in + 2 * w.padding[i] - reach + (w.ceil_mode ? w.stride[i] - 1 : 0), w.stride[i]) + 1;
  if (w.ceil_mode && (out - 1) * w.stride[i] >= in + w.padding[i])
    --out;  // the last window must start inside
  return out;
}

void fill_tables(cpu::PoolAxis& axis) {
  const size_t n = static_cast<size_t>(std::max<int64_t>(axis.out, 0));
  axis.start = axis.end = axis.count = Dims(n);
  for (size_t o = 0; o < n; ++o) {
    const formulas::PoolSpan span = formulas::pool_window(axis.rule, static_cast<int64_t>(o));
    axis.start[o] = span.start, axis.end[o] = span.end, axis.count[o] = span.count;
  }
}

cpu::PoolAxis window_axis(int64_t in, const PoolWindow& w, size_t i, bool count_include_pad) {
  cpu::PoolAxis axis;
  axis.in = in;
  axis.out = output_length(in, w, i);
  axis.step = w.dilation[i];
  axis.rule = {in, axis.out, false, w.kernel[i], w.stride[i], w.padding[i], w.dilation[i], count_include_pad};
  fill_tables(axis);
  return axis;
}

cpu::PoolAxis adaptive_axis(int64_t in, int64_t out) {
  cpu::PoolAxis axis;
  axis.in = in;
  axis.out = out;
  axis.rule.in = in, axis.rule.out = out, axis.rule.adaptive = true;
  fill_tables(axis);
  return axis;
}

}  // namespace

cpu::PoolPlan pool_plan_of(IntList sizes, int64_t n, bool channels_last) {
  cpu::PoolPlan p;
  const auto lead = static_cast<int64_t>(sizes.size()) - n;
  p.batch = lead == 2 ? sizes[0] : 1;
  p.channels = sizes[lead - 1];
  p.channels_last = channels_last;
  return p;
}

Dims pooled_sizes(IntList sizes, int64_t n, const cpu::PoolPlan& p) {
  Dims out = sizes.dims();
  for (int64_t i = 0; i < n; ++i) out[out.size() - n + i] = p.axis[3 - n + i].out;
  return out;
}

cpu::PoolPlan window_plan(const char* who, IntList sizes, int64_t n, const PoolWindow& w, bool channels_last,
                          bool count_include_pad) {
  cpu::PoolPlan p = pool_plan_of(sizes, n, channels_last);
  for (int64_t i = 0; i < n; ++i)
    p.axis[3 - n + i] = window_axis(sizes[sizes.size() - n + i], w, i, count_include_pad);
  RL_CHECK(who != kMaxPool1d || p.axis[2].out >= 1, who, "() Invalid computed output size: ", p.axis[2].out,
           ", which is too small: the input has ", sizes);
  for (const cpu::PoolAxis& a : p.axis)
    RL_CHECK(a.out >= 1, who, ": Given input size: ", sizes,
             ". Calculated output size: ", pooled_sizes(sizes, n, p), ". Output size is too small");
  return p;
}

cpu::PoolPlan adaptive_plan(const char* who, IntList sizes, int64_t n, IntList output_size,
                            bool channels_last) {
  if (n == 1)
    RL_CHECK(output_size.size() == 1, who, "() argument 'output_size' should contain one int (got ",
             output_size.size(), ")");
  else
    RL_CHECK(output_size.size() == 1 || static_cast<int64_t>(output_size.size()) == n, who,
             ": output_size must be ", n, " numbers, got ", output_size);
  const Dims out = pool_spread(who, "output_size", output_size, n);
  cpu::PoolPlan p = pool_plan_of(sizes, n, channels_last);
  for (int64_t i = 0; i < n; ++i) {
    RL_CHECK(out[i] >= 0 && out[i] < (int64_t{1} << 31), who,
             ": elements of output_size must be greater than or equal to 0, got ", out);
    p.axis[3 - n + i] = adaptive_axis(sizes[sizes.size() - n + i], out[i]);
  }
  return p;
}
cpu::PoolPlan with_long_rows(const cpu::PoolPlan& given) {
  cpu::PoolPlan p = given;
  for (int i = 0; i < 2; ++i) {
    const cpu::PoolAxis& last = p.axis[2];
    if (last.in == 1 && last.out == 1 && last.start[0] == 0 && last.end[0] == 1 && last.count[0] == 1)
      p.axis = {cpu::PoolAxis{}, p.axis[0], p.axis[1]};
  }
  return p;
}
DevicePool device_plan(const cpu::PoolPlan& p) {
  DevicePool d;
  d.planes = p.channels_last ? p.batch : p.batch * p.channels;
  d.inner = p.channels_last ? p.channels : 1;
  for (size_t i = 0; i < 3; ++i) {
    d.axis[i] = p.axis[i].rule;
    d.axis[i].in = p.axis[i].in, d.axis[i].out = p.axis[i].out;
  }
  d.divisor = p.divisor;
  return d;
}

}  // namespace rushlight::ops
