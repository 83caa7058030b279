#include "transform/forward.h"

#include "autograd/engine.h"
#include "autograd/gradient_ops.h"
#include "autograd/op_node.h"
#include "core/sparse.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/view.h"
#include "transform/level.h"
#include "transform/tangents.h"

namespace rushlight {
namespace {

// --- one call

TensorList tensors_of(const Value& v) {
  if (v.tag() == Tag::TensorList) return v.tensors();
  return {&v.tensor(), v.is_none() ? size_t{0} : size_t{1}};
}

// Derivatives compute in the primal's type, whichever the tangent was given in.
Tensor tangent_in_type(const Tensor& t) {
  Tensor tangent = tangent_of(t);
  if (!tangent.defined() || tangent.dtype() == t.dtype()) return tangent;
  RL_CHECK(is_complex(t.dtype()) || !is_complex(tangent.dtype()),
           "Expected primal and tangent to have the same dtype, but got: ", legacy_name(t.dtype()), " and ",
           legacy_name(tangent.dtype()));
  return to_dtype(tangent, t.dtype());
}

// The operands of a call, their tangents, and its results: what a derivative asks of a recorded call.
class DualCall final : public BackwardContext {
 public:
  DualCall(const Frame& frame) : op_(frame.op), args_(frame.args, frame.args + frame.arg_count()) {
    tangents_.resize(args_.size());
    metas_.resize(args_.size());
    each([&](int p, const Tensor& t) {
      tangents_[p].push_back(t.defined() ? tangent_in_type(t) : Tensor());
      metas_[p].push_back(t.defined() ? InputMeta{t->sizes, t.dtype(), t.device()} : InputMeta{});
    });
  }

  // Before a write in place: the operands in that memory as they were. Their tangents are written to as well.
  void keep_operands_of(const Tensor& target) {
    kept_.reserve(args_.size());
    for (uint64_t bits = op_.tensor_parameters; bits; bits &= bits - 1) {
      const int p = __builtin_ctzll(bits);
      if (args_[p].tag() != Tag::Tensor || !args_[p].tensor().defined()) continue;
      if (args_[p].tensor()->storage.get() != target->storage.get()) continue;
      if (Tensor& tangent = tangents_[p][0]; tangent.defined()) tangent = ops::clone(tangent);
      args_[p] = Value(kept_.emplace_back(ops::clone(args_[p].tensor())));
    }
  }
  void set_results(const Results& r) {
    results_.assign(r.tensors, r.tensors + r.count);
    results_.insert(results_.end(), r.list.begin(), r.list.end());
  }
  void set_result(const Tensor& t) { results_ = {t}; }
  const std::vector<Tensor>& results() const { return results_; }
  const Op& op() const { return op_; }

  // The tangents of the results.
  std::vector<Tensor> tangents() {
    switch (op_.traits.tangent) {
      case Tangent::None:
        return std::vector<Tensor>(results_.size());
      case Tangent::Zero:
        return {ops::zeros_like(results_[0])};
      case Tangent::Linear:
        return apply_to_tangents();
      case Tangent::Product:
        return {sum_over_factors()};
      case Tangent::Elementwise:
        return {all_real() ? through_elements() : through_double_vjp()[0]};
      default:
        return through_double_vjp();
    }
  }

  // The tangent of a result that has memory of its own has some, too, and none of an operand's tangent.
  Tensor in_memory_like(const Tensor& result, const Tensor& tangent) const {
    bool shares = false, shown = false;
    each([&](int p, const Tensor& t) {
      shown |= t.defined() && t->storage && t->storage == result->storage;
      for (const Tensor& given : tangents_[p])
        shares |= given.defined() && given->storage && given->storage == tangent->storage;
    });
    return shares && !shown ? ops::clone(tangent) : tangent;
  }

  // A linear operator that writes to its first operand: on the tangents, in place.
  void write_tangents() {
    std::vector<Tensor> zeros;
    std::vector<std::vector<Tensor>> lists;
    std::vector<Value> args = tangent_args(zeros, lists);
    const Tensor target = args_[0].tensor();
    Tensor memory = ensure_tangent(target, target);
    each_operand(op_, args.data(), [&](const Tensor& t) { memory = ensure_tangent(target, t); });
    args[0] = Value(memory);
    Results results;
    call_boxed(op_, args.data(), results);
  }

  Tensor grad(int output) const override {
    return static_cast<size_t>(output) < grads_.size() ? grads_[output] : Tensor();
  }
  int output_count() const override { return static_cast<int>(results_.size()); }
  Tensor input(int p) const override { return args_[p].is_none() ? Tensor() : args_[p].tensor(); }
  std::vector<Tensor> input_list(int p) const override {
    const TensorList l = args_[p].tensors();
    return {l.begin(), l.end()};
  }
  Tensor output(int i) const override { return results_[i]; }
  Value attribute(int p) const override { return args_[p]; }
  bool column_major(int p) const override { return is_column_major(args_[p].tensor()); }
  const InputMeta& meta(int p) const override { return metas_[p].empty() ? none_ : metas_[p][0]; }
  std::vector<InputMeta> meta_list(int p) const override { return metas_[p]; }
  bool needs(int p, int element) const override {
    if (only_ >= 0 && p != only_) return false;
    return static_cast<size_t>(element) < tangents_[p].size() && tangents_[p][element].defined();
  }

 private:
  template <class F>
  void each(F&& f) const {
    for (uint64_t bits = op_.tensor_parameters; bits; bits &= bits - 1) {
      const int p = __builtin_ctzll(bits);
      for (const Tensor& t : tensors_of(args_[p])) f(p, t);
    }
  }

  static bool differentiable(const Tensor& t) { return t.defined() && is_differentiable(t.dtype()); }

  bool all_real() const {
    bool real = !is_complex(results_[0].dtype());
    each([&](int, const Tensor& t) { real &= !t.defined() || !is_complex(t.dtype()); });
    return real;
  }

  // What selects elements is no term of a linear operator.
  bool selects(int p) const {
    const std::string_view name = op_.schema.parameters[p].name;
    return name == "index" || name == "indices" || name == "mask" || name == "condition";
  }

  // Every operand replaced by its tangent, or zeros.
  std::vector<Value> tangent_args(std::vector<Tensor>& zeros, std::vector<std::vector<Tensor>>& lists) const {
    std::vector<Value> args = args_;
    zeros.reserve(64);
    lists.reserve(64);
    auto tangent = [&](int p, size_t i, const Tensor& t) {
      if (selects(p) || !t.defined()) return t;
      return tangents_[p][i].defined() ? tangents_[p][i] : ops::zeros_like(t);
    };
    for (uint64_t bits = op_.tensor_parameters; bits; bits &= bits - 1) {
      const int p = __builtin_ctzll(bits);
      const TensorList operands = tensors_of(args_[p]);
      if (args_[p].tag() == Tag::TensorList) {
        std::vector<Tensor>& list = lists.emplace_back();
        for (size_t i = 0; i < operands.size(); ++i) list.push_back(tangent(p, i, operands[i]));
        args[p] = Value(TensorList(list));
      } else if (operands.size()) {
        args[p] = Value(zeros.emplace_back(tangent(p, 0, operands[0])));
      }
    }
    return args;
  }

  std::vector<Tensor> call(const std::vector<Value>& args) const {
    Results results;
    call_boxed(op_, args.data(), results);
    std::vector<Tensor> found(results.tensors, results.tensors + results.count);
    found.insert(found.end(), results.list.begin(), results.list.end());
    return found;
  }

  std::vector<Tensor> apply_to_tangents() {
    std::vector<Tensor> zeros;
    std::vector<std::vector<Tensor>> lists;
    return call(tangent_args(zeros, lists));
  }

  Tensor sum_over_factors() {
    Tensor sum;
    each([&](int p, const Tensor&) {
      if (tangents_[p].empty() || !tangents_[p][0].defined()) return;
      std::vector<Value> args = args_;
      args[p] = Value(tangents_[p][0]);
      const Tensor term = call(args)[0];
      sum = sum.defined() ? ops::add(sum, term) : term;
    });
    return sum;
  }

  // The entries of a derivative's result that belong to parameter `p`.
  Tensor entry(Grads& grads, int p, size_t element) const {
    if (op_.derivative.single) return p == single_parameter() && grads.size() ? grads[0] : Tensor();
    size_t at = element;
    for (uint64_t bits = op_.tensor_parameters & ((1ull << p) - 1); bits; bits &= bits - 1) {
      const Value& v = args_[__builtin_ctzll(bits)];
      at += v.tag() == Tag::TensorList ? v.tensors().size() : 1;
    }
    return at < grads.size() ? grads[at] : Tensor();
  }
  int single_parameter() const {
    int found = -1;
    each([&](int p, const Tensor& t) {
      if (found < 0 && differentiable(t)) found = p;
    });
    return found;
  }

  Tensor fitted(const Tensor& tangent, const Tensor& like) const {
    Tensor t = tangent;
    if (t.sizes() != like.sizes()) t = ops::expand(t, like.sizes(), false);
    if (t.dtype() == like.dtype()) return t;
    if (is_complex(t.dtype()) && !is_complex(like.dtype())) t = ops::real(t);
    return to_dtype(t, like.dtype());
  }

  Tensor through_elements() {
    Tensor sum;
    each([&](int p, const Tensor&) {
      if (!tangents_[p][0].defined()) return;
      only_ = p;
      grads_ = {fitted(tangents_[p][0], results_[0])};
      Grads grads = op_.derivative.apply(*this);
      const Tensor term = entry(grads, p, 0);
      if (!term.defined()) return;
      const Tensor fit = fitted(term, results_[0]);
      sum = sum.defined() ? ops::add(sum, fit) : fit;
    });
    only_ = -1;
    return sum;
  }

  std::vector<Tensor> through_double_vjp();

  const Op& op_;
  std::vector<Value> args_;
  std::vector<std::vector<Tensor>> tangents_;
  std::vector<std::vector<InputMeta>> metas_;
  std::vector<Tensor> results_, grads_;
  std::vector<Tensor> kept_;
  InputMeta none_;
  int only_ = -1;
};

// u -> vjp(u) runs at a level of its own: its graph sees u and nothing else. It is linear, so any u would do;
// at 1 a derivative may take the logarithm of u. The second pass goes without grad mode, and then levels
// further out record nothing of it either, unless a tangent has a gradient there.
std::vector<Tensor> DualCall::through_double_vjp() {
  bool recorded = false;
  if (GradMode::enabled()) {
    each([&](int, const Tensor& t) { recorded |= has_history(t); });
    for (const std::vector<Tensor>& list : tangents_)
      for (const Tensor& t : list) recorded |= has_history(t);
  }
  std::vector<Tensor> found(results_.size()), cotangents, inputs, seeds;
  std::vector<size_t> at;
  std::vector<Tensor> points(results_.size());
  for (size_t i = 0; i < results_.size(); ++i) {
    const bool used = i >= 32 || (op_.derivative.used_grads >> i & 1);
    if (!used || !differentiable(results_[i])) continue;
    points[i] = is_sparse(results_[i]) ? ops::zeros_like(results_[i]) : ops::ones_like(results_[i]);
  }
  const UnrecordedTangents seen(GradMode::enabled());
  NewLevel scope(LevelKind::Grad);
  GradMode on(true);
  grads_.assign(results_.size(), Tensor());
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!points[i].defined()) continue;
    grads_[i] = wrap_tensor(points[i], scope.level());
    set_requires_grad(grads_[i], true);
    inputs.push_back(grads_[i]);
    at.push_back(i);
  }
  Grads grads = op_.derivative.apply(*this);
  for (uint64_t bits = op_.tensor_parameters; bits; bits &= bits - 1) {
    const int p = __builtin_ctzll(bits);
    for (size_t e = 0; e < tangents_[p].size(); ++e) {
      if (!tangents_[p][e].defined()) continue;
      const Tensor g = entry(grads, p, e);
      if (!g.defined() || !requires_grad(g)) continue;
      cotangents.push_back(g);
      seeds.push_back(fitted(tangents_[p][e], g));
    }
  }
  if (cotangents.empty()) return found;
  const std::vector<Tensor> rows =
      rushlight::grad(cotangents, inputs, seeds, true, {.create_graph = recorded, .accumulate = false});
  for (size_t i = 0; i < rows.size(); ++i) {
    Wrapping* w = wrapping_at(rows[i], scope.level());
    found[at[i]] = w ? w->inner : rows[i];
    make_ordinary(found[at[i]]);
  }
  return found;
}

// --- writing tangents

// A saved output must show its tangent to whoever differentiates the backward pass.
void note_saved_output(const Tensor& result, const Tensor& tangent) {
  if (!result->autograd || !result->autograd->grad_fn || !result->autograd->grad_fn->is_op) return;
  auto& node = static_cast<OpNode&>(*result->autograd->grad_fn);
  if (SavedVariable* saved = node.saved_output(static_cast<int>(output_nr(result))))
    if (saved->is_output() && saved->kept().defined()) set_tangent(saved->kept(), tangent);
}

void refuse_out(const Frame& frame) {
  if (frame.out && !frame.inplace)
    RL_NOT_IMPLEMENTED("Trying to use forward AD with ", frame.op.name(),
                       "_out that does not support it because it is an out= function");
}

void differentiate_write(Frame& frame) {
  DualCall call(frame);
  const int p = frame.inplace ? 0 : __builtin_ctzll(frame.op.mutated);
  const Tensor target = frame.inplace ? frame.out[0] : frame.args[p].tensor();
  WithoutTangents scope;
  if (!is_differentiable(target.dtype())) return frame.proceed();
  const bool linear = frame.op.traits.tangent == Tangent::Linear;
  if (frame.op.mutated) {
    frame.proceed();
    if (linear)
      call.write_tangents();
    else
      write_tangent(target, Tensor());
    return;
  }
  if (!linear) call.keep_operands_of(target);
  frame.proceed();
  call.set_result(target);
  write_tangent(target, call.tangents()[0]);
}

// A derivative that is missing for the gradient is missing for the tangent.
std::vector<Tensor> tangents_or_refusal(DualCall& call) {
  try {
    return call.tangents();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotImplemented) throw;
    RL_NOT_IMPLEMENTED("Trying to use forward AD with ", call.op().name(),
                       " that does not support it because it has not been implemented yet: ", error.what());
  }
}

// A view of what has no tangent, although the memory has one, has none either.
void pass_on_no_tangent(const Frame& frame) {
  if (frame.op.family != Family::View || frame.args[0].tag() != Tag::Tensor) return;
  if (!knows_tangent(frame.args[0].tensor())) return;
  for (int i = 0; i < frame.results.count; ++i) set_tangent(frame.results.tensors[i], Tensor());
  for (const Tensor& t : frame.results.list) set_tangent(t, Tensor());
}

void differentiate(Frame& frame) {
  bool any = false;
  each_operand(frame, [&](const Tensor& t) { any |= tangent_of(t).defined(); });
  if (!any) {
    frame.proceed();
    return pass_on_no_tangent(frame);
  }
  if (frame.op.made_in_python)
    RL_NOT_IMPLEMENTED("Trying to use forward AD with ", frame.op.schema.space, "::", frame.op.name(),
                       " that does not support it: operators defined in Python have no jvp");
  refuse_out(frame);
  if (frame.out || frame.op.mutated) return differentiate_write(frame);
  DualCall call(frame);
  WithoutTangents scope;
  frame.proceed();
  call.set_results(frame.results);
  if (call.results().empty()) return;
  const std::vector<Tensor> tangents = tangents_or_refusal(call);
  for (size_t i = 0; i < tangents.size() && i < call.results().size(); ++i) {
    const Tensor& result = call.results()[i];
    if (!tangents[i].defined() || !is_differentiable(result.dtype())) continue;
    const Tensor tangent = call.in_memory_like(result, tangents[i]);
    make_ordinary(tangent);
    set_tangent(result, tangent);
    note_saved_output(result, tangent);
  }
}

}  // namespace

void install_forward() { set_interceptor(kForwardGrad, differentiate); }

}  // namespace rushlight
