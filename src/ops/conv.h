// Convolution, its adjoints, and the functions of nn.functional over them.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                 IntList padding, IntList dilation, bool transposed, IntList output_padding, int64_t groups)>
    convolution;
// clamp((conv(input, weight) + bias) * scale + shift + residual, low, high): what graphs make of a
// convolution and what follows it. Scale and shift, float32, are by channel; everything but input and weight
// may be missing.
inline Fn<Tensor(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                 IntList padding, IntList dilation, int64_t groups, const Tensor& scale, const Tensor& shift,
                 const Tensor& residual, double low, double high)>
    convolution_epilogue;
// Note [Convolution adjoints]
// conv(x, w) is linear in each operand; these are its adjoints, and the derivative of each of the three is
// made of the other two. A transposed convolution is conv_input_gradient with the operands' roles exchanged.
inline Fn<Tensor(const Tensor& grad_output, const Tensor& weight, IntList input_sizes, IntList stride,
                 IntList padding, IntList dilation, int64_t groups)>
    conv_input_gradient;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& input, IntList weight_sizes, IntList stride,
                 IntList padding, IntList dilation, int64_t groups)>
    conv_weight_gradient;

// Hyperparameters for `n` spatial dimensions; one number stands for all.
Dims spread(const char* name, IntList values, int64_t n);

}  // namespace rushlight::ops
