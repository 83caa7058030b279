// Maxima over windows that begin anywhere.
#pragma once
#include <array>

#include "core/dtype.h"

namespace rushlight::cpu {

// Planes of up to three dimensions; the windows of a plane begin where its row of `starts` says, dimension
// after dimension.
struct FractionalWindows {
  int64_t planes = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  const int64_t* starts = nullptr;

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
};

// Contiguous planes; indices are positions in a plane. Of equal elements the first, of NaN the last counts.
void fractional_max_pool(const FractionalWindows& windows, DType dtype, const void* in, void* out,
                         int64_t* indices);

}  // namespace rushlight::cpu
