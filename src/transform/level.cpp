#include "transform/level.h"

#include "core/pending.h"
#include "core/sparse.h"
#include "dispatch/interceptors.h"
#include "ops/view.h"
#include "transform/autograd.h"
#include "transform/forward.h"

namespace rushlight {
namespace {

void set_level(Level* level) {
  dispatch_state.level = level;
  dispatch_state.always =
      level ? dispatch_state.always | kWrapped : dispatch_state.always & ~uint32_t{kWrapped};
}

const Tensor& inner_of(const TensorImpl& t) { return t.wrapping->inner; }

Tensor new_wrapper(const TensorImpl& geometry, const Tensor& inner, const Ref<Level>& level, int64_t dim) {
  auto impl = Ref<TensorImpl>::adopt(
      new TensorImpl(geometry.storage, geometry.offset, geometry.dtype, geometry.device));
  impl->set_layout(geometry.sizes, geometry.strides);
  impl->flags |= kWrapped | (geometry.flags & kWrappedNumber) | pending_flags(*inner.impl());
  impl->flags &= ~uint32_t{kInference};
  impl->wrapping = new Wrapping{inner, level, dim};
  return Tensor(std::move(impl));
}

// A view of a wrapper, made by code that knows no levels. The same geometry needs no call: it is another
// wrapper of the same tensor, with its own history.
Tensor view_of_wrapper(const Tensor& base, IntList sizes, IntList strides, int64_t offset,
                       bool differentiable) {
  if (sizes != base.sizes() || strides != base.strides() || offset != base.storage_offset())
    return ops::as_strided(base, sizes, strides, offset);
  Tensor view =
      new_wrapper(*base.impl(), base->wrapping->inner, base->wrapping->level, base->wrapping->batch_dim);
  if (differentiable) {
    view->view_base = base->view_base ? base->view_base : Ref<TensorImpl>::share(base.impl());
    view->flags |= view_flags | (base->flags & (kNoGradView | kMultiView));
  }
  return view;
}

bool is_dead(const Tensor& t) { return t.defined() && t->wrapping && !t->wrapping->level->alive; }

}  // namespace

Level& enter_level(LevelKind kind, int64_t batch_size, Randomness randomness) {
  auto level = make_ref<Level>();
  Level* outer = dispatch_state.level;
  level->kind = kind;
  level->batch_size = batch_size;
  level->randomness = randomness;
  level->inference = dispatch_state.inference;
  level->grad_enabled = GradMode::enabled() && !level->inference;
  level->forward_enabled = forward_mode_enabled();
  level->depth = outer ? outer->depth + 1 : 1;
  level->parent = Ref<Level>::share(outer);
  Level& entered = *level.detach();  // dispatch_state owns it until leave_level
  set_level(&entered);
  if (kind == LevelKind::Grad && entered.inference) set_inference_mode(false);
  return entered;
}

void leave_level() {
  Level* level = dispatch_state.level;
  RL_ASSERT(level, "no function transform is active");
  level->alive = false;
  set_level(level->parent.get());
  if (level->kind == LevelKind::Grad && level->inference) set_inference_mode(true);
  if (level->release()) Level::destroy(level);
}

AtLevel::AtLevel(Level* level) : saved_(dispatch_state), view_flags_(view_flags) {
  bool grad = GradMode::enabled(), forward = forward_mode_enabled();
  for (const Level* l = dispatch_state.level; l && l != level; l = l->parent.get()) {
    if (l->kind == LevelKind::Vmap) continue;
    grad &= l->grad_enabled;
    forward = l->forward_enabled && tangents_allowed();
  }
  set_level(level);
  if (grad != GradMode::enabled()) GradMode::set(grad);
  set_forward_mode(forward);
}

AtLevel::~AtLevel() {
  dispatch_state = saved_;
  set_forward_mode(forward_mode_enabled());  // views may have begun to follow their bases
  view_flags = view_flags_;
}

bool has_history(const Tensor& t) {
  if (!t.defined()) return false;
  return requires_grad(t) || (t->wrapping && has_history(t->wrapping->inner));
}

Tensor without_dead(const Tensor& t) {
  Tensor live = t;
  while (is_dead(live)) live = Tensor(live->wrapping->inner);
  return live;
}

Tensor wrap_tensor(const Tensor& inner, Level& level) {
  return new_wrapper(*inner.impl(), inner, Ref<Level>::share(&level), -1);
}

Tensor wrap_batched(const Tensor& inner, int64_t dim, Level& level) {
  RL_ASSERT(dim < inner.dim(), "vmap: a result without a dimension of examples");
  RL_CHECK(!is_sparse(inner), "vmap: sparse tensors have no dimension of examples; use .to_dense() first");
  Tensor t = new_wrapper(TensorImpl(nullptr, inner.storage_offset(), inner.dtype(), inner.device()), inner,
                         Ref<Level>::share(&level), dim);
  t->flags |= inner->flags & kWrappedNumber;
  refresh_wrapper(t);
  return t;
}

void refresh_wrapper(const Tensor& t) {
  const Wrapping& w = *t->wrapping;
  Dims sizes = w.inner->sizes, strides = w.inner->strides;
  if (w.batch_dim >= 0) {
    sizes.erase(static_cast<size_t>(w.batch_dim));
    strides.erase(static_cast<size_t>(w.batch_dim));
  } else {
    t->storage = w.inner->storage;
  }
  t->offset = w.inner->offset;
  t->dtype = w.inner->dtype;
  t->set_layout(sizes, strides);
}

void check_memory(const Tensor& t) {
  RL_CHECK(!t->wrapping || t->storage, "Cannot access data pointer of Tensor that doesn't have storage");
}

bool promote_in_place(const Tensor& t, Level& level) {
  if (t->pyobj || t->autograd || t->view_base || t->wrapping || (t->flags & (kViewedAtLevel | kPending)))
    return false;
  Tensor inner = make_view(t, t.sizes(), t.strides(), t.storage_offset(), false);
  int64_t dim = -1;
  if (level.kind == LevelKind::Vmap) {
    dim = 0;
    Dims sizes = t->sizes;
    sizes.insert(0, level.batch_size);
    const Tensor examples = empty_tensor(sizes, t.dtype(), t.device());
    copy_result(examples, inner, false);
    inner = examples;
    t->storage = nullptr;
  }
  t->wrapping = new Wrapping{inner, Ref<Level>::share(&level), dim};
  t->flags |= kWrapped;
  refresh_wrapper(t);
  return true;
}

namespace {

// --- Grad and Jvp levels

// The grad mode of whoever made the call that is now being recorded; recording itself switches it off.
thread_local bool caller_records = true;
class CallerScope {
 public:
  CallerScope() : saved_(caller_records) { caller_records = GradMode::enabled(); }
  ~CallerScope() { caller_records = saved_; }
  CallerScope(const CallerScope&) = delete;

 private:
  bool saved_;
};

Tensor lift(const Frame& frame, Level& level, const Tensor& t, bool written) {
  if (wrapping_at(t, level)) return t;
  if (written && promote_in_place(t, level)) return t;
  RL_CHECK(!written,
           "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
           "operation (aten::",
           frame.op.name(), frame.inplace ? "_" : "",
           ") that would mutate a captured Tensor. This is not supported; please rewrite the function being "
           "transformed to explicitly accept the mutated Tensor(s) as inputs.");
  return wrap_tensor(t, level);
}

void take_at_level(Frame& frame, Level& level) {
  AtLevel here(&level);
  CallerScope modes;
  const uint64_t written = written_parameters(frame);
  Operands lifted(frame, [&](const Tensor& t, int p) {
    return lift(frame, level, t, p < 0 ? true : (written >> p & 1) != 0);
  });
  if (frame.op.family == Family::Composite)  // what it calls comes back here
    return Frame{frame.op, lifted.args(), lifted.out(), frame.inplace, 0, frame.results}.proceed();
  Frame recorded{frame.op, lifted.args(), lifted.out(), frame.inplace, 0, frame.results};
  uint32_t flags = 0;
  each_operand(recorded, [&](const Tensor& t) { flags |= detail::flags_of(t); });
  recorded.pending = ((dispatch_state.always | (flags & dispatch_state.consider)) &
                      interceptors_of(frame.op, frame.inplace) & (kAutograd | kForwardGrad)) |
                     kLowered;
  recorded.proceed();
}

// The wrapper of a result: the operand's own where the operator returned its operand, a view of it where the
// result is one.
Tensor wrap_result(const Frame& frame, Level& level, const Tensor& inner) {
  if (!inner.defined()) return inner;
  Tensor same, base;
  each_operand(frame, [&](const Tensor& t) {
    if (t->wrapping->inner.is_same(inner)) same = t;
    if (!base.defined()) base = t;
  });
  if (same.defined()) return same;
  Tensor result = wrap_tensor(inner, level);
  if (frame.op.family == Family::View && inner->view_base && base.defined()) {
    result->view_base = base->view_base ? base->view_base : Ref<TensorImpl>::share(base.impl());
    result->flags |= inner->flags & kMultiView;
    result->flags |= view_flags | (base->flags & (kNoGradView | kMultiView));
    base->wrapping->inner->flags |= kViewedAtLevel;
  }
  return result;
}

void compute_one_level_out(Frame& frame) {
  Level& level = *dispatch_state.level;
  Operands inner(frame, [](const Tensor& t, int) { return t->wrapping->inner; });
  Results results;
  {
    AtLevel outside(level.parent.get());
    GradMode::set(caller_records && level.grad_enabled);
    call_boxed(frame.op, inner.args(), results, inner.out(), frame.inplace);
  }
  if (frame.op.mutated || frame.out) each_operand(frame, [](const Tensor& t) { refresh_wrapper(t); });
  frame.results.plain = results.plain;
  frame.results.count = results.count;
  for (int i = 0; i < results.count; ++i)
    frame.results.tensors[i] = frame.op.schema.returns[static_cast<size_t>(i)].type == Tag::Tensor
                                   ? wrap_result(frame, level, results.tensors[i])
                                   : results.tensors[i];
  for (const Tensor& t : results.list) frame.results.list.push_back(wrap_result(frame, level, t));
}

// Whether a level maps over tangents of operands that it does not wrap: `vmap` over calls of forward mode.
bool has_wrapped_tangent(const Frame& frame) {
  if (!forward_mode_enabled()) return false;
  bool found = false;
  each_operand(frame, [&](const Tensor& t) {
    if (!(t->flags & kForwardGrad)) return;
    const Tensor tangent = tangent_of(t);
    found |= tangent.defined() && tangent->wrapping;
  });
  return found;
}

// --- the interceptor

void run_through_levels(Frame& frame) {
  bool dead = false, wrapped = false;
  each_operand(frame, [&](const Tensor& t) { dead |= is_dead(t), wrapped |= t->wrapping != nullptr; });
  if (dead) {
    Operands live(frame, [](const Tensor& t, int) { return without_dead(t); });
    call_boxed(frame.op, live.args(), frame.results, live.out(), frame.inplace);
    // A write goes to what the dead wrapper stands for; the caller knows the wrapper.
    if (frame.out)
      for (int i = 0; i < target_count(frame); ++i) {
        if (is_dead(frame.out[i])) refresh_wrapper(frame.out[i]);
        frame.results.tensors[i] = frame.out[i];
      }
    return;
  }
  for (Level* level = dispatch_state.level; level; level = level->parent.get()) {
    if (level->kind != LevelKind::Vmap) return take_at_level(frame, *level);
    if (run_batched(frame, *level)) return;
  }
  RL_CHECK(!wrapped, frame.op.name(),
           "(): a tensor was used outside of the function transform that it belongs to");
  if (has_wrapped_tangent(frame)) return frame.proceed();  // the rule's calls for tangents come back here
  AtLevel bottom(nullptr);
  call_boxed(frame.op, frame.args, frame.results, frame.out, frame.inplace);
}

}  // namespace

void install_levels() {
  wrapping_hooks.free = [](Wrapping* w) { delete w; };
  wrapping_hooks.inner = inner_of;
  wrapping_hooks.view = view_of_wrapper;
  set_interceptor(kWrapped, run_through_levels);
  set_interceptor(kLowered, compute_one_level_out);
  install_reference_gradients();
}

}  // namespace rushlight
