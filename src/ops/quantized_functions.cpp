// quantized::hardswish, layer_norm and so on: functions of quantised tensors, whose results have a scale that
// the caller chose.
#include <cmath>

#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/norm.h"
#include "ops/operators.h"
#include "ops/pool.h"
#include "ops/quantized.h"
#include "ops/quantized_math.h"
#include "ops/register.h"
#include "ops/softmax.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Fn<Tensor(const Tensor& input, double output_scale, int64_t output_zero_point)> quantized_hardswish,
    quantized_sigmoid;
Fn<Tensor(const Tensor& self, double output_scale, int64_t output_zero_point, const Scalar& alpha,
          const Scalar& scale, const Scalar& input_scale)>
    quantized_elu;
Fn<Tensor(const Tensor& self, double output_scale, int64_t output_zero_point, const Scalar& alpha)>
    quantized_celu;
Fn<Tensor(const Tensor& qx, const Scalar& negative_slope, bool inplace, double output_scale,
          int64_t output_zero_point)>
    quantized_leaky_relu;
Fn<Tensor(const Tensor& qx, const Tensor& weight, double output_scale, int64_t output_zero_point)>
    quantized_prelu;
Fn<Tensor(const Tensor& qx, int64_t dim, double output_scale, int64_t output_zero_point)> quantized_softmax;
Fn<Tensor(const Tensor& self, double output_scale, int64_t output_zero_point, const Scalar& p, bool training)>
    quantized_dropout;
Fn<Tensor(const Tensor& qx, const Scalar& threshold, const Scalar& value)> quantized_threshold;
Fn<Tensor(const Tensor& qx, const OptScalar& min, const OptScalar& max)> quantized_clamp;
Fn<Tensor(const Tensor& qx, bool inplace)> quantized_relu6;
Fn<Tensor(const Tensor& input, IntList normalized_shape, const Tensor& weight, const Tensor& bias, double eps,
          double output_scale, int64_t output_zero_point)>
    quantized_layer_norm;
Fn<Tensor(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps,
          double output_scale, int64_t output_zero_point)>
    quantized_group_norm;
Fn<Tensor(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps, double output_scale,
          int64_t output_zero_point)>
    quantized_instance_norm;
using BatchNorm = Fn<Tensor(const Tensor& qx, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                            const Tensor& var, double eps, double output_scale, int64_t output_zero_point)>;
using MaxPool = Fn<Tensor(const Tensor& qx, IntList kernel_size, IntList stride, IntList padding,
                          IntList dilation, bool ceil_mode)>;
MaxPool quantized_max_pool1d, quantized_max_pool2d;

template <class F>
Tensor with_scale(const Call& call, const Tensor& qx, double scale, int64_t zero, F f, bool one_step = true) {
  one_scale(qx, call.op.name());
  return mapped(qx, result_quantizer(call.op.name(), scale, zero), f, one_step);
}
// For functions of more than one element.
Tensor rounded(const Call& call, const Tensor& like, const Tensor& numbers, double scale, int64_t zero) {
  return quantize_as(numbers, like.dtype(), result_quantizer(call.op.name(), scale, zero));
}
Tensor numbers_of(const Call& call, const Tensor& qx) {
  one_scale(qx, call.op.name());
  return dequantize_from(qx);
}

template <Fn<Tensor(const Tensor&)>& function>
Tensor function_kernel(const Call& call, const Tensor& input, double scale, int64_t zero) {
  return with_scale(
      call, input, scale, zero, [](const Tensor& x) { return function(x); }, &function != &sigmoid);
}
Tensor elu_kernel(const Call& call, const Tensor& self, double scale, int64_t zero, const Scalar& alpha,
                  const Scalar& factor, const Scalar& input_scale) {
  return with_scale(call, self, scale, zero,
                    [&](const Tensor& x) { return elu(x, alpha, factor, input_scale); });
}
Tensor celu_kernel(const Call& call, const Tensor& self, double scale, int64_t zero, const Scalar& alpha) {
  return with_scale(call, self, scale, zero, [&](const Tensor& x) { return celu(x, alpha); });
}
Tensor leaky_relu_kernel(const Call& call, const Tensor& qx, const Scalar& slope, bool, double scale,
                         int64_t zero) {
  return with_scale(call, qx, scale, zero, [&](const Tensor& x) { return leaky_relu(x, slope); });
}
Tensor prelu_function(const Call& call, const Tensor& qx, const Tensor& weight, double scale, int64_t zero) {
  const Tensor slopes = is_quantized(weight) ? dequantize_from(weight) : weight;
  if (slopes.numel() == 1)
    return with_scale(call, qx, scale, zero, [&](const Tensor& x) { return prelu(x, slopes); });
  return rounded(call, qx, prelu(numbers_of(call, qx), slopes), scale, zero);
}
Tensor softmax_kernel(const Call& call, const Tensor& qx, int64_t dim, double scale, int64_t zero) {
  return rounded(call, qx, softmax(numbers_of(call, qx), dim, std::nullopt), scale, zero);
}
Tensor dropout_kernel(const Call& call, const Tensor& self, double, int64_t, const Scalar&, bool) {
  one_scale(self, call.op.name());
  return self;
}
Tensor threshold_kernel(const Call& call, const Tensor& qx, const Scalar& bound, const Scalar& value) {
  const Quantizer& q = one_scale(qx, call.op.name());
  return mapped(qx, q, [&](const Tensor& x) { return threshold(x, bound, value); });
}
Tensor clamp_kernel(const Call& call, const Tensor& qx, const OptScalar& low, const OptScalar& high) {
  one_scale(qx, call.op.name());
  return clamp(qx, low, high);
}
Tensor relu6_kernel(const Call& call, const Tensor& qx, bool inplace) {
  one_scale(qx, call.op.name());
  const Tensor y = clamp(qx, OptScalar(Scalar(0)), OptScalar(Scalar(6)));
  return inplace ? copy_(qx, y, false) : y;
}

// --- normalisation

Tensor layer_norm_kernel(const Call& call, const Tensor& input, IntList shape, const Tensor& weight,
                         const Tensor& bias, double eps, double scale, int64_t zero) {
  return rounded(call, input, layer_norm(numbers_of(call, input), shape, weight, bias, eps), scale, zero);
}
Tensor group_norm_kernel(const Call& call, const Tensor& input, int64_t groups, const Tensor& weight,
                         const Tensor& bias, double eps, double scale, int64_t zero) {
  return rounded(call, input, group_norm(numbers_of(call, input), groups, weight, bias, eps), scale, zero);
}
Tensor instance_norm_kernel(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& bias,
                            double eps, double scale, int64_t zero) {
  return rounded(
      call, input,
      instance_norm(numbers_of(call, input), weight, bias, Tensor(), Tensor(), true, 0, eps, false), scale,
      zero);
}
template <int kDims, bool kRelu>
Tensor batch_norm_kernel(const Call& call, const Tensor& qx, const Tensor& weight, const Tensor& bias,
                         const Tensor& mean, const Tensor& var, double eps, double scale, int64_t zero) {
  if (kDims == 1)
    RL_CHECK(qx.dim() == 2 || qx.dim() == 3, "Expecting the input tensor of rank 2 or 3.");
  else if (kDims > 1)
    RL_CHECK(qx.dim() == kDims + 2, "Expecting the input tensor of rank ", kDims + 2, ".");
  const Tensor y = batch_norm(numbers_of(call, qx), mean, var, weight, bias, false, 0, eps);
  return rounded(call, qx, kRelu ? clamp_min(y, Scalar(0)) : y, scale, zero);
}

// aten::quantized_batch_norm
Tensor batch_norm_of_all_kernel(const Call& call, const Tensor& input, const Tensor& weight,
                                const Tensor& bias, const Tensor& mean, const Tensor& var, double eps,
                                double scale, int64_t zero) {
  if (!is_quantized(input))
    RL_NOT_IMPLEMENTED("Could not run 'aten::", call.op.name(),
                       "' with arguments from the 'CPU' backend: ", "the tensor is not quantized");
  RL_CHECK(weight.defined(), "Weight must be provided");
  RL_CHECK(bias.defined(), "Bias must be provided");
  return batch_norm_kernel<0, false>(call, input, weight, bias, mean, var, eps, scale, zero);
}

// --- windows

template <Fn<Tensor(const Tensor&, IntList, const OptIntList&, IntList, IntList, bool)>& pool>
Tensor max_pool_kernel(const Call&, const Tensor& qx, IntList kernel, IntList stride, IntList padding,
                       IntList dilation, bool ceil) {
  return pool(qx, kernel, stride, padding, dilation, ceil);
}

constexpr const char* kInference = "it serves inference with quantized tensors";

template <class R, class... A>
OpBuilder record(Table& t, Fn<R(A...)>& handle, const std::string& schema,
                 std::type_identity_t<R (*)(const Call&, A...)> kernel, Family family, const char* doc) {
  OpBuilder made = t.op(handle, kept_schema("quantized::" + schema), kernel);
  t.quantized(handle, kernel);
  return made.family(family).internal().special_dtypes().not_differentiable(kInference).doc(doc);
}

#define RL_SCALE "float output_scale, int output_zero_point"

template <int kDims, bool kRelu>
void batch_norm_record(Table& t) {
  static BatchNorm handle;
  const std::string name =
      "batch_norm" + (kDims ? std::to_string(kDims) + "d" : "") + std::string(kRelu ? "_relu" : "");
  record(t, handle,
         name + "(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " RL_SCALE
                ") -> Tensor",
         batch_norm_kernel<kDims, kRelu>, Family::Normalization,
         "Batch normalisation of a quantised tensor by known statistics.");
}

void register_norms(Table& t) {
  record(t, quantized_layer_norm,
         "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, " RL_SCALE
         ") -> Tensor",
         layer_norm_kernel, Family::Normalization, "Layer normalisation of a quantised tensor.");
  record(t, quantized_group_norm,
         "group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps, " RL_SCALE
         ") -> Tensor",
         group_norm_kernel, Family::Normalization, "Group normalisation of a quantised tensor.");
  record(t, quantized_instance_norm,
         "instance_norm(Tensor input, Tensor? weight=None, Tensor? bias=None, float eps=1e-5, " RL_SCALE
         ") -> Tensor",
         instance_norm_kernel, Family::Normalization, "Instance normalisation of a quantised tensor.");
  static BatchNorm of_all;
  t.op(of_all,
       "quantized_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float "
       "eps, " RL_SCALE ") -> Tensor",
       batch_norm_of_all_kernel)
      .family(Family::Normalization)
      .function_only()
      .special_dtypes()
      .not_differentiable(kInference)
      .doc("Batch normalisation of a quantised tensor by known statistics.");
  t.quantized(of_all, batch_norm_of_all_kernel);
  batch_norm_record<0, false>(t), batch_norm_record<0, true>(t);
  batch_norm_record<1, false>(t), batch_norm_record<1, true>(t);
  batch_norm_record<2, false>(t), batch_norm_record<2, true>(t);
  batch_norm_record<3, false>(t), batch_norm_record<3, true>(t);
}

}  // namespace

void register_quantized_function_operators(Table& t) {
  constexpr auto kCopy = Family::Copy;
  constexpr const char* kDoc = "The function of a quantised tensor, with this scale of results.";
  record(t, quantized_hardswish, "hardswish(Tensor input, " RL_SCALE ") -> Tensor",
         function_kernel<hardswish>, kCopy, kDoc);
  record(t, quantized_sigmoid, "sigmoid(Tensor qx, " RL_SCALE ") -> Tensor", function_kernel<sigmoid>, kCopy,
         kDoc);
  record(t, quantized_elu,
         "elu(Tensor self, " RL_SCALE ", Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
         elu_kernel, kCopy, kDoc);
  record(t, quantized_celu, "celu(Tensor self, " RL_SCALE ", Scalar alpha=1) -> Tensor", celu_kernel, kCopy,
         kDoc);
  record(t, quantized_leaky_relu,
         "leaky_relu(Tensor qx, Scalar negative_slope=0.01, bool inplace=False, " RL_SCALE ") -> Tensor",
         leaky_relu_kernel, kCopy, kDoc);
  record(t, quantized_prelu, "prelu(Tensor qx, Tensor weight, " RL_SCALE ") -> Tensor", prelu_function, kCopy,
         kDoc);
  record(t, quantized_softmax, "softmax(Tensor qx, int dim, " RL_SCALE ") -> Tensor", softmax_kernel,
         Family::Normalization, kDoc);
  record(t, quantized_dropout,
         "dropout(Tensor self, " RL_SCALE ", Scalar p=0.5, bool training=False) -> Tensor", dropout_kernel,
         kCopy, "The tensor itself: dropping belongs to training.")
      .may_return_input();
  record(t, quantized_threshold, "threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor",
         threshold_kernel, kCopy, "A quantised tensor with what is not above the threshold replaced.");
  record(t, quantized_clamp, "clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor", clamp_kernel,
         kCopy, "A quantised tensor between bounds.");
  record(t, quantized_relu6, "relu6(Tensor qx, bool inplace=False) -> Tensor", relu6_kernel, kCopy,
         "A quantised tensor between 0 and 6.")
      .may_return_input();
  register_norms(t);
#define RL_WINDOW \
  "(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode)"
  record(t, quantized_max_pool1d, "max_pool1d" RL_WINDOW " -> Tensor", max_pool_kernel<max_pool1d>,
         Family::Window, "The largest elements of windows of a quantised tensor.");
  record(t, quantized_max_pool2d, "max_pool2d" RL_WINDOW " -> Tensor", max_pool_kernel<max_pool2d>,
         Family::Window, "The largest elements of windows of a quantised tensor.");
}

}  // namespace rushlight
