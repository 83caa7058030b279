// torch.autograd.Function: the base class, apply(), and the ctx object.
#include "python/autograd_function.h"

#include <structmember.h>

#include <cstddef>

#include "autograd/gradient_ops.h"
#include "transform/forward.h"
#include "transform/level.h"

namespace rushlight::python {

// --- node

FunctionNode::FunctionNode(PyObject* ctx) {
  is_python = true;
  pyobj = Py_NewRef(ctx);
}

void FunctionNode::free() noexcept {
  if (Py_IsInitialized()) {
    GilAcquire gil;
    Py_XDECREF(static_cast<PyObject*>(pyobj.exchange(nullptr)));
  }
  delete this;
}

bool FunctionNode::leave() noexcept {
  if (!Py_IsInitialized()) return release();
  GilAcquire gil;
  auto* object = static_cast<PyObject*>(pyobj.get());
  if (!object) return release();  // given up by its ctx object, which dies
  {
    const IdentityLock guard(object);
    if (!release()) return false;
    PyFunctionObject& ctx = *reinterpret_cast<PyFunctionObject*>(object);
    if (Py_REFCNT(object) == 1) {
      ctx.node = nullptr;
      return true;
    }
    ctx.owns_node = true;  // by the reference that release() left counted
    pyobj = nullptr;
  }
  Py_DECREF(object);
  return false;
}

Ref<FunctionNode> recorded(PyFunctionObject& ctx) {
  const IdentityLock guard(&ctx);
  if (!std::exchange(ctx.owns_node, false)) return Ref<FunctionNode>::share(ctx.node);
  ctx.node->pyobj = Py_NewRef(reinterpret_cast<PyObject*>(&ctx));
  return Ref<FunctionNode>::adopt(ctx.node);
}

std::string FunctionNode::name() const {
  GilAcquire gil;
  const std::string_view full = Py_TYPE(static_cast<PyObject*>(pyobj.get()))->tp_name;
  return std::string(full.substr(full.rfind('.') + 1));
}

void FunctionNode::release_saved() {
  freed = !saved.empty();
  rushlight::release_saved(saved, *this);
}

namespace {

Tensor zeros_of(const InputMeta& meta) { return gradient_ops.zeros(meta.sizes, meta.dtype, meta.device); }

}  // namespace

Gradients FunctionNode::apply(Gradients grads) {
  GilAcquire gil;
  PyRef self = PyRef::borrow(static_cast<PyObject*>(pyobj.get()));
  PyRef args(check(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
  for (size_t i = 0; i < grads.size(); ++i) {
    const bool described = i < outputs().size() && outputs()[i].described;
    const bool materialize =
        ctx().materialize_grads && (ctx().materialize_non_diff_grads || !non_differentiable.contains(i));
    if (!grads[i].defined() && materialize && described) grads[i] = zeros_of(outputs()[i]);
    PyTuple_SET_ITEM(args.get(), i, check(wrap(std::move(grads[i]))));
  }
  PyRef method(check(PyObject_GetAttrString(self.get(), "apply")));
  return read_result(PyRef(check(PyObject_Call(method.get(), args.get(), nullptr))));
}

Gradients FunctionNode::read_result(PyRef result) {
  if (!PyTuple_Check(result.get())) result = PyRef(check(PyTuple_Pack(1, result.get())));
  const size_t wanted = is_tensor_input.size();
  size_t n = static_cast<size_t>(PyTuple_GET_SIZE(result.get()));
  while (n > wanted && PyTuple_GET_ITEM(result.get(), n - 1) == Py_None) --n;
  RL_CHECK(n == wanted, "function ", name(), " returned an incorrect number of gradients (expected ", wanted,
           ", got ", PyTuple_GET_SIZE(result.get()), ")");
  Gradients grads(edges().size());
  size_t edge = 0;
  for (size_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(result.get(), i);
    if (is_tensor_input[i]) {
      RL_CHECK(item == Py_None || is_tensor(item), "expected Variable or None (got ", type_name(item), ")");
      grads[edge++] = optional_tensor(item, "gradient");
    } else {
      RL_CHECK(item == Py_None, "function ", name(), " returned a gradient different than None at position ",
               i + 1, ", but the corresponding forward input was not a Variable");
    }
  }
  return grads;
}

// --- apply

namespace {

PyObject* function_class() {
  static constinit Lazy cls;
  return cls.get([] {
    PyRef module(check(PyImport_ImportModule("rushlight.autograd.function")));
    return check(PyObject_GetAttrString(module.get(), "Function"));
  });
}

bool has_setup_context(PyObject* cls) {
  PyRef own(check(PyObject_GetAttrString(cls, "setup_context")));
  PyRef base(check(PyObject_GetAttrString(function_class(), "setup_context")));
  return own.get() != base.get();
}

class TangentsOff {
 public:
  TangentsOff() : allowed_(tangents_allowed()) { allow_tangents(false); }
  ~TangentsOff() { allow_tangents(allowed_); }
  TangentsOff(const TangentsOff&) = delete;

 private:
  bool allowed_;
};

// The arguments' tangents as jvp takes them: None for what is no tensor, zeros (or None) where there is none.
PyRef tangents_of(const PyFunctionObject& ctx, PyObject* args, bool& any) {
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyRef tangents(check(PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* arg = PyTuple_GET_ITEM(args, i);
    Tensor tangent;
    if (is_tensor(arg)) {
      tangent = tangent_of(tensor_of(arg));
      any |= tangent.defined();
      if (!tangent.defined() && ctx.materialize_grads && is_differentiable(tensor_of(arg).dtype()))
        tangent = gradient_ops.zeros(tensor_of(arg).sizes(), tensor_of(arg).dtype(), tensor_of(arg).device());
    }
    PyTuple_SET_ITEM(tangents.get(), i, check(wrap(std::move(tangent))));
  }
  return tangents;
}

// An input that forward wrote to and returned: jvp must have written to its tangent.
void check_tangent_written(const Tensor& given, uint32_t version, const Tensor& tangent) {
  RL_CHECK(
      given->storage == tangent->storage && (tangent->wrapping || given.version() != version),
      "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
      "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace.");
}

// An output that is an input, or a view of one: so is its tangent, of that input's tangent.
void check_tangent_views(const Tensor& given, const Tensor& tangent) {
  if (given->wrapping || tangent->wrapping) return;
  RL_CHECK(tangent->view_base,
           "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning "
           "a view.");
  if (given->view_base)
    RL_CHECK(tangent->view_base.get() == given->view_base.get(),
             "A custom Function is returning a view but the jvp is not returning a view of the same base as "
             "the given grad input.");
  else
    RL_CHECK(tangent->view_base.get() == given.impl(),
             "A custom Function is returning a view but the jvp is not returning a view of the given grad "
             "input.");
}

bool has_no_gradient(const PyFunctionObject& ctx, PyObject* raw) {
  if (!is_tensor(raw) || !is_differentiable(tensor_of(raw).dtype())) return true;
  PyObject* const constant = ctx.non_differentiable;
  for (Py_ssize_t i = 0; constant && PyTuple_Check(constant) && i < PyTuple_GET_SIZE(constant); ++i)
    if (PyTuple_GET_ITEM(constant, i) == raw) return true;
  return false;
}

// The tangents that arguments have of their own, and how often they had been written to.
class GivenTangents {
 public:
  GivenTangents(PyObject* args) : args_(args) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* arg = PyTuple_GET_ITEM(args, i);
      tangents_.push_back(is_tensor(arg) ? tangent_of(tensor_of(arg)) : Tensor());
      versions_.push_back(tangents_.back().defined() && !(tangents_.back()->flags & kInference) &&
                                  !tangents_.back()->wrapping
                              ? tangents_.back().version()
                              : 0);
    }
  }
  // `raw` is what forward returned, `output` what apply returns for it.
  void check(PyObject* raw, const Tensor& output, const Tensor& tangent) const {
    for (size_t i = 0; i < tangents_.size(); ++i) {
      if (!tangents_[i].defined()) continue;
      const Tensor& arg = tensor_of(PyTuple_GET_ITEM(args_, static_cast<Py_ssize_t>(i)));
      const bool is_input = tensor_of(raw).is_same(arg);
      const TensorImpl* const base = arg->view_base ? arg->view_base.get() : arg.impl();
      if (is_input && output.is_same(arg)) return check_tangent_written(tangents_[i], versions_[i], tangent);
      if (is_input || output->view_base.get() == base) return check_tangent_views(tangents_[i], tangent);
    }
  }

 private:
  PyObject* args_;
  std::vector<Tensor> tangents_;
  std::vector<uint32_t> versions_;
};

// jvp gives the results their tangents. `raw` are the results of forward before they were recorded.
void push_tangents(PyFunctionObject& ctx, PyObject* object, PyObject* args, PyObject* raw,
                   PyObject* outputs) {
  if (!forward_mode_enabled()) return;
  bool any = false;
  const PyRef tangents = tangents_of(ctx, args, any);
  if (!any) return;
  const GivenTangents given(args);
  TangentsOff scope;
  PyRef method(check(PyObject_GetAttrString(object, "apply_jvp")));
  PyRef found(check(PyObject_Call(method.get(), tangents.get(), nullptr)));
  if (!PyTuple_Check(found.get())) found = PyRef(check(PyTuple_Pack(1, found.get())));
  const Py_ssize_t n = PyTuple_GET_SIZE(outputs);
  RL_CHECK(PyTuple_GET_SIZE(found.get()) == n,
           "Function's jvp returned an invalid number of forward gradients (expected ", n, " but got ",
           PyTuple_GET_SIZE(found.get()), ")");
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject *output = PyTuple_GET_ITEM(outputs, i), *tangent = PyTuple_GET_ITEM(found.get(), i);
    if (tangent == Py_None) continue;
    RL_CHECK(
        !has_no_gradient(ctx, PyTuple_GET_ITEM(raw, i)), "Function's jvp returned a gradient at position ", i,
        ", but  the corresponding forward output is not a differentiable Tensor.You should return None at "
        "that position instead.");
    const Tensor& t = expect_tensor(tangent, "jvp");
    RL_CHECK(
        t.sizes() == tensor_of(output).sizes(),
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
        "is not supported. Tensor is of size ",
        tensor_of(output).sizes(), " while the given forward gradient is of size ", t.sizes(), ".");
    given.check(PyTuple_GET_ITEM(raw, i), tensor_of(output), t);
    set_tangent(tensor_of(output), t);
  }
}

// forward(ctx, *args), or forward(*args) and then setup_context(ctx, args, output); with recording off.
PyRef run_forward(PyObject* cls, PyObject* ctx, PyObject* args) {
  GradMode off(false);
  TangentsOff no_tangents;
  PyRef forward(check(PyObject_GetAttrString(cls, "forward")));
  if (has_setup_context(cls)) {
    PyRef output(check(PyObject_Call(forward.get(), args, nullptr)));
    PyRef setup(check(PyObject_GetAttrString(cls, "setup_context")));
    PyRef(check(PyObject_CallFunctionObjArgs(setup.get(), ctx, args, output.get(), nullptr)));
    return output;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyRef with_ctx(check(PyTuple_New(n + 1)));
  PyTuple_SET_ITEM(with_ctx.get(), 0, Py_NewRef(ctx));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(with_ctx.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  return PyRef(check(PyObject_Call(forward.get(), with_ctx.get(), nullptr)));
}

PyObject* function_apply(PyObject* cls, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyRef backward_cls(check(PyObject_GetAttrString(cls, "_backward_cls")));
    PyRef object(check(PyObject_CallNoArgs(backward_cls.get())));
    auto& ctx = *reinterpret_cast<PyFunctionObject*>(object.get());
    // 1. Which inputs are tensors, and which of them want a gradient.
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    Ref<FunctionNode> node = Ref<FunctionNode>::adopt(new FunctionNode(object.get()));
    ctx.node = node.get();
    PyRef needs(check(PyTuple_New(n)));
    bool recorded = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* arg = PyTuple_GET_ITEM(args, i);
      const bool wants = is_tensor(arg) && requires_grad(tensor_of(arg));
      PyTuple_SET_ITEM(needs.get(), i, Py_NewRef(wants ? Py_True : Py_False));
      node->is_tensor_input.push_back(is_tensor(arg));
      recorded |= wants;
    }
    recorded &= GradMode::enabled();
    Py_XSETREF(ctx.needs_input_grad, needs.release());
    if (recorded)
      for (Py_ssize_t i = 0; i < n; ++i)
        if (PyObject* arg = PyTuple_GET_ITEM(args, i); is_tensor(arg))
          node->add_edge(gradient_edge(tensor_of(arg)));
    if (recorded && anomaly_state.enabled) record_stack(*node);
    // 2. The user's forward.
    PyRef output = run_forward(cls, object.get(), args);
    // 3. Its results become results of the node, which then saves what was asked for.
    const bool many = PyTuple_Check(output.get());
    PyRef raw = many ? std::move(output) : PyRef(check(PyTuple_Pack(1, output.get())));
    PyRef outputs = wrap_outputs(ctx, recorded ? node : nullptr, args, PyRef::borrow(raw.get()));
    push_tangents(ctx, object.get(), args, raw.get(), outputs.get());
    if (recorded) save_tensors(ctx, *node);
    Py_CLEAR(ctx.saved_for_forward);
    Py_CLEAR(ctx.to_save);
    Py_CLEAR(ctx.dirty_tensors);
    Py_CLEAR(ctx.non_differentiable);
    return many ? outputs.release() : Py_NewRef(PyTuple_GET_ITEM(outputs.get(), 0));
  });
}

// --- the ctx object

PyFunctionObject& self_of(PyObject* o) { return *reinterpret_cast<PyFunctionObject*>(o); }

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o) self_of(o).materialize_grads = self_of(o).materialize_non_diff_grads = true;
  return o;
}

int function_clear(PyObject* o) {
  PyFunctionObject& f = self_of(o);
  if (f.owns_node) f.node->release_saved();
  for (PyObject** slot :
       {&f.to_save, &f.saved_for_forward, &f.non_differentiable, &f.dirty_tensors, &f.needs_input_grad})
    Py_CLEAR(*slot);
  return 0;
}
int function_traverse(PyObject* o, visitproc visit, void* arg) {
  PyFunctionObject& f = self_of(o);
  for (PyObject* held :
       {f.to_save, f.saved_for_forward, f.non_differentiable, f.dirty_tensors, f.needs_input_grad})
    Py_VISIT(held);
  return f.owns_node ? visit_node(f.node, visit, arg) : 0;
}
void function_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  if (PyFunctionObject& f = self_of(o); f.owns_node) Ref<Node>::adopt(std::exchange(f.node, nullptr));
  self_of(o).owns_node = false;
  function_clear(o);
  Py_TYPE(o)->tp_free(o);
}

// An attribute that is a tensor may close a cycle through the graph: let the collector see it.
int function_setattro(PyObject* o, PyObject* name, PyObject* value) {
  if (value && is_tensor(value)) track(value);
  return PyObject_GenericSetAttr(o, name, value);
}

PyObject* get_saved_tensors(PyObject* o, void*) {
  return guard([&]() -> PyObject* {
    PyFunctionObject& f = self_of(o);
    {
      const CriticalSection section(o);
      if (f.saved_for_forward) return Py_NewRef(f.saved_for_forward);
    }
    const Ref<FunctionNode> node = recorded(f);
    if (!node) return PyTuple_New(0);
    if (node->freed) fail_released();
    PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(node->saved.size()))));
    for (size_t i = 0; i < node->saved.size(); ++i) {
      GradMode on(true);  // saved outputs show their grad_fn
      PyTuple_SET_ITEM(tuple.get(), i, check(wrap(node->saved[i].unpack(*node))));
    }
    return tuple.release();
  });
}

PyObject* get_saved_variables(PyObject* o, void* closure) {
  if (PyErr_WarnEx(PyExc_DeprecationWarning, "'saved_variables' is deprecated; use 'saved_tensors'", 1) < 0)
    return nullptr;
  return get_saved_tensors(o, closure);
}

PyObject* get_raw_saved_tensors(PyObject* o, void*) {
  return guard([&]() -> PyObject* {
    const Ref<FunctionNode> node = recorded(self_of(o));
    if (!node) return PyTuple_New(0);
    if (node->freed) fail_released();
    PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(node->saved.size()))));
    for (size_t i = 0; i < node->saved.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), i, wrap_saved(*node, node->saved[i]));
    return tuple.release();
  });
}

template <PyObject* PyFunctionObject::* member>
PyObject* get_member(PyObject* o, void*) {
  const CriticalSection section(o);
  PyObject* value = self_of(o).*member;
  return Py_NewRef(value ? value : Py_None);
}
template <PyObject* PyFunctionObject::* member>
int set_member(PyObject* o, PyObject* value, void*) {
  PyRef former;  // dies after the section
  const CriticalSection section(o);
  former = PyRef(std::exchange(self_of(o).*member, value && value != Py_None ? Py_NewRef(value) : nullptr));
  return 0;
}
template <bool PyFunctionObject::* member>
PyObject* get_flag(PyObject* o, void*) {
  return PyBool_FromLong(self_of(o).*member);
}
template <bool PyFunctionObject::* member>
int set_flag(PyObject* o, PyObject* value, void*) {
  if (!value || !PyBool_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "expected a bool");
    return -1;
  }
  self_of(o).*member = value == Py_True;
  return 0;
}

#define RL_MEMBER(name) \
  {#name, get_member<&PyFunctionObject::name>, set_member<&PyFunctionObject::name>, nullptr, nullptr}
PyGetSetDef properties[] = {
    {"saved_tensors", get_saved_tensors, nullptr, "The tensors given to save_for_backward().", nullptr},
    {"saved_variables", get_saved_variables, nullptr, nullptr, nullptr},
    {"_raw_saved_tensors", get_raw_saved_tensors, nullptr, nullptr, nullptr},
    RL_MEMBER(to_save),
    RL_MEMBER(saved_for_forward),
    RL_MEMBER(non_differentiable),
    RL_MEMBER(dirty_tensors),
    RL_MEMBER(needs_input_grad),
    {"materialize_grads", get_flag<&PyFunctionObject::materialize_grads>,
     set_flag<&PyFunctionObject::materialize_grads>, nullptr, nullptr},
    {"_materialize_non_diff_grads", get_flag<&PyFunctionObject::materialize_non_diff_grads>,
     set_flag<&PyFunctionObject::materialize_non_diff_grads>, nullptr, nullptr},
    {"_is_pure_view", get_flag<&PyFunctionObject::pure_view>, set_flag<&PyFunctionObject::pure_view>, nullptr,
     nullptr},
    {}};
PyObject* release_saved(PyObject* o, PyObject*) {
  return guard([&] {
    if (const Ref<FunctionNode> node = recorded(self_of(o))) node->release_saved();
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {
    {"apply", function_apply, METH_CLASS | METH_VARARGS, "apply(*args): runs forward and records it."},
    {"_release_saved", release_saved, METH_NOARGS, "Forgets the saved tensors."},
    {}};

void add_node_members() {
  PyTypeObject* type = &FunctionBaseType;
  for (PyMethodDef* m = node_methods; m->ml_name; ++m)
    check(PyDict_SetItemString(type->tp_dict, m->ml_name, PyRef(check(PyDescr_NewMethod(type, m))).get()));
  for (PyGetSetDef* p = node_properties; p->name; ++p)
    check(PyDict_SetItemString(type->tp_dict, p->name, PyRef(check(PyDescr_NewGetSet(type, p))).get()));
  PyType_Modified(type);
}

}  // namespace

PyTypeObject FunctionBaseType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._FunctionBase",
    .tp_basicsize = sizeof(PyFunctionObject),
    .tp_dealloc = function_dealloc,
    .tp_setattro = function_setattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Base of torch.autograd.Function and of its ctx objects.",
    .tp_traverse = function_traverse,
    .tp_clear = function_clear,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = function_new,
};

Ref<Node> node_of(PyObject* o) {
  if (PyObject_TypeCheck(o, &NodeType)) return Ref<Node>::share(reinterpret_cast<PyNodeObject*>(o)->node);
  if (PyObject_TypeCheck(o, &FunctionBaseType)) return recorded(self_of(o));
  return nullptr;
}

void init_autograd_function(PyObject* module) {
  add_type(module, "_FunctionBase", &FunctionBaseType);
  add_node_members();
}

}  // namespace rushlight::python
