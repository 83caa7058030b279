// The text of a failed overload match, as PyTorch prints it.
#include "python/parse.h"

namespace rushlight::python {

const char* parameter_type_name(const ParameterSpec& p) {
  switch (p.type) {
    case Tag::Tensor:
      return "Tensor";
    case Tag::TensorList:
      return "tuple of Tensors";
    case Tag::Scalar:
      return "Number";
    case Tag::Int:
      return "int";
    case Tag::Float:
      return "float";
    case Tag::Bool:
      return "bool";
    case Tag::IntList:
      return "tuple of ints";
    case Tag::FloatList:
      return "tuple of floats";
    case Tag::ScalarList:
      return "tuple of Scalars";
    case Tag::BoolList:
      return "tuple of bools";
    case Tag::String:
      return "str";
    case Tag::DType:
      return "torch.dtype";
    case Tag::Device:
      return "torch.device";
    case Tag::Layout:
      return "torch.layout";
    case Tag::MemoryFormat:
      return "torch.memory_format";
    case Tag::Generator:
      return "torch.Generator";
    case Tag::None:
      return "None";
  }
  return "object";
}

static std::string default_text(const Value& v) {
  switch (v.tag()) {
    case Tag::Int:
      return str(v.integer());
    case Tag::Bool:
      return v.boolean() ? "True" : "False";
    case Tag::Float: {
      PyRef f(check(PyFloat_FromDouble(v.floating())));
      PyRef text(check(PyObject_Repr(f.get())));
      return std::string(string_view(text.get()));
    }
    case Tag::Scalar:
      return to_string(v.scalar());
    case Tag::IntList:
      return to_string(v.ints());
    case Tag::String:
      return str("\"", v.string(), "\"");
    case Tag::MemoryFormat:
      return std::string(memory_format_name(v.memory_format()));
    default:
      return "None";
  }
}

std::string SignatureSpec::text(bool types) const {
  std::string out = "(";
  const char* equals = types ? " = " : "=";
  bool star = false, first = true;
  for (size_t i = static_cast<size_t>(self_count); i < parameters.size(); ++i) {
    const ParameterSpec& p = parameters[i];
    if (p.keyword_only && !star) {
      out += first ? "*" : ", *";
      first = false;
      star = true;
    }
    out += first ? "" : ", ";
    if (types) out += str(parameter_type_name(p), " ");
    out += string_view(p.name);
    first = false;
    if (p.role == ParameterSpec::kRequiresGrad)
      out += str(equals, "False");
    else if (p.has_default)
      out += equals + (p.schema ? default_text(p.schema->default_value) : "None");
  }
  return out + ")";
}

static std::string describe_arguments(const SignatureSpec& spec, const CallArgs& call) {
  std::string out;
  for (Py_ssize_t i = spec.self_count; i < call.count + call.keyword_count(); ++i) {
    if (!out.empty()) out += ", ";
    if (i >= call.count) out += str(string_view(PyTuple_GET_ITEM(call.names, i - call.count)), "=");
    PyObject* o = call.args[i];
    out += type_name(o);
    if (PyTuple_Check(o) || PyList_Check(o)) {
      out += PyTuple_Check(o) ? " of (" : " of [";
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
        out += str(k ? ", " : "", type_name(PySequence_Fast_GET_ITEM(o, k)));
      out += PyTuple_Check(o) ? ")" : "]";
    }
  }
  return out;
}

static const ParameterSpec* find_parameter(const SignatureSpec& spec, PyObject* name) {
  for (size_t i = static_cast<size_t>(spec.self_count); i < spec.parameters.size(); ++i)
    if (PyUnicode_Compare(spec.parameters[i].name, name) == 0) return &spec.parameters[i];
  return nullptr;
}

// "      didn't match because ..." for one signature, or nothing.
static std::string mismatch_reason(const SignatureSpec& spec, const CallArgs& call) {
  std::string wrong;
  for (Py_ssize_t i = 0; i < call.keyword_count(); ++i) {
    PyObject* name = PyTuple_GET_ITEM(call.names, i);
    if (!find_parameter(spec, name)) wrong += str(wrong.empty() ? "" : ", ", string_view(name));
  }
  if (!wrong.empty())
    return str("      didn't match because some of the keywords were incorrect: ", wrong, "\n");
  const Py_ssize_t given = call.count + call.keyword_count() - spec.self_count;
  if (given < spec.min_positional - spec.self_count || call.count > spec.max_positional) return "";
  std::string types;
  for (Py_ssize_t i = spec.self_count; i < call.count; ++i)
    types += str(types.empty() ? "" : ", ", "!", type_name(call.args[i]), "!");
  if (types.empty()) return "";
  return str("      didn't match because some of the arguments have invalid types: (", types, ")\n");
}

// Without the forms of src/ops/older_forms.cpp: nobody is told to write those.
static std::vector<const SignatureSpec*> current_forms(const std::vector<const SignatureSpec*>& specs) {
  std::vector<const SignatureSpec*> current;
  for (const SignatureSpec* s : specs)
    if (s->op.traits.spelling != Spelling::Deprecated) current.push_back(s);
  return current.empty() ? specs : current;
}

void throw_no_match(const std::vector<const SignatureSpec*>& all, const CallArgs& call, const char* name) {
  const std::vector<const SignatureSpec*> specs = current_forms(all);
  if (specs.size() == 1) {
    Arguments scratch;
    parse(*specs[0], call, scratch, name, true);
  }
  // When only one overload takes so many arguments, its own complaint is the most precise.
  const SignatureSpec* plausible = nullptr;
  int count = 0;
  const Py_ssize_t given = call.count + call.keyword_count();
  for (const SignatureSpec* s : specs) {
    if (given < s->min_positional || given > static_cast<Py_ssize_t>(s->parameters.size())) continue;
    plausible = s;
    ++count;
  }
  if (count == 1) {
    Arguments scratch;
    parse(*plausible, call, scratch, name, true);
  }
  std::string text = str(name, "() received an invalid combination of arguments - got (",
                         describe_arguments(*specs[0], call), "), but expected one of:\n");
  for (const SignatureSpec* s : specs) text += str(" * ", s->text(), "\n", mismatch_reason(*s, call));
  throw_python(PyExc_TypeError, text);
}

[[noreturn]] void throw_wrong_type(const SignatureSpec& spec, int index, PyObject* o, bool keyword,
                                   const char* name) {
  const ParameterSpec& p = spec.parameters[index];
  const std::string position = keyword ? "" : str(" (position ", index - spec.self_count + 1, ")");
  std::string given = ", not " + type_name(o);
  if (p.type == Tag::IntList && (PyTuple_Check(o) || PyList_Check(o)) && PySequence_Fast_GET_SIZE(o))
    if (PyObject* const first = PySequence_Fast_GET_ITEM(o, 0); !is_index(first))
      given = ", but found element of type " + type_name(first) + " at pos 0";
  throw_python(PyExc_TypeError, str(name, "(): argument '", string_view(p.name), "'", position, " must be ",
                                    parameter_type_name(p), given));
}

[[noreturn]] void throw_deferred(const SignatureSpec& spec, const Arguments& out, const char* name) {
  const ParameterSpec& p = spec.parameters[out.deferred_parameter + spec.self_count];
  constexpr const char* overflow = "Overflow when unpacking long long";
  if (out.deferred_position == -1 && !spec.varargs_ints) throw_python(PyExc_ValueError, overflow);
  const int position = std::max(out.deferred_position, 0);
  const std::string why = PyLong_Check(out.deferred)
                              ? overflow
                              : str("type must be tuple of ints,but got ", type_name(out.deferred));
  throw_python(PyExc_TypeError,
               str(name, "(): argument '", string_view(p.name), "' failed to unpack the object at pos ",
                   position + 1, " with error \"", why, "\""));
}

}  // namespace rushlight::python
