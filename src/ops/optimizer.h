// Fused optimizer steps: one call for all parameters of a group.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<void(TensorList self, TensorList grads, TensorList momentum_buffer_list, double weight_decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
               const Tensor& grad_scale, const Tensor& found_inf)>
    _fused_sgd_;
inline Fn<void(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
               TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1, double beta2,
               double weight_decay, double eps, bool amsgrad, bool maximize, const Tensor& grad_scale,
               const Tensor& found_inf)>
    _fused_adam_, _fused_adamw_;
inline Fn<void(std::string_view rule, TensorList self, TensorList grads, TensorList first, TensorList second,
               TensorList third, FloatList factors, FloatList numbers, double weight_decay, double shrink,
               bool maximize, const Tensor& grad_scale, const Tensor& found_inf)>
    _fused_update_;

inline Fn<Tensor(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf,
                 double scale_growth_factor, double scale_backoff_factor, int64_t growth_interval)>
    _amp_update_scale_;
inline Fn<void(TensorList self, const Tensor& found_inf, const Tensor& inv_scale)>
    _amp_foreach_non_finite_check_and_unscale_;

}  // namespace rushlight::ops
