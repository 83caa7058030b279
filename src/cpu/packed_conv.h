// Convolutions of float32 images, channels last, by constant filters, which lie in panels made once. Each
// pixel of the result is a row of a product whose factors are pieces of the image, read where they lie; what
// follows (bias, scale, sum, bounds) is done while the sums are in registers.
#pragma once
#include <cstdint>

#include "cpu/conv.h"
#include "cpu/span.h"

namespace rushlight::cpu {

// Whether this is a convolution for which that pays.
bool packed_convolves(const ConvShape& s, const void* weight);
// `after` may be null. False where padding would meet infinities: their products are no numbers.
bool packed_conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                         void* output, const EpilogueArguments* after);

// What the instruction sets provide.

// A row's factors are `pieces` runs of `run` elements. Columns lie in panels of a few vectors; one that
// starts at vector v has its elements at panels + v * lanes * pieces * run, one factor's after another.
struct PixelProduct {
  int64_t pieces, run, columns;
  const float* panels;
  const float *bias = nullptr, *scale = nullptr, *shift = nullptr;  // by column
  const float* residual = nullptr;                                  // laid out as the result
  float* out = nullptr;
  int64_t out_step = 0;
  bool bounded = false;
  float low = 0, high = 0;
};

struct PackedConvKernels {
  int lanes = 0, vectors = 0;  // of a vector; of a panel at most
  // Rows [begin, end), whose factors start at factors[]: [pieces][rows of a group] for each group of rows,
  // and the vectors of columns [begin, end), which start with a panel.
  void (*multiply)(const PixelProduct& p, const float* const* factors, Span rows, Span vectors);
};

// Rows of the group that starts when `left` rows are left; vectors of a panel, likewise.
constexpr int kGroupRows = 6;
constexpr int group_rows(int64_t left) { return left >= 6 ? 6 : left >= 3 ? 3 : 1; }
constexpr int panel_vectors(int64_t left, int most) { return left >= 4 && most >= 4 ? 4 : left >= 2 ? 2 : 1; }

}  // namespace rushlight::cpu
