// Convolutions in which each channel meets only its own filter, on planes (not channels-last): the channel is
// copied into a padded buffer in the first-level cache, where each tap is one multiply-add of shifted rows.
#pragma once
#include "cpu/conv.h"

namespace rushlight::cpu {

// Along one axis, element i of the source lies at i * step + offset of a buffer with `reach` positions;
// result j reads positions j * stride + tap * spacing.
struct DepthwiseAxis {
  int64_t source, step, offset, reach, result, stride, spacing, taps;
};
struct DepthwisePlan {
  DepthwiseAxis axis[3];
  int64_t sources;   // planes that are summed into a result: 1, or the multiplier in an input gradient
  int64_t copies;    // results that one source has
  int64_t channels;  // of the result
  bool flipped;      // filters run backwards
};

struct DepthwiseKernels {
  // Result planes [begin, end), counted over the batch.
  void (*apply)(const DepthwisePlan& plan, int64_t begin, int64_t end, const void* source, const void* weight,
                const void* bias, void* result);
  // Filters [begin, end) of a gradient in the weight.
  void (*weight)(const DepthwisePlan& plan, int64_t batch, int64_t begin, int64_t end, const void* input,
                 const void* gradient, void* result);
};

// Whether the functions below take this convolution. Filters with infinities are left to others, since the
// padding is multiplied here.
bool depthwise_convolves(const ConvShape& s);
bool depthwise_convolves(const ConvShape& s, const void* weight);
void depthwise_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                       void* output);
void depthwise_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                              void* input_gradient);
void depthwise_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                               void* weight_gradient);

}  // namespace rushlight::cpu
