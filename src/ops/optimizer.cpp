#include "ops/optimizer.h"

#include <algorithm>
#include <cmath>

#include "cpu/optimizer.h"
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
      RL_CHECK(p.is_cpu() && p.dtype() == dtype(), call.op.name(),
               ": parameters must be on the CPU and of one dtype, got ", describe(params[0]), " and ",
               describe(p));
      p.check_writable(call.op.name());
      const bool dense = is_non_overlapping_and_dense(p);
      layouts_.push_back(dense ? p : empty_tensor(p.sizes(), p.dtype()));
      arrays_[i].param = dense ? p.data_ptr() : replace(p, layouts_[i], true);
      arrays_[i].size = p.numel();
    }
  }

  void add(TensorList list, std::string_view name, void* cpu::StepArrays::* field, bool written) {
    check_lengths(call_, params_, list, name);
    for (size_t i = 0; i < list.size(); ++i) {
      const Tensor& t = list[i];
      RL_CHECK(t.sizes() == params_[i].sizes() && t.dtype() == dtype() && t.is_cpu(), call_.op.name(), ": ",
               name, "[", i, "] is ", describe(t), ", its parameter is ", describe(params_[i]));
      if (written) t.check_writable(call_.op.name());
      arrays_[i].*field = same_layout(t, layouts_[i]) ? t.data_ptr() : replace(t, layouts_[i], written);
    }
  }

  DType dtype() const { return params_[0].dtype(); }
  std::vector<cpu::StepArrays>& arrays() { return arrays_; }
  void finish() {
    for (auto& [target, copy] : copies_) copy_result(target, copy, false);
  }

 private:
  void* replace(const Tensor& t, const Tensor& layout, bool written) {
    Tensor copy = empty_strided_tensor(layout.sizes(), layout.strides(), t.dtype());
    copy_result(copy, t, false);
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

void fused_sgd(const Call& call, TensorList self, TensorList grads, TensorList buffers, double weight_decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
               const Tensor& grad_scale, const Tensor& found_inf) {
  if (self.empty()) return;
  Group group(call, self);
  group.add(grads, "grads", &cpu::StepArrays::grad, grad_scale.defined());
  if (momentum != 0) group.add(buffers, "momentum_buffer_list", &cpu::StepArrays::first, true);
  if (!unscale(group, grad_scale, found_inf)) return;
  cpu::sgd_step(group.dtype(), group.arrays(),
                {lr, momentum, dampening, weight_decay, nesterov, maximize, is_first_step});
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
  for (size_t i = 0; i < self.size(); ++i) {
    RL_CHECK(state_steps[i].numel() == 1, call.op.name(), ": state_steps[", i, "] must hold one number, got ",
             describe(state_steps[i]));
    const double step = read_scalar(state_steps[i]).to_double();
    group.arrays()[i].correction1 = 1 - std::pow(beta1, step);
    group.arrays()[i].correction2 = 1 - std::pow(beta2, step);
  }
  if (!unscale(group, grad_scale, found_inf)) return;
  cpu::adam_step(group.dtype(), group.arrays(), {lr, beta1, beta2, eps, weight_decay, decoupled, maximize});
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
  for (size_t i = 0; i < self.size(); ++i) group.arrays()[i].factors = factors.data() + i * rule.factors;
  if (!unscale(group, grad_scale, found_inf)) return;
  cpu::UpdateOptions options{rule.rule, {}, weight_decay, shrink, maximize};
  std::ranges::copy(numbers, options.numbers.begin());
  cpu::update_step(group.dtype(), group.arrays(), options);
  group.finish();
}

constexpr const char* kReason =
    "an optimizer's step is not differentiated; differentiable=True runs the plain loop";

}  // namespace

void register_optimizer_operators(Table& t) {
  t.op(_fused_sgd_,
       "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float "
       "weight_decay, float "
       "momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? "
       "grad_scale=None, "
       "Tensor? found_inf=None) -> ()",
       fused_sgd)
      .doc("One step of SGD for all parameters.")
      .not_differentiable(kReason)
      .function_only();
  const auto adam = [&](auto& handle, const char* schema, auto kernel, const char* doc) {
    t.op(handle, schema, kernel).doc(doc).not_differentiable(kReason).function_only();
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
      .doc(
          "One step of Adagrad, RMSprop, Adadelta, Adamax, NAdam, RAdam, ASGD or Rprop for all parameters; "
          "the rules are those of src/cpu/optimizer.h.")
      .not_differentiable(kReason)
      .function_only();
}

}  // namespace rushlight
