#include "ops/quantized_math.h"

#include <cmath>
#include <deque>

#include "cpu/quantized_binary.h"
#include "ops/copy.h"
#include "ops/dense.h"
#include "ops/factory.h"
#include "ops/quantized.h"

namespace rushlight {

const Quantizer& one_scale(const Tensor& t, std::string_view op) {
  const Quantizer& q = quantizer_of(t);
  RL_CHECK(!q.per_channel(), "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false. (",
           op, "() takes tensors with one scale for all elements)");
  return q;
}

Quantizer result_quantizer(std::string_view op, double scale, int64_t zero_point) {
  RL_CHECK(std::isfinite(scale) && scale > 0, op, "(): the result's scale must be a positive number, got ",
           scale);
  return {.scale = scale, .zero_point = zero_point};
}

Tensor mapped(const Tensor& quantized, const Quantizer& out, const std::function<Tensor(const Tensor&)>& f,
              bool one_step) {
  if (quantized.itemsize() != 1 || !quantized.is_cpu())
    return quantize_as(f(dequantize_from(quantized)), quantized.dtype(), out);
  // By the byte's bits.
  constexpr int64_t kValues = 256;
  const Quantizer& q = quantizer_of(quantized);
  const auto scale = static_cast<float>(q.scale), zero = static_cast<float>(q.zero_point);
  const Tensor values = empty_tensor(IntList{kValues}, DType::Float32, Device{});
  auto* each = static_cast<float*>(values.data_ptr());
  for (int i = 0; i < kValues; ++i) {
    const auto integer = quantized.dtype() == DType::QInt8 ? static_cast<float>(static_cast<int8_t>(i))
                                                           : static_cast<float>(i);
    each[i] = one_step ? std::fma(scale, integer, -zero * scale) : (integer - zero) * scale;
  }
  const Tensor table = integers_of(quantize_as(f(values), quantized.dtype(), out));
  const Tensor from = dense(integers_of(quantized));
  const Tensor to = empty_like_tensor(from, from.dtype());
  cpu::map_bytes(static_cast<const uint8_t*>(table.data_ptr()), static_cast<const uint8_t*>(from.data_ptr()),
                 static_cast<uint8_t*>(to.data_ptr()), from.numel());
  return with_quantizer(to, quantized.dtype(), out);
}

Tensor integers_under(const Tensor& quantized, const Quantizer& out) {
  const Quantizer& q = quantizer_of(quantized);
  if (!q.per_channel() && q.scale == out.scale && q.zero_point == out.zero_point)
    return integers_of(quantized);
  return integers_of(mapped(quantized, out, [](const Tensor& numbers) { return numbers; }));
}

const char* kept_schema(std::string text) {
  static std::deque<std::string> kept;
  return kept.emplace_back(std::move(text)).c_str();
}

}  // namespace rushlight
