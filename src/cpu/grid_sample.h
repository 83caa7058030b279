// Sampling of images and volumes at any point.
#pragma once
#include <array>
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

enum class SampleMode : uint8_t { Bilinear, Nearest, Bicubic };
enum class SamplePadding : uint8_t { Zeros, Border, Reflection };

// input [batch, channels, size...], grid [batch, points, dims] with coordinates last dimension first, result
// [batch, channels, points]; all contiguous, but for the input where nothing asks for gradients: it lies as
// the steps say, the last pixel of a plane less than 2^31 elements behind the first.
struct SamplePlan {
  DType dtype = DType::Float32;
  int64_t batch = 0, channels = 0, points = 0;
  int dims = 2;
  std::array<int64_t, 3> size{1, 1, 1};  // of the last `dims` dimensions, the first of them first
  std::array<int64_t, 3> step{1, 1, 1};  // elements from a pixel to the next, of the same dimensions
  int64_t channel_step = 0, batch_step = 0;
  SampleMode mode = SampleMode::Bilinear;
  SamplePadding padding = SamplePadding::Zeros;
  bool align_corners = false;
  int64_t plane() const { return size[0] * size[1] * size[2]; }
};

void grid_sample(const SamplePlan& plan, const void* input, const void* grid, void* out);
// grad_input starts as zeros; either may be null.
void grid_sample_backward(const SamplePlan& plan, const void* grad, const void* input, const void* grid,
                          void* grad_input, void* grad_grid);

}  // namespace rushlight::cpu
