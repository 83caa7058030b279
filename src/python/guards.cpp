// GuardSet: what compiled code took for granted about its arguments and about Python's state, checked before
// each call without a Python frame.
#include "python/guards.h"

#include <memory>

#include "python/guard_checks.h"

namespace rushlight::python {
namespace {

using namespace guards;

struct GuardSet {
  PyObject_HEAD Guards* guards;
};

Guards& guards_of(PyObject* self) { return *reinterpret_cast<GuardSet*>(self)->guards; }
PyRef keep(PyObject* o) { return PyRef::borrow(o); }
PyObject* added(Guards& g, Check check) {
  g.checks.push_back(std::move(check));
  return PyLong_FromSize_t(g.checks.size() - 1);
}
PyObject* added(Guards& g, Source source) {
  g.sources.push_back(std::move(source));
  return PyLong_FromSize_t(g.sources.size() - 1);
}

PyObject* argument(PyObject* self, PyObject* position) {
  const Py_ssize_t i = PyLong_AsSsize_t(position);
  if (i < 0) return nullptr;
  return added(guards_of(self), Source{.kind = Source::kArgument, .position = i});
}
PyObject* keyword(PyObject* self, PyObject* name) {
  return added(guards_of(self), Source{.kind = Source::kKeyword, .key = keep(name)});
}
PyObject* item(PyObject* self, PyObject* args) {
  int parent;
  PyObject* key;
  Py_ssize_t position;
  if (!PyArg_ParseTuple(args, "iOn", &parent, &key, &position)) return nullptr;
  if (parent < 0 || static_cast<size_t>(parent) >= guards_of(self).sources.size())
    return PyErr_Format(PyExc_IndexError, "there is no source %d", parent);
  Source source{.kind = Source::kItem, .parent = parent, .position = position};
  if (key != Py_None) source.key = keep(key);
  return added(guards_of(self), std::move(source));
}

PyObject* entry_of(PyObject* self, PyObject* args) {
  PyObject *dict, *key;
  if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &dict, &key)) return nullptr;
  return added(guards_of(self), Source{.kind = Source::kEntryOf, .key = keep(key), .object = keep(dict)});
}
PyObject* attributes(PyObject* self, PyObject* number) {
  const long parent = PyLong_AsLong(number);
  if (parent < 0 || static_cast<size_t>(parent) >= guards_of(self).sources.size())
    return PyErr_Format(PyExc_IndexError, "there is no source %ld", parent);
  return added(guards_of(self), Source{.kind = Source::kAttributes, .parent = static_cast<int>(parent)});
}

PyObject* arguments(PyObject* self, PyObject* args) {
  Py_ssize_t count;
  PyObject* names;
  if (!PyArg_ParseTuple(args, "nO!", &count, &PyTuple_Type, &names)) return nullptr;
  return added(guards_of(self),
               Check{.kind = Check::kArgumentCount, .number = count, .expected = keep(names)});
}
PyObject* source_check(PyObject* self, PyObject* args, Check::Kind kind) {
  int source;
  PyObject* value;
  if (!PyArg_ParseTuple(args, "iO", &source, &value)) return nullptr;
  if (source < 0 || static_cast<size_t>(source) >= guards_of(self).sources.size())
    return PyErr_Format(PyExc_IndexError, "there is no source %d", source);
  Check check{.kind = kind, .by_value = true, .source = source, .expected = keep(value)};
  if (kind == Check::kTensor) {
    if (!is_tensor(value)) return PyErr_Format(PyExc_TypeError, "tensor() expects a Tensor");
    check.facts.emplace(value);
    check.expected = keep(reinterpret_cast<PyObject*>(Py_TYPE(value)));
  }
  if (kind == Check::kForm) {
    check.object = keep(reinterpret_cast<PyObject*>(Py_TYPE(value)));
    check.number = length_of(value);
    check.expected = PyRef();
  }
  return added(guards_of(self), std::move(check));
}
PyObject* tensor(PyObject* self, PyObject* args) { return source_check(self, args, Check::kTensor); }
PyObject* equal(PyObject* self, PyObject* args) { return source_check(self, args, Check::kEqual); }

PyObject* symbol(PyObject* self, PyObject* args) {
  Symbol range{};
  if (!PyArg_ParseTuple(args, "LL", &range.low, &range.high)) return nullptr;
  guards_of(self).symbols.push_back(range);
  return PyLong_FromSize_t(guards_of(self).symbols.size() - 1);
}
// sizes_of(check, symbols, contiguous)
PyObject* sizes_of(PyObject* self, PyObject* args) {
  Py_ssize_t at;
  PyObject* symbols;
  int contiguous;
  if (!PyArg_ParseTuple(args, "nO!p", &at, &PyTuple_Type, &symbols, &contiguous)) return nullptr;
  Guards& g = guards_of(self);
  if (at < 0 || static_cast<size_t>(at) >= g.checks.size() || !g.checks[static_cast<size_t>(at)].facts)
    return PyErr_Format(PyExc_IndexError, "there is no check %zd of a tensor", at);
  Check& check = g.checks[static_cast<size_t>(at)];
  std::vector<int> numbers;
  for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(symbols); ++d) {
    const long number = PyLong_AsLong(PyTuple_GET_ITEM(symbols, d));
    if (number < -1 || number >= static_cast<long>(g.symbols.size()))
      return PyErr_Format(PyExc_IndexError, "there is no symbol %ld", number);
    numbers.push_back(static_cast<int>(number));
  }
  if (numbers.size() != check.facts->sizes.size())
    return PyErr_Format(PyExc_ValueError, "a tensor has %zu sizes", check.facts->sizes.size());
  check.symbols = std::move(numbers);
  check.by_value = !contiguous;
  Py_RETURN_NONE;
}
PyObject* form(PyObject* self, PyObject* args) { return source_check(self, args, Check::kForm); }

PyObject* entry(PyObject* self, PyObject* args) {
  PyObject *dict, *key, *value;
  int by_value;
  if (!PyArg_ParseTuple(args, "O!OOp", &PyDict_Type, &dict, &key, &value, &by_value)) return nullptr;
  return added(guards_of(self), Check{.kind = Check::kEntry,
                                      .by_value = by_value != 0,
                                      .object = keep(dict),
                                      .key = keep(key),
                                      .expected = keep(value)});
}
PyObject* absent(PyObject* self, PyObject* args) {
  PyObject *dict, *key;
  if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &dict, &key)) return nullptr;
  return added(guards_of(self), Check{.kind = Check::kAbsent, .object = keep(dict), .key = keep(key)});
}
PyObject* keys(PyObject* self, PyObject* dict) {
  PyRef found(PySequence_Tuple(dict));
  if (!found) return nullptr;
  return added(guards_of(self),
               Check{.kind = Check::kKeys, .object = keep(dict), .expected = std::move(found)});
}
PyObject* keys_of(PyObject* self, PyObject* args) {
  int source;
  PyObject* dict;
  if (!PyArg_ParseTuple(args, "iO!", &source, &PyDict_Type, &dict)) return nullptr;
  if (source < 0 || static_cast<size_t>(source) >= guards_of(self).sources.size())
    return PyErr_Format(PyExc_IndexError, "there is no source %d", source);
  PyRef found(PySequence_Tuple(dict));
  if (!found) return nullptr;
  return added(guards_of(self), Check{.kind = Check::kKeys, .source = source, .expected = std::move(found)});
}
PyObject* length(PyObject* self, PyObject* container) {
  return added(guards_of(self),
               Check{.kind = Check::kLength, .number = length_of(container), .object = keep(container)});
}
PyObject* element(PyObject* self, PyObject* args) {
  PyObject *list, *value;
  Py_ssize_t position;
  int by_value;
  if (!PyArg_ParseTuple(args, "O!nOp", &PyList_Type, &list, &position, &value, &by_value)) return nullptr;
  return added(guards_of(self), Check{.kind = Check::kElement,
                                      .by_value = by_value != 0,
                                      .number = position,
                                      .object = keep(list),
                                      .expected = keep(value)});
}
PyObject* members(PyObject* self, PyObject* set) {
  PyRef found(PySequence_Tuple(set));
  if (!found) return nullptr;
  return added(guards_of(self),
               Check{.kind = Check::kSet, .object = keep(set), .expected = std::move(found)});
}
// apart(sources, others)
PyObject* apart(PyObject* self, PyObject* args) {
  PyObject *sources, *others;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &sources, &PyTuple_Type, &others)) return nullptr;
  Check check{.kind = Check::kApart, .expected = keep(others)};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sources); ++i) {
    const long source = PyLong_AsLong(PyTuple_GET_ITEM(sources, i));
    if (source < 0 || static_cast<size_t>(source) >= guards_of(self).sources.size())
      return PyErr_Format(PyExc_IndexError, "there is no source %ld", source);
    check.symbols.push_back(static_cast<int>(source));
  }
  return added(guards_of(self), std::move(check));
}
PyObject* cell(PyObject* self, PyObject* args) {
  PyObject* cell;
  int by_value;
  if (!PyArg_ParseTuple(args, "O!p", &PyCell_Type, &cell, &by_value)) return nullptr;
  return added(guards_of(self), Check{.kind = Check::kCell,
                                      .by_value = by_value != 0,
                                      .object = keep(cell),
                                      .expected = keep(PyCell_GET(cell))});
}
PyObject* instance_dict(PyObject* self, PyObject* args) {
  PyObject *object, *dict;
  if (!PyArg_ParseTuple(args, "OO!", &object, &PyDict_Type, &dict)) return nullptr;
  return added(guards_of(self), Check{.kind = Check::kDict,
                                      .object = keep(object),
                                      .key = keep(reinterpret_cast<PyObject*>(Py_TYPE(object))),
                                      .expected = keep(dict)});
}
PyObject* version(PyObject* self, PyObject* type) {
  if (!PyType_Check(type)) return PyErr_Format(PyExc_TypeError, "version() expects a class");
  const unsigned number = version_of(reinterpret_cast<PyTypeObject*>(type));
  if (!number) return PyErr_Format(PyExc_ValueError, "changes of the class %R cannot be noticed", type);
  return added(guards_of(self), Check{.kind = Check::kVersion, .number = number, .object = keep(type)});
}
PyObject* code(PyObject* self, PyObject* function) {
  if (!PyFunction_Check(function)) return PyErr_Format(PyExc_TypeError, "code() expects a function");
  PyObject* defaults = PyFunction_GET_DEFAULTS(function);
  return added(guards_of(self), Check{.kind = Check::kCode,
                                      .object = keep(function),
                                      .key = keep(defaults ? defaults : Py_None),
                                      .expected = keep(PyFunction_GET_CODE(function))});
}
PyObject* held_tensor(PyObject* self, PyObject* value) {
  if (!is_tensor(value)) return PyErr_Format(PyExc_TypeError, "held_tensor() expects a Tensor");
  Check check{.kind = Check::kHeldTensor, .object = keep(value)};
  check.facts.emplace(value);
  check.expected = keep(reinterpret_cast<PyObject*>(Py_TYPE(value)));
  guards_of(self).held.push_back(value);
  return added(guards_of(self), std::move(check));
}

bool take_sources(const Guards& g, PyObject* list, std::vector<int>& to) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    const long source = PyLong_AsLong(PyList_GET_ITEM(list, i));
    if (source < 0 || static_cast<size_t>(source) >= g.sources.size()) {
      PyErr_Format(PyExc_IndexError, "there is no source %ld", source);
      return false;
    }
    to.push_back(static_cast<int>(source));
  }
  return true;
}

// complete(sources of all tensors, those of inputs, args, kwargs): fixes what is told about this call as a
// whole.
PyObject* complete(PyObject* self, PyObject* call) {
  PyObject *tensors, *inputs, *args, *kwargs;
  if (!PyArg_ParseTuple(call, "O!O!O!O!", &PyList_Type, &tensors, &PyList_Type, &inputs, &PyTuple_Type, &args,
                        &PyDict_Type, &kwargs))
    return nullptr;
  Guards& g = guards_of(self);
  if (!take_sources(g, tensors, g.tensors) || !take_sources(g, inputs, g.inputs)) return nullptr;
  g.surroundings = Surroundings();
  group_by_dict(g);
  Incoming in{args, kwargs, {}};
  resolve(g, in);
  g.alias.resize(g.tensors.size());
  g.held_alias.resize(g.tensors.size());
  each_alias(g, in, [&](size_t i, int first, int held) { g.alias[i] = first, g.held_alias[i] = held; });
  Py_RETURN_NONE;
}

// match(args, kwargs): the list of input tensors; or, if the call is another one, the number of the check.
PyObject* match(PyObject* self, PyObject* const* call, Py_ssize_t count) {
  if (count != 2 || !PyTuple_Check(call[0]) || !PyDict_Check(call[1]))
    return PyErr_Format(PyExc_TypeError, "match() expects a tuple and a dict");
  Guards& g = guards_of(self);
  Incoming in{call[0], call[1], {}};
  if (const std::optional<int> failure = first_failure(g, in)) return PyLong_FromLong(*failure);
  PyRef found(PyList_New(static_cast<Py_ssize_t>(g.inputs.size())));
  if (!found) return nullptr;
  for (size_t i = 0; i < g.inputs.size(); ++i)
    PyList_SET_ITEM(found.get(), static_cast<Py_ssize_t>(i),
                    Py_NewRef(in.values[static_cast<size_t>(g.inputs[i])]));
  return found.release();
}

PyObject* is_plain(PyObject*, PyObject*) { return PyBool_FromLong(Surroundings().plain()); }

// What Python calls: memory that runs out becomes an error.
template <PyObject* (*F)(PyObject*, PyObject*)>
PyObject* guarded(PyObject* self, PyObject* args) noexcept {
  return guard([&] { return F(self, args); });
}
PyObject* guarded_match(PyObject* self, PyObject* const* call, Py_ssize_t count) noexcept {
  return guard([&] { return match(self, call, count); });
}

PyMethodDef methods[] = {
    {"argument", guarded<argument>, METH_O, "The source of a positional argument."},
    {"keyword", guarded<keyword>, METH_O, "The source of an argument by name."},
    {"item", guarded<item>, METH_VARARGS, "item(source, key or None, position): the source of an item."},
    {"entry_of", guarded<entry_of>, METH_VARARGS,
     "entry_of(dict, key): the source of what a dict has in each call."},
    {"attributes", guarded<attributes>, METH_O, "The source of the dict of attributes of an object."},
    {"apart", guarded<apart>, METH_VARARGS,
     "apart(sources, others): these are several objects, and none of the others."},
    {"arguments", guarded<arguments>, METH_VARARGS,
     "arguments(count, names): as many arguments, with these names."},
    {"tensor", guarded<tensor>, METH_VARARGS, "tensor(source, example): a tensor like this one."},
    {"symbol", guarded<symbol>, METH_VARARGS, "symbol(low, high): a size that may be any of these."},
    {"sizes_of", guarded<sizes_of>, METH_VARARGS,
     "sizes_of(check, symbols, contiguous): sizes of a checked tensor are symbols, but for those of -1."},
    {"equal", guarded<equal>, METH_VARARGS, "equal(source, value): this value."},
    {"form", guarded<form>, METH_VARARGS, "form(source, example): a container of this type and length."},
    {"entry", guarded<entry>, METH_VARARGS, "entry(dict, key, value, by_value): the dict has this value."},
    {"absent", guarded<absent>, METH_VARARGS, "absent(dict, key): the dict has no such key."},
    {"keys", guarded<keys>, METH_O, "keys(dict): it keeps its keys, in their order."},
    {"keys_of", guarded<keys_of>, METH_VARARGS,
     "keys_of(source, dict): a dict with its keys, in their order."},
    {"length", guarded<length>, METH_O, "length(container): it keeps its length."},
    {"element", guarded<element>, METH_VARARGS,
     "element(list, position, value, by_value): the list has this value."},
    {"members", guarded<members>, METH_O, "members(set): it keeps its members."},
    {"cell", guarded<cell>, METH_VARARGS, "cell(cell, by_value): it keeps its content."},
    {"instance_dict", guarded<instance_dict>, METH_VARARGS,
     "instance_dict(object, dict): still the same dict."},
    {"version", guarded<version>, METH_O, "version(type): the class stays as it is."},
    {"code", guarded<code>, METH_O, "code(function): it keeps its code and its defaults."},
    {"held_tensor", guarded<held_tensor>, METH_O,
     "held_tensor(tensor): it keeps its shape, dtype and the like."},
    {"complete", guarded<complete>, METH_VARARGS,
     "complete(sources of tensors, of inputs, args, kwargs): ends it."},
    {"match", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(guarded_match)), METH_FASTCALL,
     "match(args, kwargs): the input tensors, or the number of the first check that fails."},
    {"is_plain", guarded<is_plain>, METH_NOARGS | METH_STATIC,
     "Whether no mode or transform watches operators."},
    {}};

PyObject* guard_set_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* guards = new (std::nothrow) Guards;
  reinterpret_cast<GuardSet*>(self)->guards = guards;
  if (guards) return self;
  Py_DECREF(self);
  return PyErr_NoMemory();
}
int traverse(PyObject* self, visitproc visit, void* arg) {
  for (const Check& c : guards_of(self).checks) {
    Py_VISIT(c.object.get());
    Py_VISIT(c.key.get());
    Py_VISIT(c.expected.get());
  }
  return 0;
}
int clear(PyObject* self) {
  Guards& g = guards_of(self);
  g.held.clear();
  g.single.clear();
  g.dicts.clear();
  std::vector<Check>().swap(g.checks);
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<GuardSet*>(self)->guards;
  Py_TYPE(self)->tp_free(self);
}

}  // namespace

PyTypeObject GuardSetType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._GuardSet",
    .tp_basicsize = sizeof(GuardSet),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What compiled code takes for granted.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_methods = methods,
    .tp_new = guard_set_new,
};

bool match_guards(PyObject* guard_set, PyObject* args, PyObject* kwargs, std::vector<PyObject*>& inputs) {
  Guards& g = guards_of(guard_set);
  Incoming in{args, kwargs, {}};
  if (first_failure(g, in)) return false;
  for (const int source : g.inputs) inputs.push_back(in.values[static_cast<size_t>(source)]);
  return true;
}

// _set_version(tensor, version): undoes the count of writes that did not take place.
static PyObject* set_version(PyObject*, PyObject* args) {
  PyObject* tensor;
  long long version;
  if (!PyArg_ParseTuple(args, "O!L", &TensorBaseType, &tensor, &version)) return nullptr;
  return guard([&]() -> PyObject* {
    TensorImpl& t = *impl_of(tensor);
    RL_CHECK(version >= 0 && version <= UINT32_MAX, "Cannot set a version_counter to ", version);
    RL_CHECK(!(t.flags & kInference), "Inference tensors do not track version counter.");
    (t.version ? t.version->value : t.storage->version)
        .store(static_cast<uint32_t>(version), std::memory_order_relaxed);
    Py_RETURN_NONE;
  });
}

void init_guards(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_set_version", set_version, METH_VARARGS, "Sets how many writes to a tensor count."}, {}};
  add_functions(module, functions);
  add_type(module, "_GuardSet", &GuardSetType);
}

}  // namespace rushlight::python
