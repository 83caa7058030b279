// Images whose borders repeat or mirror elements from inside.
#pragma once
#include <array>
#include <vector>

#include "core/dtype.h"

namespace rushlight::cpu {

// One padded dimension. Elements `first` to `last` of the result lie as in the source, from `start` on; the
// source of every element, of the borders too, is in `source`.
struct PaddedAxis {
  int64_t in = 1, out = 1;  // sizes
  int64_t first = 0, last = 1, start = 0;
  std::vector<int64_t> source{0};
};

struct PaddedImages {
  int64_t images = 1;  // each contiguous, axes in order
  std::array<PaddedAxis, 3> axes;
  int64_t inner = 1;  // elements that share a position: channels, where they come last
};

void pad_with_mode(const PaddedImages& p, size_t itemsize, const void* in, void* out);

// The adjoint: each element of `grad` is added to its source in `out`, all of which is written. Floating or
// complex.
void pad_with_mode_backward(const PaddedImages& p, DType dtype, const void* grad, void* out);

}  // namespace rushlight::cpu
