// What operators do with quantised operands. Note [Quantised tensors] in core/quantizer.h
#include <cmath>

#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/grid_sample.h"
#include "ops/index.h"
#include "ops/interpolate.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/pad.h"
#include "ops/pool.h"
#include "ops/quantized.h"
#include "ops/quantized_math.h"
#include "ops/reduction.h"
#include "ops/sort.h"
#include "ops/unordered.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor rewrapped(const Tensor& integers, const Tensor& like) {
  return with_quantizer(integers, like.dtype(), quantizer_of(like));
}
// The integer that stands for a number.
Scalar quantized_number(const Tensor& like, double value) {
  const Tensor number = scalar_tensor_of(Scalar(value), DType::Float32);
  return read_scalar(integers_of(quantize_as(number, like.dtype(), quantizer_of(like))));
}
double number(const Tensor& t) { return read_scalar(t).to_double(); }
// What may be written into `target`: integers under its quantiser.
Tensor integers_for(const Tensor& target, const Tensor& values) {
  if (!is_quantized(values))
    return integers_of(quantize_as(to_dtype(values, DType::Float32), target.dtype(), quantizer_of(target)));
  const Quantizer &a = quantizer_of(target), &b = quantizer_of(values);
  RL_CHECK(values.dtype() == target.dtype(), "expected a quantized tensor of type ",
           legacy_name(target.dtype()), ", but got ", describe(values));
  if (a.scheme == b.scheme && a.scale == b.scale && a.zero_point == b.zero_point && !a.per_channel())
    return integers_of(values);
  return integers_of(quantize_as(dequantize_from(values), target.dtype(), a));
}

// --- copies and fills

Tensor copy_rule(const Call& call, const Tensor& self, const Tensor& source, bool) {
  RL_CHECK(
      is_quantized(self),
      "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get "
      "a float Tensor from a quantized Tensor");
  if (!is_quantized(source)) {
    RL_CHECK(source.dtype() == DType::Float32, "Quantized copy only works with kFloat as source Tensor, got ",
             legacy_name(source.dtype()));
    if (quantizer_of(self).per_channel() && source.sizes() != self.sizes())
      return copy_rule(call, self, expand(source, self.sizes(), false), false);
    copy_(integers_of(self), integers_for(self, source), false);
    return self;
  }
  RL_CHECK(quantizer_of(self).scheme == quantizer_of(source).scheme,
           "Quantized Copy only works with same qscheme");
  RL_CHECK(self.dtype() == source.dtype(),
           "Expected self.scalar_type() == src.scalar_type() to be true, but got false.");
  copy_(integers_of(self), integers_of(source), false);
  *self->quantizer = quantizer_of(source);
  return self;
}

Tensor fill_rule(const Call& call, const Tensor& self, const Tensor& value) {
  const Tensor numbers = is_quantized(value) ? dequantize_from(value) : to_dtype(value, DType::Float32);
  if (quantizer_of(self).per_channel())
    return copy_rule(call, self, expand(numbers, self.sizes(), false), false);
  fill_(integers_of(self), wrapped_number(quantized_number(self, number(numbers))));
  return self;
}

Tensor to_copy_rule(const Call&, const Tensor& self, OptDType dtype, OptDevice device,
                    std::optional<MemoryFormat> format) {
  RL_CHECK(!dtype || *dtype == self.dtype(),
           "Creation of quantized tensor requires quantized dtype like torch.quint8: use .dequantize() for "
           "numbers, .int_repr() for the integers");
  if (!device || *device == self.device())
    return rewrapped(clone(integers_of(self), format.value_or(MemoryFormat::Preserve)), self);
  RL_NOT_IMPLEMENTED("Could not run 'aten::empty_quantized' with arguments from the 'Quantized",
                     device->is_meta() ? "Meta" : "CUDA", "' backend: quantized tensors live on the CPU");
}

using OptLayout = std::optional<Layout>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;

Tensor empty_like_rule(const Call&, const Tensor& self, OptDType dtype, OptLayout, OptDevice device, OptBool,
                       OptFormat format) {
  RL_CHECK(!dtype || *dtype == self.dtype(),
           "It is currently not supported to specify a dtype that doesn't match the input tensor's dtype via "
           "empty_like.");
  return rewrapped(empty_like(integers_of(self), std::nullopt, std::nullopt, device, std::nullopt, format),
                   self);
}
Tensor full_like_rule(const Call& call, const Tensor& self, const Scalar& value, OptDType dtype,
                      OptLayout layout, OptDevice device, OptBool pin, OptFormat format) {
  return fill_rule(call, empty_like_rule(call, self, dtype, layout, device, pin, format),
                   wrapped_number(value));
}
Tensor ones_like_rule(const Call& call, const Tensor& self, OptDType dtype, OptLayout layout,
                      OptDevice device, OptBool pin, OptFormat format) {
  return full_like_rule(call, self, Scalar(1), dtype, layout, device, pin, format);
}

// --- joining and comparing

bool same_tensor(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return equal(a, b);
}
bool equal_rule(const Call&, const Tensor& self, const Tensor& other) {
  if (!is_quantized(self) || !is_quantized(other) || self.dtype() != other.dtype()) return false;
  const Quantizer &a = quantizer_of(self), &b = quantizer_of(other);
  return a.scheme == b.scheme && a.scale == b.scale && a.zero_point == b.zero_point && a.axis == b.axis &&
         same_tensor(a.scales, b.scales) && same_tensor(a.zero_points, b.zero_points) &&
         self.sizes() == other.sizes() &&
         (integers_per_byte(self.dtype()) > 1 ? equal(int_repr(self), int_repr(other))
                                              : equal(integers_of(self), integers_of(other)));
}

template <Fn<Tensor(TensorList, int64_t)>& joined>
Tensor join_rule(const Call& call, TensorList tensors, int64_t dim) {
  std::vector<Tensor> parts;
  const Tensor& first = tensors[0];
  for (const Tensor& t : tensors) {
    RL_CHECK(is_quantized(t), call.op.name(), "(): expected quantized tensors, but got ", describe(t));
    RL_CHECK(!quantizer_of(t).per_channel(), "Only per-tensor quantization is supported in 'cat'!");
    parts.push_back(integers_for(first, t));
  }
  return rewrapped(joined(parts, dim), first);
}

Tensor masked_fill_rule(const Call& call, const Tensor& self, const Tensor& mask, const Tensor& value) {
  one_scale(self, call.op.name());
  return rewrapped(rushlight::masked_fill(integers_of(self), mask, quantized_number(self, number(value))),
                   self);
}
Tensor index_put_rule(const Call& call, const Tensor& self, TensorList indices, const Tensor& values,
                      bool accumulate) {
  one_scale(self, call.op.name());
  RL_CHECK(!accumulate, "index_put for quantized tensors is currently not supported for accumulate=True");
  index_put_(integers_of(self), indices, integers_for(self, values), false);
  return self;
}
Tensor pad_rule(const Call& call, const Tensor& self, IntList pad, const Scalar& value) {
  one_scale(self, call.op.name());
  return rewrapped(constant_pad_nd(integers_of(self), pad, quantized_number(self, value.to_double())), self);
}

// --- bounds

OptScalar bound(const Tensor& self, const OptScalar& value) {
  return value ? OptScalar(quantized_number(self, value->to_double())) : std::nullopt;
}
Tensor clamp_rule(const Call& call, const Tensor& self, const OptScalar& low, const OptScalar& high) {
  one_scale(self, call.op.name());
  return rewrapped(clamp(integers_of(self), bound(self, low), bound(self, high)), self);
}
Tensor hardtanh_rule(const Call& call, const Tensor& self, const Scalar& low, const Scalar& high) {
  return clamp_rule(call, self, low, high);
}
Tensor threshold_rule(const Call& call, const Tensor& self, const Scalar& bound, const Scalar& value) {
  return mapped(self, one_scale(self, call.op.name()),
                [&](const Tensor& x) { return threshold(x, bound, value); });
}
Tensor relu_rule(const Call& call, const Tensor& self) {
  return clamp_rule(call, self, Scalar(0), std::nullopt);
}

// --- means of windows: the zero point is added before the mean is rounded, as PyTorch does

template <class F>
Tensor mean_rule(const Call& call, const Tensor& self, bool by_lines, F means) {
  const Quantizer& q = one_scale(self, call.op.name());
  const auto zero = Scalar(static_cast<double>(q.zero_point));
  if (self.itemsize() != 1) return quantize_as(means(dequantize_from(self)), self.dtype(), q);
  const Tensor sums = means(to_dtype(integers_of(self), DType::Float32) - zero);
  Tensor rounded = round(sums + zero, 0);
  // PyTorch adds it afterwards where it takes 32 channels at once.
  const int64_t whole = by_lines && self.is_contiguous(MemoryFormat::ChannelsLast) && !self.is_contiguous()
                            ? self->sizes[1] / 32 * 32
                            : 0;
  if (whole > 0) copy_(narrow(rounded, 1, 0, whole), round(narrow(sums, 1, 0, whole), 0) + zero, false);
  const bool bytes = self.dtype() == DType::QUInt8;
  return with_quantizer(
      to_dtype(clamp(rounded, OptScalar(Scalar(bytes ? 0 : -128)), OptScalar(Scalar(bytes ? 255 : 127))),
               integer_dtype(self.dtype())),
      self.dtype(), q);
}
template <Fn<Tensor(const Tensor&, IntList, const OptIntList&, IntList, bool, bool, OptInt)>& pool, int kDims>
Tensor avg_pool_rule(const Call& call, const Tensor& self, IntList kernel, const OptIntList& stride,
                     IntList padding, bool ceil, bool include_pad, OptInt divisor) {
  return mean_rule(call, self, kDims == 2, [&](const Tensor& x) {
    return pool(x, kernel, stride, padding, ceil, include_pad, divisor);
  });
}
Tensor avg_pool1d_rule(const Call& call, const Tensor& self, IntList kernel, const OptIntList& stride,
                       IntList padding, bool ceil, bool include_pad) {
  return mean_rule(call, self, false, [&](const Tensor& x) {
    return avg_pool1d(x, kernel, stride, padding, ceil, include_pad);
  });
}
template <Fn<Tensor(const Tensor&, IntList)>& pool>
Tensor adaptive_pool_rule(const Call& call, const Tensor& self, IntList size) {
  return mean_rule(call, self, false, [&](const Tensor& x) { return pool(x, size); });
}

// --- nearest neighbours: elements only move, so that types which the loops know stand for others. Bytes go
// as uint8, 32 bits as doubles, which hold them all.

template <auto& kNearest, class... A>
Tensor nearest_rule(const Call& call, const Tensor& self, A... rest) {
  one_scale(self, call.op.name());
  const Tensor integers = integers_of(self);
  if (self.itemsize() == 1)
    return rewrapped(alias_as(kNearest(alias_as(integers, DType::UInt8), rest...), integers.dtype()), self);
  return rewrapped(to_dtype(kNearest(to_dtype(integers, DType::Float64), rest...), integers.dtype()), self);
}
template <auto& kNearest, class... A>
void nearest(Table& t, Fn<Tensor(const Tensor&, A...)>&) {
  t.quantized(kNearest, nearest_rule<kNearest, A...>);
}

// --- functions whose range is known: the results' scale follows from it

template <Fn<Tensor(const Tensor&)>& function, bool kNegative>
Tensor bounded_rule(const Call& call, const Tensor& self) {
  one_scale(self, call.op.name());
  const bool narrow = self.dtype() != DType::QInt32, signed_type = self.dtype() != DType::QUInt8;
  Quantizer q;
  q.scale = (kNegative ? 2 : 1) * (narrow ? 0x1p-8 : kNegative ? 0x1p-8 : 0x1p-32);
  q.zero_point = kNegative ? (signed_type ? 0 : 128) : self.dtype() == DType::QInt8 ? -128 : 0;
  return quantize_as(function(dequantize_from(self)), self.dtype(), q);
}

// Scales of channels are turned round with them.
Tensor flip_rule(const Call&, const Tensor& self, IntList dims) {
  Quantizer q = quantizer_of(self);
  if (q.per_channel())
    for (int64_t d : dims)
      if (wrap_dim(d, self.dim()) == q.axis) {
        q.scales = flip(q.scales, IntList{0});
        q.zero_points = flip(q.zero_points, IntList{0});
      }
  return with_quantizer(flip(integers_of(self), dims), self.dtype(), q);
}

// New elements are what lies in the memory, of which there is a byte for each.
Tensor resize_rule(const Call&, const Tensor& self, IntList size, std::optional<MemoryFormat>) {
  check_ordered("quantized_resize_cpu_");
  RL_CHECK(!quantizer_of(self).per_channel(), "Can only resize quantized tensors with per-tensor schemes!");
  resize_tensor(self, size);
  return self;
}

}  // namespace

void register_quantized_rules(Table& t) {
  t.quantized(copy_, copy_rule);
  t.quantized(fill_, fill_rule);
  t.quantized(resize_, resize_rule);
  t.quantized(to_copy, to_copy_rule);
  t.quantized(empty_like, empty_like_rule);
  t.quantized(full_like, full_like_rule);
  t.quantized(ones_like, ones_like_rule);
  t.quantized(equal, equal_rule);
  t.quantized(flip, flip_rule);
  t.quantized(cat, join_rule<cat>);
  t.quantized(stack, join_rule<stack>);
  t.quantized(ops::masked_fill, masked_fill_rule);
  t.quantized(index_put_, index_put_rule);
  t.quantized(constant_pad_nd, pad_rule);
  t.quantized(clamp, clamp_rule);
  t.quantized(hardtanh, hardtanh_rule);
  t.quantized(relu, relu_rule);
  t.quantized(threshold, threshold_rule);
  t.quantized(avg_pool1d, avg_pool1d_rule);
  t.quantized(avg_pool2d, avg_pool_rule<avg_pool2d, 2>);
  t.quantized(avg_pool3d, avg_pool_rule<avg_pool3d, 3>);
  t.quantized(adaptive_avg_pool1d, adaptive_pool_rule<adaptive_avg_pool1d>);
  t.quantized(adaptive_avg_pool2d, adaptive_pool_rule<adaptive_avg_pool2d>);
  t.quantized(adaptive_avg_pool3d, adaptive_pool_rule<adaptive_avg_pool3d>);
  t.quantized(sigmoid, bounded_rule<sigmoid, false>);
  t.quantized(hardsigmoid, bounded_rule<hardsigmoid, false>);
  t.quantized(tanh, bounded_rule<tanh, true>);

  auto each = [&](OnQuantized rule, const auto&... handles) { (t.quantized(handles, rule), ...); };
  // Elements are moved, chosen or put in order.
  each(OnQuantized::Integers, clone, contiguous, index, index_select, masked_select, repeat, max, min,
       max_dim, min_dim, sort, sort_stable, topk, max_pool1d_with_indices, max_pool2d_with_indices,
       max_pool3d_with_indices, reflection_pad1d, reflection_pad2d, reflection_pad3d);
  nearest<upsample_nearest1d>(t, upsample_nearest1d);
  nearest<upsample_nearest2d>(t, upsample_nearest2d);
  nearest<upsample_nearest3d>(t, upsample_nearest3d);
  nearest<upsample_nearest_exact1d>(t, upsample_nearest_exact1d);
  nearest<upsample_nearest_exact2d>(t, upsample_nearest_exact2d);
  nearest<upsample_nearest_exact3d>(t, upsample_nearest_exact3d);
  // These have rules above: here it is said of types that are not quantised.
  each(OnQuantized::Integers, copy_, empty_like, cat, flip, stack);
  each(OnQuantized::Numbers, ops::eq, ops::ne, ops::lt, ops::le, ops::gt, ops::ge);
  each(OnQuantized::Requantized, mean, mean_dim, std_correction, upsample_bilinear2d, leaky_relu, gelu,
       prelu_kernel, grid_sampler_2d, grid_sampler_3d);
}

}  // namespace rushlight
