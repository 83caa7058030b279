#include "cuda/fft_plan.h"

namespace rushlight::cuda {

FftPlan fft_plan(const DeviceFft& f) {
  FftPlan p;
  p.rank = f.rank, p.batch = f.batch;
  long long points = 1;
  for (int a = 0; a < f.rank; ++a) p.sizes[static_cast<size_t>(a)] = f.sizes[a], points *= f.sizes[a];
  const long long last = f.sizes[f.rank - 1], half = points / last * (last / 2 + 1);
  p.in_distance = p.out_distance = points;
  switch (f.kind) {
    case cpu::FftKind::Complex:
      p.type = f.double_precision ? cufft::kZ2Z : cufft::kC2C;
      break;
    case cpu::FftKind::RealToComplex:
      p.type = f.double_precision ? cufft::kD2Z : cufft::kR2C;
      p.out_distance = half;
      break;
    default:
      p.type = f.double_precision ? cufft::kZ2D : cufft::kC2R;
      p.in_distance = half;
  }
  return p;
}

}  // namespace rushlight::cuda
