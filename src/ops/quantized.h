// Quantised tensors: making them, and what they are made of. Note [Quantised tensors] in core/quantizer.h
#pragma once
#include "core/quantizer.h"
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, double scale, int64_t zero_point, DType dtype)> quantize_per_tensor;
inline Fn<Tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, DType dtype)>
    quantize_per_tensor_tensor_qparams;
inline Fn<std::vector<Tensor>(TensorList tensors, const Tensor& scales, const Tensor& zero_points,
                              DType dtype)>
    quantize_per_tensor_tensors;
inline Fn<Tensor(const Tensor& self, DType dtype, bool reduce_range)> quantize_per_tensor_dynamic;
inline Fn<Tensor(const Tensor& self, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                 DType dtype)>
    quantize_per_channel;
inline Fn<Tensor(const Tensor& self)> dequantize, int_repr, q_per_channel_scales, q_per_channel_zero_points;
inline Fn<std::vector<Tensor>(TensorList tensors)> dequantize_tensors;
inline Fn<double(const Tensor& self)> q_scale;
inline Fn<int64_t(const Tensor& self)> q_zero_point, q_per_channel_axis;
// The sum of two tensors of integers with a scale and a zero point, or of floats, as integers.
inline Fn<Tensor(const Tensor& a, double a_scale, int64_t a_zero_point, const Tensor& b, double b_scale,
                 int64_t b_zero_point, double scale, int64_t zero_point, DType dtype, bool relu)>
    quantized_sum;
// Integers under a quantiser, copied.
inline Fn<Tensor(const Tensor& self, double scale, int64_t zero_point)> make_per_tensor_quantized_tensor;
inline Fn<Tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis)>
    make_per_channel_quantized_tensor;
inline Fn<Tensor(IntList size, OptDType dtype, std::optional<Layout> layout, OptDevice device,
                 std::optional<bool> pin_memory, double scale, int64_t zero_point,
                 std::optional<MemoryFormat> memory_format)>
    empty_affine_quantized;
inline Fn<Tensor(IntList size, const Tensor& scales, const Tensor& zero_points, int64_t axis, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory,
                 std::optional<MemoryFormat> memory_format)>
    empty_per_channel_affine_quantized;

}  // namespace rushlight::ops

namespace rushlight {
// The integers that stand for `numbers`, which is of float32, and a tensor of them.
Tensor quantize_as(const Tensor& numbers, DType dtype, const Quantizer& quantizer);
// The numbers that integers stand for: float32, laid out as they are.
Tensor dequantize_from(const Tensor& quantized);
}  // namespace rushlight
