// The legacy constructors: torch.Tensor(...), torch.FloatTensor(...) and its kin, Tensor.new.
#include "ops/copy.h"
#include "ops/view.h"
#include "python/factory.h"
#include "python/positions.h"
#include "python/storage.h"
#include "python/types.h"

namespace rushlight::python {

// Every array has __index__; only one that holds a single integer, without axes, is a size.
static bool is_integer_array(PyObject* array) {
  const PyRef index(PyNumber_Index(array));
  if (!index) PyErr_Clear();
  return static_cast<bool>(index);
}

static int64_t size_at(PyObject* o, Py_ssize_t position) {
  const auto refuse = [position](const std::string& why) {
    throw_python(PyExc_TypeError, str("new(): argument 'size' failed to unpack the object at pos ",
                                      position + 1, " with error \"", why, "\""));
  };
  if (!is_index(o)) refuse("type must be tuple of ints,but got " + type_name(o));
  try {
    return to_int(o);
  } catch (const PythonError&) {
    if (!PyLong_Check(o)) throw;
    PyErr_Clear();
    refuse("Overflow when unpacking long long");
    throw;
  }
}

// torch.Tensor takes tensors of every dtype, torch.FloatTensor and Tensor.new those of their own.
static Tensor legacy_tensor(PyObject* args, PyObject* kwargs, DType dtype, bool any_dtype = false) {
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (kwargs)
    if (PyObject* device = PyDict_GetItemString(kwargs, "device")) {
      if (device != Py_None && !parse_device(device).is_cpu())
        throw_python(PyExc_RuntimeError, str("legacy constructor expects device type: cpu but device type: ",
                                             device_type_name(parse_device(device).type()), " was passed"));
    }
  if (n == 0) {
    PyObject* size = kwargs ? PyDict_GetItemString(kwargs, "size") : nullptr;
    if (!size) return empty_tensor({0}, dtype);
    const PyRef parts(check(PySequence_Tuple(size)));
    Dims sizes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.get()); ++i)
      sizes.push_back(to_int(PyTuple_GET_ITEM(parts.get(), i)));
    return empty_tensor(sizes, dtype);
  }
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  if (n == 1 && is_ndarray(first) && !is_integer_array(first))
    return ops::to(tensor_from_buffer(first), dtype, std::nullopt, false, false, std::nullopt);
  if (is_index(first) && !is_array_like(first)) {
    Dims sizes;
    for (Py_ssize_t i = 0; i < n; ++i) {
      sizes.push_back(size_at(PyTuple_GET_ITEM(args, i), i));
      RL_CHECK(sizes.back() >= 0, "Trying to create tensor with negative dimension ", sizes.back(), ": ",
               sizes);
    }
    return empty_tensor(sizes, dtype);
  }
  if (n > 1) throw_python(PyExc_TypeError, "new() received an invalid combination of arguments");
  if (Py_TYPE(first) == &SizeType) {
    Dims sizes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(first); ++i)
      sizes.push_back(to_int(PyTuple_GET_ITEM(first, i)));
    return empty_tensor(sizes, dtype);
  }
  if (is_tensor(first)) {
    RL_CHECK_TYPE(any_dtype || tensor_of(first).dtype() == dtype, "expected ", legacy_name(dtype), " (got ",
                  legacy_name(tensor_of(first).dtype()), ")");
    return ops::alias(tensor_of(first));
  }
  if (!PyList_Check(first) && !PyTuple_Check(first))
    if (Tensor t = tensor_of_storage(first, dtype); t.defined()) return t;
  if (PyUnicode_Check(first)) throw_python(PyExc_TypeError, "new(): invalid data type 'str'");
  Tensor t;
  if (PySequence_Check(first) || is_array_like(first)) t = tensor_from_data(first, dtype);
  if (!t.defined() || t.dim() == 0)  // one number could be a size, too
    throw_python(PyExc_TypeError, str("new(): data must be a sequence (got ", type_name(first), ")"));
  return t;
}

// What is made of numbers or sizes is new to the program; a tensor given is not.
static PyObject* wrap_constant(Tensor t, PyObject* args) {
  const bool given = PyTuple_GET_SIZE(args) == 1 && is_tensor(PyTuple_GET_ITEM(args, 0));
  return wrap(given ? std::move(t) : lifted(std::move(t)));
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    if (type == &TensorBaseType)
      throw_python(PyExc_RuntimeError,
                   "Cannot directly construct TensorBase; subclass it and then construct that");
    Tensor t = legacy_tensor(args, kwargs, get_default_dtype(), /*any_dtype=*/true);
    return type == tensor_type ? wrap_constant(std::move(t), args) : wrap_as(type, std::move(t));
  });
}

// _legacy_tensor(dtype, args, kwargs): torch.FloatTensor and its kin.
static PyObject* f_legacy(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&] {
    if (n != 3 || !is_dtype(args[0]) || !PyTuple_Check(args[1]))
      throw_python(PyExc_TypeError, "_legacy_tensor(dtype, args, kwargs)");
    Tensor t = legacy_tensor(args[1], args[2] == Py_None ? nullptr : args[2], dtype_of_object(args[0]));
    return wrap_constant(std::move(t), args[1]);
  });
}

static PyMethodDef functions[] = {
    {"_legacy_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f_legacy)), METH_FASTCALL,
     nullptr},
    {}};

void init_legacy_constructor(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
