// Convolutions of float32 images, channels last, and their gradients in the image, by lines of pixels: tiles
// of some pixels and some channels stay in registers while the filters pass. Groups and strides cost no more
// than what they multiply: in a gradient the pixels of each remainder by the strides see filters of their
// own.
#pragma once
#include <cstdint>

#include "cpu/conv_planes.h"
#include "cpu/span.h"

namespace rushlight::cpu {

// Whether these are convolutions for which that pays.
bool line_convolves(const ConvShape& s);
bool line_convolves_gradient(const ConvShape& s);
// False where padding would meet infinities: their products are no numbers. What is read, an image or a
// gradient of two dimensions, may lie in planes.
bool line_conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                       void* output);
bool line_conv_input_gradient(const ConvShape& s, OutputGradient output_gradient, const void* weight,
                              void* input_gradient);

// What the instruction sets provide.

// Pixels of a line of the result, `out_step` apart, by a panel of channels.
struct LineProduct {
  const float* image;      // what the first pixel sees first
  int64_t pixel_step;      // in the image
  const int64_t* offsets;  // of each tap
  int64_t taps, run;       // a tap has `run` channels
  const float* panel;      // [taps, run, columns of a panel]
  const float* bias;       // columns of a panel
  int64_t columns;         // that exist
  float* out;
  int64_t out_step;
};

struct LineConvKernels {
  int lanes = 0;  // of a vector; 0: no such kernels
  void (*multiply)(const LineProduct& p, int vectors, int64_t pixels);
};

}  // namespace rushlight::cpu
