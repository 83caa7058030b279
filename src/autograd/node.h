// Node: one step of the backward graph. Edges lead from a node to the nodes that receive its results.
#pragma once
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "autograd/hooks.h"
#include "dispatch/derivative.h"

namespace rushlight {

class Node;
class SavedVariable;

struct Edge {
  Ref<Node> node;
  uint32_t input = 0;  // which gradient of `node` this is
  explicit operator bool() const { return static_cast<bool>(node); }
};

// For sections of a few instructions; one byte.
class SpinLock {
 public:
  void lock() noexcept {
    while (flag_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() noexcept { flag_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> flag_{false};
};

class Node : public RefCounted {
 public:
  static constexpr uint64_t kLast =
      std::numeric_limits<uint64_t>::max();  // sequence number of leaves: run at once
  Node() : sequence_(next_sequence()++) {}
  explicit Node(uint64_t sequence) : sequence_(sequence) {}
  // Note [Freeing graphs]
  // Freeing a node drops saved tensors and edges, which may free further nodes. Nested calls only queue their
  // node, and the outermost call works the queue off, so that graphs of any depth are freed in constant
  // stack.
  static void destroy(Node* node) noexcept;

  virtual std::string name() const = 0;
  // Gradients of the outputs in, gradients for the edges out. Either may hold undefined tensors (zero).
  virtual Gradients apply(Gradients grads) = 0;
  // Frees what the forward pass saved; later use fails with PyTorch's message.
  virtual void release_saved() {}
  // Shows every saved tensor; for the cycle collector.
  virtual void each_saved(const std::function<void(const SavedVariable&)>&) const {}

  std::span<Edge> edges() { return {edges_, edge_count_}; }
  std::span<const Edge> edges() const { return {edges_, edge_count_}; }
  // Shape, dtype and device of the forward outputs, which their gradients must match.
  std::span<const InputMeta> outputs() const { return {outputs_, output_count_}; }
  uint64_t sequence() const { return sequence_; }
  void set_sequence(uint64_t s) { sequence_ = s; }
  // Counts recorded operations of this thread.
  static uint64_t& next_sequence();

  // Read and changed under `lock`.
  NodeHooks* hooks() const { return hooks_; }
  NodeHooks& ensure_hooks() {
    if (NodeHooks* there = hooks_) return *there;
    auto mine = std::make_unique<NodeHooks>();
    NodeHooks* there = hooks_.publish(mine.get());
    if (there == mine.get()) (void)mine.release();
    return *there;
  }
  void add_output_hook(uint32_t output, Ref<TensorHook> hook) {
    NodeHooks& hooks = ensure_hooks();
    std::lock_guard guard(lock);
    hooks.on_outputs.push_back({output, std::move(hook)});
  }
  // Runs the tensor hooks of the forward outputs, in order of registration, then keeps retained gradients.
  virtual void run_tensor_hooks(Gradients& grads);

  SpinLock lock;           // guards saved tensors, hooks and retained gradients
  bool is_op = false;      // an OpNode
  bool is_python = false;  // a custom Function: pyobj is its ctx object, owned by the node
  bool is_accumulate = false;
  bool any_dtype = false;  // gradients keep their dtype (Tensor.grad_dtype = None)
  uint8_t numbers = 0;     // bit per parameter that was a Python number where a tensor may stand; for names
  uint16_t end_of = 0;     // 1 + the id of the composite whose last step this is. See autograd/node_names.h
  Published<void> pyobj;   // the Python wrapper, if one lives (borrowed, except for custom Functions)

 protected:
  virtual ~Node() { delete hooks_.get(); }
  virtual void free() noexcept { delete this; }
  // Of nodes that are known where they are not owned: the last reference is gone, and whoever knows the node
  // forgets it. False: somebody took a reference meanwhile.
  virtual bool leave() noexcept { return true; }

  Edge* edges_ = nullptr;
  InputMeta* outputs_ = nullptr;
  uint32_t edge_count_ = 0, output_count_ = 0;

 private:
  friend struct DeadNodes;
  void keep_retained(const Gradients& grads);
  uint64_t sequence_;
  Published<NodeHooks> hooks_;  // owned
};

// A node with its edges and output descriptions in vectors; for everything but recorded operators.
class PlainNode : public Node {
 public:
  using Node::Node;
  void add_edge(Edge e) {
    edge_storage_.push_back(std::move(e));
    edges_ = edge_storage_.data();
    edge_count_ = static_cast<uint32_t>(edge_storage_.size());
  }
  uint32_t add_output(const Tensor& t) {
    return add_output(InputMeta{Dims(t->sizes), t.dtype(), t.device()});
  }
  uint32_t add_output(InputMeta meta) {
    output_storage_.push_back(std::move(meta));
    outputs_ = output_storage_.data();
    output_count_ = static_cast<uint32_t>(output_storage_.size());
    return output_count_ - 1;
  }

 private:
  std::vector<Edge> edge_storage_;
  std::vector<InputMeta> output_storage_;
};

// Passes gradients through a function object; for the C++ front end and tests.
class FunctionNode final : public PlainNode {
 public:
  FunctionNode(std::string name, std::function<Gradients(Gradients)> f)
      : name_(std::move(name)), function_(std::move(f)) {}
  std::string name() const override { return name_; }
  Gradients apply(Gradients grads) override { return function_(std::move(grads)); }

 private:
  std::string name_;
  std::function<Gradients(Gradients)> function_;
};

}  // namespace rushlight
