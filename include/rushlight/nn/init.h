// nn::init: fills of parameters, value for value those of Python.
#pragma once
#include "rushlight/nn/options.h"

namespace rushlight::nn {

namespace init {

double calculate_gain(Mode nonlinearity, double param = 0.01);
Tensor constant_(Tensor tensor, Scalar value);
Tensor zeros_(Tensor tensor);
Tensor ones_(Tensor tensor);
Tensor eye_(Tensor matrix);
Tensor dirac_(Tensor tensor);
Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double low = -2, double high = 2);
Tensor orthogonal_(Tensor tensor, double gain = 1.0);
Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01);
Tensor kaiming_normal_(Tensor tensor, double a = 0, Mode mode = kFanIn, Mode nonlinearity = kLeakyReLU);
Tensor kaiming_uniform_(Tensor tensor, double a = 0, Mode mode = kFanIn, Mode nonlinearity = kLeakyReLU);
Tensor xavier_normal_(Tensor tensor, double gain = 1.0);
Tensor xavier_uniform_(Tensor tensor, double gain = 1.0);
std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

namespace detail {
// Of linear layers and convolutions: uniform within 1 / sqrt(fan in).
void default_weights(Tensor& weight, Tensor& bias);
}  // namespace detail

}  // namespace init
}  // namespace rushlight::nn
