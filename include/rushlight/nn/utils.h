// nn::utils: gradients in bounds, parameters as one vector; packed sequences are in nn/rnn.h.
#pragma once
#include "rushlight/nn/rnn.h"

namespace rushlight::nn::utils {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
double clip_grad_norm_(Tensor parameter, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
void clip_grad_value_(Tensor parameter, double clip_value);
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace rushlight::nn::utils
