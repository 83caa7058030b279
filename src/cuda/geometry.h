// Where the elements of a loop's operands lie: the index arithmetic of all kernels, for host and device.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define RL_BOTH __host__ __device__
#define RL_DEVICE __device__
#else
#define RL_BOTH
#define RL_DEVICE
#endif

namespace rushlight::cuda {

// Division by a number that stays the same, by multiplication (Granlund and Montgomery, 1994); for operands
// below 2^31.
struct Divider {
  uint32_t divisor = 1, multiplier = 1, shift = 0;

  Divider() = default;
  explicit Divider(uint32_t d) : divisor(d) {
    while ((uint64_t{1} << shift) < d) ++shift;
    multiplier = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d) / d + 1);
  }
  RL_BOTH uint32_t divide(uint32_t n) const {
#ifdef __CUDA_ARCH__
    const uint32_t high = __umulhi(n, multiplier);
#else
    const auto high = static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32);
#endif
    return (high + n) >> shift;
  }
};

constexpr int kMaxRank = 12;
constexpr int kMaxOperands = 4;

// Dimension 0 is the innermost. Strides are in bytes, of what one loop touches below 2^31.
struct Geometry {
  int rank = 0, operands = 0;
  uint32_t numel = 0;
  Divider sizes[kMaxRank];
  int32_t strides[kMaxRank][kMaxOperands] = {};

  // The distance of element `index` from the start of each operand.
  RL_BOTH void locate(uint32_t index, int32_t* offsets) const {
    for (int i = 0; i < operands; ++i) offsets[i] = 0;
    for (int d = 0; d < rank; ++d) {
      const uint32_t rest = sizes[d].divide(index);
      const auto at = static_cast<int32_t>(index - rest * sizes[d].divisor);
      for (int i = 0; i < operands; ++i) offsets[i] += at * strides[d][i];
      index = rest;
    }
  }
  // The same for a number of operands that the compiler knows.
  template <int n>
  RL_BOTH void locate_few(uint32_t index, int32_t (&offsets)[n]) const {
    for (int i = 0; i < n; ++i) offsets[i] = 0;
    int d = 0;
    for (; d + 1 < rank; ++d) {
      const uint32_t rest = sizes[d].divide(index);
      const auto at = static_cast<int32_t>(index - rest * sizes[d].divisor);
      for (int i = 0; i < n; ++i) offsets[i] += at * strides[d][i];
      index = rest;
    }
    for (int i = 0; i < n; ++i) offsets[i] += static_cast<int32_t>(index) * strides[d][i];
  }
};

// a / b for numbers that are not negative: in 32 bits, where they fit, as it is several times faster.
RL_BOTH inline int64_t quotient(int64_t a, int64_t b) {
  if ((a | b) >> 32 == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

// The same beyond 32 bits, for loops whose work hides the divisions. Strides in bytes. `index` is below the
// product of the sizes.
template <int operands>
struct LongGeometry {
  int rank = 0;
  int64_t sizes[kMaxRank] = {};
  int64_t strides[kMaxRank][operands] = {};

  RL_BOTH void locate(int64_t index, int64_t* offsets) const {
    for (int i = 0; i < operands; ++i) offsets[i] = 0;
    for (int d = 0; d < rank; ++d) {
      const int64_t rest = d + 1 == rank ? 0 : quotient(index, sizes[d]), at = index - rest * sizes[d];
      for (int i = 0; i < operands; ++i) offsets[i] += at * strides[d][i];
      index = rest;
    }
  }
};

}  // namespace rushlight::cuda
