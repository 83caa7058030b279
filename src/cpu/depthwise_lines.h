// Convolutions of float32 images, channels last, in which each channel meets only its own filter: line by
// line, whole vectors of channels at a time. Pixels outside the image are left out.
#pragma once
#include <cstdint>

#include "cpu/conv.h"

namespace rushlight::cpu {

// Whether the functions below take this convolution; of gradients in the image only those of stride 1.
bool depthwise_by_lines(const ConvShape& s);
bool depthwise_gradient_by_lines(const ConvShape& s);
// Whether what follows can be done to a line before the next: bounds alone. `after` may be null.
bool follows_depthwise_lines(const EpilogueArguments* after);
void depthwise_lines_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                             void* output, const EpilogueArguments* after);
void depthwise_lines_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                                    void* input_gradient);
void depthwise_lines_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                                     void* weight_gradient);

// What the instruction sets provide. Filters and their gradients lie as [vectors of channels, taps, lanes].

// A line of the result.
struct DepthwiseLine {
  const float* const* lines;  // of the image, one for each line of the filters; null: outside
  int64_t height, width, channels, stride, padding, dilation, in_width, out_width;
  const float *filters, *bias;  // bias may be null
  float low, high;
  float* out;
};

// Pixels of a line by some taps, whose sums grow.
struct DepthwiseTap {
  const float* image;  // what the first pixel sees
  float* sums;         // of the first vector
};
struct DepthwiseSums {
  const float* gradient;  // of the first pixel
  int64_t pixels, channels, stride;
  int64_t vector_step;  // of the sums
  const DepthwiseTap* taps;
  int count;  // of taps, kMost at most
  static constexpr int kMost = 9;
};

struct DepthwiseLineKernels {
  int lanes = 0;  // of a vector; 0: no such kernels
  void (*line)(const DepthwiseLine& d);
  void (*add)(const DepthwiseSums& d);
};

}  // namespace rushlight::cpu
