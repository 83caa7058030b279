#include "cuda/gemm_plan.h"

#include <algorithm>

namespace rushlight::cuda {
namespace {

int type_of(DType t) {
  switch (t) {
    case DType::Float16:
      return cublas::kReal16;
    case DType::BFloat16:
      return cublas::kReal16B;
    case DType::Float64:
      return cublas::kReal64;
    case DType::Complex64:
      return cublas::kComplex32;
    case DType::Complex128:
      return cublas::kComplex64;
    default:
      return cublas::kReal32;
  }
}

int scale_type_of(DType t, int compute) {
  if (compute == cublas::kCompute16) return cublas::kReal16;
  const int type = type_of(t);
  return type == cublas::kReal16 || type == cublas::kReal16B ? cublas::kReal32 : type;
}

struct Layout {
  int operation, leading;
};
Layout layout_of(const View& v) {
  const auto item = static_cast<int64_t>(element_size(v.dtype));
  const int64_t row = v.strides[v.rank - 2] / item, column = v.strides[v.rank - 1] / item;
  const int64_t rows = v.sizes[v.rank - 2], columns = v.sizes[v.rank - 1];
  if (column == 1 || columns == 1) return {cublas::kNotTransposed, static_cast<int>(std::max(row, columns))};
  return {cublas::kTransposed, static_cast<int>(std::max(column, rows))};
}

int64_t step_of(const View& v) {
  return v.rank == 3 ? v.strides[0] / static_cast<int64_t>(element_size(v.dtype)) : 0;
}

}  // namespace

GemmPlan gemm_plan(const View& out, const View& a, const View& b, const GemmSwitches& allowed) {
  GemmPlan p;
  p.m = static_cast<int>(out.sizes[out.rank - 2]), p.n = static_cast<int>(out.sizes[out.rank - 1]);
  p.k = static_cast<int>(a.sizes[a.rank - 1]);
  p.batch = out.rank == 3 ? static_cast<int>(out.sizes[0]) : 1;
  p.type = type_of(out.dtype);
  p.wide = out.dtype == DType::Float64 || out.dtype == DType::Complex128;
  const bool single = out.dtype == DType::Float32, half = out.dtype == DType::Float16;
  p.compute = p.wide                              ? cublas::kCompute64
              : single && allowed.tf32            ? cublas::kComputeTf32
              : half && allowed.half_accumulation ? cublas::kCompute16
                                                  : cublas::kCompute32;
  p.scale_type = scale_type_of(out.dtype, p.compute);
  p.exact_sums = (half && !allowed.half_sums) || (out.dtype == DType::BFloat16 && !allowed.bfloat16_sums);
  const Layout left = layout_of(a), right = layout_of(b);
  p.left_operation = left.operation, p.left_leading = left.leading;
  p.right_operation = right.operation, p.right_leading = right.leading;
  p.left_step = step_of(a), p.right_step = step_of(b), p.out_step = step_of(out);
  return p;
}

uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

}  // namespace rushlight::cuda
