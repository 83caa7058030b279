// Maxima over windows that begin anywhere.
#pragma once
#include <array>
#include <cmath>

#include "core/dtype.h"

namespace rushlight::cpu {

// Planes of up to three dimensions; the windows of a plane begin where its row of `starts` says, for the last
// `dims` of them, dimension after dimension.
struct FractionalWindows {
  int dims = 3;
  int64_t planes = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  const int64_t* starts = nullptr;

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  int64_t starts_of_plane() const { return (dims == 3 ? out[0] : 0) + out[1] + out[2]; }
  bool within() const;  // whether all windows lie in their planes
};

// Contiguous planes; indices are positions in a plane. Of equal elements the first, of NaN the last counts.
void fractional_max_pool(const FractionalWindows& windows, DType dtype, const void* in, void* out,
                         int64_t* indices);

// Where `count` windows begin along a dimension: steps of `alpha` from a random number, the last one at the
// border.
template <class T>
void random_starts(T sample, int64_t border, int64_t count, int64_t* starts) {
  using C = compute_type<T>;
  const C alpha =
      count > 1 ? static_cast<C>(static_cast<double>(border) / static_cast<double>(count - 1)) : C(0);
  const T shift = T(std::floor(C(T(C(sample) * alpha))));
  for (int64_t i = 0; i + 1 < count; ++i) {
    const T step = T(C(T(static_cast<C>(i))) + C(sample)), begin = T(std::floor(C(T(C(step) * alpha))));
    starts[i] = static_cast<int64_t>(C(T(C(begin) - C(shift))));
  }
  if (count > 0) starts[count - 1] = border;
}

}  // namespace rushlight::cpu
