// Conversions of tensors: to another device, dtype or memory format, by any of their names.
#include "core/device_backend.h"
#include "core/quantizer.h"
#include "core/sparse.h"
#include "ops/copy.h"
#include "python/op_function.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace rushlight::python {

std::optional<MemoryFormat> format_argument(const char* method, PyObject* const* args, Py_ssize_t n,
                                            PyObject* kwnames) {
  const Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (total == 0) return std::nullopt;
  if (total > 1)
    throw_python(PyExc_TypeError, str(method, "() takes 0 positional arguments but ",
                                      static_cast<int64_t>(total), " were given"));
  if (n == 0 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "memory_format") != 0)
    throw_python(PyExc_TypeError, str(method, "() got an unexpected keyword argument '",
                                      string_view(PyTuple_GET_ITEM(kwnames, 0)), "'"));
  if (args[0] == Py_None) return std::nullopt;
  if (!is_memory_format(args[0]))
    throw_python(
        PyExc_TypeError,
        str(method, "(): argument 'memory_format' must be torch.memory_format, not ", type_name(args[0])));
  return memory_format_of_object(args[0]);
}

static PyObject* convert_to(PyObject* self, OptDType dtype, OptDevice device, bool non_blocking, bool copy,
                            std::optional<MemoryFormat> format) {
  const Tensor& t = tensor_of(self);
  // Classes and modes that compute elsewhere may pretend to have any device.
  const bool pretends = (dispatch_state.always | t->flags) & kPythonDispatch;
  if (device && device->is_cuda() && !pretends) device = numbered(*device);
  const bool same = (!dtype || *dtype == t.dtype()) && (!device || *device == t.device()) && !copy &&
                    (!format || *format == MemoryFormat::Preserve || t.is_contiguous(*format));
  if (same) return Py_NewRef(self);
  if (dtype && is_special(*dtype) && *dtype != t.dtype()) refuse_special_dtype(*dtype);
  if (t.numel() < (1 << 15)) return wrap(ops::to(t, dtype, device, non_blocking, copy, format));
  Tensor result;
  {
    GilRelease released;
    result = ops::to(t, dtype, device, non_blocking, copy, format);
  }
  return wrap(std::move(result));
}

template <DType to>
static PyObject* m_to_dtype(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&] {
    return convert_to(self, to, std::nullopt, false, false, format_argument("to", args, n, kwnames));
  });
}
static PyObject* m_cpu(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&] {
    return convert_to(self, std::nullopt, Device{}, false, false, format_argument("cpu", args, n, kwnames));
  });
}
static PyObject* m_cuda(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&] {
    Device device{DeviceType::CUDA};
    if (n > 0 && args[0] != Py_None)
      device = PyLong_Check(args[0]) ? Device{DeviceType::CUDA, static_cast<int8_t>(to_int(args[0]))}
                                     : parse_device(args[0]);
    bool non_blocking = n > 1 && PyObject_IsTrue(args[1]) > 0;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
      const std::string_view name = string_view(PyTuple_GET_ITEM(kwnames, i));
      PyObject* given = args[n + i];
      if (name == "non_blocking") non_blocking = PyObject_IsTrue(given) > 0;
      if (name == "device" && given != Py_None)
        device = PyLong_Check(given) ? Device{DeviceType::CUDA, static_cast<int8_t>(to_int(given))}
                                     : parse_device(given);
    }
    return convert_to(self, std::nullopt, device, non_blocking, false, std::nullopt);
  });
}
static PyObject* m_xpu(PyObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_AssertionError, "Torch not compiled with XPU enabled");
  return nullptr;
}
static PyObject* m_mtia(PyObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_AssertionError, "Torch not compiled with MTIA enabled");
  return nullptr;
}
static PyObject* m_ipu(PyObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "PyTorch is not linked with support for ipu devices");
  return nullptr;
}

struct ToArguments {
  OptDType dtype;
  OptDevice device;
  bool non_blocking = false, copy = false;
  std::optional<MemoryFormat> format;
};

[[noreturn]] static void throw_bad_to(PyObject* const* args, Py_ssize_t n) {
  std::string got;
  for (Py_ssize_t i = 0; i < n; ++i) got += str(i ? ", " : "", type_name(args[i]));
  throw_python(PyExc_TypeError,
               str("to() received an invalid combination of arguments - got (", got,
                   "), but expected one of:\n * (torch.device device = None, torch.dtype dtype = None, bool "
                   "non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
                   " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, "
                   "torch.memory_format memory_format = None)\n"
                   " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format "
                   "memory_format = None)\n"));
}

// to(device=None, dtype=None, non_blocking=False, copy=False), to(dtype, ...) and to(other, ...).
static ToArguments parse_to(PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  ToArguments out;
  Py_ssize_t i = 0;
  if (n > 0) {
    PyObject* first = args[i++];
    if (is_tensor(first)) {
      out.dtype = tensor_of(first).dtype();
      out.device = tensor_of(first).device();
    } else if (is_dtype_like(first)) {
      out.dtype = parse_any_dtype(first);
    } else if (first == Py_None || is_device_like(first)) {
      if (first != Py_None) out.device = parse_device(first);
      if (i < n && !PyBool_Check(args[i])) {
        if (args[i] != Py_None && !is_dtype_like(args[i])) throw_bad_to(args, n);
        if (args[i] != Py_None) out.dtype = parse_any_dtype(args[i]);
        ++i;
      }
    } else {
      throw_bad_to(args, n);
    }
  }
  bool* flags[] = {&out.non_blocking, &out.copy};
  for (int k = 0; i < n; ++i, ++k) {
    if (k == 2 || !PyBool_Check(args[i])) throw_bad_to(args, n);
    *flags[k] = args[i] == Py_True;
  }
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* o = args[n + k];
    const std::string_view name = string_view(PyTuple_GET_ITEM(kwnames, k));
    if (name == "non_blocking")
      out.non_blocking = to_bool(o);
    else if (name == "copy")
      out.copy = to_bool(o);
    else if (o == Py_None && (name == "dtype" || name == "device" || name == "memory_format"))
      continue;
    else if (name == "dtype" && is_dtype_like(o))
      out.dtype = parse_any_dtype(o);
    else if (name == "device" && is_device_like(o))
      out.device = parse_device(o);
    else if (name == "memory_format" && is_memory_format(o))
      out.format = memory_format_of_object(o);
    else if ((name == "other" || name == "tensor") && is_tensor(o))
      out.dtype = tensor_of(o).dtype(), out.device = tensor_of(o).device();
    else if (name == "dtype" || name == "device" || name == "memory_format")
      throw_python(PyExc_TypeError,
                   str("to(): argument '", name, "' must be torch.", name, ", not ", type_name(o)));
    else
      throw_python(PyExc_TypeError, str("to() got an unexpected keyword argument '", name, "'"));
  }
  return out;
}

static PyObject* m_to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&] {
    const ToArguments a = parse_to(args, n, kwnames);
    return convert_to(self, a.dtype, a.device, a.non_blocking, a.copy, a.format);
  });
}

// nn.Module.to: (device, dtype, non_blocking, memory_format).
static PyObject* f_parse_to(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&] {
    const ToArguments a = parse_to(args, n, kwnames);
    PyRef device(a.device ? wrap(*a.device) : Py_NewRef(Py_None)),
        dtype(a.dtype ? wrap(*a.dtype) : Py_NewRef(Py_None)),
        format(a.format ? wrap(*a.format) : Py_NewRef(Py_None));
    return Py_BuildValue("OOOO", device.get(), dtype.get(), a.non_blocking ? Py_True : Py_False,
                         format.get());
  });
}

// "torch.FloatTensor"
static std::string legacy_type_name(const Tensor& t) {
  return str("torch.", is_quantized(t) ? "quantized." : "",
             t.device().type() == DeviceType::CUDA   ? "cuda."
             : t.device().type() == DeviceType::Meta ? "meta."
                                                     : "",
             layout_of(t) == Layout::SparseCoo ? "sparse." : "", legacy_name(t.dtype()), "Tensor");
}

static DType dtype_of_legacy_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    if (name == str("torch.", legacy_name(t), "Tensor") ||
        name == str("torch.sparse.", legacy_name(t), "Tensor"))
      return t;
  }
  if (name == "torch.Tensor") return get_default_dtype();
  RL_FAIL_AS(Value, "invalid type: '", name, "'");
}

static PyObject* m_type(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype", "non_blocking", nullptr};
  PyObject *dtype = Py_None, *non_blocking = Py_False;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", const_cast<char**>(names), &dtype, &non_blocking))
    return nullptr;
  return guard([&]() -> PyObject* {
    if (dtype == Py_None) return to_python(legacy_type_name(tensor_of(self)));
    if (dtype == reinterpret_cast<PyObject*>(tensor_type))  // torch.Tensor: of the default type
      return convert_to(self, get_default_dtype(), std::nullopt, false, false, std::nullopt);
    if (is_dtype_like(dtype))
      return convert_to(self, parse_dtype(dtype), std::nullopt, false, false, std::nullopt);
    PyRef name =
        PyUnicode_Check(dtype) ? PyRef::borrow(dtype) : PyRef(PyObject_GetAttrString(dtype, "_legacy_name"));
    if (!name) throw_python(PyExc_RuntimeError, "dtype must be a type, str, or dtype object");
    return convert_to(self, dtype_of_legacy_name(string_view(name.get())), std::nullopt, false, false,
                      std::nullopt);
  });
}

template <class F>
static PyCFunction method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

static PyMethodDef methods[] = {
    {"to", method(m_to), kFast,
     "to(device | dtype | other, ...): this tensor on another device or in another dtype."
     "\n\nArgs:\n    device (device, str or int): where the result lies.\n    dtype (dtype): its dtype.\n    "
     "other (Tensor): has both.\n    non_blocking (bool, default False): whether a copy from page-locked "
     "memory may go on while the program does.\n    copy (bool, default False): whether the result is always "
     "a copy.\n    memory_format (memory_format): its order in memory.\n\nExample:\n    >>> "
     "torch.ones(2).to(torch.int64)\n    tensor([1, 1])"},
    {"type", method(m_type), METH_VARARGS | METH_KEYWORDS,
     "type(dtype=None): the legacy type name, or a conversion."
     "\n\nArgs:\n    dtype (dtype, str or None): what to convert to.\n\nExample:\n    >>> "
     "torch.ones(1).type()\n    'torch.FloatTensor'\n    >>> torch.ones(1).type(torch.int64)\n    "
     "tensor([1])"},
    {"cpu", method(m_cpu), kFast,
     "This tensor on the CPU."
     "\n\nExample:\n    >>> torch.ones(1).cpu().device\n    device(type='cpu')"},
    {"cuda", method(m_cuda), kFast, "This tensor on a CUDA device."},
    {"xpu", method(m_xpu), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"mtia", method(m_mtia), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"ipu", method(m_ipu), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"float", method(m_to_dtype<DType::Float32>), kFast,
     "In float32."
     "\n\nExample:\n    >>> torch.tensor([1]).float()\n    tensor([1.])"},
    {"double", method(m_to_dtype<DType::Float64>), kFast, "In float64."},
    {"half", method(m_to_dtype<DType::Float16>), kFast, "In float16."},
    {"bfloat16", method(m_to_dtype<DType::BFloat16>), kFast, "In bfloat16."},
    {"long", method(m_to_dtype<DType::Int64>), kFast,
     "In int64."
     "\n\nExample:\n    >>> torch.tensor([1.5]).long()\n    tensor([1])"},
    {"int", method(m_to_dtype<DType::Int32>), kFast,
     "In int32."
     "\n\nExample:\n    >>> torch.tensor([1.5]).int()\n    tensor([1], dtype=torch.int32)"},
    {"short", method(m_to_dtype<DType::Int16>), kFast, "In int16."},
    {"char", method(m_to_dtype<DType::Int8>), kFast, "In int8."},
    {"byte", method(m_to_dtype<DType::UInt8>), kFast, "In uint8."},
    {"bool", method(m_to_dtype<DType::Bool>), kFast,
     "In bool."
     "\n\nExample:\n    >>> torch.tensor([0.0, 2.0]).bool()\n    tensor([False,  True])"},
    {"chalf", method(m_to_dtype<DType::Complex32>), kFast, "In complex32."},
    {"cfloat", method(m_to_dtype<DType::Complex64>), kFast, "In complex64."},
    {"cdouble", method(m_to_dtype<DType::Complex128>), kFast, "In complex128."},
    {}};

static PyMethodDef functions[] = {{"_parse_to", method(f_parse_to), kFast, nullptr}, {}};
void init_conversions(PyObject* module) {
  add_tensor_members(methods, nullptr);
  add_functions(PyRef(check(PyObject_GetAttrString(module, "_nn"))).get(), functions);
}

}  // namespace rushlight::python
