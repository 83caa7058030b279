// Convolution of up to three spatial dimensions and its two adjoints. oneDNN for float and bfloat16 where it
// is built in, column buffers and gemm for everything else.
#pragma once
#include <array>
#include <cstdint>

#include "core/dtype.h"
#include "cpu/epilogue.h"

namespace rushlight::cpu {

struct ConvShape {
  DType dtype = DType::Float32;
  int spatial = 2;  // dimensions of the kernel, 1 to 3
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  std::array<int64_t, 3> input{1, 1, 1}, output{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0},
      dilation{1, 1, 1};
  bool channels_last =
      false;  // of input and output alike; the weight is always contiguous [out, in / groups, ...]
  bool stays_in_planes = false;  // plain images, which nobody asks to turn: see multiplies_planes
  bool input_in_planes = false;  // all the same: see reads_planes

  int64_t input_numel() const;
  int64_t output_numel() const;
  int64_t weight_numel() const;
};

// Whether oneDNN does this convolution, which likes channels last.
bool conv_by_onednn(const ConvShape& s);
// Whether it is worth computing with channels last, though its input is plain: by oneDNN or, where that is
// not built in, by kernels of ours for filters that are constant.
bool conv_likes_channels_last(const ConvShape& s, const void* weight);
// Whether a convolution of channels last takes an input in planes as it lies: the forward pass and the
// gradient of the weight, by `input_in_planes`.
bool reads_planes(const ConvShape& s);
// output = conv(input, weight) + bias. `bias` may be null.
void conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias, void* output);
// The same, and then what `after` says of the output, whose channels come last: piece by piece, while it lies
// in cache.
void conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias, void* output,
                  const EpilogueArguments& after);
// The adjoint in the input: what a transposed convolution computes.
void conv_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                         void* input_gradient);
// The adjoint in the weight.
void conv_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                          void* weight_gradient);

}  // namespace rushlight::cpu
