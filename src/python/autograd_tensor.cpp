// The members of Tensor that belong to autograd.
#include "autograd/accumulate.h"
#include "python/autograd.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

Tensor self_of(PyObject* o) { return tensor_of(o); }

// Inside a transform only the transform itself decides what is differentiated.
void check_outside_transforms(bool wanted) {
  RL_CHECK(!wanted || !dispatch_state.level,
           "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* "
           "APIs) inside of a function being transformed by a functorch transform. This is unsupported, "
           "please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
           "requires_grad_() outside of a function being transformed instead.");
}

PyObject* get_requires_grad(PyObject* self, void*) { return PyBool_FromLong(requires_grad(tensor_of(self))); }
int set_requires_grad_property(PyObject* self, PyObject* value, void*) {
  return guard_status([&] {
    if (!value || !PyBool_Check(value)) throw_python(PyExc_RuntimeError, "requires_grad must be a bool");
    const Tensor& t = tensor_of(self);
    const bool wanted = value == Py_True;
    check_outside_transforms(wanted);
    RL_CHECK(is_leaf(t), "you can only change requires_grad flags of leaf variables.",
             wanted ? ""
                    : " If you want to use a computed variable in a subgraph that doesn't require "
                      "differentiation use "
                      "var_no_grad = var.detach().");
    set_requires_grad(t, wanted);
  });
}
PyObject* requires_grad_inplace(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guard([&]() -> PyObject* {
    const Py_ssize_t given = n + (names ? PyTuple_GET_SIZE(names) : 0);
    if (given > 1)
      throw_python(PyExc_TypeError, str("requires_grad_() takes at most 1 argument (", given, " given)"));
    if (given > n && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "requires_grad") != 0)
      throw_python(PyExc_TypeError, str("requires_grad_() got an unexpected keyword argument '",
                                        string_view(PyTuple_GET_ITEM(names, 0)), "'"));
    const int wanted = given ? PyObject_IsTrue(args[0]) : 1;
    if (wanted < 0) throw PythonError();
    RL_CHECK(!wanted || is_differentiable(tensor_of(self).dtype()),
             "only Tensors of floating point dtype can require gradients");
    check_outside_transforms(wanted);
    set_requires_grad(tensor_of(self), wanted);
    return Py_NewRef(self);
  });
}

PyObject* get_is_leaf(PyObject* self, void*) {
  return guard([&] { return PyBool_FromLong(is_leaf(tensor_of(self))); });
}
PyObject* get_grad_fn(PyObject* self, void*) {
  return guard([&] {
    const Ref<Node> node = grad_fn(self_of(self));
    return wrap_node(node.get());
  });
}
int set_grad_fn_property(PyObject* self, PyObject* value, void*) {
  return guard_status([&] {
    RL_CHECK(value, "Deletion of _grad_fn not allowed. Detach tensor instead!");
    RL_CHECK_TYPE(value == Py_None, "_grad_fn can be only set to None");
    detach_in_place(tensor_of(self));
  });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return guard([&] {
    (void)grad_fn(tensor_of(self));  // a view's may be renewed
    return PyLong_FromUnsignedLong(output_nr(tensor_of(self)));
  });
}
static PyObject* get_address(PyObject* self, void*) { return PyLong_FromVoidPtr(tensor_of(self).impl()); }
PyObject* get_version(PyObject* self, void*) {
  return guard([&] { return PyLong_FromUnsignedLong(tensor_of(self).version()); });
}
PyObject* get_base(PyObject* self, void*) {
  return guard([&] { return wrap(Tensor(tensor_of(self)->view_base)); });
}
PyObject* is_view(PyObject* self, PyObject*) {
  return PyBool_FromLong(static_cast<bool>(tensor_of(self)->view_base));
}
PyObject* is_inference(PyObject* self, PyObject*) {
  return PyBool_FromLong((tensor_of(self)->flags & kInference) != 0);
}

PyObject* get_grad(PyObject* self, void*) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    if (!is_leaf(t) && !retains_grad(t) && !grad_of(t).defined() && show_warning)
      show_warning(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
          "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated "
          "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf "
          "Tensor "
          "by mistake, make sure you access the leaf Tensor instead. See "
          "github.com/pytorch/pytorch/pull/30531 for more information.");
    return wrap(grad_of(t));
  });
}
PyObject* get_grad_silently(PyObject* self, void*) {
  return guard([&] { return wrap(grad_of(tensor_of(self))); });
}
int set_grad_property(PyObject* self, PyObject* value, void*) {
  return guard_status([&] {
    if (value && value != Py_None && !is_tensor(value))
      throw_python(PyExc_TypeError, str("assigned grad expected to be a Tensor or None but got grad of type ",
                                        type_name(value)));
    set_grad(tensor_of(self), value && value != Py_None ? tensor_of(value) : Tensor());
    if (value && value != Py_None) track(self);
  });
}
PyObject* get_grad_dtype(PyObject* self, void*) {
  return guard([&]() -> PyObject* {
    const OptDType dtype = grad_dtype(tensor_of(self));
    if (!dtype) Py_RETURN_NONE;
    return wrap(*dtype);
  });
}
int set_grad_dtype_property(PyObject* self, PyObject* value, void*) {
  return guard_status([&] {
    const bool any = value == Py_None;
    RL_CHECK(value && (any || is_dtype(value)), "grad_dtype must be a torch.dtype or None, but got ",
             value ? type_name(value) : "nothing");
    set_grad_dtype(tensor_of(self), any ? OptDType() : OptDType(dtype_of_object(value)));
  });
}
PyObject* get_data(PyObject* self, void*) {
  return guard([&] { return wrap(tensor_data(tensor_of(self))); });
}
int set_data_property(PyObject* self, PyObject* value, void*) {
  return guard_status([&] {
    RL_CHECK(value, "can't delete data: it can only be replaced");
    if (!is_tensor(value))
      throw_python(PyExc_TypeError,
                   str("Variable data has to be a tensor, but got ", value ? type_name(value) : "nothing"));
    set_data(tensor_of(self), tensor_of(value));
  });
}

PyObject* retain_grad_method(PyObject* self, PyObject*) {
  return guard([&]() -> PyObject* {
    RL_CHECK(
        !dispatch_state.level,
        "You are attempting to call Tensor.retain_grad() inside of a function being transformed by a "
        "functorch transform. This is unsupported, please attempt to use the functorch transforms (e.g. "
        "grad, vjp, jacrev, jacfwd, hessian) or call retain_grad() outside of a function being transformed "
        "instead.");
    retain_grad(tensor_of(self));
    Py_RETURN_NONE;
  });
}
PyObject* get_retains_grad(PyObject* self, void*) { return PyBool_FromLong(retains_grad(tensor_of(self))); }
PyObject* detach_inplace(PyObject* self, PyObject*) {
  return guard([&] {
    detach_in_place(tensor_of(self));
    return Py_NewRef(self);
  });
}

// --- hooks

PyObject* hooks_dict(const Ref<TensorHook>& hooks) {
  return hooks ? static_cast<PyObject*>(hooks->python()) : nullptr;
}
// The dictionary behind a hook of the tensor, `hook` being a member of AutogradMeta::Extra; null where there
// is none.
template <class Hook>
PyRef dict_of_hook(PyObject* self, Ref<Hook> AutogradMeta::Extra::* hook) {
  AutogradMeta* meta = tensor_of(self)->autograd;
  AutogradMeta::Extra* extra = meta ? meta->extra.get() : nullptr;
  if (!extra) return {};
  Ref<Hook> found;
  {
    std::lock_guard guard(meta->lock);
    found = extra->*hook;
  }
  return PyRef::borrow(found ? static_cast<PyObject*>(found->python()) : nullptr);
}
PyObject* dict_or_none(PyRef dict) { return dict ? dict.release() : Py_NewRef(Py_None); }

PyObject* get_backward_hooks(PyObject* self, void*) {
  return dict_or_none(dict_of_hook(self, &AutogradMeta::Extra::python_hooks));
}
int set_backward_hooks(PyObject* self, PyObject* value, void*) {
  return guard_status([&] {
    RL_CHECK(value, "Deletion of _backwards_hooks not allowed!");
    set_python_hooks(tensor_of(self), value && value != Py_None ? make_tensor_hook(value) : nullptr);
    track(self);
  });
}
PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guard([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    RL_CHECK(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
    const CriticalSection section(self);
    PyRef dict = dict_of_hook(self, &AutogradMeta::Extra::python_hooks);
    if (!dict) {
      dict = new_hook_dict();
      set_python_hooks(t, make_tensor_hook(dict.get()));
      track(self);
    }
    return add_hook(dict.get(), hook);
  });
}

PyObject* get_post_hooks(PyObject* self, void*) {
  return dict_or_none(dict_of_hook(self, &AutogradMeta::Extra::after_accumulate));
}
int set_post_hooks(PyObject* self, PyObject* value, void*) {
  return guard_status([&] {
    set_post_accumulate_hook(tensor_of(self),
                             value && value != Py_None ? make_post_accumulate_hook(value) : nullptr);
    track(self);
  });
}
PyObject* register_post_hook(PyObject* self, PyObject* hook) {
  return guard([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    RL_CHECK(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
    RL_CHECK(!grad_fn(t), "post accumulate grad hooks cannot be registered on non-leaf tensors");
    const CriticalSection section(self);
    PyRef dict = dict_of_hook(self, &AutogradMeta::Extra::after_accumulate);
    if (!dict) {
      dict = new_hook_dict();
      set_post_accumulate_hook(t, make_post_accumulate_hook(dict.get()));
      track(self);
    }
    return add_hook(dict.get(), hook);
  });
}

PyMethodDef methods[] = {
    {"requires_grad_", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(requires_grad_inplace)),
     METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_(requires_grad=True) -> Tensor: asks autograd to record operations on this tensor, or "
     "not to."
     "\n\nArgs:\n    requires_grad (bool, default True): whether operations are recorded.\n\nExample:\n    "
     ">>> torch.ones(1).requires_grad_()\n    tensor([1.], requires_grad=True)"},
    {"retain_grad", retain_grad_method, METH_NOARGS,
     "retain_grad(): keeps the gradient of this non-leaf tensor in .grad."},
    {"detach_", detach_inplace, METH_NOARGS,
     "detach_() -> Tensor: cuts the tensor from its graph, making it a leaf."},
    {"register_hook", register_hook, METH_O,
     "register_hook(hook): hook(grad) runs when the gradient is computed and may replace it."},
    {"register_post_accumulate_grad_hook", register_post_hook, METH_O,
     "register_post_accumulate_grad_hook(hook): hook(tensor) runs after .grad was added to."},
    {"_is_view", is_view, METH_NOARGS, "Whether this is a differentiable view of another tensor."},
    {"is_inference", is_inference, METH_NOARGS, "is_inference() -> bool: made under inference_mode."},
    {}};

PyGetSetDef properties[] = {
    {"requires_grad", get_requires_grad, set_requires_grad_property,
     "Whether autograd records operations on this tensor."
     "\n\nExample:\n    >>> torch.ones(1).requires_grad\n    False",
     nullptr},
    {"is_leaf", get_is_leaf, nullptr, "True for tensors that no recorded operation made.", nullptr},
    {"grad_fn", get_grad_fn, nullptr,
     "The node that computes the gradients of the operation that made this tensor.", nullptr},
    {"_grad_fn", get_grad_fn, set_grad_fn_property, nullptr, nullptr},
    {"output_nr", get_output_nr, nullptr, "Which output of grad_fn this tensor is.", nullptr},
    {"_cdata", get_address, nullptr, "The address of the tensor behind this object.", nullptr},
    {"_version", get_version, nullptr, "Counts in-place writes.", nullptr},
    {"_base", get_base, nullptr, "The tensor this is a view of, or None.", nullptr},
    {"grad", get_grad, set_grad_property, "The accumulated gradient, or None.", nullptr},
    {"grad_dtype", get_grad_dtype, set_grad_dtype_property,
     "The dtype that gradients of this leaf are cast to; None leaves them as they are.", nullptr},
    {"_grad", get_grad_silently, set_grad_property, nullptr, nullptr},
    {"data", get_data, set_data_property,
     "The same memory outside the graph, with a version counter of its own."
     "\n\nExample:\n    >>> torch.ones(1, requires_grad=True).data\n    tensor([1.])",
     nullptr},
    {"retains_grad", get_retains_grad, nullptr, "True for a non-leaf tensor that keeps its gradient.",
     nullptr},
    {"_backward_hooks", get_backward_hooks, set_backward_hooks, nullptr, nullptr},
    {"_post_accumulate_grad_hooks", get_post_hooks, set_post_hooks, nullptr, nullptr},
    {}};

// --- cycle collection

int traverse(TensorImpl* impl, visitproc visit, void* arg) {
  AutogradMeta& meta = *impl->autograd;
  if (meta.extra) {
    // The hooks of a result are its node's too: while others hold the node, they must outlive the tensor.
    const Ref<TensorHook>& hooks = meta.extra->python_hooks;
    const bool sole_owner = meta.grad_fn && meta.grad_fn->use_count() == 1;
    if (hooks && hooks->use_count() == (sole_owner ? 2 : 1)) Py_VISIT(hooks_dict(hooks));
    if (meta.extra->after_accumulate)
      Py_VISIT(static_cast<PyObject*>(meta.extra->after_accumulate->python()));
  }
  if (meta.grad.defined() && meta.grad->owns_pyobj && meta.grad->use_count() == 1)
    Py_VISIT(static_cast<PyObject*>(meta.grad->pyobj.get()));
  return meta.grad_fn && meta.grad_fn->use_count() == 1 ? visit_node(meta.grad_fn.get(), visit, arg) : 0;
}

void clear(TensorImpl* impl) {
  const Tensor t(Ref<TensorImpl>::share(impl));
  AutogradMeta& meta = *impl->autograd;
  if (meta.extra) {
    const auto hooks = std::move(meta.extra->python_hooks);
    const auto after = std::move(meta.extra->after_accumulate);
  }
  if (meta.grad_fn && !impl->view_base) detach_in_place(t);
  meta.grad.reset();
}

}  // namespace

void init_autograd_tensor() {
  add_tensor_members(methods, properties);
  traverse_autograd = traverse;
  clear_autograd = clear;
}

}  // namespace rushlight::python
