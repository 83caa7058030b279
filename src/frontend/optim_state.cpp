// The state of optimizers as the entries of Python's state_dict.
#include "rushlight/optim_state.h"

namespace rushlight::optim {

IValue::Dict ParamState::to_dict() const {
  IValue::Dict dict;
  for (const auto& item : entries_)
    if (item.value().defined()) dict.emplace_back(IValue(item.key()), IValue(item.value()));
  return dict;
}

// Copies, so that two optimizers never share a buffer. Older files hold the step as a number.
void ParamState::from_dict(const IValue& dict) {
  entries_.clear();
  for (const auto& [name, value] : dict.toDictRef())
    if (!value.isNone())
      entries_.insert(name.toStringRef(),
                      value.isTensor() ? value.toTensor().clone() : tensor(value.toDouble()));
}

const Tensor& ParamState::entry(const char* name) const {
  static const Tensor none;
  const Tensor* found = entries_.find(name);
  return found ? *found : none;
}

bool operator==(const ParamState& a, const ParamState& b) {
  const IValue::Dict of_a = a.to_dict();
  const IValue of_b(b.to_dict());
  return of_a.size() == of_b.toDictRef().size() && std::ranges::all_of(of_a, [&](const auto& item) {
           const IValue* other = of_b.find(item.first.toStringRef());
           return other && *other == item.second;
         });
}

// --- L-BFGS
namespace {

template <class S, class F>
void each_entry(S& s, F f) {
  f("func_evals", s.func_evals()), f("n_iter", s.n_iter()), f("t", s.t()), f("prev_loss", s.prev_loss()),
      f("d", s.d()), f("H_diag", s.H_diag()), f("prev_flat_grad", s.prev_flat_grad()),
      f("old_dirs", s.old_dirs()), f("old_stps", s.old_stps()), f("ro", s.ro()), f("al", s.al());
}
IValue shown(const Tensor& t) { return t.defined() ? IValue(t) : IValue(); }
IValue shown(const std::deque<Tensor>& list) { return IValue(IValue::List(list.begin(), list.end())); }
template <class T>
IValue shown(const T& v) {
  return IValue(v);
}
Tensor as_tensor(const IValue& v) {
  if (v.isNone()) return {};
  return v.isTensor() ? v.toTensor().clone() : tensor(v.toDouble());
}
void take(int64_t& to, const IValue& v) { to = v.toInt(); }
void take(double& to, const IValue& v) { to = v.isTensor() ? v.toTensor().item<double>() : v.toDouble(); }
void take(Tensor& to, const IValue& v) { to = as_tensor(v); }
void take(std::deque<Tensor>& to, const IValue& v) {
  to.clear();
  for (const IValue& item : v.toListRef()) to.push_back(as_tensor(item));
}
// Python keeps a place for each of history_size weights, most of them None.
void take(std::optional<std::vector<Tensor>>& to, const IValue& v) {
  to.emplace();
  for (const IValue& item : v.toListRef())
    if (!item.isNone()) to->push_back(as_tensor(item));
}

}  // namespace

IValue::Dict LBFGSParamState::to_dict() const {
  IValue::Dict dict;
  each_entry(*this, [&](const char* name, const auto& v) { dict.emplace_back(IValue(name), shown(v)); });
  return dict;
}
void LBFGSParamState::from_dict(const IValue& dict) {
  each_entry(*this, [&](const char* name, auto& v) {
    const IValue* found = dict.find(name);
    if (found && !found->isNone()) take(v, *found);
  });
}
bool operator==(const LBFGSParamState& a, const LBFGSParamState& b) {
  return IValue(a.to_dict()) == IValue(b.to_dict());
}

}  // namespace rushlight::optim
