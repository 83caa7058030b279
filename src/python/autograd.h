// The Python interface of autograd, shared by the autograd_*.cpp files.
#pragma once
#include "autograd/engine.h"
#include "autograd/saved.h"
#include "python/tensor_type.h"

namespace rushlight::python {

extern PyTypeObject NodeType;          // autograd_node.cpp: base of the types of grad_fn objects
extern PyTypeObject FunctionBaseType;  // autograd_function.cpp: torch.autograd.Function and its ctx objects

struct PyNodeObject {
  PyObject_HEAD Node* node;  // owned
};

// The Python object of a node, a new reference: the same one as long as it lives. None for null.
PyObject* wrap_node(Node* node);
// The node of a grad_fn object; null when `o` is none or when a custom Function's node is gone.
Ref<Node> node_of(PyObject* o);

// An Attachment that owns a Python object.
template <class Base>
class PyAttached : public Base {
 public:
  explicit PyAttached(PyObject* object) : object_(Py_NewRef(object)) {}
  ~PyAttached() override {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    Py_DECREF(object_);
  }
  void* python() const override { return object_; }
  PyObject* object() const { return object_; }

 private:
  PyObject* object_;
};

// Hooks kept in ordered dictionaries, as Tensor._backward_hooks and its kin. autograd_hooks.cpp
Ref<TensorHook> make_tensor_hook(PyObject* dict);
Ref<PostAccumulateHook> make_post_accumulate_hook(PyObject* dict);
PyRef new_hook_dict();
// RemovableHandle(dict) with `hook` filed under its number.
PyObject* add_hook(PyObject* dict, PyObject* hook);
PyObject* node_register_hook(PyObject* self, PyObject* hook);
PyObject* node_register_prehook(PyObject* self, PyObject* hook);
PyRef gradients_tuple(const Gradients& grads);

// The SavedTensor of one that `node` keeps.
PyObject* wrap_saved(Node& node, SavedVariable& saved);

// A tensor, or None as the undefined tensor; TypeError naming `what` otherwise.
Tensor optional_tensor(PyObject* o, const char* what);

// Visits the Python objects that only `node` keeps alive.
int visit_node(Node* node, visitproc visit, void* arg);

// Properties that C++ nodes and ctx objects share: name, next_functions, metadata, register_hook, ...
extern PyMethodDef node_methods[];
extern PyGetSetDef node_properties[];

void init_autograd_nodes(PyObject* module);
void init_autograd_function(PyObject* module);
void init_autograd_tensor();
void init_autograd_modes(PyObject* module);
void init_autograd_saved(PyObject* module);

}  // namespace rushlight::python
