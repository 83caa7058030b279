// Loops between floats and bytes with a scale and a zero point, for each instruction set.
#include "cpu/affine.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// What is no number becomes `low`: a comparison with it is false.
template <class T>
[[gnu::always_inline]] inline T quantized(float x, float factor, float zero, float low, float high) {
  float y = __builtin_rintf(x * factor) + zero;
  y = y > low ? y : low;
  y = y < high ? y : high;
  return static_cast<T>(static_cast<int32_t>(y));
}

template <class T>
void quantize_typed(const float* x, int64_t n, const float* factors, const float* zeros, int64_t step,
                    float low, float high, T* out) {
  const float factor = *factors, zero = *zeros;
  if (step == 0)
    for (int64_t i = 0; i < n; ++i) out[i] = quantized<T>(x[i], factor, zero, low, high);
  else
    for (int64_t i = 0; i < n; ++i) out[i] = quantized<T>(x[i], factors[i], zeros[i], low, high);
}

template <class T>
void dequantize_typed(const T* x, int64_t n, const float* factors, const float* zeros, int64_t step,
                      float* out) {
  const float factor = *factors, zero = *zeros;
  if (step == 0)
    for (int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(x[i]) - zero) * factor;
  else
    for (int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(x[i]) - zeros[i]) * factors[i];
}

void quantize(const float* x, int64_t n, const float* factors, const float* zeros, int64_t step, float low,
              float high, bool is_signed, void* out) {
  if (is_signed)
    quantize_typed(x, n, factors, zeros, step, low, high, static_cast<int8_t*>(out));
  else
    quantize_typed(x, n, factors, zeros, step, low, high, static_cast<uint8_t*>(out));
}

void dequantize(const void* x, bool is_signed, int64_t n, const float* factors, const float* zeros,
                int64_t step, float* out) {
  if (is_signed)
    dequantize_typed(static_cast<const int8_t*>(x), n, factors, zeros, step, out);
  else
    dequantize_typed(static_cast<const uint8_t*>(x), n, factors, zeros, step, out);
}

void sum(const float* a, const float* b, int64_t n, float least, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    const float both = a[i] + b[i];
    out[i] = both > least ? both : least;
  }
}

template <class T>
void sum_bytes_typed(const T* __restrict a, const T* __restrict b, int64_t n, AffineSum s,
                     T* __restrict out) {
  for (int64_t i = 0; i < n; ++i) {
    const float both =
        (static_cast<float>(a[i]) - s.a_zero) * s.a_scale + (static_cast<float>(b[i]) - s.b_zero) * s.b_scale;
    out[i] = quantized<T>(both > s.least ? both : s.least, s.inverse_scale, s.zero, s.low, s.high);
  }
}

void sum_bytes(const void* a, const void* b, bool is_signed, int64_t n, const AffineSum& sum, void* out) {
  if (is_signed)
    sum_bytes_typed(static_cast<const int8_t*>(a), static_cast<const int8_t*>(b), n, sum,
                    static_cast<int8_t*>(out));
  else
    sum_bytes_typed(static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b), n, sum,
                    static_cast<uint8_t*>(out));
}

void accumulate(const uint8_t* numbers, int bits, int64_t n, float scale, float bias, float* out) {
  if (bits == 8) {
    for (int64_t i = 0; i < n; ++i) out[i] += static_cast<float>(numbers[i]) * scale + bias;
    return;
  }
  for (int64_t i = 0; i < n / 2; ++i) {
    out[2 * i] += static_cast<float>(numbers[i] & 15) * scale + bias;
    out[2 * i + 1] += static_cast<float>(numbers[i] >> 4) * scale + bias;
  }
  if (n % 2) out[n - 1] += static_cast<float>(numbers[n / 2] & 15) * scale + bias;
}

}  // namespace

AffineKernels affine_kernels() { return {quantize, dequantize, sum, sum_bytes, accumulate}; }

}  // namespace rushlight::cpu::RL_ISA
