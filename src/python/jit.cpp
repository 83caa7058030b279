// Graphs and executors: what rushlight.export writes into files, and torch.compile runs.
#include "io/checksum.h"
#include "io/model_file.h"
#include "jit/alias.h"
#include "jit/executor.h"
#include "jit/passes.h"
#include "jit/text.h"
#include "python/op_function.h"
#include "python/owner.h"

namespace rushlight::python {
namespace {

using jit::Constants;
using jit::Executor;
using jit::Graph;

extern PyTypeObject GraphType, ExecutorType;

Graph graph_from(PyObject* o) {
  if (PyObject_TypeCheck(o, &GraphType)) return object_of<Graph>(o);
  if (!PyUnicode_Check(o))
    throw_python(PyExc_TypeError, "expected a graph or its text, but got " + type_name(o));
  return jit::parse_graph(string_view(o));
}

Constants constants_from(PyObject* o) {
  Constants constants;
  if (!o || o == Py_None) return constants;
  if (!PyDict_Check(o))
    throw_python(PyExc_TypeError, "constants must be a dict of tensors by name, but got " + type_name(o));
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t i = 0; PyDict_Next(o, &i, &name, &value);) {
    if (!PyUnicode_Check(name)) throw_python(PyExc_TypeError, "the names of constants must be strings");
    constants.emplace(string_view(name), expect_tensor(value, "constant"));
  }
  return constants;
}

PyObject* to_dict(const Constants& constants) {
  PyRef dict(check(PyDict_New()));
  for (const auto& [name, tensor] : constants) {
    const PyRef value(wrap(tensor));
    check(PyDict_SetItemString(dict.get(), name.c_str(), value.get()));
  }
  return dict.release();
}

// --- _JitGraph

PyObject* graph_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"text", nullptr};
  PyObject* text = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U", const_cast<char**>(names), &text)) return nullptr;
  return guard([&] { return own(type, std::make_unique<Graph>(jit::parse_graph(string_view(text)))); });
}

PyObject* graph_text(PyObject* self, PyObject*) {
  return guard([&] { return to_python(jit::print_graph(object_of<Graph>(self))); });
}
PyObject* graph_str(PyObject* self) { return graph_text(self, nullptr); }

// [(name, type)] of values.
template <class Range, class NameOf>
PyObject* described(const Graph& graph, const Range& range, NameOf&& name_and_value) {
  PyRef list(check(PyList_New(0)));
  for (const auto& entry : range) {
    const auto [name, id] = name_and_value(entry);
    const std::string type = graph.type_text(graph.values[id].type);
    const PyRef pair(check(Py_BuildValue("(ss)", std::string(name).c_str(), type.c_str())));
    check(PyList_Append(list.get(), pair.get()));
  }
  return list.release();
}
PyObject* graph_inputs(PyObject* self, void*) {
  return guard([&] {
    const Graph& g = object_of<Graph>(self);
    return described(g, g.inputs, [&](jit::ValueId id) { return std::pair(g.values[id].name, id); });
  });
}
PyObject* graph_outputs(PyObject* self, void*) {
  return guard([&] {
    const Graph& g = object_of<Graph>(self);
    return described(g, g.outputs, [](const jit::Output& o) { return std::pair(o.name, o.value); });
  });
}
PyObject* list_of_names(const std::vector<std::string>& names) {
  PyRef list(check(PyList_New(0)));
  for (const std::string& name : names) {
    const PyRef text(to_python(name));
    check(PyList_Append(list.get(), text.get()));
  }
  return list.release();
}
PyObject* graph_constants(PyObject* self, void*) {
  return guard([&] { return list_of_names(object_of<Graph>(self).constants()); });
}
PyObject* graph_states(PyObject* self, void*) {
  return guard([&] { return list_of_names(object_of<Graph>(self).states()); });
}

PyObject* graph_written_constants(PyObject* self, PyObject*) {
  return guard([&] {
    PyRef list(check(PyList_New(0)));
    for (const auto& [constant, source] : jit::written_constants(object_of<Graph>(self))) {
      const PyRef pair(check(Py_BuildValue("(ss)", constant.c_str(), source.c_str())));
      check(PyList_Append(list.get(), pair.get()));
    }
    return list.release();
  });
}

// A graph in which some constants, by their names, are state.
PyObject* graph_with_state(PyObject* self, PyObject* names) {
  return guard([&] {
    if (!PyDict_Check(names)) throw_python(PyExc_TypeError, "with_state expects a dict of names");
    auto graph = std::make_unique<Graph>(object_of<Graph>(self));
    for (jit::Node& node : graph->nodes) {
      if (!node.is_constant()) continue;
      const PyRef key(to_python(node.constant));
      PyObject* found = PyDict_GetItemWithError(names, key.get());
      if (!found) continue;
      node.builtin = jit::Builtin::State;
      node.constant = std::string(string_view(found));
    }
    return own(&GraphType, std::move(graph));
  });
}

PyObject* graph_optimize(PyObject* self, PyObject* constants) {
  return guard([&] {
    auto graph = std::make_unique<Graph>(object_of<Graph>(self));
    Constants kept = constants_from(constants);
    jit::optimize(*graph, kept);
    const PyRef dict(to_dict(kept));
    const PyRef made(own(&GraphType, std::move(graph)));
    return check(PyTuple_Pack(2, made.get(), dict.get()));
  });
}

PyObject* graph_propagate(PyObject* self, PyObject* constants) {
  return guard([&] {
    auto graph = std::make_unique<Graph>(object_of<Graph>(self));
    jit::propagate_shapes(*graph, constants_from(constants));
    return own(&GraphType, std::move(graph));
  });
}

PyMethodDef graph_methods[] = {
    {"text", graph_text, METH_NOARGS, "The text from which the same graph is made."},
    {"written_constants", graph_written_constants, METH_NOARGS,
     "[(name, source)] of the constants that nodes write to, and where."},
    {"with_state", graph_with_state, METH_O,
     "with_state(names): the graph in which the constants that are keys of `names` are state of these "
     "names."},
    {"optimize", graph_optimize, METH_O,
     "optimize(constants): a graph that computes the same with less, and its constants."},
    {"propagate_shapes", graph_propagate, METH_O,
     "propagate_shapes(constants): the graph with the types of all values."},
    {}};
PyGetSetDef graph_properties[] = {
    {"inputs", graph_inputs, nullptr, "[(name, type)] of the inputs.", nullptr},
    {"outputs", graph_outputs, nullptr, "[(name, type)] of the outputs.", nullptr},
    {"constants", graph_constants, nullptr, "Names of the constants that the graph reads.", nullptr},
    {"states", graph_states, nullptr, "Names of the state that the graph uses.", nullptr},
    {}};

PyTypeObject GraphType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._JitGraph",
    .tp_basicsize = sizeof(PyOwner<Graph>),
    .tp_dealloc = dealloc_owner<Graph>,
    .tp_str = graph_str,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "_JitGraph(text): a program as a list of operator calls, checked against their schemas.",
    .tp_methods = graph_methods,
    .tp_getset = graph_properties,
    .tp_new = graph_new,
};

// --- files

template <class F>
void each_item(PyObject* dict, const char* what, F&& f) {
  if (!PyDict_Check(dict)) throw_python(PyExc_TypeError, str(what, " must be a dict"));
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t i = 0; PyDict_Next(dict, &i, &name, &value);) {
    if (!PyUnicode_Check(name)) throw_python(PyExc_TypeError, str(what, " must have names that are strings"));
    f(std::string(string_view(name)), value);
  }
}

PyObject* write_model(PyObject*, PyObject* args) {
  PyObject *path = nullptr, *methods = nullptr, *state = nullptr, *texts = nullptr;
  if (!PyArg_ParseTuple(args, "UOOO", &path, &methods, &state, &texts)) return nullptr;
  return guard([&] {
    io::WrittenModel model;
    each_item(methods, "methods", [&](std::string name, PyObject* method) {
      PyObject *graph = nullptr, *constants = nullptr;
      if (!PyArg_ParseTuple(method, "OO", &graph, &constants)) throw PythonError();
      model.methods.push_back({std::move(name), graph_from(graph), constants_from(constants)});
    });
    each_item(state, "state", [&](std::string name, PyObject* tensor) {
      model.state.emplace_back(std::move(name), expect_tensor(tensor, "state"));
    });
    each_item(texts, "texts", [&](std::string name, PyObject* text) {
      char* data = nullptr;
      Py_ssize_t size = 0;
      check(PyBytes_AsStringAndSize(text, &data, &size));
      model.texts.emplace(std::move(name), std::string(data, static_cast<size_t>(size)));
    });
    io::write_model(std::string(string_view(path)), model);
    return Py_NewRef(Py_None);
  });
}

// (methods, state, texts): {name: (graph, constants)}, {name: tensor}, {name: bytes}
PyObject* read_model(PyObject*, PyObject* path) {
  return guard([&] {
    if (!PyUnicode_Check(path)) throw_python(PyExc_TypeError, "_read_model expects a path as str");
    io::ModelFile file = io::read_model(std::string(string_view(path)));
    const PyRef methods(check(PyDict_New())), state(check(PyDict_New())), texts(check(PyDict_New()));
    for (io::Method& method : file.methods) {
      const PyRef constants(to_dict(file.constants_of(method)));
      const PyRef graph(own(&GraphType, std::make_unique<Graph>(std::move(method.graph))));
      const PyRef both(check(PyTuple_Pack(2, graph.get(), constants.get())));
      check(PyDict_SetItemString(methods.get(), method.name.c_str(), both.get()));
    }
    for (const io::StateTensor& t : file.state) {
      const PyRef tensor(wrap(t.make()));
      check(PyDict_SetItemString(state.get(), t.name.c_str(), tensor.get()));
    }
    for (const auto& [name, text] : file.texts) {
      const PyRef bytes(check(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))));
      check(PyDict_SetItemString(texts.get(), name.c_str(), bytes.get()));
    }
    return check(PyTuple_Pack(3, methods.get(), state.get(), texts.get()));
  });
}

PyObject* model_checksum(PyObject*, PyObject* bytes) {
  return guard([&] {
    char* data = nullptr;
    Py_ssize_t size = 0;
    check(PyBytes_AsStringAndSize(bytes, &data, &size));
    return check(PyLong_FromUnsignedLongLong(io::xxh64(data, static_cast<size_t>(size))));
  });
}

PyMethodDef functions[] = {
    {"_model_checksum", model_checksum, METH_O, "The checksum of model files, of bytes."},
    {"_write_model", write_model, METH_VARARGS,
     "_write_model(path, {name: (graph, constants)}, {name: state}, {name: bytes})"},
    {"_read_model", read_model, METH_O,
     "_read_model(path): ({name: (graph, constants)}, {name: state}, {name: bytes}); the constants' memory "
     "is the "
     "file."},
    {}};

// --- _JitExecutor

PyObject* executor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"graph", "constants", "plan_memory", "mapped_constants", nullptr};
  PyObject *graph = nullptr, *constants = nullptr;
  int plan_memory = 1, mapped = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|Opp", const_cast<char**>(names), &graph, &constants,
                                   &plan_memory, &mapped))
    return nullptr;
  return guard([&] {
    jit::ExecutorOptions options;
    options.plan_memory = plan_memory != 0;
    options.mapped_constants = mapped != 0;
    return own(type, std::make_unique<Executor>(graph_from(graph), constants_from(constants), options));
  });
}

std::vector<Tensor> tensors_of(PyObject* list, const char* what) {
  const PyRef items(check(PySequence_Fast(list, "run expects lists of tensors")));
  std::vector<Tensor> given;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    given.push_back(expect_tensor(PySequence_Fast_GET_ITEM(items.get(), i), what));
  return given;
}

PyObject* executor_run(PyObject* self, PyObject* args) {
  PyObject *inputs = nullptr, *held = nullptr;
  if (!PyArg_ParseTuple(args, "O|O", &inputs, &held)) return nullptr;
  return guard([&] {
    std::vector<Tensor> given = tensors_of(inputs, "input"), state, outputs;
    if (held) state = tensors_of(held, "state");
    {
      const GilRelease released;
      outputs = object_of<Executor>(self).run(given, state);
      given.clear();
      state.clear();
    }
    PyRef list(check(PyList_New(static_cast<Py_ssize_t>(outputs.size()))));
    for (size_t i = 0; i < outputs.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), wrap(std::move(outputs[i])));
    return list.release();
  });
}

PyObject* executor_statistics(PyObject* self, PyObject*) {
  return guard([&] {
    const jit::ExecutorStatistics s = object_of<Executor>(self).statistics();
    return check(Py_BuildValue("{s:L,s:L,s:L,s:n}", "runs", static_cast<long long>(s.runs), "planned_runs",
                               static_cast<long long>(s.planned_runs), "reused_operands",
                               static_cast<long long>(s.reused_operands), "arena_bytes",
                               static_cast<Py_ssize_t>(s.arena_bytes)));
  });
}

PyMethodDef executor_methods[] = {
    {"run", executor_run, METH_VARARGS, "run(inputs, state=[]): the outputs; all are lists of tensors."},
    {"statistics", executor_statistics, METH_NOARGS, "What the runs so far did."},
    {}};

PyTypeObject ExecutorType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._JitExecutor",
    .tp_basicsize = sizeof(PyOwner<Executor>),
    .tp_dealloc = dealloc_owner<Executor>,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "_JitExecutor(graph, constants={}, plan_memory=True, mapped_constants=False): runs a graph; threads "
        "may share it. mapped_constants: they are what _read_model gave.",
    .tp_methods = executor_methods,
    .tp_new = executor_new,
};

}  // namespace

void init_jit(PyObject* module) {
  for (auto [name, type] : {std::pair{"_JitGraph", &GraphType}, {"_JitExecutor", &ExecutorType}}) {
    check(PyType_Ready(type));
    check(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)));
  }
  add_functions(module, functions);
}

}  // namespace rushlight::python
