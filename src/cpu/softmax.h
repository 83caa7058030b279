// Softmax and its backward over [outer, n, inner] contiguous arrays; half types compute in float.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

struct SoftmaxShape {
  int64_t outer, n, inner;
};
void softmax(const void* in, void* out, SoftmaxShape shape, bool logarithm, DType dtype);
void softmax_backward(const void* grad, const void* out, void* result, SoftmaxShape shape, bool logarithm,
                      DType dtype);

// One instruction set's loops over outer indices [begin, end).
struct SoftmaxKernels {
  void (*forward)(const void* in, void* out, SoftmaxShape shape, bool logarithm, int64_t begin, int64_t end);
  void (*backward)(const void* grad, const void* out, void* result, SoftmaxShape shape, bool logarithm,
                   int64_t begin, int64_t end);
};

}  // namespace rushlight::cpu
