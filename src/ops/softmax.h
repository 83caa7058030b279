// Softmax and log-softmax.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, int64_t dim, OptDType dtype)> softmax, log_softmax;
inline Fn<Tensor(const Tensor& self, int64_t dim, bool half_to_float)> softmax_raw, log_softmax_raw;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype)>
    softmax_backward_data, log_softmax_backward_data;
inline Fn<Tensor(const Tensor& input, OptInt dim, int64_t stacklevel, OptDType dtype)> nn_softmax,
    nn_log_softmax, nn_softmin;

}  // namespace rushlight::ops
