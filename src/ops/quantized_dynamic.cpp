// Products by weights of four bits, of inputs that are rounded to eight row by row: _dyn_quant_*. The packed
// weight is PyTorch's on x86: a float for each byte of two numbers, then scales, then the bias.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/gemm.h"
#include "ops/copy.h"
#include "ops/join.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Fn<Tensor(const Tensor& weights, const Tensor& scales_zeros, const Tensor& bias, int64_t block_size,
          int64_t in_features, int64_t out_features)>
    dyn_quant_pack;
Fn<Tensor(const Tensor& inp, const Tensor& packed_weights, int64_t block_size, int64_t in_features,
          int64_t out_features)>
    dyn_quant_matmul;

constexpr const char* kPack = "_dyn_quant_pack_4bit_weight";
constexpr const char* kProduct = "_dyn_quant_matmul_4bit";

int64_t checked_groups(const char* who, int64_t block, int64_t k, int64_t n) {
  RL_CHECK(k > 0 && n > 0 && k % 2 == 0, who, ": in_features must be even and positive, and out_features ",
           "positive, got ", k, " and ", n);
  RL_CHECK(block == k || (block > 0 && block % 32 == 0 && k % block == 0), who,
           ": block_size must be in_features, or a multiple of 32 that divides it, got ", block);
  return k / block;
}

Tensor pack_body(const Call&, const Tensor& weights, const Tensor& scales, const Tensor& bias, int64_t block,
                 int64_t k, int64_t n) {
  const int64_t groups = checked_groups(kPack, block, k, n);
  RL_CHECK(weights.dtype() == DType::UInt8 && weights.numel() == n * k / 2, kPack,
           ": weights must be uint8, two numbers a byte, got ", describe(weights));
  RL_CHECK(scales.numel() == n * groups, kPack, ": as many scales as groups are wanted, ", n * groups,
           ", got ", describe(scales));
  RL_CHECK(!bias.defined() || bias.numel() == n, kPack, ": bias must have ", n, " elements, got ",
           describe(bias));
  const auto flat = [](const Tensor& t) { return reshape(to_dtype(t, DType::Float32), IntList{-1}); };
  std::vector<Tensor> parts{flat(weights), flat(scales)};
  if (bias.defined()) parts.push_back(flat(bias));
  return cat(parts, 0);
}

// A row as 8 bits hold it, from its least to its largest number and zero.
void round_row(const float* x, int64_t k, float* out) {
  constexpr float kLow = -128, kHigh = 127;
  float least = 0, most = 0;
  for (int64_t i = 0; i < k; ++i) least = std::min(least, x[i]), most = std::max(most, x[i]);
  const float steps = least == most ? 1 : (kHigh - kLow) / (most - least);
  const float low = least * steps, high = most * steps;
  const float start = (kLow + low) + (kHigh + high) > 0 ? kLow - low : kHigh - high;
  const float zero = std::nearbyint(std::clamp(start, kLow, kHigh)), scale = 1 / steps;
  for (int64_t i = 0; i < k; ++i)
    out[i] = (std::clamp(std::nearbyint(x[i] * steps) + zero, kLow, kHigh) - zero) * scale;
}

Tensor matmul_kernel(const Call&, const Tensor& input, const Tensor& packed, int64_t block, int64_t k,
                     int64_t n) {
  const int64_t groups = checked_groups(kProduct, block, k, n);
  RL_CHECK(input.dtype() == DType::Float32 && input.dim() == 2 && input->sizes[1] == k, kProduct,
           ": the input must be a float32 matrix of ", k, " columns, got ", describe(input));
  const int64_t bytes = n * k / 2, plain = bytes + n * groups;
  RL_CHECK(packed.dtype() == DType::Float32 && (packed.numel() == plain || packed.numel() == plain + n),
           kProduct, ": the weight must be packed by ", kPack, " for these features and block_size, got ",
           describe(packed));
  const int64_t m = input->sizes[0];
  const Tensor y = empty_tensor(IntList{m, n}, DType::Float32, input.device());
  if (!input.is_cpu() || m == 0) return y;
  const Tensor x = contiguous(input, MemoryFormat::Contiguous),
               own = contiguous(packed, MemoryFormat::Contiguous);
  const auto* from = static_cast<const float*>(own.data_ptr());
  std::vector<float> rows(static_cast<size_t>(m * k)), weight(static_cast<size_t>(n * k));
  for (int64_t i = 0; i < m; ++i)
    round_row(static_cast<const float*>(x.data_ptr()) + i * k, k, &rows[static_cast<size_t>(i * k)]);
  for (int64_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<int>(from[i]);
    const int64_t j = 2 * i / k, c = 2 * i % k;
    const float scale = from[bytes + j * groups + c / block];
    weight[static_cast<size_t>(2 * i)] = static_cast<float>((byte & 15) - 8) * scale;
    weight[static_cast<size_t>(2 * i + 1)] = static_cast<float>((byte >> 4 & 15) - 8) * scale;
  }
  const float* bias = packed.numel() > plain ? from + plain : nullptr;
  cpu::gemm_bias(DType::Float32, m, n, k, {rows.data(), k, 1}, {weight.data(), 1, k}, bias, y.data_ptr(), n);
  return y;
}

constexpr const char* kFixedWeights = "it serves inference with weights that are fixed";

}  // namespace

void register_quantized_dynamic_operators(Table& t) {
  t.composite(dyn_quant_pack,
              "_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, int "
              "block_size, int in_features, int out_features) -> Tensor",
              pack_body)
      .function_only()
      .not_differentiable(kFixedWeights)
      .doc("A weight of four bits, its scales and its bias for _dyn_quant_matmul_4bit.");
  t.op(dyn_quant_matmul,
       "_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, int block_size, int in_features, int "
       "out_features) -> Tensor",
       matmul_kernel)
      .family(Family::Matmul)
      .function_only()
      .not_differentiable(kFixedWeights)
      .doc("A linear layer whose input is rounded to eight bits row by row, by a weight of four.");
}

}  // namespace rushlight
