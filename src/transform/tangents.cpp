#include "transform/tangents.h"

#include <algorithm>

#include "autograd/gradient_ops.h"
#include "core/history_flags.h"
#include "core/pending.h"
#include "ops/complex.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"
#include "transform/level.h"

namespace rushlight {
namespace {

struct DualState {
  uint64_t level = 0;  // the id of the active dual level; 0: none
  uint64_t last = 0;
  bool allowed = true;
  bool views_follow = false;  // Note [Tangents of former views]
  bool unrecorded = false;    // UnrecordedTangents
};
thread_local DualState dual;

void update_consider() { set_forward_mode(dual.level && dual.allowed); }

}  // namespace

UnrecordedTangents::UnrecordedTangents(bool enabled) : before_(dual.unrecorded) {
  dual.unrecorded |= enabled;
}
UnrecordedTangents::~UnrecordedTangents() { dual.unrecorded = before_; }

void make_ordinary(const Tensor& tangent) {
  if (!dual.unrecorded) return;
  for (Tensor t = tangent; t.defined(); t = t->wrapping ? t->wrapping->inner : Tensor())
    t->flags &= ~uint32_t{kNoGradView | kKnowsVersion};
}

bool knows_tangent(const Tensor& t) {
  return (t->flags & kForwardGrad) && t->autograd && t->autograd->extra &&
         t->autograd->extra->tangent_level == dual.level;
}

namespace {

// Note [Tangents of former views]
// A write that gives a tensor its first tangent gives one to every view of the same memory, those made before
// the dual level included. Nobody knows these views: from then on, until the level ends, every call asks
// forward mode, and the tangent of a view is its part of its base's.
void follow_views(const Tensor& written) {
  if (dual.views_follow || (written->storage && written->storage->use_count() == 1)) return;
  dual.views_follow = true;
  set_forward_mode(forward_mode_enabled());
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
  if (!whole.defined() || (view->flags & kPythonDispatch)) return {};
  WithoutTangents scope;
  return part_of_tangent(view, base, whole);
}

// Whether `t` has a dimension of examples wherever `like` has one.
bool has_examples_of(const Tensor& t, const Tensor& like) {
  const auto has = [&](const Level* level) {
    for (const Wrapping* w = t->wrapping; w; w = w->inner->wrapping)
      if (w->level.get() == level && w->batch_dim >= 0) return true;
    return false;
  };
  for (const Wrapping* w = like->wrapping; w; w = w->inner->wrapping)
    if (w->batch_dim >= 0 && w->level->alive && !has(w->level.get())) return false;
  return true;
}

Tensor with_examples_of(const Tensor& t, const Tensor& like) {
  if (has_examples_of(t, like)) return t;
  Tensor none = ops::sum(ops::zeros_like(like));
  if (is_complex(none.dtype()) && !is_complex(t.dtype())) none = ops::real(none);
  return to_dtype(ops::add(t, none), t.dtype());
}

// `t`, or a copy where its numbers are not those of its memory.
Tensor resolved(const Tensor& t) { return is_pending(t) ? ops::clone(t) : t; }

// The tangent with what is pending of the primal, conjugation or a sign, pending of it, too.
Tensor pending_as(const Tensor& primal, Tensor tangent) {
  if (!((primal->flags ^ tangent->flags) & kPending) || !is_complex(tangent.dtype())) return tangent;
  const auto turned = [&](Tensor t) {
    for (const uint32_t flag : {kPendingConj, kPendingNeg})
      if (primal->flags & flag) t = turned_view(t, flag);
    return t;
  };
  return turned(resolved(turned(std::move(tangent))));
}

// Whether two elements may lie at one place.
bool overlaps_itself(const Tensor& t) {
  Dims order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1) order.push_back(d);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.stride(a) < t.stride(b); });
  int64_t last = 0;
  for (const int64_t d : order) {
    if (t.stride(d) <= last) return true;
    last += (t.size(d) - 1) * t.stride(d);
  }
  return false;
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
  const bool overlaps = overlaps_itself(primal);
  if (wrapped && overlaps) return tangent;
  if (wrapped) {  // examples of the tangent need memory of their own
    const Tensor placed = ops::as_strided_backward(tangent, Dims{elements(primal)}, Dims{1}, primal.sizes(),
                                                   primal.strides(), primal.storage_offset());
    return ops::as_strided(placed, primal.sizes(), primal.strides(), primal.storage_offset());
  }
  const Tensor whole = gradient_ops.zeros(Dims{elements(primal)}, tangent.dtype(), primal.device());
  Tensor like = ops::as_strided(whole, primal.sizes(), primal.strides(), primal.storage_offset());
  ops::copy_(like, tangent, false);
  // Elements at one place have a tangent each, unless it is the same.
  return overlaps && !ops::equal(like, tangent) ? tangent : like;
}

}  // namespace

Tensor ensure_tangent(const Tensor& t, const Tensor& like) {
  Tensor tangent = tangent_of(t);
  if (tangent.defined() && has_examples_of(tangent, like)) return tangent;
  follow_views(t);
  if (t->view_base) {
    const Tensor base(t->view_base);
    Tensor whole = tangent_of(base);
    if (!whole.defined() && !tangent.defined()) whole = ops::zeros_like(base);
    if (whole.defined()) {
      whole = laid_out_as(base, with_examples_of(whole, like));
      set_tangent(base, whole);
      tangent = part_of_tangent(t, base, whole);
    }
  }
  if (!tangent.defined()) tangent = ops::zeros_like(t);
  tangent = with_examples_of(tangent, like);
  set_tangent(t, tangent);
  return tangent;
}

void write_tangent(const Tensor& target, const Tensor& tangent) {
  const Tensor present = tangent_of(target);
  if (!present.defined() && !tangent.defined()) return;
  if (!target->view_base && (!present.defined() || (requires_grad(present) && is_leaf(present)))) {
    set_tangent(target, tangent.defined() ? laid_out_as(target, resolved(tangent)) : ops::zeros_like(target));
    return follow_views(target);
  }
  const Tensor memory = ensure_tangent(target, tangent.defined() ? tangent : target);
  if (tangent.defined())
    ops::copy_(memory, tangent, false);
  else
    ops::zero_(memory);
}

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
  const bool known = knows_tangent(t);
  const Tensor own = known ? t->autograd->extra->tangent : Tensor();
  if (dual.views_follow && t->view_base && !(known && !own.defined()))
    if (Tensor part = tangent_of_base(t); part.defined()) return part;
  return own;
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
  const Tensor primal = ops::alias(t);
  set_tangent(primal, Tensor());  // none, whatever its base has
  return primal;
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  RL_CHECK(
      dual.level,
      "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() "
      "first.");
  RL_CHECK_VALUE(is_differentiable(primal.dtype()),
                 "Expected primal to be floating point or complex, but got: torch.",
                 dtype_name(primal.dtype()));
  RL_CHECK_VALUE(is_differentiable(tangent.dtype()),
                 "Expected tangent to be floating point or complex, but got: torch.",
                 dtype_name(tangent.dtype()));
  RL_CHECK(primal.sizes() == tangent.sizes(),
           "Trying to set a forward gradient that has a different size than that of the original Tensor, "
           "this is not supported. Tensor is of size ",
           primal.sizes(), " while the given forward gradient is of size ", tangent.sizes(), ".");
  RL_CHECK(
      !tangent_of(primal).defined(),
      "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is "
      "not supported.");
  RL_CHECK(!tangent_of(tangent).defined(),
           "Setting a forward grad that itself has a forward gradient at the same level0 is not supported.");
  WithoutTangents scope;
  const Tensor dual_tensor = ops::alias(primal);
  const Tensor widened = with_examples_of(tangent, primal);  // of a type of its own until it is computed with
  set_tangent(dual_tensor, laid_out_as(primal, pending_as(primal, widened)));
  return dual_tensor;
}

}  // namespace rushlight
