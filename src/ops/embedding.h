// Look-ups in a table of rows.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& weight, const Tensor& indices, int64_t padding_idx, bool scale_grad_by_freq,
                 bool sparse)>
    embedding;
inline Fn<Tensor(const Tensor& input, const Tensor& weight, OptInt padding_idx,
                 std::optional<double> max_norm, double norm_type, bool scale_grad_by_freq, bool sparse)>
    nn_embedding;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                 bool scale_grad_by_freq)>
    embedding_dense_backward;
inline Fn<Tensor(const Tensor& self, const Tensor& indices, double max_norm, double norm_type)>
    embedding_renorm_;

}  // namespace rushlight::ops
