#include "python/parse.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "core/generator.h"
#include "python/op_function.h"
#include "python/types.h"

namespace rushlight::python {

[[noreturn]] void throw_wrong_type(const SignatureSpec& spec, int index, PyObject* o, bool keyword,
                                   const char* name);  // parse_error.cpp
[[noreturn]] void throw_deferred(const SignatureSpec& spec, const Arguments& out, const char* name);

// --- what a schema looks like from Python
static void add_numpy_names(ParameterSpec& p, std::string_view name) {
  static const std::pair<std::string_view, std::array<const char*, 5>> table[] = {
      {"dim", {"axis"}},
      {"keepdim", {"keepdims"}},
      {"input", {"x", "a", "x1", "A", "tensor"}},
      {"other", {"x2", "B"}},
      {"b", {"B"}},
      {"A", {"input", "x", "a"}},
      {"x", {"input", "a"}}};
  for (const auto& [spelling, others] : table)
    if (spelling == name) std::copy(others.begin(), others.end(), p.numpy_names);
}

static PyObject* intern(std::string_view s) {
  PyObject* text = to_python(s);
  PyUnicode_InternInPlace(&text);
  return text;
}

// Tensors that no number stands for, also where the operator takes numbers elsewhere.
static const std::unordered_set<std::string_view> never_numbers = {
    "condition", "mask", "index", "end", "boundaries", "sorted_sequence", "sorter"};

SignatureSpec::SignatureSpec(const Op& op, bool method, bool inplace, Numbers numbers)
    : op(op),
      self_count(method ? 1 : 0),
      method(method),
      inplace(inplace),
      needs_tensor(numbers == Numbers::Mixed && !method) {
  const auto& schema = op.schema.parameters;
  value_count = static_cast<int>(schema.size());
  RL_ASSERT(value_count <= Arguments::kMaxParameters, "too many parameters: ", op.name());
  parameters.resize(schema.size());
  bool factory = false;
  for (size_t i = 0; i < schema.size(); ++i) {
    const Parameter& s = schema[i];
    ParameterSpec& p = parameters[i];
    const std::string_view name = !method && s.name == "self" && s.type == Tag::Tensor ? "input" : s.name;
    p.name = intern(name);
    add_numpy_names(p, name);
    p.type = s.type;
    p.has_default = s.has_default;
    // None stands for no tensor where a program's own function will see it.
    p.allow_none = s.optional || (op.made_in_python && s.type == Tag::Tensor);
    p.keyword_only = s.keyword_only;
    p.any_truth = s.type == Tag::Bool && op.schema.space == "nn" && s.name == "inplace";
    p.elements_optional = s.elements_optional;
    p.list_length = s.list_length;
    p.numbers = numbers != Numbers::None && s.type == Tag::Tensor && !s.mutated &&
                (i > 0 || (!method && numbers != Numbers::Later)) &&
                (numbers == Numbers::All || !never_numbers.contains(s.name));
    p.schema = &s;
    if (!p.keyword_only) {
      ++max_positional;
      if (!p.has_default) ++min_positional;
    }
    factory |= name == "pin_memory";
    defaults.push_back(s.default_value);
    if (!s.has_default) required = static_cast<int>(i) + 1;
  }
  auto add_python_only = [&](const char* name, ParameterSpec::Role role, Tag type) {
    ParameterSpec p;
    p.name = PyUnicode_InternFromString(name);
    p.role = role;
    p.type = type;
    p.has_default = p.keyword_only = true;
    p.allow_none = role == ParameterSpec::kOut;
    parameters.push_back(p);
  };
  if (op.has_out && !inplace && !method)
    add_python_only("out", ParameterSpec::kOut,
                    op.schema.returns.size() > 1 || op.schema.returns[0].type == Tag::TensorList
                        ? Tag::TensorList
                        : Tag::Tensor);
  if (factory) add_python_only("requires_grad", ParameterSpec::kRequiresGrad, Tag::Bool);
  const int free_positional = max_positional - self_count;
  varargs_ints = free_positional == 1 && parameters[self_count].type == Tag::IntList &&
                 !parameters[self_count].keyword_only;
  varargs_tensors =
      op.is_variadic && max_positional > 0 && parameters[max_positional - 1].type == Tag::TensorList;
}

// --- single arguments

static bool take_tensor(const ParameterSpec& p, PyObject* o, Value& v, Arguments& out) {
  if (is_tensor(o)) [[likely]] {
    TensorImpl* impl = impl_of(o);
    if (impl->flags & kPythonSubclass) out.overloaded = true;
    out.elements += impl->numel;
    new (&v) Value(impl);
    return true;
  }
  if (p.numbers && is_number(o)) {
    new (&v) Value(out.keep(number_tensor(o)));
    return true;
  }
  return false;
}

static bool is_scalar_tensor(PyObject* o) {
  return is_tensor(o) && tensor_of(o).dim() == 0 &&
         !(GradMode::enabled() && tensor_of(o).requires_grad_flag());
}

static bool take_scalar(PyObject* o, Value& v) {
  if (!is_number(o) && !is_scalar_tensor(o)) return false;
  new (&v) Value(to_scalar(o));
  return true;
}

static bool is_integer_tensor(const ParameterSpec& p, PyObject* o) {
  if (!is_tensor(o)) return false;
  const Tensor& t = tensor_of(o);
  return is_integral(t.dtype()) && (t.dim() == 0 || (p.integer_tensors && t.numel() == 1));
}

static bool take_int(const ParameterSpec& p, PyObject* o, Value& v) {
  if (!is_int(o) && !is_integer_tensor(p, o)) return false;
  new (&v) Value(to_int(o));
  return true;
}

static bool take_float(PyObject* o, Value& v) {
  if (!PyFloat_Check(o) && !PyLong_Check(o) && !is_numpy_scalar(o) && !is_scalar_tensor(o)) return false;
  new (&v) Value(to_double(o));
  return true;
}

static bool take_bool(PyObject* o, Value& v) {
  if (!PyBool_Check(o) && !is_numpy_bool(o)) return false;
  new (&v) Value(to_bool(o));
  return true;
}

static bool take_truth(PyObject* o, Value& v) {
  const int truth = PyObject_IsTrue(o);
  if (truth < 0) throw PythonError();
  new (&v) Value(truth != 0);
  return true;
}

// The items of a list or tuple; what another thread does to the list meanwhile is not seen.
static PyObject** items_of(PyObject* sequence, Py_ssize_t& n, [[maybe_unused]] Arguments& out) {
  Items items(sequence);
  n = items.size();
#ifdef Py_GIL_DISABLED
  if (PyObject* kept = items.release()) out.hold(kept);
#endif
  return items.data();
}
static bool is_sequence(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); }

static void take_ints(PyObject* const* items, Py_ssize_t n, Value& v, Arguments& out, int parameter) {
  auto* list = out.take<int64_t>(static_cast<size_t>(n));
  auto defer = [&](Py_ssize_t i) {
    if (!out.deferred)
      out.deferred = items[i], out.deferred_parameter = parameter,
      out.deferred_position = static_cast<int>(i);
    list[i] = 0;
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!is_index(items[i])) {
      defer(i);
      continue;
    }
    try {
      list[i] = to_int(items[i]);
    } catch (const PythonError&) {
      if (!PyLong_Check(items[i])) throw;
      PyErr_Clear();  // more than 64 bits: told with its position
      defer(i);
    }
  }
  new (&v) Value(IntList(list, static_cast<size_t>(n)));
}

constexpr int kNoList = -1;  // the deferred number was given in place of a list; `throw_deferred` knows it

static bool take_int_list(const ParameterSpec& p, PyObject* o, Value& v, Arguments& out, int parameter) {
  if (is_sequence(o)) {
    Py_ssize_t n;
    PyObject** items = items_of(o, n, out);
    if (n > 0 && !is_index(items[0])) return false;
    take_ints(items, n, v, out, parameter);
    return true;
  }
  if (p.list_length == 0 || !(is_int(o) || (is_tensor(o) && is_index(o)))) return false;
  auto* list = out.take<int64_t>(static_cast<size_t>(p.list_length));
  int64_t item = 0;
  try {
    item = to_int(o);
  } catch (const PythonError&) {
    if (!PyLong_Check(o) || out.deferred) throw;
    PyErr_Clear();
    out.deferred = o, out.deferred_parameter = parameter, out.deferred_position = kNoList;
  }
  std::fill_n(list, p.list_length, item);
  new (&v) Value(IntList(list, static_cast<size_t>(p.list_length)));
  return true;
}

static bool take_float_list(PyObject* o, Value& v, Arguments& out) {
  if (!is_sequence(o)) return false;
  Py_ssize_t n;
  PyObject** items = items_of(o, n, out);
  auto* list = out.take<double>(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!is_number(items[i])) return false;
    list[i] = to_double(items[i]);
  }
  new (&v) Value(FloatList(list, static_cast<size_t>(n)));
  return true;
}

// Numbers of any kind, each as it is: bools stay bools.
static bool take_scalar_list(PyObject* o, Value& v, Arguments& out) {
  if (!is_sequence(o)) return false;
  Py_ssize_t n;
  PyObject** items = items_of(o, n, out);
  static_assert(sizeof(Scalar) % sizeof(int64_t) == 0);
  auto* list = reinterpret_cast<Scalar*>(
      out.take<int64_t>(static_cast<size_t>(n) * (sizeof(Scalar) / sizeof(int64_t))));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!is_number(items[i])) return false;
    new (list + i) Scalar(to_scalar(items[i]));
  }
  new (&v) Value(ScalarList(list, static_cast<size_t>(n)));
  return true;
}

static bool take_bool_list(PyObject* o, Value& v, Arguments& out) {
  if (!is_sequence(o)) return false;
  Py_ssize_t n;
  PyObject** items = items_of(o, n, out);
  auto* list = reinterpret_cast<bool*>(out.take<int64_t>(static_cast<size_t>(n) / 8 + 1));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!PyBool_Check(items[i])) return false;
    list[i] = items[i] == Py_True;
  }
  new (&v) Value(std::span<const bool>(list, static_cast<size_t>(n)));
  return true;
}

// False where an element is no tensor but has a __torch_function__ of its own, which is asked next.
static bool take_tensors(const ParameterSpec& p, PyObject* const* items, Py_ssize_t n, Value& v,
                         Arguments& out, int parameter) {
  auto** list = out.take<TensorImpl*>(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (p.elements_optional && items[i] == Py_None) {
      list[i] = nullptr;
      continue;
    }
    if (!is_tensor(items[i]) && type_has_torch_function(Py_TYPE(items[i]))) return false;
    if (!is_tensor(items[i]) && p.other_list) return false;
    if (!is_tensor(items[i]))
      throw_python(PyExc_TypeError, str("expected Tensor as element ", static_cast<int64_t>(i),
                                        " in argument ", parameter, ", but got ", type_name(items[i])));
    list[i] = impl_of(items[i]);
    out.elements += list[i]->numel;
    if (list[i]->flags & kPythonSubclass) out.overloaded = true;
  }
  new (&v) Value(TensorList(reinterpret_cast<const Tensor*>(list), static_cast<size_t>(n)));
  return true;
}

static bool take_tensor_list(const ParameterSpec& p, PyObject* o, Value& v, Arguments& out, int parameter) {
  if (!is_sequence(o)) return false;
  Py_ssize_t n;
  PyObject** items = items_of(o, n, out);
  return take_tensors(p, items, n, v, out, parameter);
}

// Puts the object into `v` if its type fits the parameter.
static bool take_value(const ParameterSpec& p, PyObject* o, Value& v, Arguments& out, int parameter) {
  switch (p.type) {
    case Tag::Tensor:
      return take_tensor(p, o, v, out);
    case Tag::TensorList:
      return take_tensor_list(p, o, v, out, parameter);
    case Tag::Scalar:
      return take_scalar(o, v);
    case Tag::Int:
      return take_int(p, o, v);
    case Tag::Float:
      return take_float(o, v);
    case Tag::Bool:
      return take_bool(o, v) || (p.any_truth && take_truth(o, v));
    case Tag::IntList:
      return take_int_list(p, o, v, out, parameter);
    case Tag::FloatList:
      return take_float_list(o, v, out);
    case Tag::ScalarList:
      return take_scalar_list(o, v, out);
    case Tag::BoolList:
      return take_bool_list(o, v, out);
    case Tag::String:
      if (!PyUnicode_Check(o)) return false;
      new (&v) Value(string_view(o));
      return true;
    case Tag::DType:
      if (!is_dtype_like(o)) return false;
      new (&v) Value(parse_any_dtype(o));
      return true;
    case Tag::Device:
      if (!is_device_like(o)) return false;
      new (&v) Value(parse_device(o));
      return true;
    case Tag::Layout:
      if (!is_layout(o)) return false;
      RL_CHECK(layout_of_object(o) <= Layout::SparseBsc,
               "torch.jagged is the layout of tensors that torch.nested makes, not of this operator");
      new (&v) Value(layout_of_object(o));
      return true;
    case Tag::MemoryFormat:
      if (!is_memory_format(o)) return false;
      new (&v) Value(memory_format_of_object(o));
      return true;
    case Tag::Generator:
      if (Py_TYPE(o) != &GeneratorType && !PyType_IsSubtype(Py_TYPE(o), &GeneratorType)) return false;
      new (&v) Value(generator_of(o));
      return true;
    case Tag::None:
      return false;
  }
  return false;
}

// A list for an operator that returns one: as many tensors as there will be results.
static bool take_out_list(PyObject* o, Arguments& out) {
  if (!is_sequence(o)) return false;
  Py_ssize_t n;
  PyObject** items = items_of(o, n, out);
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!is_tensor(items[i])) return false;
    if (impl_of(items[i])->flags & kPythonSubclass) out.overloaded = true;
  }
  out.out_object = o;
  return true;
}

static bool take_out(const ParameterSpec& p, PyObject* o, const Op& op, Arguments& out) {
  const size_t outputs = op.schema.returns.size();
  if (op.schema.returns[0].type == Tag::TensorList) return take_out_list(o, out);
  if (p.type == Tag::Tensor) {
    if (!is_tensor(o)) return false;
    out.outs[0] = impl_of(o);
    out.out_count = 1;
  } else {
    if (!is_sequence(o)) return false;
    Py_ssize_t n;
    PyObject** items = items_of(o, n, out);
    if (static_cast<size_t>(n) != outputs) return false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (!is_tensor(items[i])) return false;
      out.outs[i] = impl_of(items[i]);
    }
    out.out_count = static_cast<int>(n);
  }
  for (int i = 0; i < out.out_count; ++i)
    if (out.outs[i]->flags & kPythonSubclass) out.overloaded = true;
  out.out_object = o;
  return true;
}

static bool take_argument(const SignatureSpec& spec, int index, PyObject* o, Arguments& out) {
  const ParameterSpec& p = spec.parameters[index];
  switch (p.role) {
    case ParameterSpec::kValue:
      if (!take_value(p, o, out.values()[index], out, index - spec.self_count)) return false;
      if (p.type == Tag::DType && o != Py_None && !spec.op.traits.special_dtypes)
        if (const DType t = out.values()[index].dtype(); is_special(t)) refuse_special_dtype(t);
      return true;
    case ParameterSpec::kOut:
      return take_out(p, o, spec.op, out);
    case ParameterSpec::kRequiresGrad:
      if (!PyBool_Check(o)) return false;
      out.requires_grad = o == Py_True;
      return true;
  }
  return false;
}

// --- keywords

static PyObject* find_keyword(const CallArgs& call, PyObject* name) {
  const Py_ssize_t n = call.keyword_count();
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyTuple_GET_ITEM(call.names, i) == name) return call.args[call.count + i];
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* key = PyTuple_GET_ITEM(call.names, i);
    if (!PyUnicode_CHECK_INTERNED(key) && PyUnicode_Compare(key, name) == 0) return call.args[call.count + i];
  }
  return nullptr;
}

static PyObject* find_argument(const CallArgs& call, const ParameterSpec& p) {
  if (PyObject* o = find_keyword(call, p.name)) return o;
  for (const char* const* alias = p.numpy_names; *alias; ++alias)
    for (Py_ssize_t i = 0; i < call.keyword_count(); ++i)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.names, i), *alias) == 0)
        return call.args[call.count + i];
  return nullptr;
}

static std::string name_of(const ParameterSpec& p) { return std::string(string_view(p.name)); }

[[noreturn]] static void throw_extra_keyword(const SignatureSpec& spec, const CallArgs& call,
                                             const char* name) {
  for (Py_ssize_t i = 0; i < call.keyword_count(); ++i) {
    PyObject* key = PyTuple_GET_ITEM(call.names, i);
    auto found = std::find_if(spec.parameters.begin() + spec.self_count, spec.parameters.end(),
                              [&](const ParameterSpec& p) { return PyUnicode_Compare(p.name, key) == 0; });
    if (found == spec.parameters.end())
      throw_python(PyExc_TypeError,
                   str(name, "() got an unexpected keyword argument '", string_view(key), "'"));
    if (found - spec.parameters.begin() < call.count)
      throw_python(PyExc_TypeError,
                   str(name, "() got multiple values for argument '", string_view(key), "'"));
  }
  throw_python(PyExc_TypeError, str(name, "(): invalid keyword arguments"));
}

[[noreturn]] static void throw_missing(const SignatureSpec& spec, size_t from, const char* name) {
  std::string names;
  int count = 0;
  for (size_t i = from; i < spec.parameters.size(); ++i) {
    const ParameterSpec& p = spec.parameters[i];
    if (p.has_default) continue;
    names += str(count++ ? ", \"" : "\"", name_of(p), "\"");
  }
  throw_python(PyExc_TypeError, str(name, "() missing ", count, " required positional arguments: ", names));
}

[[noreturn]] static void throw_extra_positional(const SignatureSpec& spec, Py_ssize_t given,
                                                const char* name) {
  const int most = spec.max_positional - spec.self_count, least = spec.min_positional - spec.self_count;
  const auto n = static_cast<int64_t>(given - spec.self_count);
  if (most != least)
    throw_python(PyExc_TypeError, str(name, "() takes from ", least, " to ", most,
                                      " positional arguments but ", n, " were given"));
  throw_python(PyExc_TypeError, str(name, "() takes ", most, " positional argument", most == 1 ? "" : "s",
                                    " but ", n, n == 1 ? " was" : " were", " given"));
}

// --- a whole call

// `view(2, 3)`: everything from this position on is one list. Returns whether it was.
static bool take_rest(const SignatureSpec& spec, int index, const CallArgs& call, Arguments& out) {
  const ParameterSpec& p = spec.parameters[index];
  PyObject* const* rest = call.args + index;
  const Py_ssize_t n = call.count - index;
  if (spec.varargs_ints && index == spec.self_count && is_index(rest[0])) {
    take_ints(rest, n, out.values()[index], out, index - spec.self_count);
    return true;
  }
  if (spec.varargs_tensors && index == spec.max_positional - 1 && is_tensor(rest[0]))
    return take_tensors(p, rest, n, out.values()[index], out, index - spec.self_count);
  return false;
}

// Whether every Tensor argument is a Python number.
static bool only_numbers(const SignatureSpec& spec, Arguments& out) {
  for (int i = 0; i < spec.value_count; ++i) {
    const Value& v = out.values()[i];
    if (v.tag() == Tag::Tensor && v.tensor().defined() && !v.tensor().is_wrapped_number()) return false;
  }
  return true;
}

enum class Match : uint8_t { Yes, No, Unsure };

// `int[1] dim=[]`: None asks for the default.
static bool defaults_to_no_ints(const ParameterSpec& p) {
  return p.role == ParameterSpec::kValue && p.type == Tag::IntList && p.has_default && !p.allow_none &&
         p.schema->default_value.ints().empty();
}

// The common call: positional arguments, one for one, and defaults. Unsure leaves it to the rules.
static Match parse_plain(const SignatureSpec& spec, const CallArgs& call, Arguments& out) {
  const auto n = static_cast<int>(call.count);
  if (call.names || n > spec.max_positional || n < spec.required || spec.needs_tensor) return Match::Unsure;
  if (spec.varargs_tensors || (spec.varargs_ints && n - spec.self_count > 1)) return Match::Unsure;
  for (int i = 0; i < n; ++i) {
    const ParameterSpec& p = spec.parameters[static_cast<size_t>(i)];
    PyObject* o = call.args[i];
    Value& v = out.values()[i];
    if (o == Py_None) {
      if (!p.allow_none) return Match::Unsure;
      new (&v) Value();
    } else if (!take_value(p, o, v, out, i - spec.self_count)) {
      return spec.varargs_ints ? Match::Unsure : Match::No;
    }
  }
  for (int i = n; i < spec.value_count; ++i)
    new (&out.values()[i]) Value(spec.defaults[static_cast<size_t>(i)]);
  return out.deferred ? Match::Unsure : Match::Yes;
}

bool parse(const SignatureSpec& spec, const CallArgs& call, Arguments& out, const char* name, bool explain) {
  const Match match = parse_plain(spec, call, out);
  if (match == Match::Yes) [[likely]]
    return true;
  if (match == Match::No && !explain) return false;
  out.reset();
  if (call.count > spec.max_positional && !spec.varargs_ints && !spec.varargs_tensors) {
    if (explain) throw_extra_positional(spec, call.count, name);
    return false;
  }
  Py_ssize_t position = 0, keywords_left = call.keyword_count();
  const int n = static_cast<int>(spec.parameters.size());
  for (int i = 0; i < n; ++i) {
    const ParameterSpec& p = spec.parameters[i];
    PyObject* o = nullptr;
    bool keyword = false;
    if (position < call.count) {
      if (p.keyword_only) {
        if (explain) throw_extra_positional(spec, call.count, name);
        return false;
      }
      o = call.args[position];
    } else if (keywords_left > 0) {
      o = find_argument(call, p);
      keyword = true;
    }
    // A bare int would do for `int[1]`, but not when more of them follow.
    if (spec.varargs_ints && !keyword && i == spec.self_count && call.count - position > 1 &&
        take_rest(spec, i, call, out)) {
      position = call.count;
      continue;
    }
    if (!o && spec.varargs_tensors && i == spec.max_positional - 1) {  // `block_diag()`: none of them
      new (&out.values()[i]) Value(TensorList{});
      continue;
    }
    if (!o) {
      if (!p.has_default) {
        if (explain) throw_missing(spec, i, name);
        return false;
      }
      if (p.role == ParameterSpec::kValue) new (&out.values()[i]) Value(spec.defaults[i]);
      continue;
    }
    if (o == Py_None && p.allow_none) {
      if (p.role == ParameterSpec::kValue) new (&out.values()[i]) Value();
    } else if (o == Py_None && p.has_default && p.type == Tag::TensorList && p.elements_optional) {
      new (&out.values()[i]) Value();
    } else if (o == Py_None && defaults_to_no_ints(p)) {
      new (&out.values()[i]) Value(spec.defaults[i]);
    } else if (!take_argument(spec, i, o, out)) {
      if (!keyword && take_rest(spec, i, call, out)) {
        position = call.count;
        continue;
      }
      if (explain) throw_wrong_type(spec, i, o, keyword, name);
      return false;
    }
    if (keyword)
      --keywords_left;
    else
      ++position;
  }
  if (position < call.count) {
    if (explain) throw_extra_positional(spec, call.count, name);
    return false;
  }
  if (keywords_left > 0) {
    if (explain) throw_extra_keyword(spec, call, name);
    return false;
  }
  if (spec.needs_tensor && only_numbers(spec, out)) {
    if (explain) throw_wrong_type(spec, 0, call.args[0], false, name);
    return false;
  }
  if (out.deferred) throw_deferred(spec, out, name);
  return true;
}

}  // namespace rushlight::python
