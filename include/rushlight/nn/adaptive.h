// Softmax over very many classes, in clusters by frequency (Grave et al., 2017).
#pragma once
#include "rushlight/nn/container.h"
#include "rushlight/nn/linear.h"

namespace rushlight::nn {

struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  TORCH_ARG(int64_t, in_features);
  TORCH_ARG(int64_t, n_classes);
  TORCH_ARG(std::vector<int64_t>,
            cutoffs);                 // where clusters begin, rising; the classes before are the head's
  TORCH_ARG(double, div_value) = 4.;  // each cluster's features are fewer by this
  TORCH_ARG(bool, head_bias) = false;
};

struct ASMoutput {
  Tensor output;  // the log probability of each sample's target
  double loss;
};

class AdaptiveLogSoftmaxWithLossImpl : public Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : AdaptiveLogSoftmaxWithLossImpl(
            AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs))) {}
  explicit AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions o) : options(std::move(o)) {
    AdaptiveLogSoftmaxWithLossImpl::reset();
  }
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  // input: [samples, in_features], target: [samples]; or both without samples.
  ASMoutput forward(const Tensor& input, const Tensor& target);
  Tensor log_prob(const Tensor& input);  // of all classes: [samples, n_classes]
  Tensor predict(const Tensor& input);   // the most probable class of each sample
  AdaptiveLogSoftmaxWithLossOptions options;
  std::vector<int64_t> cutoffs;  // the options', then n_classes
  int64_t shortlist_size = 0, n_clusters = 0, head_size = 0;
  Linear head{nullptr};
  ModuleList tail{nullptr};

 private:
  Tensor cluster(int64_t i, const Tensor& input);
};
TORCH_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace rushlight::nn
