// grad_fn objects. Each name ("AddBackward0") has a Python type of its own, made when first asked for, with
// _saved_* attributes after the record's schema.
#include <array>
#include <deque>
#include <map>
#include <memory>

#include "autograd/accumulate.h"
#include "autograd/op_node.h"
#include "autograd/view.h"
#include "python/autograd.h"
#include "python/op_function.h"
#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

Ref<Node> expect(PyObject* o) {
  Ref<Node> node = node_of(o);
  RL_CHECK(node, "this custom Function's node has been freed: keep a tensor of its graph alive");
  return node;
}

// Nodes of the engine itself are called by their C++ names.
std::string full_name(const Node& node) {
  const std::string name = node.name();
  const bool own = node.is_accumulate || name == "CopySlices" || name == "CopyBackwards";
  return own ? "torch::autograd::" + name : name;
}

PyObject* node_name(PyObject* self, PyObject*) {
  return guard([&] { return to_python(full_name(*expect(self))); });
}

PyObject* get_next_functions(PyObject* self, void*) {
  return guard([&] {
    const Ref<Node> node = expect(self);
    const auto edges = node->edges();
    PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(edges.size()))));
    for (size_t i = 0; i < edges.size(); ++i) {
      PyRef target(wrap_node(edges[i].node.get())), input(PyLong_FromUnsignedLong(edges[i].input));
      PyTuple_SET_ITEM(tuple.get(), i, check(PyTuple_Pack(2, target.get(), input.get())));
    }
    return tuple.release();
  });
}

PyObject* get_metadata(PyObject* self, void*) {
  return guard([&] {
    const Ref<Node> kept = expect(self);
    Node& node = *kept;
    NodeHooks& hooks = node.ensure_hooks();
    Ref<Attachment> metadata;
    auto read = [&] {
      std::lock_guard guard(node.lock);
      metadata = hooks.metadata;
    };
    read();
    if (!metadata) {
      PyRef dict(check(PyDict_New()));
      const Ref<Attachment> made = Ref<PyAttached<Attachment>>::adopt(new PyAttached<Attachment>(dict.get()));
      std::lock_guard guard(node.lock);
      if (!hooks.metadata) hooks.metadata = made;
      metadata = hooks.metadata;
    }
    return Py_NewRef(static_cast<PyObject*>(metadata->python()));
  });
}

// Shape, dtype and device of each output, as objects with these attributes.
PyObject* get_input_metadata(PyObject* self, void*) {
  return guard([&] {
    static constinit Lazy tuple_type;
    PyObject* type = tuple_type.get([] {
      PyRef module(check(PyImport_ImportModule("collections")));
      return check(PyObject_CallMethod(module.get(), "namedtuple", "s(sss)", "InputMetadata", "shape",
                                       "dtype", "device"));
    });
    const Ref<Node> node = expect(self);
    const auto outputs = node->outputs();
    PyRef list(check(PyList_New(static_cast<Py_ssize_t>(outputs.size()))));
    for (size_t i = 0; i < outputs.size(); ++i) {
      PyRef shape(wrap_size(outputs[i].sizes)), dtype(wrap(outputs[i].dtype)),
          device(wrap(outputs[i].device));
      PyList_SET_ITEM(
          list.get(), i,
          check(PyObject_CallFunctionObjArgs(type, shape.get(), dtype.get(), device.get(), nullptr)));
    }
    return list.release();
  });
}

PyObject* get_requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }
PyObject* sequence_nr(PyObject* self, PyObject*) {
  return guard([&] { return PyLong_FromUnsignedLongLong(expect(self)->sequence()); });
}
PyObject* set_sequence_nr(PyObject* self, PyObject* number) {
  return guard([&]() -> PyObject* {
    const auto value = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) return nullptr;
    expect(self)->set_sequence(value);
    Py_RETURN_NONE;
  });
}
// Tensors attach their hook dictionaries themselves (set_python_hooks).
PyObject* register_hook_dict(PyObject*, PyObject*) { Py_RETURN_NONE; }

// Runs the node alone: gradients of its outputs in, gradients for its edges out.
PyObject* node_call(PyObject* self, PyObject* args, PyObject*) {
  return guard([&] {
    const Ref<Node> kept = expect(self);
    Node& node = *kept;
    RL_CHECK_TYPE(node.is_python || PyTuple_GET_SIZE(args) == static_cast<Py_ssize_t>(node.outputs().size()),
                  "expected ", node.outputs().size(), " arguments, got ", PyTuple_GET_SIZE(args), " instead");
    Gradients grads(std::max<size_t>(node.outputs().size(), static_cast<size_t>(PyTuple_GET_SIZE(args))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      grads[i] = optional_tensor(PyTuple_GET_ITEM(args, i), "gradient");
    Gradients results;
    {
      GilRelease unlocked;
      results = node.apply(std::move(grads));
    }
    if (results.size() == 1) return wrap(std::move(results[0]));
    return gradients_tuple(results).release();
  });
}

// --- _saved_* attributes

OpNode& op_node(PyObject* self) {  // its wrapper owns it
  return static_cast<OpNode&>(*reinterpret_cast<PyNodeObject*>(self)->node);
}
int index_of(void* closure) { return static_cast<int>(reinterpret_cast<intptr_t>(closure)); }

PyObject* get_saved_input(PyObject* self, void* closure) {
  return guard([&] {
    OpNode& node = op_node(self);
    const auto saved = node.saved_inputs(index_of(closure));
    if (node.op().schema.parameters[index_of(closure)].type == Tag::Tensor)
      return wrap(saved[0].unpack(node));
    std::vector<Tensor> list;
    for (const SavedVariable& s : saved) list.push_back(s.unpack(node));
    return wrap_tuple(std::move(list));
  });
}
PyObject* get_saved_output(PyObject* self, void* closure) {
  return guard([&] {
    OpNode& node = op_node(self);
    GradMode on(true);  // the output shows its grad_fn
    return wrap(node.saved_output(index_of(closure))->unpack(node));
  });
}

// _raw_saved_*: the same as SavedTensor objects.
PyObject* get_raw_input(PyObject* self, void* closure) {
  return guard([&] {
    OpNode& node = op_node(self);
    const auto saved = node.saved_inputs(index_of(closure));
    if (node.op().schema.parameters[index_of(closure)].type == Tag::Tensor) return wrap_saved(node, saved[0]);
    PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(saved.size()))));
    for (size_t i = 0; i < saved.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, wrap_saved(node, saved[i]));
    return tuple.release();
  });
}
PyObject* get_raw_output(PyObject* self, void* closure) {
  return guard([&] {
    OpNode& node = op_node(self);
    return wrap_saved(node, *node.saved_output(index_of(closure)));
  });
}

template <class List, class F>
PyObject* list_to_tuple(const List& list, F&& convert_item) {
  PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(list.size()))));
  Py_ssize_t i = 0;
  for (const auto& item : list) PyTuple_SET_ITEM(tuple.get(), i++, check(convert_item(item)));
  return tuple.release();
}

// Lists of numbers as tuples, what else was saved as everywhere.
PyObject* value_to_python(const Value& v) {
  switch (v.tag()) {
    case Tag::IntList:
      return list_to_tuple(v.ints(), [](int64_t i) { return PyLong_FromLongLong(i); });
    case Tag::FloatList:
      return list_to_tuple(v.floats(), [](double d) { return PyFloat_FromDouble(d); });
    case Tag::ScalarList:
      return list_to_tuple(v.scalars(), [](const Scalar& s) { return wrap_scalar(s); });
    case Tag::BoolList:
      return list_to_tuple(v.bools(), [](bool b) { return PyBool_FromLong(b); });
    default:
      return wrap_value(v);
  }
}
// The sizes of an input that was not saved itself.
PyObject* get_saved_sizes(PyObject* self, void* closure) {
  return guard([&] {
    return list_to_tuple(op_node(self).saved_shape(index_of(closure))->sizes,
                         [](int64_t i) { return PyLong_FromLongLong(i); });
  });
}
PyObject* get_saved_attribute(PyObject* self, void* closure) {
  return guard([&] { return value_to_python(*op_node(self).attribute(index_of(closure))); });
}

// --- types

struct OpType {
  std::string name;  // what the type's tp_name points to
  PyTypeObject* type = nullptr;
  std::deque<PyGetSetDef> properties;
  std::deque<std::string> names;
};

void add_property(OpType& t, const std::string& name, getter get, int index) {
  const std::string& kept = t.names.emplace_back(name);
  t.properties.push_back(
      {kept.c_str(), get, nullptr, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(index))});
  PyRef descriptor(check(PyDescr_NewGetSet(t.type, &t.properties.back())));
  check(PyDict_SetItemString(t.type->tp_dict, kept.c_str(), descriptor.get()));
}

std::string output_name(const Op& op, int i) {
  const auto& returns = op.schema.returns;
  if (!returns[i].name.empty()) return std::string(returns[i].name);
  return returns.size() == 1 ? "result" : str("result", i);
}

void add_saved(OpType& t, const Op& op) {
  const Derivative& d = op.derivative;
  for (size_t i = 0; i < op.schema.parameters.size(); ++i) {
    const std::string name(op.schema.parameters[i].name);
    if (d.saved_inputs >> i & 1) {
      add_property(t, "_saved_" + name, get_saved_input, static_cast<int>(i));
      add_property(t, "_raw_saved_" + name, get_raw_input, static_cast<int>(i));
    }
    if (d.saved_shapes >> i & 1 && op.schema.parameters[i].type == Tag::Tensor)
      add_property(t, "_saved_" + name + "_sym_sizes", get_saved_sizes, static_cast<int>(i));
    if (d.saved_attributes >> i & 1)
      add_property(t, "_saved_" + name, get_saved_attribute, static_cast<int>(i));
  }
  for (size_t i = 0; i < op.schema.returns.size(); ++i)
    if (d.saved_outputs >> i & 1) {
      const std::string name = output_name(op, static_cast<int>(i));
      add_property(t, "_saved_" + name, get_saved_output, static_cast<int>(i));
      add_property(t, "_raw_saved_" + name, get_raw_output, static_cast<int>(i));
    }
}

PyTypeObject* make_type(OpType& t, const std::string& name) {
  t.name = "builtins." + name;  // shown as <AddBackward0 object at ...>
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(NodeType.tp_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(NodeType.tp_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(NodeType.tp_clear)},
                         {0, nullptr}};
  PyType_Spec spec = {t.name.c_str(), sizeof(PyNodeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                      slots};
  t.type = reinterpret_cast<PyTypeObject*>(
      check(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&NodeType))));
  return t.type;
}

// Keyed by record where there is one, since overloads share a name but not what they save; and by name, since
// the last step of a composite bears the composite's.
PyTypeObject* type_of(Node& node) {
  using Key = std::pair<const Op*, std::string>;  // no record: by name alone
  static auto& types = *new std::map<Key, OpType>;
  static constinit ShortLock lock;
  const Op* op = node.is_op ? &static_cast<OpNode&>(node).op() : nullptr;
  std::map<Key, OpType> made;
  Key key{op, node.name()};
  {
    const std::lock_guard guard(lock);
    if (const auto found = types.find(key); found != types.end()) return found->second.type;
  }
  OpType& t = made[key];
  make_type(t, key.second);
  if (op) {
    add_saved(t, *op);
    PyType_Modified(t.type);
  }
  static auto& unused = *new std::vector<decltype(made)::node_type>;  // types live on
  const std::lock_guard guard(lock);
  auto inserted = types.insert(made.extract(made.begin()));
  if (!inserted.inserted) unused.push_back(std::move(inserted.node));
  return inserted.position->second.type;
}

PyObject* node_repr(PyObject* o) {
  return guard(
      [&] { return check(PyUnicode_FromFormat("<%s object at %p>", expect(o)->name().c_str(), o)); });
}

void node_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  auto* self = reinterpret_cast<PyNodeObject*>(o);
  PyTypeObject* type = Py_TYPE(o);
  if (Node* node = self->node) {
    {
      const IdentityLock lock(node);
      if (node->pyobj == o) node->pyobj = nullptr;
    }
    Ref<Node>::adopt(std::exchange(self->node, nullptr));
  }
  PyObject_GC_Del(o);
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type);
}
int node_traverse(PyObject* o, visitproc visit, void* arg) {
  if (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_VISIT(Py_TYPE(o));
  Node* node = reinterpret_cast<PyNodeObject*>(o)->node;
  return node && node->use_count() == 1 ? visit_node(node, visit, arg) : 0;
}
int node_clear(PyObject* o) {
  auto* self = reinterpret_cast<PyNodeObject*>(o);
  if (self->node && self->node->use_count() == 1 && self->node->hooks()) {
    NodeHooks dead = std::move(*self->node->hooks());
    *self->node->hooks() = {};
  }
  return 0;
}

PyObject* get_variable(PyObject* self, void*) {
  return guard([&]() -> PyObject* {
    const Ref<Node> kept = expect(self);
    Node& node = *kept;
    if (!node.is_accumulate) {
      PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", Py_TYPE(self)->tp_name);
      return nullptr;
    }
    return wrap(static_cast<AccumulateGrad&>(node).variable());
  });
}
PyGetSetDef accumulate_properties[] = {
    {"next_functions", get_next_functions, nullptr,
     "Pairs of the receiving nodes and the numbers of their inputs.", nullptr},
    {"metadata", get_metadata, nullptr, "A dictionary that stays with the node.", nullptr},
    {"_input_metadata", get_input_metadata, nullptr, nullptr, nullptr},
    {"requires_grad", get_requires_grad, nullptr, nullptr, nullptr},
    {"variable", get_variable, nullptr, "The leaf whose gradient an AccumulateGrad adds to.", nullptr},
    {}};

}  // namespace

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name() -> str, for instance \"AddBackward0\"."},
    {"register_hook", node_register_hook, METH_O,
     "register_hook(fn): fn(grad_inputs, grad_outputs) runs after the node and may replace grad_inputs."},
    {"register_prehook", node_register_prehook, METH_O,
     "register_prehook(fn): fn(grad_outputs) runs before the node and may replace them."},
    {"_register_hook_dict", register_hook_dict, METH_O, nullptr},
    {"_sequence_nr", sequence_nr, METH_NOARGS, nullptr},
    {"_set_sequence_nr", set_sequence_nr, METH_O, nullptr},
    {}};
PyGetSetDef node_properties[] = {
    {"next_functions", get_next_functions, nullptr,
     "Pairs of the receiving nodes and the numbers of their inputs.", nullptr},
    {"metadata", get_metadata, nullptr, "A dictionary that stays with the node.", nullptr},
    {"_input_metadata", get_input_metadata, nullptr, nullptr, nullptr},
    {"requires_grad", get_requires_grad, nullptr, nullptr, nullptr},
    {}};

PyTypeObject NodeType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._Node",
    .tp_basicsize = sizeof(PyNodeObject),
    .tp_dealloc = node_dealloc,
    .tp_repr = node_repr,
    .tp_call = node_call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A node of the backward graph.",
    .tp_traverse = node_traverse,
    .tp_clear = node_clear,
    .tp_methods = node_methods,
    .tp_getset = accumulate_properties,
};

PyObject* wrap_node(Node* node) {
  if (!node) Py_RETURN_NONE;
  if (node->is_python) return Py_NewRef(static_cast<PyObject*>(node->pyobj.get()));  // owned by the node
  auto existing = [&]() -> PyObject* {
    auto* there = static_cast<PyObject*>(node->pyobj.get());
    return there && try_incref(there) ? there : nullptr;
  };
  if (node->pyobj) {
    const IdentityLock lock(node);
    if (PyObject* there = existing()) return there;
  }
  PyTypeObject* type = type_of(*node);
  auto* self = PyObject_GC_New(PyNodeObject, type);
  if (!self) throw PythonError();
  auto* object = reinterpret_cast<PyObject*>(self);
  enable_try_incref(object);
  node->retain();
  self->node = node;
  PyObject_GC_Track(object);
  PyRef unused;  // freed after the lock
  const IdentityLock lock(node);
  if (PyObject* there = existing()) {
    unused = PyRef(object);
    return there;
  }
  node->pyobj = self;  // one that is dying leaves it alone
  return object;
}

// Walks the part of the graph that hangs on `node` alone. Bounded, so that a collection stays quick: what
// lies deeper merely counts as reachable. It takes no memory: there may be none, and a collection cannot
// fail.
int visit_node(Node* first, visitproc visit, void* arg) {
  constexpr size_t kLimit = 1000;
  std::array<Node*, kLimit> queue;  // NOLINT: what it holds is written before it is read
  size_t known = 0;
  auto push = [&](Node* node) {
    if (known < kLimit) queue[known++] = node;
  };
  push(first);
  auto visit_tensor = [&](const Tensor& t) -> int {
    if (!t.defined() || t->use_count() != 1) return 0;
    if (t->owns_pyobj)
      Py_VISIT(static_cast<PyObject*>(t->pyobj.get()));
    else if (t->autograd && t->autograd->grad_fn && t->autograd->grad_fn->use_count() == 1)
      push(t->autograd->grad_fn.get());
    return 0;
  };
  auto visit_attachment = [&](const Attachment* a) -> int {
    if (a && a->use_count() == 1) Py_VISIT(static_cast<PyObject*>(a->python()));
    return 0;
  };
  for (size_t at = 0; at < known; ++at) {
    Node* node = queue[at];
    int status = 0;
    if (NodeHooks* hooks = node->hooks()) {
      for (const auto& h : hooks->on_outputs) status = status ? status : visit_attachment(h.hook.get());
      for (const auto& h : hooks->before) status = status ? status : visit_attachment(h.get());
      for (const auto& h : hooks->after) status = status ? status : visit_attachment(h.get());
      status = status ? status : visit_attachment(hooks->metadata.get());
    }
    if (node->is_python && node->pyobj) Py_VISIT(static_cast<PyObject*>(node->pyobj.get()));
    node->each_saved([&](const SavedVariable& s) { status = status ? status : visit_tensor(s.kept()); });
    if (status) return status;
    for (const Edge& e : node->edges())
      if (e && e.node->use_count() == 1 && !e.node->is_accumulate) push(e.node.get());
  }
  return 0;
}

void init_autograd_nodes(PyObject* module) { add_type(module, "_Node", &NodeType); }

}  // namespace rushlight::python
