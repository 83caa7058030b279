#include "autograd/node.h"

#include <algorithm>
#include <optional>

#include "autograd/gradient_ops.h"
#include "autograd/hooked.h"
#include "autograd/meta.h"

namespace rushlight {

// The queue of Note [Freeing graphs], linked through the sequence numbers, which dead nodes do not need.
struct DeadNodes {
  Node* head = nullptr;
  bool working = false;

  void push(Node* node) noexcept {
    node->sequence_ = reinterpret_cast<uint64_t>(head);
    head = node;
  }
  Node* pop() noexcept {
    Node* node = head;
    if (node) head = reinterpret_cast<Node*>(node->sequence_);
    return node;
  }
};
static_assert(sizeof(uint64_t) >= sizeof(Node*));

void Node::destroy(Node* node) noexcept {
  if ((node->is_accumulate || node->is_python) && !node->leave()) return;
  static thread_local constinit DeadNodes dead __attribute__((tls_model("initial-exec")));
  dead.push(node);
  if (dead.working) return;
  dead.working = true;
  while (Node* next = dead.pop()) next->free();
  dead.working = false;
}

uint64_t& Node::next_sequence() {
  static thread_local constinit uint64_t next __attribute__((tls_model("initial-exec"))) = 0;
  return next;
}

namespace {

void run_hooks(Node& node, Gradients& grads, std::optional<uint32_t> output) {
  NodeHooks* hooks = node.hooks();
  if (!hooks) return;
  for (size_t i = 0;; ++i) {  // by index: a hook may register another
    NodeHooks::OnOutput entry;
    {
      std::lock_guard guard(node.lock);
      if (i >= hooks->on_outputs.size()) break;
      entry = hooks->on_outputs[i];
    }
    if (entry.output >= grads.size() || (output && entry.output != *output)) continue;
    if (!grads[entry.output].defined() && !entry.hook->python()) continue;  // Python sees None, as in PyTorch
    Tensor changed = entry.hook->call(grads[entry.output]);
    if (changed.defined()) grads[entry.output] = std::move(changed);
  }
}

}  // namespace

void Node::run_tensor_hooks(Gradients& grads) {
  run_hooks(*this, grads, {});
  if (hooks_) keep_retained(grads);
}

void run_hooks_of_output(Node& node, uint32_t output, Gradients& grads) { run_hooks(node, grads, output); }

void Node::keep_retained(const Gradients& grads) { keep_retained_gradients(*this, grads); }

// Arithmetic runs outside the lock; a tensor that dies meanwhile takes its entry with it.
void keep_retained_gradients(Node& node, const Gradients& grads) {
  NodeHooks* hooks = node.hooks();
  if (!hooks) return;
  std::vector<NodeHooks::Retained> entries;
  {
    std::lock_guard guard(node.lock);
    entries = hooks->retained;
  }
  auto alive = [&](const NodeHooks::Retained& r) {
    return std::ranges::any_of(hooks->retained,
                               [&](const NodeHooks::Retained& e) { return e.meta == r.meta; });
  };
  for (const NodeHooks::Retained& r : entries) {
    if (r.output >= grads.size() || !grads[r.output].defined()) continue;
    Tensor sum;
    {
      std::lock_guard guard(node.lock);
      if (alive(r)) {
        std::lock_guard grad_guard(r.meta->lock);
        sum = r.meta->grad;
      }
    }
    const Tensor& grad = grads[r.output];
    sum = sum.defined() ? gradient_ops.add(sum, grad) : gradient_ops.clone_in_order(grad);
    std::lock_guard guard(node.lock);
    if (alive(r)) sum = exchange_grad(*r.meta, std::move(sum));
  }
}

}  // namespace rushlight
