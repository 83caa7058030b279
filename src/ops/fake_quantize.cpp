#include "ops/fake_quantize.h"

#include <cmath>
#include <limits>

#include "cpu/fake_quantize.h"
#include "ops/copy.h"
#include "ops/dense.h"
#include "ops/factory.h"
#include "ops/norm.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using TwoTensors = std::tuple<Tensor, Tensor>;
using cpu::FakeQuantization;
using cpu::FakeRounding;

constexpr const char* kBounds = "`quant_min` should be less than or         equal to `quant_max`.";

// --- checks and settings

void check_bounds(int64_t lowest, int64_t highest) { RL_CHECK(lowest <= highest, kBounds); }
void check_zero(int64_t zero, int64_t lowest, int64_t highest) {
  RL_CHECK(zero >= lowest && zero <= highest, "`zero_point` must be between `quant_min` and `quant_max`.");
}
void check_type(const Tensor& self, std::string_view kernel) {
  if (!is_floating(self.dtype()) || is_float8(self.dtype())) refuse_dtype(kernel, self.dtype());
}
constexpr std::string_view kTensorKernel = "fake_quantize_tensor_cachemask_kernel_type_handling",
                           kChannelKernel = "fake_quantize_channel_cachemask_cpu_type_handling";

double number(const Tensor& t) {
  RL_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  return read_scalar(t).to_double();
}
double first(const Tensor& t) { return number(select(t, 0, 0)); }

Tensor floats(const Tensor& t) { return contiguous(to_dtype(t, DType::Float32), MemoryFormat::Contiguous); }
// Memory order is the order of elements in `x`: each channel is a run of equal length, or every n-th.
void describe_channels(FakeQuantization& f, const Tensor& x, int64_t axis) {
  f.channels = x->sizes[axis];
  f.inner = f.channels > 1 ? x->strides[axis] : 1;
}

// --- forward

TwoTensors shapes_alone(const Tensor& self) {
  return {empty_like_tensor(self, self.dtype()), empty_like_tensor(self, DType::Bool)};
}

// `f` lacks what the tensor tells.
TwoTensors rounded(FakeQuantization f, const Tensor& self, OptInt axis) {
  const Tensor x = self.is_cpu() ? dense(self) : self;
  const Tensor y = empty_like_tensor(x, x.dtype()), mask = empty_like_tensor(x, DType::Bool);
  if (!self.is_cpu() || self.numel() == 0) return {y, mask};
  if (axis) describe_channels(f, x, *axis);
  f.dtype = x.dtype();
  f.n = x.numel();
  f.x = x.data_ptr(), f.y = y.data_ptr(), f.inside = mask.data<bool>();
  cpu::fake_quantize(f);
  return {y, mask};
}

TwoTensors rounded_alike(const Tensor& self, double scale, int64_t zero, int64_t lowest, int64_t highest) {
  check_bounds(lowest, highest);
  check_type(self, kTensorKernel);
  const float settings[] = {static_cast<float>(scale), static_cast<float>(zero)};
  FakeQuantization f;
  f.scale = &settings[0], f.zero_point = &settings[1];
  f.lowest = lowest, f.highest = highest;
  return rounded(f, self, std::nullopt);
}

TwoTensors per_tensor_kernel(const Call&, const Tensor& self, double scale, int64_t zero, int64_t lowest,
                             int64_t highest) {
  check_bounds(lowest, highest);
  check_zero(zero, lowest, highest);
  return rounded_alike(self, scale, zero, lowest, highest);
}

TwoTensors tensor_qparams_kernel(const Call&, const Tensor& self, const Tensor& scale, const Tensor& zero,
                                 const Tensor& enabled, int64_t lowest, int64_t highest) {
  check_bounds(lowest, highest);
  if (self.device().is_meta()) return shapes_alone(self);
  if (number(enabled) == 0)
    return {clone(self, MemoryFormat::Preserve), to_dtype(ones_like(self), DType::Bool)};
  return rounded_alike(self, number(scale), static_cast<int64_t>(number(zero)), lowest, highest);
}

TwoTensors per_channel_kernel(const Call&, const Tensor& self, const Tensor& scale, const Tensor& zero,
                              int64_t axis, int64_t lowest, int64_t highest) {
  RL_CHECK(scale.dtype() == DType::Float32 || scale.dtype() == DType::BFloat16,
           "Scale must be Float or BFloat16, found ", legacy_name(scale.dtype()));
  const bool whole = zero.dtype() == DType::Int32;
  RL_CHECK(whole || zero.dtype() == DType::Float32 || zero.dtype() == DType::Float16,
           "Zero-point must be Int32, Float or Half, found ", legacy_name(zero.dtype()));
  RL_CHECK(scale.dim() == 1, "scale should be a 1-D tensor");
  RL_CHECK(zero.dim() == 1, "zero point should be a 1-D tensor");
  RL_CHECK(scale.numel() == zero.numel(), "scale and zero-point need to have the same dimensions");
  RL_CHECK(scale.numel() == self.size(axis),
           "dimensions of scale and zero-point are not consistent with input tensor");
  check_bounds(lowest, highest);
  if (whole && zero.is_cpu() && zero.numel() > 0) {
    check_zero(read_scalar(min(zero)).to_int(), lowest, highest);
    check_zero(read_scalar(max(zero)).to_int(), lowest, highest);
  }
  RL_CHECK(axis >= 0 && axis <= self.dim(), "`axis` must be between 0 and number of dimensions of input");
  check_type(self, kChannelKernel);
  const Tensor scales = floats(scale), zeros = floats(zero);
  FakeQuantization f;
  f.rounding = whole ? FakeRounding::Wrap : FakeRounding::SumFirst;
  if (self.is_cpu() && self.numel() > 0) f.scale = scales.data<float>(), f.zero_point = zeros.data<float>();
  f.lowest = lowest, f.highest = highest;
  return rounded(f, self, axis);
}

Tensor mask_backward_kernel(const Call&, const Tensor& grad, const Tensor& mask) {
  RL_CHECK(mask.dtype() == DType::Bool, "`mask` must be of type Bool, found ", legacy_name(mask.dtype()));
  RL_CHECK(mask.numel() == grad.numel(), "`mask` and `dY` are not the same size: `mask` is size ",
           mask.numel(), " and `dY` is size ", grad.numel());
  return mul(grad, mask);
}

// --- as programs call it

// There is a derivative by the numbers alone: learned settings have operators of their own.
void refuse_gradient(const Tensor& t, const char* op, const char* parameter) {
  RL_CHECK(!t.requires_grad_flag(), "The function '", op,
           "' is not differentiable with respect to argument '", parameter,
           "'. This input cannot have requires_grad True.");
}

Tensor per_tensor_body(const Call&, const Tensor& self, double scale, int64_t zero, int64_t lowest,
                       int64_t highest) {
  return std::get<0>(fake_quantize_per_tensor_affine_cachemask(self, scale, zero, lowest, highest));
}
Tensor tensor_qparams_body(const Call&, const Tensor& self, const Tensor& scale, const Tensor& zero,
                           int64_t lowest, int64_t highest) {
  constexpr const char* kName = "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams";
  refuse_gradient(scale, kName, "scale");
  refuse_gradient(zero, kName, "zero_point");
  const Tensor enabled = ones(IntList{1}, DType::Int64, std::nullopt, self.device());
  return std::get<0>(
      fake_quantize_per_tensor_affine_cachemask_tensor_qparams(self, scale, zero, enabled, lowest, highest));
}
Tensor per_channel_body(const Call&, const Tensor& self, const Tensor& scale, const Tensor& zero,
                        int64_t axis, int64_t lowest, int64_t highest) {
  constexpr const char* kName = "fake_quantize_per_channel_affine_cachemask";
  refuse_gradient(scale, kName, "scale");
  refuse_gradient(zero, kName, "zero_point");
  return std::get<0>(fake_quantize_per_channel_affine_cachemask(self, scale, zero, axis, lowest, highest));
}

// --- learned settings

float clamped(double zero, int64_t lowest, int64_t highest) {
  return std::fmin(std::fmax(static_cast<float>(zero), static_cast<float>(lowest)),
                   static_cast<float>(highest));
}
Tensor learnable_per_tensor_kernel(const Call&, const Tensor& self, const Tensor& scale, const Tensor& zero,
                                   int64_t lowest, int64_t highest, double) {
  if (self.device().is_meta()) return empty_like_tensor(self, self.dtype());
  const auto point =
      static_cast<int64_t>(clamped(std::nearbyint(static_cast<float>(first(zero))), lowest, highest));
  return std::get<0>(rounded_alike(self, static_cast<float>(first(scale)), point, lowest, highest));
}
// Integers between the bounds, rounded half to even or half up.
Tensor whole_zeros(const Tensor& zero, int64_t lowest, int64_t highest, bool up) {
  const Tensor z = floats(zero);
  return to_dtype(clamp(up ? floor(z + Scalar(0.5)) : round(z, 0), Scalar(lowest), Scalar(highest)),
                  DType::Int32);
}
Tensor learnable_per_channel_kernel(const Call& call, const Tensor& self, const Tensor& scale,
                                    const Tensor& zero, int64_t axis, int64_t lowest, int64_t highest,
                                    double) {
  return std::get<0>(per_channel_kernel(call, self, scale, whole_zeros(zero, lowest, highest, false), axis,
                                        lowest, highest));
}

struct LearnedGradients {
  Tensor x, scale, zero_point;  // the last two by element
};
LearnedGradients learned_gradients(const Tensor& grad, const Tensor& self, const float* scale,
                                   const float* zero, OptInt axis, int64_t lowest, int64_t highest,
                                   double factor) {
  RL_CHECK(self.numel() == grad.numel(), "`X` and `dY` are not the same size");
  const Tensor x = dense(self);
  LearnedGradients r{empty_like_tensor(x, x.dtype()), empty_like_tensor(x, x.dtype()),
                     empty_like_tensor(x, x.dtype())};
  Tensor dy = to_dtype(grad, x.dtype());
  if (dy.sizes() != x.sizes() || dy.strides() != x.strides()) {
    dy = empty_like_tensor(x, x.dtype());
    copy_(dy, grad, false);
  }
  cpu::FakeQuantizationGradient g;
  FakeQuantization& f = g.forward;
  f.dtype = x.dtype();
  f.n = x.numel();
  f.scale = scale, f.zero_point = zero;
  f.lowest = lowest, f.highest = highest;
  f.x = x.data_ptr();
  if (axis) describe_channels(f, x, *axis);
  g.dy = dy.data_ptr();
  g.dx = r.x.data_ptr(), g.dscale = r.scale.data_ptr(), g.dzero_point = r.zero_point.data_ptr();
  g.factor = static_cast<float>(factor);
  cpu::fake_quantize_backward(g);
  return r;
}

ThreeTensors learnable_per_tensor_backward_kernel(const Call&, const Tensor& grad, const Tensor& self,
                                                  const Tensor& scale, const Tensor& zero, int64_t lowest,
                                                  int64_t highest, double factor) {
  RL_CHECK(lowest <= 0 && highest >= 0,
           "`quant_min` should be less than or         equal to `quant_max`, and the quantization range "
           "should include 0.");
  if (self.numel() == 0) return {self, scale, zero};
  if (!self.is_cpu()) return {empty_like(self), empty_like(scale), empty_like(zero)};
  const auto value = static_cast<float>(first(scale)),
             point = std::trunc(clamped(static_cast<float>(first(zero)) + 0.5f, lowest, highest));
  const LearnedGradients r =
      learned_gradients(grad, self, &value, &point, std::nullopt, lowest, highest, factor);
  return {r.x, unsqueeze(sum(r.scale, std::nullopt), 0), unsqueeze(sum(r.zero_point, std::nullopt), 0)};
}

ThreeTensors learnable_per_channel_backward_kernel(const Call&, const Tensor& grad, const Tensor& self,
                                                   const Tensor& scale, const Tensor& zero, int64_t axis,
                                                   int64_t lowest, int64_t highest, double factor) {
  RL_CHECK(lowest <= 0 && highest >= 0, "Expecting `quant_min` <= 0 and `quant_max` >= 0");
  RL_CHECK(scale.dim() == 1, "scale should be a 1-D tensor");
  RL_CHECK(zero.dim() == 1, "zero point should be a 1-D tensor");
  RL_CHECK(scale.numel() == zero.numel(), "scale and zero-point need to have the same dimensions");
  RL_CHECK(scale.numel() == self.size(axis),
           "dimensions of scale and zero-point are not consistent with input tensor");
  const int64_t at = wrap_dim(axis, self.dim());
  if (self.numel() == 0) return {self, scale, zero};
  if (!self.is_cpu()) return {empty_like(self), empty_like(scale), empty_like(zero)};
  const Tensor scales = floats(scale), zeros = floats(whole_zeros(zero, lowest, highest, true));
  const LearnedGradients r =
      learned_gradients(grad, self, scales.data<float>(), zeros.data<float>(), at, lowest, highest, factor);
  if (self.dim() == 1) return {r.x, r.scale, r.zero_point};
  Dims others;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != at) others.push_back(d);
  const OptIntList dims(others);
  return {r.x, sum_dim(r.scale, dims, false, std::nullopt), sum_dim(r.zero_point, dims, false, std::nullopt)};
}

// --- observed and rounded in one

void check_float(const Tensor& t) {
  RL_CHECK(t.dtype() == DType::Float32, "expected scalar type Float but found ", legacy_name(t.dtype()));
}

void follow(const Tensor& running, const Tensor& current, float rate) {
  check_float(current);
  check_float(running);
  RL_CHECK(running.numel() == current.numel(), "fused_moving_avg_obs_fake_quant: expected ", current.numel(),
           " running values, but got ", describe(running));
  const Tensor kept = clone(running, MemoryFormat::Contiguous),
               now = contiguous(current, MemoryFormat::Contiguous);
  float* old = kept.data<float>();
  const float* seen = now.data<float>();
  for (int64_t i = 0; i < kept.numel(); ++i)
    old[i] = std::isinf(old[i]) ? seen[i] : old[i] + rate * (seen[i] - old[i]);
  copy_(running, kept, false);
}

// State without elements becomes that of rows which nobody has seen.
void begin_rows(const Tensor& self, const Tensor& low, const Tensor& high, const Tensor& scale,
                const Tensor& zero) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const IntList rows = self.sizes().slice(0, 1);
  fill_(resize_(low, rows, std::nullopt), wrapped_number(Scalar(kInfinity)));
  fill_(resize_(high, rows, std::nullopt), wrapped_number(Scalar(-kInfinity)));
  fill_(resize_(scale, rows, std::nullopt), wrapped_number(Scalar(1)));
  zero_(resize_(zero, rows, std::nullopt));
}

void choose(const Tensor& low, const Tensor& high, const Tensor& scale, const Tensor& zero, int64_t lowest,
            int64_t highest, bool by_row, bool symmetric) {
  check_float(low);
  check_float(high);
  const int64_t n = by_row ? low.numel() : 1;
  RL_CHECK(low.numel() > 0 && high.numel() >= n,
           "fused_moving_avg_obs_fake_quant: running_min and running_max hold no values");
  const Tensor scales = empty_tensor(IntList{n}, DType::Float32),
               zeros = empty_tensor(IntList{n}, DType::Int32), least = floats(low), most = floats(high);
  for (int64_t i = 0; i < n; ++i) {
    const cpu::ScaleAndZero chosen =
        cpu::choose_quantization(least.data<float>()[i], most.data<float>()[i], static_cast<int>(lowest),
                                 static_cast<int>(highest), symmetric);
    scales.data<float>()[i] = static_cast<float>(chosen.scale);
    zeros.data<int32_t>()[i] = chosen.zero_point;
  }
  copy_(by_row ? scale : select(scale, 0, 0), by_row ? scales : select(scales, 0, 0), false);
  copy_(by_row ? zero : select(zero, 0, 0), by_row ? zeros : select(zeros, 0, 0), false);
}

// Gives whether the numbers are to be rounded.
Tensor observe_kernel(const Call& call, const Tensor& self, const Tensor& observer_on,
                      const Tensor& fake_quant_on, const Tensor& low, const Tensor& high, const Tensor& scale,
                      const Tensor& zero, double rate, int64_t lowest, int64_t highest, bool by_row,
                      bool symmetric) {
  const Tensor enabled = empty_tensor(IntList{1}, DType::Int64, self.device());
  if (self.device().is_meta()) return enabled;
  for (const Tensor& t : {low, high, scale, zero}) t.check_writable(call.op.name());
  const bool observing = number(observer_on) != 0;
  enabled.data<int64_t>()[0] = number(fake_quant_on) != 0;
  if (by_row && low.numel() == 0) begin_rows(self, low, high, scale, zero);
  if (observing) {
    const auto [least, most] =
        by_row ? aminmax(flatten(self, 1, -1), 1, false) : aminmax(self, std::nullopt, false);
    follow(low, least, static_cast<float>(rate));
    follow(high, most, static_cast<float>(rate));
  }
  if (enabled.data<int64_t>()[0]) choose(low, high, scale, zero, lowest, highest, by_row, symmetric);
  return enabled;
}

TwoTensors moving_average_helper_body(const Call&, const Tensor& self, const Tensor& observer_on,
                                      const Tensor& fake_quant_on, const Tensor& low, const Tensor& high,
                                      const Tensor& scale, const Tensor& zero, double rate, int64_t lowest,
                                      int64_t highest, int64_t axis, bool by_row, bool symmetric) {
  RL_CHECK(axis < self.dim(), "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()");
  RL_CHECK(!by_row || axis == 0,
           "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0");
  constexpr const char* kName = "_fused_moving_avg_obs_fq_helper";
  refuse_gradient(low, kName, "running_min");
  refuse_gradient(high, kName, "running_max");
  refuse_gradient(scale, kName, "scale");
  const Tensor enabled = observe_and_choose(self, observer_on, fake_quant_on, low, high, scale, zero, rate,
                                            lowest, highest, by_row, symmetric);
  if (!self.device().is_meta() && number(enabled) == 0)
    return {clone(self, MemoryFormat::Preserve), to_dtype(ones_like(self), DType::Bool)};
  if (!by_row)
    return fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
        self, select(scale, 0, 0), select(zero, 0, 0), enabled, lowest, highest);
  return fake_quantize_per_channel_affine_cachemask(self, scale, zero, axis, lowest, highest);
}

Tensor moving_average_body(const Call&, const Tensor& self, const Tensor& observer_on,
                           const Tensor& fake_quant_on, const Tensor& low, const Tensor& high,
                           const Tensor& scale, const Tensor& zero, double rate, int64_t lowest,
                           int64_t highest, int64_t axis, bool by_row, bool symmetric) {
  if (self.numel() == 0) return clone(self, std::nullopt);
  return std::get<0>(fused_moving_avg_obs_fq_helper(self, observer_on, fake_quant_on, low, high, scale, zero,
                                                    rate, lowest, highest, axis, by_row, symmetric));
}

// Without writes, as programs are exported.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> moving_average_functional_body(
    const Call&, const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on,
    const Tensor& low, const Tensor& high, const Tensor& scale, const Tensor& zero, double rate,
    int64_t lowest, int64_t highest, int64_t axis, bool by_row, bool symmetric) {
  const Tensor new_low = clone(low, std::nullopt), new_high = clone(high, std::nullopt),
               new_scale = clone(scale, std::nullopt), new_zero = clone(zero, std::nullopt);
  auto [output, mask] =
      fused_moving_avg_obs_fq_helper(self, observer_on, fake_quant_on, new_low, new_high, new_scale, new_zero,
                                     rate, lowest, highest, axis, by_row, symmetric);
  return {output, mask, new_low, new_high, new_scale, new_zero};
}

// A scale and a zero point for the elements as they are.
Tensor choose_kernel(const Call&, const Tensor& self, bool reduced) {
  const Tensor x = to_dtype(self, DType::Float32);
  const double least = number(min(x)), most = number(max(x));
  RL_CHECK(least <= most, "In ChooseQuantizationParams, min should be less than or equal to max");
  const cpu::ScaleAndZero chosen =
      cpu::choose_quantization(static_cast<float>(least), static_cast<float>(most), 0, reduced ? 127 : 255);
  const Tensor both = empty_tensor(IntList{2}, DType::Float64);
  both.data<double>()[0] = chosen.scale, both.data<double>()[1] = chosen.zero_point;
  return both;
}

constexpr const char* kByMask = "it is a derivative, and PyTorch has none of it";

}  // namespace

static void register_learnable_operators(Table& t) {
  t.op(fake_quantize_learnable_per_tensor_affine,
       "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int "
       "quant_min, int quant_max, float grad_factor=1.) -> Tensor",
       learnable_per_tensor_kernel)
      .function_only()
      .derivative([](Grad g, In<0> x, In<1> scale, In<2> zero, Attr<3, int64_t> lowest,
                     Attr<4, int64_t> highest, Attr<5, double> factor) {
        auto [dx, dscale, dzero] =
            fake_quantize_learnable_per_tensor_affine_backward(g, x, scale, zero, lowest, highest, factor);
        return Grads{dx, dscale, dzero};
      })
      .doc("self rounded as integers with a scale and a zero point would be, which are learned too.");
  t.op(fake_quantize_learnable_per_channel_affine,
       "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, "
       "int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
       learnable_per_channel_kernel)
      .function_only()
      .derivative([](Grad g, In<0> x, In<1> scale, In<2> zero, Attr<3, int64_t> axis, Attr<4, int64_t> lowest,
                     Attr<5, int64_t> highest, Attr<6, double> factor) {
        auto [dx, dscale, dzero] = fake_quantize_learnable_per_channel_affine_backward(
            g, x, scale, zero, axis, lowest, highest, factor);
        return Grads{dx, dscale, dzero};
      })
      .doc("Likewise, with a scale and a zero point for each channel, which are learned too.");
  t.op(fake_quantize_learnable_per_tensor_affine_backward,
       "_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor "
       "zero_point, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
       learnable_per_tensor_backward_kernel)
      .internal()
      .family(Family::Gradient)
      .not_differentiable(kByMask)
      .doc("The gradients of _fake_quantize_learnable_per_tensor_affine.");
  t.op(fake_quantize_learnable_per_channel_affine_backward,
       "_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor "
       "zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, "
       "Tensor)",
       learnable_per_channel_backward_kernel)
      .internal()
      .family(Family::Gradient)
      .not_differentiable(kByMask)
      .doc("The gradients of _fake_quantize_learnable_per_channel_affine.");
}

static void register_observing_operators(Table& t) {
  t.op(observe_and_choose,
       "_observe_and_choose_quantization(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) "
       "running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, "
       "int quant_min, int quant_max, bool by_row, bool symmetric) -> Tensor",
       observe_kernel)
      .absent_in_pytorch()
      .internal()
      .random()
      .not_differentiable("it sees extremes alone, as numbers")
      .doc("Follows the extremes of self and chooses scale and zero point by them; whether to round.");
  t.composite(fused_moving_avg_obs_fq_helper,
              "_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, "
              "Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, "
              "float averaging_const, int quant_min, int quant_max, int ch_axis, bool "
              "per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor mask)",
              moving_average_helper_body)
      .function_only()
      .random()
      .one_node()
      .node("FusedMovingAvgObsFqHelperBackward0")
      .doc("fused_moving_avg_obs_fake_quant, and where the integers were between the bounds.");
  t.composite(
       "fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) "
       "running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, "
       "int quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool "
       "symmetric_quant=False) -> Tensor",
       moving_average_body)
      .function_only()
      .random()
      .doc(
          "Follows the extremes of self, chooses scale and zero point by them, and rounds self as integers "
          "would be. observer_on and fake_quant_on tell which of these is done.");
  t.composite(
       "_fused_moving_avg_obs_fq_helper_functional(Tensor self, Tensor observer_on, Tensor fake_quant_on, "
       "Tensor running_min, Tensor running_max, Tensor scale, Tensor zero_point, float averaging_const, int "
       "quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> "
       "(Tensor output, Tensor mask, Tensor running_min_out, Tensor running_max_out, Tensor scale_out, "
       "Tensor zero_point_out)",
       moving_average_functional_body)
      .internal()
      .doc("_fused_moving_avg_obs_fq_helper, with new tensors in place of writes.");
}

void register_fake_quantize_operators(Table& t) {
  t.op(fake_quantize_per_tensor_affine_cachemask,
       "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, "
       "int quant_max) -> (Tensor output, Tensor mask)",
       per_tensor_kernel)
      .internal()
      .batching(Batching::Pointwise)
      .derivative(
          [](Grad g, Out<1> mask) { return fake_quantize_per_tensor_affine_cachemask_backward(g, mask); })
      .doc("fake_quantize_per_tensor_affine, and where the integers were between the bounds.");
  t.op(fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
       "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor "
       "zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
       tensor_qparams_kernel)
      .function_only()
      .derivative(
          [](Grad g, Out<1> mask) { return fake_quantize_per_tensor_affine_cachemask_backward(g, mask); })
      .doc("Likewise, with a scale and a zero point in tensors, where fake_quant_enabled is not zero.");
  t.op(fake_quantize_per_channel_affine_cachemask,
       "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, "
       "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
       per_channel_kernel)
      .internal()
      .derivative(
          [](Grad g, Out<1> mask) { return fake_quantize_per_channel_affine_cachemask_backward(g, mask); })
      .doc("fake_quantize_per_channel_affine, and where the integers were between the bounds.");
  t.op(fake_quantize_per_tensor_affine_cachemask_backward,
       "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
       mask_backward_kernel)
      .internal()
      .on_devices()
      .derivative([](Grad g, In<1> mask) { return Grads{mul(g, mask), Tensor()}; })
      .doc("The gradient where the mask is true, else zero.");
  t.op(fake_quantize_per_channel_affine_cachemask_backward,
       "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
       mask_backward_kernel)
      .internal()
      .on_devices()
      .derivative([](Grad g, In<1> mask) { return Grads{mul(g, mask), Tensor()}; })
      .doc("The gradient where the mask is true, else zero.");
  t.composite(
       "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int "
       "quant_max) -> Tensor",
       per_tensor_body)
      .function_only()
      .doc(
          "(clamp(round(self / scale) + zero_point, quant_min, quant_max) - zero_point) * scale, and the "
          "gradient passes where nothing was clamped.");
  t.composite(
       "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int "
       "quant_min, int quant_max) -> Tensor",
       tensor_qparams_body)
      .function_only()
      .doc("Likewise, with a scale and a zero point in tensors of one element.");
  t.composite(
       "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int "
       "quant_min, int quant_max) -> Tensor",
       per_channel_body)
      .function_only()
      .doc("fake_quantize_per_tensor_affine with a scale and a zero point for each index of dimension axis.");
  t.op(quantization_for, "_quantization_for(Tensor self, bool reduce_range=False) -> Tensor", choose_kernel)
      .absent_in_pytorch()
      .internal()
      .no_meta("scale and zero point depend on values")
      .not_differentiable("it sees extremes alone, as numbers")
      .doc("The scale and zero point with which eight bits, or seven, cover the elements.");
  register_learnable_operators(t);
  register_observing_operators(t);
}

}  // namespace rushlight
