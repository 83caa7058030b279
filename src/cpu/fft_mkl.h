// MKL's Fourier transforms; present only in builds with MKL.
#pragma once
#include "cpu/fft.h"

namespace rushlight::cpu {

void fft_mkl(const Fft& transform, const void* in, void* out);

}  // namespace rushlight::cpu
