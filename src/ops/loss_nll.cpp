// Negative log likelihood and cross entropy.
#include <cstring>

#include "cpu/loss.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/index.h"
#include "ops/loss.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/softmax.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// Target and weight as the kernels read them, kept alive with the plan.
struct Targets {
  Tensor target, weight;
  cpu::NllPlan plan;
};

Targets targets_of(IntList input, DType dtype, const Tensor& target, const Tensor& weight, int64_t ignored) {
  RL_CHECK(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8,
           "expected target dtype to be Long or Byte, but got ", legacy_name(target.dtype()));
  Targets t{as_contiguous(to_dtype(target, DType::Int64)), as_contiguous(weight), {}};
  const size_t d = input.size() == 1 ? 0 : 1;
  t.plan.batch = d ? input[0] : 1;
  t.plan.classes = input[d];
  t.plan.inner = checked_numel(input.slice(d + 1));
  t.plan.ignored = ignored;
  t.plan.target = t.target.data<int64_t>();
  if (weight.defined()) {
    RL_CHECK(weight.dim() == 1 && weight.numel() == t.plan.classes,
             "weight tensor should be defined either for all ", t.plan.classes,
             " classes or no classes but got weight tensor of shape: ", weight.sizes());
    RL_CHECK(weight.dtype() == dtype, "expected scalar type ", legacy_name(dtype), " but found ",
             legacy_name(weight.dtype()));
    t.plan.weight = t.weight.data_ptr();
  }
  return t;
}

std::tuple<Tensor, Tensor> run_nll(const Tensor& self, const Tensor& target, const Tensor& weight,
                                   int64_t reduction, int64_t ignored) {
  const DType dtype = self.dtype();
  if (!is_floating(dtype))
    RL_NOT_IMPLEMENTED("\"nll_loss_out_frame\" not implemented for '", legacy_name(dtype), "'");
  Tensor total = empty_tensor(IntList{}, dtype, self.device());
  Tensor loss = empty_tensor(reduction == kNone ? target.sizes() : IntList{}, dtype, self.device());
  const DeviceLayers* layers = device_layers(self);
  if (!self.is_cpu() && !layers) return {loss, total};
  const Targets t = targets_of(self.sizes(), dtype, target, weight, ignored);
  const Tensor x = as_contiguous(self);
  if (layers) {
    const int device = self.device().index();
    if (reduction != kNone) {
      layers->nll_sum(device, dtype, t.plan, x.data_ptr(), reduction == kMean, loss.data_ptr(),
                      total.data_ptr());
      return {loss, total};
    }
    layers->nll_each(device, dtype, t.plan, x.data_ptr(), loss.data_ptr());
    loops::copy(total, scalar_tensor_of(0, dtype));
    return {loss, total};
  }
  cpu::check_targets(t.plan);
  auto store = [&](const Tensor& to, double value) {
    visit_dtype(FloatTypes{}, dtype, "nll_loss",
                [&](auto tag) { *to.data<decltype(tag)>() = convert<decltype(tag)>(value); });
  };
  if (reduction == kNone) {
    cpu::nll_each(t.plan, dtype, x.data_ptr(), loss.data_ptr());
    store(total, 0);
    return {loss, total};
  }
  const cpu::NllSums sums = cpu::nll_sums(t.plan, dtype, x.data_ptr());
  store(loss, reduction == kMean ? sums.loss / sums.weight : sums.loss);
  store(total, sums.weight);
  return {loss, total};
}

std::tuple<Tensor, Tensor> nll_loss_kernel(const Call&, const Tensor& self, const Tensor& target,
                                           const Tensor& weight, int64_t reduction, int64_t ignored) {
  RL_CHECK(self.dim() > 0 && self.dim() <= 2, "input tensor should be 1D or 2D");
  RL_CHECK(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  RL_CHECK(self.dim() == 1 ? target.dim() == 0 : target.dim() == 1 && self->sizes[0] == target->sizes[0],
           "size mismatch (got input: ", self.sizes(), ", target: ", target.sizes(), ")");
  return run_nll(self, target, weight, reduction, ignored);
}

std::tuple<Tensor, Tensor> nll_loss2d_kernel(const Call&, const Tensor& self, const Tensor& target,
                                             const Tensor& weight, int64_t reduction, int64_t ignored) {
  RL_CHECK(
      self.dim() >= 3 && target.dim() == self.dim() - 1,
      "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  RL_CHECK(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8,
           "expected target dtype to be Long or Byte, but got ", legacy_name(target.dtype()));
  bool fits = self->sizes[0] == target->sizes[0];
  for (int64_t d = 2; d < self.dim(); ++d) fits &= self->sizes[d] == target->sizes[d - 1];
  RL_CHECK(fits, "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes(), ")");
  return run_nll(self, target, weight, reduction, ignored);
}

Tensor nll_loss_backward_kernel(const Call&, const Tensor& grad, const Tensor& target, const Tensor& weight,
                                int64_t reduction, int64_t ignored, const Tensor& total_weight,
                                IntList input_sizes) {
  Tensor result = empty_tensor(input_sizes, grad.dtype(), grad.device());
  if (result.device().is_meta() || result.numel() == 0) return result;
  loops::copy(result, scalar_tensor_of(0, result.dtype()));
  RL_CHECK(!input_sizes.empty(), "nll_loss_backward: the input has no dimension for its classes");
  const Targets t = targets_of(input_sizes, grad.dtype(), target, weight, ignored);
  RL_CHECK(target.numel() == t.plan.batch * t.plan.inner &&
               grad.numel() == (reduction == kNone ? target.numel() : 1),
           "nll_loss_backward: a gradient of shape ", grad.sizes(), " and a target of shape ", target.sizes(),
           " do not fit an input of shape ", input_sizes);
  if (const DeviceLayers* layers = device_layers(grad)) {
    const Tensor flow = as_contiguous(grad);
    layers->nll_backward(grad.device().index(), grad.dtype(), t.plan, flow.data_ptr(), reduction == kNone,
                         reduction == kMean ? total_weight.data_ptr() : nullptr, result.data_ptr());
    return result;
  }
  cpu::check_targets(t.plan);
  const double scale = reduction == kMean ? 1 / read_scalar(total_weight, 0).to_double() : 1;
  const Tensor g = as_contiguous(grad);
  cpu::nll_backward(t.plan, grad.dtype(), g.data_ptr(), reduction == kNone, scale, result.data_ptr());
  return result;
}

// The target of a sample without a batch, which may come in a list.
Tensor target_of(const Tensor& input, const Tensor& target) {
  if (input.dim() != 1 || target.dim() != 1) return target;
  RL_CHECK_VALUE(target.numel() == 1,
                 "For 1D input, 1D target must have size 1, but got target size: ", target.numel());
  return reshape(target, IntList{});
}

// Class dimension 1, or 0 of a single sample; anything behind it belongs to the samples.
Tensor nll_of(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
              int64_t ignored) {
  RL_CHECK_VALUE(input.dim() >= 1, "Expected 1 or more dimensions (got ", input.dim(), ")");
  RL_CHECK_VALUE(input.dim() == 1 || (target.dim() > 0 && input->sizes[0] == target->sizes[0]),
                 "Expected input batch_size (", input->sizes[0], ") to match target batch_size (",
                 target.dim() ? target->sizes[0] : 0, ").");
  if (input.dim() <= 2) return std::get<0>(nll_loss_forward(input, target, weight, reduction, ignored));
  return std::get<0>(nll_loss2d_forward(input, target, weight, reduction, ignored));
}

template <auto& forward>
Tensor first_of(const Call&, const Tensor& self, const Tensor& target, const Tensor& weight,
                int64_t reduction, int64_t ignored) {
  return std::get<0>(forward(self, target, weight, reduction, ignored));
}

Tensor nll_loss_nd_body(const Call&, const Tensor& self, const Tensor& target, const Tensor& weight,
                        int64_t reduction, int64_t ignored) {
  return nll_of(self, target_of(self, target), weight, reduction, ignored);
}
Tensor nll_loss_body(const Call&, const Tensor& input, const Tensor& target, const Tensor& weight,
                     OptBool size_average, int64_t ignored, OptBool reduce, std::string_view reduction) {
  return nll_loss_nd(input, target, weight, reduction_of(reduction, size_average, reduce), ignored);
}

Tensor weight_along(const Tensor& weight, int64_t dim) {
  return dim == 1 ? weight : view(weight, [&] {
    Dims sizes(static_cast<size_t>(dim - 1), 1);
    sizes[0] = weight.numel();
    return sizes;
  }());
}

Tensor cross_entropy_with_probabilities(const Tensor& input, const Tensor& given, const Tensor& weight,
                                        int64_t reduction, int64_t ignored, double smoothing) {
  const int64_t class_dim = input.dim() == 1 ? 0 : 1, classes = input->sizes[class_dim];
  RL_CHECK(is_floating(given.dtype()),
           "Expected floating point type for target with class probabilities, got ",
           legacy_name(given.dtype()));
  RL_CHECK(ignored < 0, "ignore_index is not supported for floating point target");
  RL_CHECK(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
           "cross_entropy: weight tensor should be defined either for all ", classes,
           " classes or no classes but got weight tensor of shape: ", weight.sizes());
  const Tensor target = smoothing > 0
                            ? given * Scalar(1 - smoothing) + Scalar(smoothing / static_cast<double>(classes))
                            : given;
  Tensor terms = log_softmax(input, class_dim, std::nullopt) * target;
  if (weight.defined()) terms = terms * weight_along(weight, input.dim());
  if (reduction == kNone) return -sum_dim(terms, IntList{class_dim}, false, std::nullopt);
  const Tensor total = -sum(terms);
  if (reduction == kSum) return total;
  return total / Scalar(static_cast<double>(input.numel()) / static_cast<double>(classes));
}

// (1 - s) * nll + s / classes * (sum over classes of -log p), the latter averaged as the former.
Tensor smoothed(const Tensor& log_p, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignored, double smoothing) {
  const int64_t class_dim = log_p.dim() == 1 ? 0 : 1, classes = log_p->sizes[class_dim];
  const Tensor nll = nll_of(log_p, target, weight, reduction, ignored);
  const Tensor weighted = weight.defined() ? log_p * weight_along(weight, log_p.dim()) : log_p;
  const Tensor mask = rushlight::eq(target, Scalar(ignored));
  const Tensor smooth =
      rushlight::masked_fill(-sum_dim(weighted, IntList{class_dim}, false, std::nullopt), mask, Scalar(0));
  Tensor uniform;
  if (reduction == kNone) {
    uniform = smooth;
  } else if (reduction == kSum) {
    uniform = sum(smooth);
  } else if (weight.defined()) {
    const Tensor classes_of = flatten(rushlight::masked_fill(target, mask, Scalar(0)), 0, -1);
    uniform = sum(smooth) / sum(rushlight::masked_fill(gather(weight, 0, classes_of, false),
                                                       flatten(mask, 0, -1), Scalar(0)));
  } else {
    uniform = sum(smooth) / to_dtype(sum(~mask), smooth.dtype());
  }
  return nll * Scalar(1 - smoothing) + uniform * Scalar(smoothing / static_cast<double>(classes));
}

Tensor cross_entropy_loss_body(const Call&, const Tensor& input, const Tensor& given, const Tensor& weight,
                               int64_t reduction, int64_t ignored, double smoothing) {
  RL_CHECK(smoothing >= 0 && smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
  RL_CHECK_VALUE(input.dim() >= 1, "Expected 1 or more dimensions (got ", input.dim(), ")");
  if (input.sizes() == given.sizes())
    return cross_entropy_with_probabilities(input, given, weight, reduction, ignored, smoothing);
  const Tensor target = target_of(input, given);
  const Tensor log_p = log_softmax(input, input.dim() == 1 ? 0 : 1, std::nullopt);
  return smoothing > 0 ? smoothed(log_p, target, weight, reduction, ignored, smoothing)
                       : nll_of(log_p, target, weight, reduction, ignored);
}

Tensor cross_entropy_body(const Call&, const Tensor& input, const Tensor& target, const Tensor& weight,
                          OptBool size_average, int64_t ignored, OptBool reduce, std::string_view reduction,
                          double smoothing) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  return cross_entropy_loss(input, target, weight, how, ignored, smoothing);
}

template <bool Spatial>
auto nll_derivative() {
  return
      [](Grad g, Shape<0> x, In<1> target, In<2> weight, Attr<3, int64_t> reduction, Attr<4, int64_t> ignored,
         Out<1> total) { return nll_loss_backward(g, target, weight, reduction, ignored, total, x); };
}

}  // namespace

void register_nll_operators(Table& t) {
  t.op(nll_loss_forward,
       "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> "
       "(Tensor, Tensor)",
       nll_loss_kernel)
      .doc(
          "Minus the score of each target class, weighted, and the total weight. Shapes: [batch?, classes], "
          "[batch?].")
      .internal()
      .family(Family::Loss)
      .on_devices()
      .autocast(Cast::Float)
      .node("NllLossBackward0")
      .derivative(nll_derivative<false>());
  t.op(nll_loss2d_forward,
       "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> "
       "(Tensor, Tensor)",
       nll_loss2d_kernel)
      .doc("As nll_loss, for scores of [batch, classes, height, width].")
      .internal()
      .family(Family::Loss)
      .on_devices()
      .autocast(Cast::Float)
      .node("NllLoss2DBackward0")
      .derivative(nll_derivative<true>());
  t.composite(
       "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
       "ignore_index=-100) -> Tensor",
       first_of<nll_loss_forward>)
      .internal()
      .doc("What nll_loss_forward gives, without the total weight.")
      .autocast(Cast::Float);
  t.composite(
       "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
       "ignore_index=-100) -> Tensor",
       first_of<nll_loss2d_forward>)
      .internal()
      .doc("What nll_loss2d_forward gives, without the total weight.")
      .autocast(Cast::Float);
  t.op(nll_loss_backward,
       "nll_loss_backward(Tensor grad_output, Tensor target, Tensor? weight, int reduction, int "
       "ignore_index, Tensor total_weight, int[] input_sizes) -> Tensor",
       nll_loss_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradient of nll_loss with respect to its scores.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .derivative(
          [](Grad g, In<1> target, In<2> weight, Attr<3, int64_t> reduction, Attr<4, int64_t> ignored) {
            return Grads{nll_of(g, target, weight, reduction, ignored), Tensor(), Tensor(), Tensor()};
          });
  t.composite(nll_loss_nd,
              "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
              "ignore_index=-100) -> Tensor",
              nll_loss_nd_body)
      .internal()
      .doc("Minus the log probability of each target class. Shapes: [batch, classes, ...] and [batch, ...].")
      .autocast(Cast::Float);
  t.composite(cross_entropy_loss,
              "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
              "ignore_index=-100, float label_smoothing=0.0) -> Tensor",
              cross_entropy_loss_body)
      .internal()
      .doc("Cross entropy of softmax(self) and target classes or class probabilities.")
      .autocast(Cast::Float);
  t.composite(nll_loss,
              "nn::nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
              "ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor",
              nll_loss_body)
      .doc("Minus the log probability of each target class. Shapes: [batch, classes, ...] and [batch, ...].")
      .autocast(Cast::Float);
  t.composite(
       cross_entropy,
       "nn::cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
       "ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0) -> Tensor",
       cross_entropy_body)
      .absent_in_pytorch()
      .doc("Cross entropy of softmax(input) and target classes or class probabilities.")
      .autocast(Cast::Float);
}

}  // namespace rushlight
