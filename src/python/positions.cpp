// Arrays and lists in place of what other libraries hand over; Note [Data by position].
#include "python/positions.h"

#include <cmath>

#include "ops/copy.h"
#include "python/types.h"

namespace rushlight::python {

bool is_scalar_leaf(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) ||
         (is_tensor(o) && tensor_of(o).dim() == 0) || is_numpy_scalar(o);
}

bool is_other_sequence(PyObject* o) {
  return !is_list(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyDict_Check(o) && !is_scalar_leaf(o) &&
         PySequence_Check(o) && PyObject_HasAttrString(o, "__len__");
}

// On the type, as dunder names are found; on the object only where its class answers for other objects.
static bool has_protocol(PyObject* o, const char* name) {
  if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), name)) return true;
  return Py_TYPE(o)->tp_getattro != PyObject_GenericGetAttr && !PyType_Check(o) &&
         PyObject_HasAttrString(o, name);
}

static bool is_plain(PyObject* o) {
  return is_list(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o) || o == Py_None ||
         is_tensor(o) || is_scalar_leaf(o) || is_ndarray(o);
}

// A buffer that the sequence protocol cannot read: of several axes, of none, or of an object that is no
// sequence.
static bool is_shaped_buffer(PyObject* o) {
  if (!PyObject_CheckBuffer(o)) return false;
  Py_buffer b;
  if (PyObject_GetBuffer(o, &b, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    PyErr_Clear();
    return false;
  }
  const bool several = b.ndim != 1;
  PyBuffer_Release(&b);
  return several || !PySequence_Check(o);
}

bool is_array_like(PyObject* o) {
  if (is_plain(o) || PyType_Check(o)) return false;
  return has_protocol(o, "__array__") || has_protocol(o, "__array_interface__") || is_shaped_buffer(o);
}

// Null where a sequence cannot be made an array; its elements may still be read. Throws for other objects.
static PyRef array_of(PyObject* o) {
  const bool readable = is_other_sequence(o);
  const PyRef numpy(check(PyImport_ImportModule("numpy")));
  PyRef array(PyObject_CallMethod(numpy.get(), "asarray", "O", o));
  if (array) return array;
  if (!readable || !PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError();
  PyErr_Clear();
  return {};
}

static std::string array_attribute(PyObject* array, const char* outer, const char* inner) {
  const PyRef value(check(PyObject_GetAttrString(array, outer)));
  const PyRef part(check(PyObject_GetAttrString(value.get(), inner)));
  const PyRef text(check(PyObject_Str(part.get())));
  return std::string(string_view(text.get()));
}

static int axes_of(PyObject* array) {
  const PyRef ndim(check(PyObject_GetAttrString(array, "ndim")));
  return static_cast<int>(to_int(ndim.get()));
}

// data[0][0]...: Python's own numbers have PyTorch's dtypes for them, NumPy's keep theirs.
static OptDType dtype_of_elements(PyObject* data, int axes) {
  if (is_other_sequence(data) && PySequence_Size(data) == 0) return get_default_dtype();
  PyErr_Clear();
  PyRef at = PyRef::borrow(data);
  for (int i = 0; i < axes; ++i) {
    if (!is_other_sequence(at.get()) && !is_list(at.get())) return {};
    at = PyRef(PySequence_GetItem(at.get(), 0));
    if (!at) {
      PyErr_Clear();
      return {};
    }
  }
  PyTypeObject* const type = Py_TYPE(at.get());
  if (type == &PyFloat_Type) return get_default_dtype();
  if (type == &PyBool_Type) return DType::Bool;
  if (type == &PyLong_Type) return DType::Int64;
  if (type == &PyComplex_Type) return complex_dtype(get_default_dtype());
  return {};
}

// Where NumPy has NaN for an element that was no number (a missing one), the elements themselves.
static PyRef elements_if_missing(PyObject* data, PyObject* array) {
  const Tensor values =
      ops::to_copy(tensor_from_buffer(array), DType::Float64, std::nullopt, MemoryFormat::Contiguous);
  const double* v = values.data<double>();
  PyRef list;
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (!std::isnan(v[i])) continue;
    if (!list) list = PyRef(check(PySequence_List(data)));
    if (i >= PyList_GET_SIZE(list.get())) break;
    if (!is_scalar_leaf(PyList_GET_ITEM(list.get(), i))) return list;
  }
  return {};
}

[[noreturn]] static void throw_no_shape(PyObject* data) {
  throw_python(PyExc_ValueError, "could not determine the shape of object type '" + type_name(data) + "'");
}

// As many elements as the length says, so that an iterator without end is none here.
static PyRef list_of(PyObject* sequence) {
  const Py_ssize_t n = PySequence_Size(sequence);
  if (n < 0) throw PythonError();
  PyRef list(check(PyList_New(0)));
  auto add = [&](PyRef item) {
    if (PyList_Append(list.get(), item.get()) < 0) throw PythonError();
  };
  if (!Py_TYPE(sequence)->tp_iter) {
    for (Py_ssize_t i = 0; i < n; ++i) add(PyRef(check(PySequence_GetItem(sequence, i))));
    return list;
  }
  const PyRef iterator(check(PyObject_GetIter(sequence)));
  for (Py_ssize_t i = 0; i <= n; ++i) {
    PyRef item(PyIter_Next(iterator.get()));
    if (!item && PyErr_Occurred()) throw PythonError();
    if (!item) break;
    add(std::move(item));
  }
  return list;
}

// What PyTorch's own reading of single elements would meet, refusals included.
static PyRef elements_of(PyObject* data, PyObject* array) {
  const std::string kind = array_attribute(array, "dtype", "kind");
  if (axes_of(array) == 1 && is_other_sequence(data)) return list_of(data);
  if (kind == "O" || kind == "U" || kind == "S" || kind == "T")
    return PyRef(check(PyObject_CallMethod(array, "tolist", nullptr)));
  return PyRef::borrow(array);
}

Positions::Entry Positions::convert(PyObject* data) {
  Entry entry{PyRef::borrow(data), PyRef::borrow(data), {}};
  const PyRef array = is_array_like(data) ? array_of(data) : PyRef();
  if (!array) {
    if (!is_other_sequence(data)) return entry;
    if (PyObject_HasAttrString(data, "keys"))
      throw_no_shape(data);  // a mapping: iterated by keys, read by values
    entry.read = list_of(data);
    return entry;
  }
  const OptDType dtype = dtype_of_array(array.get());
  const int axes = axes_of(array.get());
  if (!dtype) {
    PyRef elements = elements_of(data, array.get());
    // An object without axes stands for itself: NumPy could make nothing of it.
    if (axes > 0 || is_scalar_leaf(elements.get()) || is_ndarray(elements.get()))
      entry.read = std::move(elements);
    return entry;
  }
  if (axes == 1 && is_floating(*dtype) && !is_complex(*dtype) && is_other_sequence(data))
    if (PyRef elements = elements_if_missing(data, array.get())) {
      entry.read = std::move(elements);
      return entry;
    }
  entry.dtype = dtype_of_elements(data, axes);
  entry.read = PyRef::borrow(array.get());
  return entry;
}

Positions::Read Positions::of(PyObject* data) {
  if (PyFloat_CheckExact(data) || PyLong_CheckExact(data) || is_plain(data)) return {data, {}};
  auto found = known_.find(data);
  if (found == known_.end()) found = known_.emplace(data, convert(data)).first;
  return {found->second.read.get(), found->second.dtype};
}

}  // namespace rushlight::python
