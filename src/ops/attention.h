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

// On devices, with dropout and gradients of masks. The last results tell where in the generator's stream the
// numbers of the weights begin, for the gradients to drop the same.
inline Fn<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_bias,
    bool compute_log_sumexp, double dropout_p, bool is_causal, std::optional<double> scale)>
    efficient_attention;
inline Fn<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& attn_bias, const Tensor& out, const Tensor& logsumexp, const Tensor& philox_seed,
    const Tensor& philox_offset, double dropout_p, std::span<const bool> grad_input_mask, bool is_causal,
    std::optional<double> scale)>
    efficient_attention_backward;

}  // namespace rushlight::ops
