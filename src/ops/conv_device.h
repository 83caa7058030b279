// Convolutions on devices.
#pragma once
#include "core/tensor.h"
#include "cpu/conv.h"

namespace rushlight {

// As their counterparts in cpu/conv.h, for operands of any layout and results of these sizes, whose channels
// come last where the shape says so. Nothing on the meta device.
Tensor device_conv(const cpu::ConvShape& s, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   IntList sizes);
Tensor device_conv_input_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& weight,
                                  IntList sizes);
Tensor device_conv_weight_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& input,
                                   IntList sizes);

}  // namespace rushlight
