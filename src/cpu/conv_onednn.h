// The oneDNN half of conv.h. Without oneDNN `onednn_convolves` is always false.
#pragma once
#include "cpu/conv.h"

namespace rushlight::cpu {

bool onednn_convolves(const ConvShape& s);
void onednn_conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                         void* output);
void onednn_conv_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                                void* input_gradient);
void onednn_conv_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                                 void* weight_gradient);

}  // namespace rushlight::cpu
