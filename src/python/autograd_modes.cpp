// Module functions of autograd: grad mode, inference mode, anomaly mode, and the door to the engine.
#include "autograd/accumulate.h"
#include "python/autograd.h"
#include "python/op_function.h"
#include "python/parse.h"

namespace rushlight::python {
namespace {

PyObject* set_grad_mode(PyObject*, PyObject* value) {
  if (!PyBool_Check(value))
    return PyErr_Format(PyExc_TypeError, "set_grad_enabled(): argument 'enabled' must be bool, not %s",
                        Py_TYPE(value)->tp_name);
  GradMode::set(value == Py_True);
  Py_RETURN_NONE;
}
PyObject* get_grad_mode(PyObject*, PyObject*) { return PyBool_FromLong(GradMode::enabled()); }

PyObject* set_inference(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  set_inference_mode(on);
  Py_RETURN_NONE;
}
PyObject* get_inference(PyObject*, PyObject*) { return PyBool_FromLong(dispatch_state.inference); }

PyObject* set_anomaly(PyObject*, PyObject* args) {
  int on = 0, check_nan = 1;
  if (!PyArg_ParseTuple(args, "p|p", &on, &check_nan)) return nullptr;
  anomaly_state = {on != 0, check_nan != 0};
  Py_RETURN_NONE;
}
PyObject* get_anomaly(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_state.enabled); }
PyObject* get_check_nan(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_state.check_nan); }

bool multithreading = true;
PyObject* set_multithreading(PyObject*, PyObject* value) {
  multithreading = PyObject_IsTrue(value) == 1;
  Py_RETURN_NONE;
}
PyObject* get_multithreading(PyObject*, PyObject*) { return PyBool_FromLong(multithreading); }

PyObject* set_layout_enforced(PyObject*, PyObject* value) {
  return guard([&] {
    gradient_layout_enforced = to_bool(value);
    return Py_NewRef(Py_None);
  });
}
PyObject* get_layout_enforced(PyObject*, PyObject*) { return PyBool_FromLong(gradient_layout_enforced); }

PyObject* increment_version(PyObject*, PyObject* tensor) {
  return guard([&]() -> PyObject* {
    expect_tensor(tensor, "increment_version").bump_version();
    Py_RETURN_NONE;
  });
}

// --- engine

// A tensor's gradient edge, or a GradientEdge (node, output_nr, ...).
Edge edge_of(PyObject* o) {
  if (is_tensor(o)) return gradient_edge(tensor_of(o));
  if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2) {
    Ref<Node> node = node_of(PyTuple_GET_ITEM(o, 0));
    const long input = PyLong_AsLong(PyTuple_GET_ITEM(o, 1));
    if (PyErr_Occurred()) throw PythonError();
    if (node) return {std::move(node), static_cast<uint32_t>(input)};
  }
  throw_python(PyExc_TypeError,
               str("all inputs have to be Tensors or GradientEdges, but got ", type_name(o)));
}

PyRef fast_sequence(PyObject* o) {
  return PyRef(check(PySequence_Fast(o, "expected a sequence of tensors")));
}

struct Roots {
  std::vector<Edge> edges;
  std::vector<Tensor> seeds;
};
Roots read_roots(PyObject* outputs, PyObject* grads) {
  Roots roots;
  PyRef out = fast_sequence(outputs), seeds = fast_sequence(grads);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(out.get());
  RL_CHECK(n == PySequence_Fast_GET_SIZE(seeds.get()), "got ", n, " tensors and ",
           PySequence_Fast_GET_SIZE(seeds.get()), " gradients");
  for (Py_ssize_t i = 0; i < n; ++i) {
    Edge edge = edge_of(PySequence_Fast_GET_ITEM(out.get(), i));
    RL_CHECK(edge, "element ", i, " of tensors does not require grad and does not have a grad_fn");
    roots.seeds.push_back(optional_tensor(PySequence_Fast_GET_ITEM(seeds.get(), i), "gradient"));
    RL_CHECK(roots.seeds.back().defined(), "element ", i,
             " of gradients tuple is None, but the corresponding Tensor requires grad");
    if (edge.input < edge.node->outputs().size())
      fit_gradient(roots.seeds.back(), edge, *edge.node, static_cast<size_t>(i));
    roots.edges.push_back(std::move(edge));
  }
  return roots;
}

std::vector<Edge> read_inputs(PyObject* inputs, bool accumulate) {
  std::vector<Edge> edges;
  PyRef list = fast_sequence(inputs);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(list.get(), i);
    if (is_tensor(o)) {
      RL_CHECK(requires_grad(tensor_of(o)), "One of the differentiated Tensors does not require grad");
      if (accumulate) retain_grad(tensor_of(o));
    }
    edges.push_back(edge_of(o));
  }
  return edges;
}

PyObject* engine_run(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *outputs, *grads, *inputs;
    int keep, create, allow_unused, accumulate;
    if (!PyArg_ParseTuple(args, "OOppOpp", &outputs, &grads, &keep, &create, &inputs, &allow_unused,
                          &accumulate))
      return nullptr;
    RL_CHECK(
        !accumulate || !dispatch_state.level,
        "backward() called inside a functorch transform. This is not supported, please use functorch.grad "
        "or functorch.vjp instead or call backward() outside of functorch transforms.");
    Roots roots = read_roots(outputs, grads);
    const std::vector<Edge> targets = read_inputs(inputs, accumulate);
    const BackwardOptions options{keep != 0, create != 0, accumulate != 0};
    std::vector<Tensor> results;
    {
      GilRelease unlocked;
      results = run_backward(roots.edges, std::move(roots.seeds), targets, options);
    }
    if (accumulate) return PyTuple_New(0);
    for (size_t i = 0; i < results.size(); ++i)
      RL_CHECK(allow_unused || results[i].defined(), "The differentiated Tensor at index ", i,
               " appears to not have been used "
               "in the graph. Set allow_unused=True if this is the desired behavior.");
    return wrap_tuple(std::move(results));
  });
}

PyObject* queue_callback(PyObject*, PyObject* function) {
  return guard([&]() -> PyObject* {
    auto held = std::make_shared<PyAttached<Attachment>>(function);
    queue_backward_callback([held] {
      GilAcquire gil;
      PyRef(check(PyObject_CallNoArgs(static_cast<PyObject*>(held->python()))));
    });
    Py_RETURN_NONE;
  });
}
PyObject* is_checkpoint_valid(PyObject*, PyObject*) { return PyBool_FromLong(!pass_is_partial()); }
PyObject* keeps_graph(PyObject*, PyObject*) { return PyBool_FromLong(pass_keeps_graph()); }
PyObject* graph_task_id(PyObject*, PyObject*) { return PyLong_FromLongLong(current_pass()); }
PyObject* running_node(PyObject*, PyObject*) {
  return guard([] { return wrap_node(current_node()); });
}
PyObject* will_execute(PyObject*, PyObject* o) {
  return guard([&] {
    const Ref<Node> node = node_of(o);
    RL_CHECK(node, "_will_engine_execute_node expects an grad_fn, but got ", type_name(o));
    return PyBool_FromLong(pass_executes(*node));
  });
}

// --- anomaly mode

PyRef metadata_of(Node& node) {
  PyRef object(wrap_node(&node));
  return PyRef(check(PyObject_GetAttrString(object.get(), "metadata")));
}

void record_python_stack(Node& node) {
  GilAcquire gil;
  PyRef traceback(check(PyImport_ImportModule("traceback")));
  PyRef stack(check(PyObject_CallMethod(traceback.get(), "format_stack", nullptr)));
  PyRef metadata = metadata_of(node);
  check(PyDict_SetItemString(metadata.get(), "traceback_", stack.get()));
  if (Node* parent = current_node()) {
    PyRef object(wrap_node(parent));
    check(PyDict_SetItemString(metadata.get(), "parent_", object.get()));
  }
}

std::string stack_text(PyObject* metadata) {
  PyObject* stack = PyDict_GetItemString(metadata, "traceback_");
  if (!stack)
    return "No forward pass information available. Enable detect anomaly during forward pass for more "
           "information.";
  PyRef empty(check(PyUnicode_FromString(""))), text(check(PyUnicode_Join(empty.get(), stack)));
  return "Traceback of forward call that caused the error:\n" + std::string(string_view(text.get()));
}

// Where warnings are errors there is an error already, which is to come through.
void warn_or_print(const std::string& text) {
  try {
    show_warning(text);
  } catch (const PythonError&) {
    PySys_FormatStderr("%s\n", text.c_str());
  }
}

void print_python_stack(Node& node) {
  GilAcquire gil;
  PyRef metadata = metadata_of(node);
  warn_or_print(str("Error detected in ", node.name(), ". ", stack_text(metadata.get())));
  PyRef parent = PyRef::borrow(PyDict_GetItemString(metadata.get(), "parent_"));
  while (parent && parent.get() != Py_None) {
    PyRef of_parent(check(PyObject_GetAttrString(parent.get(), "metadata")));
    const Ref<Node> n = node_of(parent.get());
    warn_or_print(str("\n\nPrevious calculation was induced by ", n ? n->name() : "a freed node", ". ",
                      stack_text(of_parent.get())));
    parent = PyRef::borrow(PyDict_GetItemString(of_parent.get(), "parent_"));
  }
}

PyMethodDef functions[] = {
    {"_set_grad_enabled", set_grad_mode, METH_O, nullptr},
    {"is_grad_enabled", get_grad_mode, METH_NOARGS,
     "is_grad_enabled() -> bool: whether operations are recorded."
     "\n\nExample:\n    >>> with torch.no_grad():\n    ...     torch.is_grad_enabled()\n    False"},
    {"_set_inference_mode", set_inference, METH_O, nullptr},
    {"is_inference_mode_enabled", get_inference, METH_NOARGS, "is_inference_mode_enabled() -> bool"},
    {"_set_anomaly_enabled", set_anomaly, METH_VARARGS, nullptr},
    {"is_anomaly_enabled", get_anomaly, METH_NOARGS, "is_anomaly_enabled() -> bool"},
    {"is_anomaly_check_nan_enabled", get_check_nan, METH_NOARGS, "is_anomaly_check_nan_enabled() -> bool"},
    {"_set_multithreading_enabled", set_multithreading, METH_O, nullptr},
    {"_is_multithreading_enabled", get_multithreading, METH_NOARGS, nullptr},
    {"_set_grad_layout_enforcement_enabled", set_layout_enforced, METH_O, nullptr},
    {"_is_grad_layout_enforcement_enabled", get_layout_enforced, METH_NOARGS, nullptr},
    {"_increment_version", increment_version, METH_O, nullptr},
    {"_engine_run", engine_run, METH_VARARGS,
     "_engine_run(outputs, grads, keep_graph, create_graph, inputs, allow_unused, accumulate): one backward "
     "pass."},
    {"_engine_queue_callback", queue_callback, METH_O,
     "Calls a function at the end of the backward pass now running."},
    {"_is_checkpoint_valid", is_checkpoint_valid, METH_NOARGS, nullptr},
    {"_get_current_graph_task_keep_graph", keeps_graph, METH_NOARGS, nullptr},
    {"_current_graph_task_id", graph_task_id, METH_NOARGS, nullptr},
    {"_current_autograd_node", running_node, METH_NOARGS, nullptr},
    {"_will_engine_execute_node", will_execute, METH_O, nullptr},
    {}};

}  // namespace

void init_autograd_modes(PyObject* module) {
  add_functions(module, functions);
  record_stack = record_python_stack;
  print_stack = print_python_stack;
}

void init_autograd(PyObject* module) {
  init_autograd_nodes(module);
  init_autograd_function(module);
  init_autograd_tensor();
  init_autograd_modes(module);
  init_autograd_saved(module);
}

}  // namespace rushlight::python
