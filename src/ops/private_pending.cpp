// Views whose conjugation or negation is pending. Note [Pending conjugation] in core/pending.h
#include "core/pending.h"
#include "ops/complex.h"
#include "ops/pointwise.h"
#include "ops/register.h"

namespace rushlight {
namespace {

Tensor turn(const Tensor& self, uint32_t flag) {
  const Tensor view = make_view(self, self.sizes(), self.strides(), self.storage_offset());
  const uint32_t flags = view->flags ^ flag;
  view->flags = flags & kPending ? flags | kSpecialElements : flags & ~kSpecialElements;
  return view;
}

// Which tensors may wait. Sparse and quantised ones compute at once, and so do devices, whose libraries read
// memory without asking; a tensor without data is read by nobody.
bool may_wait(const Tensor& self) {
  if (is_pending(self)) return true;
  return !(self->flags & kSpecialElements) && (self.is_cpu() || self.device().is_meta());
}

Tensor conj_view_kernel(const Call&, const Tensor& self) {
  if (!is_complex(self.dtype())) return turn(self, 0);
  return may_wait(self) ? turn(self, kPendingConj) : ops::conj_physical(self);
}
Tensor neg_view_kernel(const Call&, const Tensor& self) {
  return may_wait(self) ? turn(self, kPendingNeg) : ops::neg(self);
}

Tensor turned_view_of(const Tensor& t, uint32_t flag) {
  const bool conjugated = flag == kPendingConj;
  if (t->flags & kSpecialElements && !is_pending(t)) return conjugated ? ops::conj_physical(t) : ops::neg(t);
  return conjugated ? ops::conj_view(t) : ops::neg_view(t);
}

}  // namespace

void register_private_pending_operators(Table& t) {
  turned_view = turned_view_of;
  t.op(ops::conj_view, "_conj(Tensor(a) self) -> Tensor(a)", conj_view_kernel)
      .family(Family::View)
      .doc("The complex conjugate as a view: computed where the elements are read.")
      .node("ConjBackward0")
      .derivative([](Grad g) { return conj_of(g); });
  t.op(ops::neg_view, "_neg_view(Tensor(a) self) -> Tensor(a)", neg_view_kernel)
      .family(Family::View)
      .doc("The negative of each element as a view: computed where the elements are read.")
      .derivative([](Grad g) { return ops::neg(g); });
}

}  // namespace rushlight
