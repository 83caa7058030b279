#include "cpu/depthwise.h"

#include <cmath>

#include "core/parallel.h"
#include "cpu/conv_onednn.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(DepthwiseKernels depthwise_kernels(DType dtype);)

namespace {

DepthwiseKernels kernels(DType dtype) { return RL_ISA_VARIANT(depthwise_kernels(dtype)); }

DepthwisePlan forward_plan(const ConvShape& s) {
  DepthwisePlan p{};
  for (int i = 0; i < 3; ++i) {
    const int64_t reach = (s.output[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1;
    p.axis[i] = {s.input[i], 1, s.padding[i], reach, s.output[i], s.stride[i], s.dilation[i], s.kernel[i]};
  }
  p.sources = 1, p.copies = s.out_channels / s.groups, p.channels = s.out_channels;
  return p;
}

// The gradient's elements stand a stride apart, and the filter is mirrored.
DepthwisePlan gradient_plan(const ConvShape& s) {
  DepthwisePlan p{};
  for (int i = 0; i < 3; ++i) {
    const int64_t spread = (s.kernel[i] - 1) * s.dilation[i];
    p.axis[i] = {s.output[i], s.stride[i], spread - s.padding[i], s.input[i] + spread,
                 s.input[i],  1,           s.dilation[i],         s.kernel[i]};
  }
  p.sources = s.out_channels / s.groups, p.copies = 1, p.channels = s.in_channels, p.flipped = true;
  return p;
}

int64_t work(const DepthwisePlan& p) {
  int64_t n = p.sources;
  for (const DepthwiseAxis& a : p.axis) n *= a.result * a.taps;
  return std::max<int64_t>(n, 1);
}

void apply(const ConvShape& s, const DepthwisePlan& plan, const void* source, const void* weight,
           const void* bias, void* result) {
  const auto kernel = kernels(s.dtype).apply;
  parallel_for(0, s.batch * plan.channels, std::max<int64_t>(1, 4 * kGrainSize / work(plan)),
               [&](int64_t begin, int64_t end) { kernel(plan, begin, end, source, weight, bias, result); });
}

}  // namespace

bool depthwise_convolves(const ConvShape& s) {
  if (s.channels_last || s.groups != s.in_channels || s.groups < 2 || !is_floating(s.dtype)) return false;
  if (is_float8(s.dtype) || s.input_numel() == 0 || s.output_numel() == 0) return false;
  // Short rows fill vectors badly; those of halves are also converted element by element, which in volumes is
  // still less than oneDNN takes.
  const bool slow = is_reduced_float(s.dtype) && s.spatial == 2;
  const int64_t width = std::min(s.input[2], s.output[2]), least = slow ? 24 : 10;
  if (onednn_convolves(s) && width < least) return false;
  constexpr int64_t kMostTaps = 1024, kMostPositions = int64_t{1} << 22;
  int64_t positions = 1, taps = 1, spread = 1;
  for (int i = 0; i < 3; ++i) {
    taps *= s.kernel[i];
    spread = (s.kernel[i] - 1) * s.dilation[i];
    positions *= std::max(s.input[i], (s.output[i] - 1) * s.stride[i] + 1) + spread;
  }
  return taps <= kMostTaps && positions <= kMostPositions;
}

bool depthwise_convolves(const ConvShape& s, const void* weight) {
  if (!depthwise_convolves(s)) return false;
  bool finite = true;
  visit_dtype(FloatTypes{}, s.dtype, "convolution", [&]<class T>(T) {
    for (int64_t i = 0; i < s.weight_numel(); ++i)
      finite &= std::isfinite(static_cast<compute_type<T>>(static_cast<const T*>(weight)[i]));
  });
  return finite;
}

void depthwise_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                       void* output) {
  apply(s, forward_plan(s), input, weight, bias, output);
}

void depthwise_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                              void* input_gradient) {
  apply(s, gradient_plan(s), output_gradient, weight, nullptr, input_gradient);
}

void depthwise_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                               void* weight_gradient) {
  const DepthwisePlan plan = forward_plan(s);
  const auto kernel = kernels(s.dtype).weight;
  parallel_for(0, s.out_channels, std::max<int64_t>(1, 4 * kGrainSize / (work(plan) * s.batch)),
               [&](int64_t begin, int64_t end) {
                 kernel(plan, s.batch, begin, end, input, output_gradient, weight_gradient);
               });
}

}  // namespace rushlight::cpu
