// Graphs and executors: what rushlight.export writes into files, and torch.compile runs.
#include "io/checksum.h"
#include "io/model_file.h"
#include "jit/alias.h"
#include "jit/executor.h"
#include "jit/passes.h"
#include "jit/text.h"
#include "python/op_function.h"

namespace rushlight::python {
namespace {

using jit::Constants;
using jit::Executor;
using jit::Graph;

template <class T>
struct PyOwner {
  PyObject_HEAD T* object;
};
template <class T>
T& object_of(PyObject* self) {
  return *reinterpret_cast<PyOwner<T>*>(self)->object;
}
template <class T>
void dealloc(PyObject* self) {
  delete reinterpret_cast<PyOwner<T>*>(self)->object;
  Py_TYPE(self)->tp_free(self);
}
template <class T>
PyObject* own(PyTypeObject* type, std::unique_ptr<T> object) {
  PyObject* self = check(type->tp_alloc(type, 0));
  reinterpret_cast<PyOwner<T>*>(self)->object = object.release();
  return self;
}

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
PyObject* graph_constants(PyObject* self, void*) {
  return guard([&] {
    PyRef list(check(PyList_New(0)));
    for (const std::string& name : object_of<Graph>(self).constants()) {
      const PyRef text(to_python(name));
      check(PyList_Append(list.get(), text.get()));
    }
    return list.release();
  });
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
    {"optimize", graph_optimize, METH_O,
     "optimize(constants): a graph that computes the same with less, and its constants."},
    {"propagate_shapes", graph_propagate, METH_O,
     "propagate_shapes(constants): the graph with the types of all values."},
    {}};
PyGetSetDef graph_properties[] = {
    {"inputs", graph_inputs, nullptr, "[(name, type)] of the inputs.", nullptr},
    {"outputs", graph_outputs, nullptr, "[(name, type)] of the outputs.", nullptr},
    {"constants", graph_constants, nullptr, "Names of the constants that the graph reads.", nullptr},
    {}};

PyTypeObject GraphType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._JitGraph",
    .tp_basicsize = sizeof(PyOwner<Graph>),
    .tp_dealloc = dealloc<Graph>,
    .tp_str = graph_str,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "_JitGraph(text): a program as a list of operator calls, checked against their schemas.",
    .tp_methods = graph_methods,
    .tp_getset = graph_properties,
    .tp_new = graph_new,
};

// --- files

PyObject* write_model(PyObject*, PyObject* args) {
  PyObject *path = nullptr, *graph = nullptr, *constants = nullptr;
  if (!PyArg_ParseTuple(args, "UOO", &path, &graph, &constants)) return nullptr;
  return guard([&] {
    io::write_model(std::string(string_view(path)), graph_from(graph), constants_from(constants));
    return Py_NewRef(Py_None);
  });
}

PyObject* read_model(PyObject*, PyObject* path) {
  return guard([&] {
    if (!PyUnicode_Check(path)) throw_python(PyExc_TypeError, "_read_model expects a path as str");
    io::ModelFile file = io::read_model(std::string(string_view(path)));
    const PyRef dict(to_dict(file.constants));
    const PyRef graph(own(&GraphType, std::make_unique<Graph>(std::move(file.graph))));
    return check(PyTuple_Pack(2, graph.get(), dict.get()));
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
    {"_write_model", write_model, METH_VARARGS, "_write_model(path, graph, constants)"},
    {"_read_model", read_model, METH_O, "_read_model(path): (graph, constants), whose memory is the file."},
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

PyObject* executor_run(PyObject* self, PyObject* inputs) {
  return guard([&] {
    const PyRef items(check(PySequence_Fast(inputs, "run expects a list of tensors")));
    std::vector<Tensor> given;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      given.push_back(expect_tensor(PySequence_Fast_GET_ITEM(items.get(), i), "input"));
    std::vector<Tensor> outputs;
    {
      const GilRelease released;
      outputs = object_of<Executor>(self).run(given);
      given.clear();
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
    {"run", executor_run, METH_O, "run(inputs): the outputs, two lists of tensors."},
    {"statistics", executor_statistics, METH_NOARGS, "What the runs so far did."},
    {}};

PyTypeObject ExecutorType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._JitExecutor",
    .tp_basicsize = sizeof(PyOwner<Executor>),
    .tp_dealloc = dealloc<Executor>,
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
