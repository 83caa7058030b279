// What the files of the normalisation family share.
#pragma once
#include "cpu/norm.h"
#include "device/layers.h"
#include "dispatch/table.h"

namespace rushlight {

// Which of input, weight and bias want a gradient, as bits.
int64_t wanted_gradients(const Needs& need, int weight, int bias);
// A parameter as the kernels read it: contiguous, in the type they compute in; undefined stays undefined.
Tensor norm_parameter(const Tensor& t, DType compute);
inline void* pointer_or_null(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }
// Zero, as the statistics of nothing are.
void clear(const Tensor& t);
// Of the mean and deviation that a normalisation returns: the input's, unless a parameter is wider.
DType statistics_dtype(const Tensor& input, std::initializer_list<const Tensor*> parameters);
// Refuses parameters of another dtype than the input's, unless that is half precision and all of them are
// float32. The first of them decides which, as in PyTorch: a double among floats would be rounded unseen.
struct NamedParameter {
  const char* name;
  const Tensor& tensor;
};
void check_parameter_types(std::string_view who, const Tensor& input,
                           std::initializer_list<NamedParameter> all);
// Whether a call on these tensors is recorded, traced or otherwise observed; flags in `besides` do not count.
bool observed(std::initializer_list<const Tensor*> tensors, uint32_t besides = 0);

// Note [Reference normalisations]
// The fused backward kernels are used when gradients are not themselves recorded; otherwise the same gradient
// is written in public operators here, as a function of the input, so that it can be differentiated again.
struct Normalized {
  Tensor centred;  // (x - mean) / deviation
  Tensor rstd;
};
Normalized normalized_reference(const Tensor& x, IntList dims, double eps, bool subtract_mean = true);
// The gradient of the input, `grad` being that of the normalised values.
Tensor normalized_gradient(const Tensor& grad, const Normalized& n, IntList dims, bool subtract_mean = true);

// Numbers of float32 or float64 statistics.
inline double value_at(const Tensor& t, int64_t i) {
  return t.dtype() == DType::Float64 ? t.data<double>()[i] : static_cast<double>(t.data<float>()[i]);
}
inline void store_at(const Tensor& t, int64_t i, double value) {
  if (t.dtype() == DType::Float64)
    t.data<double>()[i] = value;
  else
    t.data<float>()[i] = static_cast<float>(value);
}
void check_channels(const char* what, const Tensor& t, int64_t channels);
// What an evaluation multiplies a channel with, and adds. `rstd`, the variance, becomes 1 / deviation.
struct ChannelConstants {
  Tensor scale, shift;
};
ChannelConstants channel_constants(const Tensor& weight, const Tensor& bias, const Tensor& mean,
                                   const Tensor& rstd, double eps);

void register_row_norm_operators(Table& t);
void register_group_norm_operators(Table& t);
void register_composite_norm_operators(Table& t);

}  // namespace rushlight
