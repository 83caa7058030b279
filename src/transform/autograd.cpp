#include "transform/autograd.h"

#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "autograd/node_names.h"
#include "autograd/op_node.h"
#include "dispatch/operands.h"
#include "dispatch/table.h"
#include "ops/copy.h"

namespace rushlight {

void (*record_custom_call)(Frame&) = nullptr;

namespace {

// Grad mode off for the kernel alone: the views it makes are not no_grad views.
class KernelScope {
 public:
  KernelScope() : consider_(dispatch_state.consider), view_flags_(view_flags) {
    dispatch_state.grad_enabled = false;
    dispatch_state.consider &= ~kAutograd;
  }
  ~KernelScope() {
    dispatch_state.grad_enabled = true;
    dispatch_state.consider = consider_;
    view_flags = view_flags_;  // a GradMode scope inside the kernel ended with its own idea of it
  }
  KernelScope(const KernelScope&) = delete;

 private:
  uint32_t consider_;
  uint32_t view_flags_;
};

// Tensors made under inference mode are in no graph, whatever their flag says.
bool any_requires_grad(const Frame& frame) {
  bool any = false;
  each_operand(frame.op, frame.args,
               [&](const Tensor& t) { any |= requires_grad(t) && !(t->flags & kInference); });
  return any;
}

// Whether what is written to are integers and truth values, of which no gradient is asked.
bool only_indices_out(const Frame& frame) {
  for (size_t i = 0; i < frame.op.schema.returns.size(); ++i)
    if (is_differentiable(frame.out[i].dtype())) return false;
  return true;
}

void refuse_out(const Frame& frame, bool inputs_require_grad) {
  bool any = inputs_require_grad;
  for (size_t i = 0; i < frame.op.schema.returns.size(); ++i) any |= requires_grad(frame.out[i]);
  RL_CHECK(!any, frame.op.name(),
           "(): functions with out=... arguments don't support automatic differentiation, but one of the "
           "arguments requires grad.");
}

// A kernel that reshaped its own temporary handed back a view of it: nobody else knows the base, and writing
// to such a result is writing to a tensor of its own.
void leave_temporary_base(const Frame& frame, Tensor& result) {
  if (!result->view_base || frame.op.family == Family::View || requires_grad(result)) return;
  bool foreign = false;
  each_operand(frame.op, frame.args,
               [&](const Tensor& t) { foreign |= t->storage.get() == result->storage.get(); });
  if (!foreign) leave_base(result);
}

// A kernel that handed back its input: the result must be another tensor, since it has another history.
void separate_from_inputs(const Frame& frame, Tensor& result) {
  if (result->use_count() == 1) return;
  bool same = false;
  each_operand(frame.op, frame.args, [&](const Tensor& t) { same |= t.is_same(result); });
  if (same) result = make_view(result, result.sizes(), result.strides(), result.storage_offset());
}

// What PyTorch answers with its operand, history and all, when there is nothing to compute.
bool is_itself(const Frame& frame) {
  return frame.op.traits.aliasing == Aliasing::MayReturnInput && !frame.out && frame.results.count == 1 &&
         frame.args[0].tag() == Tag::Tensor && frame.results.tensors[0].is_same(frame.args[0].tensor());
}

void record_result(const Frame& frame, const Ref<Node>& owner, OpNode& node, Tensor& result, size_t i) {
  if (!result.defined()) return;
  if (is_differentiable(result.dtype()) && node.output_is_differentiable(i)) {
    separate_from_inputs(frame, result);
    if (result->view_base) leave_temporary_base(frame, result);
    node.describe_output(i, result);
    set_history(result, owner, static_cast<uint32_t>(i));
  }
  if (node.saved_output(static_cast<int>(i))) node.save_output(i, result);
}

const Tensor& written_tensor(const Frame& frame) {
  return frame.inplace ? frame.out[0] : frame.args[__builtin_ctzll(frame.op.mutated)].tensor();
}

void record_written(const Frame& frame, const Ref<Node>& owner, OpNode& node) {
  const Tensor& target = written_tensor(frame);
  node.describe_output(0, target);
  // transpose_ and its like write no element: what a view is of keeps its history.
  if (frame.op.family == Family::View)
    set_history(target, owner, 0);
  else
    rebase_history(target, owner);
  if (node.saved_output(0)) node.save_output(0, target);
  if (frame.op.derivative.result_serves) node.saved_inputs(0)[0] = SavedVariable(target, true);
}

// Truth values written to numbers do not follow them: the history is that of zero_, under this operator's
// name.
void record_constant(Frame& frame) {
  const Value target(written_tensor(frame));
  Ref<OpNode> node = OpNode::record(ops::zero_.op(), &target, 1);
  node->end_of = static_cast<uint16_t>(frame.op.id + 1);
  {
    KernelScope scope;
    frame.proceed();
  }
  node->describe_output(0, target.tensor());
  rebase_history(target.tensor(), node);
}

uint8_t numbers_among(const Frame& frame) {
  uint8_t numbers = 0;
  for (int p = 0; p < std::min(frame.arg_count(), 8); ++p) {
    const Value& v = frame.args[p];
    if (v.tag() == Tag::Tensor && v.tensor().defined() && v.tensor().is_wrapped_number())
      numbers |= static_cast<uint8_t>(1 << p);
  }
  return numbers;
}

// A composite that PyTorch differentiates as one operator: what it calls is recorded, and the nodes that this
// call made last are called after it.
void name_last_steps(Frame& frame) {
  const uint64_t before = Node::next_sequence();
  frame.proceed();
  const auto name = [&](const Tensor& t) {
    Node* const node = t.defined() && t->autograd ? t->autograd->grad_fn.get() : nullptr;
    if (!node || node->sequence() < before || node->sequence() == Node::kLast) return;
    node->end_of = static_cast<uint16_t>(frame.op.id + 1);
    node->numbers = numbers_among(frame);
  };
  if (frame.inplace) return name(frame.out[0]);
  for (const Tensor& t : frame.results.list) name(t);
  for (int i = 0; i < frame.results.count; ++i) name(frame.results.tensors[i]);
}

void record_call(Frame& frame) {
  const Op& op = frame.op;
  if (op.family == Family::Composite && !op.derivative && !op.made_in_python) return name_last_steps(frame);
  const bool needed = any_requires_grad(frame);
  if (frame.out && !frame.inplace) {
    if (needed && only_indices_out(frame)) {
      KernelScope scope;
      return frame.proceed();
    }
    refuse_out(frame, needed);
  }
  const uint64_t written = written_parameters(frame);
  // A custom operator may write to leaves: what it does has no derivative, and is the program's own affair.
  const bool recorded = needed && !op.made_in_python;
  each_operand(written, frame.args, [&](const Tensor& t) { check_inplace(t, recorded); });
  if (!needed) return frame.proceed();
  if (op.made_in_python) return record_custom_call(frame);
  if (written && !is_differentiable(written_tensor(frame).dtype())) {
    // Integers and truth values have no gradient, whatever was written to them: the history ends here.
    KernelScope scope;
    return frame.proceed();
  }
  if (written && op.traits.gives_bool) return record_constant(frame);
  if (!op.derivative) RL_NOT_IMPLEMENTED("derivative for ", op.name(), " is not implemented");

  Ref<OpNode> node = OpNode::record(op, frame.args, written);
  const Ref<Node> owner = node;
  if (anomaly_state.enabled) record_stack(*node);
  {
    KernelScope scope;
    frame.proceed();
  }
  if (written) return record_written(frame, owner, *node);
  if (is_itself(frame)) return;
  Results& results = frame.results;
  if (!results.list.empty()) {
    node->set_output_count(results.list.size());
    for (size_t i = 0; i < results.list.size(); ++i) record_result(frame, owner, *node, results.list[i], i);
  } else {
    for (int i = 0; i < results.count; ++i) record_result(frame, owner, *node, results.tensors[i], i);
  }
}

}  // namespace

void install_autograd() {
  install_autograd_meta();
  set_interceptor(kAutograd, record_call);
}

}  // namespace rushlight
