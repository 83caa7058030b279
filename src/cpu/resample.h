// Resizing along axes: each output element is a weighted sum of input elements, axis after axis. A table per
// axis says which; its transpose serves the gradient, so that one loop does both.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/dtype.h"

namespace rushlight::cpu {

// Order is that of the operators in ops/interpolate.cpp.
enum class Filter : uint8_t {
  Nearest,
  NearestExact,
  Linear,
  Cubic,
  LinearAntialias,
  CubicAntialias,
  Lanczos
};

struct ResampleAxis {
  int64_t in = 1, out = 1, taps = 1;
  std::vector<int32_t> index;  // [taps][out]
  std::vector<double> weight;  // [taps][out]; a padding tap weighs 0
  bool is_padded() const;
  int64_t span() const;  // the most input elements between the first and last tap of one output
};

// `factor` is what the user gave as scale_factor, if anything. Positions are computed in `dtype`'s compute
// type.
ResampleAxis resample_axis(Filter filter, int64_t in, int64_t out, std::optional<double> factor,
                           bool align_corners, DType dtype);
ResampleAxis transposed(const ResampleAxis& axis);

struct ResamplePlan {
  int64_t batch = 1, inner = 1;      // planes of [depth, height, width, inner]
  std::array<ResampleAxis, 3> axis;  // an unused axis has in = out = 1
  bool skip_zeros = false;           // padding taps must not spread infinities
  bool copies = false;               // one tap an axis, of weight 1
};

void resample(DType dtype, const ResamplePlan& plan, const void* in, void* out);

}  // namespace rushlight::cpu
