#include "rushlight/nn/adaptive.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "rushlight/nn/functional.h"

namespace rushlight::nn {

namespace F = functional;

void AdaptiveLogSoftmaxWithLossImpl::reset() {
  cutoffs = options.cutoffs();
  const bool rising =
      std::adjacent_find(cutoffs.begin(), cutoffs.end(), std::greater_equal<>()) == cutoffs.end();
  RL_CHECK(
      !cutoffs.empty() && rising && cutoffs.front() > 0 && cutoffs.back() <= options.n_classes() - 1,
      "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
      "value is between 1 and n_classes-1, but got ",
      IntArrayRef(cutoffs));
  RL_CHECK_VALUE(options.div_value() != 0, "div_value should not be equal to 0");
  cutoffs.push_back(options.n_classes());
  shortlist_size = cutoffs[0];
  n_clusters = static_cast<int64_t>(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head",
                         Linear(LinearOptions(options.in_features(), head_size).bias(options.head_bias())));
  tail = register_module("tail", ModuleList());
  for (int64_t i = 0; i < n_clusters; ++i) {
    const auto shrink = std::pow(options.div_value(), static_cast<double>(i + 1));
    const auto hidden = static_cast<int64_t>(std::floor(static_cast<double>(options.in_features()) / shrink));
    const auto at = static_cast<size_t>(i);
    tail->push_back(Sequential(Linear(LinearOptions(options.in_features(), hidden).bias(false)),
                               Linear(LinearOptions(hidden, cutoffs[at + 1] - cutoffs[at]).bias(false))));
  }
}

void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (size_t i = 0; i < tail->size(); ++i)
    for (const auto& part : tail->at<SequentialImpl>(i).children())
      part->as<LinearImpl>()->reset_parameters();
}

void AdaptiveLogSoftmaxWithLossImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::AdaptiveLogSoftmaxWithLoss";
}

// Log probabilities within one cluster.
Tensor AdaptiveLogSoftmaxWithLossImpl::cluster(int64_t i, const Tensor& input) {
  return F::log_softmax(tail->at<SequentialImpl>(static_cast<size_t>(i)).forward(input), 1);
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& input_, const Tensor& target_) {
  const bool batched = target_.dim() > 0;
  RL_CHECK(target_.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  RL_CHECK(input_.dim() == target_.dim() + 1, target_.dim(), "D target tensor expects ", target_.dim() + 1,
           "D input tensors, but found inputs with sizes ", input_.sizes());
  const Tensor input = batched ? input_ : input_.unsqueeze(0),
               target = batched ? target_ : target_.unsqueeze(0);
  RL_CHECK(input.size(0) == target.size(0),
           "Input and target should have the same size in the batch dimension.");
  RL_CHECK(target.numel() == 0 ||
               (target.min().item<int64_t>() >= 0 && target.max().item<int64_t>() < options.n_classes()),
           "Target values should be in [0, ", options.n_classes() - 1, "], but values in range [",
           target.min().item<int64_t>(), ", ", target.max().item<int64_t>(), "] were found. ");
  // Only the clusters that occur are computed.
  Tensor output = input.new_zeros(target.size(0)), column = target.clone();
  for (int64_t i = 0; i < n_clusters; ++i) {
    const int64_t first = cutoffs[static_cast<size_t>(i)], last = cutoffs[static_cast<size_t>(i) + 1];
    const Tensor rows = ((target >= first) & (target < last)).nonzero().squeeze(-1);
    if (rows.numel() == 0) continue;
    const Tensor within = cluster(i, input.index_select(0, rows));
    const Tensor local = target.index_select(0, rows) - first;
    column.index_fill_(0, rows, shortlist_size + i);
    output = output.index_copy(0, rows, within.gather(1, local.unsqueeze(1)).squeeze(1));
  }
  output = output + F::log_softmax(head(input), 1).gather(1, column.unsqueeze(1)).squeeze(1);
  return {batched ? output : output.squeeze(0), (-output).mean().item<double>()};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) {
  const Tensor first = F::log_softmax(head(input), 1);
  std::vector<Tensor> parts{first.narrow(1, 0, shortlist_size)};
  for (int64_t i = 0; i < n_clusters; ++i)
    parts.push_back(cluster(i, input) + first.narrow(1, shortlist_size + i, 1));
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) { return log_prob(input).argmax(1); }

}  // namespace rushlight::nn
