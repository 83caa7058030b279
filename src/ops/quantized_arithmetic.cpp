// quantized::add, mul, cat, matmul: operators on quantised tensors of one scale, whose results have a scale
// that the caller chose.
#include <algorithm>
#include <cmath>

#include "cpu/quantized_binary.h"
#include "ops/copy.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/quantized.h"
#include "ops/quantized_math.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

using Binary = Fn<Tensor(const Tensor& qa, const Tensor& qb, double scale, int64_t zero_point)>;
using BinaryOut = Fn<Tensor(const Tensor& qa, const Tensor& qb, const Tensor& out)>;
using WithNumber = Fn<Tensor(const Tensor& qa, const Scalar& b)>;
using WithNumberFirst = Fn<Tensor(const Scalar& b, const Tensor& qa)>;
using Join = Fn<Tensor(TensorList qx, int64_t dim, std::optional<double> scale, OptInt zero_point)>;
using JoinOut = Fn<Tensor(TensorList qx, int64_t dim, const Tensor& out)>;
Binary matmul_tensors;

void check_pair(std::string_view op, const Tensor& a, const Tensor& b) {
  RL_CHECK(is_quantized(a) && is_quantized(b), op, "(): expected two quantized tensors, but got ",
           describe(a), " and ", describe(b));
  RL_CHECK(!quantizer_of(a).per_channel(), "Only per-tensor quantization is supported in ", op, ".");
  RL_CHECK(!quantizer_of(b).per_channel(), "Both inputs to ", op, " must have the same quantization scheme.");
  RL_CHECK(a.dtype() == b.dtype(), op, " operands should have same data type, but got ", describe(a), " and ",
           describe(b));
}

// What a pair of one shape lies like, or as rows where they lie apart.
std::pair<Tensor, Tensor> laid_alike(const Tensor& a, const Tensor& b) {
  if (a.sizes() == b.sizes() && a.strides() == b.strides() && is_dense_from_data(a)) return {a, b};
  const Dims sizes = broadcast_shapes(a.sizes(), b.sizes());
  const bool last = a.sizes() == b.sizes() && a.is_contiguous(MemoryFormat::ChannelsLast);
  const MemoryFormat format = last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
  return {contiguous(expand(a, sizes, false), format), contiguous(expand(b, sizes, false), format)};
}

Tensor combined(std::string_view op, const Tensor& qa, const Tensor& qb, const Quantizer& out,
                bool multiplied, bool relu) {
  check_pair(op, qa, qb);
  const Quantizer &x = quantizer_of(qa), &y = quantizer_of(qb);
  if (qa.itemsize() != 1) {  // 32 bits
    const Tensor a = dequantize_from(qa), b = dequantize_from(qb), both = multiplied ? a * b : a + b;
    return quantize_as(relu ? clamp_min(both, Scalar(0)) : both, qa.dtype(), out);
  }
  const auto [a, b] = laid_alike(integers_of(qa), integers_of(qb));
  const Tensor to = empty_like_tensor(a, a.dtype());
  if (to.is_cpu() && to.numel() > 0)
    cpu::quantized_binary(
        {.n = to.numel(),
         .a = {a.data_ptr(), static_cast<float>(x.scale), static_cast<int32_t>(x.zero_point)},
         .b = {b.data_ptr(), static_cast<float>(y.scale), static_cast<int32_t>(y.zero_point)},
         .out = to.data_ptr(),
         .scale = static_cast<float>(out.scale),
         .zero_point = static_cast<int32_t>(out.zero_point),
         .signed_bytes = qa.dtype() == DType::QInt8,
         .multiplied = multiplied,
         .relu = relu});
  return with_quantizer(to, qa.dtype(), out);
}

template <bool kMultiplied, bool kRelu>
Tensor binary_kernel(const Call& call, const Tensor& qa, const Tensor& qb, double scale, int64_t zero) {
  return combined(call.op.name(), qa, qb, result_quantizer(call.op.name(), scale, zero), kMultiplied, kRelu);
}
// The result in the tensor that the caller gave; it takes the result's scale.
Tensor into(const Tensor& out, const Tensor& made) {
  if (out.sizes() != made.sizes()) resize_(out, made.sizes(), std::nullopt);
  copy_(out, made, false);
  return out;
}
template <bool kMultiplied, bool kRelu>
Tensor binary_out_kernel(const Call& call, const Tensor& qa, const Tensor& qb, const Tensor& out) {
  return into(out, combined(call.op.name(), qa, qb, one_scale(out, call.op.name()), kMultiplied, kRelu));
}

// --- with a number: the scale and the zero point take it in, so that most integers stay as they are

struct Bounds {
  int64_t low, high;
};
Bounds bounds_of(DType quantized) {
  if (quantized == DType::QUInt8) return {0, UINT8_MAX};
  if (quantized == DType::QInt8) return {INT8_MIN, INT8_MAX};
  return {INT32_MIN, INT32_MAX};
}
Tensor with_bound(const Tensor& integers, DType dtype, const Quantizer& q, bool relu) {
  const Tensor kept = relu ? clamp_min(integers, Scalar(q.zero_point)) : integers;
  return with_quantizer(clone(kept, MemoryFormat::Preserve), dtype, q);
}

Tensor add_number(const Tensor& qa, const Quantizer& from, double number, bool relu) {
  const auto [low, high] = bounds_of(qa.dtype());
  const auto steps = static_cast<int64_t>(std::nearbyint(number / from.scale));
  const int64_t zero = from.zero_point - steps;
  if (zero >= low && zero <= high)
    return with_bound(integers_of(qa), qa.dtype(), {.scale = from.scale, .zero_point = zero}, relu);
  const double range = static_cast<double>(high) - static_cast<double>(low),
               reach = zero < low ? static_cast<double>(high - zero) : static_cast<double>(zero - low);
  const Quantizer out{.scale = reach / range * from.scale, .zero_point = zero < low ? low : high};
  const auto factor = Scalar(from.scale / out.scale);
  Tensor moved = to_dtype(integers_of(qa), DType::Float32) - Scalar(static_cast<double>(zero));
  if (relu) moved = clamp_min(moved, Scalar(0));
  const Tensor integers = clamp(round(moved * factor, 0) + Scalar(static_cast<double>(out.zero_point)),
                                OptScalar(Scalar(low)), OptScalar(Scalar(high)));
  return with_quantizer(to_dtype(integers, integer_dtype(qa.dtype())), qa.dtype(), out);
}

Tensor mul_number(const Tensor& qa, const Quantizer& from, double number, bool relu) {
  const auto [low, high] = bounds_of(qa.dtype());
  const Tensor integers = integers_of(qa);
  if (number > 0)
    return with_bound(integers, qa.dtype(), {.scale = number * from.scale, .zero_point = from.zero_point},
                      relu);
  if (number == 0) return with_quantizer(integers * Scalar(0), qa.dtype(), {});
  return with_bound(bitwise_not(integers), qa.dtype(),  // low + high - integer
                    {.scale = -number * from.scale, .zero_point = high + low - from.zero_point}, relu);
}

template <bool kMultiplied, bool kRelu>
Tensor number_kernel(const Call& call, const Tensor& qa, const Scalar& b) {
  const Quantizer& q = one_scale(qa, call.op.name());
  const double number = b.to_double();
  RL_CHECK(std::isfinite(number), call.op.name(), "(): the number must be finite, got ", number);
  return kMultiplied ? mul_number(qa, q, number, kRelu) : add_number(qa, q, number, kRelu);
}
template <bool kMultiplied, bool kRelu>
Tensor number_first_kernel(const Call& call, const Scalar& b, const Tensor& qa) {
  return number_kernel<kMultiplied, kRelu>(call, qa, b);
}
template <bool kMultiplied, bool kRelu>
Tensor number_tensor_kernel(const Call& call, const Tensor& qa, const Tensor& b) {
  return number_kernel<kMultiplied, kRelu>(call, qa, read_scalar(b));
}

template <bool kMultiplied, bool kRelu>
Tensor number_out_kernel(const Call& call, const Tensor& qa, const Scalar& b, const Tensor& out) {
  return into(out, number_kernel<kMultiplied, kRelu>(call, qa, b));
}
template <bool kMultiplied, bool kRelu>
Tensor number_tensor_out_kernel(const Call& call, const Tensor& qa, const Tensor& b, const Tensor& out) {
  return into(out, number_tensor_kernel<kMultiplied, kRelu>(call, qa, b));
}

// --- joining and products

template <bool kRelu>
Tensor cat_kernel(const Call& call, TensorList qx, int64_t dim, std::optional<double> scale, OptInt zero) {
  RL_CHECK(!qx.empty(), call.op.name(), "(): expected a non-empty list of tensors");
  for (const Tensor& t : qx) {
    RL_CHECK(is_quantized(t) && !quantizer_of(t).per_channel(),
             "Only per-tensor quantization is supported in 'cat', but got ", describe(t));
    RL_CHECK(t.dtype() == qx[0].dtype(), "All dtypes must be the same.");
  }
  const Quantizer& first = quantizer_of(qx[0]);
  const Quantizer out =
      result_quantizer(call.op.name(), scale.value_or(first.scale), zero.value_or(first.zero_point));
  std::vector<Tensor> parts;
  for (const Tensor& t : qx) parts.push_back(integers_under(t, out));
  const Tensor joined = cat(parts, dim);
  return with_quantizer(kRelu ? clamp_min(joined, Scalar(out.zero_point)) : joined, qx[0].dtype(), out);
}
template <bool kRelu>
Tensor cat_out_kernel(const Call& call, TensorList qx, int64_t dim, const Tensor& out) {
  const Quantizer& q = one_scale(out, call.op.name());
  return into(out, cat_kernel<kRelu>(call, qx, dim, q.scale, q.zero_point));
}

Tensor matmul_kernel(const Call& call, const Tensor& qa, const Tensor& qb, double scale, int64_t zero) {
  check_pair(call.op.name(), qa, qb);
  RL_CHECK(qa.dim() == qb.dim(), call.op.name(), "(): both operands must have as many dimensions");
  return quantize_as(matmul(dequantize_from(qa), dequantize_from(qb)), qa.dtype(),
                     result_quantizer(call.op.name(), scale, zero));
}

constexpr const char* kInference = "it serves inference with quantized tensors";

// A record whose own kernel takes quantised tensors.
template <class R, class... A>
void record(Table& t, Fn<R(A...)>& handle, const std::string& schema,
            std::type_identity_t<R (*)(const Call&, A...)> kernel, Family family, const char* doc) {
  OpBuilder made = t.op(handle, kept_schema(schema), kernel);
  t.quantized(handle, kernel);
  made.family(family).internal().special_dtypes().not_differentiable(kInference).doc(doc);
}

template <bool kMultiplied, bool kRelu>
void numbers(Table& t, const std::string& name) {
  static WithNumber plain, older;
  static WithNumberFirst first;
  static Fn<Tensor(const Tensor&, const Tensor&)> tensor;
  static Fn<Tensor(const Tensor&, const Scalar&, const Tensor&)> made_into, older_into;
  static Fn<Tensor(const Tensor&, const Tensor&, const Tensor&)> tensor_into;
  const std::string older_name =
      std::string("quantized::") + (kMultiplied ? "mul" : "add") + "_scalar" + (kRelu ? "_relu" : "");
  constexpr const char* kDoc = "A quantised tensor and a number, which scale and zero point take in.";
  record(t, plain, name + ".Scalar(Tensor qa, Scalar b) -> Tensor", number_kernel<kMultiplied, kRelu>,
         Family::Copy, kDoc);
  record(t, first, name + ".Scalar2(Scalar b, Tensor qa) -> Tensor", number_first_kernel<kMultiplied, kRelu>,
         Family::Copy, kDoc);
  record(t, older, older_name + "(Tensor qa, Scalar b) -> Tensor", number_kernel<kMultiplied, kRelu>,
         Family::Copy, kDoc);
  record(t, tensor, older_name + ".Tensor(Tensor qa, Tensor b) -> Tensor",
         number_tensor_kernel<kMultiplied, kRelu>, Family::Copy, kDoc);
  record(t, made_into, name + ".Scalar_out(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!)",
         number_out_kernel<kMultiplied, kRelu>, Family::Copy, kDoc);
  record(t, older_into, older_name + "_out(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!)",
         number_out_kernel<kMultiplied, kRelu>, Family::Copy, kDoc);
  record(t, tensor_into, older_name + "_out.Tensor(Tensor qa, Tensor b, Tensor(a!) out) -> Tensor(a!)",
         number_tensor_out_kernel<kMultiplied, kRelu>, Family::Copy, kDoc);
}

template <bool kMultiplied, bool kRelu>
void pair(Table& t) {
  static Binary made;
  static BinaryOut made_into, older_into;
  const std::string name =
      std::string("quantized::") + (kMultiplied ? "mul" : "add") + (kRelu ? "_relu" : "");
  constexpr const char* kDoc =
      kMultiplied ? "Products of quantised tensors, element by element." : "Sums of quantised tensors.";
  record(t, made, name + "(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor",
         binary_kernel<kMultiplied, kRelu>, Family::Copy, kDoc);
  record(t, made_into, name + ".out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!)",
         binary_out_kernel<kMultiplied, kRelu>, Family::Copy, kDoc);
  record(t, older_into, name + "_out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!)",
         binary_out_kernel<kMultiplied, kRelu>, Family::Copy, kDoc);
  numbers<kMultiplied, kRelu>(t, name);
}

template <bool kRelu>
void joins(Table& t) {
  static Join made;
  static JoinOut made_into;
  const std::string name = std::string("quantized::cat") + (kRelu ? "_relu" : "");
  constexpr const char* kDoc =
      kRelu ? "Quantised tensors joined, under one scale; negative numbers become zero."
            : "Quantised tensors joined, under one scale.";
  record(t, made, name + "(Tensor[] qx, int dim, float? scale=None, int? zero_point=None) -> Tensor",
         cat_kernel<kRelu>, Family::Join, kDoc);
  record(t, made_into, name + "_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)",
         cat_out_kernel<kRelu>, Family::Join, kDoc);
}

}  // namespace

void register_quantized_arithmetic_operators(Table& t) {
  pair<false, false>(t), pair<false, true>(t), pair<true, false>(t), pair<true, true>(t);
  joins<false>(t), joins<true>(t);
  record(t, matmul_tensors, "quantized::matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor",
         matmul_kernel, Family::Matmul, "Products of quantised matrices.");
}

}  // namespace rushlight
