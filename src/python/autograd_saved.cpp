// torch.autograd.graph.saved_tensors_hooks: Python functions that pack what is saved.
#include "python/autograd.h"

namespace rushlight::python {
namespace {

class PyPacked final : public PackedTensor {
 public:
  PyPacked(PyRef object, PyRef unpack) : object_(std::move(object)), unpack_(std::move(unpack)) {}
  ~PyPacked() override {
    if (Py_IsInitialized()) {
      GilAcquire gil;
      object_ = PyRef();
      unpack_ = PyRef();
    } else {
      (void)object_.release();
      (void)unpack_.release();
    }
  }
  void* python() const override { return object_.get(); }
  Tensor unpack() override {
    GilAcquire gil;
    PyRef result(check(PyObject_CallOneArg(unpack_.get(), object_.get())));
    RL_CHECK_TYPE(is_tensor(result.get()),
                  "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
                  type_name(result.get()));
    return tensor_of(result.get());
  }

 private:
  PyRef object_, unpack_;
};

class PySavedHooks final : public SavedTensorHooks {
 public:
  PySavedHooks(PyObject* pack, PyObject* unpack) : pack_(pack), unpack_(unpack) {}
  Ref<PackedTensor> pack(const Tensor& t) override {
    GilAcquire gil;
    PyRef tensor(check(wrap(t)));
    PyRef packed(check(PyObject_CallOneArg(function(pack_), tensor.get())));
    return Ref<PyPacked>::adopt(new PyPacked(std::move(packed), PyRef::borrow(function(unpack_))));
  }

 private:
  static PyObject* function(const PyAttached<Attachment>& a) { return static_cast<PyObject*>(a.python()); }
  PyAttached<Attachment> pack_, unpack_;
};

// --- SavedTensor: one of the tensors that a node keeps, for hooks of its own

struct PySavedTensor {
  PyObject_HEAD Node* node;  // owned
  SavedVariable* saved;      // lives as long as the node
};
PySavedTensor& saved_of(PyObject* o) { return *reinterpret_cast<PySavedTensor*>(o); }

void saved_dealloc(PyObject* o) {
  Ref<Node>::adopt(std::exchange(saved_of(o).node, nullptr));
  PyObject_Free(o);
}
PyObject* saved_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "Trying to create a SavedTensor object from Python is forbidden.");
  return nullptr;
}
PyObject* saved_register_hooks(PyObject* self, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *pack = nullptr, *unpack = nullptr;
    const bool two = PyTuple_GET_SIZE(args) == 2;
    if (two) pack = PyTuple_GET_ITEM(args, 0), unpack = PyTuple_GET_ITEM(args, 1);
    RL_CHECK_TYPE(two && PyCallable_Check(pack) && PyCallable_Check(unpack),
                  "register_hooks(): incompatible function arguments. It takes two functions, pack_hook and "
                  "unpack_hook");
    const Ref<PySavedHooks> hooks = Ref<PySavedHooks>::adopt(new PySavedHooks(pack, unpack));
    saved_of(self).saved->register_hooks(*hooks);
    Py_RETURN_NONE;
  });
}
PyObject* saved_data(PyObject* self, void*) {
  return guard([&] { return wrap(saved_of(self).saved->unpack(*saved_of(self).node)); });
}
PyMethodDef saved_methods[] = {
    {"register_hooks", saved_register_hooks, METH_VARARGS,
     "register_hooks(pack_hook, unpack_hook): keep what pack_hook makes of the tensor in its place."},
    {}};
PyGetSetDef saved_properties[] = {{"data", saved_data, nullptr, "The tensor as it was saved.", nullptr}, {}};
PyTypeObject SavedTensorType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C.SavedTensor",
    .tp_basicsize = sizeof(PySavedTensor),
    .tp_dealloc = saved_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A tensor that a node of the backward graph keeps.",
    .tp_methods = saved_methods,
    .tp_getset = saved_properties,
    .tp_new = saved_new,
};

PyObject* push_hooks(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
    SavedHooksState& state = saved_hooks_state();
    RL_CHECK(state.forbidden.empty(), state.forbidden);
    state.stack.push_back(Ref<PySavedHooks>::adopt(new PySavedHooks(pack, unpack)));
    Py_RETURN_NONE;
  });
}
PyObject* pop_hooks(PyObject*, PyObject*) {
  return guard([&]() -> PyObject* {
    auto& stack = saved_hooks_state().stack;
    RL_CHECK(!stack.empty(), "there are no saved tensor hooks to remove");
    stack.pop_back();
    Py_RETURN_NONE;
  });
}
PyObject* disable_hooks(PyObject*, PyObject* message) {
  return guard([&]() -> PyObject* {
    RL_CHECK_TYPE(PyUnicode_Check(message), "the message must be a str, not ", type_name(message));
    SavedHooksState& state = saved_hooks_state();
    RL_CHECK(state.stack.empty(), string_view(message));
    state.forbidden = string_view(message);
    Py_RETURN_NONE;
  });
}
PyObject* enable_hooks(PyObject*, PyObject*) {
  saved_hooks_state().forbidden.clear();
  Py_RETURN_NONE;
}
PyObject* disabled_message(PyObject*, PyObject*) {
  const std::string& text = saved_hooks_state().forbidden;
  if (text.empty()) Py_RETURN_NONE;
  return guard([&] { return to_python(text); });
}

PyMethodDef functions[] = {{"_push_saved_tensors_hooks", push_hooks, METH_VARARGS, nullptr},
                           {"_pop_saved_tensors_hooks", pop_hooks, METH_NOARGS, nullptr},
                           {"_disable_saved_tensors_hooks", disable_hooks, METH_O, nullptr},
                           {"_enable_saved_tensors_hooks", enable_hooks, METH_NOARGS, nullptr},
                           {"_saved_tensors_hooks_disabled_message", disabled_message, METH_NOARGS, nullptr},
                           {}};

}  // namespace

PyObject* wrap_saved(Node& node, SavedVariable& saved) {
  auto* self = PyObject_New(PySavedTensor, &SavedTensorType);
  if (!self) throw PythonError();
  node.retain();
  self->node = &node;
  self->saved = &saved;
  return reinterpret_cast<PyObject*>(self);
}

void init_autograd_saved(PyObject* module) {
  add_functions(module, functions);
  add_type(module, "SavedTensor", &SavedTensorType);
}

}  // namespace rushlight::python
