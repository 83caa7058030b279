// User callbacks on gradients. src/python implements these interfaces over Python dictionaries; C++ users get
// lambdas.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "autograd/gradients.h"

namespace rushlight {

// Anything a layer above attaches to a node or tensor. `python()` is the object the cycle collector may
// visit.
class Attachment : public RefCounted {
 public:
  static void destroy(Attachment* a) { delete a; }
  virtual ~Attachment() = default;
  virtual void* python() const { return nullptr; }
};

// Sees the gradient of one tensor and may replace it; an undefined result keeps it.
class TensorHook : public Attachment {
 public:
  virtual Tensor call(const Tensor& grad) = 0;
};
// Runs before a node with the gradients of its outputs, which it may replace.
class NodePreHook : public Attachment {
 public:
  virtual void call(Gradients& grad_outputs) = 0;
};
// Runs after a node and may replace the gradients of its inputs.
class NodePostHook : public Attachment {
 public:
  virtual void call(Gradients& grad_inputs, const Gradients& grad_outputs) = 0;
};
// Runs after a gradient was accumulated into a leaf.
class PostAccumulateHook : public Attachment {
 public:
  virtual void call(const Tensor& leaf) = 0;
};

class TensorFunctionHook final : public TensorHook {
 public:
  explicit TensorFunctionHook(std::function<Tensor(const Tensor&)> f) : function_(std::move(f)) {}
  Tensor call(const Tensor& grad) override { return function_(grad); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

struct AutogradMeta;

// The hooks of one node; most nodes have none.
struct NodeHooks {
  struct OnOutput {
    uint32_t output;
    Ref<TensorHook> hook;
  };
  struct Retained {  // Tensor.retain_grad(); the tensor removes the entry when it dies
    uint32_t output;
    AutogradMeta* meta;
  };
  std::vector<OnOutput> on_outputs;
  std::vector<Retained> retained;
  std::vector<Ref<NodePreHook>> before;
  std::vector<Ref<NodePostHook>> after;
  Ref<Attachment> metadata;  // Node.metadata: a dictionary, with the forward traceback under anomaly mode
};

}  // namespace rushlight
