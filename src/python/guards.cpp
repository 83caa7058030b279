// GuardSet: what compiled code took for granted about its arguments and about Python's state, checked before
// each call without a Python frame.
#include "python/guards.h"

#include <cstring>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "autograd/engine.h"
#include "autograd/saved.h"
#include "dispatch/state.h"
#include "python/op_function.h"
#include "transform/autocast.h"

namespace rushlight::python {
namespace {

// What code that was compiled for a tensor may rely on.
struct TensorFacts {
  static constexpr uint32_t kKinds = kPythonDispatch | kWrapped | kForwardGrad | kSparseTensor | kNotCpu |
                                     kWrappedNumber | kInference | kConjugate;

  explicit TensorFacts(PyObject* tensor)
      : type(Py_TYPE(tensor)),
        dtype(tensor_of(tensor)->dtype),
        device(tensor_of(tensor)->device),
        kinds(tensor_of(tensor)->flags & kKinds),
        requires_grad(records(tensor)),
        has_attributes(attributes(tensor)),
        sizes(tensor_of(tensor)->sizes),
        strides(tensor_of(tensor)->strides) {}

  static bool records(PyObject* tensor) { return detail::flags_of(tensor_of(tensor)) & kAutograd; }

  // Attributes that programs set on the tensor; what is in them is checked elsewhere.
  static bool attributes(PyObject* tensor) {
    PyObject* dict = reinterpret_cast<PyTensor*>(tensor)->dict;
    return dict && PyDict_GET_SIZE(dict) != 0;
  }

  bool hold(PyObject* o) const {
    if (Py_TYPE(o) != type || attributes(o) != has_attributes) return false;
    const TensorImpl& t = *impl_of(o);
    return t.dtype == dtype && t.device == device && (t.flags & kKinds) == kinds &&
           IntList(t.sizes) == IntList(sizes) && IntList(t.strides) == IntList(strides) &&
           records(o) == requires_grad;
  }

  PyTypeObject* type;  // borrowed: the check keeps it alive
  DType dtype;
  Device device;
  uint32_t kinds;
  bool requires_grad, has_attributes;
  Dims sizes, strides;
};

// What is neither an argument nor reached from one: how this thread runs operators.
struct Surroundings {
  uint32_t always = dispatch_state.always, consider = dispatch_state.consider;
  bool grad_enabled = dispatch_state.grad_enabled, inference = dispatch_state.inference;
  bool inside_transform = dispatch_state.level != nullptr, mode = function_state.mode_active();
  DType default_dtype = get_default_dtype();
  AutocastState::Region autocast_cpu = autocast_state.cpu, autocast_cuda = autocast_state.cuda;
  bool autocast_cache = autocast_state.cache;

  // Somebody wants to know what single operators save, or compute.
  bool recording_watched = saved_hooks_active() || anomaly_state.enabled;

  bool operator==(const Surroundings&) const = default;
  // Nothing watches single operators, apart from autograd and autocasting.
  bool plain() const {
    return !(always & ~uint32_t{kAutocast}) && !inside_transform && !mode && !recording_watched;
  }
};

// Where a value comes from that every call brings along.
struct Source {
  enum Kind : uint8_t { kArgument, kKeyword, kItem } kind;
  int parent = -1;          // of an item
  Py_ssize_t position = 0;  // of an argument, or of an item in a list or tuple
  PyRef key;                // of a keyword, or of an item in a dict
};

struct Check {
  enum Kind : uint8_t {
    kArgumentCount,  // number positional, `other` (a tuple) names of keywords
    kTensor,         // of a source
    kEqual,          // of a source
    kForm,           // of a source: exact type `object`, `number` items
    kEntry,          // dict `object` at `key` has `expected`
    kAbsent,         // dict `object` has no `key`
    kKeys,           // dict `object`, or of a source: the keys `expected` in this order
    kLength,         // container `object` has `number` items
    kElement,        // list `object` at `number` has `expected`
    kSet,            // set `object` equals `expected`
    kCell,           // closure cell `object` holds `expected`
    kDict,           // `object` is of type `key`, its instance dict is `expected`
    kVersion,        // type `object` is unchanged since version `number`
    kCode,           // function `object` runs `expected`
    kHeldTensor,     // tensor `object`
  } kind;
  bool by_value = false;  // an equal value of the same type will do
  int source = -1;
  int64_t number = 0;
  PyRef object, key, expected;
  std::optional<TensorFacts> facts;
};

// A number that every change of a dict renews; 0 where this Python does not keep it.
inline uint64_t version_of_dict([[maybe_unused]] PyObject* dict) {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  return 0;
#endif
}

// The checks of what one dict holds: passed over while the dict is as it was when they last held.
struct DictChecks {
  PyObject* dict;  // borrowed from the checks
  std::vector<size_t> checks;
  uint64_t version = 0;
};

struct Guards {
  std::vector<Source> sources;
  std::vector<Check> checks;
  std::vector<size_t> single;  // the checks that are not of a dict
  std::vector<DictChecks> dicts;
  std::vector<int> tensors;     // sources of the tensors that a call is given
  std::vector<int> inputs;      // those of them that the graph takes
  std::vector<int> alias;       // per tensor: the first one that was the same
  std::vector<PyObject*> held;  // tensors of checks kHeldTensor, borrowed from there
  std::vector<int> held_alias;  // per tensor: the held one that it was, or -1
  Surroundings surroundings;
};

struct GuardSet {
  PyObject_HEAD Guards* guards;
};

bool same_double(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Equal values of one type; of floating-point numbers equal bits.
bool is_equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return same_double(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyTuple_CheckExact(a)) {
    const Py_ssize_t n = PyTuple_GET_SIZE(a);
    if (n != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!is_equal(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}
bool matches(const Check& c, PyObject* found) {
  return found && (found == c.expected.get() || (c.by_value && is_equal(found, c.expected.get())));
}

// Borrowed; null where there is none.
PyObject* entry_of(PyObject* dict, PyObject* key) {
  PyObject* found = PyDict_GetItemWithError(dict, key);
  if (!found && PyErr_Occurred()) PyErr_Clear();
  return found;
}
PyObject* item_of(const Source& s, PyObject* parent) {
  if (!parent) return nullptr;
  if (s.key) return PyDict_Check(parent) ? entry_of(parent, s.key.get()) : nullptr;
  if (PyTuple_Check(parent))
    return s.position < PyTuple_GET_SIZE(parent) ? PyTuple_GET_ITEM(parent, s.position) : nullptr;
  if (PyList_Check(parent))
    return s.position < PyList_GET_SIZE(parent) ? PyList_GET_ITEM(parent, s.position) : nullptr;
  return nullptr;
}
Py_ssize_t length_of(PyObject* container) {
  if (PyDict_Check(container)) return PyDict_GET_SIZE(container);
  if (PyList_Check(container)) return PyList_GET_SIZE(container);
  if (PyTuple_Check(container)) return PyTuple_GET_SIZE(container);
  return -1;
}
// A number that every change of a class renews; 0 where there is none.
unsigned version_of(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  PyUnstable_Type_AssignVersionTag(type);
  return type->tp_version_tag;
#else
  static PyObject* any_name = PyUnicode_InternFromString("__init__");
  if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) _PyType_Lookup(type, any_name);
  return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
#endif
}
bool is_dict_of(PyObject* object, PyObject* dict) {
  PyRef found(PyObject_GenericGetDict(object, nullptr));
  if (!found) PyErr_Clear();
  return found.get() == dict;
}

// Whether a dict has these keys (a tuple) in this order.
bool has_keys(PyObject* dict, PyObject* keys) {
  if (!dict || !PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  if (!PyDict_CheckExact(dict) && PyTuple_GET_SIZE(keys) > 1) {  // an OrderedDict has an order of its own
    const PyRef found(PySequence_Tuple(dict));
    if (!found) PyErr_Clear();
    return found && is_equal(found.get(), keys);
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0, i = 0; PyDict_Next(dict, &at, &key, &value); ++i)
    if (!is_equal(key, PyTuple_GET_ITEM(keys, i))) return false;
  return true;
}

struct Incoming {
  PyObject *args, *kwargs;  // a tuple; a dict or null
  std::vector<PyObject*> values;
};

bool has_arguments(const Check& c, const Incoming& in) {
  return PyTuple_GET_SIZE(in.args) == c.number && has_keys(in.kwargs, c.expected.get());
}

bool holds(const Check& c, const Incoming& in) {
  PyObject* value = c.source >= 0 ? in.values[static_cast<size_t>(c.source)] : nullptr;
  PyObject* object = c.object.get();
  switch (c.kind) {
    case Check::kArgumentCount:
      return has_arguments(c, in);
    case Check::kTensor:
      return value && c.facts->hold(value);
    case Check::kEqual:
      return matches(c, value);
    case Check::kForm:
      return value && reinterpret_cast<PyObject*>(Py_TYPE(value)) == object && length_of(value) == c.number;
    case Check::kEntry:
      return matches(c, entry_of(object, c.key.get()));
    case Check::kAbsent:
      return !entry_of(object, c.key.get());
    case Check::kKeys:
      return has_keys(object ? object : value, c.expected.get());
    case Check::kLength:
      return length_of(object) == c.number;
    case Check::kElement:
      return c.number < PyList_GET_SIZE(object) && matches(c, PyList_GET_ITEM(object, c.number));
    case Check::kSet:
      return is_equal(object, c.expected.get());
    case Check::kCell:
      return PyCell_GET(object) ? matches(c, PyCell_GET(object)) : !c.expected;
    case Check::kDict:
      return reinterpret_cast<PyObject*>(Py_TYPE(object)) == c.key.get() &&
             is_dict_of(object, c.expected.get());
    case Check::kVersion:
      return version_of(reinterpret_cast<PyTypeObject*>(object)) == c.number;
    case Check::kCode:
      return PyFunction_GET_CODE(object) == c.expected.get() &&
             (PyFunction_GET_DEFAULTS(object) ? PyFunction_GET_DEFAULTS(object) : Py_None) == c.key.get();
    case Check::kHeldTensor:
      return c.facts->hold(object);
  }
  return false;
}

void resolve(const Guards& g, Incoming& in) {
  in.values.resize(g.sources.size());
  for (size_t i = 0; i < g.sources.size(); ++i) {
    const Source& s = g.sources[i];
    PyObject*& value = in.values[i];
    if (s.kind == Source::kArgument)
      value = s.position < PyTuple_GET_SIZE(in.args) ? PyTuple_GET_ITEM(in.args, s.position) : nullptr;
    else if (s.kind == Source::kKeyword)
      value = in.kwargs ? entry_of(in.kwargs, s.key.get()) : nullptr;
    else
      value = item_of(s, in.values[static_cast<size_t>(s.parent)]);
  }
}

// Which tensors are one and the same, among the inputs and with those that are held.
template <class F>
void each_alias(const Guards& g, const Incoming& in, F&& f) {
  auto tensor = [&](size_t i) { return in.values[static_cast<size_t>(g.tensors[i])]; };
  for (size_t i = 0; i < g.tensors.size(); ++i) {
    int first = static_cast<int>(i), held = -1;
    for (size_t j = 0; j < i && first == static_cast<int>(i); ++j)
      if (tensor(j) == tensor(i)) first = static_cast<int>(j);
    for (size_t j = 0; j < g.held.size() && held < 0; ++j)
      if (g.held[j] == tensor(i)) held = static_cast<int>(j);
    f(i, first, held);
  }
}

constexpr int kSurroundings = -1, kAliases = -2;

// The index of the first check that fails, or one of the constants above.
std::optional<int> first_failure(Guards& g, Incoming& in) {
  if (Surroundings() != g.surroundings) return kSurroundings;
  resolve(g, in);
  for (const size_t i : g.single)
    if (!holds(g.checks[i], in)) return static_cast<int>(i);
  for (DictChecks& d : g.dicts) {
    const uint64_t version = version_of_dict(d.dict);
    if (version && version == d.version) continue;
    for (const size_t i : d.checks)
      if (!holds(g.checks[i], in)) return static_cast<int>(i);
    if (version_of_dict(d.dict) == version) d.version = version;  // comparing may run Python
  }
  bool same = true;
  each_alias(g, in, [&](size_t i, int first, int held) {
    same = same && first == g.alias[i] && held == g.held_alias[i];
  });
  if (!same) return kAliases;
  return std::nullopt;
}

// Whether a check asks what is in a dict that belongs to no argument. The order of an OrderedDict is not in
// the dict itself.
bool is_of_dict(const Check& c) {
  if (c.source >= 0 || !c.object || !PyDict_Check(c.object.get())) return false;
  return c.kind == Check::kEntry || c.kind == Check::kAbsent || c.kind == Check::kLength ||
         (c.kind == Check::kKeys && PyDict_CheckExact(c.object.get()));
}

void group_by_dict(Guards& g) {
  g.single.clear();
  g.dicts.clear();
  std::unordered_map<PyObject*, size_t> known;
  for (size_t i = 0; i < g.checks.size(); ++i) {
    if (!is_of_dict(g.checks[i])) {
      g.single.push_back(i);
      continue;
    }
    PyObject* dict = g.checks[i].object.get();
    const auto [at, is_new] = known.emplace(dict, g.dicts.size());
    if (is_new) g.dicts.push_back({dict, {}});
    g.dicts[at->second].checks.push_back(i);
  }
}

// --- the Python type
// ---------------------------------------------------------------------------------------------------------

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
  PyRef copy(PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(set)), set));
  if (!copy) return nullptr;
  return added(guards_of(self), Check{.kind = Check::kSet, .object = keep(set), .expected = std::move(copy)});
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

PyMethodDef methods[] = {
    {"argument", argument, METH_O, "The source of a positional argument."},
    {"keyword", keyword, METH_O, "The source of an argument by name."},
    {"item", item, METH_VARARGS, "item(source, key or None, position): the source of an item."},
    {"arguments", arguments, METH_VARARGS, "arguments(count, names): as many arguments, with these names."},
    {"tensor", tensor, METH_VARARGS, "tensor(source, example): a tensor like this one."},
    {"equal", equal, METH_VARARGS, "equal(source, value): this value."},
    {"form", form, METH_VARARGS, "form(source, example): a container of this type and length."},
    {"entry", entry, METH_VARARGS, "entry(dict, key, value, by_value): the dict has this value."},
    {"absent", absent, METH_VARARGS, "absent(dict, key): the dict has no such key."},
    {"keys", keys, METH_O, "keys(dict): it keeps its keys, in their order."},
    {"keys_of", keys_of, METH_VARARGS, "keys_of(source, dict): a dict with its keys, in their order."},
    {"length", length, METH_O, "length(container): it keeps its length."},
    {"element", element, METH_VARARGS, "element(list, position, value, by_value): the list has this value."},
    {"members", members, METH_O, "members(set): it keeps its members."},
    {"cell", cell, METH_VARARGS, "cell(cell, by_value): it keeps its content."},
    {"instance_dict", instance_dict, METH_VARARGS, "instance_dict(object, dict): still the same dict."},
    {"version", version, METH_O, "version(type): the class stays as it is."},
    {"code", code, METH_O, "code(function): it keeps its code and its defaults."},
    {"held_tensor", held_tensor, METH_O, "held_tensor(tensor): it keeps its shape, dtype and the like."},
    {"complete", complete, METH_VARARGS, "complete(sources of tensors, of inputs, args, kwargs): ends it."},
    {"match", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(match)), METH_FASTCALL,
     "match(args, kwargs): the input tensors, or the number of the first check that fails."},
    {"is_plain", is_plain, METH_NOARGS | METH_STATIC, "Whether no mode or transform watches operators."},
    {}};

PyObject* guard_set_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<GuardSet*>(self)->guards = new Guards;
  return self;
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
  unsigned version;
  if (!PyArg_ParseTuple(args, "O!I", &TensorBaseType, &tensor, &version)) return nullptr;
  TensorImpl& t = *impl_of(tensor);
  (t.version ? t.version->value : t.storage->version).store(version, std::memory_order_relaxed);
  Py_RETURN_NONE;
}

void init_guards(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_set_version", set_version, METH_VARARGS, "Sets how many writes to a tensor count."}, {}};
  add_functions(module, functions);
  add_type(module, "_GuardSet", &GuardSetType);
}

}  // namespace rushlight::python
