// Python and NumPy numbers. NumPy is recognised without being imported.
#include <cstring>

#include "python/parse.h"

namespace rushlight::python {

bool is_numpy_scalar(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return name[0] == 'n' && std::strncmp(name, "numpy.", 6) == 0 && std::strcmp(name, "numpy.ndarray") != 0 &&
         Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_bool &&
         PyObject_HasAttrString(o, "dtype") && !PyObject_TypeCheck(o, &PyType_Type);
}

bool is_numpy_bool(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return std::strcmp(name, "numpy.bool") == 0 || std::strcmp(name, "numpy.bool_") == 0;
}

static bool has_index(PyObject* o) { return Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_index; }
static bool is_python_number(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o);
}

bool is_number(PyObject* o) { return is_python_number(o) || is_numpy_scalar(o) || is_traced_size(o); }

bool is_int(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  if (PyBool_Check(o)) return false;
  return PyLong_Check(o) || (is_numpy_scalar(o) && !is_numpy_bool(o) && has_index(o)) || is_traced_size(o);
}

static bool is_integral_scalar_tensor(PyObject* o) {
  if (!is_tensor(o)) return false;
  const Tensor& t = tensor_of(o);
  return is_integral(t.dtype()) && !t.requires_grad_flag() && t.dim() == 0;
}

bool is_index(PyObject* o) {
  if (is_int(o)) return true;
  if (is_tensor(o))
    return is_integral_scalar_tensor(o) || (is_integral(tensor_of(o).dtype()) && tensor_of(o).numel() == 1);
  return !PyBool_Check(o) && has_index(o) && !PyFloat_Check(o) && !is_numpy_scalar(o);
}

static Scalar scalar_of_long(PyObject* o) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (!overflow) {
    if (v == -1 && PyErr_Occurred()) throw PythonError();
    return Scalar(static_cast<int64_t>(v));
  }
  if (overflow > 0) {
    const unsigned long long u = PyLong_AsUnsignedLongLong(o);
    if (!PyErr_Occurred()) return Scalar(static_cast<uint64_t>(u));
    throw PythonError();
  }
  throw_python(PyExc_OverflowError, "can't convert negative int to unsigned");
}

Scalar to_scalar(PyObject* o) {
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) return scalar_of_long(o);
  if (PyComplex_Check(o)) return Scalar(complex128(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (is_tensor(o)) return read_scalar(tensor_of(o));
  if (is_traced_size(o)) return scalar_of_long(traced_size_value(o).get());
  if (is_numpy_bool(o)) return Scalar(PyObject_IsTrue(o) == 1);
  if (has_index(o)) {
    PyRef i(check(PyNumber_Index(o)));
    return scalar_of_long(i.get());
  }
  if (PyObject_HasAttrString(o, "imag") && std::strstr(Py_TYPE(o)->tp_name, "complex")) {
    const Py_complex c = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw PythonError();
    return Scalar(complex128(c.real, c.imag));
  }
  const double d = PyFloat_AsDouble(o);
  if (d == -1 && PyErr_Occurred()) throw PythonError();
  return Scalar(d);
}

int64_t to_int(PyObject* o) {
  if (!PyLong_Check(o)) {
    if (is_tensor(o)) return read_scalar(tensor_of(o)).to_int();
    const PyRef i = is_traced_size(o) ? traced_size_value(o) : PyRef(check(PyNumber_Index(o)));
    return to_int(i.get());
  }
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) throw_python(PyExc_ValueError, "Overflow when unpacking long long");
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}

double to_double(PyObject* o) {
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (is_tensor(o)) return read_scalar(tensor_of(o)).to_double();
  const double d = PyFloat_AsDouble(o);
  if (d == -1 && PyErr_Occurred()) throw PythonError();
  return d;
}

bool to_bool(PyObject* o) {
  if (o == Py_True) return true;
  if (o == Py_False) return false;
  const int truth = PyObject_IsTrue(o);
  if (truth < 0) throw PythonError();
  return truth;
}

Tensor number_tensor(PyObject* o) { return wrapped_number(to_scalar(o)); }

}  // namespace rushlight::python
