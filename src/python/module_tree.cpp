// Walks over trees of modules: collecting parameters and buffers, state_dict, train. A class that overrides a
// method which such a walk goes through is served by that method, or the walk is left to Python as a whole.
#include "autograd/meta.h"
#include "ops/copy.h"
#include "python/op_function.h"

namespace rushlight::python {

PyObject* module_dict(PyObject* module);  // module_base.cpp; null for what is no module
extern PyTypeObject ModuleBaseType;

namespace {

struct Names {
  Name modules{"_modules"}, parameters{"_parameters"}, buffers{"_buffers"},
      transient{"_non_persistent_buffers_set"}, named_modules{"named_modules"},
      named_parameters{"named_parameters"}, named_buffers{"named_buffers"}, named_members{"_named_members"},
      state_dict{"state_dict"}, save{"_save_to_state_dict"}, extra_state{"get_extra_state"},
      pre_hooks{"_state_dict_pre_hooks"}, hooks{"_state_dict_hooks"}, metadata{"_metadata"},
      version{"_version"}, train{"train"}, training{"training"}, setattr{"__setattr__"}, children{"children"},
      named_children{"named_children"}, dot{"."}, empty{""}, detach{"detach"}, grad{"grad"};
};
const Names all_names;
const Names& names() { return all_names; }

PyObject* module_class = nullptr;  // nn.Module, whose methods these walks stand for

// Whether the class leaves `method` as nn.Module has it.
bool keeps(PyObject* module, PyObject* method) {
  return type_attribute(Py_TYPE(module), method).get() ==
         type_attribute(reinterpret_cast<PyTypeObject*>(module_class), method).get();
}

// Whether the instance does, too: programs freeze a layer by `layer.train = ...`.
bool instance_keeps(PyObject* module, PyObject* method) {
  PyObject* dict = module_dict(module);
  return dict && PyDict_Contains(dict, method) == 0 && keeps(module, method);
}

// A table of the module; empty if it is no plain dictionary.
Found table_of(PyObject* module, PyObject* name) {
  PyObject* dict = module_dict(module);
  if (!dict) return Found(nullptr);
  Found table = find_item(dict, name);
  return table && PyDict_Check(table.get()) ? std::move(table) : Found(nullptr);
}

bool is_module(PyObject* o) { return PyObject_TypeCheck(o, &ModuleBaseType); }

// Objects seen, by identity.
class Seen {
 public:
  bool insert(PyObject* o) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    if (!place(o)) return false;
    ++count_;
    return true;
  }

 private:
  bool place(PyObject* o) {
    for (size_t i = (reinterpret_cast<uintptr_t>(o) >> 4) * 0x9E3779B97F4A7C15u >> 32;; ++i) {
      PyObject*& slot = slots_[i & (slots_.size() - 1)];
      if (slot == o) return false;
      if (!slot) return slot = o, true;
    }
  }
  void grow() {
    std::vector<PyObject*> before(std::max<size_t>(32, 2 * slots_.size()));
    before.swap(slots_);
    for (PyObject* o : before)
      if (o) place(o);
  }
  std::vector<PyObject*> slots_;
  size_t count_ = 0;
};

// A level of Python's recursion budget, given back on every way out.
class Level {
 public:
  explicit Level(const char* where) {
    if (Py_EnterRecursiveCall(where)) throw PythonError();
  }
  ~Level() { Py_LeaveRecursiveCall(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
};

PyRef joined(PyObject* prefix, PyObject* name) {
  if (PyUnicode_GET_LENGTH(prefix) == 0) return PyRef::borrow(name);
  PyRef dotted(check(PyUnicode_Concat(prefix, names().dot)));
  return PyRef(check(PyUnicode_Concat(dotted.get(), name)));
}

// --- parameters() and its kin

// What one walk collects: members of a table of each module, or the modules themselves.
class Collector {
 public:
  Collector(PyObject* table, bool named, bool recurse, bool unique)
      : table_(table), named_(named), recurse_(recurse), unique_(unique), list_(check(PyList_New(0))) {}

  // False where a class goes its own way.
  bool visit(PyObject* module, PyObject* prefix) {
    if (!recurse_) return enter(module, prefix);
    if (!keeps(module, names().named_modules)) {
      if (PyErr_Occurred()) throw PythonError();
      return false;
    }
    const Level level(" in nn.Module");
    return enter(module, prefix);
  }
  PyObject* release() { return list_.release(); }

 private:
  bool enter(PyObject* module, PyObject* prefix) {
    if (unique_ && !modules_.insert(module)) return true;
    if (!table_)
      add(prefix, module);
    else if (!add_members(module, prefix))
      return false;
    return !recurse_ || visit_children(module, prefix);
  }
  bool add_members(PyObject* module, PyObject* prefix) {
    const Found table = table_of(module, table_);
    if (!table) return false;
    const DictItems items(table.get());
    PyObject *key, *member;
    for (Py_ssize_t at = 0; items.next(at, key, member);) {
      if (member == Py_None || (unique_ && !members_.insert(member))) continue;
      add(named_ ? joined(prefix, key).get() : nullptr, member);
    }
    return true;
  }
  bool visit_children(PyObject* module, PyObject* prefix) {
    const Found children = table_of(module, names().modules);
    if (!children) return false;
    const DictItems items(children.get());
    PyObject *key, *child;
    for (Py_ssize_t at = 0; items.next(at, key, child);) {
      if (child == Py_None) continue;
      if (!is_module(child)) return false;
      if (!visit(child, named_ ? joined(prefix, key).get() : prefix)) return false;
    }
    return true;
  }
  void add(PyObject* name, PyObject* member) {
    PyRef item = named_ ? PyRef(check(PyTuple_Pack(2, name, member))) : PyRef::borrow(member);
    if (PyList_Append(list_.get(), item.get()) < 0) throw PythonError();
  }

  PyObject* table_;
  bool named_, recurse_, unique_;
  Seen modules_, members_;
  PyRef list_;
};

// _collect_members(module, table or None, named, prefix, recurse, remove_duplicate) -> list, or None where a
// class overrides what the walk stands for.
PyObject* collect_members(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n != 6 || !is_module(args[0]) || !PyUnicode_Check(args[3])) Py_RETURN_NONE;
    PyObject *module = args[0], *table = args[1] == Py_None ? nullptr : args[1];
    const bool named = args[2] == Py_True;
    if (table && !keeps(module, names().named_members)) Py_RETURN_NONE;
    if (table && !named &&
        !keeps(module, table == names().buffers ? names().named_buffers : names().named_parameters))
      Py_RETURN_NONE;
    const int recurse = PyObject_IsTrue(args[4]), unique = PyObject_IsTrue(args[5]);
    if (recurse < 0 || unique < 0) throw PythonError();
    Collector collector(table, named, recurse, unique);
    if (!collector.visit(module, args[3])) Py_RETURN_NONE;
    return collector.release();
  });
}

// --- state_dict

bool is_empty_table(PyObject* module, PyObject* name) {
  const Found table = table_of(module, name);
  return table && PyDict_GET_SIZE(table.get()) == 0;
}

bool saves_plainly(PyObject* module) {
  const Names& n = names();
  return is_module(module) && instance_keeps(module, n.state_dict) && instance_keeps(module, n.save) &&
         instance_keeps(module, n.extra_state) && is_empty_table(module, n.pre_hooks) &&
         is_empty_table(module, n.hooks) && table_of(module, n.parameters) && table_of(module, n.buffers) &&
         table_of(module, n.modules);
}

void set_item(PyObject* mapping, PyObject* key, PyObject* value) {
  if (PyObject_SetItem(mapping, key, value) < 0) throw PythonError();
}

class StateWriter {
 public:
  StateWriter(PyObject* destination, bool keep_vars) : destination_(destination), keep_vars_(keep_vars) {
    metadata_ = PyRef(PyObject_GetAttr(destination, names().metadata));
    if (!metadata_) PyErr_Clear();
  }

  void write(PyObject* module, PyObject* prefix) {
    if (!saves_plainly(module)) return call(module, prefix);
    const Level level(" in nn.Module.state_dict");
    if (metadata_) note_version(module, prefix);
    write_table(table_of(module, names().parameters), prefix, nullptr);
    write_table(table_of(module, names().buffers), prefix,
                find_item(module_dict(module), names().transient).get());
    PyRef children(check(PyDict_Copy(table_of(module, names().modules).get())));  // a hook might change it
    PyObject *key, *child;
    for (Py_ssize_t at = 0; PyDict_Next(children.get(), &at, &key, &child);) {
      if (child == Py_None) continue;
      PyRef name(check(PyUnicode_Concat(prefix, key)));
      write(child, PyRef(check(PyUnicode_Concat(name.get(), names().dot))).get());
    }
  }

 private:
  void call(PyObject* module, PyObject* prefix) {
    PyRef method(check(PyObject_GetAttr(module, names().state_dict)));
    PyRef empty(check(PyTuple_New(0)));
    PyRef kwargs(check(Py_BuildValue("{s:O,s:O,s:O}", "destination", destination_, "prefix", prefix,
                                     "keep_vars", keep_vars_ ? Py_True : Py_False)));
    PyRef(check(PyObject_Call(method.get(), empty.get(), kwargs.get())));
  }
  void note_version(PyObject* module, PyObject* prefix) {
    const Py_ssize_t length = PyUnicode_GET_LENGTH(prefix);
    PyRef name(check(PyUnicode_Substring(prefix, 0, length ? length - 1 : 0)));
    PyRef version(check(PyObject_GetAttr(module, names().version)));
    PyRef entry(check(Py_BuildValue("{s:O}", "version", version.get())));
    set_item(metadata_.get(), name.get(), entry.get());
  }
  void write_table(const Found& table, PyObject* prefix, PyObject* left_out) {
    if (!table) return;  // taken away meanwhile
    const DictItems items(table.get());
    PyObject *key, *value;
    for (Py_ssize_t at = 0; items.next(at, key, value);) {
      if (value == Py_None) continue;
      if (left_out && PySet_Check(left_out) && PySet_GET_SIZE(left_out) && PySet_Contains(left_out, key) == 1)
        continue;
      PyRef name(check(PyUnicode_Concat(prefix, key)));
      set_item(destination_, name.get(), saved(value).get());
    }
  }
  PyRef saved(PyObject* value) {
    if (keep_vars_) return PyRef::borrow(value);
    return PyRef(check(PyObject_CallMethodNoArgs(value, names().detach)));
  }

  PyObject* destination_;
  PyRef metadata_;
  bool keep_vars_;
};

// _write_state_dict(module, destination, prefix, keep_vars) -> whether it was done: not where the module
// itself has hooks or methods of its own.
PyObject* write_state_dict(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n != 4 || !saves_plainly(args[0]) || !PyUnicode_Check(args[2])) Py_RETURN_FALSE;
    const int keep_vars = PyObject_IsTrue(args[3]);
    if (keep_vars < 0) throw PythonError();
    StateWriter(args[1], keep_vars).write(args[0], args[2]);
    Py_RETURN_TRUE;
  });
}

// --- train

void set_training(PyObject* module, PyObject* mode) {
  PyObject* dict = module_dict(module);
  const bool plain = dict && keeps(module, names().setattr) && PyDict_Contains(dict, names().training) == 1;
  if ((plain ? PyDict_SetItem(dict, names().training, mode)
             : PyObject_SetAttr(module, names().training, mode)) < 0)
    throw PythonError();
}

bool walks_plainly(PyObject* module) {
  return instance_keeps(module, names().children) && instance_keeps(module, names().named_children) &&
         static_cast<bool>(table_of(module, names().modules));
}

void train_tree(PyObject* module, PyObject* mode) {
  const Level level(" in nn.Module.train");
  set_training(module, mode);
  PyRef children = walks_plainly(module)
                       ? PyRef(check(PyDict_Values(table_of(module, names().modules).get())))
                       : PyRef(check(PySequence_List(
                             PyRef(check(PyObject_CallMethodNoArgs(module, names().children))).get())));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(children.get()); ++i) {
    PyObject* child = PyList_GET_ITEM(children.get(), i);
    if (child == Py_None) continue;
    if (is_module(child) && instance_keeps(child, names().train))
      train_tree(child, mode);
    else
      PyRef(check(PyObject_CallMethodOneArg(child, names().train, mode)));
  }
}

// _train_tree(module, mode)
PyObject* train(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n != 2 || !is_module(args[0])) throw_python(PyExc_TypeError, "_train_tree takes a module and a mode");
    train_tree(args[0], args[1]);
    return Py_NewRef(args[0]);
  });
}

// --- gradients

// _drop_gradients(list of tensors): each `.grad = None`.
PyObject* drop_gradients(PyObject*, PyObject* list) {
  return guard([&]() -> PyObject* {
    PyRef sequence(check(PySequence_Fast(list, "_drop_gradients takes a list of tensors")));
    for (PyObject* item : Items(sequence.get())) {
      if (is_tensor(item) && !may_be_overridden(tensor_of(item))) {
        if (const Tensor t = tensor_of(item); t->autograd) set_grad(t, Tensor());
        continue;
      }
      if (PyObject_SetAttr(item, names().grad, Py_None) < 0) throw PythonError();
    }
    Py_RETURN_NONE;
  });
}

// _zero_gradients(list of tensors): each gradient filled with zeros in place; returns those that are more
// than memory, for the caller.
PyObject* zero_gradients(PyObject*, PyObject* list) {
  return guard([&]() -> PyObject* {
    PyRef sequence(check(PySequence_Fast(list, "_zero_gradients takes a list of tensors"))),
        left(check(PyList_New(0)));
    for (PyObject* item : Items(sequence.get())) {
      if (is_tensor(item) && !may_be_overridden(tensor_of(item))) {
        const Tensor grad = grad_of(tensor_of(item));
        if (!grad.defined()) continue;
        if (!may_be_overridden(grad) && !(grad->flags & kDispatchBits)) {
          ops::zero_(grad);
          continue;
        }
      }
      PyRef grad(check(PyObject_GetAttr(item, names().grad)));
      if (grad.get() != Py_None && PyList_Append(left.get(), grad.get()) < 0) throw PythonError();
    }
    return left.release();
  });
}

PyObject* set_module_class(PyObject*, PyObject* cls) {
  Py_XSETREF(module_class, Py_NewRef(cls));
  Py_RETURN_NONE;
}

template <class F>
PyCFunction fast(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

}  // namespace

void init_module_tree(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_set_module_class", set_module_class, METH_O, "Names nn.Module, whose methods the walks stand for."},
      {"_collect_members", fast(collect_members), METH_FASTCALL, "Parameters, buffers or modules of a tree."},
      {"_write_state_dict", fast(write_state_dict), METH_FASTCALL, "Fills a state_dict."},
      {"_train_tree", fast(train), METH_FASTCALL, "Sets the training mode of a tree."},
      {"_zero_gradients", zero_gradients, METH_O, "Fills the gradients of tensors with zeros."},
      {"_drop_gradients", drop_gradients, METH_O, "Forgets the gradients of tensors."},
      {}};
  add_functions(module, functions);
}

}  // namespace rushlight::python
