#include "transform/forward.h"

#include "autograd/engine.h"
#include "autograd/gradient_ops.h"
#include "autograd/op_node.h"
#include "core/pending.h"
#include "core/sparse.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/view.h"
#include "transform/level.h"
#include "transform/pending.h"

namespace rushlight {
namespace {

struct DualState {
  uint64_t level = 0;  // the id of the active dual level; 0: none
  uint64_t last = 0;
  bool allowed = true;
  bool views_follow = false;  // Note [Tangents of former views]
};
thread_local DualState dual;

void update_consider() { set_forward_mode(dual.level && dual.allowed); }

// Calls made here carry no tangents on at this level.
class WithoutTangents {
 public:
  WithoutTangents() : enabled_(forward_mode_enabled()) { set_forward_mode(false); }
  ~WithoutTangents() { set_forward_mode(enabled_); }
  WithoutTangents(const WithoutTangents&) = delete;

 private:
  bool enabled_;
};

// --- one call

TensorList tensors_of(const Value& v) {
  if (v.tag() == Tag::TensorList) return v.tensors();
  return {&v.tensor(), v.is_none() ? size_t{0} : size_t{1}};
}

// The operands of a call, their tangents, and its results: what a derivative asks of a recorded call.
class DualCall final : public BackwardContext {
 public:
  DualCall(const Frame& frame) : op_(frame.op), args_(frame.args, frame.args + frame.arg_count()) {
    tangents_.resize(args_.size());
    metas_.resize(args_.size());
    each([&](int p, const Tensor& t) {
      tangents_[p].push_back(t.defined() ? tangent_of(t) : Tensor());
      metas_[p].push_back(t.defined() ? InputMeta{t->sizes, t.dtype(), t.device()} : InputMeta{});
    });
  }

  // Before a write in place: the operand as it was.
  void keep_operand(int p) {
    kept_ = ops::clone(args_[p].tensor());
    args_[p] = Value(kept_);
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

  // A linear operator that writes: on the tangents, in place.
  void write_tangents(const Tensor& target_tangent) {
    std::vector<Tensor> zeros;
    std::vector<std::vector<Tensor>> lists;
    std::vector<Value> args = tangent_args(zeros, lists);
    args[0] = Value(target_tangent);
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
  Tensor kept_;
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
  for (size_t i = 0; i < rows.size(); ++i)
    if (Wrapping* w = wrapping_at(rows[i], scope.level()))
      found[at[i]] = w->inner;
    else
      found[at[i]] = rows[i];
  return found;
}

// --- writing tangents

// Note [Tangents of former views]
// A write that gives a tensor its first tangent gives one to every view of the same memory, those made before
// the dual level included. Nobody knows these views: from then on, until the level ends, every call asks
// forward mode, and a view without a tangent takes its part of its base's.
void follow_views(const Tensor& written) {
  if (dual.views_follow || (written->storage && written->storage->use_count() == 1)) return;
  dual.views_follow = true;
  update_consider();
}

// What `view` shows of `whole`, the tangent of its base; undefined where the view reads bits as another
// dtype.
Tensor part_of_tangent(const Tensor& view, const Tensor& base, const Tensor& whole) {
  if (whole.strides() != base.strides()) return {};
  const auto part_of = [&](const Tensor& memory, int64_t base_offset) {
    return ops::as_strided(memory, view.sizes(), view.strides(),
                           view.storage_offset() - base_offset + memory.storage_offset());
  };
  Tensor part;
  if (view.dtype() == base.dtype()) {
    part = part_of(whole, base.storage_offset());
  } else if (is_complex(base.dtype()) && real_dtype(base.dtype()) == view.dtype()) {
    part = part_of(ops::view_as_real(whole), 2 * base.storage_offset());
  } else if (is_complex(view.dtype()) && real_dtype(view.dtype()) == base.dtype()) {
    Dims sizes(view->sizes), strides;
    for (const int64_t stride : view.strides()) strides.push_back(2 * stride);
    sizes.push_back(2), strides.push_back(1);
    const int64_t offset = 2 * view.storage_offset() - base.storage_offset() + whole.storage_offset();
    part = ops::view_as_complex(ops::as_strided(whole, sizes, strides, offset));
  } else {
    return {};
  }
  for (const uint32_t flag : {kPendingConj, kPendingNeg})
    if (view->flags & flag) part = turned_view(part, flag);
  return part;
}

Tensor tangent_of_base(const Tensor& view) {
  const Tensor base(view->view_base);
  const Tensor whole = tangent_of(base);
  if (!whole.defined() || (view->flags & (kPythonDispatch | kNotCpu))) return {};
  WithoutTangents scope;
  const Tensor part = part_of_tangent(view, base, whole);
  if (part.defined()) set_tangent(view, part);
  return part;
}

// A tangent in memory like the primal's: what looks at that (as_strided) must find the same in both.
Tensor laid_out_as(const Tensor& primal, const Tensor& tangent) {
  if ((primal->flags | tangent->flags) & (kPythonDispatch | kSpecialElements | kNotCpu)) return tangent;
  const bool wrapped = (primal->flags | tangent->flags) & kWrapped;
  const auto elements = [](const Tensor& t) {  // those of its memory, where a wrapper shows it
    if (t->storage) return static_cast<int64_t>(t->storage->nbytes() / t.itemsize());
    int64_t last = t.storage_offset();
    for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    return last + 1;
  };
  if (primal.strides() == tangent.strides() && primal.storage_offset() == tangent.storage_offset() &&
      (wrapped || elements(primal) == elements(tangent)))
    return tangent;
  for (int64_t d = 0; d < primal.dim(); ++d)
    if (primal.size(d) == 0 || (primal.size(d) > 1 && primal.stride(d) <= 0)) return tangent;
  if (wrapped) {  // examples of the tangent need memory of their own
    const Tensor placed = ops::as_strided_backward(tangent, Dims{elements(primal)}, Dims{1}, primal.sizes(),
                                                   primal.strides(), primal.storage_offset());
    return ops::as_strided(placed, primal.sizes(), primal.strides(), primal.storage_offset());
  }
  const Tensor whole = gradient_ops.zeros(Dims{elements(primal)}, primal.dtype(), primal.device());
  Tensor like = ops::as_strided(whole, primal.sizes(), primal.strides(), primal.storage_offset());
  ops::copy_(like, tangent, false);
  return like;
}

// The tangent of a tensor about to be written to; a view's is a view of its base's.
Tensor ensure_tangent(const Tensor& t) {
  if (Tensor tangent = tangent_of(t); tangent.defined()) return tangent;
  Tensor tangent;
  if (t->view_base) {
    const Tensor base(t->view_base);
    Tensor whole = tangent_of(base);
    if (!whole.defined()) {
      whole = ops::empty_strided(base.sizes(), base.strides(), base.dtype(), std::nullopt, base.device(),
                                 std::nullopt);
      ops::zero_(whole);
      set_tangent(base, whole);
    }
    tangent = part_of_tangent(t, base, whole);
  }
  if (!tangent.defined()) tangent = ops::zeros_like(t);
  set_tangent(t, tangent);
  follow_views(t);
  return tangent;
}

void write_tangent(const Tensor& target, const Tensor& tangent) {
  const Tensor present = tangent_of(target);
  if (!present.defined() && !tangent.defined()) return;
  if (!target->view_base && (!present.defined() || (requires_grad(present) && is_leaf(present)))) {
    set_tangent(target, tangent.defined() ? laid_out_as(target, resolved(tangent)) : ops::zeros_like(target));
    return follow_views(target);
  }
  const Tensor memory = ensure_tangent(target);
  if (tangent.defined())
    ops::copy_(memory, tangent, false);
  else
    ops::zero_(memory);
}

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
  const bool linear = frame.op.traits.tangent == Tangent::Linear;
  if (frame.op.mutated) {
    const Tensor memory = linear ? ensure_tangent(target) : Tensor();
    frame.proceed();
    if (linear)
      call.write_tangents(memory);
    else
      write_tangent(target, Tensor());
    return;
  }
  if (!linear) call.keep_operand(0);
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

void differentiate(Frame& frame) {
  bool any = false;
  each_operand(frame, [&](const Tensor& t) { any |= tangent_of(t).defined(); });
  if (!any) return frame.proceed();
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
    if (!tangents[i].defined()) continue;
    set_tangent(call.results()[i], tangents[i]);
    note_saved_output(call.results()[i], tangents[i]);
  }
}

}  // namespace

uint64_t enter_dual_level() {
  RL_CHECK(!dual.level,
           "Nested forward mode AD is not supported at the moment. If you would like this feature, please "
           "comment at https://github.com/pytorch/pytorch/issues/62014.");
  dual.level = ++dual.last;
  dual.views_follow = false;
  update_consider();
  return 0;
}

void leave_dual_level() {
  RL_CHECK(dual.level, "Trying to exit a forward AD level that does not exist");
  dual.level = 0;
  dual.views_follow = false;
  update_consider();
}

void set_forward_mode(bool enabled) {
  constexpr uint32_t kBit = kForwardGrad;
  DispatchState& state = dispatch_state;
  state.consider = enabled ? state.consider | kBit : state.consider & ~kBit;
  state.always = enabled && dual.views_follow ? state.always | kBit : state.always & ~kBit;
}

int dual_level_depth() { return dual.level ? 1 : 0; }
bool tangents_allowed() { return dual.allowed; }
void allow_tangents(bool allowed) {
  dual.allowed = allowed;
  update_consider();
}

Tensor tangent_of(const Tensor& t) {
  if (!dual.level) return {};
  if ((t->flags & kForwardGrad) && t->autograd && t->autograd->extra) {
    const AutogradMeta::Extra& extra = *t->autograd->extra;
    if (extra.tangent_level == dual.level) return extra.tangent;
  }
  return dual.views_follow && t->view_base ? tangent_of_base(t) : Tensor();
}

void set_tangent(const Tensor& t, const Tensor& tangent) {
  AutogradMeta::Extra& extra = autograd_meta(t).ensure_extra();
  extra.tangent = tangent;
  extra.tangent_level = dual.level;
  t->flags |= kForwardGrad;
}

Tensor primal_of(const Tensor& t) {
  if (!tangent_of(t).defined()) return t;
  WithoutTangents scope;
  return ops::alias(t);
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  RL_CHECK(
      dual.level,
      "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() "
      "first.");
  RL_CHECK(is_differentiable(primal.dtype()),
           "Expected primal to be floating point or complex, but got: ", legacy_name(primal.dtype()));
  RL_CHECK(is_differentiable(tangent.dtype()),
           "Expected tangent to be floating point or complex, but got: ", legacy_name(tangent.dtype()));
  RL_CHECK(primal.sizes() == tangent.sizes(),
           "Trying to set a forward gradient that has a different size than that of the original Tensor, "
           "this is not supported. Tensor is of size ",
           primal.sizes(), " while the given forward gradient is of size ", tangent.sizes(), ".");
  RL_CHECK(primal.dtype() == tangent.dtype() || is_complex(primal.dtype()) == is_complex(tangent.dtype()),
           "Expected primal and tangent to have the same dtype, but got: ", legacy_name(primal.dtype()),
           " and ", legacy_name(tangent.dtype()));
  RL_CHECK(
      !tangent_of(primal).defined(),
      "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is "
      "not supported.");
  RL_CHECK(!tangent_of(tangent).defined(),
           "Setting a forward grad that itself has a forward gradient at the same level0 is not supported.");
  WithoutTangents scope;
  const Tensor dual_tensor = ops::alias(primal);
  set_tangent(dual_tensor, laid_out_as(primal, to_dtype(tangent, primal.dtype())));
  return dual_tensor;
}

void install_forward() { set_interceptor(kForwardGrad, differentiate); }

}  // namespace rushlight
