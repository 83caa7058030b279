// The operator table as Python data: what signatures, help, the printed reference, the stubs and the coverage
// tests are made from.
#include <algorithm>
#include <bit>

#include "device/kernels.h"
#include "dispatch/extension.h"
#include "ops/packed_product.h"
#include "ops/pointwise_family.h"
#include "python/op_function.h"
#include "python/traits.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

void set(PyObject* dict, const char* key, PyObject* owned) {
  const PyRef value(check(owned));
  check(PyDict_SetItemString(dict, key, value.get()));
}

void set(PyObject* dict, const char* key, bool value) { set(dict, key, PyBool_FromLong(value)); }

void append(PyObject* list, PyObject* owned) {
  const PyRef item(check(owned));
  check(PyList_Append(list, item.get()));
}

const char* schema_type(Tag type) {
  switch (type) {
    case Tag::Tensor:
      return "Tensor";
    case Tag::TensorList:
      return "Tensor[]";
    case Tag::Scalar:
      return "Scalar";
    case Tag::Int:
      return "int";
    case Tag::Float:
      return "float";
    case Tag::Bool:
      return "bool";
    case Tag::IntList:
      return "int[]";
    case Tag::FloatList:
      return "float[]";
    case Tag::ScalarList:
      return "Scalar[]";
    case Tag::BoolList:
      return "bool[]";
    case Tag::String:
      return "str";
    case Tag::DType:
      return "ScalarType";
    case Tag::Device:
      return "Device";
    case Tag::Layout:
      return "Layout";
    case Tag::MemoryFormat:
      return "MemoryFormat";
    case Tag::Generator:
      return "Generator";
    case Tag::None:
      break;
  }
  return "None";
}

constexpr const char* kFormulas[] = {
#define RL_NAME(name, ...) #name,
    RL_FORALL_FORMULAS(RL_NAME)
#undef RL_NAME
};

// Whether the family's own kernel computes the operator, so that its formula tells all about dtypes.
const PointwiseSpec* formula_of(const Op& op) {
  const void* kernel = op.kernel[0];
  if (kernel != reinterpret_cast<const void*>(pointwise::unary) &&
      kernel != reinterpret_cast<const void*>(pointwise::binary))
    return nullptr;
  return static_cast<const PointwiseSpec*>(op.family_data);
}

// How operands' dtypes become the computing type, and in which types there are loops.
void set_promotion(PyObject* dict, const Op& op) {
  static constexpr const char* names[] = {"same", "float", "logical", "not_bool"};
  const PointwiseSpec* spec = formula_of(op);
  PyRef dtypes(check(PyList_New(0)));
  for (int i = 0; spec && i < kDTypeCount; ++i)
    if (cpu::row(spec->formula).supported[static_cast<size_t>(i)])
      append(dtypes.get(), to_python(dtype_name(static_cast<DType>(i))));
  set(dict, "promotion", spec ? to_python(names[static_cast<int>(spec->promote)]) : Py_NewRef(Py_None));
  set(dict, "formula", spec ? to_python(kFormulas[static_cast<int>(spec->formula)]) : Py_NewRef(Py_None));
  set(dict, "operands", PyLong_FromLong(std::popcount(op.tensor_parameters)));
  set(dict, "dtypes", dtypes.release());
}

// (The schema with a number in place of the last tensor, the place), where one tensor at least is before it.
PyObject* with_number(const Schema& schema) {
  for (size_t i = schema.parameters.size(); i-- > 1;) {
    const Parameter& p = schema.parameters[i];
    if (p.type != Tag::Tensor || p.optional || p.mutated) continue;
    const std::string_view type = "Tensor ";
    const auto at = static_cast<size_t>(p.name.data() - schema.text.data()) - type.size();
    const std::string text = str(schema.text.substr(0, at), "Scalar ", schema.text.substr(at + type.size()));
    return Py_BuildValue("(sn)", text.c_str(), static_cast<Py_ssize_t>(i));
  }
  return Py_NewRef(Py_None);
}

PyObject* record(const Op& op) {
  PyRef dict(check(PyDict_New()));
  set(dict.get(), "space", to_python(op.schema.space));
  set(dict.get(), "name", to_python(op.schema.name));
  set(dict.get(), "overload", to_python(op.schema.overload));
  set(dict.get(), "schema", to_python(op.schema.text));
  set(dict.get(), "with_number", check(with_number(op.schema)));
  set(dict.get(), "takes_out", op.schema.index_of("out") >= 0);
  set(dict.get(), "doc", to_python(op.doc));
  set(dict.get(), "family", to_python(family_name(op.family)));
  set(dict.get(), "differentiable", static_cast<bool>(op.derivative) && !op.refusal);
  set(dict.get(), "refusal", op.refusal ? to_python(op.refusal) : Py_NewRef(Py_None));
  set(dict.get(), "meta_refusal", op.meta_refusal ? to_python(op.meta_refusal) : Py_NewRef(Py_None));
  set(dict.get(), "inplace", op.has_inplace);
  set(dict.get(), "out", op.has_out);
  set(dict.get(), "function", op.is_function);
  set(dict.get(), "method", op.is_method);
  set(dict.get(), "traits", wrap_traits(op));
  set_promotion(dict.get(), op);
  return dict.release();
}

// As people write it: one int where a list may be one int and all elements are equal.
PyObject* default_of(const ParameterSpec& p) {
  if (!p.schema) return p.type == Tag::Bool ? Py_NewRef(Py_False) : Py_NewRef(Py_None);
  const Value& v = p.schema->default_value;
  if (v.tag() == Tag::Scalar) return wrap_scalar(v.scalar());
  if (v.tag() != Tag::IntList) return wrap_value(v);
  const IntList list = v.ints();
  if (p.list_length && list.size() &&
      std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == list[0]; }))
    return PyLong_FromLongLong(list[0]);
  const PyRef size(check(wrap_size(list)));
  return PySequence_List(size.get());
}

PyObject* parameter_facts(const ParameterSpec& p) {
  PyRef facts(check(PyDict_New()));
  set(facts.get(), "name", Py_NewRef(p.name));
  set(facts.get(), "type", to_python(schema_type(p.type)));
  set(facts.get(), "optional", p.allow_none);
  set(facts.get(), "elements_optional", p.elements_optional);
  set(facts.get(), "accepts_one", p.list_length > 0);
  set(facts.get(), "numbers", p.numbers);
  set(facts.get(), "keyword_only", p.keyword_only);
  if (p.has_default) set(facts.get(), "default", default_of(p));
  return facts.release();
}

PyObject* overload_facts(const SignatureSpec& spec) {
  PyRef facts(record(spec.op)), parameters(check(PyList_New(0))), returns(check(PyList_New(0)));
  for (const ParameterSpec& p : spec.parameters) append(parameters.get(), parameter_facts(p));
  for (const Return& r : spec.op.schema.returns)
    append(returns.get(), Py_BuildValue("(sN)", schema_type(r.type), to_python(r.name)));
  set(facts.get(), "parameters", parameters.release());
  set(facts.get(), "returns", returns.release());
  set(facts.get(), "returns_self", spec.inplace || (spec.op.mutated & 1));
  set(facts.get(), "var_ints", spec.varargs_ints);
  set(facts.get(), "var_tensors", spec.varargs_tensors);
  return facts.release();
}

PyObject* operator_records(PyObject*, PyObject*) {
  return guard([] {
    PyRef list(check(PyList_New(0)));
    for (const Op& op : operator_table().ops()) {
      if (op.made_in_python || is_extension(op)) break;  // the program's own come after ours
      const PyRef item(record(op));
      check(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

// [(number, schema)] of what libraries in C++ brought.
PyObject* extension_records(PyObject*, PyObject*) {
  return guard([] {
    PyRef list(check(PyList_New(0)));
    for (const Op* op : extension_operators()) {
      const PyRef item(check(Py_BuildValue("(Is)", op->id, std::string(op->schema.text).c_str())));
      check(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

// What libraries in C++ failed to register since the last call.
PyObject* extension_failures(PyObject*, PyObject*) {
  return guard([] {
    PyRef list(check(PyList_New(0)));
    for (const std::string& failure : take_extension_failures()) {
      const PyRef text(to_python(failure));
      check(PyList_Append(list.get(), text.get()));
    }
    return list.release();
  });
}

// Names of pointwise formulas, by number.
PyObject* formula_names(PyObject*, PyObject*) {
  return guard([] {
    PyRef list(check(PyList_New(0)));
    for (const char* name : kFormulas) {
      const PyRef text(to_python(name));
      check(PyList_Append(list.get(), text.get()));
    }
    return list.release();
  });
}

PyObject* can_fuse(PyObject*, PyObject* type) {
  return guard([&] {
    const DeviceType on = parse_device(type).type();
    const bool able = on == DeviceType::CPU ||
                      (on == DeviceType::CUDA && device_kernels(on).fuses && device_kernels(on).fuses());
    return PyBool_FromLong(able);
  });
}

PyObject* packed_rows(PyObject*, PyObject* args) {
  long long k = 0, n = 0;
  if (!PyArg_ParseTuple(args, "LL", &k, &n)) return nullptr;
  return PyLong_FromLongLong(most_packed_rows(k, n));
}

PyMethodDef functions[] = {{"_extension_operators", extension_records, METH_NOARGS,
                            "The operators that libraries in C++ registered."},
                           {"_extension_failures", extension_failures, METH_NOARGS,
                            "What libraries in C++ failed to register since the last call."},
                           {"_operator_records", operator_records, METH_NOARGS,
                            "One dict per operator record, in order of registration."},
                           {"_formula_names", formula_names, METH_NOARGS,
                            "Names of the formulas that pointwise operators compute, by number."},
                           {"_most_packed_rows", packed_rows, METH_VARARGS,
                            "_most_packed_rows(inner, columns): of a product that gains by a packed matrix."},
                           {"_can_fuse", can_fuse, METH_O,
                            "Whether programs of several operators become kernels on a device's type."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* overloads_of(OpFunction* f) {
  PyRef list(check(PyList_New(0)));
  for (const SignatureSpec* spec : specs_of(f)) append(list.get(), overload_facts(*spec));
  return list.release();
}

PyObject* describe(OpFunction* f, const char* how) {
  const PyRef module(check(PyImport_ImportModule("rushlight._operators.signatures")));
  return check(PyObject_CallMethod(module.get(), how, "O", reinterpret_cast<PyObject*>(f)));
}

void init_records(PyObject* module) {
  add_functions(module, functions);
  keep_extension_failures();
}

}  // namespace rushlight::python
