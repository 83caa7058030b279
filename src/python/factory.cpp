// torch.tensor, as_tensor and asarray: nested sequences become tensors.
#include "python/factory.h"

#include <cstring>
#include <unordered_set>

#include "autograd/meta.h"
#include "core/device_backend.h"
#include "ops/copy.h"
#include "ops/view.h"
#include "python/positions.h"
#include "python/storage.h"
#include "python/types.h"

namespace rushlight::python {

// --- shape and dtype

struct Inferred {
  Dims shape;
  DType dtype = DType::Bool;
  bool any = false;
  int64_t count = 0;
  std::unordered_set<PyObject*> seen;  // lists below the shape's depth

  void add(DType t) {
    dtype = any ? promote_types(dtype, t) : t;
    any = true;
  }
};

static DType numpy_scalar_dtype(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name + std::strlen("numpy.");
  for (int i = 0; i < kDTypeCount; ++i)
    if (dtype_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  if (is_numpy_bool(o)) return DType::Bool;
  if (std::strcmp(name, "longlong") == 0) return DType::Int64;
  if (std::strcmp(name, "ulonglong") == 0) return DType::UInt64;
  throw_python(PyExc_TypeError,
               str("can't convert ", Py_TYPE(o)->tp_name, " to a tensor: its dtype is not supported"));
}

static DType leaf_dtype(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyFloat_Type) return get_default_dtype();
  if (t == &PyLong_Type) return DType::Int64;
  if (t == &PyBool_Type) return DType::Bool;
  if (is_tensor(o)) return tensor_of(o).dtype();
  if (is_numpy_scalar(o)) return numpy_scalar_dtype(o);
  if (PyFloat_Check(o)) return get_default_dtype();
  if (PyLong_Check(o)) return DType::Int64;
  if (PyComplex_Check(o)) return complex_dtype(get_default_dtype());
  if (PyUnicode_Check(o) || PyBytes_Check(o))
    throw_python(PyExc_TypeError, "new(): invalid data type '" + type_name(o) + "'");
  throw_python(PyExc_RuntimeError, "Could not infer dtype of " + type_name(o));
}

// A list may change while its elements are read: their conversions run code of their classes.
static PyRef sequence_item(PyObject* list, Py_ssize_t i) {
  if (i >= PySequence_Fast_GET_SIZE(list))
    throw_python(PyExc_ValueError, "the data changed while it was read");
  return PyRef::borrow(PySequence_Fast_GET_ITEM(list, i));
}

// An array in the place of a number counts with its axes.
static void add_axes(PyObject* array, Dims& shape) {
  const PyRef sizes(check(PyObject_GetAttrString(array, "shape")));
  for (PyObject* n : Items(sizes.get())) shape.push_back(to_int(n));
}

// The shape follows the first element of every level.
static void infer_shape(PyObject* data, Dims& shape, Positions& positions) {
  PyRef at = PyRef::borrow(positions.of(data).data);
  while (is_list(at.get())) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(at.get());
    shape.push_back(n);
    if (shape.size() > 128)
      throw_python(PyExc_ValueError, "too many dimensions '" + type_name(at.get()) + "'");
    if (n == 0) return;
    at = PyRef::borrow(positions.of(sequence_item(at.get(), 0).get()).data);
  }
  if (is_ndarray(at.get())) add_axes(at.get(), shape);
  if (shape.size() && PyUnicode_Check(at.get())) throw_python(PyExc_ValueError, "too many dimensions 'str'");
}

static void check_length(PyObject* sequence, const Dims& shape, size_t dim) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
  if (n != shape[dim])
    throw_python(PyExc_ValueError, str("expected sequence of length ", shape[dim], " at dim ",
                                       static_cast<int64_t>(dim), " (got ", static_cast<int64_t>(n), ")"));
}

// Lists that hold each other may stand for more elements than could ever be read.
static void check_count(const Dims& shape) {
  int64_t n = 1;
  for (const int64_t size : shape)
    RL_CHECK(!__builtin_mul_overflow(n, size, &n) && n < int64_t{1} << 40, "the data of a tensor of shape ",
             shape, " does not fit into memory");
}

// Large data is left at an interrupt.
static void check_interrupt(int64_t& count) {
  if ((++count & 0xffff) == 0 && PyErr_CheckSignals() < 0) throw PythonError();
}

// What holds all numbers at any depth; that they fit the shape is seen when they are written. Below the
// shape's depth a list is followed once: it may contain itself.
static void infer_dtype(PyObject* data, Inferred& found, Positions& positions, size_t depth = 0) {
  if (PyFloat_CheckExact(data) || PyLong_CheckExact(data)) return found.add(leaf_dtype(data));
  if (is_tensor(data)) return found.add(tensor_of(data).dtype());
  const Positions::Read read = positions.of(data);
  if (read.dtype) return found.add(*read.dtype);
  if (is_ndarray(read.data)) {
    if (const OptDType type = dtype_of_array(read.data)) return found.add(*type);
    tensor_from_buffer(read.data);  // says which dtypes there are
  }
  if (!is_list(read.data)) return found.add(leaf_dtype(read.data));
  if (depth >= found.shape.size() && (depth > 500 || !found.seen.insert(read.data).second)) return;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(read.data);
  if (n == 0) found.add(get_default_dtype());
  for (Py_ssize_t i = 0; i < n; ++i) {
    check_interrupt(found.count);
    const PyRef item = sequence_item(read.data, i);
    if (item.get() == data) throw_python(PyExc_TypeError, "new(): self-referential lists are incompatible");
    infer_dtype(item.get(), found, positions, depth + 1);
  }
}

// --- writing

template <class T>
static T number_as(PyObject* o, DType dtype);

// What an object's own conversion says (__float__, __index__, __complex__): decimals, fractions.
template <class T>
static T converted_as(PyObject* o, DType dtype) {
  if constexpr (std::is_integral_v<T>) {
    const PyRef index(check(PyNumber_Index(o)));
    return number_as<T>(index.get(), dtype);
  } else if constexpr (is_complex_v<T>) {
    const Py_complex z = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw PythonError();
    return convert<T>(complex128(z.real, z.imag));
  } else {
    const double d = PyFloat_AsDouble(o);
    if (d == -1 && PyErr_Occurred()) throw PythonError();
    return convert<T>(d);
  }
}

template <class T>
static T number_as(PyObject* o, DType dtype) {
  if (PyFloat_CheckExact(o)) {
    const double d = PyFloat_AS_DOUBLE(o);
    if constexpr (is_floating_v<T> || is_complex_v<T>) return convert<T>(d);
  } else if (PyLong_CheckExact(o)) {  // also beyond 64 bits
    if constexpr (std::is_same_v<T, bool>) return PyObject_IsTrue(o) == 1;
    if constexpr (is_floating_v<T> || is_complex_v<T>) {
      const double d = PyLong_AsDouble(o);
      if (d == -1 && PyErr_Occurred()) throw PythonError();
      return convert<T>(d);
    }
  }
  if (is_tensor(o) && tensor_of(o).numel() != 1) {
    if constexpr (std::is_integral_v<T>)
      throw_python(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    throw_python(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  }
  if (!is_number(o) && !is_tensor(o)) return converted_as<T>(o, dtype);
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, uint64_t>)
    if (PyLong_Check(o)) {
      const int64_t n = to_int(o);
      if constexpr (std::is_same_v<T, int64_t>) return n;
    }
  const Scalar s = to_scalar(o);
  if (s.is_complex() && !is_complex_v<T> && !std::is_same_v<T, bool>)
    throw_python(PyExc_TypeError, "must be real number, not complex");
  if constexpr (std::is_same_v<T, uint64_t>)
    if (s.is_integral() && s.kind() != Scalar::Kind::UInt && s.to_int() < 0)
      throw_python(PyExc_OverflowError, "can't convert negative int to unsigned");
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // Negative numbers wrap round in unsigned types, as in PyTorch.
    if (!(std::is_unsigned_v<T> && s.is_integral() && s.to_int() < 0 &&
          -s.to_int() <= static_cast<int64_t>(std::numeric_limits<T>::max())))
      s.check_fits(dtype);
  }
  return s.to<T>();
}

static bool holds_all(DType dtype, DType from) {
  if (dtype == from || (is_floating(dtype) && !is_complex(from))) return true;
  return dtype == DType::Int64 && is_integral_or_bool(from) && from != DType::UInt64;
}

// Elements of an array that fills the rest of the shape and needs no check, number by number, of what fits.
static int64_t take_array(PyObject* array, const Dims& shape, size_t dim, DType dtype, void* to) {
  const OptDType type = dtype_of_array(array);
  if (!type || !holds_all(dtype, *type)) return 0;
  GradMode no_grad(false);
  const Tensor t = ops::to_copy(tensor_from_buffer(array), dtype, std::nullopt, MemoryFormat::Contiguous);
  if (t.sizes() != IntList(shape).slice(dim)) return 0;
  std::memcpy(to, t.data_ptr(), static_cast<size_t>(t.numel()) * t.itemsize());
  return t.numel();
}

template <class T>
struct Writer {
  const Dims& shape;
  DType dtype;
  Positions& positions;
  int64_t count = 0;

  T* write(PyObject* given, size_t dim, T* at) {
    PyObject* const data = positions.of(given).data;
    if (dim == shape.size()) {
      *at = number_as<T>(is_list(data) ? given : data, dtype);
      return at + 1;
    }
    if (is_list(data)) return write_list(data, dim, at);
    const bool is_array = is_ndarray(data);
    if (!is_array && !(is_tensor(data) && tensor_of(data).dim() > 0))
      throw_python(PyExc_TypeError, "not a sequence");
    if (const auto n = is_array ? take_array(data, shape, dim, dtype, at) : 0) return at + n;
    const PyRef rows(check(PySequence_List(data)));
    return write_list(rows.get(), dim, at);
  }

 private:
  T* write_list(PyObject* list, size_t dim, T* at) {
    check_length(list, shape, dim);
    for (Py_ssize_t i = 0; i < shape[dim]; ++i) {
      check_interrupt(count);
      at = write(sequence_item(list, i).get(), dim + 1, at);
    }
    return at;
  }
};

static void fill_from(const Tensor& t, PyObject* data, Positions& positions) {
  visit_dtype(StorageTypes{}, t.dtype(), "tensor", [&](auto tag) {
    using T = decltype(tag);
    Writer<T>{t->sizes, t.dtype(), positions}.write(data, 0, t.data<T>());
  });
}

void store_number(const Tensor& t, int64_t offset, PyObject* number) {
  visit_dtype(StorageTypes{}, t.dtype(), "fill_", [&](auto tag) {
    using T = decltype(tag);
    t.data<T>()[offset] = number_as<T>(number, t.dtype());
  });
}

// "cuda" is the current device.
static bool lies_on(const Tensor& t, Device device) {
  const bool unnumbered = device.is_cuda() && !device.has_index() && t.device().is_cuda();
  return t.device() == (unnumbered ? numbered(device) : device);
}
static Tensor on_device(Tensor t, OptDType dtype, Device device) {
  if (lies_on(t, device) && (!dtype || *dtype == t.dtype())) return t;
  GradMode no_grad(false);
  return ops::to(t, dtype, device, false, false, std::nullopt);
}

// One flat list of Python floats: what most calls bring.
static bool take_floats(PyObject* data, OptDType dtype, Tensor& out) {
  const DType t = dtype ? *dtype : get_default_dtype();
  if (!PyList_CheckExact(data) || t != DType::Float32) return false;
  const Py_ssize_t n = PyList_GET_SIZE(data);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!PyFloat_CheckExact(PyList_GET_ITEM(data, i))) return false;
  out = empty_tensor({n}, t);
  float* to = out.data<float>();
  for (Py_ssize_t i = 0; i < n; ++i) to[i] = static_cast<float>(PyFloat_AS_DOUBLE(PyList_GET_ITEM(data, i)));
  return true;
}

// What a typed storage must hold; bytes are read as int64 unless told, as PyTorch reads them.
static DType storage_dtype(PyObject* storage, OptDType asked) {
  PyRef own(PyObject_GetAttrString(storage, "dtype"));
  if (own && is_dtype(own.get())) return asked.value_or(get_default_dtype());
  PyErr_Clear();
  return asked.value_or(DType::Int64);
}

Tensor tensor_from_data(PyObject* data, OptDType dtype, Device device) {
  Tensor t;
  if (take_floats(data, dtype, t)) return on_device(std::move(t), dtype, device);
  if (is_tensor(data)) {
    GradMode no_grad(false);
    return ops::to_copy(tensor_of(data), dtype, device, std::nullopt);
  }
  if (is_ndarray(data)) {
    GradMode no_grad(false);
    Tensor borrowed = tensor_from_buffer(data);
    return ops::to_copy(borrowed, dtype, device, MemoryFormat::Contiguous);
  }
  if (PyUnicode_Check(data)) throw_python(PyExc_TypeError, "new(): invalid data type 'str'");
  if (!is_list(data) && !PyLong_Check(data))
    if (Tensor elements = tensor_of_storage(data, storage_dtype(data, dtype)); elements.defined())
      return ops::to(elements, dtype, device, false, false, std::nullopt);  // looks into the storage
  Positions positions;
  if (const Positions::Read read = positions.of(data); is_ndarray(read.data)) {
    GradMode no_grad(false);
    const Tensor borrowed = tensor_from_buffer(read.data);
    return ops::to_copy(borrowed, dtype ? dtype : read.dtype, device, MemoryFormat::Contiguous);
  }
  Inferred found;
  infer_shape(data, found.shape, positions);
  check_count(found.shape);
  if (!dtype) infer_dtype(data, found, positions);
  t = empty_tensor(found.shape, dtype ? *dtype : found.any ? found.dtype : get_default_dtype());
  if (t.numel()) fill_from(t, data, positions);
  return on_device(std::move(t), std::nullopt, device);
}

// --- torch.tensor and torch.as_tensor

struct FactoryArguments {
  PyObject* data = nullptr;
  OptDType dtype;
  OptDevice device;
  bool requires_grad = false;
  bool constant = false;  // requires_grad=False was said
  int copy = -1;          // asarray: unset, no, yes
};

static void take_keyword(FactoryArguments& a, const char* f, std::string_view name, PyObject* o) {
  if (name == "dtype") {
    if (o == Py_None) return;
    if (!is_dtype_like(o))
      throw_python(PyExc_TypeError, str(f, "(): argument 'dtype' must be torch.dtype, not ", type_name(o)));
    a.dtype = parse_dtype(o);
  } else if (name == "device") {
    if (o == Py_None) return;
    if (!is_device_like(o))
      throw_python(PyExc_TypeError, str(f, "(): argument 'device' must be torch.device, not ", type_name(o)));
    a.device = parse_device(o);
  } else if (name == "requires_grad" || name == "pin_memory") {
    if (o == Py_None && std::strcmp(f, "asarray") == 0) return;
    if (!PyBool_Check(o) && !is_int(o))
      throw_python(PyExc_TypeError, str(f, "(): argument '", name, "' must be bool, not ", type_name(o)));
    if (name == "requires_grad") a.requires_grad = to_bool(o), a.constant = !a.requires_grad;
  } else if (name == "copy" && std::strcmp(f, "asarray") == 0) {
    if (o != Py_None) a.copy = to_bool(o);
  } else if (name == "data" || name == "obj") {
    a.data = o;
  } else if (name != "names" || o != Py_None) {
    throw_python(PyExc_TypeError, str(f, "() got an unexpected keyword argument '", name, "'"));
  }
}

static FactoryArguments parse_factory(const char* f, PyObject* const* args, Py_ssize_t n, PyObject* kwnames,
                                      const char* const* positional, int most) {
  FactoryArguments a;
  if (n > most)
    throw_python(PyExc_TypeError, str(f, "() takes ", most, " positional argument", most == 1 ? "" : "s",
                                      " but ", static_cast<int64_t>(n), " were given"));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (i == 0)
      a.data = args[0];
    else
      take_keyword(a, f, positional[i], args[i]);
  }
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
    take_keyword(a, f, string_view(PyTuple_GET_ITEM(kwnames, k)), args[n + k]);
  if (!a.data) throw_python(PyExc_TypeError, str(f, "() missing 1 required positional arguments: \"data\""));
  return a;
}

Tensor lifted(Tensor t) {
  if (!(dispatch_state.always & kPythonDispatch)) [[likely]]
    return t;
  static const Op& op = *operator_table().find("", "lift_fresh")[0];
  const Value argument(t);
  Results results;
  call_boxed(op, &argument, results);
  return std::move(results.tensors[0]);
}

static PyObject* finish(Tensor t, bool requires_grad) {
  t = lifted(std::move(t));
  if (requires_grad) {
    RL_CHECK(is_differentiable(t.dtype()),
             "Only Tensors of floating point and complex dtype can require gradients");
    set_requires_grad(t, true);
  }
  return wrap(std::move(t));
}

static PyObject* core_module() {
  static constinit Lazy module;
  return module.get([] { return check(PyImport_ImportModule("rushlight._C")); });
}

// Function modes and `with torch.device(...)` see the constructors too.
static PyObject* through_modes(const char* name, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  PyRef callable(check(PyObject_GetAttrString(core_module(), name)));
  PyObject* result = dispatch_torch_function(callable.get(), CallArgs{args, n, kwnames});
  if (!result && PyErr_Occurred()) throw PythonError();
  return result;
}

// Whether an object that is nothing of Python's, NumPy's or ours offers its memory: by DLPack, or as an array
// of CUDA's.
static bool exports_memory(PyObject* o) {
  return !is_list(o) && !is_tensor(o) && !is_scalar_leaf(o) && !is_ndarray(o) &&
         (PyObject_HasAttrString(o, "__dlpack__") || exports_cuda_array(o));
}

static Tensor tensor_of_memory(PyObject* o) {
  if (!PyObject_HasAttrString(o, "__dlpack__")) return tensor_from_cuda_array(o);
  const PyRef function(check(PyObject_GetAttrString(PyImport_AddModule("rushlight._C"), "from_dlpack")));
  const PyRef result(check(PyObject_CallOneArg(function.get(), o)));
  return tensor_of(result.get());
}

static PyObject* f_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    if (function_state.mode_active()) [[unlikely]]
      if (PyObject* result = through_modes("tensor", args, n, kwnames)) return result;
    static const char* const positional[] = {"data"};
    const FactoryArguments a = parse_factory("tensor", args, n, kwnames, positional, 1);
    if (is_tensor(a.data) && show_warning)
      show_warning(
          "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
          "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).");
    const Device device = a.device ? *a.device : is_tensor(a.data) ? tensor_of(a.data).device() : Device{};
    if (exports_memory(a.data))
      return finish(ops::to_copy(tensor_of_memory(a.data), a.dtype, device, std::nullopt), a.requires_grad);
    return finish(tensor_from_data(a.data, a.dtype, device), a.requires_grad);
  });
}

static PyObject* f_as_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    if (function_state.mode_active()) [[unlikely]]
      if (PyObject* result = through_modes("as_tensor", args, n, kwnames)) return result;
    static const char* const positional[] = {"data", "dtype", "device"};
    const FactoryArguments a = parse_factory("as_tensor", args, n, kwnames, positional, 3);
    if (is_tensor(a.data)) {
      const Tensor& t = tensor_of(a.data);
      const bool same = (!a.dtype || *a.dtype == t.dtype()) && (!a.device || lies_on(t, *a.device));
      return same ? Py_NewRef(a.data) : wrap(ops::to(t, a.dtype, a.device, false, false, std::nullopt));
    }
    const Device device = a.device.value_or(Device{});
    if (is_ndarray(a.data)) {
      const Tensor borrowed = tensor_from_buffer(a.data);
      Tensor t = on_device(borrowed, a.dtype, device);
      if (t.is_same(borrowed)) warn_if_read_only(t, "NumPy array");
      return wrap(std::move(t));
    }
    if (exports_memory(a.data)) return wrap(on_device(tensor_of_memory(a.data), a.dtype, device));
    return wrap(lifted(tensor_from_data(a.data, a.dtype, device)));
  });
}

// NumPy's strings are str and bytes that also offer their characters as a buffer: no numbers.
static bool is_numpy_text(PyObject* o) {
  return (PyUnicode_Check(o) || PyBytes_Check(o)) && !PyUnicode_CheckExact(o) && !PyBytes_CheckExact(o);
}

// A capsule of DLPack, or the bytes of a storage or buffer as elements of the asked type; undefined for other
// objects.
static Tensor tensor_over_memory(PyObject* o, OptDType dtype) {
  const PyRef storage_type(check(PyObject_GetAttrString(core_module(), "StorageBase")));
  const int is_storage = PyObject_IsInstance(o, storage_type.get());
  check(is_storage);
  if (is_storage) {
    const PyRef empty(wrap(empty_tensor({0}, dtype.value_or(get_default_dtype()))));
    const PyRef result(check(PyObject_CallMethod(empty.get(), "set_", "O", o)));
    return tensor_of(result.get());
  }
  if (exports_memory(o)) return tensor_of_memory(o);
  const bool capsule = PyCapsule_CheckExact(o);
  if (!capsule && (!PyObject_CheckBuffer(o) || is_numpy_scalar(o) || is_numpy_text(o))) return {};
  PyRef function(check(PyObject_GetAttrString(core_module(), capsule ? "from_dlpack" : "frombuffer")));
  PyRef args(check(PyTuple_Pack(1, o))), kwargs(check(PyDict_New()));
  if (!capsule) {
    PyRef type(wrap(dtype.value_or(get_default_dtype())));
    if (PyDict_SetItemString(kwargs.get(), "dtype", type.get()) < 0) throw PythonError();
  }
  PyRef result(check(PyObject_Call(function.get(), args.get(), kwargs.get())));
  return tensor_of(result.get());
}

static PyObject* f_asarray(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    static const char* const positional[] = {"obj"};
    const FactoryArguments a = parse_factory("asarray", args, n, kwnames, positional, 1);
    Tensor t;
    bool shared = true;
    if (is_tensor(a.data))
      t = tensor_of(a.data);
    else if (PyObject_CheckBuffer(a.data) && is_ndarray(a.data))
      t = tensor_from_buffer(a.data);
    else if (Tensor over = tensor_over_memory(a.data, a.dtype); over.defined())
      t = std::move(over);
    else
      t = tensor_from_data(a.data, a.dtype, a.device.value_or(Device{})), shared = false;
    const Device device = a.device.value_or(t.device());
    const bool same = (!a.dtype || *a.dtype == t.dtype()) && lies_on(t, device);
    RL_CHECK_VALUE(a.copy != 0 || shared, "can't alias arbitrary sequence into a tensor.");
    RL_CHECK_VALUE(a.copy != 0 || same, "can't alias tensor with dtype '", dtype_name(t.dtype()),
                   "' into dtype '", dtype_name(a.dtype.value_or(t.dtype())), "'.");
    if (!same || (a.copy == 1 && shared)) t = ops::to_copy(t, a.dtype, device, std::nullopt);
    if (a.constant && requires_grad(t)) {
      if (is_leaf(t))
        set_requires_grad(t, false);
      else
        t = ops::detach(t);
    }
    return finish(std::move(t), a.requires_grad);
  });
}

static PyObject* f_is_tensor(PyObject*, PyObject* o) { return PyBool_FromLong(is_tensor(o)); }

template <class F>
static PyCFunction method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
static PyMethodDef functions[] = {
    {"tensor", method(f_tensor), METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False): a new tensor with a "
     "copy of the data."
     "\n\nArgs:\n    data (number, nested lists, array or Tensor): the elements.\n    dtype (dtype or None): "
     "their dtype; None follows the data.\n    device (device or None): where the result lies.\n    "
     "requires_grad (bool, default False): whether operations are recorded.\n    pin_memory (bool, default "
     "False): whether the result lies in page-locked memory.\n\nExample:\n    >>> torch.tensor([[1, 2], [3, "
     "4]])\n    tensor([[1, 2],\n            [3, 4]])"},
    {"as_tensor", method(f_as_tensor), METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None): a tensor that shares the data where that is possible."
     "\n\nArgs:\n    data (number, nested lists, array or Tensor): the elements.\n    dtype (dtype or None): "
     "their dtype; None follows the data.\n    device (device or None): where the result lies.\n\nExample:\n "
     "   >>> x = torch.ones(2)\n    >>> torch.as_tensor(x) is x\n    True"},
    {"asarray", method(f_asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)"},
    {"is_tensor", f_is_tensor, METH_O,
     "is_tensor($module, obj, /)\n--\n\nWhether the object is a tensor."
     "\n\nArgs:\n    obj (object): what is asked about.\n\nExample:\n    >>> torch.is_tensor(torch.ones(1)), "
     "torch.is_tensor(1.0)\n    (True, False)"},
    {}};

void init_factory(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
