// C++ exceptions become Python exceptions of PyTorch's types; Python errors pass through C++ unchanged.

#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/host/thread.h"
#include "core/long_work.h"
#include "dispatch/warning.h"
#include "python/call_note.h"
#include "python/parse.h"
#include "python/python.h"

namespace rushlight::python {

PyObject *out_of_memory_error = nullptr, *linalg_error = nullptr;

PythonError::PythonError() {
  PyErr_Fetch(&type_, &value_, &traceback_);
  if (!type_) {
    type_ = Py_NewRef(PyExc_SystemError);
    value_ = PyUnicode_FromString("a C function reported an error without setting one");
  }
  text_ = "Python error";
  if (PyRef s(value_ ? PyObject_Str(value_) : nullptr); s) {
    if (const char* utf8 = PyUnicode_AsUTF8(s.get())) text_ = utf8;
  }
  PyErr_Clear();
}

PythonError::PythonError(const PythonError& o) : std::exception(o), text_(o.text_) {
  GilAcquire gil;
  type_ = Py_XNewRef(o.type_);
  value_ = Py_XNewRef(o.value_);
  traceback_ = Py_XNewRef(o.traceback_);
}

PythonError::~PythonError() {
  if (!type_) return;
  GilAcquire gil;
  Py_CLEAR(type_);
  Py_CLEAR(value_);
  Py_CLEAR(traceback_);
}

void PythonError::restore() noexcept {
  PyErr_Restore(type_, value_, traceback_);
  type_ = value_ = traceback_ = nullptr;
}

static PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Runtime:
      return PyExc_RuntimeError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return out_of_memory_error;
    case ErrorKind::Linalg:
      return linalg_error;
    case ErrorKind::Assertion:
      return PyExc_AssertionError;
    case ErrorKind::Overflow:
      return PyExc_OverflowError;
    case ErrorKind::Internal:
      return PyExc_RuntimeError;
  }
  return PyExc_RuntimeError;
}

// torch.AcceleratorError, with the code of the device's library.
static void set_device_error(const Error& e, int number) noexcept {
  PyRef module(PyImport_ImportModule("rushlight._extension.streams"));
  PyRef type(module ? PyObject_GetAttrString(module.get(), "AcceleratorError") : nullptr);
  PyRef error(type ? PyObject_CallFunction(type.get(), "s", e.what()) : nullptr);
  PyRef code(error ? PyLong_FromLong(number) : nullptr);
  if (!code || PyObject_SetAttrString(error.get(), "error_code", code.get()) < 0) return;
  PyErr_SetObject(type.get(), error.get());
}

void set_error_from_exception() noexcept {
  try {
    throw;
  } catch (PythonError& e) {
    e.restore();
  } catch (const DeviceError& e) {
    set_device_error(e, e.code);
  } catch (const ErrorInCall& e) {
    e.device_code() ? set_device_error(e, e.device_code())
                    : PyErr_SetString(exception_type(e.kind()), e.what());
    add_notes(e.call());
  } catch (const Error& e) {
    PyErr_SetString(exception_type(e.kind()), e.what());
    add_notes({});
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "out of memory");
  } catch (const std::length_error&) {  // a container that no memory holds
    PyErr_SetString(PyExc_MemoryError, "out of memory");
  } catch (const std::system_error&) {  // a thread or a lock that the system refuses
    PyErr_SetString(PyExc_RuntimeError, "the system has no thread left for this call");
  } catch (...) {  // whose text is about the standard library; no argument should lead here
    PyErr_SetString(PyExc_RuntimeError, "an internal check failed; please report the call that led here");
  }
}

void throw_python(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  add_notes({});
  throw PythonError();
}

std::string type_name(PyObject* object) {
  const char* name = Py_TYPE(object)->tp_name;
  constexpr std::string_view own = "rushlight.";
  if (std::string_view(name).starts_with(own)) return std::string("torch.") + (name + own.size());
  return name;
}

std::string_view string_view(PyObject* str) {
  Py_ssize_t n = 0;
  const char* s = PyUnicode_AsUTF8AndSize(str, &n);
  if (!s) throw PythonError();
  return {s, static_cast<size_t>(n)};
}

static void warn_user(const std::string& message) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  if (PyErr_Occurred()) return;
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) throw PythonError();
}

void add_functions(PyObject* module, PyMethodDef* functions) {
  check(PyModule_AddFunctions(module, functions));
}

void add_type(PyObject* module, const char* name, PyTypeObject* type) {
  check(PyType_Ready(type));
  check(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)));
}

static PyObject* f_set_warn_always(PyObject*, PyObject* on) {
  return guard([&]() -> PyObject* {
    warn_always = to_bool(on);
    Py_RETURN_NONE;
  });
}

static PyMethodDef functions[] = {
    {"_set_warn_always", f_set_warn_always, METH_O, "Whether what is said once a process is said each time."},
    {}};

void init_errors(PyObject* module) {
  add_functions(module, functions);
  out_of_memory_error = check(PyErr_NewExceptionWithDoc(
      "rushlight.OutOfMemoryError", "Raised when a device has no memory left.", PyExc_RuntimeError, nullptr));
  linalg_error = check(PyErr_NewExceptionWithDoc("rushlight._C._LinAlgError",
                                                 "Raised when a linear algebra routine cannot go on: a "
                                                 "singular matrix, a decomposition that does not converge.",
                                                 PyExc_RuntimeError, nullptr));
  check(PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error));
  check(PyModule_AddObjectRef(module, "_LinAlgError", linalg_error));
  show_warning = warn_user;
  throw_if_interrupted = [] {
    if (!host::on_main_thread()) return;  // handlers of signals run on the main thread
    const GilAcquire gil;
    check(PyErr_CheckSignals());
  };
}

}  // namespace rushlight::python
