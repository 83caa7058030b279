// Convolutions on devices.
#pragma once
#include "core/tensor.h"
#include "cpu/conv.h"

namespace rushlight {

// As their twins in cpu/conv.h; every tensor contiguous, `result` to be written. Nothing on the meta device.
void device_conv(const cpu::ConvShape& s, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const Tensor& result);
void device_conv_input_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& weight,
                                const Tensor& result);
void device_conv_weight_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& input,
                                 const Tensor& result);

}  // namespace rushlight
