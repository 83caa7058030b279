// 3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3) and F(4x4, 3x3): tiles of 4x4 or 6x6 pixels and the
// filters are transformed, so that four results cost 16 multiplications a channel instead of 36, or sixteen
// 36 instead of 144. Images have their channels last.
#pragma once
#include "cpu/conv.h"
#include "cpu/epilogue.h"

namespace rushlight::cpu {

// Whether this is a convolution for which the transforms pay: of the image and of its gradient, or in the
// gradient of the filters.
bool winograd_convolves(const ConvShape& s);
bool winograd_convolves_weight(const ConvShape& s);
// False when a result is not finite: a tile shares what one pixel holds, so this must be computed plainly.
// `after`, which may be null, is done to the output too.
bool winograd_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                      void* output, const EpilogueArguments* after);
bool winograd_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                             void* input_gradient);
bool winograd_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                              void* weight_gradient);

// Tiles of (results + 2) x (results + 2) pixels, `results` apart, of images [batch, height, width, channels].
struct WinogradTiles {
  int64_t results;
  int64_t height, width, channels;  // of the image
  int64_t rows, columns;            // tiles of one image
  int64_t top, left;                // padding before
  int64_t out_height, out_width, out_channels;

  int64_t points() const { return (results + 2) * (results + 2); }
};

// For one number of results, 2 or 4.
struct WinogradKernels {
  // Rows [begin, end) of [points, rows, columns] from filters [rows, columns, 3, 3], which may be turned by
  // half a turn.
  void (*filters)(const float* weight, int64_t rows, int64_t columns, bool turned, int64_t begin, int64_t end,
                  float* result);
  // The adjoint: gradients of the filters [begin, end) from those of [points, out, in]. False when
  // some number is not finite.
  bool (*collect)(const float* points, int64_t out, int64_t in, int64_t begin, int64_t end, float* weight);
  // Tiles [begin, end), the first of which goes to line `line` of [points, lines, channels].
  void (*image)(const WinogradTiles& t, const float* image, int64_t begin, int64_t end, int64_t line,
                int64_t lines, float* result);
  // The same of gradients of results, to [points, lines, out_channels]: the adjoint of `results`.
  void (*gradient)(const WinogradTiles& t, const float* gradient, int64_t begin, int64_t end, int64_t line,
                   int64_t lines, float* result);
  // The other way: [points, lines, out_channels] to images. False when some result is not finite.
  bool (*results)(const WinogradTiles& t, const float* products, int64_t begin, int64_t end, int64_t line,
                  int64_t lines, const float* bias, float* image, const EpilogueArguments* after);
};

}  // namespace rushlight::cpu
