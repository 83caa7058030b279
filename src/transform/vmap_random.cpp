// vmap of random numbers: an error, different ones for each example, or the same for all.
#include "ops/copy.h"
#include "ops/view.h"
#include "transform/vmap.h"

namespace rushlight {
namespace {

bool any_batched(const BatchCall& c) {
  bool any = false;
  each_operand(c.frame(), [&](const Tensor& t) { any |= c.is_batched(t); });
  return any;
}

void draw_in_place(BatchCall& c) {
  RL_CHECK(c.batched(0) || c.level().randomness != Randomness::Different,
           "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like "
           "same randomness. If this is necessary for your usage, please file an issue with functorch.");
  const Tensor self = c.front(0);
  std::vector<Value> args = c.args();
  if (c.level().randomness == Randomness::Different || !c.batched(0)) {
    if (c.arg_count() > 1 && c.given(1)) return loop_over_examples(c);
    args[0] = Value(self);
    return c.call(args.data());
  }
  RL_CHECK(c.arg_count() < 2 || !c.batched(1),
           "Vmap does not currently support same randomness with a batched tensor input");
  if (c.size() == 0) return;
  const Tensor first = ops::select(self, 0, 0);
  args[0] = Value(first);
  c.call(args.data());
  ops::copy_(self, ops::expand(ops::clone(first, std::nullopt), self.sizes(), false), false);
}

void draw_same(BatchCall& c) {
  RL_CHECK(!any_batched(c) || c.op().traits.batching == Batching::RandomLike,
           "Vmap does not currently support same randomness with a batched tensor input");
  const Operands one(c.frame(), [&](const Tensor& t, int) {
    const Wrapping* w = wrapping_at(t, c.level());
    return w ? ops::select(w->inner, w->batch_dim, 0) : t;
  });
  call_boxed(c.op(), one.args(), c.results);
  c.shared = true;
}

}  // namespace

void draw_numbers(BatchCall& c) {
  RL_CHECK(c.level().randomness != Randomness::Error,
           "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
           "'different' randomness flags on vmap or perform the randomness operation out of vmap");
  if (c.op().mutated) return draw_in_place(c);
  if (c.level().randomness == Randomness::Same) return draw_same(c);
  if (c.op().traits.batching == Batching::RandomEach) return loop_over_examples(c);
  if (c.op().tensor_parameters & (c.op().tensor_parameters - 1)) {  // normal(mean, std), binomial
    int64_t rank = 0;
    each_operand(c.frame(), [&](const Tensor& t) { rank = std::max(rank, t.dim()); });
    const Operands all(c.frame(), [&](const Tensor& t, int) { return c.aligned(t, rank); });
    return call_boxed(c.op(), all.args(), c.results);
  }
  shift_dims(c);
}

}  // namespace rushlight
