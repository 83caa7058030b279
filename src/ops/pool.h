// Pooling over the last one to three dimensions.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

// `return_indices` is what nn.functional's callers pass; both results are always made.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& input, IntList kernel_size, const OptIntList& stride,
                                     IntList padding, IntList dilation, bool ceil_mode, bool return_indices)>
    max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices;
inline Fn<Tensor(const Tensor& self, IntList kernel_size, const OptIntList& stride, IntList padding,
                 IntList dilation, bool ceil_mode)>
    max_pool1d, max_pool2d, max_pool3d;
inline Fn<Tensor(const Tensor& input, IntList kernel_size, const OptIntList& stride, IntList padding,
                 bool ceil_mode, bool count_include_pad)>
    avg_pool1d;
inline Fn<Tensor(const Tensor& input, IntList kernel_size, const OptIntList& stride, IntList padding,
                 bool ceil_mode, bool count_include_pad, OptInt divisor_override)>
    avg_pool2d, avg_pool3d;
inline Fn<Tensor(const Tensor& input, IntList output_size)> adaptive_avg_pool1d, adaptive_avg_pool2d,
    adaptive_avg_pool3d;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& input, IntList output_size, bool return_indices)>
    adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices;
inline Fn<Tensor(const Tensor& self, const Tensor& indices, IntList output_size)> max_unpool2d;
inline Fn<Tensor(const Tensor& self, const Tensor& indices, IntList output_size, IntList stride,
                 IntList padding)>
    max_unpool3d;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, IntList kernel_size, IntList output_size,
                                     const Tensor& random_samples)>
    fractional_max_pool2d, fractional_max_pool3d;
// Windows of each plane begin where its row of `starts` says, dimension after dimension.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, const Tensor& starts, IntList kernel_size,
                                     IntList output_size)>
    fractional_max_pool;

// The gradient goes to where the maximum stood; the same for every kind of max pooling over `n` dimensions.
inline Fn<Tensor(const Tensor& grad_output, const Tensor& indices, IntList input_sizes, int64_t n)>
    max_pool_backward;
inline Fn<Tensor(const Tensor& grad_output, IntList input_sizes, IntList kernel_size,
                 const OptIntList& stride, IntList padding, bool ceil_mode, bool count_include_pad,
                 OptInt divisor_override)>
    avg_pool_backward;
inline Fn<Tensor(const Tensor& grad_output, IntList input_sizes, int64_t n)> adaptive_avg_pool_backward;

}  // namespace rushlight::ops
