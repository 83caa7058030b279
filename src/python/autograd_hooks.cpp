// Python functions as hooks: each hook object holds the ordered dictionary in which Python files them by
// handle.
#include "python/autograd.h"

namespace rushlight::python {

Tensor optional_tensor(PyObject* o, const char* what) {
  return o == Py_None ? Tensor() : expect_tensor(o, what);
}

PyRef gradients_tuple(const Gradients& grads) {
  PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
  for (size_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, check(wrap(grads[i])));
  return tuple;
}

namespace {

// The functions in the dictionary, as they are now: a hook may remove itself.
PyRef functions_of(PyObject* dict) { return PyRef(check(PyMapping_Values(dict))); }

std::string hook_name(PyObject* hook) {
  PyRef name(PyObject_GetAttrString(hook, "__name__"));
  if (!name) PyErr_Clear();
  return name && PyUnicode_Check(name.get()) ? std::string(string_view(name.get())) : "<unknown>";
}

void check_replacement(const Tensor& was, PyObject* now, PyObject* hook) {
  if (!is_tensor(now))
    throw_python(PyExc_TypeError, str("expected Variable, but hook returned '", type_name(now), "'"));
  const Tensor& t = tensor_of(now);
  RL_CHECK(!was.defined() || t.dtype() == was.dtype(), "hook '", hook_name(hook),
           "' has changed the type of value (was ", dtype_name(was.dtype()), " got ", dtype_name(t.dtype()),
           ")");
  RL_CHECK(!was.defined() || t.sizes() == was.sizes(), "hook '", hook_name(hook),
           "' has changed the size of value (was ", was.sizes(), " got ", t.sizes(), ")");
}

class DictTensorHook final : public PyAttached<TensorHook> {
 public:
  using PyAttached::PyAttached;
  Tensor call(const Tensor& grad) override {
    GilAcquire gil;
    PyRef functions = functions_of(object());
    PyRef value(check(wrap(grad)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions.get()); ++i) {
      PyObject* hook = PyList_GET_ITEM(functions.get(), i);
      PyRef result(check(PyObject_CallOneArg(hook, value.get())));
      if (result.get() == Py_None) continue;
      check_replacement(grad, result.get(), hook);
      value = std::move(result);
    }
    return value.get() == Py_None ? Tensor() : tensor_of(value.get());
  }
};

class DictPostAccumulateHook final : public PyAttached<PostAccumulateHook> {
 public:
  using PyAttached::PyAttached;
  void call(const Tensor& leaf) override {
    GilAcquire gil;
    PyRef functions = functions_of(object());
    PyRef value(check(wrap(leaf)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions.get()); ++i) {
      PyRef result(check(PyObject_CallOneArg(PyList_GET_ITEM(functions.get(), i), value.get())));
      // What its last write returned, as an example of PyTorch's documentation does, is no gradient.
      const bool is_leaf = is_tensor(result.get()) && tensor_of(result.get())->storage == leaf->storage;
      RL_CHECK(result.get() == Py_None || is_leaf, "Tensor post accumulate grad hooks should return None.");
    }
  }
};

// What a node hook returned takes the place of `grads`.
void replace(Gradients& grads, PyRef result, PyObject* hook) {
  if (result.get() == Py_None) return;
  if (!PyTuple_Check(result.get())) result = PyRef(check(PyTuple_Pack(1, result.get())));
  RL_CHECK(PyTuple_GET_SIZE(result.get()) == static_cast<Py_ssize_t>(grads.size()), "hook '", hook_name(hook),
           "' has returned an incorrect number of values (got ", PyTuple_GET_SIZE(result.get()),
           ", but expected ", grads.size(), ")");
  for (size_t i = 0; i < grads.size(); ++i) {
    PyObject* item = PyTuple_GET_ITEM(result.get(), i);
    if (item != Py_None) check_replacement(grads[i], item, hook);
    grads[i] = optional_tensor(item, "hook result");
  }
}

class DictPreHook final : public PyAttached<NodePreHook> {
 public:
  using PyAttached::PyAttached;
  void call(Gradients& grad_outputs) override {
    GilAcquire gil;
    PyRef functions = functions_of(object());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions.get()); ++i) {
      PyObject* hook = PyList_GET_ITEM(functions.get(), i);
      PyRef outputs = gradients_tuple(grad_outputs);
      replace(grad_outputs, PyRef(check(PyObject_CallOneArg(hook, outputs.get()))), hook);
    }
  }
};

class DictPostHook final : public PyAttached<NodePostHook> {
 public:
  using PyAttached::PyAttached;
  void call(Gradients& grad_inputs, const Gradients& grad_outputs) override {
    GilAcquire gil;
    PyRef functions = functions_of(object()), outputs = gradients_tuple(grad_outputs);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions.get()); ++i) {
      PyObject* hook = PyList_GET_ITEM(functions.get(), i);
      PyRef inputs = gradients_tuple(grad_inputs);
      replace(grad_inputs,
              PyRef(check(PyObject_CallFunctionObjArgs(hook, inputs.get(), outputs.get(), nullptr))), hook);
    }
  }
};

PyRef attribute_of_module(const char* module, const char* name) {
  PyRef m(check(PyImport_ImportModule(module)));
  return PyRef(check(PyObject_GetAttrString(m.get(), name)));
}

Ref<Node> expect_node(PyObject* o) {
  Ref<Node> node = node_of(o);
  RL_CHECK(node, "this custom Function's node has been freed: keep a tensor of its graph alive");
  return node;
}

// The dictionary of the node's Python hooks of type Hook, made on demand.
template <class Hook, class List>
PyRef dict_in(Node& node, List& list) {
  PyRef fresh = new_hook_dict();
  const Ref<Hook> hook = Ref<Hook>::adopt(new Hook(fresh.get()));
  std::lock_guard guard(node.lock);
  for (const auto& h : list)
    if (auto* ours = dynamic_cast<Hook*>(h.get())) return PyRef::borrow(ours->object());
  list.push_back(hook);
  return fresh;
}

}  // namespace

Ref<TensorHook> make_tensor_hook(PyObject* dict) {
  return Ref<DictTensorHook>::adopt(new DictTensorHook(dict));
}
Ref<PostAccumulateHook> make_post_accumulate_hook(PyObject* dict) {
  return Ref<DictPostAccumulateHook>::adopt(new DictPostAccumulateHook(dict));
}

PyRef new_hook_dict() {
  static constinit Lazy type;
  return PyRef(check(PyObject_CallNoArgs(
      type.get([] { return attribute_of_module("rushlight.utils.hooks", "_HookTable").release(); }))));
}

PyObject* add_hook(PyObject* dict, PyObject* hook) {
  static constinit Lazy type;
  PyObject* handle_type =
      type.get([] { return attribute_of_module("rushlight.utils.hooks", "RemovableHandle").release(); });
  PyRef handle(check(PyObject_CallOneArg(handle_type, dict)));
  PyRef id(check(PyObject_GetAttrString(handle.get(), "id")));
  check(PyObject_SetItem(dict, id.get(), hook));
  return handle.release();
}

PyObject* node_register_hook(PyObject* self, PyObject* hook) {
  return guard([&] {
    const Ref<Node> node = expect_node(self);
    return add_hook(dict_in<DictPostHook>(*node, node->ensure_hooks().after).get(), hook);
  });
}

PyObject* node_register_prehook(PyObject* self, PyObject* hook) {
  return guard([&] {
    const Ref<Node> node = expect_node(self);
    return add_hook(dict_in<DictPreHook>(*node, node->ensure_hooks().before).get(), hook);
  });
}

}  // namespace rushlight::python
