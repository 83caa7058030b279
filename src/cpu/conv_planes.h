// Convolutions of channels last, some operand of which lies in planes: it may be read as it lies.
#pragma once
#include "cpu/conv.h"

namespace rushlight::cpu {

// A gradient of the output, in planes or as the shape says.
struct OutputGradient {
  const void* data;
  bool in_planes = false;
};

// Whether the gradient of the weight takes an input in planes, by `input_in_planes`.
bool reads_input_planes_in_gradient(const ConvShape& s);
// Whether the gradient of the weight or that of the input takes such a gradient of the output.
bool reads_gradient_planes(const ConvShape& s, bool of_weight);

// As those of conv.h.
void conv_input_gradient(const ConvShape& s, OutputGradient gradient, const void* weight,
                         void* input_gradient);
void conv_weight_gradient(const ConvShape& s, OutputGradient gradient, const void* input,
                          void* weight_gradient);

}  // namespace rushlight::cpu
