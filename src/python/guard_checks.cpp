#include "python/guard_checks.h"

#include <cstring>
#include <unordered_map>

namespace rushlight::python::guards {

#if PY_VERSION_HEX < 0x030C0000
static const Name any_name{"__init__"};
#endif
unsigned version_of(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  PyUnstable_Type_AssignVersionTag(type);
  return type->tp_version_tag;
#else
  if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) _PyType_Lookup(type, any_name);
  return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
#endif
}
Py_ssize_t length_of(PyObject* container) {
  if (PyDict_Check(container)) return PyDict_GET_SIZE(container);
  if (PyList_Check(container)) return PyList_GET_SIZE(container);
  if (PyTuple_Check(container)) return PyTuple_GET_SIZE(container);
  return -1;
}

namespace {

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

Found entry_of(PyObject* dict, PyObject* key) {
  Found found = find_item(dict, key);
  if (!found && PyErr_Occurred()) PyErr_Clear();
  return found;
}
// Borrowed from the arguments of the call; null where there is none.
PyObject* item_of(const Source& s, PyObject* parent) {
  if (!parent) return nullptr;
  if (s.key) return PyDict_Check(parent) ? entry_of(parent, s.key.get()).get() : nullptr;
  if (PyTuple_Check(parent))
    return s.position < PyTuple_GET_SIZE(parent) ? PyTuple_GET_ITEM(parent, s.position) : nullptr;
  if (PyList_Check(parent))
    return s.position < PyList_GET_SIZE(parent) ? PyList_GET_ITEM(parent, s.position) : nullptr;
  return nullptr;
}
// Borrowed from the object, as long as nobody gives it another one.
PyObject* dict_of(PyObject* object) {
  if (!object) return nullptr;
  const PyRef found(PyObject_GenericGetDict(object, nullptr));
  if (!found) PyErr_Clear();
  return found.get();
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
  const DictItems items(dict);
  PyObject *key, *value;
  for (Py_ssize_t at = 0, i = 0; i < PyTuple_GET_SIZE(keys) && items.next(at, key, value); ++i)
    if (!is_equal(key, PyTuple_GET_ITEM(keys, i))) return false;
  return true;
}

// Whether a set has these members (a tuple) in this order.
bool has_members(PyObject* set, PyObject* members) {
  if (PySet_GET_SIZE(set) != PyTuple_GET_SIZE(members)) return false;
  const PyRef found(PySequence_Tuple(set));
  if (!found) PyErr_Clear();
  return found && is_equal(found.get(), members);
}

bool has_arguments(const Check& c, const Incoming& in) {
  return PyTuple_GET_SIZE(in.args) == c.number && has_keys(in.kwargs, c.expected.get());
}

// Whether sizes fit those of a tensor, some of which may be others, and strides follow.
bool has_layout(const Guards& g, const Check& c, const TensorImpl& t, Incoming& in) {
  const TensorFacts& facts = *c.facts;
  if (t.sizes.size() != facts.sizes.size()) return false;
  in.symbols.resize(g.symbols.size(), -1);
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    if (c.symbols[d] < 0) {
      if (t.sizes[d] != facts.sizes[d]) return false;
      continue;
    }
    const Symbol& symbol = g.symbols[static_cast<size_t>(c.symbols[d])];
    int64_t& known = in.symbols[static_cast<size_t>(c.symbols[d])];
    if (t.sizes[d] < symbol.low || t.sizes[d] > symbol.high || (known >= 0 && known != t.sizes[d]))
      return false;
    known = t.sizes[d];
  }
  if (c.by_value) return IntList(t.strides) == IntList(facts.strides);
  int64_t stride = 1;
  for (size_t d = t.sizes.size(); d-- > 0; stride *= t.sizes[d])
    if (t.strides[d] != stride) return false;
  return true;
}

bool are_apart(const Check& c, const Incoming& in) {
  auto value = [&](size_t i) { return in.values[static_cast<size_t>(c.symbols[i])]; };
  for (size_t i = 0; i < c.symbols.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (value(i) == value(j)) return false;
    for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(c.expected.get()); ++j)
      if (value(i) == PyTuple_GET_ITEM(c.expected.get(), j)) return false;
  }
  return true;
}

bool holds(const Guards& g, const Check& c, Incoming& in) {
  PyObject* value = c.source >= 0 ? in.values[static_cast<size_t>(c.source)] : nullptr;
  PyObject* object = c.object.get();
  switch (c.kind) {
    case Check::kArgumentCount:
      return has_arguments(c, in);
    case Check::kTensor:
      if (c.symbols.empty()) return value && c.facts->hold(value);
      return value && c.facts->hold_but_for_layout(value) && has_layout(g, c, *impl_of(value), in);
    case Check::kEqual:
      return matches(c, value);
    case Check::kForm:
      return value && reinterpret_cast<PyObject*>(Py_TYPE(value)) == object && length_of(value) == c.number;
    case Check::kEntry:
      return matches(c, entry_of(object, c.key.get()).get());
    case Check::kAbsent:
      return !entry_of(object, c.key.get());
    case Check::kKeys:
      return has_keys(object ? object : value, c.expected.get());
    case Check::kLength:
      return length_of(object) == c.number;
    case Check::kElement:
      return c.number < PyList_GET_SIZE(object) && matches(c, PyList_GET_ITEM(object, c.number));
    case Check::kSet:
      return has_members(object, c.expected.get());
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
    case Check::kApart:
      return are_apart(c, in);
  }
  return false;
}

// Whether a check asks what is in a dict that belongs to no argument. The order of an OrderedDict is not in
// the dict itself.
bool is_of_dict(const Check& c) {
  if (c.source >= 0 || !c.object || !PyDict_Check(c.object.get())) return false;
  return c.kind == Check::kEntry || c.kind == Check::kAbsent || c.kind == Check::kLength ||
         (c.kind == Check::kKeys && PyDict_CheckExact(c.object.get()));
}

}  // namespace

void resolve(const Guards& g, Incoming& in) {
  in.values.resize(g.sources.size());
  for (size_t i = 0; i < g.sources.size(); ++i) {
    const Source& s = g.sources[i];
    PyObject*& value = in.values[i];
    if (s.kind == Source::kArgument)
      value = s.position < PyTuple_GET_SIZE(in.args) ? PyTuple_GET_ITEM(in.args, s.position) : nullptr;
    else if (s.kind == Source::kKeyword)
      value = in.kwargs ? entry_of(in.kwargs, s.key.get()).get() : nullptr;
    else if (s.kind == Source::kAttributes)
      value = dict_of(in.values[static_cast<size_t>(s.parent)]);
    else if (s.kind == Source::kEntryOf)
      value = entry_of(s.object.get(), s.key.get()).get();
    else
      value = item_of(s, in.values[static_cast<size_t>(s.parent)]);
  }
}

std::optional<int> first_failure(Guards& g, Incoming& in) {
  if (Surroundings() != g.surroundings) return kSurroundings;
  resolve(g, in);
  for (const size_t i : g.single)
    if (!holds(g, g.checks[i], in)) return static_cast<int>(i);
  for (DictChecks& d : g.dicts) {
    const uint64_t version = version_of_dict(d.dict);
    if (version && version == d.version) continue;
    for (const size_t i : d.checks)
      if (!holds(g, g.checks[i], in)) return static_cast<int>(i);
    if (version_of_dict(d.dict) == version) d.version = version;  // comparing may run Python
  }
  bool same = true;
  each_alias(g, in, [&](size_t i, int first, int held) {
    same = same && first == g.alias[i] && held == g.held_alias[i];
  });
  if (!same) return kAliases;
  return std::nullopt;
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

}  // namespace rushlight::python::guards
