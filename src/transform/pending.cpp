#include "transform/pending.h"

#include "core/pending.h"
#include "dispatch/operands.h"
#include "ops/complex.h"
#include "ops/pointwise.h"
#include "transform/replaced.h"

namespace rushlight {
namespace {

// The memory of `t` as it is.
Tensor as_stored(const Tensor& t) {
  const Tensor stored = make_view(t, t.sizes(), t.strides(), t.storage_offset(), false);
  stored->flags &= ~(kPending | kSpecialElements);
  return stored;
}

// The operator's kernel alone: what happens here is no step of the program.
Tensor computed(const Op& op, const Tensor& t) {
  const Value args[] = {Value(t)};
  Results results;
  Frame frame{op, args, nullptr, false, 0, results};
  frame.proceed();
  return results.tensors[0];
}

// A new tensor of the numbers that `stored` stands for, or that stand for `stored`: both steps undo
// themselves.
Tensor turned(Tensor stored, uint32_t pending) {
  if (pending & kPendingConj) stored = computed(ops::conj_physical.op(), stored);
  if (pending & kPendingNeg) stored = computed(ops::neg.op(), stored);
  return stored;
}

// A new tensor with the numbers of one that is pending; no step of the program.
Tensor resolved(const Tensor& t) { return turned(as_stored(t), t->flags); }

void write_back(const Op& op, const Tensor& target, const Tensor& numbers) {
  target.check_writable(op.name());
  if (target.sizes() != numbers.sizes()) resize_tensor(target, numbers.sizes());
  copy_result(as_stored(target), turned(numbers, target->flags), false);
  target.bump_version(&op.schema.name);
}

bool looks_elsewhere(const Op& op) { return op.family == Family::View || op.family == Family::Composite; }

bool is_written(const Frame& frame, const Tensor& t) {
  bool written = false;
  each_operand(frame.op.mutated, frame.args, [&](const Tensor& m) { written |= m.is_same(t); });
  if (frame.out)
    for (int i = 0; i < target_count(frame); ++i) written |= frame.out[i].is_same(t);
  return written;
}

}  // namespace

bool has_pending(const Frame& frame) {
  bool pending = false;
  each_operand(frame, [&](const Tensor& t) { pending |= is_pending(t); });
  return pending;
}

void pending_call(Frame& frame, void (*others)(Frame&)) {
  if (looks_elsewhere(frame.op)) return frame.proceed();
  const Replaced with(frame, is_pending, resolved);
  Frame inner{frame.op, with.args(), with.outs(), frame.inplace, 0, frame.results};
  bool special = false;
  each_operand(inner, [&](const Tensor& t) { special |= (t->flags & kSpecialElements) != 0; });
  special ? others(inner) : inner.proceed();
  for (const auto& [operand, numbers] : with.pairs()) {
    if (!is_written(frame, operand)) continue;
    write_back(frame.op, operand, numbers);
    each_result(frame.results, [&](Tensor& result) {
      if (result.is_same(numbers)) result = operand;
    });
  }
}

}  // namespace rushlight
