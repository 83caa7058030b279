#include "ops/loss.h"

#include <limits>

#include "core/parallel.h"
#include "cpu/fused.h"
#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/norm_common.h"
#include "ops/operators.h"
#include "ops/pointwise_family.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

Reduction reduction_of(std::string_view reduction, std::optional<bool> size_average,
                       std::optional<bool> reduce) {
  if (size_average || reduce) {
    reduction = !reduce.value_or(true) ? "none" : size_average.value_or(true) ? "mean" : "sum";
    show_warning(str("size_average and reduce args will be deprecated, please use reduction='", reduction,
                     "' instead."));
  }
  if (reduction == "mean") return kMean;
  if (reduction == "sum") return kSum;
  RL_CHECK_VALUE(reduction == "none", reduction, " is not a valid value for reduction");
  return kNone;
}

Tensor reduced(const Tensor& loss, int64_t reduction) {
  return reduction == kMean ? mean(loss) : reduction == kSum ? sum(loss) : loss;
}

Tensor in_type_of(const Tensor& operand, const Tensor& loss, std::string_view who) {
  RL_CHECK(can_cast(loss.dtype(), operand.dtype()), "result type ", legacy_name(loss.dtype()),
           " can't be cast to the desired output type ", legacy_name(operand.dtype()), " (", who, " got ",
           describe(operand), ": convert it to a floating-point dtype)");
  return to_dtype(loss, operand.dtype());
}

namespace {

// How much of a reduced loss's gradient each element gets.
Tensor each_gradient(const Tensor& g, int64_t reduction, const Tensor& like) {
  return reduction == kMean ? g / Scalar(std::max<int64_t>(1, like.numel())) : g;  // of nothing, nothing
}
// x - y, of truth values too.
Tensor difference(const Tensor& x, const Tensor& y) {
  const DType common = pointwise::common_type(Promote::Same, {&x, &y});
  return (is_bool(x.dtype()) ? to_dtype(x, common) : x) - (is_bool(y.dtype()) ? to_dtype(y, common) : y);
}

// --- the losses without arguments' handling: fused for the graph, so that one node stands for one loss

// A formula over both operands, in one pass.
template <Formula F, class... P>
Tensor differences(const Call& call, const Tensor& self, const Tensor& target, const P&... parameters) {
  static const PointwiseSpec* spec = pointwise::make_spec(F, Promote::Same);
  const Scalar list[sizeof...(P) + 1] = {parameters...};
  return pointwise::binary_with(Call{call.op}, *spec, self, target, {list, sizeof...(P)});
}

// Whether slopes are not differentiated again: then they are bounds, elsewhere choices.
bool once() { return !derivatives_wanted() && !dispatch_state.level; }

// The gradient each * min(max(scale * (x - y), -bound), bound) in one pass over memory; undefined where the
// operators that compute it one after the other must be seen or have more to do.
Tensor gradient_in_one_pass(const Tensor& each, const Tensor& x, const Tensor& y, double scale,
                            double bound = std::numeric_limits<double>::infinity()) {
  const auto alike = [&](const Tensor& t) { return t.is_cpu() && t.dtype() == x.dtype(); };
  const bool numbers_fit = x.dtype() == DType::Float32 || x.dtype() == DType::Float64;  // halves round them
  if (x.numel() < kGrainSize || !numbers_fit || !alike(x) || !alike(y) || !alike(each) ||
      x.sizes() != y.sizes() || !x.is_contiguous() || !once() || observed({&each, &x, &y}))
    return {};
  cpu::FusedProgram program;
  program.type = x.dtype();
  program.shape = x.sizes().dims();
  program.input_by_row = program.input_bool = {false, false, false};
  program.numbers = {scale};
  int slope = program.append(Formula::Sub, {0, 1});
  if (scale != 1) slope = program.append(Formula::Mul, {slope, program.number_register(0)});
  if (bound < std::numeric_limits<double>::infinity())
    slope = program.append(Formula::Clamp, {slope}, {Scalar(-bound), Scalar(bound)});
  program.outputs = {program.append(Formula::Mul, {2, slope})};
  const Tensor gradient = empty_tensor(x.sizes(), x.dtype());
  cpu::run_fused(program, std::array{x, y, each}, {&gradient, 1});
  return gradient;
}

Tensor mse_kernel(const Call& call, const Tensor& self, const Tensor& target, int64_t reduction) {
  const DType type = pointwise::common_type(Promote::Same, {&self, &target});
  if (!is_floating(type)) RL_NOT_IMPLEMENTED("\"mse_cpu\" not implemented for '", legacy_name(type), "'");
  return reduced(differences<Formula::SquaredDifference>(call, self, target), reduction);
}

Tensor mse_gradient(const Tensor& each, const Tensor& x, const Tensor& y) {
  if (const Tensor gx = gradient_in_one_pass(each, x, y, 2); gx.defined()) return gx;
  return each * difference(x, y) * Scalar(2);
}

Tensor smooth_l1_kernel(const Call& call, const Tensor& self, const Tensor& target, int64_t reduction,
                        double beta) {
  RL_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  if (beta == 0) return reduced(abs(self - target), reduction);
  return reduced(differences<Formula::SmoothL1>(call, self, target, Scalar(beta)), reduction);
}
Tensor smooth_l1_slope(const Tensor& d, double beta) {
  if (beta > 0 && once()) return ops::clamp(d * Scalar(1 / beta), Scalar(-1), Scalar(1));
  return beta == 0 ? sign(d) : ops::where(abs(d) < Scalar(beta), d * Scalar(1 / beta), sign(d));
}
Tensor smooth_l1_gradient(const Tensor& each, const Tensor& x, const Tensor& y, double beta) {
  if (beta > 0)
    if (const Tensor gx = gradient_in_one_pass(each, x, y, 1 / beta, 1); gx.defined()) return gx;
  return each * smooth_l1_slope(difference(x, y), beta);
}

Tensor huber_kernel(const Call& call, const Tensor& self, const Tensor& target, int64_t reduction,
                    double delta) {
  RL_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  RL_CHECK(!is_complex(target.dtype()) || is_complex(self.dtype()), "result type ",
           legacy_name(target.dtype()), " can't be cast to the desired output type ",
           legacy_name(self.dtype()));
  const Tensor loss = differences<Formula::Huber>(call, self, target, Scalar(delta));
  return reduced(in_type_of(self, loss, "huber_loss"), reduction);
}
Tensor huber_slope(const Tensor& d, double delta) {
  if (once()) return ops::clamp(d, Scalar(-delta), Scalar(delta));
  return ops::where(abs(d) <= Scalar(delta), d, sign(d) * Scalar(delta));
}
Tensor huber_gradient(const Tensor& each, const Tensor& x, const Tensor& y, double delta) {
  if (const Tensor gx = gradient_in_one_pass(each, x, y, 1, delta); gx.defined()) return gx;
  return each * huber_slope(difference(x, y), delta);
}

Tensor weighted(const Tensor& t, const Tensor& weight) { return weight.defined() ? t * weight : t; }

// Logarithms are cut off at -100, so that a certain mistake stays finite.
Tensor cut_log(const Tensor& p) { return clamp_min(log(p), Scalar(-100)); }
Tensor cut_log1m(const Tensor& p) { return clamp_min(log1p(-p), Scalar(-100)); }

// The target by the sizes of the probabilities: dimensions of size 1 may differ, nothing is broadcast.
Tensor target_of(const Tensor& self, const Tensor& target) {
  if (target.sizes() == self.sizes()) return target;
  auto without_ones = [](IntList sizes) {
    Dims rest;
    for (const int64_t size : sizes)
      if (size != 1) rest.push_back(size);
    return rest;
  };
  RL_CHECK(without_ones(target.sizes()) == without_ones(self.sizes()),
           "binary_cross_entropy: the target's sizes ", target.sizes(), " do not fit the input's, ",
           self.sizes());
  return reshape(target, self.sizes());
}

void check_probabilities(const Tensor& t, const char* name) {
  if (t.is_cpu() && t.numel())
    RL_CHECK(read_scalar(min(t)).to_double() >= 0 && read_scalar(max(t)).to_double() <= 1, "all elements of ",
             name, " should be between 0 and 1");
}

Tensor bce_kernel(const Call&, const Tensor& self, const Tensor& given, const Tensor& weight,
                  int64_t reduction) {
  if (!is_floating(self.dtype()))
    RL_NOT_IMPLEMENTED("\"binary_cross_entropy\" not implemented for '", legacy_name(self.dtype()), "'");
  check_probabilities(self, "input");
  const Tensor target = target_of(self, given);
  check_probabilities(target, "target");
  const Tensor loss = (target - Scalar(1)) * cut_log1m(self) - target * cut_log(self);
  return reduced(weighted(loss, weight), reduction);
}

Tensor bce_logits_kernel(const Call&, const Tensor& self, const Tensor& target, const Tensor& weight,
                         const Tensor& pos_weight, int64_t reduction) {
  Tensor log_weight = log_sigmoid(self);
  if (pos_weight.defined()) log_weight = log_weight * ((pos_weight - Scalar(1)) * target + Scalar(1));
  const Tensor loss = weighted((Scalar(1) - target) * self - log_weight, weight);
  return reduced(in_type_of(target, loss, "binary_cross_entropy_with_logits"), reduction);
}

// --- nn.functional

struct Pair {
  Tensor input, target;
};
Pair broadcast_pair(const Tensor& input, const Tensor& target) {
  if (input.sizes() == target.sizes()) return {input, target};
  show_warning(str("Using a target size (torch.Size(", target.sizes(),
                   ")) that is different to the input size (torch.Size(", input.sizes(),
                   ")). This will likely lead to incorrect results due to broadcasting. Please ensure they "
                   "have the same size."));
  const Dims sizes = broadcast_shapes(input.sizes(), target.sizes());
  return {expand(input, sizes, false), expand(target, sizes, false)};
}

Tensor with_weights(const Tensor& loss, const Tensor& weight, const Tensor& input, int64_t reduction,
                    bool divide_by_weights) {
  RL_CHECK_VALUE(weight.sizes() == input.sizes(), "Weights and input must have the same size.");
  const Tensor scaled = loss * weight;
  return reduction == kMean && divide_by_weights ? sum(scaled) / sum(weight) : reduced(scaled, reduction);
}

Tensor l1_loss_raw_body(const Call&, const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced(abs(self - target), reduction);
}

Tensor mse_loss_body(const Call&, const Tensor& input, const Tensor& target, OptBool size_average,
                     OptBool reduce, std::string_view reduction, const Tensor& weight) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  const Pair p = broadcast_pair(input, target);
  if (!weight.defined()) return mse_loss_raw(p.input, p.target, how);
  return with_weights(square(p.input - p.target), weight, input, how, true);
}

Tensor l1_loss_body(const Call&, const Tensor& input, const Tensor& target, OptBool size_average,
                    OptBool reduce, std::string_view reduction, const Tensor& weight) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  const Pair p = broadcast_pair(input, target);
  if (!weight.defined()) return l1_loss_raw(p.input, p.target, how);
  return with_weights(abs(p.input - p.target), weight, input, how, true);
}

Tensor smooth_l1_loss_body(const Call&, const Tensor& input, const Tensor& target, OptBool size_average,
                           OptBool reduce, std::string_view reduction, double beta) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  const Pair p = broadcast_pair(input, target);
  return beta == 0 ? l1_loss_raw(p.input, p.target, how) : smooth_l1_loss_raw(p.input, p.target, how, beta);
}

Tensor huber_loss_body(const Call&, const Tensor& input, const Tensor& target, std::string_view reduction,
                       double delta, const Tensor& weight) {
  const int64_t how = reduction_of(reduction);
  const Pair p = broadcast_pair(input, target);
  if (!weight.defined()) return huber_loss_raw(p.input, p.target, how, delta);
  return with_weights(huber_loss_raw(p.input, p.target, kNone, delta), weight, input, how, false);
}

Tensor bce_body(const Call&, const Tensor& input, const Tensor& target, const Tensor& weight,
                OptBool size_average, OptBool reduce, std::string_view reduction) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  RL_CHECK_VALUE(input.sizes() == target.sizes(), "Using a target size (torch.Size(", target.sizes(),
                 ")) that is different to the input size (torch.Size(", input.sizes(),
                 ")) is deprecated. Please ensure they have the same size.");
  RL_CHECK(input.dtype() == target.dtype(), "Found dtype ", legacy_name(target.dtype()), " but expected ",
           legacy_name(input.dtype()));
  const Tensor w =
      weight.defined() && !(weight.sizes() == input.sizes()) ? expand(weight, input.sizes(), false) : weight;
  return binary_cross_entropy_raw(input, target, w, how);
}

Tensor bce_logits_body(const Call&, const Tensor& input, const Tensor& target, const Tensor& weight,
                       OptBool size_average, OptBool reduce, std::string_view reduction,
                       const Tensor& pos_weight) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  RL_CHECK_VALUE(input.sizes() == target.sizes(), "Target size (torch.Size(", target.sizes(),
                 ")) must be the same as input size (torch.Size(", input.sizes(), "))");
  return binary_cross_entropy_with_logits_raw(input, target, weight, pos_weight, how);
}

void register_raw_losses(Table& t) {
  t.op(mse_loss_raw, "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", mse_kernel)
      .doc("Squared differences; reduction 0 keeps them, 1 is the mean, 2 the sum.")
      .internal()
      .family(Family::Loss)
      .on_devices()
      .batching(Batching::Loss)
      .autocast(Cast::Float)
      .derivative([](Grad g, In<0> x, In<1> y, Attr<2, int64_t> reduction, Needs need) {
        const Tensor gx = mse_gradient(each_gradient(g, reduction, x), x, y);
        return Grads{gx, need[1] ? -gx : Tensor()};
      });
  t.op(smooth_l1_loss_raw,
       "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
       smooth_l1_kernel)
      .doc("Absolute differences, squared below beta; reduction 0 keeps them, 1 is the mean, 2 the sum.")
      .internal()
      .family(Family::Loss)
      .on_devices()
      .batching(Batching::Loss)
      .autocast(Cast::Float)
      .derivative([](Grad g, In<0> x, In<1> y, Attr<2, int64_t> reduction, Attr<3, double> beta, Needs need) {
        const Tensor gx = smooth_l1_gradient(each_gradient(g, reduction, x), x, y, beta);
        return Grads{gx, need[1] ? -gx : Tensor()};
      });
  t.op(huber_loss_raw, "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
       huber_kernel)
      .doc("Half squared differences, linear above delta; reduction 0 keeps them, 1 is the mean, 2 the sum.")
      .internal()
      .family(Family::Loss)
      .on_devices()
      .batching(Batching::Loss)
      .autocast(Cast::Float)
      .derivative(
          [](Grad g, In<0> x, In<1> y, Attr<2, int64_t> reduction, Attr<3, double> delta, Needs need) {
            const Tensor gx = huber_gradient(each_gradient(g, reduction, x), x, y, delta);
            return Grads{gx, need[1] ? -gx : Tensor()};
          });
  t.op(binary_cross_entropy_raw,
       "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
       bce_kernel)
      .doc("Cross entropy of probabilities; reduction 0 keeps them, 1 is the mean, 2 the sum.")
      .internal()
      .family(Family::Loss)
      .on_devices()
      .batching(Batching::Loss)
      .autocast(Cast::Float, Cast::Refused)
      .derivative([](Grad g, In<0> p, In<1> given, In<2> w, Attr<3, int64_t> reduction, Needs need) {
        const Tensor each = weighted(each_gradient(g, reduction, p), w), y = target_of(p, given);
        Grads grads;
        grads.push_back(need[0] ? each * (p - y) / clamp_min(p * (Scalar(1) - p), Scalar(1e-12)) : Tensor());
        grads.push_back(need[1] ? reshape(each * (cut_log1m(p) - cut_log(p)), Tensor(given).sizes())
                                : Tensor());
        return grads;
      });
  t.op(binary_cross_entropy_with_logits_raw,
       "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
       "pos_weight=None, int reduction=1) -> Tensor",
       bce_logits_kernel)
      .doc(
          "Cross entropy of the logistic function of self; reduction 0 keeps them, 1 is the mean, 2 the sum.")
      .function_only()
      .family(Family::Loss)
      .on_devices()
      .batching(Batching::Loss)
      .autocast(Cast::Float)
      .derivative([](Grad g, In<0> x, In<1> y, In<2> w, In<3> pw, Attr<4, int64_t> reduction, Needs need) {
        const Tensor each = weighted(each_gradient(g, reduction, x), w);
        Tensor gx, gy;
        if (need[0]) {
          const Tensor positive = pw.defined() ? pw * y : Tensor(y);
          const Tensor all = pw.defined() ? positive + Scalar(1) - y : Tensor();
          gx = each * ((all.defined() ? all * sigmoid(x) : sigmoid(x)) - positive);
        }
        if (need[1]) gy = each * (pw.defined() ? log_sigmoid(-x) - pw * log_sigmoid(x) : -x);
        return Grads{gx, gy};
      });
}

}  // namespace

void register_loss_operators(Table& t) {
  register_nll_operators(t);
  register_raw_losses(t);
  t.composite(l1_loss_raw, "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", l1_loss_raw_body)
      .internal()
      .doc("Absolute differences; reduction 0 keeps them, 1 is the mean, 2 the sum.")
      .autocast(Cast::Float);
  register_likelihood_loss_operators(t);
  register_embedding_loss_operators(t);
  t.composite(mse_loss,
              "nn::mse_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
              "reduction='mean', Tensor? weight=None) -> Tensor",
              mse_loss_body)
      .doc("The squared difference.")
      .autocast(Cast::Float);
  t.composite(l1_loss,
              "nn::l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
              "reduction='mean', Tensor? weight=None) -> Tensor",
              l1_loss_body)
      .doc("The absolute difference.")
      .autocast(Cast::Float);
  t.composite(smooth_l1_loss,
              "nn::smooth_l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
              "str reduction='mean', float beta=1.0) -> Tensor",
              smooth_l1_loss_body)
      .doc("Quadratic below beta, linear above.")
      .autocast(Cast::Float);
  t.composite(huber_loss,
              "nn::huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? "
              "weight=None) -> Tensor",
              huber_loss_body)
      .doc("Quadratic up to delta, then linear with slope delta.")
      .autocast(Cast::Float);
  t.composite(binary_cross_entropy,
              "nn::binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? "
              "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
              bce_body)
      .doc("Cross entropy of probabilities with 0/1 targets.")
      .autocast(Cast::Float, Cast::Refused);
  t.composite(
       binary_cross_entropy_with_logits,
       "nn::binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, bool? "
       "size_average=None, bool? reduce=None, str reduction='mean', Tensor? pos_weight=None) -> Tensor",
       bce_logits_body)
      .doc("Cross entropy of sigmoid(input) with 0/1 targets, without overflow.")
      .autocast(Cast::Float);
}

}  // namespace rushlight
