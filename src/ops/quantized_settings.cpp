#include "ops/quantized_settings.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/register.h"

namespace rushlight {

using namespace ops;

namespace {

struct Range {
  float least = 0, most = 0;
};

Range range_of(const float* x, int64_t n) {
  return parallel_reduce(
      0, n, kGrainSize, Range{},
      [&](int64_t begin, int64_t end) {
        Range r;
        cpu::byte_kernels().range(x + begin, end - begin, &r.least, &r.most);
        return r;
      },
      [](Range a, Range b) { return Range{std::min(a.least, b.least), std::max(a.most, b.most)}; });
}

std::vector<float> floats_of(const Tensor& t) {
  const Tensor own = contiguous(to_dtype(t, DType::Float32), MemoryFormat::Contiguous);
  const auto* data = static_cast<const float*>(own.data_ptr());
  return {data, data + own.numel()};
}

int64_t lowest_of(DType dtype) { return dtype == DType::Int8 ? -128 : 0; }
int64_t highest_of(DType dtype) { return dtype == DType::Int8 ? 127 : 255; }

}  // namespace

cpu::ScaleAndZero choose_quantization_of(const float* x, int64_t n, int lowest, int highest,
                                         bool reduce_range) {
  const Range r = range_of(x, n);
  RL_CHECK(std::isfinite(r.least) && std::isfinite(r.most),
           "quantization by range: the input holds an infinity, so that no scale covers it; bound it first");
  const int part = reduce_range ? 2 : 1;
  return cpu::choose_quantization(r.least, r.most, lowest / part, highest / part);
}

double read_scale(const Tensor& t) {
  RL_CHECK(t.numel() == 1, "a scale must be one number, got ", describe(t));
  return read_scalar(t).to_double();
}
int64_t read_zero_point(const Tensor& t) {
  RL_CHECK(t.numel() == 1, "a zero point must be one number, got ", describe(t));
  return read_scalar(t).to_int();
}

void check_quantized_input(const char* who, const Tensor& x, double scale) {
  RL_CHECK(x.dtype() == DType::UInt8 || x.dtype() == DType::Int8, who,
           ": the input must be uint8 or int8, got ", describe(x));
  RL_CHECK(std::isfinite(scale) && scale > 0, who, ": the input's scale must be a positive number, got ",
           scale);
}

WeightSettings::WeightSettings(int64_t n, const Tensor& scales, const Tensor& zero_points,
                               const Tensor& bias) {
  const auto fits = [&](const Tensor& t) { return t.numel() == 1 || t.numel() == n; };
  RL_CHECK(scales.defined() && fits(scales), "a quantized weight of ", n,
           " rows needs one scale or as many, got ", describe(scales));
  scales_ = floats_of(scales);
  scales_.resize(static_cast<size_t>(n), scales_.empty() ? 1 : scales_[0]);
  if (zero_points.defined() && zero_points.numel() > 0) {
    RL_CHECK(fits(zero_points), "a quantized weight of ", n, " rows needs one zero point or as many, got ",
             describe(zero_points));
    const Tensor own = contiguous(to_dtype(zero_points, DType::Int32), MemoryFormat::Contiguous);
    const auto* data = static_cast<const int32_t*>(own.data_ptr());
    if (std::any_of(data, data + own.numel(), [](int32_t z) { return z != 0; })) {
      zero_points_.assign(data, data + own.numel());
      zero_points_.resize(static_cast<size_t>(n), zero_points_[0]);
    }
  }
  if (bias.defined()) {
    RL_CHECK(bias.numel() == n, "bias should be a vector (1D Tensor) with ", n, " elements, got ",
             describe(bias));
    bias_ = floats_of(bias);
  }
}

void QuantizedOutput::add(const Tensor& tensor, double tensor_scale, int64_t tensor_zero,
                          std::string_view how, double factor) {
  if (how == "none") return;
  RL_CHECK(how == "add" || how == "sum", "a quantized product can be followed by add or sum, got '", how,
           "'");
  RL_CHECK(tensor.defined(), "a quantized product that is followed by ", how, " needs the other tensor");
  other = tensor, other_scale = tensor_scale, other_zero = tensor_zero, alpha = factor;
  into_other = how == "sum";
}

bool QuantizedOutput::fused() const {
  if (other.defined()) return false;
  const bool simple = activation == "none" || activation == "relu";
  return simple && (is_quantized() || dtype == DType::Float32);
}

namespace {

Tensor activated(const Tensor& y, const QuantizedOutput& out) {
  const std::string_view name = out.activation;
  const auto argument = [&](size_t i) {
    RL_CHECK(out.arguments.size() > i, "a quantized product followed by ", name, " needs ", i + 1,
             " arguments, got ", out.arguments.size());
    return out.arguments[i];
  };
  if (name == "none") return y;
  if (name == "relu") return relu(y);
  if (name == "leaky_relu") return leaky_relu(y, argument(0));
  if (name == "hardtanh") return hardtanh(y, argument(0), argument(1));
  if (name == "hardswish") return hardswish(y);
  if (name == "hardsigmoid") return hardsigmoid(y);
  if (name == "sigmoid") return sigmoid(y);
  if (name == "swish") return silu(y);
  if (name == "tanh") return tanh(y);
  if (name == "gelu") return gelu(y, out.algorithm);
  RL_FAIL(
      "a quantized product can be followed by none, relu, leaky_relu, hardtanh, hardswish, hardsigmoid, "
      "sigmoid, swish, tanh or gelu, got '",
      name, "'");
}

}  // namespace

Tensor QuantizedOutput::finish(const Tensor& computed) const {
  if (fused()) return computed;
  Tensor y = computed;
  if (other.defined()) {
    Tensor addend = to_dtype(other, DType::Float32);
    if (other.dtype() == DType::UInt8 || other.dtype() == DType::Int8)
      addend = (addend - Scalar(static_cast<double>(other_zero))) * Scalar(other_scale);
    y = y + addend * Scalar(alpha);
  }
  y = activated(y, *this);
  if (is_quantized())
    y = clamp(round(y * Scalar(1 / scale), 0) + Scalar(static_cast<double>(zero_point)),
              OptScalar(Scalar(lowest_of(dtype))), OptScalar(Scalar(highest_of(dtype))));
  y = to_dtype(y, dtype);
  return into_other && other.dtype() == dtype ? copy_(other, y, false) : y;
}

Requantization::Requantization(double x_scale, const WeightSettings& weight, const QuantizedOutput& out)
    : scales_(weight.scales()), low_(-INFINITY), high_(INFINITY), zero_(0) {
  const float* bias = weight.bias();
  if (bias) bias_.assign(bias, bias + scales_.size());
  const auto input_scale = static_cast<float>(x_scale);
  for (float& scale : scales_) scale *= input_scale;
  const bool bounded = out.activation == "relu";
  if (!out.fused() || !out.is_quantized()) {
    result_ = cpu::ByteResult::kFloat;
    if (out.fused() && bounded) low_ = 0;
    return;
  }
  RL_CHECK(std::isfinite(out.scale) && out.scale > 0,
           "a quantized product: the output's scale must be a positive number, got ", out.scale);
  for (size_t j = 0; j < bias_.size(); ++j) bias_[j] /= scales_[j];
  for (float& scale : scales_) scale /= static_cast<float>(out.scale);
  result_ = out.dtype == DType::UInt8 ? cpu::ByteResult::kUInt8 : cpu::ByteResult::kInt8;
  zero_ = static_cast<int32_t>(out.zero_point);
  low_ = static_cast<float>(lowest_of(out.dtype));
  if (bounded) low_ = std::max(low_, static_cast<float>(zero_));
  high_ = static_cast<float>(highest_of(out.dtype));
}

void Requantization::describe(cpu::ByteProduct& p) const {
  p.result = result_;
  p.scales = scales_.data();
  p.bias = bias_.empty() ? nullptr : bias_.data();
  p.low = low_;
  p.high = high_;
  p.out_zero = zero_;
}

}  // namespace rushlight
