// What the CUDA library tells cuBLAS and cuBLASLt about products.
#include <gtest/gtest.h>

#include "cuda/gemm_plan.h"

namespace rushlight::cuda {
namespace {

View matrix(DType dtype, std::initializer_list<int64_t> sizes, std::initializer_list<int64_t> strides) {
  View v;
  v.dtype = dtype, v.rank = static_cast<int>(sizes.size());
  const auto item = static_cast<int64_t>(element_size(dtype));
  int d = 0;
  for (int64_t n : sizes) v.sizes[d++] = n;
  d = 0;
  for (int64_t s : strides) v.strides[d++] = s * item;
  return v;
}

TEST(CudaGemm, TurnsRowsIntoColumns) {
  const View out = matrix(DType::Float32, {3, 5}, {5, 1});
  const GemmPlan p =
      gemm_plan(out, matrix(DType::Float32, {3, 4}, {9, 1}), matrix(DType::Float32, {4, 5}, {1, 4}), {});
  EXPECT_EQ(p.m, 3);
  EXPECT_EQ(p.n, 5);
  EXPECT_EQ(p.k, 4);
  EXPECT_EQ(p.left_operation, cublas::kNotTransposed);
  EXPECT_EQ(p.left_leading, 9);
  EXPECT_EQ(p.right_operation, cublas::kTransposed);
  EXPECT_EQ(p.right_leading, 4);
  EXPECT_EQ(p.compute, cublas::kCompute32);
  EXPECT_EQ(p.batch, 1);
}

TEST(CudaGemm, StepsThroughBatches) {
  const View out = matrix(DType::Float64, {7, 3, 5}, {15, 5, 1});
  const GemmPlan p = gemm_plan(out, matrix(DType::Float64, {7, 3, 4}, {12, 4, 1}),
                               matrix(DType::Float64, {7, 4, 5}, {0, 5, 1}), {true});
  EXPECT_EQ(p.batch, 7);
  EXPECT_EQ(p.left_step, 12);
  EXPECT_EQ(p.right_step, 0);
  EXPECT_EQ(p.out_step, 15);
  EXPECT_TRUE(p.wide);
  EXPECT_EQ(p.compute, cublas::kCompute64);
  EXPECT_EQ(p.scale_type, cublas::kReal64);
}

TEST(CudaGemm, DoesWhatTheProgramAllows) {
  auto plan = [](DType t, const GemmSwitches& allowed) {
    const View v = matrix(t, {4, 4}, {4, 1});
    return gemm_plan(v, v, v, allowed);
  };
  GemmSwitches s;
  EXPECT_EQ(plan(DType::Float32, s).compute, cublas::kCompute32);
  s.tf32 = true;
  EXPECT_EQ(plan(DType::Float32, s).compute, cublas::kComputeTf32);
  EXPECT_EQ(plan(DType::Complex64, s).compute, cublas::kCompute32);
  EXPECT_FALSE(plan(DType::Float16, s).exact_sums);
  s.half_sums = false;
  EXPECT_TRUE(plan(DType::Float16, s).exact_sums);
  EXPECT_FALSE(plan(DType::BFloat16, s).exact_sums);
  s.bfloat16_sums = false;
  EXPECT_TRUE(plan(DType::BFloat16, s).exact_sums);
  s.half_accumulation = true;
  EXPECT_EQ(plan(DType::Float16, s).compute, cublas::kCompute16);
  EXPECT_EQ(plan(DType::Float16, s).scale_type, cublas::kReal16);
  EXPECT_EQ(plan(DType::BFloat16, s).scale_type, cublas::kReal32);
}

TEST(CudaGemm, FindsAlignments) {
  EXPECT_EQ(alignment_of(reinterpret_cast<void*>(0x1000)), 256u);
  EXPECT_EQ(alignment_of(reinterpret_cast<void*>(0x1010)), 16u);
  EXPECT_EQ(alignment_of(reinterpret_cast<void*>(0x1002)), 2u);
}

}  // namespace
}  // namespace rushlight::cuda
