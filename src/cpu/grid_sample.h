// Sampling of images and volumes at any point.
#pragma once
#include <array>
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

enum class SampleMode : uint8_t { Bilinear, Nearest, Bicubic };
enum class SamplePadding : uint8_t { Zeros, Border, Reflection };

// input [batch, channels, size...], grid [batch, points, dims] with coordinates last dimension first, result
// [batch, channels, points]; all contiguous.
struct SamplePlan {
  DType dtype = DType::Float32;
  int64_t batch = 0, channels = 0, points = 0;
  int dims = 2;
  std::array<int64_t, 3> size{1, 1, 1};  // of the last `dims` dimensions, the first of them first
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
