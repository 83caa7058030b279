// The extension module rushlight._gloo: process groups on Gloo for rushlight/distributed, which keeps the
// memory alive that it names by address. Every call that waits lets other threads run.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <datetime.h>

#include <exception>
#include <optional>

#include "distributed/gloo/group.h"

namespace rushlight::distributed {

namespace {

struct PythonError : std::exception {};  // a Python exception is set

class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() { PyEval_RestoreThread(state_); }
  Released(const Released&) = delete;

 private:
  PyThreadState* state_;
};

class Held {
 public:
  Held() : state_(PyGILState_Ensure()) {}
  ~Held() { PyGILState_Release(state_); }
  Held(const Held&) = delete;

 private:
  PyGILState_STATE state_;
};

// Calls `body` and turns what it throws into a Python exception.
template <class Body>
PyObject* guarded(Body body) {
  try {
    return body();
  } catch (const PythonError&) {
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

template <class Body>
PyObject* waiting(Body body) {
  return guarded([&]() -> PyObject* {
    {
      Released released;
      body();
    }
    Py_RETURN_NONE;
  });
}

// A store of Python's, asked by Gloo on the thread that connects.
class PythonStore : public gloo::rendezvous::Store {
 public:
  PythonStore(PyObject* store, Milliseconds timeout) : store_(store), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    Held held;
    finish(PyObject_CallMethod(store_, "set", "sy#", key.c_str(), data.data(),
                               static_cast<Py_ssize_t>(data.size())));
  }

  std::vector<char> get(const std::string& key) override {
    Held held;
    PyObject* value = PyObject_CallMethod(store_, "get", "s", key.c_str());
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    if (!value || PyBytes_AsStringAndSize(value, &bytes, &size) < 0) {
      Py_XDECREF(value);
      throw PythonError();
    }
    std::vector<char> data(bytes, bytes + size);
    Py_DECREF(value);
    return data;
  }

  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }

  void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override {
    Held held;
    PyObject* list = PyList_New(0);
    for (const std::string& key : keys) {
      PyObject* name = PyUnicode_FromStringAndSize(key.data(), static_cast<Py_ssize_t>(key.size()));
      if (name) PyList_Append(list, name);
      Py_XDECREF(name);
    }
    constexpr int64_t kDay = 86'400'000;
    const int64_t milliseconds = timeout.count();
    PyObject* limit =
        PyDelta_FromDSU(static_cast<int>(milliseconds / kDay), static_cast<int>(milliseconds % kDay / 1000),
                        static_cast<int>(milliseconds % 1000 * 1000));
    PyObject* result = limit ? PyObject_CallMethod(store_, "wait", "OO", list, limit) : nullptr;
    Py_XDECREF(limit);
    Py_DECREF(list);
    finish(result);
  }

 private:
  static void finish(PyObject* result) {
    if (!result) throw PythonError();
    Py_DECREF(result);
  }
  PyObject* store_;
  Milliseconds timeout_;
};

// --- messages

struct PyMessage {
  PyObject_HEAD;
  Message* message;
};

void message_dealloc(PyObject* self) {
  delete reinterpret_cast<PyMessage*>(self)->message;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* wait_sent(PyObject* self, PyObject* arg) {
  const long long timeout = PyLong_AsLongLong(arg);
  if (timeout == -1 && PyErr_Occurred()) return nullptr;
  return waiting([&] { reinterpret_cast<PyMessage*>(self)->message->wait_sent(Milliseconds(timeout)); });
}

PyObject* wait_received(PyObject* self, PyObject* arg) {
  const long long timeout = PyLong_AsLongLong(arg);
  if (timeout == -1 && PyErr_Occurred()) return nullptr;
  return guarded([&] {
    int source = -1;
    {
      Released released;
      source = reinterpret_cast<PyMessage*>(self)->message->wait_received(Milliseconds(timeout));
    }
    return PyLong_FromLong(source);
  });
}

PyMethodDef message_methods[] = {
    {"wait_sent", wait_sent, METH_O, "wait_sent(milliseconds): until the memory may be used again."},
    {"wait_received", wait_received, METH_O, "wait_received(milliseconds) -> the rank that sent."},
    {}};
PyType_Slot message_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(message_dealloc)},
                               {Py_tp_methods, message_methods},
                               {Py_tp_doc, const_cast<char*>("A message under way.")},
                               {0, nullptr}};
PyType_Spec message_spec = {"rushlight._gloo.Message", sizeof(PyMessage), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, message_slots};
PyTypeObject* message_type = nullptr;

PyObject* wrap_message(std::unique_ptr<Message> message) {
  PyObject* self = message_type->tp_alloc(message_type, 0);
  if (self) reinterpret_cast<PyMessage*>(self)->message = message.release();
  return self;
}

// --- groups

struct PyGroup {
  PyObject_HEAD;
  Group* group;
};

Group& group_of(PyObject* self) { return *reinterpret_cast<PyGroup*>(self)->group; }

PyObject* group_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* store = nullptr;
  int rank = 0, size = 1;
  const char *host = "", *interface = "";
  long long timeout = 0;
  if (!PyArg_ParseTuple(args, "OiissL", &store, &rank, &size, &host, &interface, &timeout)) return nullptr;
  return guarded([&]() -> PyObject* {
    PythonStore keys(store, Milliseconds(timeout));
    std::unique_ptr<Group> group;
    {
      Released released;
      group = std::make_unique<Group>(keys, rank, size, Endpoint{host, interface}, Milliseconds(timeout));
    }
    PyObject* self = type->tp_alloc(type, 0);
    if (self) reinterpret_cast<PyGroup*>(self)->group = group.release();
    return self;
  });
}

void group_dealloc(PyObject* self) {
  Group* group = reinterpret_cast<PyGroup*>(self)->group;
  {
    Released released;
    delete group;
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

void* address(unsigned long long number) { return reinterpret_cast<void*>(number); }

Reduction reduction_named(const char* dtype, const char* operation) {
  const Reduction found = find_reduction(dtype, operation);
  if (!found.function) {
    PyErr_Format(PyExc_RuntimeError, "gloo: cannot use ReduceOp.%s with tensors of dtype %s", operation,
                 dtype);
    throw PythonError();
  }
  return found;
}

struct Tail {  // the last two arguments of every collective
  unsigned int tag = 0;
  long long timeout = 0;
  CallOptions options() const { return {tag, Milliseconds(timeout)}; }
};

PyObject* allreduce(PyObject* self, PyObject* args) {
  unsigned long long data = 0;
  Py_ssize_t count = 0;
  const char *dtype = nullptr, *operation = nullptr;
  Tail tail;
  if (!PyArg_ParseTuple(args, "KnssIL", &data, &count, &dtype, &operation, &tail.tag, &tail.timeout))
    return nullptr;
  return guarded([&] {
    const Reduction reduction = reduction_named(dtype, operation);
    return waiting([&] {
      group_of(self).allreduce(address(data), static_cast<size_t>(count), reduction, tail.options());
    });
  });
}

PyObject* reduce(PyObject* self, PyObject* args) {
  unsigned long long data = 0;
  Py_ssize_t count = 0;
  const char *dtype = nullptr, *operation = nullptr;
  int root = 0;
  Tail tail;
  if (!PyArg_ParseTuple(args, "KnssiIL", &data, &count, &dtype, &operation, &root, &tail.tag, &tail.timeout))
    return nullptr;
  return guarded([&] {
    const Reduction reduction = reduction_named(dtype, operation);
    return waiting([&] {
      group_of(self).reduce(address(data), static_cast<size_t>(count), reduction, root, tail.options());
    });
  });
}

PyObject* broadcast(PyObject* self, PyObject* args) {
  unsigned long long data = 0;
  Py_ssize_t bytes = 0;
  int root = 0;
  Tail tail;
  if (!PyArg_ParseTuple(args, "KniIL", &data, &bytes, &root, &tail.tag, &tail.timeout)) return nullptr;
  return waiting(
      [&] { group_of(self).broadcast(address(data), static_cast<size_t>(bytes), root, tail.options()); });
}

PyObject* allgather(PyObject* self, PyObject* args) {
  unsigned long long input = 0, output = 0;
  Py_ssize_t bytes = 0;
  Tail tail;
  if (!PyArg_ParseTuple(args, "KKnIL", &input, &output, &bytes, &tail.tag, &tail.timeout)) return nullptr;
  return waiting([&] {
    group_of(self).allgather(address(input), address(output), static_cast<size_t>(bytes), tail.options());
  });
}

using Rooted = void (Group::*)(void*, void*, size_t, int, CallOptions);
PyObject* rooted(PyObject* self, PyObject* args, Rooted method) {
  unsigned long long input = 0, output = 0;
  Py_ssize_t bytes = 0;
  int root = 0;
  Tail tail;
  if (!PyArg_ParseTuple(args, "KKniIL", &input, &output, &bytes, &root, &tail.tag, &tail.timeout))
    return nullptr;
  return waiting([&] {
    (group_of(self).*method)(address(input), address(output), static_cast<size_t>(bytes), root,
                             tail.options());
  });
}
PyObject* gather(PyObject* self, PyObject* args) { return rooted(self, args, &Group::gather); }
PyObject* scatter(PyObject* self, PyObject* args) { return rooted(self, args, &Group::scatter); }

std::vector<int64_t> numbers(PyObject* list) {
  std::vector<int64_t> values;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
    values.push_back(PyLong_AsLongLong(PyList_GET_ITEM(list, i)));
  if (PyErr_Occurred()) throw PythonError();
  return values;
}

PyObject* alltoall(PyObject* self, PyObject* args) {
  unsigned long long input = 0, output = 0;
  PyObject *input_bytes = nullptr, *output_bytes = nullptr;
  Tail tail;
  if (!PyArg_ParseTuple(args, "KO!KO!IL", &input, &PyList_Type, &input_bytes, &output, &PyList_Type,
                        &output_bytes, &tail.tag, &tail.timeout))
    return nullptr;
  return guarded([&] {
    auto from = numbers(input_bytes), to = numbers(output_bytes);
    return waiting([&] {
      group_of(self).alltoall(address(input), std::move(from), address(output), std::move(to),
                              tail.options());
    });
  });
}

PyObject* barrier(PyObject* self, PyObject* args) {
  Tail tail;
  if (!PyArg_ParseTuple(args, "IL", &tail.tag, &tail.timeout)) return nullptr;
  return waiting([&] { group_of(self).barrier(tail.options()); });
}

using Started = std::unique_ptr<Message> (Group::*)(void*, size_t, int, uint64_t);
PyObject* start(PyObject* self, PyObject* args, Started method) {
  unsigned long long data = 0, slot = 0;
  Py_ssize_t bytes = 0;
  int peer = 0;
  if (!PyArg_ParseTuple(args, "KniK", &data, &bytes, &peer, &slot)) return nullptr;
  return guarded([&] {
    return wrap_message((group_of(self).*method)(address(data), static_cast<size_t>(bytes), peer, slot));
  });
}
PyObject* send(PyObject* self, PyObject* args) { return start(self, args, &Group::send); }
PyObject* receive(PyObject* self, PyObject* args) { return start(self, args, &Group::receive); }

PyMethodDef group_methods[] = {
    {"allreduce", allreduce, METH_VARARGS, "allreduce(address, count, dtype, operation, tag, milliseconds)"},
    {"reduce", reduce, METH_VARARGS, "reduce(address, count, dtype, operation, root, tag, milliseconds)"},
    {"broadcast", broadcast, METH_VARARGS, "broadcast(address, bytes, root, tag, milliseconds)"},
    {"allgather", allgather, METH_VARARGS, "allgather(input, output, bytes, tag, milliseconds)"},
    {"gather", gather, METH_VARARGS, "gather(input, output, bytes, root, tag, milliseconds)"},
    {"scatter", scatter, METH_VARARGS, "scatter(input, output, bytes, root, tag, milliseconds)"},
    {"alltoall", alltoall, METH_VARARGS,
     "alltoall(input, bytes per rank, output, bytes per rank, tag, milliseconds)"},
    {"barrier", barrier, METH_VARARGS, "barrier(tag, milliseconds)"},
    {"send", send, METH_VARARGS, "send(address, bytes, destination, slot) -> Message"},
    {"receive", receive, METH_VARARGS, "receive(address, bytes, source or -1, slot) -> Message"},
    {}};
PyType_Slot group_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(group_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(group_dealloc)},
    {Py_tp_methods, group_methods},
    {Py_tp_doc, const_cast<char*>("Group(store, rank, size, host, interface, milliseconds): the ranks that "
                                  "meet in the store, each connected to each.")},
    {0, nullptr}};
PyType_Spec group_spec = {"rushlight._gloo.Group", sizeof(PyGroup), 0, Py_TPFLAGS_DEFAULT, group_slots};

PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT,
                      .m_name = "rushlight._gloo",
                      .m_doc = "Process groups on Gloo, on raw memory.",
                      .m_size = -1};

}  // namespace

}  // namespace rushlight::distributed

PyMODINIT_FUNC PyInit__gloo() {
  using namespace rushlight::distributed;
  PyDateTime_IMPORT;
  if (!PyDateTimeAPI) return nullptr;
  PyObject* self = PyModule_Create(&module);
  if (!self) return nullptr;
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(self, Py_MOD_GIL_NOT_USED);
#endif
  message_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&message_spec));
  PyObject* group = PyType_FromSpec(&group_spec);
  if (!message_type || !group || PyModule_AddObject(self, "Group", group) < 0) return nullptr;
  return self;
}
