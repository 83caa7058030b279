// Normalisation over rows, channels and groups of channels.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

inline Fn<Tensor(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                 const Tensor& weight, const Tensor& bias, bool training, double momentum, double eps)>
    batch_norm;
inline Fn<Tensor(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                 const Tensor& running_var, bool training, double momentum, double eps, bool cudnn_enabled)>
    torch_batch_norm, instance_norm;
inline Fn<Tensor(const Tensor& input, IntList normalized_shape, const Tensor& weight, const Tensor& bias,
                 double eps)>
    layer_norm;
inline Fn<Tensor(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                 std::optional<double> eps)>
    rms_norm;
inline Fn<Tensor(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                 double eps)>
    group_norm;

// The result, and the mean and 1 / standard deviation that it was made with. The running statistics are
// updated in place.
inline Fn<ThreeTensors(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, bool training, double momentum,
                       double eps)>
    native_batch_norm;
inline Fn<ThreeTensors(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                       const Tensor& bias, double eps)>
    native_layer_norm;
inline Fn<ThreeTensors(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t N, int64_t C,
                       int64_t HxW, int64_t group, double eps)>
    native_group_norm;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                                     std::optional<double> eps)>
    fused_rms_norm;

inline Fn<Tensor(const Tensor& v, int64_t pow, int64_t dim)> norm_except_dim;

// Gradients of input, weight and bias, as far as `wanted` (a bit each) asks.
inline Fn<ThreeTensors(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                       const Tensor& rstd, bool training, int64_t wanted)>
    batch_norm_gradients;
inline Fn<ThreeTensors(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                       const Tensor& rstd, int64_t size, int64_t wanted)>
    row_norm_gradients;
inline Fn<ThreeTensors(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                       const Tensor& rstd, int64_t groups, int64_t wanted)>
    group_norm_gradients;

}  // namespace rushlight::ops
