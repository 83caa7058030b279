// Losses that are negative logarithms of likelihoods, element by element: composites.
#include <numbers>

#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/loss.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor kl_div_body(const Call&, const Tensor& self, const Tensor& target, int64_t reduction,
                   bool log_target) {
  for (const Tensor* t : {&self, &target}) {
    RL_CHECK(!is_complex(t->dtype()), "kl_div: Complex inputs not supported, got ", describe(*t));
    RL_CHECK(!is_integral_or_bool(t->dtype()), "kl_div: Integral inputs not supported, got ", describe(*t));
  }
  return reduced(log_target ? exp(target) * (target - self) : xlogy(target, target) - target * self,
                 reduction);
}

Tensor poisson_nll_body(const Call&, const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  Tensor loss = log_input ? exp(input) - target * input : input - target * log(input + Scalar(eps));
  if (full) {
    const Tensor stirling =
        target * log(target) - target + Scalar(0.5) * log(Scalar(2 * std::numbers::pi) * target);
    loss = add.inplace(loss, rushlight::masked_fill(stirling, target <= Scalar(1), Scalar(0)), Scalar(1));
  }
  return reduced(loss, reduction);
}

Tensor soft_margin_body(const Call& call, const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor loss = log1p(exp(-self * target));
  RL_CHECK(loss.sizes() == self.sizes(), "output with shape ", self.sizes(),
           " doesn't match the broadcast shape ", loss.sizes());
  return reduced(in_type_of(self, loss, call.op.name()), reduction);
}

// --- nn.functional

Tensor nn_kl_div_body(const Call&, const Tensor& input, const Tensor& target, OptBool size_average,
                      OptBool reduce, std::string_view reduction, bool log_target) {
  const bool by_batch = reduction == "batchmean" && !size_average && !reduce;
  const int64_t how = by_batch ? kSum : reduction_of(reduction, size_average, reduce);
  if (how == kMean)
    show_warning(
        "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' "
        "divides only by the batch size, and aligns with the KL div math definition.'mean' will be changed "
        "to behave the same as 'batchmean' in the next major release.");
  const Tensor loss = kl_div_raw(input, target, how, log_target);
  return by_batch && input.dim() != 0 ? loss / Scalar(input->sizes[0]) : loss;
}

Tensor nn_poisson_nll_body(const Call&, const Tensor& input, const Tensor& target, bool log_input, bool full,
                           OptBool size_average, double eps, OptBool reduce, std::string_view reduction) {
  return poisson_nll_loss(input, target, log_input, full, eps, reduction_of(reduction, size_average, reduce));
}

Tensor nn_soft_margin_body(const Call&, const Tensor& input, const Tensor& target, OptBool size_average,
                           OptBool reduce, std::string_view reduction) {
  return soft_margin_loss(input, target, reduction_of(reduction, size_average, reduce));
}

Tensor nn_multilabel_soft_margin_body(const Call&, const Tensor& input, const Tensor& target,
                                      const Tensor& weight, OptBool size_average, OptBool reduce,
                                      std::string_view reduction) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  Tensor loss = -(target * log_sigmoid(input) + (Scalar(1) - target) * log_sigmoid(-input));
  if (weight.defined()) loss = loss * weight;
  const int64_t classes = input.dim() - 1;  // of a loss that has more dimensions, too
  return reduced(sum_dim(loss, IntList{classes}, false, std::nullopt) / Scalar(input.size(classes)), how);
}

}  // namespace

void register_likelihood_loss_operators(Table& t) {
  t.composite(kl_div_raw,
              "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
              kl_div_body)
      .function_only()
      .doc("Kullback-Leibler divergence of target from the log probabilities in self.")
      .autocast(Cast::Float);
  t.composite(poisson_nll_loss,
              "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
              "reduction) -> Tensor",
              poisson_nll_body)
      .function_only()
      .doc("Negative log likelihood of Poisson counts; input is the rate or its logarithm.")
      .autocast(Cast::Float);
  t.composite(soft_margin_loss, "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
              soft_margin_body)
      .internal()
      .doc("log(1 + exp(-target self)).")
      .autocast(Cast::Float);
  t.composite(kl_div,
              "nn::kl_div(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
              "reduction='mean', bool log_target=False) -> Tensor",
              nn_kl_div_body)
      .doc("Kullback-Leibler divergence of target from the log probabilities in input.");
  t.composite(
       "nn::poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? "
       "size_average=None, float eps=1e-08, bool? reduce=None, str reduction='mean') -> Tensor",
       nn_poisson_nll_body)
      .doc("Negative log likelihood of Poisson counts; input is the rate or its logarithm.")
      .autocast(Cast::Float);
  t.composite(
       "nn::soft_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
       "reduction='mean') -> Tensor",
       nn_soft_margin_body)
      .doc("log(1 + exp(-target input)).")
      .autocast(Cast::Float);
  t.composite(
       "nn::multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, bool? "
       "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
       nn_multilabel_soft_margin_body)
      .doc("Mean over classes of the binary cross entropy of logits.");
}

}  // namespace rushlight
