// Linear layers on quantized activations and weights, the weight a plain tensor of int8 with a scale, and
// perhaps a zero point, for each row or for all.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/operators.h"
#include "ops/packed_bytes.h"
#include "ops/quantized_settings.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace ops {
inline Fn<Tensor(const Tensor& input, const Tensor& weight, const Tensor& scales, const Tensor& zero_points,
                 const Tensor& bias, bool relu, bool reduce_range)>
    quantized_linear_dynamic;
inline Fn<Tensor(const Tensor& weight, const OptIntList& x_shape)> qlinear_prepack;
inline Fn<Tensor(const Tensor& qx, double x_scale, int64_t x_zero_point, const Tensor& qw,
                 const Tensor& w_scale, const Tensor& w_zero_point, const Tensor& bias, double output_scale,
                 int64_t output_zero_point, OptDType output_dtype, std::string_view post_op_name,
                 ScalarList post_op_args, std::string_view post_op_algorithm)>
    qlinear_pointwise;
inline Fn<Tensor(const Tensor& qx, const Tensor& x_scale, const Tensor& x_zero_point, const Tensor& qw,
                 const Tensor& w_scale, const Tensor& w_zero_point, const Tensor& bias, double output_scale,
                 int64_t output_zero_point, OptDType output_dtype, std::string_view post_op_name,
                 ScalarList post_op_args, std::string_view post_op_algorithm)>
    qlinear_pointwise_tensor;
inline Fn<Tensor(const Tensor& qx, double x_scale, int64_t x_zero_point, const Tensor& qw,
                 const Tensor& w_scale, const Tensor& w_zero_point, const Tensor& other, const Tensor& bias,
                 double output_scale, int64_t output_zero_point, OptDType output_dtype, double other_scale,
                 int64_t other_zp, std::string_view binary_post_op, double binary_alpha,
                 std::string_view unary_post_op, ScalarList unary_post_op_args,
                 std::string_view unary_post_op_algorithm)>
    qlinear_pointwise_binary;
inline Fn<Tensor(const Tensor& qx, const Tensor& x_scale, const Tensor& x_zero_point, const Tensor& qw,
                 const Tensor& w_scale, const Tensor& w_zero_point, const Tensor& other, const Tensor& bias,
                 double output_scale, int64_t output_zero_point, OptDType output_dtype, double other_scale,
                 int64_t other_zp, std::string_view binary_post_op, double binary_alpha,
                 std::string_view unary_post_op, ScalarList unary_post_op_args,
                 std::string_view unary_post_op_algorithm)>
    qlinear_pointwise_binary_tensor;
}  // namespace ops

namespace {

using namespace ops;

std::vector<int64_t> output_sizes(const Tensor& x, int64_t n) {
  std::vector<int64_t> sizes(x->sizes.begin(), x->sizes.end());
  sizes.back() = n;
  return sizes;
}

Tensor linear_dynamic_kernel(const Call&, const Tensor& input, const Tensor& weight, const Tensor& scales,
                             const Tensor& zero_points, const Tensor& bias, bool relu, bool reduce_range) {
  constexpr const char* kWho = "_quantized_linear_dynamic";
  RL_CHECK(input.dtype() == DType::Float32, kWho, ": input must be float32, got ", describe(input));
  RL_CHECK(weight.dim() == 2 && weight.dtype() == DType::Int8, kWho, ": weight must be an int8 matrix, got ",
           describe(weight));
  const int64_t n = weight->sizes[0], k = weight->sizes[1];
  RL_CHECK(input.dim() >= 1 && input->sizes[input.dim() - 1] == k,
           "The size of tensor X and the weight do not fit: X's last dimension must be ", k, ", got ",
           describe(input));
  const Tensor y = empty_tensor(output_sizes(input, n), DType::Float32, input.device());
  if (!input.is_cpu() || y.numel() == 0) return y;
  const Tensor x = contiguous(input, MemoryFormat::Contiguous);
  const WeightSettings settings(n, scales, zero_points, bias);
  const int64_t m = y.numel() / n;
  const auto* from = static_cast<const float*>(x.data_ptr());
  const cpu::ScaleAndZero q = choose_quantization_of(from, x.numel(), 0, 255, reduce_range);
  cpu::ByteRows rows(m, k, false);
  parallel_for(
      0, m, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, k)), [&](int64_t begin, int64_t end) {
        rows.quantize(begin, end, from + begin * k, k, static_cast<float>(q.scale), q.zero_point, 0, 255);
      });
  const auto packed = packed_bytes(t(weight));
  std::vector<float> factors = settings.scales();
  for (float& factor : factors) factor *= static_cast<float>(q.scale);
  cpu::byte_product({.a = &rows,
                     .b = packed.get(),
                     .a_zero = q.zero_point,
                     .b_zeros = settings.zero_points(),
                     .result = cpu::ByteResult::kFloat,
                     .scales = factors.data(),
                     .bias = settings.bias(),
                     .low = relu ? 0 : -INFINITY,
                     .high = INFINITY,
                     .c = y.data_ptr(),
                     .ldc = n});
  return y;
}

// --- onednn::qlinear_*: the same on activations that are quantized already

Tensor qlinear_prepack_body(const Call&, const Tensor& weight, const OptIntList&) {
  RL_CHECK(weight.dim() == 2 && weight.dtype() == DType::Int8,
           "onednn::qlinear_prepack: weight must be an int8 matrix, got ", describe(weight));
  return t(clone(weight, MemoryFormat::Contiguous));
}

struct QuantizedInput {
  Tensor x;
  double scale;
  int64_t zero_point;
};

Tensor qlinear(const QuantizedInput& in, const Tensor& qw, const Tensor& w_scale, const Tensor& w_zero_point,
               const Tensor& bias, const QuantizedOutput& out) {
  constexpr const char* kWho = "onednn::qlinear_pointwise";
  check_quantized_input(kWho, in.x, in.scale);
  RL_CHECK(qw.dim() == 2 && qw.dtype() == DType::Int8, kWho, ": weight must be an int8 matrix, got ",
           describe(qw));
  const int64_t k = qw->sizes[0], n = qw->sizes[1];
  RL_CHECK(in.x.dim() >= 1 && in.x->sizes[in.x.dim() - 1] == k, kWho, ": the last dimension of the input (",
           describe(in.x), ") must be the weight's first, ", k);
  const DType dtype = out.computed_dtype();
  const Tensor y = empty_tensor(output_sizes(in.x, n), dtype, in.x.device());
  if (in.x.is_cpu() && y.numel() > 0) {
    const Tensor x = contiguous(in.x, MemoryFormat::Contiguous);
    const WeightSettings settings(n, w_scale, w_zero_point, bias);
    const cpu::ByteRows rows(y.numel() / n, k, x.data_ptr(), x.dtype() == DType::Int8, k, 1);
    const auto packed = packed_bytes(qw);
    const Requantization last(in.scale, settings, out);
    cpu::ByteProduct p{.a = &rows, .b = packed.get(), .b_zeros = settings.zero_points()};
    p.a_zero = static_cast<int32_t>(in.zero_point);
    last.describe(p);
    p.c = y.data_ptr();
    p.ldc = n;
    cpu::byte_product(p);
  }
  return out.finish(y);
}

Tensor qlinear_body(const Call&, const Tensor& qx, double x_scale, int64_t x_zero_point, const Tensor& qw,
                    const Tensor& w_scale, const Tensor& w_zero_point, const Tensor& bias,
                    double output_scale, int64_t output_zero_point, OptDType output_dtype,
                    std::string_view name, ScalarList args, std::string_view algorithm) {
  return qlinear({qx, x_scale, x_zero_point}, qw, w_scale, w_zero_point, bias,
                 {output_scale, output_zero_point, output_dtype.value_or(qx.dtype()), name, args, algorithm});
}
Tensor qlinear_tensor_body(const Call&, const Tensor& qx, const Tensor& x_scale, const Tensor& x_zero_point,
                           const Tensor& qw, const Tensor& w_scale, const Tensor& w_zero_point,
                           const Tensor& bias, double output_scale, int64_t output_zero_point,
                           OptDType output_dtype, std::string_view name, ScalarList args,
                           std::string_view algorithm) {
  return qlinear({qx, read_scale(x_scale), read_zero_point(x_zero_point)}, qw, w_scale, w_zero_point, bias,
                 {output_scale, output_zero_point, output_dtype.value_or(qx.dtype()), name, args, algorithm});
}
Tensor qlinear_binary_body(const Call&, const Tensor& qx, double x_scale, int64_t x_zero_point,
                           const Tensor& qw, const Tensor& w_scale, const Tensor& w_zero_point,
                           const Tensor& other, const Tensor& bias, double output_scale,
                           int64_t output_zero_point, OptDType output_dtype, double other_scale,
                           int64_t other_zp, std::string_view binary, double alpha, std::string_view name,
                           ScalarList args, std::string_view algorithm) {
  QuantizedOutput out{output_scale, output_zero_point, output_dtype.value_or(qx.dtype()), name,
                      args,         algorithm};
  out.add(other, other_scale, other_zp, binary, alpha);
  return qlinear({qx, x_scale, x_zero_point}, qw, w_scale, w_zero_point, bias, out);
}
Tensor qlinear_binary_tensor_body(const Call& call, const Tensor& qx, const Tensor& x_scale,
                                  const Tensor& x_zero_point, const Tensor& qw, const Tensor& w_scale,
                                  const Tensor& w_zero_point, const Tensor& other, const Tensor& bias,
                                  double output_scale, int64_t output_zero_point, OptDType output_dtype,
                                  double other_scale, int64_t other_zp, std::string_view binary, double alpha,
                                  std::string_view name, ScalarList args, std::string_view algorithm) {
  return qlinear_binary_body(call, qx, read_scale(x_scale), read_zero_point(x_zero_point), qw, w_scale,
                             w_zero_point, other, bias, output_scale, output_zero_point, output_dtype,
                             other_scale, other_zp, binary, alpha, name, args, algorithm);
}

constexpr const char* kQuantized = "it serves inference with quantized weights";
#define RL_QLINEAR_INPUT(type_scale, type_zero)    \
  "(Tensor qx, " type_scale " x_scale, " type_zero \
  " x_zero_point, Tensor qw, Tensor w_scale, Tensor w_zero_point, "
#define RL_QLINEAR_OUTPUT "float output_scale, int output_zero_point, ScalarType? output_dtype, "
#define RL_QLINEAR_UNARY "str post_op_name, Scalar?[] post_op_args, str post_op_algorithm) -> Tensor"
#define RL_QLINEAR_BINARY                                                                                  \
  "float other_scale, int other_zp, str binary_post_op, float binary_alpha, str unary_post_op, Scalar?[] " \
  "unary_post_op_args, str unary_post_op_algorithm) -> Tensor"

}  // namespace

void register_quantized_linear_operators(Table& t) {
  t.op(ops::quantized_linear_dynamic,
       "_quantized_linear_dynamic(Tensor input, Tensor weight, Tensor scales, Tensor? zero_points, Tensor? "
       "bias, bool relu=False, bool reduce_range=False) -> Tensor",
       linear_dynamic_kernel)
      .absent_in_pytorch()
      .family(Family::Matmul)
      .internal()
      .not_differentiable(kQuantized)
      .doc("A linear layer of floats by a weight of int8: the input is quantized by its range.");
  t.op(ops::qlinear_prepack, "onednn::qlinear_prepack(Tensor weight, int[]? x_shape) -> Tensor",
       qlinear_prepack_body)
      .internal()
      .not_differentiable(kQuantized)
      .doc("The weight as onednn::qlinear_pointwise reads it.");
  const auto settle = [](OpBuilder r) {
    r.family(Family::Matmul)
        .internal()
        .may_return_input()
        .not_differentiable(kQuantized)
        .doc("A linear layer of quantized input and weight, with what follows it.");
  };
  settle(t.op(ops::qlinear_pointwise,
              "onednn::qlinear_pointwise" RL_QLINEAR_INPUT(
                  "float", "int") "Tensor? bias, " RL_QLINEAR_OUTPUT RL_QLINEAR_UNARY,
              qlinear_body));
  settle(t.op(ops::qlinear_pointwise_tensor,
              "onednn::qlinear_pointwise.tensor" RL_QLINEAR_INPUT(
                  "Tensor", "Tensor") "Tensor? bias, " RL_QLINEAR_OUTPUT RL_QLINEAR_UNARY,
              qlinear_tensor_body));
  settle(t.op(ops::qlinear_pointwise_binary,
              "onednn::qlinear_pointwise.binary" RL_QLINEAR_INPUT(
                  "float", "int") "Tensor? other, Tensor? bias, " RL_QLINEAR_OUTPUT RL_QLINEAR_BINARY,
              qlinear_binary_body));
  settle(t.op(ops::qlinear_pointwise_binary_tensor,
              "onednn::qlinear_pointwise.binary_tensor" RL_QLINEAR_INPUT(
                  "Tensor", "Tensor") "Tensor? other, Tensor? bias, " RL_QLINEAR_OUTPUT RL_QLINEAR_BINARY,
              qlinear_binary_tensor_body));
}

}  // namespace rushlight
