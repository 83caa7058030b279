// Normalisations: fused forward and backward loops. T is the element type, C the type it computes in (float
// for halves); statistics, weights and their gradients are of type C. Null pointers stand for what is absent
// or not wanted.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// x as [outer, channels, inner] contiguous; [outer, channels] when channels come last.
struct ChannelShape {
  int64_t outer = 1, channels = 1, inner = 1;
};

struct NormArguments {
  const void *x = nullptr, *weight = nullptr, *bias = nullptr;
  void *y = nullptr, *mean = nullptr, *rstd = nullptr;
  double eps = 0;
};

struct NormGradients {
  const void *grad = nullptr, *x = nullptr, *weight = nullptr, *mean = nullptr, *rstd = nullptr;
  void *grad_x = nullptr, *grad_weight = nullptr, *grad_bias = nullptr;
};

struct NormKernels {
  // Statistics of each row of n elements, and the rows normalised. rms: no mean is subtracted.
  void (*rows)(int64_t rows, int64_t n, const NormArguments&, bool rms) = nullptr;
  void (*rows_backward)(int64_t rows, int64_t n, const NormGradients&, bool rms) = nullptr;
  // Mean and biased variance of each channel.
  void (*channel_statistics)(ChannelShape, const void* x, void* mean, void* variance) = nullptr;
  // y = x * scale + shift by channel.
  void (*channel_affine)(ChannelShape, const void* x, const void* scale, const void* shift,
                         void* y) = nullptr;
  // By channel; in training the statistics depend on x.
  void (*channel_backward)(ChannelShape, const NormGradients&, bool training) = nullptr;
  // Rows are groups of channels; mean and rstd are [outer, groups].
  void (*groups)(ChannelShape, int64_t groups, const NormArguments&) = nullptr;
  void (*groups_backward)(ChannelShape, int64_t groups, const NormGradients&) = nullptr;
};

const NormKernels& norm_kernels(DType dtype, const char* who);

}  // namespace rushlight::cpu
