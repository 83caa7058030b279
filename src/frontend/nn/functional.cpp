#include "rushlight/nn/functional.h"

#include <cmath>

#include "rushlight/autograd.h"

namespace rushlight::nn::functional {

namespace {

Tensor reduced(const Tensor& loss, Mode reduction) {
  if (reduction == kMean) return loss.mean();
  if (reduction == kSum) return loss.sum();
  RL_CHECK_VALUE(reduction == kNone, reduction.name(), " is not a valid value for reduction");
  return loss;
}
std::optional<Tensor> optional(const Tensor& t) {
  return t.defined() ? std::optional<Tensor>(t) : std::nullopt;
}
void check_probability(double p) {
  RL_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

}  // namespace

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets,
                     bool scale_grad_by_freq, Mode mode, bool sparse, const Tensor& per_sample_weights,
                     bool include_last_offset, std::optional<int64_t> padding_idx) {
  Tensor indices = input, starts = offsets, weights = per_sample_weights;
  if (input.dim() == 2) {
    RL_CHECK(
        !offsets.defined(),
        "If input is 2D, then offsets has to be null, as input is treated is a mini-batch of fixed length "
        "sequences.");
    starts = arange(0, input.numel(), std::max<int64_t>(1, input.size(1)), TensorOptions(kLong));
    indices = input.reshape(-1);
    if (weights.defined()) weights = weights.reshape(-1);
  }
  RL_CHECK(starts.defined() && starts.dim() == 1, "offsets has to be a 1D Tensor");
  const int64_t number = mode == kSum ? 0 : mode == kMean ? 1 : 2;
  return std::get<0>(rushlight::embedding_bag(weight, indices, starts, scale_grad_by_freq, number, sparse,
                                              optional(weights), include_last_offset, padding_idx));
}
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& o) {
  if (o.max_norm()) {
    NoGradGuard no_grad;
    Tensor rows = weight;
    embedding_renorm_(rows, input.reshape(-1), *o.max_norm(), o.norm_type());
  }
  return embedding_bag(input, weight, o.offsets(), o.scale_grad_by_freq(), o.mode(), o.sparse(),
                       o.per_sample_weights(), o.include_last_offset(), o.padding_idx());
}

// --- dropout
#define RL_DROPOUT(name, operation)                                  \
  Tensor name(Tensor input, double p, bool training, bool inplace) { \
    check_probability(p);                                            \
    if (inplace) return rushlight::operation##_(input, p, training); \
    return rushlight::operation(input, p, training);                 \
  }
RL_DROPOUT(dropout, dropout)
RL_DROPOUT(dropout1d, feature_dropout)
RL_DROPOUT(dropout2d, feature_dropout)
RL_DROPOUT(dropout3d, feature_dropout)
RL_DROPOUT(alpha_dropout, alpha_dropout)
RL_DROPOUT(feature_alpha_dropout, feature_alpha_dropout)
#undef RL_DROPOUT

// --- normalisation
Tensor normalize(const Tensor& x, const NormalizeFuncOptions& o) {
  const Tensor norm = linalg::vector_norm(x, o.p(), o.dim(), true).clamp_min(o.eps()).expand_as(x);
  if (!o.out()) return x / norm;
  Tensor out = *o.out();
  return div_out(out, x, norm);
}
Tensor cosine_similarity(const Tensor& a, const Tensor& b, const CosineSimilarityOptions& o) {
  return rushlight::cosine_similarity(a, b, o.dim(), o.eps());
}
Tensor pairwise_distance(const Tensor& a, const Tensor& b, const PairwiseDistanceOptions& o) {
  return rushlight::pairwise_distance(a, b, o.p(), o.eps(), o.keepdim());
}
Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o) {
  const Tensor noise = -empty_like(logits).exponential_().log();
  const Tensor soft = ((logits + noise) / o.tau()).softmax(o.dim());
  if (!o.hard()) return soft;
  const Tensor at = std::get<1>(soft.max(o.dim(), true));
  return zeros_like(logits).scatter_(o.dim(), at, 1.0) - soft.detach() + soft;
}

// --- pooling
template <size_t D>
static std::vector<int64_t> adaptive_size(const Tensor& x, const AdaptivePoolOptions<D>& o) {
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < D; ++d) {
    const std::optional<int64_t> size = (*o.output_size())[d];
    sizes.push_back(size ? *size : x.size(static_cast<int64_t>(d) - static_cast<int64_t>(D)));
  }
  return sizes;
}
#define RL_POOLS(D)                                                                                        \
  Tensor max_pool##D##d(const Tensor& x, const MaxPool##D##dOptions& o) {                                  \
    return rushlight::max_pool##D##d(x, *o.kernel_size(), *o.stride(), *o.padding(), *o.dilation(),        \
                                     o.ceil_mode());                                                       \
  }                                                                                                        \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& x, const MaxPool##D##dOptions& o) { \
    return functional::max_pool##D##d_with_indices(x, *o.kernel_size(), *o.stride(), *o.padding(),         \
                                                   *o.dilation(), o.ceil_mode());                          \
  }                                                                                                        \
  Tensor adaptive_max_pool##D##d(const Tensor& x, const AdaptiveMaxPool##D##dOptions& o) {                 \
    return std::get<0>(adaptive_max_pool##D##d_with_indices(x, o));                                        \
  }                                                                                                        \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(const Tensor& x,                         \
                                                                  const AdaptiveMaxPool##D##dOptions& o) { \
    return functional::adaptive_max_pool##D##d_with_indices(x, adaptive_size(x, o));                       \
  }                                                                                                        \
  Tensor adaptive_avg_pool##D##d(const Tensor& x, const AdaptiveAvgPool##D##dOptions& o) {                 \
    return rushlight::adaptive_avg_pool##D##d(x, adaptive_size(x, o));                                     \
  }
RL_POOLS(1)
RL_POOLS(2)
RL_POOLS(3)
#undef RL_POOLS
Tensor avg_pool1d(const Tensor& x, const AvgPool1dOptions& o) {
  return functional::avg_pool1d(x, *o.kernel_size(), *o.stride(), *o.padding(), o.ceil_mode(),
                                o.count_include_pad());
}
Tensor avg_pool2d(const Tensor& x, const AvgPool2dOptions& o) {
  return functional::avg_pool2d(x, *o.kernel_size(), *o.stride(), *o.padding(), o.ceil_mode(),
                                o.count_include_pad(), o.divisor_override());
}
Tensor avg_pool3d(const Tensor& x, const AvgPool3dOptions& o) {
  return functional::avg_pool3d(x, *o.kernel_size(), *o.stride(), *o.padding(), o.ceil_mode(),
                                o.count_include_pad(), o.divisor_override());
}
namespace {

// The given size if it is within one stride of the default, which inverts pooling's formula.
template <size_t D>
std::vector<int64_t> unpooled_size(const Tensor& x, const MaxUnpoolFuncOptions<D>& o) {
  std::vector<int64_t> natural;
  const auto kernel = *o.kernel_size(), stride = *o.stride(), padding = *o.padding();
  for (size_t d = 0; d < D; ++d)
    natural.push_back((x.size(static_cast<int64_t>(d) - static_cast<int64_t>(D)) - 1) * stride[d] +
                      kernel[d] - 2 * padding[d]);
  if (!o.output_size()) return natural;
  std::vector<int64_t> wanted = *o.output_size();
  if (wanted.size() == D + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  RL_CHECK(wanted.size() == D, "output_size should be a sequence containing ", D, " or ", D + 2,
           " elements, but it has a length of '", wanted.size(), "'");
  for (size_t d = 0; d < D; ++d) {
    const int64_t low = natural[d] - stride[d], high = natural[d] + stride[d];
    RL_CHECK(low < wanted[d] && wanted[d] < high, "invalid output_size ", IntArrayRef(wanted), " (dim ", d,
             " must be between ", low, " and ", high, ")");
  }
  return wanted;
}

// What fractional pooling is told, or derives and draws.
template <size_t D>
struct Drawn {
  Drawn(const Tensor& x, const FractionalMaxPoolOptions<D>& o) : samples(o._random_samples()) {
    const auto n = static_cast<int64_t>(D);
    RL_CHECK(o.output_size() || o.output_ratio(), "fractional_max_pool", D,
             "d requires specifying either an output_size or an output_ratio");
    for (int64_t d = 0; d < n; ++d)
      size.push_back(o.output_size() ? (**o.output_size())[d]
                                     : static_cast<int64_t>(static_cast<double>(x.size(d - n)) *
                                                            (**o.output_ratio())[d]));
    if (!samples.defined())
      samples = rand({x.dim() == n + 2 ? x.size(0) : 1, x.size(-n - 1), n}, x.options());
  }
  std::vector<int64_t> size;
  Tensor samples;
};

}  // namespace
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const MaxUnpool1dFuncOptions& o) {
  std::vector<int64_t> size = unpooled_size(x, o);
  size.push_back(1);
  return max_unpool2d(x.unsqueeze(-1), indices.unsqueeze(-1), size).squeeze(-1);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const MaxUnpool2dFuncOptions& o) {
  return max_unpool2d(x, indices, unpooled_size(x, o));
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const MaxUnpool3dFuncOptions& o) {
  return max_unpool3d(x, indices, unpooled_size(x, o), *o.stride(), *o.padding());
}
#define RL_FRACTIONAL(D)                                                              \
  std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(                  \
      const Tensor& x, const FractionalMaxPool##D##dOptions& o) {                     \
    const Drawn<D> drawn(x, o);                                                       \
    return fractional_max_pool##D##d(x, *o.kernel_size(), drawn.size, drawn.samples); \
  }
RL_FRACTIONAL(2)
RL_FRACTIONAL(3)
#undef RL_FRACTIONAL
#define RL_LP_POOL(D)                                                                                 \
  Tensor lp_pool##D##d(const Tensor& x, const LPPool##D##dOptions& o) {                               \
    return functional::lp_pool##D##d(x, o.norm_type(), *o.kernel_size(), *o.stride(), o.ceil_mode()); \
  }
RL_LP_POOL(1)
RL_LP_POOL(2)
RL_LP_POOL(3)
#undef RL_LP_POOL

Tensor pad(const Tensor& x, const PadFuncOptions& o) {
  return functional::pad(x, o.pad(), o.mode().name(),
                         o.mode() == kConstant ? std::optional<double>(o.value()) : std::nullopt);
}

// --- resampling
Tensor interpolate(const Tensor& x, const InterpolateFuncOptions& o) {
  RL_CHECK(o.size().has_value() != o.scale_factor().has_value(),
           "interpolate: only one of size or scale_factor should be defined");
  RL_CHECK(x.dim() >= 3 && x.dim() <= 5, "interpolate: expected 3, 4 or 5 dimensions, but got ", x.sizes());
  const size_t space = static_cast<size_t>(x.dim()) - 2;
  OptionalIntArrayRef size = std::nullopt;
  std::optional<ArrayRef<double>> scales;
  std::vector<int64_t> sizes;
  std::vector<double> factors;
  if (o.size()) {
    sizes = *o.size();
    if (sizes.size() == 1) sizes.resize(space, sizes[0]);
    RL_CHECK(sizes.size() == space, "interpolate: expected ", space, " sizes, but got ", sizes.size());
    size = sizes;
  } else {
    factors = *o.scale_factor();
    if (factors.size() == 1) factors.resize(space, factors[0]);
    RL_CHECK(factors.size() == space, "interpolate: expected ", space, " factors, but got ", factors.size());
    if (o.recompute_scale_factor().value_or(false)) {
      for (size_t d = 0; d < space; ++d)
        sizes.push_back(static_cast<int64_t>(std::floor(static_cast<double>(x.sizes()[d + 2]) * factors[d])));
      size = sizes;
    } else {
      scales = factors;
    }
  }
  const bool corners = o.align_corners().value_or(false);
  if (o.mode() == kNearest)
    return space == 1   ? functional::upsample_nearest1d(x, size, scales)
           : space == 2 ? functional::upsample_nearest2d(x, size, scales)
                        : functional::upsample_nearest3d(x, size, scales);
  if (o.mode() == kLinear && space == 1) return functional::upsample_linear1d(x, size, corners, scales);
  if (o.mode() == kBilinear && space == 2) return functional::upsample_bilinear2d(x, size, corners, scales);
  if (o.mode() == kTrilinear && space == 3) return functional::upsample_trilinear3d(x, size, corners, scales);
  if (o.mode() == kBicubic && space == 2) return functional::upsample_bicubic2d(x, size, corners, scales);
  if (o.mode() == kArea) {
    for (size_t d = sizes.size(); d < space; ++d)
      sizes.push_back(static_cast<int64_t>(std::floor(static_cast<double>(x.sizes()[d + 2]) * factors[d])));
    return space == 1   ? rushlight::adaptive_avg_pool1d(x, sizes)
           : space == 2 ? rushlight::adaptive_avg_pool2d(x, sizes)
                        : rushlight::adaptive_avg_pool3d(x, sizes);
  }
  RL_NOT_IMPLEMENTED("interpolate: mode ", o.mode().name(), " for an input of ", x.dim(), " dimensions");
}
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleFuncOptions& o) {
  const int64_t mode = o.mode() == kBilinear ? 0 : o.mode() == kNearest ? 1 : 2;
  const int64_t padding = o.padding_mode() == kZeros ? 0 : o.padding_mode() == kBorder ? 1 : 2;
  return grid_sampler(x, grid, mode, padding, o.align_corners().value_or(false));
}
Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  return affine_grid_generator(theta, size, align_corners);
}

// --- losses
Tensor l1_loss(const Tensor& x, const Tensor& y, const L1LossOptions& o) {
  return functional::l1_loss(x, y, o.reduction().name());
}
Tensor mse_loss(const Tensor& x, const Tensor& y, const MSELossOptions& o) {
  return functional::mse_loss(x, y, o.reduction().name());
}
Tensor binary_cross_entropy(const Tensor& x, const Tensor& y, const BCELossOptions& o) {
  return functional::binary_cross_entropy(x, y, optional(o.weight()), o.reduction().name());
}
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& y, const BCEWithLogitsLossOptions& o) {
  return functional::binary_cross_entropy_with_logits(x, y, optional(o.weight()), o.reduction().name(),
                                                      optional(o.pos_weight()));
}
Tensor cross_entropy(const Tensor& x, const Tensor& y, const CrossEntropyLossOptions& o) {
  return functional::cross_entropy(x, y, optional(o.weight()), o.ignore_index(), o.reduction().name(),
                                   o.label_smoothing());
}
Tensor nll_loss(const Tensor& x, const Tensor& y, const NLLLossOptions& o) {
  return functional::nll_loss(x, y, optional(o.weight()), o.ignore_index(), o.reduction().name());
}
Tensor kl_div(const Tensor& x, const Tensor& y, const KLDivLossOptions& o) {
  return functional::kl_div(x, y, o.reduction().name(), o.log_target());
}
Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, const SmoothL1LossOptions& o) {
  return functional::smooth_l1_loss(x, y, o.reduction().name(), o.beta());
}
Tensor huber_loss(const Tensor& x, const Tensor& y, const HuberLossOptions& o) {
  return functional::huber_loss(x, y, o.reduction().name(), o.delta());
}
Tensor soft_margin_loss(const Tensor& x, const Tensor& y, const SoftMarginLossOptions& o) {
  return functional::soft_margin_loss(x, y, o.reduction().name());
}
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, const HingeEmbeddingLossOptions& o) {
  return functional::hinge_embedding_loss(x, y, o.margin(), o.reduction().name());
}
Tensor multi_margin_loss(const Tensor& x, const Tensor& y, const MultiMarginLossOptions& o) {
  return functional::multi_margin_loss(x, y, o.p(), o.margin(), optional(o.weight()), o.reduction().name());
}
Tensor multilabel_margin_loss(const Tensor& x, const Tensor& y, const MultiLabelMarginLossOptions& o) {
  return functional::multilabel_margin_loss(x, y, o.reduction().name());
}
Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& y,
                                   const MultiLabelSoftMarginLossOptions& o) {
  return functional::multilabel_soft_margin_loss(x, y, optional(o.weight()), o.reduction().name());
}
Tensor poisson_nll_loss(const Tensor& x, const Tensor& y, const PoissonNLLLossOptions& o) {
  return functional::poisson_nll_loss(x, y, o.log_input(), o.full(), o.eps(), o.reduction().name());
}
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& y,
                             const CosineEmbeddingLossOptions& o) {
  return functional::cosine_embedding_loss(a, b, y, o.margin(), o.reduction().name());
}
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y,
                           const MarginRankingLossOptions& o) {
  return functional::margin_ranking_loss(a, b, y, o.margin(), o.reduction().name());
}
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& o) {
  auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function() ? (*o.distance_function())(a, b) : rushlight::pairwise_distance(a, b);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (o.swap()) far = minimum(far, distance(positive, negative));
  return reduced((near - far + o.margin()).clamp_min(0), o.reduction());
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& o) {
  return functional::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(),
                                         o.reduction().name());
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossOptions& o) {
  const int64_t reduction = o.reduction() == kNone ? 0 : o.reduction() == kMean ? 1 : 2;
  return rushlight::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(), reduction,
                             o.zero_infinity());
}

}  // namespace rushlight::nn::functional
