#include "rushlight/nn/attention.h"

#include <cmath>
#include <ostream>

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

void MultiheadAttentionImpl::pretty_print(std::ostream& out) const { out << "torch::nn::MultiheadAttention"; }

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key,
                                                           const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask,
                                                           bool average_attn_weights) {
  return F::multi_head_attention_forward(
      query, key, value,
      F::MultiheadAttentionForwardFuncOptions(options.embed_dim(), options.num_heads(), in_proj_weight,
                                              in_proj_bias, bias_k, bias_v, options.add_zero_attn(),
                                              options.dropout(), out_proj->weight, out_proj->bias)
          .training(is_training())
          .key_padding_mask(key_padding_mask)
          .need_weights(need_weights)
          .attn_mask(attn_mask)
          .use_separate_proj_weight(!_qkv_same_embed_dim)
          .q_proj_weight(q_proj_weight)
          .k_proj_weight(k_proj_weight)
          .v_proj_weight(v_proj_weight)
          .average_attn_weights(average_attn_weights));
}

// --- the function
F::MultiheadAttentionForwardFuncOptions::MultiheadAttentionForwardFuncOptions(
    int64_t embed_dim_to_check, int64_t num_heads, Tensor in_proj_weight, Tensor in_proj_bias, Tensor bias_k,
    Tensor bias_v, bool add_zero_attn, double dropout_p, Tensor out_proj_weight, Tensor out_proj_bias)
    : embed_dim_to_check_(embed_dim_to_check),
      num_heads_(num_heads),
      in_proj_weight_(std::move(in_proj_weight)),
      in_proj_bias_(std::move(in_proj_bias)),
      bias_k_(std::move(bias_k)),
      bias_v_(std::move(bias_v)),
      add_zero_attn_(add_zero_attn),
      dropout_p_(dropout_p),
      out_proj_weight_(std::move(out_proj_weight)),
      out_proj_bias_(std::move(out_proj_bias)) {}

namespace {

// What is added to the scores [batch, heads, target, source], for the sources that are there.
struct Mask {
  Tensor sum;  // undefined: nothing
  void add(Tensor part, ScalarType type) {
    if (part.scalar_type() == kByte) part = part.to(kBool);
    RL_CHECK(part.scalar_type() == kBool || part.is_floating_point(),
             "multi_head_attention_forward: masks must be bool or floating point, but got ",
             part.scalar_type());
    if (part.scalar_type() == kBool)
      part = zeros_like(part, TensorOptions().dtype(type)).masked_fill(part, -INFINITY);
    sum = sum.defined() ? sum + part : part;
  }
};

// A row of zeros, or a learned one, behind the source's others.
Tensor with_row(const Tensor& x, const Tensor& row) {
  return cat({x, row.defined() ? row.expand({1, x.size(1), x.size(2)}) : zeros_like(x.narrow(0, 0, 1))}, 0);
}

std::vector<Tensor> projections(const F::MultiheadAttentionForwardFuncOptions& o) {
  if (o.use_separate_proj_weight()) return {o.q_proj_weight(), o.k_proj_weight(), o.v_proj_weight()};
  return o.in_proj_weight().chunk(3, 0);
}

}  // namespace

std::tuple<Tensor, Tensor> F::multi_head_attention_forward(const Tensor& query, const Tensor& key,
                                                           const Tensor& value,
                                                           const MultiheadAttentionForwardFuncOptions& o) {
  RL_CHECK(query.dim() == 3 && key.dim() == 3 && value.dim() == 3,
           "MultiheadAttention: expected [length, batch, features], but got query ", query.sizes(), ", key ",
           key.sizes(), " and value ", value.sizes());
  const int64_t e = query.size(2), h = o.num_heads(), target = query.size(0), batch = query.size(1);
  RL_CHECK(e == o.embed_dim_to_check(), "multi_head_attention_forward: expected ", o.embed_dim_to_check(),
           " features, but got query ", query.sizes());
  RL_CHECK(h > 0 && e % h == 0, "embed_dim must be divisible by num_heads, but got embed_dim ", e,
           " and num_heads ", h);
  const int64_t head_dim = e / h;
  const auto weights = projections(o);
  std::vector<Tensor> biases(3);
  if (o.in_proj_bias().defined()) biases = o.in_proj_bias().chunk(3, 0);
  auto heads = [&](const Tensor& x) {  // [batch, heads, length, head_dim]
    return x.view({x.size(0), batch, h, head_dim}).permute({1, 2, 0, 3});
  };
  const Tensor q = heads(F::linear(query, weights[0], biases[0]));

  // Keys and values [source, batch, features], with the rows that are added to them.
  auto sources = [&](const Tensor& x, size_t i, const Tensor& fixed, const Tensor& bias) {
    Tensor rows;
    if (fixed.defined()) {
      RL_CHECK(fixed.dim() == 3 && fixed.size(0) == batch * h && fixed.size(2) == head_dim,
               "multi_head_attention_forward: static_k and static_v must be [batch * heads, source, "
               "head_dim], but got ",
               fixed.sizes());
      rows = fixed.view({batch, h, fixed.size(1), head_dim}).permute({2, 0, 1, 3}).reshape({-1, batch, e});
    } else {
      rows = F::linear(x, weights[i], biases[i]);
    }
    if (bias.defined()) {
      RL_CHECK(!fixed.defined(), "bias cannot be added to static key and value.");
      rows = with_row(rows, bias);
    }
    return o.add_zero_attn() ? with_row(rows, {}) : rows;
  };
  const Tensor k = sources(key, 1, o.static_k(), o.bias_k()), v = sources(value, 2, o.static_v(), o.bias_v());

  Mask mask;
  const int64_t source = k.size(0);
  auto widened = [&](const Tensor& m) { return F::pad(m, {0, source - m.size(-1)}); };
  if (o.attn_mask().defined()) {
    const Tensor wide = widened(o.attn_mask());
    mask.add(wide.dim() == 3 ? wide.view({batch, h, target, source}) : wide, q.scalar_type());
  }
  if (o.key_padding_mask().defined())
    mask.add(widened(o.key_padding_mask()).view({batch, 1, 1, source}), q.scalar_type());

  auto joined = [&](const Tensor& x) {
    return F::linear(x.permute({2, 0, 1, 3}).reshape({target, batch, e}), o.out_proj_weight(),
                     o.out_proj_bias());
  };
  const double dropout = o.training() ? o.dropout_p() : 0.0;
  if (!o.need_weights()) {
    const auto added = mask.sum.defined() ? std::optional<Tensor>(mask.sum) : std::nullopt;
    return {joined(F::scaled_dot_product_attention(q, heads(k), heads(v), added, dropout)), Tensor()};
  }
  Tensor scores = matmul(q / std::sqrt(static_cast<double>(head_dim)), heads(k).transpose(2, 3));
  if (mask.sum.defined()) scores = scores + mask.sum;
  const Tensor attention = F::dropout(scores.softmax(-1), dropout, dropout > 0);
  return {joined(matmul(attention, heads(v))), o.average_attn_weights() ? attention.mean(1) : attention};
}

}  // namespace rushlight::nn
