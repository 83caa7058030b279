// Quantisation as training sees it: numbers rounded as integers would be, with gradients.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

// The results, and a mask of where gradients pass: where the integer was between the bounds.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, double scale, int64_t zero_point, int64_t quant_min,
                                     int64_t quant_max)>
    fake_quantize_per_tensor_affine_cachemask;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                                     const Tensor& fake_quant_enabled, int64_t quant_min, int64_t quant_max)>
    fake_quantize_per_tensor_affine_cachemask_tensor_qparams;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                                     int64_t axis, int64_t quant_min, int64_t quant_max)>
    fake_quantize_per_channel_affine_cachemask;
inline Fn<Tensor(const Tensor& grad, const Tensor& mask)> fake_quantize_per_tensor_affine_cachemask_backward,
    fake_quantize_per_channel_affine_cachemask_backward;

inline Fn<Tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t quant_min,
                 int64_t quant_max, double grad_factor)>
    fake_quantize_learnable_per_tensor_affine;
inline Fn<Tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                 int64_t quant_min, int64_t quant_max, double grad_factor)>
    fake_quantize_learnable_per_channel_affine;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& grad, const Tensor& self, const Tensor& scale,
                                             const Tensor& zero_point, int64_t quant_min, int64_t quant_max,
                                             double grad_factor)>
    fake_quantize_learnable_per_tensor_affine_backward;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& grad, const Tensor& self, const Tensor& scale,
                                             const Tensor& zero_point, int64_t axis, int64_t quant_min,
                                             int64_t quant_max, double grad_factor)>
    fake_quantize_learnable_per_channel_affine_backward;

inline Fn<std::tuple<Tensor, Tensor>(
    const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on, const Tensor& running_min,
    const Tensor& running_max, const Tensor& scale, const Tensor& zero_point, double averaging_const,
    int64_t quant_min, int64_t quant_max, int64_t ch_axis, bool per_row_fake_quant, bool symmetric_quant)>
    fused_moving_avg_obs_fq_helper;

inline Fn<Tensor(const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on,
                 const Tensor& running_min, const Tensor& running_max, const Tensor& scale,
                 const Tensor& zero_point, double averaging_const, int64_t quant_min, int64_t quant_max,
                 bool by_row, bool symmetric)>
    observe_and_choose;
inline Fn<Tensor(const Tensor& self, bool reduce_range)> quantization_for;

}  // namespace rushlight::ops
