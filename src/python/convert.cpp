// What operators return, as Python objects: tensors, tuples, named tuples, numbers.
#include <cstring>
#include <map>
#include <mutex>

#include "python/op_function.h"
#include "python/package_name.h"
#include "python/types.h"

namespace rushlight::python {

PyObject* wrap_scalar(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(s.to<bool>());
    case Scalar::Kind::Int:
      return PyLong_FromLongLong(s.to_int());
    case Scalar::Kind::UInt:
      return PyLong_FromUnsignedLongLong(s.to<uint64_t>());
    case Scalar::Kind::Float:
      return PyFloat_FromDouble(s.to_double());
    case Scalar::Kind::Complex: {
      const complex128 z = s.to<complex128>();
      return PyComplex_FromDoubles(z.real(), z.imag());
    }
  }
  Py_RETURN_NONE;
}

PyObject* wrap_value(const Value& v) {
  switch (v.tag()) {
    case Tag::Bool:
      return PyBool_FromLong(v.boolean());
    case Tag::Int:
      return PyLong_FromLongLong(v.integer());
    case Tag::Float:
      return PyFloat_FromDouble(v.floating());
    case Tag::Scalar:
      return wrap_scalar(v.scalar());
    case Tag::Tensor:
      return wrap(v.tensor());
    case Tag::IntList:
      return wrap_size(v.ints());
    case Tag::String:
      return to_python(v.string());
    case Tag::DType:
      return wrap(v.dtype());
    case Tag::Device:
      return wrap(v.device());
    case Tag::Layout:
      return wrap(v.layout());
    case Tag::MemoryFormat:
      return wrap(v.memory_format());
    default:
      Py_RETURN_NONE;
  }
}

// --- named results

// "torch.return_types.topk(\nvalues=...,\nindices=...)"
static PyObject* named_repr(PyObject* self) {
  return guard([&] {
    std::string text = type_name(self) + "(\n";
    PyMemberDef* members = Py_TYPE(self)->tp_members;
    const Py_ssize_t n = PyTuple_GET_SIZE(self);
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyRef item(check(PyObject_Repr(PyTuple_GET_ITEM(self, i))));
      text += str(i ? ",\n" : "", std::string_view(members[i].name), "=", string_view(item.get()));
    }
    return to_python(text + ")");
  });
}

static PyTypeObject* make_named_type(std::string_view name, const std::vector<std::string>& names) {
  auto* fields = new PyStructSequence_Field[names.size() + 1]();
  for (size_t i = 0; i < names.size(); ++i)
    fields[i].name = (new std::string(names[i]))->c_str();  // the type borrows it for good
  auto* full = new std::string(str(package_name(), ".return_types.", name));
  PyStructSequence_Desc description{full->c_str(), "Results of an operator, by name.", fields,
                                    static_cast<int>(names.size())};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (!type) throw PythonError();
  type->tp_repr = named_repr;
  return type;
}

// "linalg_eigh" for linalg.eigh.
static std::string named_type_of(const Op& op) {
  return op.schema.space == "linalg" ? str("linalg_", op.name()) : std::string(op.name());
}

static std::vector<std::string> names_of_returns(const Op& op) {
  std::vector<std::string> names;
  for (const Return& r : op.schema.returns) names.emplace_back(r.name);
  return names;
}

// Pickle finds a type by its module, which only needs to be there once there is such a type.
static PyTypeObject* make_return_type(const Op& op) {
  if (!PyRef(PyImport_ImportModule(str(package_name(), ".return_types").c_str()))) PyErr_Clear();
  return make_named_type(named_type_of(op), names_of_returns(op));
}

PyObject* make_return_type(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    const char* name;
    PyObject* fields;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyTuple_Type, &fields)) return nullptr;
    std::vector<std::string> names;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); ++i)
      names.emplace_back(string_view(PyTuple_GET_ITEM(fields, i)));
    return reinterpret_cast<PyObject*>(make_named_type(name, names));
  });
}

// Overloads share the type of the first.
static const Op& named_by(const Op& op) {
  for (const Op& first : operator_table().ops())
    if (first.has_named_returns && named_type_of(first) == named_type_of(op) &&
        names_of_returns(first) == names_of_returns(op))
      return first;
  return op;
}

static PyTypeObject* return_type_of(const Op& op) {
  std::atomic_ref<void*> kept(op.python);
  if (void* type = kept.load(std::memory_order_acquire)) return static_cast<PyTypeObject*>(type);
  const Op& first = named_by(op);
  PyTypeObject* made = &first == &op ? make_return_type(op) : return_type_of(first);
  void* found = nullptr;  // another thread may be faster: all get the same type
  return kept.compare_exchange_strong(found, made) ? made : static_cast<PyTypeObject*>(found);
}

// Calls with out= answer types of their own, return_types.topk_out: made on first use and kept for good.
static PyTypeObject* out_type_of(const Op& op) {
  static std::mutex making;
  static auto* types = new std::map<std::string, PyTypeObject*>;
  const std::string name = named_type_of(op) + "_out";
  return_type_of(op);  // imports the module that pickle looks in
  std::lock_guard lock(making);
  PyTypeObject*& type = (*types)[name];
  if (!type) type = make_named_type(name, names_of_returns(op));
  return type;
}

PyObject* return_type(PyObject*, PyObject* name) {
  return guard([&]() -> PyObject* {
    for (const Op& op : operator_table().ops()) {
      if (!op.has_named_returns) continue;
      const std::string plain = named_type_of(op);
      if (plain == string_view(name)) return Py_NewRef(reinterpret_cast<PyObject*>(return_type_of(op)));
      if (op.has_out && plain + "_out" == string_view(name))
        return Py_NewRef(reinterpret_cast<PyObject*>(out_type_of(op)));
    }
    Py_RETURN_NONE;
  });
}

// One of several results. Note [Mixed results] in python/torch_dispatch.h
static PyObject* wrap_one(Tag type, Tensor& t, std::vector<Tensor>::iterator& next) {
  if (type == Tag::Tensor || !t.defined()) return wrap(std::move(t));
  if (type != Tag::TensorList) return wrap_scalar(read_scalar(t));
  const int64_t count = read_scalar(t).to_int();
  PyRef list(check(PyList_New(count)));
  for (int64_t i = 0; i < count; ++i) PyList_SET_ITEM(list.get(), i, wrap(std::move(*next++)));
  return list.release();
}

static PyObject* wrap_many(const Op& op, Results& r, bool written) {
  if (op.has_named_returns) {
    PyRef out(check(PyStructSequence_New(written ? out_type_of(op) : return_type_of(op))));
    for (int i = 0; i < r.count; ++i) PyStructSequence_SET_ITEM(out.get(), i, wrap(std::move(r.tensors[i])));
    return out.release();
  }
  PyRef out(check(PyTuple_New(r.count)));
  auto next = r.list.begin();
  for (int i = 0; i < r.count; ++i)
    PyTuple_SET_ITEM(out.get(), i,
                     wrap_one(op.schema.returns[static_cast<size_t>(i)].type, r.tensors[i], next));
  return out.release();
}

static PyObject* wrap_list(std::vector<Tensor>&& tensors) {
  PyRef list(check(PyList_New(static_cast<Py_ssize_t>(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), wrap(std::move(tensors[i])));
  return list.release();
}

static PyObject* wrap_numbers(const std::vector<Tensor>& numbers) {
  PyRef list(check(PyList_New(static_cast<Py_ssize_t>(numbers.size()))));
  for (size_t i = 0; i < numbers.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), wrap_scalar(read_scalar(numbers[i])));
  return list.release();
}

PyObject* wrap_results(const Op& op, Results& r, bool written) {
  const auto& returns = op.schema.returns;
  if (returns.size() == 1) {
    if (returns[0].type == Tag::Tensor) return wrap(std::move(r.tensors[0]));
    if (returns[0].type == Tag::TensorList)
      return op.made_in_python ? wrap_list(std::move(r.list)) : wrap_tuple(std::move(r.list));
    if (returns[0].type == Tag::IntList && op.made_in_python) return wrap_numbers(r.list);
    return wrap_value(r.plain);
  }
  if (returns.empty()) Py_RETURN_NONE;
  return wrap_many(op, r, written);
}

}  // namespace rushlight::python
