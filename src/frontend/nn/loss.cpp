#include "rushlight/nn/loss.h"

#include <ostream>

#include "rushlight/nn/functional.h"

namespace rushlight::nn {

namespace F = functional;

// What stands between the parentheses is what libtorch shows there.
#define RL_LOSS(Name, function, shown)                                \
  void Name##Impl::pretty_print(std::ostream& out) const {            \
    out << std::boolalpha << "torch::nn::" #Name "(" << shown << ")"; \
  }                                                                   \
  Tensor Name##Impl::forward(const Tensor& x, const Tensor& y) { return F::function(x, y, options); }
RL_LOSS(L1Loss, l1_loss, "")
RL_LOSS(MSELoss, mse_loss, "")
RL_LOSS(BCELoss, binary_cross_entropy, "")
RL_LOSS(BCEWithLogitsLoss, binary_cross_entropy_with_logits, "")
RL_LOSS(CrossEntropyLoss, cross_entropy, "")
RL_LOSS(NLLLoss, nll_loss, "")
RL_LOSS(KLDivLoss, kl_div, "")
RL_LOSS(SmoothL1Loss, smooth_l1_loss, "")
RL_LOSS(HuberLoss, huber_loss, "")
RL_LOSS(SoftMarginLoss, soft_margin_loss, "")
RL_LOSS(MultiLabelMarginLoss, multilabel_margin_loss, "")
RL_LOSS(HingeEmbeddingLoss, hinge_embedding_loss, "margin=" << options.margin())
RL_LOSS(MultiMarginLoss, multi_margin_loss, "")
RL_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss, "")
RL_LOSS(PoissonNLLLoss, poisson_nll_loss, "")
#undef RL_LOSS
#define RL_LOSS_OF_THREE(Name, function, shown)                                   \
  void Name##Impl::pretty_print(std::ostream& out) const {                        \
    out << std::boolalpha << "torch::nn::" #Name "(" << shown << ")";             \
  }                                                                               \
  Tensor Name##Impl::forward(const Tensor& a, const Tensor& b, const Tensor& c) { \
    return F::function(a, b, c, options);                                         \
  }
RL_LOSS_OF_THREE(CosineEmbeddingLoss, cosine_embedding_loss, "margin=" << options.margin())
RL_LOSS_OF_THREE(MarginRankingLoss, margin_ranking_loss, "")
RL_LOSS_OF_THREE(TripletMarginLoss, triplet_margin_loss,
                 "margin=" << options.margin() << ", p=" << options.p() << ", eps=" << options.eps()
                           << ", swap=" << options.swap())
RL_LOSS_OF_THREE(TripletMarginWithDistanceLoss, triplet_margin_with_distance_loss,
                 "margin=" << options.margin() << ", swap=" << options.swap())
#undef RL_LOSS_OF_THREE

void CTCLossImpl::pretty_print(std::ostream& out) const { out << "torch::nn::CTCLoss()"; }
Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                            const Tensor& target_lengths) {
  return F::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}
void CosineSimilarityImpl::pretty_print(std::ostream& out) const {
  out << "torch::nn::CosineSimilarity(dim=" << options.dim() << ", eps=" << options.eps() << ")";
}
void PairwiseDistanceImpl::pretty_print(std::ostream& out) const {
  out << std::boolalpha << "torch::nn::PairwiseDistance(p=" << options.p() << ", eps=" << options.eps()
      << ", keepdim=" << options.keepdim() << ")";
}
Tensor PairwiseDistanceImpl::forward(const Tensor& a, const Tensor& b) {
  return F::pairwise_distance(a, b, options);
}

}  // namespace rushlight::nn
