// What forward of a custom Function returned: which of it is recorded, and how.
#include <algorithm>

#include "core/history_flags.h"
#include "python/autograd_function.h"

namespace rushlight::python {
namespace {

// ctx.dirty_tensors, ctx.non_differentiable: the tensors of a tuple, or nothing.
std::vector<TensorImpl*> tensors_in(PyObject* tuple, const char* what) {
  std::vector<TensorImpl*> list;
  if (!tuple) return list;
  RL_CHECK_TYPE(PyTuple_Check(tuple), "autograd internal error: ", what,
                " attribute is expected to be a tuple but is ", type_name(tuple));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (!is_tensor(item))
      throw_python(PyExc_TypeError, str(what, " can only accept variables, but argument ", i, " is of type ",
                                        type_name(item)));
    list.push_back(impl_of(item));
  }
  return list;
}

bool contains(const std::vector<TensorImpl*>& list, const Tensor& t) {
  return std::ranges::find(list, t.impl()) != list.end();
}

class Outputs {
 public:
  Outputs(PyFunctionObject& ctx, const Ref<FunctionNode>& node, PyObject* inputs, Py_ssize_t count)
      : node_(node),
        count_(count),
        dirty_(tensors_in(ctx.dirty_tensors, "mark_dirty")),
        constant_(tensors_in(ctx.non_differentiable, "mark_non_differentiable")) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i)
      if (PyObject* input = PyTuple_GET_ITEM(inputs, i); is_tensor(input)) inputs_.push_back(impl_of(input));
    for (TensorImpl* t : dirty_)
      check_inplace(Tensor(Ref<TensorImpl>::share(t)), node_ && GradMode::enabled());
  }

  // The tensor to return for `raw`, which is result number `i`.
  Tensor record(const Tensor& raw, uint32_t i) {
    const bool is_input = contains(inputs_, raw), modified = contains(dirty_, raw);
    const bool differentiable = node_ && is_differentiable(raw.dtype()) && !contains(constant_, raw);
    returned_ += modified;
    if (node_ && contains(constant_, raw)) node_->non_differentiable.insert(i);
    if (!differentiable) return as_constant(raw, is_input, modified);
    if (modified && !is_input && show_warning)
      show_warning(
          "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
          "mutated "
          "should be passed to ctx.mark_dirty().");
    if (modified && is_input) {
      RL_CHECK(
          !raw->view_base || count_ == 1,
          "If your Function modifies inplace an input that is a view of another Tensor, your Function "
          "cannot return more than one Tensor. This is not supported by the current autograd engine. You "
          "should either make sure the input is not a view (using .clone() for example) or make your "
          "Function only return one Tensor (potentially splitting it into two Functions: one doing the "
          "inplace that returns a single Tensor and a second one that does the other operations).");
      raw.bump_version();
      set_grad(raw, {});
      rebase_history(raw, node_, i);
      return raw;
    }
    // An input that comes back unchanged has two histories, hence two tensors.
    Tensor result = is_input ? alias_of_input(raw) : raw;
    set_history(result, node_, i);
    mark_view(result);
    return result;
  }
  void check_dirty() const {
    RL_CHECK(returned_ >= dirty_.size(),
             "Some elements marked as dirty during the forward method were not returned as output. The "
             "inputs that are modified inplace must all be outputs of the Function.");
  }

 private:
  // What a class made of its own stays of that class.
  static Tensor alias_of_input(const Tensor& raw) {
    if (!(raw->flags & kPythonSubclass)) return detach(raw);
    const GradMode off(false);
    const PyRef object(check(wrap(raw)));
    const PyRef alias(check(PyObject_CallMethod(object.get(), "view_as", "O", object.get())));
    return expect_tensor(alias.get(), "view_as");
  }
  // A write through it would go past the function's own backward.
  static void mark_view(const Tensor& t) {
    if (t->view_base) t->flags |= kCustomView;
  }
  Tensor as_constant(const Tensor& raw, bool is_input, bool modified) {
    if (modified && !node_) raw.bump_version();
    if (is_input && !modified) return alias_of_input(raw);
    if (!is_input) mark_view(raw);
    if (!requires_grad(raw)) return raw;
    if (is_input) return detach(raw);
    if (!raw->view_base) detach_in_place(raw);
    return raw;
  }

  const Ref<FunctionNode>& node_;
  const Py_ssize_t count_;
  std::vector<TensorImpl*> inputs_, dirty_, constant_;
  size_t returned_ = 0;
};

}  // namespace

PyRef wrap_outputs(PyFunctionObject& ctx, const Ref<FunctionNode>& node, PyObject* inputs, PyRef raw) {
  const Py_ssize_t n = PyTuple_GET_SIZE(raw.get());
  Outputs outputs(ctx, node, inputs, n);
  PyRef result(check(PyTuple_New(n)));
  if (node)
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(raw.get(), i);
      if (is_tensor(item))
        node->add_output(tensor_of(item));
      else
        node->add_output(InputMeta{{}, DType::Float32, {}, false});
    }
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(raw.get(), i);
    if (!is_tensor(item)) {
      PyTuple_SET_ITEM(result.get(), i, Py_NewRef(item));
      continue;
    }
    PyObject* wrapped = check(wrap(outputs.record(tensor_of(item), static_cast<uint32_t>(i))));
    PyTuple_SET_ITEM(result.get(), i, wrapped);
    track(wrapped);  // its grad_fn is a Python object
  }
  outputs.check_dirty();
  return result;
}

void save_tensors(PyFunctionObject& ctx, FunctionNode& node) {
  if (!ctx.to_save) return;
  if (!PyTuple_Check(ctx.to_save))
    throw_python(PyExc_TypeError, str("save_for_backward attribute is expected to be a tuple but is ",
                                      type_name(ctx.to_save)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ctx.to_save); ++i) {
    PyObject* item = PyTuple_GET_ITEM(ctx.to_save, i);
    if (item != Py_None && !is_tensor(item))
      throw_python(PyExc_TypeError, str("save_for_backward can only save variables, but argument ", i,
                                        " is of type ", type_name(item)));
    const Tensor t = optional_tensor(item, "save_for_backward");
    const bool is_output = t.defined() && t->autograd && t->autograd->grad_fn.get() == &node;
    node.saved.emplace_back(t, is_output);
  }
}

}  // namespace rushlight::python
