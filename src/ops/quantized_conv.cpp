// onednn::qconv*: convolutions of quantized images and filters, the filters a plain tensor of int8 with a
// scale, and perhaps a zero point, for each filter or for all.
#include <cmath>
#include <limits>

#include "core/prepared_weight.h"
#include "cpu/byte_conv.h"
#include "ops/copy.h"
#include "ops/quantized.h"
#include "ops/quantized_settings.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

using OptString = std::optional<std::string_view>;
Fn<Tensor(const Tensor& weight, const Tensor& w_scales, double x_scale, int64_t x_zp, IntList stride,
          IntList padding, IntList dilation, int64_t groups, const OptIntList& x_shape)>
    qconv_prepack;
using Plain =
    Fn<Tensor(const Tensor& qx, double x_scale, int64_t x_zero_point, const Tensor& qw, const Tensor& w_scale,
              const Tensor& w_zero_point, const Tensor& bias, IntList stride, IntList padding,
              IntList dilation, int64_t groups, double output_scale, int64_t output_zero_point,
              OptDType output_dtype, std::string_view attr, ScalarList scalars, OptString algorithm)>;
using WithTensors = Fn<Tensor(
    const Tensor& qx, const Tensor& x_scale, const Tensor& x_zero_point, const Tensor& qw,
    const Tensor& w_scale, const Tensor& w_zero_point, const Tensor& bias, IntList stride, IntList padding,
    IntList dilation, int64_t groups, double output_scale, int64_t output_zero_point, OptDType output_dtype,
    std::string_view attr, ScalarList scalars, OptString algorithm)>;
Plain qconv, qconv1d, qconv2d, qconv3d;
WithTensors qconv_tensor, qconv2d_tensor;
Fn<Tensor(const Tensor& qx, double x_scale, int64_t x_zero_point, const Tensor& qw, const Tensor& w_scale,
          const Tensor& w_zero_point, const Tensor& qaccum, const Tensor& bias, IntList stride,
          IntList padding, IntList dilation, int64_t groups, double output_scale, int64_t output_zero_point,
          OptDType output_dtype, double accum_scale, int64_t accum_zero_point, std::string_view binary_attr,
          const OptScalar& alpha, OptString unary_attr, ScalarList unary_scalars, OptString unary_algorithm)>
    qconv2d_binary;
Fn<Tensor(const Tensor& qx, const Tensor& x_scale, const Tensor& x_zero_point, const Tensor& qw,
          const Tensor& w_scale, const Tensor& w_zero_point, const Tensor& qaccum, const Tensor& bias,
          IntList stride, IntList padding, IntList dilation, int64_t groups, double output_scale,
          int64_t output_zero_point, OptDType output_dtype, double accum_scale, int64_t accum_zero_point,
          std::string_view binary_attr, const OptScalar& alpha, OptString unary_attr,
          ScalarList unary_scalars, OptString unary_algorithm)>
    qconv2d_binary_tensor;

Fn<Tensor(const Tensor& qx, double x_scale, int64_t x_zero_point, const Tensor& qw, const Tensor& w_scale,
          const Tensor& w_zero_point, const Tensor& bias, IntList stride, IntList padding, IntList dilation,
          int64_t groups, double output_scale, int64_t output_zero_point, DType output_dtype,
          std::string_view attr, const Tensor& other, double other_scale, int64_t other_zero_point,
          double scale, int64_t zero_point, bool relu, bool other_first)>
    quantized_conv_sum;

constexpr const char* kWho = "onednn::qconv_pointwise";

struct Window {
  IntList stride, padding, dilation;
  int64_t groups;
};

// The settings of dimension d of `dims`; one number stands for all.
int64_t setting(IntList list, size_t d, const char* what) {
  RL_CHECK(list.size() == 1 || d < list.size(), kWho, ": ", what,
           " needs a number for each dimension of the window, got ", list.size());
  return list.size() == 1 ? list[0] : list[d];
}

cpu::ByteConvShape shape_of(const Tensor& x, const Tensor& weight, const Window& w) {
  RL_CHECK(x.dim() >= 3 && x.dim() <= 5 && weight.dim() == x.dim(), kWho,
           ": an image of 3 to 5 dimensions and filters of as many are wanted, got ", describe(x), " and ",
           describe(weight));
  RL_CHECK(weight.dtype() == DType::Int8, kWho, ": filters must be int8, got ", describe(weight));
  cpu::ByteConvShape s{.batch = x->sizes[0],
                       .channels = x->sizes[1],
                       .filters = weight->sizes[0],
                       .groups = w.groups,
                       .in = {1, 1, 1},
                       .out = {1, 1, 1},
                       .kernel = {1, 1, 1},
                       .stride = {1, 1, 1},
                       .padding = {},
                       .dilation = {1, 1, 1}};
  RL_CHECK(s.groups > 0 && s.channels % s.groups == 0 && s.filters % s.groups == 0 &&
               weight->sizes[1] == s.channels / s.groups,
           kWho, ": filters (", describe(weight), ") in ", s.groups, " groups do not fit an image ",
           describe(x));
  const auto dims = static_cast<size_t>(x.dim() - 2);
  for (size_t d = 0; d < dims; ++d) {
    const size_t to = 3 - dims + d;
    s.in[to] = x->sizes[d + 2];
    s.kernel[to] = weight->sizes[d + 2];
    s.stride[to] = setting(w.stride, d, "stride");
    s.padding[to] = setting(w.padding, d, "padding");
    s.dilation[to] = setting(w.dilation, d, "dilation");
    RL_CHECK(s.stride[to] > 0 && s.dilation[to] > 0 && s.padding[to] >= 0, kWho,
             ": stride and dilation must be positive, padding not negative");
    RL_CHECK(s.kernel[to] > 0, kWho, ": filters of no elements (", describe(weight), ")");
    const int64_t extent = s.in[to] + 2 * s.padding[to] - s.dilation[to] * (s.kernel[to] - 1) - 1;
    RL_CHECK(extent >= 0, kWho, ": the window is larger than the padded image ", describe(x));
    s.out[to] = extent / s.stride[to] + 1;
  }
  return s;
}

struct KeptFilters final : ConstantMemory::Made {
  KeptFilters(const cpu::ByteConvShape& s, const int8_t* filters, bool zeros)
      : groups(s.groups), kernel(s.kernel), zeros(zeros), packed(s, filters, zeros) {}
  size_t nbytes() const override { return packed.nbytes(); }
  const int64_t groups;
  const std::array<int64_t, 3> kernel;
  const bool zeros;
  const cpu::PackedFilters packed;
};

std::shared_ptr<const KeptFilters> kept_filters(const cpu::ByteConvShape& s, const Tensor& weight,
                                                bool zeros) {
  const PreparedWeight prepared(weight);
  const bool constant = weight.is_contiguous() && ConstantMemory::contains(weight.data_ptr());
  std::shared_ptr<const KeptFilters> kept;
  if (constant)
    kept = ConstantMemory::find<KeptFilters>(weight.data_ptr(), [&](const KeptFilters& made) {
      return made.groups == s.groups && made.kernel == s.kernel && made.zeros == zeros;
    });
  if (kept) return kept;
  const Tensor own = contiguous(weight, MemoryFormat::Contiguous);
  kept = std::make_shared<const KeptFilters>(s, static_cast<const int8_t*>(own.data_ptr()), zeros);
  if (constant) ConstantMemory::keep(weight.data_ptr(), kept);
  return kept;
}

// The dimensions of an image with the channels moved to the end, or back.
std::vector<int64_t> channels_last(int64_t dims, bool back) {
  std::vector<int64_t> order{0};
  if (back) order.push_back(dims - 1);
  for (int64_t d = back ? 1 : 2; d < (back ? dims - 1 : dims); ++d) order.push_back(d);
  if (!back) order.push_back(1);
  return order;
}

// A sum of integers that follows: of the convolution's and another tensor's.
struct SumAfter {
  const Tensor& other;
  double other_scale;
  int64_t other_zero;
  double scale;
  int64_t zero;
  bool relu, other_first;

  // Whether the product can take it in; `lines` is what it computes, channels last.
  bool fits(const cpu::ByteConvShape& s, const QuantizedOutput& conv, const Tensor& lines) const {
    return conv.fused() && conv.is_quantized() && other.dtype() == conv.dtype && s.takes_sum() &&
           std::isfinite(scale) && scale > 0 && other.dim() == lines.dim() &&
           permute(other, channels_last(other.dim(), false)).sizes() == lines.sizes();
  }
  Tensor apart(const Tensor& y, const QuantizedOutput& conv) const {
    if (other_first)
      return quantized_sum(other, other_scale, other_zero, y, conv.scale, conv.zero_point, scale, zero,
                           conv.dtype, relu);
    return quantized_sum(y, conv.scale, conv.zero_point, other, other_scale, other_zero, scale, zero,
                         conv.dtype, relu);
  }
  cpu::ByteSum described(const QuantizedOutput& conv, const Tensor& lines, const Tensor& others) const {
    const bool is_signed = conv.dtype == DType::Int8;
    return {.result = lines.data_ptr(),
            .other = others.data_ptr(),
            .scale = static_cast<float>(conv.scale),
            .other_scale = static_cast<float>(other_scale),
            .other_zero = static_cast<float>(other_zero),
            .least = relu ? 0 : -std::numeric_limits<float>::infinity(),
            .inverse_out_scale = 1 / static_cast<float>(scale),
            .low = is_signed ? -128.0f : 0.0f,
            .high = is_signed ? 127.0f : 255.0f,
            .out_zero = static_cast<int32_t>(zero),
            .other_first = other_first};
  }
};

// `sum`: null for none.
Tensor convolve(const Tensor& x, double x_scale, int64_t x_zero, const Tensor& weight, const Tensor& w_scale,
                const Tensor& w_zero, const Tensor& bias, const Window& window, const QuantizedOutput& out,
                const SumAfter* sum = nullptr) {
  check_quantized_input(kWho, x, x_scale);
  const cpu::ByteConvShape s = shape_of(x, weight, window);
  std::vector<int64_t> sizes{s.batch};
  for (size_t d = 5 - static_cast<size_t>(x.dim()); d < 3; ++d) sizes.push_back(s.out[d]);
  sizes.push_back(s.filters);
  const Tensor lines = empty_tensor(sizes, out.computed_dtype(), x.device());
  bool summed = sum && sum->fits(s, out, lines);
  if (x.is_cpu() && lines.numel() > 0) {
    const Tensor image = contiguous(permute(x, channels_last(x.dim(), false)), MemoryFormat::Contiguous);
    const WeightSettings settings(s.filters, w_scale, w_zero, bias);
    const auto filters = kept_filters(s, weight, settings.zero_points() != nullptr);
    const Requantization last(x_scale, settings, out);
    cpu::ByteProduct p{};
    p.b_zeros = settings.zero_points();
    p.a_zero = static_cast<int32_t>(x_zero);
    last.describe(p);
    p.c = lines.data_ptr();
    Tensor others;
    cpu::ByteSum added{};
    summed = summed && !p.b_zeros;
    if (summed) {
      others = contiguous(permute(sum->other, channels_last(x.dim(), false)), MemoryFormat::Contiguous);
      added = sum->described(out, lines, others);
      p.sum = &added;
    }
    cpu::byte_conv(s, filters->packed, image.data_ptr(), x.dtype() == DType::Int8, p);
  }
  const Tensor y = out.finish(permute(lines, channels_last(x.dim(), true)));
  return sum && !summed ? sum->apart(y, out) : y;
}

Tensor sum_body(const Call&, const Tensor& qx, double x_scale, int64_t x_zero, const Tensor& qw,
                const Tensor& w_scale, const Tensor& w_zero, const Tensor& bias, IntList stride,
                IntList padding, IntList dilation, int64_t groups, double conv_scale, int64_t conv_zero,
                DType dtype, std::string_view attr, const Tensor& other, double other_scale,
                int64_t other_zero, double scale, int64_t zero, bool relu, bool other_first) {
  const QuantizedOutput out{conv_scale, conv_zero, dtype, attr, {}, ""};
  const SumAfter sum{other, other_scale, other_zero, scale, zero, relu, other_first};
  return convolve(qx, x_scale, x_zero, qw, w_scale, w_zero, bias, {stride, padding, dilation, groups}, out,
                  &sum);
}

Tensor prepack_body(const Call&, const Tensor& weight, const Tensor&, double, int64_t, IntList, IntList,
                    IntList, int64_t, const OptIntList&) {
  RL_CHECK(weight.dtype() == DType::Int8, "onednn::qconv_prepack: filters must be int8, got ",
           describe(weight));
  return clone(weight, MemoryFormat::Contiguous);
}
Tensor plain_body(const Call&, const Tensor& qx, double x_scale, int64_t x_zero, const Tensor& qw,
                  const Tensor& w_scale, const Tensor& w_zero, const Tensor& bias, IntList stride,
                  IntList padding, IntList dilation, int64_t groups, double scale, int64_t zero,
                  OptDType dtype, std::string_view attr, ScalarList scalars, OptString algorithm) {
  return convolve(qx, x_scale, x_zero, qw, w_scale, w_zero, bias, {stride, padding, dilation, groups},
                  {scale, zero, dtype.value_or(qx.dtype()), attr, scalars, algorithm.value_or("")});
}
Tensor tensor_body(const Call& call, const Tensor& qx, const Tensor& x_scale, const Tensor& x_zero,
                   const Tensor& qw, const Tensor& w_scale, const Tensor& w_zero, const Tensor& bias,
                   IntList stride, IntList padding, IntList dilation, int64_t groups, double scale,
                   int64_t zero, OptDType dtype, std::string_view attr, ScalarList scalars,
                   OptString algorithm) {
  return plain_body(call, qx, read_scale(x_scale), read_zero_point(x_zero), qw, w_scale, w_zero, bias, stride,
                    padding, dilation, groups, scale, zero, dtype, attr, scalars, algorithm);
}
Tensor binary_body(const Call&, const Tensor& qx, double x_scale, int64_t x_zero, const Tensor& qw,
                   const Tensor& w_scale, const Tensor& w_zero, const Tensor& accum, const Tensor& bias,
                   IntList stride, IntList padding, IntList dilation, int64_t groups, double scale,
                   int64_t zero, OptDType dtype, double accum_scale, int64_t accum_zero,
                   std::string_view binary, const OptScalar& alpha, OptString unary, ScalarList scalars,
                   OptString algorithm) {
  QuantizedOutput out{
      scale, zero, dtype.value_or(qx.dtype()), unary.value_or("none"), scalars, algorithm.value_or("")};
  out.add(accum, accum_scale, accum_zero, binary, alpha ? alpha->to_double() : 1);
  return convolve(qx, x_scale, x_zero, qw, w_scale, w_zero, bias, {stride, padding, dilation, groups}, out);
}
Tensor binary_tensor_body(const Call& call, const Tensor& qx, const Tensor& x_scale, const Tensor& x_zero,
                          const Tensor& qw, const Tensor& w_scale, const Tensor& w_zero, const Tensor& accum,
                          const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                          int64_t groups, double scale, int64_t zero, OptDType dtype, double accum_scale,
                          int64_t accum_zero, std::string_view binary, const OptScalar& alpha,
                          OptString unary, ScalarList scalars, OptString algorithm) {
  return binary_body(call, qx, read_scale(x_scale), read_zero_point(x_zero), qw, w_scale, w_zero, accum, bias,
                     stride, padding, dilation, groups, scale, zero, dtype, accum_scale, accum_zero, binary,
                     alpha, unary, scalars, algorithm);
}

constexpr const char* kQuantized = "it serves inference with quantized filters";

}  // namespace

void register_quantized_conv_operators(Table& t) {
#define RL_INPUT(type_scale, type_zero)               \
  "(Tensor qx, " type_scale " x_scale, " type_zero    \
  " x_zero_point, Tensor qw, Tensor w_scale, Tensor " \
  "w_zero_point, "
#define RL_WINDOW "Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups, "
#define RL_OUTPUT "float output_scale, int output_zero_point, ScalarType? output_dtype, "
#define RL_UNARY_STEP "str attr, Scalar?[] scalars, str? algorithm) -> Tensor"
#define RL_BINARY_STEP                                                                                   \
  "float accum_scale, int accum_zero_point, str binary_attr, Scalar? alpha, str? unary_attr, Scalar?[] " \
  "unary_scalars, str? unary_algorithm) -> Tensor"
#define RL_PLAIN RL_INPUT("float", "int") RL_WINDOW RL_OUTPUT RL_UNARY_STEP
#define RL_WITH_TENSORS RL_INPUT("Tensor", "Tensor") RL_WINDOW RL_OUTPUT RL_UNARY_STEP
  const auto settle = [](OpBuilder r, const char* doc) {
    return r.family(Family::Window).internal().may_return_input().not_differentiable(kQuantized).doc(doc);
  };
  constexpr uint64_t kOther = uint64_t{1} << 15;  // of the sum
  constexpr const char* kDoc = "A convolution of a quantized image and filters, with what follows it.";
  settle(t.op(qconv_prepack,
              "onednn::qconv_prepack(Tensor weight, Tensor w_scales, float x_scale, int x_zp, int[] stride, "
              "int[] padding, int[] dilation, int groups, int[]? x_shape=None) -> Tensor",
              prepack_body),
         "Filters as onednn::qconv_pointwise reads them.");
  settle(t.op(qconv, "onednn::qconv_pointwise" RL_PLAIN, plain_body), kDoc).examples(kFirst);
  settle(t.op(qconv1d, "onednn::qconv1d_pointwise" RL_PLAIN, plain_body), kDoc);
  settle(t.op(qconv2d, "onednn::qconv2d_pointwise" RL_PLAIN, plain_body), kDoc);
  settle(t.op(qconv3d, "onednn::qconv3d_pointwise" RL_PLAIN, plain_body), kDoc);
  settle(t.op(quantized_conv_sum,
              "_quantized_conv_sum" RL_INPUT("float", "int") RL_WINDOW
              "float output_scale, int output_zero_point, ScalarType output_dtype, str attr, "
              "Tensor other, float other_scale, int other_zero_point, float scale, "
              "int zero_point, bool relu=False, bool other_first=False) -> Tensor",
              sum_body)
             .absent_in_pytorch(),
         "A convolution of integers, and _quantized_sum of it and another tensor, of the convolution's type.")
      .examples(kFirst | kOther);
  settle(t.op(qconv_tensor, "onednn::qconv_pointwise.tensor" RL_WITH_TENSORS, tensor_body), kDoc);
  settle(t.op(qconv2d_tensor, "onednn::qconv2d_pointwise.tensor" RL_WITH_TENSORS, tensor_body), kDoc);
  settle(t.op(qconv2d_binary,
              "onednn::qconv2d_pointwise.binary" RL_INPUT(
                  "float", "int") "Tensor(a!) qaccum, " RL_WINDOW RL_OUTPUT RL_BINARY_STEP,
              binary_body),
         kDoc);
  settle(t.op(qconv2d_binary_tensor,
              "onednn::qconv2d_pointwise.binary_tensor" RL_INPUT(
                  "Tensor", "Tensor") "Tensor(a!) qaccum, " RL_WINDOW RL_OUTPUT RL_BINARY_STEP,
              binary_tensor_body),
         kDoc);
}

}  // namespace rushlight
