// Custom Functions: the node and the ctx object, which own each other in one direction only.
#pragma once
#include <set>

#include "python/autograd.h"

namespace rushlight::python {

class FunctionNode;

// The ctx object: an instance of "XBackward". Note [Custom functions]
struct PyFunctionObject {
  PyObject_HEAD FunctionNode* node;  // ask recorded(); null before recording and after the end of the graph
  PyObject *to_save, *saved_for_forward, *non_differentiable, *dirty_tensors, *needs_input_grad;
  bool materialize_grads, materialize_non_diff_grads, pure_view;
  bool owns_node;
};

// Note [Custom functions]
// The node owns its ctx object; the ctx object merely knows the node. As long as a tensor of the graph lives,
// so do both. grad_fn of such a tensor is the ctx object itself. When the graph lets go of a node whose ctx
// object Python still holds, ownership turns round (owns_node): the object keeps the node, which no longer
// knows it. recorded() turns it back, so nothing but the object refers to a node in that state.
class FunctionNode final : public PlainNode {
 public:
  explicit FunctionNode(PyObject* ctx);
  std::string name() const override;
  Gradients apply(Gradients grads) override;
  void release_saved() override;
  void each_saved(const std::function<void(const SavedVariable&)>& f) const override {
    for (const SavedVariable& s : saved) f(s);
  }
  PyFunctionObject& ctx() const { return *static_cast<PyFunctionObject*>(pyobj.get()); }

  std::vector<SavedVariable> saved;
  std::vector<bool> is_tensor_input;
  std::set<size_t> non_differentiable;  // outputs, by mark_non_differentiable
  std::atomic<bool> freed{false};

 private:
  ~FunctionNode() override = default;
  void free() noexcept override;
  bool leave() noexcept override;
  Gradients read_result(PyRef result);
};

// The node of a ctx object, which may be dying on another thread; null without one.
Ref<FunctionNode> recorded(PyFunctionObject& ctx);
// The outputs of forward, recorded as `node`'s (null: not recorded), in the form in which apply returns them.
PyRef wrap_outputs(PyFunctionObject& ctx, const Ref<FunctionNode>& node, PyObject* inputs, PyRef raw);
void save_tensors(PyFunctionObject& ctx, FunctionNode& node);

}  // namespace rushlight::python
