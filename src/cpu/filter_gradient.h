// Gradients of the filters of float32 images, channels last. A gradient is a product: its rows are the
// numbers of a filter, its columns the channels of the result, and its sums run over pixels. Some pixels at a
// time meet all rows and columns, read where they lie but for their margins.
#pragma once
#include <cstdint>

#include "cpu/conv_planes.h"
#include "cpu/span.h"

namespace rushlight::cpu {

// Whether this is a convolution for which that pays.
bool filter_gradient_sums(const ConvShape& s);
// False when a result is not finite: padding is multiplied here, so this must be computed without it. Both
// operands may lie in planes.
bool filter_gradient(const ConvShape& s, OutputGradient output_gradient, const void* input,
                     void* weight_gradient);

// What the instruction sets provide.

// Lines of pixels of the result by one panel of its channels.
struct PixelSums {
  int64_t lines, width;           // pixels
  const float* gradient;          // [lines, width, columns of a panel]
  const float* image;             // what the first pixel sees first
  int64_t line_step, pixel_step;  // in the image
  const int64_t* offsets;         // of each row, from what a pixel sees first
  float* sums;                    // [rows, columns of a panel]
  bool first;                     // they are set, not added to
};

struct FilterGradientKernels {
  int lanes = 0;  // of a vector; 0: no such kernels
  // Rows [begin, end) of a panel of one or two vectors.
  void (*add)(const PixelSums& p, int vectors, Span rows);
};

}  // namespace rushlight::cpu
