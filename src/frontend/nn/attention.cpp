#include "rushlight/nn/attention.h"

#include <cmath>

#include "rushlight/nn/functional.h"
#include "rushlight/nn/init.h"

namespace rushlight::nn {

namespace F = functional;

void MultiheadAttentionImpl::reset() {
  const int64_t e = options.embed_dim(), heads = options.num_heads();
  RL_CHECK(heads > 0 && e % heads == 0, "embed_dim must be divisible by num_heads, but got embed_dim ", e,
           " and num_heads ", heads);
  head_dim = e / heads;
  _qkv_same_embed_dim = options.kdim() == e && options.vdim() == e;
  if (_qkv_same_embed_dim) {
    in_proj_weight = register_parameter("in_proj_weight", rushlight::empty({3 * e, e}));
  } else {
    q_proj_weight = register_parameter("q_proj_weight", rushlight::empty({e, e}));
    k_proj_weight = register_parameter("k_proj_weight", rushlight::empty({e, options.kdim()}));
    v_proj_weight = register_parameter("v_proj_weight", rushlight::empty({e, options.vdim()}));
  }
  if (options.bias()) in_proj_bias = register_parameter("in_proj_bias", rushlight::empty(3 * e));
  out_proj = register_module("out_proj", Linear(LinearOptions(e, e).bias(options.bias())));
  if (options.add_bias_kv()) {
    bias_k = register_parameter("bias_k", rushlight::empty({1, 1, e}));
    bias_v = register_parameter("bias_v", rushlight::empty({1, 1, e}));
  }
  _reset_parameters();
}

void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (weight.defined()) init::xavier_uniform_(weight);
  if (options.bias()) {
    init::constant_(in_proj_bias, 0);
    init::constant_(out_proj->bias, 0);
  }
  for (const Tensor& bias : {bias_k, bias_v})
    if (bias.defined()) init::xavier_normal_(bias);
}

std::array<Tensor, 3> MultiheadAttentionImpl::projections() const {
  if (!_qkv_same_embed_dim) return {q_proj_weight, k_proj_weight, v_proj_weight};
  const auto parts = in_proj_weight.chunk(3, 0);
  return {parts[0], parts[1], parts[2]};
}

namespace {

// What is added to the scores [batch, heads, target, source], for the sources that are there.
struct Mask {
  Tensor sum;  // undefined: nothing
  void add(Tensor part, ScalarType type) {
    if (part.scalar_type() == kBool)
      part = zeros_like(part, TensorOptions().dtype(type)).masked_fill(part, -INFINITY);
    sum = sum.defined() ? sum + part : part;
  }
};

// A row of zeros, or a learned one, behind the source's others.
Tensor with_row(const Tensor& x, const Tensor& row) {
  return cat({x, row.defined() ? row.expand({1, x.size(1), x.size(2)}) : zeros_like(x.narrow(0, 0, 1))}, 0);
}

}  // namespace

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key,
                                                           const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask,
                                                           bool average_attn_weights) {
  RL_CHECK(query.dim() == 3 && key.dim() == 3 && value.dim() == 3,
           "MultiheadAttention: expected [length, batch, features], but got query ", query.sizes(), ", key ",
           key.sizes(), " and value ", value.sizes());
  const int64_t e = options.embed_dim(), h = options.num_heads(), target = query.size(0),
                batch = query.size(1);
  const auto weights = projections();
  std::vector<Tensor> biases(3);
  if (in_proj_bias.defined()) biases = in_proj_bias.chunk(3, 0);
  const Tensor q = F::linear(query, weights[0], biases[0]);
  Tensor k = F::linear(key, weights[1], biases[1]), v = F::linear(value, weights[2], biases[2]);

  Mask mask;
  auto widened = [&](const Tensor& m) { return F::pad(m, {0, k.size(0) - m.size(-1)}); };
  if (options.add_bias_kv()) k = with_row(k, bias_k), v = with_row(v, bias_v);
  if (options.add_zero_attn()) k = with_row(k, {}), v = with_row(v, {});
  const int64_t source = k.size(0);
  if (attn_mask.defined()) {
    const Tensor wide = widened(attn_mask);
    mask.add(wide.dim() == 3 ? wide.view({batch, h, target, source}) : wide, q.scalar_type());
  }
  if (key_padding_mask.defined())
    mask.add(widened(key_padding_mask).view({batch, 1, 1, source}), q.scalar_type());

  auto heads = [&](const Tensor& x) {  // [batch, heads, length, head_dim]
    return x.view({x.size(0), batch, h, head_dim}).permute({1, 2, 0, 3});
  };
  auto joined = [&](const Tensor& x) {
    return out_proj(x.permute({2, 0, 1, 3}).reshape({target, batch, e}));
  };
  const double dropout = is_training() ? options.dropout() : 0.0;
  if (!need_weights) {
    const auto added = mask.sum.defined() ? std::optional<Tensor>(mask.sum) : std::nullopt;
    return {joined(F::scaled_dot_product_attention(heads(q), heads(k), heads(v), added, dropout)), Tensor()};
  }
  Tensor scores = matmul(heads(q) / std::sqrt(static_cast<double>(head_dim)), heads(k).transpose(2, 3));
  if (mask.sum.defined()) scores = scores + mask.sum;
  const Tensor attention = F::dropout(scores.softmax(-1), dropout, dropout > 0);
  return {joined(matmul(attention, heads(v))), average_attn_weights ? attention.mean(1) : attention};
}

}  // namespace rushlight::nn
