// The Vmap level: which rule an operator call takes, and the rule that every operator has.
#include "transform/vmap.h"

#include <algorithm>

#include "autograd/gradient_ops.h"
#include "dispatch/warning.h"
#include "ops/copy.h"
#include "ops/join.h"
#include "ops/view.h"

namespace rushlight {

BatchCall::BatchCall(Frame& frame, Level& level) : frame_(frame), level_(level) {}

Tensor BatchCall::front(const Tensor& t) const {
  const Wrapping* w = wrapping_at(t, level_);
  if (!w) return t;
  return w->batch_dim == 0 ? w->inner : ops::movedim_int(w->inner, w->batch_dim, 0);
}

Tensor BatchCall::examples(const Tensor& t) const {
  if (is_batched(t)) return front(t);
  Dims sizes = t->sizes;
  sizes.insert(0, size());
  return ops::expand(t, sizes, false);
}

Tensor BatchCall::aligned(const Tensor& t, int64_t rank) const {
  Tensor e = examples(t);
  if (t.dim() >= rank) return e;
  Dims sizes{size()};
  for (int64_t i = t.dim(); i < rank; ++i) sizes.push_back(1);
  for (int64_t s : t.sizes()) sizes.push_back(s);
  return ops::reshape(e, sizes);
}

namespace {

constexpr const char* kInplace =
    "(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
    "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over "
    "in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said operator is "
    "being called inside the PyTorch framework, please file a bug report instead.";

void check_target(const Frame& frame, const Tensor& target, Level& level) {
  RL_CHECK(wrapping_at(target, level) || promote_in_place(target, level), "vmap: ", frame.op.name(),
           frame.inplace ? "_" : "", kInplace);
}

// Copies the examples of `source` into those of `target`.
void copy_examples(const Tensor& target, const Tensor& source) { ops::copy_(target, source, false); }

// The operands of an in-place form, of which the one that will be overwritten is copied where a derivative
// may have saved it.
std::vector<Value> kept_operands(const Frame& frame, Tensor& copy) {
  std::vector<Value> args(frame.args, frame.args + frame.arg_count());
  if (!frame.inplace || !GradMode::enabled()) return args;
  if (frame.op.derivative && !frame.op.derivative.saved_inputs) return args;
  bool recorded = false;
  each_operand(frame, [&](const Tensor& t) { recorded |= has_history(t); });
  if (!recorded) return args;
  copy = ops::clone(frame.out[0]);
  for (Value& v : args)
    if (v.tag() == Tag::Tensor && v.tensor().is_same(frame.out[0])) v = Value(copy);
  return args;
}

// In-place forms and out=: computed apart, then copied into the target.
void run_into_targets(Frame& frame, Level& level) {
  AtLevel here(&level);
  Results results;
  Tensor copy;
  call_boxed(frame.op, kept_operands(frame, copy).data(), results);
  for (int i = 0; i < target_count(frame); ++i) {
    const Tensor &target = frame.out[i], &result = results.tensors[i];
    if (!result.is_same(target)) {
      if (wrapping_at(result, level)) check_target(frame, target, level);
      if (target.sizes() != result.sizes() || target.dtype() != result.dtype())
        prepare_output(frame.op, target, result.sizes(), result.dtype(), frame.inplace);
      copy_examples(target, result);
    }
    frame.results.tensors[i] = target;
  }
  frame.results.count = results.count;
}

// The wrapper of an operand whose geometry is rewritten comes to stand for the view.
void run_geometry(Frame& frame, Level& level) {
  AtLevel here(&level);
  std::string_view name = frame.op.name();
  name.remove_suffix(1);
  const Tensor& self = frame.args[0].tensor();
  for (const Op* op : operator_table().find(frame.op.schema.space, name)) {
    if (op->schema.overload != frame.op.schema.overload &&
        !(op->schema.parameters.size() == frame.op.schema.parameters.size()))
      continue;
    bool same = op->schema.parameters.size() == frame.op.schema.parameters.size();
    for (size_t i = 0; same && i < op->schema.parameters.size(); ++i)
      same = op->schema.parameters[i].type == frame.op.schema.parameters[i].type;
    if (!same) continue;
    Results results;
    call_boxed(*op, frame.args, results);
    *self->wrapping = *results.tensors[0]->wrapping;
    refresh_wrapper(self);
    frame.results.tensors[0] = self;
    frame.results.count = 1;
    return;
  }
  RL_FAIL(frame.op.name(), "(): not supported inside vmap; use the form that is not in place");
}

void wrap_results(Frame& frame, Level& level, Results& results) {
  Tensor base;
  each_operand(frame, [&](const Tensor& t) {
    if (!base.defined() && wrapping_at(t, level)) base = t;
  });
  auto wrapped = [&](const Tensor& t) {
    if (!t.defined()) return t;
    // What an operator does not give, such as singular vectors that are not wanted, is empty and has no
    // examples.
    const bool absent = t.dim() == 1 && t.size(0) == 0 && level.batch_size > 0;
    Tensor w = wrap_batched(absent ? ops::expand(t, {level.batch_size, 0}, false) : t, 0, level);
    if (frame.op.family == Family::View && t->view_base && base.defined()) {
      w->view_base = base->view_base ? base->view_base : Ref<TensorImpl>::share(base.impl());
      w->flags |= t->flags & kMultiView;
    }
    return w;
  };
  frame.results.count = results.count;
  for (int i = 0; i < results.count; ++i)
    frame.results.tensors[i] = frame.op.schema.returns[static_cast<size_t>(i)].type == Tag::Tensor
                                   ? wrapped(results.tensors[i])
                                   : results.tensors[i];
  for (const Tensor& t : results.list) frame.results.list.push_back(wrapped(t));
}

// Written parameters stay what they are; their examples were written through.
void return_written(Frame& frame) {
  const int p = __builtin_ctzll(frame.op.mutated);
  if (frame.op.schema.returns.empty() || frame.args[p].tag() != Tag::Tensor) return;
  frame.results.tensors[0] = frame.args[p].tensor();
  frame.results.count = 1;
}

void check_written(Frame& frame, Level& level) {
  each_operand(frame.op.mutated, frame.args, [&](const Tensor& t) { check_target(frame, t, level); });
}

BatchEntry entry_of(Batching batching) {
  switch (batching) {
    case Batching::ByFamily:
    case Batching::Loop:
      return {nullptr, "loop"};
    case Batching::Composite:
      return {nullptr, "composite"};
    case Batching::Pointwise:
      return {batch_pointwise, "pointwise"};
    case Batching::Dims:
      return {shift_dims, "dims"};
    case Batching::Reduction:
      return {reduce_dims, "reduction"};
    case Batching::Batch:
      return {join_batch, "batch"};
    case Batching::Window:
      return {join_window_batch, "window"};
    case Batching::LeadingDims:
      return {lead_dims, "leading dims"};
    case Batching::Loss:
      return {batch_loss, "loss"};
    case Batching::Random:
    case Batching::RandomEach:
      return {draw_numbers, "random"};
    case Batching::RandomLike:
      return {draw_numbers, "random like"};
    case Batching::Geometry:
      return {nullptr, "view"};
    case Batching::Refused:
      return {refuse_dynamic_shape, "refused: the result's shape depends on values"};
  }
  return {};
}

const std::vector<BatchEntry>& entries() {
  static const std::vector<BatchEntry> table = [] {
    std::vector<BatchEntry> found;
    for (const Op& op : operator_table().ops()) found.push_back(entry_of(op.traits.batching));
    BatchTable t(found);
    add_pointwise_rules(t);
    add_shape_rules(t);
    add_reduction_rules(t);
    add_index_rules(t);
    add_matmul_rules(t);
    add_nn_rules(t);
    return found;
  }();
  return table;
}

}  // namespace

BatchEntry custom_batch_entry{nullptr, "registered"};

const BatchEntry& batch_entry(const Op& op) {
  static const BatchEntry none{};
  if (op.made_in_python) return custom_batch_entry;
  return op.id < entries().size() ? entries()[op.id] : none;  // beyond: an operator of an extension
}

bool run_batched(Frame& frame, Level& level) {
  bool concerned = false;
  each_operand(frame, [&](const Tensor& t) { concerned |= wrapping_at(t, level) != nullptr; });
  const bool draws = batch_entry(frame.op).rule == draw_numbers;
  if (!concerned && !draws) return false;
  const BatchEntry& entry = batch_entry(frame.op);
  if (frame.out && !(frame.op.family == Family::Random && frame.inplace)) {
    run_into_targets(frame, level);
    return true;
  }
  if (frame.op.traits.batching == Batching::Geometry) {
    run_geometry(frame, level);
    return true;
  }
  if (concerned && frame.op.mutated) check_written(frame, level);
  BatchCall call(frame, level);
  {
    AtLevel outside(level.parent.get());
    (entry.rule ? entry.rule : loop_over_examples)(call);
  }
  if (frame.op.mutated)
    return_written(frame);
  else if (call.shared)
    std::swap(frame.results, call.results);
  else
    wrap_results(frame, level, call.results);
  return true;
}

// --- the rule that every operator has

namespace {

// The results of one example each, turned into results with the examples first.
class Stacked {
 public:
  void add(const Results& r) {
    if (rows_.empty()) {
      count_ = r.count;
      list_ = r.list.size();
      rows_.resize(static_cast<size_t>(count_) + list_);
    }
    RL_CHECK(r.count == count_ && r.list.size() == list_,
             "vmap: an operator returned different numbers of results for different examples");
    for (int i = 0; i < count_; ++i) rows_[i].push_back(r.tensors[i]);
    for (size_t i = 0; i < list_; ++i) rows_[count_ + i].push_back(r.list[i]);
  }
  void finish(BatchCall& c) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      Tensor whole = join(c, rows_[i]);
      if (i < static_cast<size_t>(count_))
        c.result(std::move(whole));
      else
        c.results.list.push_back(std::move(whole));
    }
  }

 private:
  static Tensor join(const BatchCall& c, const std::vector<Tensor>& rows) {
    if (!rows[0].defined()) return {};
    const Tensor whole = ops::stack(rows, 0);
    return c.size() ? whole : ops::narrow(whole, 0, 0, 0);
  }
  int count_ = 0;
  size_t list_ = 0;
  std::vector<std::vector<Tensor>> rows_;
};

bool has_list_result(const Schema& schema) {
  return std::any_of(schema.returns.begin(), schema.returns.end(),
                     [](const Return& r) { return r.type == Tag::TensorList; });
}

// Where there are none, of zeros: what shapes and dtypes the results have.
Tensor example(const BatchCall& c, const Tensor& t, int64_t i) {
  const Wrapping* w = wrapping_at(t, c.level());
  if (!w) return t;
  if (c.size()) return ops::select(w->inner, w->batch_dim, i);
  Dims sizes(w->inner->sizes);
  sizes[w->batch_dim] = 1;
  const Tensor zeros = gradient_ops.zeros(sizes, t.dtype(), t.device());
  return ops::select(ops::cat(std::vector{w->inner, zeros}, w->batch_dim), w->batch_dim, 0);
}

}  // namespace

void loop_over_examples(BatchCall& c) {
  for (const Return& r : c.op().schema.returns)
    RL_CHECK(r.type == Tag::Tensor || r.type == Tag::TensorList,
             "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
             "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues . (",
             c.op().name(), ")");
  RL_CHECK(c.op().schema.returns.size() == 1 || !has_list_result(c.op().schema), "vmap: ", c.op().name(),
           "() returns a list beside other results and has no batching rule; torch.library.register_vmap "
           "gives it one");
  RL_CHECK(loops_allowed, "aten::", c.op().name(), " hit the vmap fallback which is currently disabled");
  if (warn_of_loops && show_warning)
    show_warning(
        str("There is a performance drop because we have not yet implemented the batching rule for aten::",
            c.op().name(), ": it runs once for each example."));
  Stacked stacked;
  const int64_t runs = c.op().mutated ? c.size() : std::max<int64_t>(c.size(), 1);
  for (int64_t i = 0; i < runs; ++i) {
    const Operands one(c.frame(), [&](const Tensor& t, int) { return example(c, t, i); });
    Results results;
    call_boxed(c.op(), one.args(), results);
    if (!c.op().mutated) stacked.add(results);
  }
  if (!c.op().mutated) stacked.finish(c);
}

}  // namespace rushlight
