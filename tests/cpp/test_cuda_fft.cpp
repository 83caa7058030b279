// What the CUDA library tells cuFFT about transforms.
#include <gtest/gtest.h>

#include "cuda/fft_plan.h"

namespace rushlight::cuda {
namespace {

DeviceFft some_transform(cpu::FftKind kind) {
  DeviceFft f;
  f.kind = kind, f.rank = 2, f.batch = 5;
  f.sizes[0] = 6, f.sizes[1] = 9;
  return f;
}

TEST(CudaFft, HalvesTheLastAxisOfTheComplexSide) {
  const FftPlan c = fft_plan(some_transform(cpu::FftKind::Complex));
  EXPECT_EQ(c.type, cufft::kC2C);
  EXPECT_EQ(c.in_distance, 54);
  EXPECT_EQ(c.out_distance, 54);
  const FftPlan forward = fft_plan(some_transform(cpu::FftKind::RealToComplex));
  EXPECT_EQ(forward.type, cufft::kR2C);
  EXPECT_EQ(forward.in_distance, 54);
  EXPECT_EQ(forward.out_distance, 30);
  EXPECT_EQ(forward.sizes, (std::array<long long, 3>{6, 9, 0}));
  EXPECT_EQ(forward.batch, 5);
  DeviceFft wide = some_transform(cpu::FftKind::ComplexToReal);
  wide.double_precision = true;
  EXPECT_EQ(fft_plan(wide).type, cufft::kZ2D);
  EXPECT_EQ(fft_plan(wide).in_distance, 30);
}

TEST(CudaFft, KeepsThePlansUsedLast) {
  std::vector<int> dropped;
  FftPlans<int> plans(2, [&](int handle) { dropped.push_back(handle); });
  int made = 0;
  auto use = [&](int64_t size) {
    DeviceFft f = some_transform(cpu::FftKind::Complex);
    f.sizes[0] = size;
    return plans.of(fft_plan(f), [&] { return ++made; });
  };
  EXPECT_EQ(use(1), 1);
  EXPECT_EQ(use(2), 2);
  EXPECT_EQ(use(1), 1);
  EXPECT_EQ(use(3), 3);
  EXPECT_EQ(dropped, std::vector<int>{2});
  EXPECT_EQ(use(1), 1);
  EXPECT_EQ(use(2), 4);
  EXPECT_EQ(plans.size(), 2u);
}

}  // namespace
}  // namespace rushlight::cuda
