#include "cpu/double_gemm.h"

#include "cpu/isa/register_inl.h"
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(RL_NEON)
#include <arm_neon.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

// The sums, two registers of columns and a factor fill the registers.
#if defined(RL_NEON)
constexpr int kRows = 12;  // factors are read ahead, two in a register
#else
constexpr int kRows = kRegisters / 2 - 2;
#endif
constexpr int kLanes = kRegisterBytes / static_cast<int>(sizeof(double));
typedef double Vector __attribute__((vector_size(kRegisterBytes)));

// From memory to all lanes. g++ reads into one lane otherwise and takes a unit of arithmetic to spread it.
[[gnu::always_inline, maybe_unused]] inline Vector spread(const double* x) {
#if defined(__AVX512F__)
  return _mm512_set1_pd(*x);
#elif defined(__AVX2__)
  return _mm256_broadcast_sd(x);
#else
  return Vector{} + *x;
#endif
}

void tile(const double* a, const double* b, int64_t k, double alpha, double beta, double* c, int64_t ldc) {
  Vector first[kRows] = {}, second[kRows] = {};  // never addressed as a whole, so that they are registers
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r) {
    __builtin_prefetch(c + r * ldc);
    __builtin_prefetch(c + r * ldc + 2 * kLanes - 1);
  }
  for (int64_t p = 0; p < k; ++p) {
    Vector left, right;
    __builtin_memcpy(&left, b + p * 2 * kLanes, kRegisterBytes);
    __builtin_memcpy(&right, b + p * 2 * kLanes + kLanes, kRegisterBytes);
#if defined(RL_NEON)  // multiplies by a lane: two factors are one load
#pragma GCC unroll 14
    for (int r = 0; r < kRows; r += 2) {
      const float64x2_t factors = vld1q_f64(a + p * kRows + r);
      first[r] = vfmaq_laneq_f64(first[r], left, factors, 0);
      second[r] = vfmaq_laneq_f64(second[r], right, factors, 0);
      first[r + 1] = vfmaq_laneq_f64(first[r + 1], left, factors, 1);
      second[r + 1] = vfmaq_laneq_f64(second[r + 1], right, factors, 1);
    }
#else
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
      const Vector factor = spread(a + p * kRows + r);
      first[r] += left * factor;
      second[r] += right * factor;
    }
#endif
  }
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r) {
    Vector left = first[r] * alpha, right = second[r] * alpha;
    if (beta != 0) {
      Vector before;
      __builtin_memcpy(&before, c + r * ldc, kRegisterBytes);
      left += before * beta;
      __builtin_memcpy(&before, c + r * ldc + kLanes, kRegisterBytes);
      right += before * beta;
    }
    __builtin_memcpy(c + r * ldc, &left, kRegisterBytes);
    __builtin_memcpy(c + r * ldc + kLanes, &right, kRegisterBytes);
  }
}

}  // namespace

DoubleTile double_tile() { return {kRows, 2 * kLanes, &tile}; }

}  // namespace rushlight::cpu::RL_ISA
