// Multi-head attention.
#pragma once
#include "rushlight/nn/linear.h"

namespace rushlight::nn {

namespace functional {

// Attention with the weights of somebody's own.
struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads, Tensor in_proj_weight,
                                       Tensor in_proj_bias, Tensor bias_k, Tensor bias_v, bool add_zero_attn,
                                       double dropout_p, Tensor out_proj_weight, Tensor out_proj_bias);
  TORCH_ARG(int64_t, embed_dim_to_check);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(Tensor, in_proj_weight);  // of query, key and value under each other
  TORCH_ARG(Tensor, in_proj_bias);
  TORCH_ARG(Tensor, bias_k);  // one more key and value
  TORCH_ARG(Tensor, bias_v);
  TORCH_ARG(bool, add_zero_attn);  // one more key and value of zeros
  TORCH_ARG(double, dropout_p);
  TORCH_ARG(Tensor, out_proj_weight);
  TORCH_ARG(Tensor, out_proj_bias);
  TORCH_ARG(bool, training) = true;
  TORCH_ARG(Tensor, key_padding_mask) = {};
  TORCH_ARG(bool, need_weights) = true;
  TORCH_ARG(Tensor, attn_mask) = {};
  TORCH_ARG(bool, use_separate_proj_weight) = false;  // the three that follow, not in_proj_weight
  TORCH_ARG(Tensor, q_proj_weight) = {};
  TORCH_ARG(Tensor, k_proj_weight) = {};
  TORCH_ARG(Tensor, v_proj_weight) = {};
  TORCH_ARG(Tensor, static_k) = {};  // projected keys and values, [batch * heads, source, head_dim]
  TORCH_ARG(Tensor, static_v) = {};
  TORCH_ARG(bool, average_attn_weights) = true;
};
// Inputs and results as MultiheadAttentionImpl::forward has them.
std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key,
                                                        const Tensor& value,
                                                        const MultiheadAttentionForwardFuncOptions& options);

}  // namespace functional

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  TORCH_ARG(int64_t, embed_dim);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, add_bias_kv) = false;    // one more key and value that are learned
  TORCH_ARG(bool, add_zero_attn) = false;  // one more key and value of zeros
  TORCH_ARG(int64_t, kdim);
  TORCH_ARG(int64_t, vdim);
};

// Inputs are [length, batch, features], as in libtorch. Results: [target, batch, features], and the weights
// [batch, target, source] (per head before the sources where they are not averaged) if they are wanted.
class MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& o) : options(o) {
    MultiheadAttentionImpl::reset();
  }
  void reset() override;
  void _reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true);
  MultiheadAttentionOptions options;
  bool _qkv_same_embed_dim = true;
  int64_t head_dim = 0;
  // One matrix for all three, or one each where keys or values have a size of their own.
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Tensor bias_k, bias_v;
  Linear out_proj{nullptr};
};
TORCH_MODULE(MultiheadAttention);

}  // namespace rushlight::nn
