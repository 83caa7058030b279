#include "cpu/affine.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(AffineKernels affine_kernels();)

namespace {

const AffineKernels& kernels() {
  static const AffineKernels chosen = RL_ISA_VARIANT(affine_kernels());
  return chosen;
}

// f(first element, number of elements, first channel, step between settings) for runs of neighbours.
template <class F>
void for_runs(const AffinePlan& plan, F f) {
  const int64_t lines = plan.inner == 1 ? plan.outer : plan.outer * plan.channels;
  const int64_t length = plan.inner == 1 ? plan.channels : plan.inner;
  if (plan.channels == 1) {
    parallel_for(0, plan.outer * plan.inner, kGrainSize,
                 [&](int64_t begin, int64_t end) { f(begin, end - begin, int64_t(0), int64_t(0)); });
    return;
  }
  parallel_for(0, lines, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, length)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line)
                   if (plan.inner == 1)
                     f(line * length, length, int64_t(0), int64_t(1));
                   else
                     f(line * length, length, line % plan.channels, int64_t(0));
               });
}

}  // namespace

void quantize_affine(const AffinePlan& plan, const float* x, DType dtype, float low, float high, void* out) {
  for_runs(plan, [&](int64_t at, int64_t n, int64_t channel, int64_t step) {
    kernels().quantize(x + at, n, plan.factors + channel, plan.zeros + channel, step, low, high,
                       dtype == DType::Int8, static_cast<char*>(out) + at);
  });
}

void dequantize_affine(const AffinePlan& plan, DType dtype, const void* x, float* out) {
  for_runs(plan, [&](int64_t at, int64_t n, int64_t channel, int64_t step) {
    kernels().dequantize(static_cast<const char*>(x) + at, dtype == DType::Int8, n, plan.factors + channel,
                         plan.zeros + channel, step, out + at);
  });
}

}  // namespace rushlight::cpu
