#include "rushlight/optim.h"

#include <array>
#include <cmath>

#include "ops/optimizer.h"
#include "rushlight/autograd.h"

namespace rushlight::optim {

// --- options as dictionaries, for state_dict
namespace {

template <class O, class F>
void each_option(O& o, F f) {
  using T = std::remove_const_t<O>;
  f("lr", o.lr());
  if constexpr (std::is_same_v<T, SGDOptions>)
    f("momentum", o.momentum()), f("dampening", o.dampening()), f("weight_decay", o.weight_decay()),
        f("nesterov", o.nesterov()), f("maximize", o.maximize());
  if constexpr (std::is_same_v<T, AdamOptions> || std::is_same_v<T, AdamWOptions>)
    f("betas", o.betas()), f("eps", o.eps()), f("weight_decay", o.weight_decay()), f("amsgrad", o.amsgrad()),
        f("maximize", o.maximize());
  if constexpr (std::is_same_v<T, AdagradOptions>)
    f("lr_decay", o.lr_decay()), f("weight_decay", o.weight_decay()),
        f("initial_accumulator_value", o.initial_accumulator_value()), f("eps", o.eps());
  if constexpr (std::is_same_v<T, RMSpropOptions>)
    f("alpha", o.alpha()), f("eps", o.eps()), f("weight_decay", o.weight_decay()),
        f("momentum", o.momentum()), f("centered", o.centered());
  if constexpr (std::is_same_v<T, LBFGSOptions>)
    f("max_iter", o.max_iter()), f("max_eval", o.max_eval()), f("tolerance_grad", o.tolerance_grad()),
        f("tolerance_change", o.tolerance_change()), f("history_size", o.history_size()),
        f("line_search_fn", o.line_search_fn());
}

IValue shown(const std::tuple<double, double>& t) { return IValue(t); }
template <class T>
IValue shown(const T& v) {
  return IValue(v);
}
void take(double& to, const IValue& v) { to = v.toDouble(); }
void take(bool& to, const IValue& v) { to = v.toBool(); }
void take(int64_t& to, const IValue& v) { to = v.toInt(); }
void take(std::optional<int64_t>& to, const IValue& v) {
  to = v.isNone() ? std::nullopt : std::optional<int64_t>(v.toInt());
}
void take(std::optional<std::string>& to, const IValue& v) {
  to = v.isNone() ? std::nullopt : std::optional<std::string>(v.toStringRef());
}
void take(std::tuple<double, double>& to, const IValue& v) {
  const IValue::List& list = v.isTuple() ? v.toTupleRef().items : v.toListRef();
  RL_CHECK(list.size() == 2, "optimizer: expected two betas, but got ", list.size());
  to = {list[0].toDouble(), list[1].toDouble()};
}

}  // namespace

template <class Derived>
IValue::Dict CloneableOptions<Derived>::to_dict() const {
  IValue::Dict dict;
  each_option(static_cast<const Derived&>(*this),
              [&](const char* name, const auto& v) { dict.emplace_back(IValue(name), shown(v)); });
  return dict;
}
template <class Derived>
void CloneableOptions<Derived>::from_dict(const IValue& dict) {
  each_option(static_cast<Derived&>(*this), [&](const char* name, auto& v) {
    if (const IValue* found = dict.find(name)) take(v, *found);
  });
}
template class CloneableOptions<SGDOptions>;
template class CloneableOptions<AdamOptions>;
template class CloneableOptions<AdamWOptions>;
template class CloneableOptions<AdagradOptions>;
template class CloneableOptions<RMSpropOptions>;
template class CloneableOptions<LBFGSOptions>;

bool operator==(const OptimizerOptions& a, const OptimizerOptions& b) {
  return typeid(a) == typeid(b) && IValue(a.to_dict()) == IValue(b.to_dict());
}

// --- the base
Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  RL_CHECK(defaults_->get_lr() >= 0, "Invalid learning rate: ", defaults_->get_lr());
  for (const OptimizerParamGroup& group : groups) add_param_group(group);
}
void Optimizer::add_param_group(const OptimizerParamGroup& group) {
  for (const Tensor& p : group.params()) {
    RL_CHECK(p.defined() && p.is_leaf(), "can't optimize a non-leaf Tensor");
    for (const OptimizerParamGroup& other : param_groups_)
      for (const Tensor& q : other.params())
        RL_CHECK(!p.is_same(q), "some parameters appear in more than one parameter group");
  }
  OptimizerParamGroup own(group);
  if (!own.has_options()) own.set_options(defaults_->clone());
  param_groups_.push_back(std::move(own));
}
void Optimizer::zero_grad(bool set_to_none) {
  for (OptimizerParamGroup& group : param_groups_)
    for (Tensor& p : group.params()) {
      if (!p.grad().defined()) continue;
      Tensor& grad = p.mutable_grad();
      if (set_to_none)
        grad.reset();
      else
        grad = grad.detach().zero_();
    }
}
void Optimizer::add_parameters(const std::vector<Tensor>& parameters) {
  std::vector<Tensor>& first = param_groups_.at(0).params();
  first.insert(first.end(), parameters.begin(), parameters.end());
}
size_t Optimizer::size() const {
  size_t n = 0;
  for (const OptimizerParamGroup& group : param_groups_) n += group.params().size();
  return n;
}
std::unique_ptr<OptimizerParamState> Optimizer::new_state() const {
  RL_NOT_IMPLEMENTED(
      "Optimizer::load: the class of this optimizer does not say of which class its state is; override "
      "new_state() in it, or load()");
}
Tensor Optimizer::run(const LossClosure& closure) {
  if (!closure) return {};
  AutoGradMode recording(true);
  return closure();
}

void Optimizer::save(serialize::OutputArchive& archive) const {
  IValue::Dict states;
  IValue::List groups;
  int64_t number = 0;
  for (const OptimizerParamGroup& group : param_groups_) {
    IValue::List numbers;
    for (const Tensor& p : group.params()) {
      if (const auto found = state_.find(p.impl()); found != state_.end() && found->second)
        states.emplace_back(IValue(number), IValue(found->second->to_dict()));
      numbers.emplace_back(number++);
    }
    IValue::Dict dict = group.options().to_dict();
    dict.emplace_back(IValue("params"), IValue(numbers));
    groups.emplace_back(dict);
  }
  archive.write("state", IValue(states));
  archive.write("param_groups", IValue(groups));
}
void Optimizer::load(serialize::InputArchive& archive) {
  IValue states, groups;
  archive.read("state", states);
  archive.read("param_groups", groups);
  RL_CHECK(groups.toListRef().size() == param_groups_.size(),
           "loaded state dict has a different number of parameter groups: ", groups.toListRef().size(),
           ", here ", param_groups_.size());
  std::vector<Tensor> order;
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    const IValue& dict = groups.toListRef()[i];
    const IValue* numbers = dict.find("params");
    RL_CHECK(numbers && numbers->toListRef().size() == param_groups_[i].params().size(),
             "loaded state dict contains a parameter group that doesn't match the size of optimizer's group");
    param_groups_[i].options().from_dict(dict);
    for (const Tensor& p : param_groups_[i].params()) order.push_back(p);
  }
  state_.clear();
  for (const auto& [number, entries] : states.toDictRef()) {
    const int64_t at = number.toInt();
    RL_CHECK(at >= 0 && at < static_cast<int64_t>(order.size()), "optimizer: state of a parameter ", at,
             " that is not there");
    auto& state = state_[order[static_cast<size_t>(at)].impl()];
    state = new_state();
    state->from_dict(entries);
  }
}
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

// --- one call for each group of parameters of one dtype
namespace {

struct Batch {
  std::vector<Tensor> params, grads;
};
std::vector<Batch> batches_of(const std::vector<Tensor>& params) {
  std::vector<Batch> batches;
  for (const Tensor& p : params) {
    if (!p.grad().defined()) continue;
    RL_CHECK(!p.grad().is_sparse(), "the optimizer does not support sparse gradients");
    auto same = [&](const Batch& b) {
      return b.params[0].dtype() == p.dtype() && b.params[0].device() == p.device();
    };
    auto found = std::find_if(batches.begin(), batches.end(), same);
    if (found == batches.end()) found = batches.insert(found, Batch());
    found->params.push_back(p);
    found->grads.push_back(p.grad());
  }
  return batches;
}
// The state called `name`, made if need be; whether it was there.
bool ensure(ParamState& state, const char* name, const Tensor& like) {
  if (state.contains(name)) return true;
  state.insert(name, zeros_like(like));
  return false;
}
template <class Groups, class F>
void each_batch(Groups& groups, F f) {
  for (auto& group : groups)
    for (Batch& batch : batches_of(group.params())) f(group.options(), batch);
}

}  // namespace

Tensor SGD::step(LossClosure closure) {
  NoGradGuard no_grad;
  Tensor loss = run(closure);
  each_batch(param_groups_, [&](OptimizerOptions& options, Batch& b) {
    auto& o = static_cast<SGDOptions&>(options);
    RL_CHECK(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
             "Nesterov momentum requires a momentum and zero dampening");
    // Parameters whose buffer is new start with their gradient; the others go on.
    Batch parts[2];
    std::vector<Tensor> buffers[2];
    for (size_t i = 0; i < b.params.size(); ++i) {
      int part = 0;
      if (o.momentum() != 0) {
        ParamState& state = state_of<SGDParamState>(b.params[i]);
        part = ensure(state, "momentum_buffer", b.params[i]) ? 0 : 1;
        buffers[part].push_back(state["momentum_buffer"]);
      }
      parts[part].params.push_back(b.params[i]);
      parts[part].grads.push_back(b.grads[i]);
    }
    for (int part = 0; part < 2; ++part)
      if (!parts[part].params.empty())
        ops::_fused_sgd_(parts[part].params, parts[part].grads, buffers[part], o.weight_decay(), o.momentum(),
                         o.lr(), o.dampening(), o.nesterov(), o.maximize(), part == 1, Tensor(), Tensor());
  });
  return loss;
}

template <class O, class StateOf>
static void adam_step(const O& o, Batch& b, StateOf state_of, bool decoupled) {
  std::vector<Tensor> averages, squares, largest, steps;
  for (const Tensor& p : b.params) {
    ParamState& state = state_of(p);
    if (!state.contains("step")) state.insert("step", zeros({}, kFloat));
    ensure(state, "exp_avg", p);
    ensure(state, "exp_avg_sq", p);
    if (o.amsgrad()) ensure(state, "max_exp_avg_sq", p), largest.push_back(state["max_exp_avg_sq"]);
    averages.push_back(state["exp_avg"]);
    squares.push_back(state["exp_avg_sq"]);
    steps.push_back(state["step"]);
    *static_cast<float*>(steps.back().data_ptr()) += 1;
  }
  const auto [beta1, beta2] = o.betas();
  const auto& update = decoupled ? ops::_fused_adamw_ : ops::_fused_adam_;
  update(b.params, b.grads, averages, squares, largest, steps, o.lr(), beta1, beta2, o.weight_decay(),
         o.eps(), o.amsgrad(), o.maximize(), Tensor(), Tensor());
}
Tensor Adam::step(LossClosure closure) {
  NoGradGuard no_grad;
  Tensor loss = run(closure);
  each_batch(param_groups_, [&](OptimizerOptions& o, Batch& b) {
    adam_step(
        static_cast<AdamOptions&>(o), b,
        [&](const Tensor& p) -> ParamState& { return state_of<AdamParamState>(p); }, false);
  });
  return loss;
}
Tensor AdamW::step(LossClosure closure) {
  NoGradGuard no_grad;
  Tensor loss = run(closure);
  each_batch(param_groups_, [&](OptimizerOptions& o, Batch& b) {
    adam_step(
        static_cast<AdamWOptions&>(o), b,
        [&](const Tensor& p) -> ParamState& { return state_of<AdamParamState>(p); }, true);
  });
  return loss;
}

// The state is there from the start, as in Python.
Adagrad::Adagrad(std::vector<OptimizerParamGroup> groups, AdagradOptions defaults)
    : Optimizer(std::move(groups), std::make_unique<AdagradOptions>(defaults)) {
  for (const auto& group : param_groups_)
    for (const Tensor& p : group.params()) started(p, static_cast<const AdagradOptions&>(group.options()));
}
AdagradParamState& Adagrad::started(const Tensor& p, const AdagradOptions& o) {
  auto& state = state_of<AdagradParamState>(p);
  if (!state.contains("sum")) {
    state.insert("step", zeros({}, kFloat));
    state.insert("sum", full_like(p.detach(), o.initial_accumulator_value()));
  }
  return state;
}
Tensor Adagrad::step(LossClosure closure) {
  NoGradGuard no_grad;
  Tensor loss = run(closure);
  each_batch(param_groups_, [&](OptimizerOptions& options, Batch& b) {
    const auto& o = static_cast<AdagradOptions&>(options);
    std::vector<Tensor> sums;
    std::vector<double> rates;
    for (const Tensor& p : b.params) {
      AdagradParamState& state = started(p, o);
      const double step = state["step"].add_(1).item<double>();
      sums.push_back(state["sum"]);
      rates.push_back(o.lr() / (1 + (step - 1) * o.lr_decay()));
    }
    ops::_fused_update_("adagrad", b.params, b.grads, sums, {}, {}, rates, std::array{o.eps()},
                        o.weight_decay());
  });
  return loss;
}

Tensor RMSprop::step(LossClosure closure) {
  NoGradGuard no_grad;
  Tensor loss = run(closure);
  each_batch(param_groups_, [&](OptimizerOptions& options, Batch& b) {
    const auto& o = static_cast<RMSpropOptions&>(options);
    std::vector<Tensor> squares, buffers, means;
    for (const Tensor& p : b.params) {
      ParamState& state = state_of<RMSpropParamState>(p);
      if (!state.contains("step")) state.insert("step", zeros({}, kFloat));
      state["step"].add_(1);
      const auto add = [&](std::vector<Tensor>& list, const char* name) {
        ensure(state, name, p);
        list.push_back(state[name]);
      };
      add(squares, "square_avg");
      if (o.momentum() > 0) add(buffers, "momentum_buffer");
      if (o.centered()) add(means, "grad_avg");
    }
    const std::array numbers{o.eps(), o.alpha(), o.lr(), o.momentum()};
    ops::_fused_update_("rmsprop", b.params, b.grads, squares, buffers, means, {}, numbers, o.weight_decay());
  });
  return loss;
}

// --- schedulers
LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) { base_lrs_ = get_current_lrs(); }
std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> lrs;
  for (const auto& group : optimizer_.param_groups()) lrs.push_back(group.options().get_lr());
  return lrs;
}
void LRScheduler::step() {
  ++step_count_;
  const std::vector<double> lrs = get_lrs();
  for (size_t i = 0; i < lrs.size(); ++i) optimizer_.param_groups()[i].options().set_lr(lrs[i]);
}
template <class F>
static std::vector<double> mapped(std::vector<double> values, F f) {
  for (double& v : values) v = f(v);
  return values;
}
std::vector<double> StepLR::get_lrs() {
  if (step_count_ % step_size_ != 0) return get_current_lrs();
  return mapped(get_current_lrs(), [&](double lr) { return lr * gamma_; });
}
std::vector<double> ExponentialLR::get_lrs() {
  return mapped(get_current_lrs(), [&](double lr) { return lr * gamma_; });
}
std::vector<double> CosineAnnealingLR::get_lrs() {
  const double phase = std::cos(3.141592653589793 * step_count_ / t_max_);
  return mapped(base_lrs_, [&](double lr) { return eta_min_ + (lr - eta_min_) * (1 + phase) / 2; });
}
std::vector<double> LambdaLR::get_lrs() {
  return mapped(base_lrs_, [&](double lr) { return lr * factor_(step_count_); });
}

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode, float factor,
                                                       int patience, double threshold,
                                                       ThresholdMode threshold_mode, int cooldown,
                                                       const std::vector<float>& min_lr, double eps, bool)
    : optimizer_(optimizer),
      mode_(mode),
      factor_(factor),
      patience_(patience),
      threshold_(threshold),
      threshold_mode_(threshold_mode),
      cooldown_(cooldown),
      min_lr_(min_lr),
      eps_(eps),
      best_(mode == min ? INFINITY : -INFINITY) {
  RL_CHECK(factor < 1.0, "Factor should be < 1.0");
  if (min_lr_.empty()) min_lr_.resize(optimizer.param_groups().size(), 0);
  RL_CHECK(min_lr_.size() == optimizer.param_groups().size(),
           "Number of learning rates not equal to the number of "
           "param groups");
}
bool ReduceLROnPlateauScheduler::is_better(float metric) const {
  if (!std::isfinite(best_)) return mode_ == min ? metric < best_ : metric > best_;
  if (threshold_mode_ == rel)
    return mode_ == min ? metric < best_ * (1 - threshold_) : metric > best_ * (1 + threshold_);
  return mode_ == min ? metric < best_ - threshold_ : metric > best_ + threshold_;
}
void ReduceLROnPlateauScheduler::step(float metric) {
  if (is_better(metric))
    best_ = metric, bad_ = 0;
  else
    ++bad_;
  if (cooling_ > 0) --cooling_, bad_ = 0;
  if (bad_ <= patience_) return;
  for (size_t i = 0; i < optimizer_.param_groups().size(); ++i) {
    OptimizerOptions& o = optimizer_.param_groups()[i].options();
    const double lr = std::max(o.get_lr() * factor_, static_cast<double>(min_lr_[i]));
    if (o.get_lr() - lr > eps_) o.set_lr(lr);
  }
  cooling_ = cooldown_;
  bad_ = 0;
}

}  // namespace rushlight::optim
