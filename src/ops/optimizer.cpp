#include "ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cpu/optimizer.h"
#include "device/layers.h"
#include "device/optimizer.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"

namespace rushlight {
namespace {

using namespace ops;

void check_lengths(const Call& call, TensorList self, TensorList other, std::string_view name) {
  RL_CHECK(self.size() == other.size(), call.op.name(), ": expected as many ", name, " as parameters, got ",
           other.size(), " for ", self.size());
}

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous());
}

// The lists of one call as arrays. A tensor that is not laid out like a dense parameter is worked on in a
// copy, which `finish` writes back.
class Group {
 public:
  Group(const Call& call, TensorList params) : call_(call), params_(params), arrays_(params.size()) {
    for (size_t i = 0; i < params.size(); ++i) {
      const Tensor& p = params[i];
      RL_CHECK((p.is_cpu() || device_layers(p)) && p.device() == device() && p.dtype() == dtype(),
               call.op.name(), ": parameters must be on one device and of one dtype, got ",
               describe(params[0]), " and ", describe(p));
      p.check_writable(call.op.name());
      const bool dense = is_dense_from_data(p);
      layouts_.push_back(dense ? p : empty_tensor(p.sizes(), p.dtype(), p.device()));
      arrays_[i].param = dense ? p.data_ptr() : replace(p, layouts_[i], true);
      arrays_[i].size = p.numel();
    }
  }

  // `fresh`: what they hold is not read.
  void add(TensorList list, std::string_view name, void* cpu::StepArrays::* field, bool written,
           bool fresh = false) {
    check_lengths(call_, params_, list, name);
    for (size_t i = 0; i < list.size(); ++i) {
      const Tensor& t = list[i];
      RL_CHECK(t.sizes() == params_[i].sizes() && t.dtype() == dtype() && t.device() == device(),
               call_.op.name(), ": ", name, "[", i, "] is ", describe(t), ", its parameter is ",
               describe(params_[i]));
      if (written) t.check_writable(call_.op.name());
      arrays_[i].*field =
          same_layout(t, layouts_[i]) ? t.data_ptr() : replace(t, layouts_[i], written, fresh);
    }
  }

  DType dtype() const { return params_[0].dtype(); }
  Device device() const { return params_[0].device(); }
  std::vector<cpu::StepArrays>& arrays() { return arrays_; }
  void finish() {
    for (auto& [target, copy] : copies_) copy_result(target, copy, false);
  }

 private:
  void* replace(const Tensor& t, const Tensor& layout, bool written, bool fresh = false) {
    Tensor copy = empty_strided_tensor(layout.sizes(), layout.strides(), t.dtype(), t.device());
    if (!fresh) copy_result(copy, t, false);
    void* data = copy.data_ptr();
    (written ? copies_ : kept_).emplace_back(t, std::move(copy));
    return data;
  }

  const Call& call_;
  TensorList params_;
  std::vector<cpu::StepArrays> arrays_;
  std::vector<Tensor> layouts_;
  std::vector<std::pair<Tensor, Tensor>> copies_, kept_;
};

// False where a gradient scaler found infinite gradients, and nothing must move.
bool unscale(Group& group, const Tensor& grad_scale, const Tensor& found_inf) {
  if (found_inf.defined() && read_scalar(found_inf).to_double() != 0) return false;
  if (grad_scale.defined())
    cpu::unscale_grads(group.dtype(), group.arrays(), read_scalar(grad_scale).to_double());
  return true;
}

// One number on the device as a kernel reads it; null where there is none. `kept` holds a converted copy.
const float* device_number(const Tensor& t, Device device, std::vector<Tensor>& kept) {
  if (!t.defined()) return nullptr;
  Tensor number = empty_tensor({}, DType::Float32, device);
  loops::copy(number, t);
  kept.push_back(std::move(number));
  return static_cast<const float*>(kept.back().data_ptr());
}

// The same step where the parameters are. False on the CPU.
bool step_on_device(Group& group, DeviceOptimizer options, const Tensor& grad_scale, const Tensor& found_inf,
                    std::vector<DeviceStep> steps = {}) {
  const DeviceLayers* layers = device_layers(group.device().type());
  if (group.device().is_cpu() || !layers) return false;
  std::vector<Tensor> kept;
  options.grad_scale = device_number(grad_scale, group.device(), kept);
  options.found_inf = device_number(found_inf, group.device(), kept);
  steps.resize(group.arrays().size());
  for (size_t i = 0; i < steps.size(); ++i) steps[i].arrays = group.arrays()[i];
  layers->optimizer_step(group.device().index(), group.dtype(), options, steps);
  group.finish();
  return true;
}

void fused_sgd(const Call& call, TensorList self, TensorList grads, TensorList buffers, double weight_decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
               const Tensor& grad_scale, const Tensor& found_inf) {
  if (self.empty()) return;
  Group group(call, self);
  group.add(grads, "grads", &cpu::StepArrays::grad, grad_scale.defined());
  if (momentum != 0) group.add(buffers, "momentum_buffer_list", &cpu::StepArrays::first, true, is_first_step);
  const cpu::SgdOptions options{lr, momentum, dampening, weight_decay, nesterov, maximize, is_first_step};
  if (step_on_device(group, {.kind = DeviceOptimizer::Kind::Sgd, .sgd = options}, grad_scale, found_inf))
    return;
  if (!unscale(group, grad_scale, found_inf)) return;
  cpu::sgd_step(group.dtype(), group.arrays(), options);
  group.finish();
}

template <bool decoupled>
void fused_adam(const Call& call, TensorList self, TensorList grads, TensorList exp_avgs,
                TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList state_steps, double lr,
                double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                const Tensor& grad_scale, const Tensor& found_inf) {
  if (self.empty()) return;
  Group group(call, self);
  group.add(grads, "grads", &cpu::StepArrays::grad, grad_scale.defined());
  group.add(exp_avgs, "exp_avgs", &cpu::StepArrays::first, true);
  group.add(exp_avg_sqs, "exp_avg_sqs", &cpu::StepArrays::second, true);
  if (amsgrad) group.add(max_exp_avg_sqs, "max_exp_avg_sqs", &cpu::StepArrays::third, true);
  check_lengths(call, self, state_steps, "state_steps");
  std::vector<DeviceStep> steps(self.size());
  std::vector<Tensor> kept;
  for (size_t i = 0; i < self.size(); ++i) {
    RL_CHECK(state_steps[i].numel() == 1, call.op.name(), ": state_steps[", i, "] must hold one number, got ",
             describe(state_steps[i]));
    if (state_steps[i].device() == group.device() && !group.device().is_cpu()) {
      steps[i].step = device_number(state_steps[i], group.device(), kept);
      continue;
    }
    const double step = read_scalar(state_steps[i]).to_double();
    steps[i].factors[0] = group.arrays()[i].correction1 = 1 - std::pow(beta1, step);
    steps[i].factors[1] = group.arrays()[i].correction2 = 1 - std::pow(beta2, step);
  }
  const cpu::AdamOptions options{lr, beta1, beta2, eps, weight_decay, decoupled, maximize};
  if (step_on_device(group, {.kind = DeviceOptimizer::Kind::Adam, .adam = options}, grad_scale, found_inf,
                     std::move(steps)))
    return;
  if (!unscale(group, grad_scale, found_inf)) return;
  cpu::adam_step(group.dtype(), group.arrays(), options);
  group.finish();
}

struct NamedRule {
  std::string_view name;
  cpu::UpdateRule rule;
  size_t numbers, factors;  // how many of each
};
constexpr NamedRule kRules[] = {
    {"adagrad", cpu::UpdateRule::Adagrad, 1, 1},   {"rmsprop", cpu::UpdateRule::RMSprop, 4, 0},
    {"adadelta", cpu::UpdateRule::Adadelta, 3, 0}, {"adamax", cpu::UpdateRule::Adamax, 3, 1},
    {"nadam", cpu::UpdateRule::NAdam, 3, 3},       {"radam", cpu::UpdateRule::RAdam, 3, 2},
    {"asgd", cpu::UpdateRule::ASGD, 1, 2},         {"rprop", cpu::UpdateRule::Rprop, 4, 0}};

const NamedRule& rule_named(std::string_view name) {
  for (const NamedRule& rule : kRules)
    if (rule.name == name) return rule;
  RL_CHECK(false, "_fused_update_: there is no rule '", name, "'");
}

// Adagrad and ASGD have one state, RMSprop may lack the second or third, all others have two.
void check_states(const NamedRule& rule, TensorList second, TensorList third) {
  const bool one = rule.rule == cpu::UpdateRule::Adagrad || rule.rule == cpu::UpdateRule::ASGD;
  const bool optional = rule.rule == cpu::UpdateRule::RMSprop;
  RL_CHECK((optional || second.empty() == one) && (optional || third.empty()),
           "_fused_update_: too many or too few lists of states for '", rule.name, "'");
}

void fused_update(const Call& call, std::string_view name, TensorList self, TensorList grads,
                  TensorList first, TensorList second, TensorList third, FloatList factors, FloatList numbers,
                  double weight_decay, double shrink, bool maximize, const Tensor& grad_scale,
                  const Tensor& found_inf) {
  if (self.empty()) return;
  const NamedRule& rule = rule_named(name);
  RL_CHECK(numbers.size() == rule.numbers && factors.size() == rule.factors * self.size(),
           "_fused_update_: '", name, "' takes ", rule.numbers, " numbers, and ", rule.factors,
           " factors a parameter, got ", numbers.size(), " and ", factors.size(), " for ", self.size());
  check_states(rule, second, third);
  Group group(call, self);
  group.add(grads, "grads", &cpu::StepArrays::grad, grad_scale.defined());
  group.add(first, "first", &cpu::StepArrays::first, true);
  if (!second.empty()) group.add(second, "second", &cpu::StepArrays::second, true);
  if (!third.empty()) group.add(third, "third", &cpu::StepArrays::third, true);
  cpu::UpdateOptions options{rule.rule, {}, weight_decay, shrink, maximize};
  std::ranges::copy(numbers, options.numbers.begin());
  std::vector<DeviceStep> steps(self.size());
  for (size_t i = 0; i < self.size(); ++i) {
    group.arrays()[i].factors = factors.data() + i * rule.factors;
    std::copy_n(group.arrays()[i].factors, rule.factors, steps[i].factors);
  }
  if (step_on_device(group, {.kind = DeviceOptimizer::Kind::Update, .update = options}, grad_scale, found_inf,
                     std::move(steps)))
    return;
  if (!unscale(group, grad_scale, found_inf)) return;
  cpu::update_step(group.dtype(), group.arrays(), options);
  group.finish();
}

// Gradients of one dtype on one device, in one launch.
void unscale_on_device(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  std::map<DType, std::vector<DeviceStep>> by_dtype;
  const Device device = grads[0].device();
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const Tensor& g : grads) {
    const bool dense = is_dense_from_data(g);
    if (!dense) copies.emplace_back(g, ops::clone(g, MemoryFormat::Contiguous));
    DeviceStep step;
    step.arrays.grad = (dense ? g : copies.back().second).data_ptr(), step.arrays.size = g.numel();
    by_dtype[g.dtype()].push_back(step);
  }
  std::vector<Tensor> kept;
  const float* inverse = device_number(inv_scale, device, kept);
  for (const auto& [dtype, steps] : by_dtype)
    device_layers(device.type())
        ->unscale(device.index(), dtype, steps, inverse, static_cast<float*>(found_inf.data_ptr()));
  for (auto& [grad, copy] : copies) copy_result(grad, copy, false);
}

void unscale_all(const Call& call, TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  RL_CHECK(found_inf.numel() == 1 && inv_scale.numel() == 1 && found_inf.dtype() == DType::Float32 &&
               inv_scale.dtype() == DType::Float32,
           call.op.name(), ": found_inf and inv_scale must be float32 tensors of one element, got ",
           describe(found_inf), " and ", describe(inv_scale));
  bool fits = !grads.empty() && device_layers(grads[0]);
  for (const Tensor& g : grads) {
    RL_CHECK(is_floating(g.dtype()), call.op.name(), ": gradients must be floating, got ", describe(g));
    g.check_writable(call.op.name());
    fits &= g.device() == grads[0].device() && g.device() == found_inf.device() && !is_float8(g.dtype());
  }
  if (fits) return unscale_on_device(grads, found_inf, inv_scale);
  for (const Tensor& g : grads) {
    if (read_scalar(ops::all(ops::isfinite(g))).to_int() == 0)
      ops::fill_(found_inf, wrapped_number(Scalar(1.0)));
    ops::mul.inplace(g, inv_scale);
  }
}

// Lowers the scale of losses after an overflow, raises it after growth_interval steps without one.
Tensor amp_update_scale(const Call&, const Tensor& self, const Tensor& growth_tracker,
                        const Tensor& found_inf, double growth_factor, double backoff_factor,
                        int64_t growth_interval) {
  const auto write = [](const Tensor& to, const Scalar& value) { ops::fill_(to, wrapped_number(value)); };
  const double scale = read_scalar(self).to_double();
  const int64_t steps = read_scalar(growth_tracker).to_int() + 1;
  if (read_scalar(found_inf).to_double() != 0) {
    write(self, Scalar(scale * backoff_factor));
    write(growth_tracker, Scalar(0));
  } else if (steps < growth_interval || steps > growth_interval) {
    write(growth_tracker, Scalar(steps));
  } else {
    const auto grown = static_cast<float>(scale * growth_factor);
    if (std::isfinite(grown)) write(self, Scalar(grown));  // a scale that has no next one stays
    write(growth_tracker, Scalar(0));
  }
  return self;
}

constexpr const char* kReason =
    "an optimizer's step is not differentiated; differentiable=True runs the plain loop";

}  // namespace

void register_optimizer_operators(Table& t) {
  t.op(_fused_sgd_,
       "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float "
       "weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool "
       "is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
       fused_sgd)
      .doc("One step of SGD for all parameters.")
      .on_devices()
      .family(Family::MultiTensor)
      .not_differentiable(kReason)
      .function_only();
  t.op(_amp_foreach_non_finite_check_and_unscale_,
       "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor "
       "inv_scale) -> ()",
       unscale_all)
      .doc("Multiplies gradients by inv_scale in place; found_inf becomes 1 if one of them is not finite.")
      .family(Family::MultiTensor)
      .not_differentiable("gradients are scaled after the backward pass")
      .no_meta("it asks whether values are finite")
      .on_devices()
      .function_only();
  t.op(_amp_update_scale_,
       "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float "
       "scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
       amp_update_scale)
      .doc("Lowers the scale of losses after an overflow, raises it after growth_interval steps without one.")
      .not_differentiable("the scale is no function of the parameters")
      .no_meta("it asks whether there was an overflow")
      .on_devices()
      .function_only();
  const auto adam = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    t.op(handle, schema, kernel)
        .doc(doc)
        .family(Family::MultiTensor)
        .on_devices()
        .not_differentiable(kReason)
        .function_only();
  };
#define RL_ADAM_PARAMETERS                                                                                   \
  "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] "   \
  "max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float " \
  "eps, bool "                                                                                               \
  "amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()"
  adam(_fused_adam_, "_fused_adam_" RL_ADAM_PARAMETERS, fused_adam<false>,
       "One step of Adam for all parameters.");
  adam(_fused_adamw_, "_fused_adamw_" RL_ADAM_PARAMETERS, fused_adam<true>,
       "One step of AdamW for all parameters.");
#undef RL_ADAM_PARAMETERS
  t.op(_fused_update_,
       "_fused_update_(str rule, Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] first, Tensor(d!)[] "
       "second, Tensor(e!)[] third, float[] factors, *, float[] numbers, float weight_decay=0.0, float "
       "shrink=1.0, bool maximize=False, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
       fused_update)
      .absent_in_pytorch()
      .doc(
          "One step of Adagrad, RMSprop, Adadelta, Adamax, NAdam, RAdam, ASGD or Rprop for all parameters; "
          "the rules are those of src/cpu/optimizer.h.")
      .on_devices()
      .family(Family::MultiTensor)
      .not_differentiable(kReason)
      .function_only();
}

}  // namespace rushlight
