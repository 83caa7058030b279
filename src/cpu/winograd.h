// 3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3): tiles of 4x4 pixels and the filters are
// transformed, so that four results cost 16 multiplications a channel instead of 36. Images have their
// channels last.
#pragma once
#include "cpu/conv.h"
#include "cpu/epilogue.h"

namespace rushlight::cpu {

// Whether this is a convolution for which the transforms pay.
bool winograd_convolves(const ConvShape& s);
// False when a result is not finite: a tile shares what one pixel holds, so this must be computed plainly.
// `after`, which may be null, is done to the output too.
bool winograd_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                      void* output, const EpilogueArguments* after);
bool winograd_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                             void* input_gradient);

// Tiles of 4x4 pixels, two apart, of images [batch, height, width, channels].
struct WinogradTiles {
  int64_t height, width, channels;  // of the image
  int64_t rows, columns;            // tiles of one image
  int64_t top, left;                // padding before
  int64_t out_height, out_width, out_channels;
};

struct WinogradKernels {
  // Rows [begin, end) of [16, out, in] from filters [out, in, 3, 3], or from [in, out, 3, 3] turned by half a
  // turn.
  void (*filters)(const float* weight, int64_t out, int64_t in, bool turned, int64_t begin, int64_t end,
                  float* result);
  // Tiles [begin, end), the first of which goes to line `line` of [16, lines, channels].
  void (*image)(const WinogradTiles& t, const float* image, int64_t begin, int64_t end, int64_t line,
                int64_t lines, float* result);
  // The other way: [16, lines, out_channels] to images. False when some result is not finite.
  bool (*results)(const WinogradTiles& t, const float* products, int64_t begin, int64_t end, int64_t line,
                  int64_t lines, const float* bias, float* image, const EpilogueArguments* after);
};

}  // namespace rushlight::cpu
