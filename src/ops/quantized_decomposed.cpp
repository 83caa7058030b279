// quantized_decomposed::*: tensors as integers with a scale and a zero point beside them, in graphs that were
// quantized after export. Values, checks and their words are those of PyTorch's functions of these names.
#include <limits>
#include <vector>

#include "cpu/affine.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/quantized_settings.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using TwoTensors = std::tuple<Tensor, Tensor>;

// The handles that composites of this file call.
Fn<Tensor(const Tensor& input, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max,
          DType dtype)>
    quantize_per_tensor;
Fn<Tensor(const Tensor& input, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max,
          DType dtype, OptDType out_dtype)>
    dequantize_per_tensor;
Fn<Tensor(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis,
          int64_t quant_min, int64_t quant_max, DType dtype)>
    quantize_per_channel;
Fn<Tensor(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis,
          int64_t quant_min, int64_t quant_max, DType dtype, OptDType out_dtype)>
    dequantize_per_channel;
Fn<Tensor(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis,
          int64_t quant_min, int64_t quant_max)>
    fake_quant_per_channel;

// --- checks

struct Bounds {
  int64_t low, high;
};
std::optional<Bounds> bounds_of(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return Bounds{0, 255};
    case DType::Int8:
      return Bounds{-128, 127};
    case DType::UInt16:
      return Bounds{0, 65535};
    case DType::Int16:
      return Bounds{-32768, 32767};
    case DType::Int32:
      return Bounds{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DType::Float8_e5m2:
      return Bounds{-57344, 57344};
    case DType::Float8_e4m3fn:
      return Bounds{-448, 448};
    default:
      return std::nullopt;
  }
}

void check_bounds(int64_t low, int64_t high, DType dtype) {
  const auto bounds = bounds_of(dtype);
  RL_CHECK_VALUE(bounds, "Unsupported dtype: torch.", dtype_name(dtype));
  RL_CHECK_AS(Assertion, low >= bounds->low,
              "quant_min out of bounds for dtype, quant_min_lower_bound: ", bounds->low, " quant_min: ", low);
  RL_CHECK_AS(Assertion, high <= bounds->high,
              "quant_max out of bounds for dtype, quant_max_upper_bound: ", bounds->high,
              " quant_max: ", high);
}
Tensor checked_floats(const Tensor& input) {
  const Tensor x = is_reduced_float(input.dtype()) ? to_dtype(input, DType::Float32) : input;
  RL_CHECK_AS(Assertion, x.dtype() == DType::Float32,
              "Expecting input to have dtype torch.float32, but got dtype: torch.", dtype_name(x.dtype()));
  return x;
}
void check_stored(const Tensor& input, DType dtype) {
  RL_CHECK_AS(Assertion, input.dtype() == dtype, "Expecting input to have dtype: torch.", dtype_name(dtype),
              ", but got torch.", dtype_name(input.dtype()));
}
int64_t checked_axis(const Tensor& input, int64_t axis) {
  RL_CHECK_AS(Assertion, axis < input.dim(), "Expecting axis to be < ", input.dim());
  RL_CHECK_INDEX(axis >= -input.dim(), "Dimension out of range: axis is ", axis, ", and the input has ",
                 input.dim(), " dimensions");
  return axis < 0 ? axis + input.dim() : axis;
}
double one_number(const Tensor& t, const char* what) {
  RL_CHECK_AS(Assertion, t.numel() == 1, "Expecting ", what,
              " tensor to be one element, but received : ", t.numel());
  return read_scalar(t).to_double();
}

Scalar number(int64_t x) { return Scalar(x); }
Scalar number(double x) { return Scalar(x); }
Tensor bounded(const Tensor& t, int64_t low, int64_t high) {
  return clamp(t, OptScalar(number(low)), OptScalar(number(high)));
}
bool is_byte(DType dtype) { return dtype == DType::UInt8 || dtype == DType::Int8; }
// Memory that is read in order, and a result that lies likewise.
Tensor in_order(const Tensor& t) { return contiguous(t, MemoryFormat::Contiguous); }

// --- one scale for all

Tensor quantize_kernel(const Call&, const Tensor& input, double scale, int64_t zero_point, int64_t low,
                       int64_t high, DType dtype) {
  const Tensor x = checked_floats(input);
  check_bounds(low, high, dtype);
  RL_CHECK_VALUE(scale != 0, "quantize_per_tensor: the scale is zero (float division by zero)");
  const double inverse = 1 / scale;
  if (!is_byte(dtype) || !is_dense_from_data(x)) {
    const Tensor shifted = round(x * number(inverse), 0) + number(zero_point);
    return to_dtype(bounded(shifted, low, high), dtype);
  }
  const Tensor y = empty_like_tensor(x, dtype);
  if (!x.is_cpu()) return y;
  const auto factor = static_cast<float>(inverse), zero = static_cast<float>(zero_point);
  cpu::quantize_affine({1, 1, x.numel(), &factor, &zero}, static_cast<const float*>(x.data_ptr()), dtype,
                       static_cast<float>(low), static_cast<float>(high), y.data_ptr());
  return y;
}

Tensor dequantize_kernel(const Call&, const Tensor& input, double scale, int64_t zero_point, int64_t, int64_t,
                         DType dtype, OptDType out_dtype) {
  check_stored(input, dtype);
  const DType result = out_dtype.value_or(DType::Float32);
  RL_CHECK_VALUE(bounds_of(dtype), "Unsupported dtype in dequantize_per_tensor: torch.", dtype_name(dtype));
  if (!is_byte(dtype) || result != DType::Float32 || !is_dense_from_data(input))
    return (to_dtype(input, result) - number(zero_point)) * number(scale);
  const Tensor y = empty_like_tensor(input, result);
  if (!input.is_cpu()) return y;
  const auto factor = static_cast<float>(scale), zero = static_cast<float>(zero_point);
  cpu::dequantize_affine({1, 1, input.numel(), &factor, &zero}, dtype, input.data_ptr(),
                         static_cast<float*>(y.data_ptr()));
  return y;
}

Tensor quantize_tensor_body(const Call&, const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                            int64_t low, int64_t high, DType dtype) {
  const auto zero = static_cast<int64_t>(one_number(zero_point, "zero_point"));
  return quantize_per_tensor(input, one_number(scale, "scale"), zero, low, high, dtype);
}
Tensor quantize_tensor2_body(const Call& call, const Tensor& input, const Tensor& scale,
                             const Tensor& zero_point, const Tensor& low, const Tensor& high, DType dtype) {
  return quantize_tensor_body(call, input, scale, zero_point, read_zero_point(low), read_zero_point(high),
                              dtype);
}
Tensor dequantize_tensor_body(const Call&, const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                              int64_t low, int64_t high, DType dtype, OptDType out_dtype) {
  const auto zero = static_cast<int64_t>(one_number(zero_point, "zero_point"));
  return dequantize_per_tensor(input, one_number(scale, "scale"), zero, low, high, dtype, out_dtype);
}
Tensor dequantize_tensor2_body(const Call& call, const Tensor& input, const Tensor& scale,
                               const Tensor& zero_point, const Tensor& low, const Tensor& high, DType dtype,
                               OptDType out_dtype) {
  return dequantize_tensor_body(call, input, scale, zero_point, read_zero_point(low), read_zero_point(high),
                                dtype, out_dtype);
}

// --- a scale for each channel

Tensor along(const Tensor& t, int64_t dims, int64_t axis) {
  std::vector<int64_t> sizes(static_cast<size_t>(dims), 1);
  sizes[static_cast<size_t>(axis)] = t->sizes[0];
  return view(t, sizes);
}

// Scales and zero points as the loops read them; false where they compute in another type.
class Channels {
 public:
  Channels(const Tensor& x, int64_t axis, const Tensor& scales, const Tensor& zero_points)
      : channels_(x->sizes[axis]) {
    fit_ =
        scales.dtype() == DType::Float32 && scales.dim() == 1 && scales.numel() == channels_ &&
        (!zero_points.defined() || (is_integral(zero_points.dtype()) && zero_points.numel() == channels_)) &&
        x.is_cpu();
    if (!fit_) return;
    for (int64_t d = 0; d < axis; ++d) outer_ *= x->sizes[d];
    for (int64_t d = axis + 1; d < x.dim(); ++d) inner_ *= x->sizes[d];
    factors_ = floats(scales);
    zeros_ = zero_points.defined() ? floats(zero_points)
                                   : std::vector<float>(static_cast<size_t>(channels_), 0.0f);
  }
  bool fit() const { return fit_; }
  void invert() {
    for (float& factor : factors_) factor = 1 / factor;
  }
  cpu::AffinePlan plan() const { return {outer_, channels_, inner_, factors_.data(), zeros_.data()}; }

 private:
  static std::vector<float> floats(const Tensor& t) {
    const Tensor own = in_order(to_dtype(t, DType::Float32));
    const auto* data = static_cast<const float*>(own.data_ptr());
    return {data, data + own.numel()};
  }
  int64_t outer_ = 1, channels_, inner_ = 1;
  bool fit_;
  std::vector<float> factors_, zeros_;
};

Tensor quantize_channel_kernel(const Call&, const Tensor& input, const Tensor& scales,
                               const Tensor& zero_points, int64_t axis, int64_t low, int64_t high,
                               DType dtype) {
  const Tensor x = checked_floats(input);
  axis = checked_axis(x, axis);
  check_bounds(low, high, dtype);
  if (Channels channels(x, axis, scales, zero_points); channels.fit() && is_byte(dtype)) {
    channels.invert();
    const Tensor from = in_order(x), y = empty_tensor(x.sizes(), dtype);
    cpu::quantize_affine(channels.plan(), static_cast<const float*>(from.data_ptr()), dtype,
                         static_cast<float>(low), static_cast<float>(high), y.data_ptr());
    return y;
  }
  const Tensor inverse = reciprocal(along(scales, x.dim(), axis));
  const Tensor shifted = round(x * inverse, 0) + along(zero_points, x.dim(), axis);
  return to_dtype(bounded(shifted, low, high), dtype);
}

Tensor dequantize_channel_kernel(const Call&, const Tensor& input, const Tensor& scales,
                                 const Tensor& zero_points, int64_t axis, int64_t low, int64_t high,
                                 DType dtype, OptDType out_dtype) {
  check_stored(input, dtype);
  axis = checked_axis(input, axis);
  check_bounds(low, high, dtype);
  const DType result = out_dtype.value_or(DType::Float32);
  if (Channels channels(input, axis, scales, zero_points);
      channels.fit() && is_byte(dtype) && result == DType::Float32) {
    const Tensor from = in_order(input), y = empty_tensor(input.sizes(), result);
    cpu::dequantize_affine(channels.plan(), dtype, from.data_ptr(), static_cast<float*>(y.data_ptr()));
    return y;
  }
  const Tensor x = zero_points.defined() ? input - along(zero_points, input.dim(), axis) : input;
  return to_dtype(x * along(scales, input.dim(), axis), result);
}

// --- a scale for each token, which is a line along the last dimension, or for each group of columns

void check_tokens(const Tensor& input, const Tensor& scales, const Tensor& zero_points) {
  int64_t tokens = 1;
  for (int64_t d = 0; d + 1 < input.dim(); ++d) tokens *= input->sizes[d];
  RL_CHECK_AS(Assertion, tokens == scales.numel(), "num_tokens: ", tokens, " scales: ", describe(scales));
  RL_CHECK_AS(Assertion, tokens == zero_points.numel(), "num_tokens: ", tokens,
              " zero_points: ", describe(zero_points));
}
Tensor quantize_token_body(const Call&, const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                           int64_t low, int64_t high, DType dtype) {
  check_bounds(low, high, dtype);
  check_tokens(input, scales, zero_points);
  return to_dtype(bounded(round(input * reciprocal(scales) + zero_points, 0), low, high), dtype);
}
Tensor dequantize_token_body(const Call&, const Tensor& input, const Tensor& scales,
                             const Tensor& zero_points, int64_t, int64_t, DType, DType output_dtype) {
  return to_dtype((input - zero_points) * scales, output_dtype);
}

int64_t checked_group(const Tensor& input, const Tensor& scales, int64_t group, const char* name) {
  RL_CHECK_AS(Assertion, group > 1, "group_size must be > 1");
  RL_CHECK_AS(Assertion, input.dim() == 2, name, " must be 2-dimensional");
  const int64_t columns = input->sizes[1];
  if (group > columns && scales.dim() > 0 && scales->sizes[scales.dim() - 1] == 1) group = columns;
  RL_CHECK_AS(Assertion, group > 0 && columns % group == 0, name,
              ".shape[-1] must be divisible by group_size");
  return group;
}
Tensor quantize_group_body(const Call&, const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                           int64_t low, int64_t high, DType dtype, int64_t group) {
  group = checked_group(input, scales, group, "input");
  const Tensor x = reshape(input, IntList{-1, group}), factors = reshape(scales, IntList{-1, 1}),
               zeros = reshape(zero_points, IntList{-1, 1});
  RL_CHECK_AS(Assertion, !x.is_cpu() || !read_scalar(any(isnan(x))).to<bool>(),
              "to_quant must not contain NaNs");
  const Tensor y = bounded(round(x * reciprocal(factors) + zeros, 0), low, high);
  return reshape_as(to_dtype(y, dtype), input);
}
Tensor dequantize_group_body(const Call&, const Tensor& input, const Tensor& scales,
                             const Tensor& zero_points, int64_t, int64_t, DType, int64_t group,
                             DType output_dtype) {
  group = checked_group(input, scales, group, "w_int8");
  Tensor x = reshape(input, IntList{-1, group});
  if (zero_points.defined()) x = x - reshape(zero_points, IntList{-1, 1});
  return to_dtype(reshape_as(x * reshape(scales, IntList{-1, 1}), input), output_dtype);
}

// --- choosing scales

TwoTensors choose_kernel(const Tensor& input, int64_t low, int64_t high, double eps, DType dtype,
                         bool symmetric) {
  RL_CHECK_AS(Assertion, input.dtype() == DType::Float32 || is_reduced_float(input.dtype()),
              "Expecting input to have dtype torch.float32/16/b16, but got dtype: torch.",
              dtype_name(input.dtype()));
  RL_CHECK_AS(Assertion, bounds_of(dtype),
              "Expecting target dtype to be an integer of up to 32 bits or "
              "a float8, but got: torch.",
              dtype_name(dtype));
  RL_CHECK_AS(Assertion, low <= 0 && 0 <= high, "Used-specified quantization range must include 0.");
  RL_CHECK_AS(Assertion, low < high,
              "qmin must be strictly less than qmax for user-specified quantization "
              "range.");
  if (!input.is_cpu())
    return {empty_tensor(IntList{1}, DType::Float64, input.device()),
            empty_tensor(IntList{1}, DType::Int64, input.device())};
  const auto [least, most] = aminmax(to_dtype(input, DType::Float32), std::nullopt, false);
  const float down = std::min(read_scalar(least).to<float>(), 0.0f),
              up = std::max(read_scalar(most).to<float>(), 0.0f);
  const float smallest = static_cast<float>(eps), steps = static_cast<float>(high - low);
  float scale;
  int64_t zero = 0;
  if (symmetric) {
    scale = std::max(std::max(-down, up) / (steps / 2), smallest);
    if (dtype == DType::UInt8) zero = 128;
  } else {
    scale = std::max((up - down) / steps, smallest);
    zero = std::clamp<int64_t>(low - static_cast<int64_t>(std::nearbyint(down / scale)), low, high);
  }
  return {full(IntList{1}, Scalar(static_cast<double>(scale)), DType::Float64, std::nullopt, std::nullopt,
               std::nullopt),
          full(IntList{1}, Scalar(zero), DType::Int64, std::nullopt, std::nullopt, std::nullopt)};
}
TwoTensors choose_body(const Call&, const Tensor& input, int64_t low, int64_t high, double eps, DType dtype) {
  return choose_kernel(input, low, high, eps, dtype, false);
}
TwoTensors choose_symmetric_body(const Call&, const Tensor& input, int64_t low, int64_t high, double eps,
                                 DType dtype) {
  return choose_kernel(input, low, high, eps, dtype, true);
}

TwoTensors choose_token_body(const Call&, const Tensor& input, DType dtype) {
  Tensor scales = amax(abs(input), IntList{-1}, true);
  if (scales.dtype() == DType::Float16) scales = to_dtype(scales, DType::Float32);
  RL_CHECK(dtype == DType::Int8, "unsupported dtype in choose_qparams_per_token: torch.", dtype_name(dtype));
  scales = clamp_min(scales, number(1e-5)) / number(int64_t(127));
  return {scales, zeros_like(scales, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt)};
}
TwoTensors choose_token_asymmetric_body(const Call&, const Tensor& input, DType) {
  constexpr int64_t kLow = -128, kHigh = 127;
  const Tensor down = clamp_max(amin(input, IntList{-1}, true), number(int64_t(0))),
               up = clamp_min(amax(input, IntList{-1}, true), number(int64_t(0)));
  const Tensor scale = clamp_min((up - down) / number(static_cast<double>(kHigh - kLow)),
                                 number(static_cast<double>(std::numeric_limits<float>::epsilon())));
  const Tensor low = down / scale, high = up / scale;
  const Tensor errors = (low + number(kLow)) + (high + number(kHigh));
  const Tensor zero = ops::where(errors > number(int64_t(0)), number(kLow) - low, number(kHigh) - high);
  return {to_dtype(scale, DType::Float64), to_dtype(round(bounded(zero, kLow, kHigh), 0), DType::Int64)};
}

// --- what stays a float

Tensor fake_quant_kernel(const Call&, const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                         int64_t axis, int64_t low, int64_t high) {
  RL_CHECK_AS(Assertion, input.dtype() == DType::Float32,
              "Expecting input to have dtype torch.float32, but got dtype: torch.",
              dtype_name(input.dtype()));
  axis = checked_axis(input, axis);
  const Tensor factors = along(to_dtype(scales, DType::Float32), input.dim(), axis),
               zeros = along(to_dtype(zero_points, DType::Int32), input.dim(), axis);
  const Tensor steps = round(input * reciprocal(factors), 0) + zeros;
  return (bounded(steps, low, high) - zeros) * factors;
}

Tensor convert_body(const Call&, const Tensor& input, DType dtype) { return to_dtype(input, dtype); }

constexpr const char* kStored = "one of its sides is integers";
constexpr const char *kTo = "Floats as integers: clamp(round(input / scale) + zero_point).",
                     *kFrom = "Floats of integers: (input - zero_point) * scale.",
                     *kChoose = "The scale and zero point whose integers cover the input's range.";
void settle(OpBuilder r, const char* doc) { r.internal().not_differentiable(kStored).doc(doc); }

}  // namespace

void register_quantized_decomposed_operators(Table& t) {
#define RL_BOUNDS "int quant_min, int quant_max, ScalarType dtype"
#define RL_TENSOR_BOUNDS "Tensor quant_min, Tensor quant_max, ScalarType dtype"
#define RL_OUT_DTYPE ", *, ScalarType? out_dtype=None) -> Tensor"
  settle(
      t.op(quantize_per_tensor,
           "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, " RL_BOUNDS
           ") -> Tensor",
           quantize_kernel),
      kTo);
  settle(t.op(dequantize_per_tensor,
              "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int "
              "zero_point, " RL_BOUNDS RL_OUT_DTYPE,
              dequantize_kernel),
         kFrom);
  settle(t.composite("quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor "
                     "zero_point, " RL_BOUNDS ") -> Tensor",
                     quantize_tensor_body),
         kTo);
  settle(t.composite("quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor "
                     "zero_point, " RL_TENSOR_BOUNDS ") -> Tensor",
                     quantize_tensor2_body),
         kTo);
  settle(t.composite("quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor "
                     "zero_point, " RL_BOUNDS RL_OUT_DTYPE,
                     dequantize_tensor_body),
         kFrom);
  settle(t.composite("quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor "
                     "zero_point, " RL_TENSOR_BOUNDS RL_OUT_DTYPE,
                     dequantize_tensor2_body),
         kFrom);
  settle(t.op(quantize_per_channel,
              "quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, "
              "int axis, " RL_BOUNDS ") -> Tensor",
              quantize_channel_kernel),
         kTo);
  settle(t.op(dequantize_per_channel,
              "quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? "
              "zero_points, int axis, " RL_BOUNDS RL_OUT_DTYPE,
              dequantize_channel_kernel),
         kFrom);
}

// Those that graphs of other granularity and training call: the small runtime has none of them.
void register_quantized_choice_operators(Table& t) {
  settle(t.composite("quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor "
                     "zero_points, " RL_BOUNDS ") -> Tensor",
                     quantize_token_body),
         kTo);
  settle(t.composite("quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor "
                     "zero_points, " RL_BOUNDS ", ScalarType output_dtype) -> Tensor",
                     dequantize_token_body),
         kFrom);
  settle(t.composite("quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor "
                     "zero_points, " RL_BOUNDS ", int group_size) -> Tensor",
                     quantize_group_body),
         kTo);
  settle(t.composite("quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, "
                     "Tensor? zero_points, " RL_BOUNDS ", int group_size, ScalarType output_dtype) -> Tensor",
                     dequantize_group_body),
         kFrom);
  settle(t.composite("quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int "
                     "quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
                     choose_body),
         kChoose);
  settle(t.composite("quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int quant_min, int "
                     "quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
                     choose_symmetric_body),
         kChoose);
  settle(t.composite("quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> "
                     "(Tensor, Tensor)",
                     choose_token_body),
         kChoose);
  for (const char* schema : {"quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, "
                             "ScalarType dtype) -> (Tensor, Tensor)",
                             "quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, "
                             "ScalarType dtype) -> (Tensor, Tensor)"})
    settle(t.composite(schema, choose_token_asymmetric_body), kChoose);
  t.op(fake_quant_per_channel,
       "quantized_decomposed::fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int "
       "axis, int quant_min, int quant_max) -> Tensor",
       fake_quant_kernel)
      .internal()
      .derivative([](Grad g, In<0> x, In<1> scales, In<2> zero_points, Attr<3, int64_t> axis,
                     Attr<4, int64_t> low, Attr<5, int64_t> high) {
        const int64_t at = checked_axis(x, axis);
        const Tensor steps =
            round(x * reciprocal(along(scales, x.dim(), at)), 0) + along(zero_points, x.dim(), at);
        return Grads{g * logical_and(steps >= number(*low), steps <= number(*high)), Tensor(), Tensor()};
      })
      .doc("Floats rounded to those that integers with a scale for each channel can hold.");
  settle(t.composite(
             "quantized_decomposed::convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor",
             convert_body),
         "The input in another dtype, kept apart from what surrounds it.");
}

}  // namespace rushlight
