// Hinge losses of rows of class scores, and their derivatives.
#include "cpu/margin_loss.h"
#include "dispatch/table.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/loss.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/reference.h"
#include "ops/scan.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Fn<Tensor(const Tensor& self, const Tensor& target, bool squared, double margin, const Tensor& weight)>
    margin_rows;
Fn<Tensor(const Tensor& grad, const Tensor& self, const Tensor& target, bool squared, double margin,
          const Tensor& weight)>
    margin_rows_backward;

// In public operators. One row for each listed class, one column for each class that is not listed.
Tensor rows_in_operators(const Tensor& x, const Tensor& target, bool squared, double margin,
                         const Tensor& weight) {
  const bool listed = target.dim() == 2;
  const Tensor first = listed ? target : unsqueeze(target, 1);
  const Tensor counts =
      listed ? cumprod(to_dtype(first >= Scalar(int64_t{0}), DType::Int64), 1) : ones_like(first);
  const Tensor y = clamp_min(first, Scalar(int64_t{0})), counted = to_dtype(counts, x.dtype());
  const Tensor others = to_dtype(scatter_add(zeros_like(x), 1, y, counted) <= Scalar(0), x.dtype());
  Tensor z = clamp_min(Scalar(margin) - unsqueeze(gather(x, 1, y, false), 2) + unsqueeze(x, 1), Scalar(0));
  if (squared) z = z * z;
  const Tensor loss =
      sum_dim(z * unsqueeze(counted, 2) * unsqueeze(others, 1), IntList{1, 2}, false) / Scalar(x.size(1));
  return weight.defined() ? loss * index_select(weight, 0, target) : loss;
}

Tensor slopes_in_operators(const Tensor& grad, const Tensor& x, const Tensor& target, bool squared,
                           double margin, const Tensor& weight) {
  const auto reference = [&](const std::vector<Tensor>& in) {
    return rows_in_operators(in[0], target, squared, margin, weight);
  };
  return gradients_of_reference(reference, {x}, grad)[0];
}

void check_rows(const Tensor& x, const Tensor& target, const Tensor& weight) {
  const bool fits = x.dim() == 2 && x->sizes[1] > 0 && is_floating(x.dtype()) && target.dim() > 0 &&
                    target->sizes[0] == x->sizes[0] && (target.dim() == 1 || target.sizes() == x.sizes());
  RL_CHECK(fits && target.dtype() == DType::Int64,
           "_margin_loss: expected a row of scores and a target, or as many as scores, of int64 for each "
           "example, got ",
           describe(x), " and ", describe(target));
  RL_CHECK(!weight.defined() || (weight.dim() <= 1 && weight.numel() == x.size(1)),
           "inconsistent weight size, expected ", x.size(1), " but got ",
           weight.defined() ? to_string(weight.sizes()) : "");
}

struct Operands {
  Operands(const Tensor& x, const Tensor& target, bool squared, double margin, const Tensor& weight)
      : scores(contiguous(x)), targets(contiguous(target)) {
    if (weight.defined()) weights = contiguous(to_dtype(weight, x.dtype()));
    plan.rows = x.size(0), plan.classes = x.size(1);
    plan.target = targets.data<int64_t>();
    plan.listed = target.dim() == 2, plan.squared = squared, plan.margin = margin;
    if (weights.defined()) plan.weight = weights.data_ptr();
    cpu::check_margin_targets(plan);
  }

  Tensor scores, targets, weights;
  cpu::MarginPlan plan;
};

Tensor margin_rows_kernel(const Call&, const Tensor& x, const Tensor& target, bool squared, double margin,
                          const Tensor& weight) {
  check_rows(x, target, weight);
  if (!x.is_cpu() || !x.has_data()) return rows_in_operators(x, target, squared, margin, weight);
  const Operands operands(x, target, squared, margin, weight);
  const Tensor losses = empty_tensor(IntList{x.size(0)}, x.dtype());
  cpu::margin_loss(operands.plan, x.dtype(), operands.scores.data_ptr(), losses.data_ptr());
  return losses;
}

Tensor margin_rows_backward_kernel(const Call&, const Tensor& grad, const Tensor& x, const Tensor& target,
                                   bool squared, double margin, const Tensor& weight) {
  check_rows(x, target, weight);
  RL_CHECK(grad.dim() == 1 && grad->sizes[0] == x->sizes[0] && grad.dtype() == x.dtype(),
           "_margin_loss_backward: expected the gradient of a loss for each row of ", describe(x), ", got ",
           describe(grad));
  const Tensor result = empty_tensor(x.sizes(), x.dtype(), x.device());
  if (!x.is_cpu() || !x.has_data()) return result;
  const Operands operands(x, target, squared, margin, weight);
  const Tensor g = contiguous(grad);
  cpu::margin_loss_backward(operands.plan, x.dtype(), g.data_ptr(), operands.scores.data_ptr(),
                            result.data_ptr());
  return result;
}

// --- the losses

void check_scores(const Tensor& x, std::string_view who) {
  RL_CHECK_AS(NotImplemented, is_floating(x.dtype()), "\"", who, "\" not implemented for '",
              legacy_name(x.dtype()), "'");
  const bool empty_batch = x.dim() == 2 && x->sizes[0] == 0 && x->sizes[1] != 0;
  RL_CHECK(empty_batch || (x.dim() <= 2 && x.numel()),
           "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", x.sizes());
}
Tensor rows_of(const Tensor& x) { return x.dim() == 2 ? x : reshape(x, IntList{1, -1}); }
void check_classes(const Tensor& target) {
  RL_CHECK(target.dtype() == DType::Int64, "expected scalar type Long but found ",
           legacy_name(target.dtype()));
}

Tensor multi_margin_body(const Call& call, const Tensor& self, const Tensor& target, const Scalar& p,
                         const Scalar& margin, const Tensor& weight, int64_t reduction) {
  const double power = p.to_double();
  RL_CHECK(power == 1 || power == 2, "only p == 1 and p == 2 supported");
  check_scores(self, call.op.name());
  const Tensor x = rows_of(self);
  RL_CHECK(target.dim() <= 1 && target.numel() == x.size(0),
           "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
           "(batch size). Expected target size [",
           x.size(0), "], but got ", target.sizes(), ". Input has shape ", self.sizes(), ".");
  check_classes(target);
  const Tensor loss = margin_rows(x, reshape(target, IntList{-1}), power == 2, margin.to_double(), weight);
  return reduced(self.dim() == 2 || target.dim() ? loss : squeeze_dim(loss, 0), reduction);
}

Tensor multilabel_margin_body(const Call& call, const Tensor& self, const Tensor& target, int64_t reduction) {
  check_scores(self, call.op.name());
  RL_CHECK(target.sizes() == self.sizes(), "inconsistent target size: ", target.sizes(),
           " for input of size: ", self.sizes());
  check_classes(target);
  const Tensor x = rows_of(self), loss = margin_rows(x, reshape(target, x.sizes()), false, 1.0, Tensor());
  return reduced(self.dim() == 2 ? loss : squeeze_dim(loss, 0), reduction);
}

Tensor nn_multi_margin_body(const Call&, const Tensor& input, const Tensor& target, const Scalar& p,
                            const Scalar& margin, const Tensor& weight, OptBool size_average, OptBool reduce,
                            std::string_view reduction) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  RL_CHECK_VALUE(p.to_double() == 1 || p.to_double() == 2, "only p == 1 and p == 2 supported");
  RL_CHECK_VALUE(!weight.defined() || weight.dim() == 1, "weight must be one-dimensional");
  return multi_margin_loss(input, target, p, margin, weight, how);
}
Tensor nn_multilabel_margin_body(const Call&, const Tensor& input, const Tensor& target, OptBool size_average,
                                 OptBool reduce, std::string_view reduction) {
  return multilabel_margin_loss(input, target, reduction_of(reduction, size_average, reduce));
}

}  // namespace

void register_margin_loss_operators(Table& t) {
  t.composite(multi_margin_loss,
              "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
              "weight=None, int reduction=1) -> Tensor",
              multi_margin_body)
      .internal()
      .doc("Hinge loss between the target class and each other, to the power p, averaged over classes.")
      .autocast(Cast::Float);
  t.composite(multilabel_margin_loss,
              "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
              multilabel_margin_body)
      .internal()
      .doc("Hinge loss between each target class (listed up to the first -1) and each other class.")
      .autocast(Cast::Float);
  t.composite(
       "nn::multi_margin_loss(Tensor input, Tensor target, Scalar p=1, Scalar margin=1.0, Tensor? "
       "weight=None, bool? size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
       nn_multi_margin_body)
      .doc("Hinge loss between the target class and each other, to the power p, averaged over classes.")
      .autocast(Cast::Float);
  t.composite(
       "nn::multilabel_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
       "str reduction='mean') -> Tensor",
       nn_multilabel_margin_body)
      .doc("Hinge loss between each target class (listed up to the first -1) and each other class.")
      .autocast(Cast::Float);
  t.op(margin_rows,
       "_margin_loss(Tensor self, Tensor target, bool squared, float margin, Tensor? weight) -> Tensor",
       margin_rows_kernel)
      .absent_in_pytorch()
      .function_only()
      .on_devices()
      .doc(
          "By row, the mean over all classes of max(0, margin - score of the target + score of another) or "
          "of "
          "its square, summed over the targets: one, or those listed before a -1.")
      .family(Family::Loss)
      .derivative(
          [](Grad g, In<0> x, In<1> target, Attr<2, bool> squared, Attr<3, double> margin, In<4> weight) {
            return Grads{Tensor(x).is_cpu() ? margin_rows_backward(g, x, target, squared, margin, weight)
                                            : slopes_in_operators(g, x, target, squared, margin, weight)};
          });
  t.op(margin_rows_backward,
       "_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, bool squared, float margin, "
       "Tensor? weight) -> Tensor",
       margin_rows_backward_kernel)
      .absent_in_pytorch()
      .internal()
      .doc("Gradient of _margin_loss.")
      .family(Family::Gradient)
      .derivative([](Grad g, In<0> grad, In<1> x, In<2> target, Attr<3, bool> squared, Attr<4, double> margin,
                     In<5> weight) {
        const auto reference = [&](const std::vector<Tensor>& in) {
          return slopes_in_operators(in[0], in[1], target, squared, margin, weight);
        };
        return gradients_of_reference(reference, {grad, x}, g);
      });
}

}  // namespace rushlight
