#include "cpu/softmax.h"

#include "core/parallel.h"

namespace rushlight::cpu {

namespace baseline {
SoftmaxKernels softmax_kernels(DType dtype);
}
namespace avx2 {
SoftmaxKernels softmax_kernels(DType dtype);
}
namespace avx512 {
SoftmaxKernels softmax_kernels(DType dtype);
}

namespace {

SoftmaxKernels pick(DType dtype) {
#ifdef RUSHLIGHT_WITH_AVX512
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    return avx512::softmax_kernels(dtype);
#endif
#ifdef RUSHLIGHT_WITH_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::softmax_kernels(dtype);
#endif
  return baseline::softmax_kernels(dtype);
}

const SoftmaxKernels& kernels(DType dtype) {
  static const SoftmaxKernels singles = pick(DType::Float32), doubles = pick(DType::Float64);
  return dtype == DType::Float32 ? singles : doubles;
}

int64_t grain(SoftmaxShape s) {
  return std::max<int64_t>(1, kGrainSize / 8 / std::max<int64_t>(1, s.n * s.inner));
}

}  // namespace

void softmax(const void* in, void* out, SoftmaxShape shape, bool logarithm, DType dtype) {
  const auto f = kernels(dtype).forward;
  parallel_for(0, shape.outer, grain(shape),
               [&](int64_t b, int64_t e) { f(in, out, shape, logarithm, b, e); });
}

void softmax_backward(const void* grad, const void* out, void* result, SoftmaxShape shape, bool logarithm,
                      DType dtype) {
  const auto f = kernels(dtype).backward;
  parallel_for(0, shape.outer, grain(shape),
               [&](int64_t b, int64_t e) { f(grad, out, result, shape, logarithm, b, e); });
}

}  // namespace rushlight::cpu
