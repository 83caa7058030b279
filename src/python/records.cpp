// The operator table as Python data: what the printed reference, the stubs and the coverage tests are made
// from.
#include "dispatch/table.h"
#include "python/python.h"

namespace rushlight::python {
namespace {

constexpr const char* family_names[] = {"pointwise", "reduction", "view",      "index", "matmul",
                                        "factory",   "random",    "composite", "kernel"};

void set(PyObject* dict, const char* key, PyObject* owned) {
  const PyRef value(check(owned));
  check(PyDict_SetItemString(dict, key, value.get()));
}

PyObject* record(const Op& op) {
  PyRef dict(check(PyDict_New()));
  set(dict.get(), "space", to_python(op.schema.space));
  set(dict.get(), "name", to_python(op.schema.name));
  set(dict.get(), "overload", to_python(op.schema.overload));
  set(dict.get(), "schema", to_python(op.schema.text));
  set(dict.get(), "doc", to_python(op.doc));
  set(dict.get(), "family", to_python(family_names[static_cast<int>(op.family)]));
  set(dict.get(), "differentiable", PyBool_FromLong(static_cast<bool>(op.derivative)));
  set(dict.get(), "refusal", op.refusal ? to_python(op.refusal) : Py_NewRef(Py_None));
  set(dict.get(), "inplace", PyBool_FromLong(op.has_inplace));
  set(dict.get(), "out", PyBool_FromLong(op.has_out));
  set(dict.get(), "function", PyBool_FromLong(op.is_function));
  set(dict.get(), "method", PyBool_FromLong(op.is_method));
  return dict.release();
}

PyObject* operator_records(PyObject*, PyObject*) {
  return guard([] {
    PyRef list(check(PyList_New(0)));
    for (const Op& op : operator_table().ops()) {
      const PyRef item(record(op));
      check(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

PyMethodDef functions[] = {{"_operator_records", operator_records, METH_NOARGS,
                            "One dict per operator record, in order of registration."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_records(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
