// Discrete Fourier transforms of strided data: MKL's where built in, own loops elsewhere.
#pragma once
#include <vector>

#include "core/dtype.h"

namespace rushlight::cpu {

// RealToComplex writes n / 2 + 1 points along the last axis; ComplexToReal reads as many, and has one axis.
enum class FftKind : uint8_t { Complex, RealToComplex, ComplexToReal };

// Strides in elements of the side they belong to.
struct FftAxis {
  int64_t n, in_stride, out_stride;
  friend bool operator==(const FftAxis&, const FftAxis&) = default;
};

struct Fft {
  FftKind kind = FftKind::Complex;
  bool double_precision = false;
  bool forward = true;  // of Complex; RealToComplex is forward, ComplexToReal is not
  double scale = 1;
  std::vector<FftAxis> axes;   // n counts points of the longer side
  std::vector<FftAxis> batch;  // repeats the transform
};

// `in` and `out` do not overlap; strides are positive where they matter.
void fft(const Fft& transform, const void* in, void* out);
// The own loops, whatever is built in.
void fft_loops(const Fft& transform, const void* in, void* out);

// out[..., -k] = conj(out[..., k]) for the points of the last axis that RealToComplex leaves out; strides of
// `out`.
void fft_fill_conjugate(const Fft& transform, void* out);

}  // namespace rushlight::cpu
