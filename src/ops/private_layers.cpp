// The layers of transformers as operators of their own, which exported programs and packages name: composites
// of public operators.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/parallel.h"
#include "cpu/loops.h"
#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/softmax.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// Types of masks, which are True where they hide: over queries and keys, over the keys of each example, or as
// they are.
enum : int64_t { kQueriesAndKeys, kKeys, kAsGiven };

Tensor broadcast_mask(const Tensor& scores, const Tensor& mask, const OptInt& type) {
  RL_CHECK(mask.dtype() == DType::Bool, "Mask should be a boolean tensor");
  const int64_t kind = type.value_or(kAsGiven);
  RL_CHECK(kind >= kQueriesAndKeys && kind <= kAsGiven,
           "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask), got ", kind);
  if (kind == kAsGiven || scores.dim() != 4) {
    RL_CHECK(mask.sizes() == scores.sizes(), "For mask_type == 2 mask shape should match input shape, got ",
             mask.sizes(), " and ", scores.sizes());
    return mask;
  }
  if (kind == kQueriesAndKeys) {
    RL_CHECK(mask.sizes() == scores.sizes().slice(2), "For mask_type == 0 mask shape should be (L, L), got ",
             mask.sizes());
    return mask;
  }
  RL_CHECK(mask.dim() == 2 && mask.size(0) == scores.size(0) && mask.size(1) == scores.size(3),
           "For mask_type == 1 mask shape should be (B, L), got ", mask.sizes());
  return unsqueeze(unsqueeze(mask, 1), 1);
}

Tensor masked_softmax_body(const Call&, const Tensor& self, const Tensor& mask, OptInt dim,
                           OptInt mask_type) {
  const Scalar hidden(-std::numeric_limits<double>::infinity());
  return softmax(rushlight::masked_fill(self, broadcast_mask(self, mask, mask_type), hidden),
                 dim.value_or(-1), std::nullopt);
}

Tensor by_head(const Tensor& t, int64_t heads) {
  return transpose(reshape(t, IntList{t.size(0), t.size(1), heads, t.size(2) / heads}), 1, 2);
}

// Adjacent bytes by pieces of known sizes, which need no call.
[[gnu::always_inline]] inline void copy_short(char* to, const char* from, size_t bytes) {
  const auto pieces = [&]<size_t size>(std::integral_constant<size_t, size>) {
    for (; bytes >= size; bytes -= size, to += size, from += size) std::memcpy(to, from, size);
  };
  pieces(std::integral_constant<size_t, 32>{});
  pieces(std::integral_constant<size_t, 8>{});
  pieces(std::integral_constant<size_t, 2>{});
}

// Queries, keys and values by head, in one pass over the projection: a row is summed and scaled in a cache's
// reach, and its heads go where the results lie.
template <class T>
std::array<Tensor, 3> heads_of_rows(const Tensor& qkv, const Tensor& bias, int64_t heads, double scale) {
  const int64_t batch = qkv.size(0), length = qkv.size(1), width = qkv.size(2) / 3, depth = width / heads;
  std::array<Tensor, 3> parts;
  for (Tensor& part : parts)
    part = empty_tensor(IntList{batch, heads, length, depth}, qkv.dtype(), qkv.device());
  const auto type = static_cast<size_t>(qkv.dtype());
  const cpu::Loop add = cpu::row(Formula::Add).loop[type], multiply = cpu::row(Formula::Mul).loop[type];
  T* from = qkv.data<T>();
  const auto bytes = [](T* x) { return reinterpret_cast<char*>(x); };
  const std::array<char*, 3> to{bytes(parts[0].data<T>()), bytes(parts[1].data<T>()),
                                bytes(parts[2].data<T>())};
  const auto head = static_cast<size_t>(depth) * sizeof(T), row = 3 * static_cast<size_t>(width);
  // Short rows several at a time.
  const int64_t together = std::max<int64_t>(1, std::min(2048 / (3 * width), batch * length));
  std::vector<T> shifts, factors;
  for (int64_t i = 0; i < together; ++i) {
    shifts.insert(shifts.end(), bias.data<T>(), bias.data<T>() + row);
    factors.insert(factors.end(), static_cast<size_t>(width), T(static_cast<compute_type<T>>(scale)));
    factors.insert(factors.end(), 2 * static_cast<size_t>(width), T(static_cast<compute_type<T>>(1)));
  }
  parallel_for(0, batch * length, std::max<int64_t>(1, kGrainSize / (3 * width)),
               [&](int64_t begin, int64_t end) {
                 std::vector<T> sums(static_cast<size_t>(together) * row);
                 char* here = bytes(sums.data());
                 for (int64_t i = begin; i < end; i += together) {
                   const int64_t count = std::min(together, end - i);
                   char* const sum[3] = {here, bytes(from + i * 3 * width), bytes(shifts.data())};
                   char* const product[3] = {here, here, bytes(factors.data())};
                   add(sum, 0, count * 3 * width, nullptr);
                   multiply(product, 0, together == 1 ? width : count * 3 * width, nullptr);
                   for (int64_t r = i; r < i + count; ++r) {
                     const char* at = here + static_cast<size_t>(r - i) * row * sizeof(T);
                     const int64_t first = r / length * heads * length + r % length;
                     for (char* part : to)
                       for (int64_t h = 0; h < heads; ++h, at += head)
                         copy_short(part + static_cast<size_t>(first + h * length) * head, at, head);
                   }
                 }
               });
  return parts;
}

// Whether heads_of_rows() serves: nobody takes note of the sums and products, and all lies side by side.
bool runs_by_rows(const Tensor& qkv, const Tensor& bias) {
  const auto type = static_cast<size_t>(qkv.dtype());
  const bool noted = dispatch_state.always || dispatch_state.level ||
                     ((detail::flags_of(qkv) | detail::flags_of(bias)) & dispatch_state.consider);
  return !noted && qkv.is_cpu() && bias.is_cpu() && is_floating(qkv.dtype()) && bias.dtype() == qkv.dtype() &&
         cpu::row(Formula::Add).loop[type] && cpu::row(Formula::Mul).loop[type] && qkv.is_contiguous() &&
         bias.is_contiguous() && qkv.numel() > 0 && bias.dim() == 1 && bias.size(0) == qkv.size(2);
}

std::tuple<Tensor, Tensor, Tensor> heads_of_projection_body(const Call&, const Tensor& qkv,
                                                            const Tensor& qkv_bias, int64_t num_heads) {
  RL_CHECK(
      num_heads > 0 && qkv.dim() == 3 && qkv.size(2) % (3 * num_heads) == 0,
      "_transform_bias_rescale_qkv: expected a projection of batch, length and three times the width of ",
      num_heads, " heads, got ", describe(qkv));
  const int64_t width = qkv.size(2) / 3;
  const double scale = 1 / std::sqrt(static_cast<double>(width / num_heads));
  if (runs_by_rows(qkv, qkv_bias)) {
    std::array<Tensor, 3> parts;
    visit_dtype(FloatTypes{}, qkv.dtype(), "_transform_bias_rescale_qkv",
                [&]<class T>(T) { parts = heads_of_rows<T>(qkv, qkv_bias, num_heads, scale); });
    return {parts[0], parts[1], parts[2]};
  }
  const Tensor sum = qkv + qkv_bias;
  const auto part = [&](int64_t i) {
    return contiguous(by_head(narrow(sum, 2, i * width, width), num_heads), MemoryFormat::Contiguous);
  };
  return {part(0) * Scalar(scale), part(1), part(2)};
}

void check_attention(const Tensor& query, const Tensor& key, const Tensor& value, int64_t embed_dim,
                     int64_t num_head, const Tensor& qkv_weight, const Tensor& qkv_bias) {
  RL_CHECK(num_head > 0 && embed_dim % num_head == 0, "`embed_dim` must divide evenly by `num_heads`");
  const std::pair<const char*, const Tensor&> operands[] = {{"query", query}, {"key", key}, {"value", value}};
  for (const auto& [name, t] : operands)
    RL_CHECK(t.dim() == 3, "expected 3-D `", name, "`, got ", t.dim(), "-D tensor");
  RL_CHECK(query.size(2) == embed_dim, "passed-in embed_dim ", embed_dim, " didn't match last dim of query ",
           query.size(2));
  RL_CHECK(key.sizes() == value.sizes(), "expected `key`/`value` shapes to match");
  RL_CHECK(qkv_weight.dim() == 2 && qkv_weight.size(0) == 3 * embed_dim,
           "expected `qkv_weight` first dim to be 3x embed_dim");
  RL_CHECK(qkv_bias.dim() == 1 && qkv_bias.size(0) == 3 * embed_dim,
           "expected `qkv_bias` first dim and first dim of query to be equal");
}

std::tuple<Tensor, Tensor> native_attention_body(const Call& call, const Tensor& query, const Tensor& key,
                                                 const Tensor& value, int64_t embed_dim, int64_t num_head,
                                                 const Tensor& qkv_weight, const Tensor& qkv_bias,
                                                 const Tensor& proj_weight, const Tensor& proj_bias,
                                                 const Tensor& mask, bool need_weights,
                                                 bool average_attn_weights, OptInt mask_type) {
  check_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias);
  const auto heads = [&](const Tensor& t, int64_t i) {
    return by_head(linear(t, narrow(qkv_weight, 0, i * embed_dim, embed_dim),
                          narrow(qkv_bias, 0, i * embed_dim, embed_dim)),
                   num_head);
  };
  const Scalar scale(1 / std::sqrt(static_cast<double>(embed_dim / num_head)));
  const Tensor scores = matmul(heads(query, 0) * scale, transpose(heads(key, 1), 2, 3));
  const Tensor weights = mask.defined() ? masked_softmax_body(call, scores, mask, -1, mask_type)
                                        : softmax(scores, -1, std::nullopt);
  const Tensor joined = reshape(transpose(matmul(weights, heads(value, 2)), 1, 2),
                                IntList{query.size(0), query.size(1), embed_dim});
  const Tensor result = linear(joined, proj_weight, proj_bias);
  if (!need_weights) return {result, Tensor()};
  return {result, average_attn_weights ? mean_dim(weights, IntList{1}, false, std::nullopt) : weights};
}

Tensor encoder_layer_body(const Call& call, const Tensor& src, int64_t embed_dim, int64_t num_heads,
                          const Tensor& qkv_weight, const Tensor& qkv_bias, const Tensor& proj_weight,
                          const Tensor& proj_bias, bool use_gelu, bool norm_first, double eps,
                          const Tensor& norm_weight_1, const Tensor& norm_bias_1, const Tensor& norm_weight_2,
                          const Tensor& norm_bias_2, const Tensor& ffn_weight_1, const Tensor& ffn_bias_1,
                          const Tensor& ffn_weight_2, const Tensor& ffn_bias_2, const Tensor& mask,
                          OptInt mask_type) {
  const auto first_norm = [&](const Tensor& t) {
    return layer_norm(t, IntList{embed_dim}, norm_weight_1, norm_bias_1, eps);
  };
  const auto second_norm = [&](const Tensor& t) {
    return layer_norm(t, IntList{embed_dim}, norm_weight_2, norm_bias_2, eps);
  };
  const auto attend = [&](const Tensor& t) {
    return std::get<0>(native_attention_body(call, t, t, t, embed_dim, num_heads, qkv_weight, qkv_bias,
                                             proj_weight, proj_bias, mask, false, false, mask_type));
  };
  const auto feed_forward = [&](const Tensor& t) {
    const Tensor inner = linear(t, ffn_weight_1, ffn_bias_1);
    return linear(use_gelu ? gelu(inner, "none") : relu(inner), ffn_weight_2, ffn_bias_2);
  };
  if (norm_first) {
    const Tensor x = src + attend(first_norm(src));
    return x + feed_forward(second_norm(x));
  }
  const Tensor x = first_norm(src + attend(src));
  return second_norm(x + feed_forward(x));
}

}  // namespace

void register_private_layers(Table& t) {
  t.composite("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
              masked_softmax_body)
      .function_only()
      .out()
      .doc("softmax over what the mask leaves, which is True where it hides.");
  t.composite(
       "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
       heads_of_projection_body)
      .function_only()
      .doc("Queries, scaled, keys and values by head, of one projection.");
  t.composite(
       "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, "
       "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool "
       "need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
       native_attention_body)
      .function_only()
      .doc("Multi-head attention with its projections, and its weights.");
  t.composite(
       "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor "
       "qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor "
       "norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, "
       "Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) "
       "-> Tensor",
       encoder_layer_body)
      .function_only()
      .doc("A layer of a transformer's encoder, without dropout.");
}

}  // namespace rushlight
