#include "cpu/softmax.h"

#include <array>
#include <memory>

#include "core/parallel.h"
#include "cpu/isa_variant.h"
#include "cpu/loops.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(SoftmaxKernels softmax_kernels(DType dtype);)

namespace {

SoftmaxKernels pick(DType dtype) { return RL_ISA_VARIANT(softmax_kernels(dtype)); }

const SoftmaxKernels& kernels(DType dtype) {
  static const SoftmaxKernels singles = pick(DType::Float32), doubles = pick(DType::Float64);
  return dtype == DType::Float32 ? singles : doubles;
}

int64_t grain(SoftmaxShape s) {
  return std::max<int64_t>(1, kGrainSize / 8 / std::max<int64_t>(1, s.n * s.inner));
}

// Half types compute in float, by groups of slabs that stay in the cache: f(inputs, output, shape) for each.
template <size_t N, class F>
void in_float(const std::array<const void*, N>& inputs, void* out, SoftmaxShape shape, DType dtype, F&& f) {
  constexpr int64_t kGroup = 1 << 11;  // elements
  const int64_t slab = shape.n * shape.inner, group = std::max<int64_t>(1, kGroup / slab),
                item = static_cast<int64_t>(element_size(dtype)), wide = sizeof(float);
  const CastLoop widen = cast_loop(DType::Float32, dtype), narrow = cast_loop(dtype, DType::Float32);
  parallel_for(0, shape.outer, grain(shape), [&](int64_t begin, int64_t end) {
    const int64_t room = std::min(group, end - begin) * slab;
    const std::unique_ptr<float[]> buffer(new float[static_cast<size_t>(room) * (N + 1)]);
    std::array<const void*, N> x;
    for (int64_t o = begin; o < end; o += group) {
      const int64_t count = std::min(group, end - o), elements = count * slab, offset = o * slab * item;
      for (size_t k = 0; k < N; ++k) {
        float* to = buffer.get() + static_cast<int64_t>(k + 1) * room;
        widen(reinterpret_cast<char*>(to), wide, static_cast<const char*>(inputs[k]) + offset, item,
              elements);
        x[k] = to;
      }
      f(x, buffer.get(), SoftmaxShape{count, shape.n, shape.inner});
      narrow(static_cast<char*>(out) + offset, item, reinterpret_cast<char*>(buffer.get()), wide, elements);
    }
  });
}

}  // namespace

void softmax(const void* in, void* out, SoftmaxShape shape, bool logarithm, DType dtype) {
  const auto f = kernels(compute_dtype(dtype)).forward;
  if (is_reduced_float(dtype))
    return in_float(std::array{in}, out, shape, dtype, [&](const auto& x, float* y, SoftmaxShape group) {
      f(x[0], y, group, logarithm, 0, group.outer);
    });
  parallel_for(0, shape.outer, grain(shape),
               [&](int64_t b, int64_t e) { f(in, out, shape, logarithm, b, e); });
}

void softmax_backward(const void* grad, const void* out, void* result, SoftmaxShape shape, bool logarithm,
                      DType dtype) {
  const auto f = kernels(compute_dtype(dtype)).backward;
  if (is_reduced_float(dtype))
    return in_float(std::array{grad, out}, result, shape, dtype,
                    [&](const auto& x, float* y, SoftmaxShape group) {
                      f(x[0], x[1], y, group, logarithm, 0, group.outer);
                    });
  parallel_for(0, shape.outer, grain(shape),
               [&](int64_t b, int64_t e) { f(grad, out, result, shape, logarithm, b, e); });
}

}  // namespace rushlight::cpu
