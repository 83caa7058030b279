// Attention.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                 double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa)>
    scaled_dot_product_attention;

// In tiles; the second result is the logarithm of each query's sum of exponentials. Heads of queries may be
// a multiple of those of keys and values.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& query, const Tensor& key, const Tensor& value,
                                     double dropout_p, bool is_causal, const Tensor& attn_mask,
                                     std::optional<double> scale)>
    flash_attention;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& grad_out, const Tensor& query, const Tensor& key,
                                             const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                                             double dropout_p, bool is_causal, const Tensor& attn_mask,
                                             std::optional<double> scale)>
    flash_attention_backward;

}  // namespace rushlight::ops
