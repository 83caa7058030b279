#include "python/package_name.h"

#include <cstring>
#include <string>

#include "python/python.h"

namespace rushlight::python {

static std::string& current_name() {
  static std::string name = "rushlight";
  return name;
}

const std::string& package_name() { return current_name(); }

// A static type takes its module from its tp_name, which Python can't set. The new text lives as long as the
// type.
static void rename_static_type(PyTypeObject* type, const std::string& old_name, const std::string& new_name) {
  const std::string_view name = type->tp_name;
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || !name.starts_with(old_name + ".")) return;
  type->tp_name = (new std::string(new_name + std::string(name.substr(old_name.size()))))->c_str();
}

// Renames what `module` defines: its static types, and `__module__` of operators, dtypes and result types.
static PyObject* set_package_name(PyObject* module, PyObject* argument) {
  return guard([&] {
    const char* text = PyUnicode_AsUTF8(argument);
    if (!text) throw PythonError();
    const std::string new_name = text;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(PyModule_GetDict(module), &position, &key, &value))
      if (PyType_Check(value))
        rename_static_type(reinterpret_cast<PyTypeObject*>(value), package_name(), new_name);
    current_name() = new_name;
    return Py_NewRef(Py_None);
  });
}

static PyMethodDef functions[] = {{"_set_package_name", set_package_name, METH_O,
                                   "Show the core's classes and operators under this package."},
                                  {}};

void init_package_name(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
