// Activation functions and their backward operators.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self)> relu, selu, sigmoid, silu, mish, hardsigmoid, hardswish, log_sigmoid;
inline Fn<Tensor(const Tensor& self, const Scalar& threshold, const Scalar& value)> threshold;
inline Fn<Tensor(const Tensor& self, const Scalar& negative_slope)> leaky_relu;
inline Fn<Tensor(const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale)>
    elu;
inline Fn<Tensor(const Tensor& self, std::string_view approximate)> gelu;
inline Fn<Tensor(const Tensor& self, const Scalar& beta, const Scalar& threshold)> softplus;
inline Fn<Tensor(const Tensor& self, const Scalar& min_val, const Scalar& max_val)> hardtanh;
inline Fn<Tensor(const Tensor& self, const Scalar& lambd)> softshrink, hardshrink;
inline Fn<Tensor(const Tensor& self, int64_t dim)> glu, gated;
inline Fn<Tensor(const Tensor& self, const Tensor& weight)> prelu, prelu_kernel;
inline Fn<Tensor(const Tensor& self, const Scalar& alpha)> celu;

// With respect to the output (sigmoid, tanh) or the input (the others).
inline Fn<Tensor(const Tensor& grad_output, const Tensor& output)> sigmoid_backward, tanh_backward;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& self)> silu_backward, mish_backward,
    hardsigmoid_backward, hardswish_backward, log_sigmoid_backward;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& self, const Scalar& threshold)> threshold_backward;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& self, const Scalar& negative_slope)>
    leaky_relu_backward;
inline Fn<Tensor(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                 const Scalar& input_scale, const Tensor& self)>
    elu_backward;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& self, std::string_view approximate)> gelu_backward;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& self, const Scalar& beta, const Scalar& threshold)>
    softplus_backward;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& self, const Scalar& min_val, const Scalar& max_val)>
    hardtanh_backward;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& self, const Scalar& lambd)> softshrink_backward,
    hardshrink_backward;

}  // namespace rushlight::ops
