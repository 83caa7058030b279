// Losses.
#pragma once
#include "rushlight/nn/module.h"

namespace rushlight::nn {

#define RL_REDUCTION(Name)                                           \
  struct Name##Options {                                             \
    Name##Options(Mode reduction = kMean) : reduction_(reduction) {} \
    TORCH_ARG(Mode, reduction);                                      \
  }
RL_REDUCTION(L1Loss);
RL_REDUCTION(MSELoss);
RL_REDUCTION(SoftMarginLoss);
RL_REDUCTION(MultiLabelMarginLoss);
#undef RL_REDUCTION
struct BCELossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(Mode, reduction) = kMean;
};
struct BCEWithLogitsLossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(Mode, reduction) = kMean;
  TORCH_ARG(Tensor, pos_weight) = {};
};
struct CrossEntropyLossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(Mode, reduction) = kMean;
  TORCH_ARG(double, label_smoothing) = 0.0;
};
struct NLLLossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(Mode, reduction) = kMean;
};
struct KLDivLossOptions {
  KLDivLossOptions(Mode reduction = kMean) : reduction_(reduction) {}
  TORCH_ARG(Mode, reduction);
  TORCH_ARG(bool, log_target) = false;
};
struct SmoothL1LossOptions {
  SmoothL1LossOptions(Mode reduction = kMean) : reduction_(reduction) {}
  TORCH_ARG(Mode, reduction);
  TORCH_ARG(double, beta) = 1.0;
};
struct HuberLossOptions {
  HuberLossOptions(Mode reduction = kMean) : reduction_(reduction) {}
  TORCH_ARG(Mode, reduction);
  TORCH_ARG(double, delta) = 1.0;
};
struct HingeEmbeddingLossOptions {
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(Mode, reduction) = kMean;
};
struct MultiMarginLossOptions {
  TORCH_ARG(int64_t, p) = 1;
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(Mode, reduction) = kMean;
};
struct MultiLabelSoftMarginLossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(Mode, reduction) = kMean;
};
struct PoissonNLLLossOptions {
  TORCH_ARG(bool, log_input) = true;
  TORCH_ARG(bool, full) = false;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(Mode, reduction) = kMean;
};

#define RL_LOSS(Name)                                                    \
  class Name##Impl : public Cloneable<Name##Impl> {                      \
   public:                                                               \
    explicit Name##Impl(Name##Options o = {}) : options(std::move(o)) {} \
    void reset() override {}                                             \
    void pretty_print(std::ostream& stream) const override;              \
    Tensor forward(const Tensor& input, const Tensor& target);           \
    Name##Options options;                                               \
  };                                                                     \
  TORCH_MODULE(Name)
RL_LOSS(L1Loss);
RL_LOSS(MSELoss);
RL_LOSS(BCELoss);
RL_LOSS(BCEWithLogitsLoss);
RL_LOSS(CrossEntropyLoss);
RL_LOSS(NLLLoss);
RL_LOSS(KLDivLoss);
RL_LOSS(SmoothL1Loss);
RL_LOSS(HuberLoss);
RL_LOSS(SoftMarginLoss);
RL_LOSS(MultiLabelMarginLoss);
RL_LOSS(HingeEmbeddingLoss);
RL_LOSS(MultiMarginLoss);
RL_LOSS(MultiLabelSoftMarginLoss);
RL_LOSS(PoissonNLLLoss);
#undef RL_LOSS

struct CosineEmbeddingLossOptions {
  TORCH_ARG(double, margin) = 0.0;
  TORCH_ARG(Mode, reduction) = kMean;
};
struct MarginRankingLossOptions {
  TORCH_ARG(double, margin) = 0;
  TORCH_ARG(Mode, reduction) = kMean;
};
struct TripletMarginLossOptions {
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, swap) = false;
  TORCH_ARG(Mode, reduction) = kMean;
};
#define RL_LOSS_OF_THREE(Name)                                           \
  class Name##Impl : public Cloneable<Name##Impl> {                      \
   public:                                                               \
    explicit Name##Impl(Name##Options o = {}) : options(std::move(o)) {} \
    void reset() override {}                                             \
    void pretty_print(std::ostream& stream) const override;              \
    Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c);   \
    Name##Options options;                                               \
  };                                                                     \
  TORCH_MODULE(Name)
RL_LOSS_OF_THREE(CosineEmbeddingLoss);
RL_LOSS_OF_THREE(MarginRankingLoss);
RL_LOSS_OF_THREE(TripletMarginLoss);

// The triplet loss by a distance of one's own, instead of a norm.
struct TripletMarginWithDistanceLossOptions {
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  using reduction_t = Mode;
  TORCH_ARG(std::optional<distance_function_t>, distance_function) = std::nullopt;
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(bool, swap) = false;
  TORCH_ARG(Mode, reduction) = kMean;
};
RL_LOSS_OF_THREE(TripletMarginWithDistanceLoss);
#undef RL_LOSS_OF_THREE

struct CTCLossOptions {
  TORCH_ARG(int64_t, blank) = 0;
  TORCH_ARG(Mode, reduction) = kMean;
  TORCH_ARG(bool, zero_infinity) = false;
};
class CTCLossImpl : public Cloneable<CTCLossImpl> {
 public:
  explicit CTCLossImpl(const CTCLossOptions& o = {}) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths);
  CTCLossOptions options;
};
TORCH_MODULE(CTCLoss);

struct CosineSimilarityOptions {
  TORCH_ARG(int64_t, dim) = 1;
  TORCH_ARG(double, eps) = 1e-8;
};
class CosineSimilarityImpl : public Cloneable<CosineSimilarityImpl> {
 public:
  explicit CosineSimilarityImpl(const CosineSimilarityOptions& o = {}) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& a, const Tensor& b) {
    return cosine_similarity(a, b, options.dim(), options.eps());
  }
  CosineSimilarityOptions options;
};
TORCH_MODULE(CosineSimilarity);

struct PairwiseDistanceOptions {
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, keepdim) = false;
};
class PairwiseDistanceImpl : public Cloneable<PairwiseDistanceImpl> {
 public:
  explicit PairwiseDistanceImpl(const PairwiseDistanceOptions& o = {}) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& a, const Tensor& b);
  PairwiseDistanceOptions options;
};
TORCH_MODULE(PairwiseDistance);

}  // namespace rushlight::nn
