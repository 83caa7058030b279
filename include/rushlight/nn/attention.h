// Multi-head attention.
#pragma once
#include "rushlight/nn/linear.h"

namespace rushlight::nn {

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

 private:
  std::array<Tensor, 3> projections() const;
};
TORCH_MODULE(MultiheadAttention);

}  // namespace rushlight::nn
