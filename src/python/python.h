// What every file of the binding needs: owned references, errors across the language border, the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace rushlight::python {

// An owned reference to a Python object.
class PyRef {
 public:
  PyRef() noexcept = default;
  explicit PyRef(PyObject* owned) noexcept : object_(owned) {}
  static PyRef borrow(PyObject* object) noexcept { return PyRef(Py_XNewRef(object)); }
  PyRef(const PyRef& o) noexcept : object_(Py_XNewRef(o.object_)) {}
  PyRef(PyRef&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  PyRef& operator=(PyRef o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object_); }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

class GilAcquire {
 public:
  GilAcquire() : state_(PyGILState_Ensure()) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() { PyEval_RestoreThread(state_); }
  GilRelease(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// Carries the Python error that is set through C++ frames and threads; raised again unchanged at the border.
class PythonError : public std::exception {
 public:
  PythonError();  // takes the error that is set; call with the GIL held
  PythonError(const PythonError&);
  ~PythonError() override;
  const char* what() const noexcept override { return text_.c_str(); }
  void restore() noexcept;

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
  std::string text_;
};

// Checks the result of a C API call that returns null on failure.
inline PyObject* check(PyObject* result) {
  if (!result) throw PythonError();
  return result;
}
inline void check(int status) {
  if (status < 0) throw PythonError();
}

// Inside a catch (...) block: sets the Python error that stands for the exception.
void set_error_from_exception() noexcept;

// Runs `f`; a C++ exception becomes a Python error and the null result.
template <class F>
PyObject* guard(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_error_from_exception();
    return nullptr;
  }
}
template <class F>
int guard_status(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    set_error_from_exception();
    return -1;
  }
}

[[noreturn]] void throw_python(PyObject* type, const std::string& message);

// The type's name as error messages show it: "Tensor", "str", "torch.device".
std::string type_name(PyObject* object);

inline PyObject* to_python(std::string_view s) {
  return check(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}
std::string_view string_view(PyObject* str);  // borrowed from the str object

// Python-made exception classes, created by errors.cpp.
extern PyObject *out_of_memory_error, *linalg_error;

// Each part adds its types and functions to the module. In the order of module.cpp.
void init_errors(PyObject* module);
void init_dtypes(PyObject* module);
void init_devices(PyObject* module);
void init_size(PyObject* module);
void init_generator(PyObject* module);
void init_tensor_type(PyObject* module);
void init_operators(PyObject* module);
void init_factory(PyObject* module);
void init_records(PyObject* module);
void init_process_settings(PyObject* module);
void init_autocast(PyObject* module);
void init_indexing(PyObject* module);
void init_storage(PyObject* module);
void init_numpy(PyObject* module);
void init_dlpack(PyObject* module);
void init_overrides(PyObject* module);
void init_module_base(PyObject* module);
[[gnu::weak]] void init_autograd(PyObject* module);  // autograd_*.cpp

void add_functions(PyObject* module, PyMethodDef* functions);  // a null-terminated table that lives on
void add_type(PyObject* module, const char* name, PyTypeObject* type);

}  // namespace rushlight::python
