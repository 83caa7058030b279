// torch.ops: single overloads as callables, and what src/python knows about them by number.
#include "python/torch_dispatch.h"

namespace rushlight::python {
namespace {

struct Forms {
  Lazy objects[3];
};
// Grows with the table: operators may be registered later.
Forms& forms_of(const Op& op) {
  static std::deque<Forms> all;
  static constinit ShortLock lock;
  const std::lock_guard guard(lock);
  while (all.size() <= op.id) all.emplace_back();
  return all[op.id];
}

const Op& op_by_id(PyObject* id) {
  const size_t i = PyLong_AsSize_t(id);
  if (i == static_cast<size_t>(-1) && PyErr_Occurred()) throw PythonError();
  RL_CHECK_INDEX(i < operator_table().ops().size(), "there is no operator ", i);
  return operator_table().ops()[i];
}

// _overload_function(ids, form, shown): the callable behind torch.ops.<...>; `shown` is what
// __torch_function__ is told was called, and must live as long as the callable.
PyObject* overload_function(PyObject*, PyObject* args) {
  PyObject *ids = nullptr, *shown = nullptr;
  int form = 0;
  if (!PyArg_ParseTuple(args, "O!iO", &PyTuple_Type, &ids, &form, &shown)) return nullptr;
  return guard([&]() -> PyObject* {
    std::vector<const Op*> ops;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ids); ++i) ops.push_back(&op_by_id(PyTuple_GET_ITEM(ids, i)));
    RL_CHECK_VALUE(!ops.empty(), "an operator has at least one overload");
    OpFunction* f = make_overload(std::move(ops), form == static_cast<int>(Form::Inplace));
    f->shown = shown;
    return reinterpret_cast<PyObject*>(f);
  });
}

PyMethodDef functions[] = {{"_overload_function", overload_function, METH_VARARGS, nullptr}, {}};

}  // namespace

PyObject* overload_object(const Op& op, Form form) {
  return forms_of(op).objects[static_cast<int>(form)].get([&] {
    PyRef ops(check(PyImport_ImportModule("rushlight._ops")));
    return check(PyObject_CallMethod(ops.get(), "_overload_of", "Ii", op.id, static_cast<int>(form)));
  });
}

void init_op_overload(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
