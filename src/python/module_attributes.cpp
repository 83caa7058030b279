// The C half of nn.Module's attributes: the tables of a new module, and assignments that need no hook, check
// or message. All others go to the Python method that says what an assignment means.
#include <array>

#include "autograd/meta.h"
#include "python/autograd.h"
#include "python/op_function.h"

namespace rushlight::python {

PyObject* module_dict(PyObject* module);                    // module_base.cpp
PyObject* module_getattro(PyObject* self, PyObject* name);  // module_base.cpp
extern PyTypeObject ModuleBaseType;

namespace {

PyObject* assign_in_full = nullptr;      // the Python method
std::array<PyObject*, 2> registering{};  // nn.Module.register_parameter and register_buffer
std::array<PyObject*, 3> table_hooks{};  // hooks on registering, in the order of `Tables`

const Name table_names[] = {Name{"_parameters"}, Name{"_buffers"}, Name{"_modules"}};
const Name transient_name{"_non_persistent_buffers_set"}, class_name{"__class__"};
const Name registering_names[] = {Name{"register_parameter"}, Name{"register_buffer"}};

enum Tables { kParameters, kBuffers, kModules };

// The module's dictionary and its three tables, all plain.
struct Parts {
  PyObject *dict, *tables[3];

  explicit Parts(PyObject* module) : dict(module_dict(module)), tables{} {
    for (size_t i = 0; dict && i < 3; ++i) {
      found[i].emplace(find_item(dict, table_names[i]));
      PyObject* table = found[i]->get();
      if (!table || !PyDict_CheckExact(table)) {
        dict = nullptr;
        return;
      }
      tables[i] = table;
    }
  }
  std::optional<Found> found[3];
  bool complete() const { return dict; }
  bool holds(Tables table, PyObject* name) const { return PyDict_Contains(tables[table], name) != 0; }
};

// isinstance() looks at the type alone.
bool has_plain_type(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  if (type->tp_getattro != PyObject_GenericGetAttr && type->tp_getattro != PyType_Type.tp_getattro)
    return false;
  return type_attribute(type, class_name).get() == type_attribute(&PyBaseObject_Type, class_name).get();
}

bool is_unhooked(Tables table) { return table_hooks[table] && PyDict_GET_SIZE(table_hooks[table]) == 0; }

bool has_transient_buffers(PyObject* dict) {
  const Found set = find_item(dict, transient_name);
  return !set || !PyAnySet_Check(set.get()) || PySet_GET_SIZE(set.get()) > 0;
}

// Whether nothing but the tables can hold the name.
bool is_free(PyObject* self, const Parts& parts, PyObject* name) {
  return Py_TYPE(self)->tp_getattro == module_getattro && !type_attribute(Py_TYPE(self), name) &&
         PyDict_Contains(parts.dict, name) == 0;
}

bool is_simple_name(PyObject* name) {
  return PyUnicode_GET_LENGTH(name) > 0 &&
         PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1) == -1;
}

// Whether the class leaves register_parameter or register_buffer as nn.Module has it.
bool keeps_registering(PyObject* self, Tables table) {
  return type_attribute(Py_TYPE(self), registering_names[table]).get() == registering[table];
}

// The table that takes a parameter or module, if that is all there is to do.
PyObject* table_for(PyObject* self, const Parts& parts, PyObject* name, PyObject* value) {
  if (has_transient_buffers(parts.dict) || parts.holds(kBuffers, name)) return nullptr;
  if (Py_TYPE(value) == parameter_type) {
    AutogradMeta* meta = tensor_of(value)->autograd;
    const bool registers = is_unhooked(kParameters) && is_simple_name(name) &&
                           (!meta || !recorded_node(*meta)) && !parts.holds(kModules, name) &&
                           is_free(self, parts, name) && keeps_registering(self, kParameters);
    return registers ? parts.tables[kParameters] : nullptr;
  }
  const bool registers =
      is_unhooked(kModules) && !parts.holds(kParameters, name) && PyDict_Contains(parts.dict, name) == 0;
  return registers ? parts.tables[kModules] : nullptr;
}

// 0 or -1 where the assignment is done (or failed), 1 where it is for the Python method.
int assign(PyObject* self, PyObject* name, PyObject* value) {
  if (!PyUnicode_CheckExact(name)) return 1;
  const Parts parts(self);
  if (!parts.complete()) return 1;
  const bool is_module = PyObject_TypeCheck(value, &ModuleBaseType);
  if (is_module || Py_TYPE(value) == parameter_type) {
    PyObject* table = table_for(self, parts, name, value);
    return table ? PyDict_SetItem(table, name, value) : 1;
  }
  const bool is_plain_tensor = Py_TYPE(value) == tensor_type && !reinterpret_cast<PyTensor*>(value)->dict;
  if (!is_plain_tensor && (is_tensor(value) || !has_plain_type(value))) return 1;
  if (parts.holds(kParameters, name) || parts.holds(kModules, name)) return 1;
  if (!parts.holds(kBuffers, name)) return PyObject_GenericSetAttr(self, name, value);
  if (!is_plain_tensor || !is_unhooked(kBuffers) || has_transient_buffers(parts.dict) ||
      !keeps_registering(self, kBuffers))
    return 1;
  return PyDict_SetItem(parts.tables[kBuffers], name, value);
}

// --- the tables of a new module

// In the order in which they stand in the module's __dict__.
enum class Kind { True, None, Dict, Set, Hooks };
struct Entry {
  Name name;
  Kind kind;
};
const Entry entries[] = {
    {Name{"training"}, Kind::True},
    {Name{"_parameters"}, Kind::Dict},
    {Name{"_buffers"}, Kind::Dict},
    {Name{"_non_persistent_buffers_set"}, Kind::Set},
    {Name{"_backward_pre_hooks"}, Kind::Hooks},
    {Name{"_backward_hooks"}, Kind::Hooks},
    {Name{"_is_full_backward_hook"}, Kind::None},
    {Name{"_forward_hooks"}, Kind::Hooks},
    {Name{"_forward_hooks_with_kwargs"}, Kind::Hooks},
    {Name{"_forward_hooks_always_called"}, Kind::Hooks},
    {Name{"_forward_pre_hooks"}, Kind::Hooks},
    {Name{"_forward_pre_hooks_with_kwargs"}, Kind::Hooks},
    {Name{"_state_dict_hooks"}, Kind::Hooks},
    {Name{"_state_dict_pre_hooks"}, Kind::Hooks},
    {Name{"_load_state_dict_pre_hooks"}, Kind::Hooks},
    {Name{"_load_state_dict_post_hooks"}, Kind::Hooks},
    {Name{"_modules"}, Kind::Dict},
};

PyObject* make(Kind kind) {
  switch (kind) {
    case Kind::True:
      return Py_NewRef(Py_True);
    case Kind::None:
      return Py_NewRef(Py_None);
    case Kind::Dict:
      return PyDict_New();
    case Kind::Set:
      return PySet_New(nullptr);
    case Kind::Hooks:
      return kFreeThreaded ? guard([] { return new_hook_dict().release(); }) : PyODict_New();
  }
  return nullptr;
}

// _init_module_tables(module)
PyObject* init_tables(PyObject*, PyObject* self) {
  PyRef dict(PyObject_GenericGetDict(self, nullptr));
  if (!dict) return nullptr;
  for (const Entry& entry : entries) {
    PyRef value(make(entry.kind));
    if (!value || PyDict_SetItem(dict.get(), entry.name, value.get()) < 0) return nullptr;
  }
  Py_RETURN_NONE;
}

// _set_module_setattr(method, (register_parameter, register_buffer), (hooks on registering parameters,
// buffers, modules))
PyObject* set_module_setattr(PyObject*, PyObject* args) {
  PyObject *method, *plain[2], *hooks[3];
  if (!PyArg_ParseTuple(args, "O(OO)(O!O!O!)", &method, &plain[0], &plain[1], &PyDict_Type, &hooks[0],
                        &PyDict_Type, &hooks[1], &PyDict_Type, &hooks[2]))
    return nullptr;
  Py_XSETREF(assign_in_full, Py_NewRef(method));
  for (size_t i = 0; i < 2; ++i) Py_XSETREF(registering[i], Py_NewRef(plain[i]));
  for (size_t i = 0; i < 3; ++i) Py_XSETREF(table_hooks[i], Py_NewRef(hooks[i]));
  Py_RETURN_NONE;
}

}  // namespace

// Module.__setattr__(name, value)
PyObject* module_setattr(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) {
    PyErr_Format(PyExc_TypeError, "__setattr__() takes a name and a value, but %zd arguments were given", n);
    return nullptr;
  }
  const int status = assign(self, args[0], args[1]);
  if (status < 0) return nullptr;
  if (status == 0) Py_RETURN_NONE;
  PyObject* all[] = {self, args[0], args[1]};
  return PyObject_Vectorcall(assign_in_full, all, 3, nullptr);
}

void init_module_attributes(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_init_module_tables", init_tables, METH_O, "Gives a new module its tables."},
      {"_set_module_setattr", set_module_setattr, METH_VARARGS, "Names what assignments in full go to."},
      {}};
  add_functions(module, functions);
}

}  // namespace rushlight::python
