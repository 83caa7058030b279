// nn::functional. Most of it is printed from the records, with plain arguments; here are the functions made
// of others, and the forms that take a module's options, F::relu(x, F::ReLUFuncOptions().inplace(true)).
#pragma once
#include "rushlight/nn/activation.h"
#include "rushlight/nn/conv.h"
#include "rushlight/nn/linear.h"
#include "rushlight/nn/loss.h"
#include "rushlight/nn/norm.h"
#include "rushlight/nn/pooling.h"

namespace rushlight::nn::functional {

// --- made of others
using rushlight::bilinear;
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets = {},
                     bool scale_grad_by_freq = false, Mode mode = kMean, bool sparse = false,
                     const Tensor& per_sample_weights = {}, bool include_last_offset = false,
                     std::optional<int64_t> padding_idx = std::nullopt);
Tensor dropout(Tensor input, double p = 0.5, bool training = true, bool inplace = false);
Tensor dropout1d(Tensor input, double p = 0.5, bool training = true, bool inplace = false);
Tensor dropout2d(Tensor input, double p = 0.5, bool training = true, bool inplace = false);
Tensor dropout3d(Tensor input, double p = 0.5, bool training = true, bool inplace = false);
Tensor alpha_dropout(Tensor input, double p = 0.5, bool training = false, bool inplace = false);
Tensor feature_alpha_dropout(Tensor input, double p = 0.5, bool training = false, bool inplace = false);
struct NormalizeFuncOptions {
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(int64_t, dim) = 1;
  TORCH_ARG(double, eps) = 1e-12;
  TORCH_ARG(std::optional<Tensor>, out) = std::nullopt;
};
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {});
using CosineSimilarityFuncOptions = CosineSimilarityOptions;
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityOptions& options = {});
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceOptions& options = {});
using rushlight::pdist;
struct GumbelSoftmaxFuncOptions {
  TORCH_ARG(double, tau) = 1.0;
  TORCH_ARG(bool, hard) = false;
  TORCH_ARG(int64_t, dim) = -1;
};
Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});

// --- pooling, padding, resampling
#define RL_POOLS(D)                                                                                 \
  Tensor max_pool##D##d(const Tensor& input, const MaxPool##D##dOptions& options);                  \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input,                       \
                                                         const MaxPool##D##dOptions& options);      \
  Tensor avg_pool##D##d(const Tensor& input, const AvgPool##D##dOptions& options);                  \
  Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptiveAvgPool##D##dOptions& options); \
  Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptiveMaxPool##D##dOptions& options); \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(                                  \
      const Tensor& input, const AdaptiveMaxPool##D##dOptions& options);                            \
  Tensor lp_pool##D##d(const Tensor& input, const LPPool##D##dOptions& options);                    \
  using MaxPool##D##dFuncOptions = MaxPool##D##dOptions;                                            \
  using AvgPool##D##dFuncOptions = AvgPool##D##dOptions;                                            \
  using AdaptiveAvgPool##D##dFuncOptions = AdaptiveAvgPool##D##dOptions;                            \
  using AdaptiveMaxPool##D##dFuncOptions = AdaptiveMaxPool##D##dOptions;                            \
  using LPPool##D##dFuncOptions = LPPool##D##dOptions;
RL_POOLS(1)
RL_POOLS(2)
RL_POOLS(3)
#undef RL_POOLS
template <size_t D>
struct MaxUnpoolFuncOptions {
  MaxUnpoolFuncOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(std::optional<std::vector<int64_t>>, output_size) = std::nullopt;
};
#define RL_UNPOOL(D)                                                  \
  using MaxUnpool##D##dFuncOptions = MaxUnpoolFuncOptions<D>;         \
  Tensor max_unpool##D##d(const Tensor& input, const Tensor& indices, \
                          const MaxUnpool##D##dFuncOptions& options);
RL_UNPOOL(1)
RL_UNPOOL(2)
RL_UNPOOL(3)
#undef RL_UNPOOL
#define RL_FRACTIONAL(D)                                                                              \
  using FractionalMaxPool##D##dFuncOptions = FractionalMaxPool##D##dOptions;                          \
  std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(                                  \
      const Tensor& input, const FractionalMaxPool##D##dOptions& options);                            \
  inline Tensor fractional_max_pool##D##d(const Tensor& x, const FractionalMaxPool##D##dOptions& o) { \
    return std::get<0>(fractional_max_pool##D##d_with_indices(x, o));                                 \
  }
RL_FRACTIONAL(2)
RL_FRACTIONAL(3)
#undef RL_FRACTIONAL
struct PadFuncOptions {
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  TORCH_ARG(std::vector<int64_t>, pad);
  TORCH_ARG(Mode, mode) = kConstant;
  TORCH_ARG(double, value) = 0;
};
Tensor pad(const Tensor& input, const PadFuncOptions& options);
struct InterpolateFuncOptions {
  TORCH_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  TORCH_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  TORCH_ARG(Mode, mode) = kNearest;
  TORCH_ARG(std::optional<bool>, align_corners) = std::nullopt;
  TORCH_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;
  TORCH_ARG(bool, antialias) = false;
};
Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {});
struct GridSampleFuncOptions {
  TORCH_ARG(Mode, mode) = kBilinear;
  TORCH_ARG(Mode, padding_mode) = kZeros;
  TORCH_ARG(std::optional<bool>, align_corners) = std::nullopt;
};
Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options = {});
Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);
inline Tensor pixel_shuffle(const Tensor& input, const PixelShuffleOptions& o) {
  return rushlight::pixel_shuffle(input, o.upscale_factor());
}
inline Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleOptions& o) {
  return rushlight::pixel_unshuffle(input, o.downscale_factor());
}
using PixelShuffleFuncOptions = PixelShuffleOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;
using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;
inline Tensor fold(const Tensor& input, const FoldOptions& o) {
  return functional::fold(input, *o.output_size(), *o.kernel_size(), *o.dilation(), *o.padding(),
                          *o.stride());
}
inline Tensor unfold(const Tensor& input, const UnfoldOptions& o) {
  return functional::unfold(input, *o.kernel_size(), *o.dilation(), *o.padding(), *o.stride());
}

// --- losses
#define RL_LOSS(name, Kind)                \
  using Kind##FuncOptions = Kind##Options; \
  Tensor name(const Tensor& input, const Tensor& target, const Kind##Options& options)
RL_LOSS(l1_loss, L1Loss);
RL_LOSS(mse_loss, MSELoss);
RL_LOSS(binary_cross_entropy, BCELoss);
RL_LOSS(binary_cross_entropy_with_logits, BCEWithLogitsLoss);
RL_LOSS(cross_entropy, CrossEntropyLoss);
RL_LOSS(nll_loss, NLLLoss);
RL_LOSS(kl_div, KLDivLoss);
RL_LOSS(smooth_l1_loss, SmoothL1Loss);
RL_LOSS(huber_loss, HuberLoss);
RL_LOSS(soft_margin_loss, SoftMarginLoss);
RL_LOSS(multilabel_margin_loss, MultiLabelMarginLoss);
RL_LOSS(hinge_embedding_loss, HingeEmbeddingLoss);
RL_LOSS(multi_margin_loss, MultiMarginLoss);
RL_LOSS(multilabel_soft_margin_loss, MultiLabelSoftMarginLoss);
RL_LOSS(poisson_nll_loss, PoissonNLLLoss);
#undef RL_LOSS
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using CTCLossFuncOptions = CTCLossOptions;
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, SmoothL1LossOptions options,
                             double beta) {
  return functional::smooth_l1_loss(input, target, options.beta(beta));
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossOptions& options);
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossOptions& options);
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options);
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& options = {});
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossOptions& options = {});

// --- activations with options
#define RL_ACTIVATION(name, Kind)                                         \
  using Kind##FuncOptions = Kind##Options;                                \
  inline Tensor name(const Tensor& input, const Kind##Options& options) { \
    return Kind##Impl(options).forward(input);                            \
  }
using HardtanhFuncOptions = HardtanhOptions;
inline Tensor hardtanh(const Tensor& input,
                       const HardtanhOptions& o) {  // equal bounds are the layer's error only
  return functional::hardtanh(input, o.min_val(), o.max_val(), o.inplace());
}
RL_ACTIVATION(relu, ReLU)
RL_ACTIVATION(relu6, ReLU6)
RL_ACTIVATION(selu, SELU)
RL_ACTIVATION(elu, ELU)
RL_ACTIVATION(celu, CELU)
RL_ACTIVATION(gelu, GELU)
RL_ACTIVATION(glu, GLU)
RL_ACTIVATION(leaky_relu, LeakyReLU)
RL_ACTIVATION(hardshrink, Hardshrink)
RL_ACTIVATION(softshrink, Softshrink)
RL_ACTIVATION(softplus, Softplus)
RL_ACTIVATION(threshold, Threshold)
#undef RL_ACTIVATION
inline Tensor hardshrink(const Tensor& input, double lambda) {
  return functional::hardshrink(input, Scalar(lambda));
}
inline Tensor softshrink(const Tensor& input, double lambda) {
  return functional::softshrink(input, Scalar(lambda));
}
#define RL_OVER_DIM(name, Kind)                                                 \
  struct Kind##FuncOptions {                                                    \
    explicit Kind##FuncOptions(int64_t dim) : dim_(dim) {}                      \
    TORCH_ARG(int64_t, dim);                                                    \
    TORCH_ARG(std::optional<ScalarType>, dtype) = std::nullopt;                 \
  };                                                                            \
  inline Tensor name(const Tensor& input, const Kind##FuncOptions& o) {         \
    return functional::name(input, std::optional<int64_t>(o.dim()), o.dtype()); \
  }
RL_OVER_DIM(softmax, Softmax)
RL_OVER_DIM(softmin, Softmin)
RL_OVER_DIM(log_softmax, LogSoftmax)
#undef RL_OVER_DIM

// --- the others with options
struct DropoutFuncOptions {
  TORCH_ARG(double, p) = 0.5;
  TORCH_ARG(bool, training) = true;
  TORCH_ARG(bool, inplace) = false;
};
struct AlphaDropoutFuncOptions {
  TORCH_ARG(double, p) = 0.5;
  TORCH_ARG(bool, training) = false;
  TORCH_ARG(bool, inplace) = false;
};
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
using FeatureAlphaDropoutFuncOptions = AlphaDropoutFuncOptions;
#define RL_DROPOUT(name, Options)                                                \
  inline Tensor name(Tensor input, const Options& o) {                           \
    return functional::name(std::move(input), o.p(), o.training(), o.inplace()); \
  }
RL_DROPOUT(dropout, DropoutFuncOptions)
RL_DROPOUT(dropout2d, DropoutFuncOptions)
RL_DROPOUT(dropout3d, DropoutFuncOptions)
RL_DROPOUT(alpha_dropout, AlphaDropoutFuncOptions)
RL_DROPOUT(feature_alpha_dropout, AlphaDropoutFuncOptions)
#undef RL_DROPOUT
struct RReLUFuncOptions {
  TORCH_ARG(double, lower) = 1.0 / 8;
  TORCH_ARG(double, upper) = 1.0 / 3;
  TORCH_ARG(bool, training) = false;
  TORCH_ARG(bool, inplace) = false;
};
inline Tensor rrelu(Tensor input, const RReLUFuncOptions& o) {
  return functional::rrelu(input, o.lower(), o.upper(), o.training(), o.inplace());
}
struct EmbeddingFuncOptions {
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  TORCH_ARG(std::optional<double>, max_norm) = std::nullopt;
  TORCH_ARG(double, norm_type) = 2.;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  TORCH_ARG(bool, sparse) = false;
};
inline Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o) {
  return functional::embedding(input, weight, o.padding_idx(), o.max_norm(), o.norm_type(),
                               o.scale_grad_by_freq(), o.sparse());
}
struct EmbeddingBagFuncOptions {
  TORCH_ARG(Tensor, offsets) = {};
  TORCH_ARG(std::optional<double>, max_norm) = std::nullopt;
  TORCH_ARG(double, norm_type) = 2.;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  TORCH_ARG(Mode, mode) = kMean;
  TORCH_ARG(bool, sparse) = false;
  TORCH_ARG(Tensor, per_sample_weights) = {};
  TORCH_ARG(bool, include_last_offset) = false;
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& options);
struct BatchNormFuncOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(Tensor, bias) = {};
  TORCH_ARG(bool, training) = false;
  TORCH_ARG(std::optional<double>, momentum) = 0.1;
  TORCH_ARG(double, eps) = 1e-5;
};
inline Tensor batch_norm(const Tensor& input, const Tensor& mean, const Tensor& var,
                         const BatchNormFuncOptions& o) {
  return functional::batch_norm(input, mean, var, o.weight(), o.bias(), o.training(),
                                o.momentum().value_or(0.1), o.eps());
}
struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  TORCH_ARG(std::vector<int64_t>, normalized_shape);
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(Tensor, bias) = {};
  TORCH_ARG(double, eps) = 1e-5;
};
inline Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return functional::layer_norm(input, o.normalized_shape(), o.weight(), o.bias(), o.eps());
}
struct GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}
  TORCH_ARG(int64_t, num_groups);
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(Tensor, bias) = {};
  TORCH_ARG(double, eps) = 1e-5;
};
inline Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return functional::group_norm(input, o.num_groups(), o.weight(), o.bias(), o.eps());
}
struct InstanceNormFuncOptions {
  TORCH_ARG(Tensor, running_mean) = {};
  TORCH_ARG(Tensor, running_var) = {};
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(Tensor, bias) = {};
  TORCH_ARG(bool, use_input_stats) = true;
  TORCH_ARG(double, momentum) = 0.1;
  TORCH_ARG(double, eps) = 1e-5;
};
inline Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o) {
  return functional::instance_norm(input, o.running_mean(), o.running_var(), o.weight(), o.bias(),
                                   o.use_input_stats(), o.momentum(), o.eps());
}
using LocalResponseNormFuncOptions = LocalResponseNormOptions;
inline Tensor local_response_norm(const Tensor& input, const LocalResponseNormOptions& o) {
  return functional::local_response_norm(input, o.size(), o.alpha(), o.beta(), o.k());
}
#define RL_CONV(D)                                                                                  \
  struct Conv##D##dFuncOptions {                                                                    \
    TORCH_ARG(Tensor, bias) = {};                                                                   \
    TORCH_ARG(ExpandingArray<D>, stride) = 1;                                                       \
    TORCH_ARG(ExpandingArray<D>, padding) = 0;                                                      \
    TORCH_ARG(ExpandingArray<D>, dilation) = 1;                                                     \
    TORCH_ARG(int64_t, groups) = 1;                                                                 \
  };                                                                                                \
  inline Tensor conv##D##d(const Tensor& x, const Tensor& weight, const Conv##D##dFuncOptions& o) { \
    return functional::conv##D##d(x, weight, o.bias(), *o.stride(), *o.padding(), *o.dilation(),    \
                                  o.groups());                                                      \
  }                                                                                                 \
  struct ConvTranspose##D##dFuncOptions {                                                           \
    TORCH_ARG(Tensor, bias) = {};                                                                   \
    TORCH_ARG(ExpandingArray<D>, stride) = 1;                                                       \
    TORCH_ARG(ExpandingArray<D>, padding) = 0;                                                      \
    TORCH_ARG(ExpandingArray<D>, output_padding) = 0;                                               \
    TORCH_ARG(int64_t, groups) = 1;                                                                 \
    TORCH_ARG(ExpandingArray<D>, dilation) = 1;                                                     \
  };                                                                                                \
  inline Tensor conv_transpose##D##d(const Tensor& x, const Tensor& weight,                         \
                                     const ConvTranspose##D##dFuncOptions& o) {                     \
    return functional::conv_transpose##D##d(x, weight, o.bias(), *o.stride(), *o.padding(),         \
                                            *o.output_padding(), o.groups(), *o.dilation());        \
  }
RL_CONV(1)
RL_CONV(2)
RL_CONV(3)
#undef RL_CONV

}  // namespace rushlight::nn::functional
