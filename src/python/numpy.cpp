// NumPy and the buffer protocol, both ways, without copying. NumPy's C functions are looked up when an array
// is first wanted; `import rushlight` does not import it.
#include <array>
#include <atomic>
#include <cstring>
#include <memory>

#include "autograd/meta.h"
#include "core/lazy_clone.h"
#include "core/pending.h"
#include "dispatch/warning.h"
#include "ops/copy.h"
#include "ops/sparse.h"
#include "ops/view.h"
#include "python/factory.h"
#include "python/types.h"
#include "transform/level.h"

namespace rushlight::python {

// --- NumPy's function table: positions that its ABI has kept since version 1.7

struct NumpyApi {
  PyTypeObject* array_type;           // 2
  PyObject* (*descr_from_type)(int);  // 45
  PyObject* (*new_from_descr)(PyTypeObject*, PyObject*, int, const intptr_t*, const intptr_t*, void*, int,
                              PyObject*);        // 94
  int (*set_base_object)(PyObject*, PyObject*);  // 282
};

static PyObject* import_table() {
  for (const char* name : {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
    PyRef module(PyImport_ImportModule(name));
    if (module) return check(PyObject_GetAttrString(module.get(), "_ARRAY_API"));
    PyErr_Clear();
  }
  throw_python(PyExc_RuntimeError, "Numpy is not available: install it with 'pip install numpy'");
}

static const NumpyApi& numpy() {
  static NumpyApi api{};
  static std::atomic<bool> filled{false};  // several threads may fill it in, all with the same
  if (filled.load(std::memory_order_acquire)) return api;
  PyRef capsule(import_table());
  void** table = static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr));
  if (!table) throw PythonError();
  api.descr_from_type = reinterpret_cast<decltype(api.descr_from_type)>(table[45]);
  api.new_from_descr = reinterpret_cast<decltype(api.new_from_descr)>(table[94]);
  api.set_base_object = reinterpret_cast<decltype(api.set_base_object)>(table[282]);
  api.array_type = static_cast<PyTypeObject*>(table[2]);
  filled.store(true, std::memory_order_release);
  return api;
}

struct ElementCode {
  DType dtype;
  int numpy;           // NumPy's type number
  const char* format;  // of the buffer protocol
};
static const ElementCode codes[] = {
    {DType::Bool, 0, "?"},        {DType::UInt8, 2, "B"},       {DType::Int8, 1, "b"},
    {DType::Int16, 3, "h"},       {DType::Int32, 5, "i"},       {DType::Int64, 7, "l"},
    {DType::UInt16, 4, "H"},      {DType::UInt32, 6, "I"},      {DType::UInt64, 8, "L"},
    {DType::Float16, 23, "e"},    {DType::Float32, 11, "f"},    {DType::Float64, 12, "d"},
    {DType::Complex64, 14, "Zf"}, {DType::Complex128, 15, "Zd"}};

static const ElementCode* code_of(DType t) {
  static const auto by_dtype = [] {
    std::array<const ElementCode*, 64> table{};
    for (const ElementCode& c : codes) table[static_cast<size_t>(c.dtype)] = &c;
    return table;
  }();
  return by_dtype[static_cast<size_t>(t) % by_dtype.size()];
}

// "<f8", "l", "Zd" ... with native byte order.
static OptDType dtype_of_format(const char* format, Py_ssize_t itemsize) {
  if (!format) return DType::UInt8;
  if (*format == '@' || *format == '=' || *format == '<' || *format == '|') ++format;
  const std::string_view f = format;
  if (f == "?") return DType::Bool;
  if (f == "e") return DType::Float16;
  if (f == "f") return DType::Float32;
  if (f == "d") return DType::Float64;
  if (f == "Zf") return DType::Complex64;
  if (f == "Zd") return DType::Complex128;
  if (f.size() != 1) return std::nullopt;
  static constexpr DType signed_types[] = {DType::Int8, DType::Int16, DType::Int32, DType::Int64};
  static constexpr DType unsigned_types[] = {DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64};
  const int width = itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : itemsize == 8 ? 3 : -1;
  if (width < 0) return std::nullopt;
  if (std::strchr("bhilqn", f[0])) return signed_types[width];
  if (std::strchr("BHILQNc", f[0])) return unsigned_types[width];
  return std::nullopt;
}

// --- tensor -> array

[[gnu::cold, gnu::noinline]] static void check_plain(const Tensor& t) {
  RL_CHECK_TYPE(!is_sparse(t), "can't convert ", layout_text(layout_of(t)),
                " layout tensor to numpy. Use Tensor.to_dense() first.");
  const bool conjugate = t->flags & kPendingConj;
  RL_CHECK(!is_pending(t), "Can't call numpy() on Tensor that has ", conjugate ? "conjugate" : "negative",
           " bit set. Use tensor.resolve_", conjugate ? "conj" : "neg", "().numpy() instead.");
}

static void check_exportable(const Tensor& t) {
  RL_CHECK(!GradMode::enabled() || !t.requires_grad_flag() || !(t->flags & kAutograd),
           "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  RL_CHECK_TYPE(t.is_cpu(), "can't convert ", to_string(t.device()),
                " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  if (t->flags & kSpecialElements) [[unlikely]]
    check_plain(t);
  RL_CHECK_TYPE(code_of(t.dtype()), "Got unsupported ScalarType ", legacy_name(t.dtype()));
}

static PyObject* to_array(PyObject* self, const Tensor& t) {
  check_exportable(t);
  const NumpyApi& api = numpy();
  const auto item = static_cast<intptr_t>(t.itemsize());
  const auto n = static_cast<size_t>(t.dim());
  intptr_t strides[64];
  RL_CHECK(n <= 64, "numpy(): arrays have at most 64 dimensions, this tensor has ", n);
  const bool contiguous = t.is_contiguous();  // then NumPy need not look for it
  if (!contiguous)
    for (size_t i = 0; i < n; ++i) strides[i] = t->strides[i] * item;
  constexpr int kWriteable = 0x0400;
  static char nothing = 0;  // NumPy would allocate for a null pointer
  RL_CHECK(!(t->flags & kPythonDispatch) || t.has_data() || is_sparse(t),
           ".numpy() is not supported for tensor subclasses.");
  check_memory(t);
  if (t->storage) expose_contents(*t->storage);
  void* data = t.data_ptr() ? t.data_ptr() : &nothing;
  const int flags = t->storage && t->storage->read_only() ? 0 : kWriteable;
  PyRef array(
      check(api.new_from_descr(api.array_type, check(api.descr_from_type(code_of(t.dtype())->numpy)),
                               static_cast<int>(n), reinterpret_cast<const intptr_t*>(t->sizes.data()),
                               contiguous ? nullptr : strides, data, flags, nullptr)));
  if (t->storage) t->storage->forbid_resize();  // the array keeps the address
  check(api.set_base_object(array.get(), Py_NewRef(self)));
  return array.release();
}

// What numpy(force=True) shows: outside any graph, on the CPU, nothing pending.
[[gnu::cold, gnu::noinline]] static Tensor plain_copy(const Tensor& t) {
  const Tensor here = ops::to(ops::detach(t), std::nullopt, Device{}, false, false, std::nullopt);
  return is_pending(here) ? ops::clone(here) : here;
}

// numpy(*, force=False)
static PyObject* m_numpy(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&] {
    const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (n + keywords == 0) return to_array(self, tensor_of(self));
    if (n > 0 || keywords > 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "force") != 0)
      throw_python(PyExc_TypeError, "numpy() takes one optional keyword argument, force");
    if (!to_bool(args[0])) return to_array(self, tensor_of(self));
    PyRef plain(wrap(plain_copy(tensor_of(self))));
    return to_array(plain.get(), tensor_of(plain.get()));
  });
}

// __array__(dtype=None, copy=None)
static PyObject* m_array(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", const_cast<char**>(names), &dtype, &copy))
    return nullptr;
  return guard([&]() -> PyObject* {
    PyRef array(to_array(self, tensor_of(self)));
    if (dtype != Py_None) {
      PyRef keywords(Py_BuildValue("{s:O}", "copy", copy == Py_True ? Py_True : Py_False));
      PyRef positional(Py_BuildValue("(O)", dtype));
      PyRef astype(check(PyObject_GetAttrString(array.get(), "astype")));
      return check(PyObject_Call(astype.get(), positional.get(), keywords.get()));
    }
    if (copy == Py_True) return check(PyObject_CallMethod(array.get(), "copy", nullptr));
    return array.release();
  });
}

// What NumPy calls on results of its functions over tensors. Truth values come as uint8, as PyTorch's
// programs expect.
static PyObject* m_array_wrap(PyObject*, PyObject* args) {
  if (PyTuple_GET_SIZE(args) < 1) {
    PyErr_SetString(PyExc_TypeError, "__array_wrap__ needs an array");
    return nullptr;
  }
  return guard([&]() -> PyObject* {
    PyRef array = PyRef::borrow(PyTuple_GET_ITEM(args, 0));
    if (!is_ndarray(array.get())) return wrap(tensor_from_data(array.get(), std::nullopt));
    const Tensor result = tensor_from_buffer(array.get());
    return wrap(result.dtype() == DType::Bool
                    ? ops::to(result, DType::UInt8, std::nullopt, false, false, std::nullopt)
                    : result);
  });
}

// --- the buffer protocol

struct BufferShape {
  Dims sizes, strides;
};
static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));

static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const Tensor& t = tensor_of(self);
  const ElementCode* code = code_of(t.dtype());
  const char* problem = nullptr;
  try {
    if (t->storage) expose_contents(*t->storage);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return -1;
  }
  const bool read_only = t->storage && t->storage->read_only();
  if (!t.is_cpu())
    problem = "the tensor's memory is not on the CPU; use .cpu()";
  else if (is_sparse(t))
    problem = "the tensor is sparse; use .to_dense()";
  else if (!code)
    problem = "the tensor's dtype has no equivalent in the buffer protocol";
  else if (t->flags & kAutograd)
    problem = "the tensor requires grad; use .detach()";
  else if ((flags & PyBUF_WRITABLE) && read_only)
    problem = "the tensor's memory is read-only";
  else if (!(flags & PyBUF_STRIDES) && !t.is_contiguous())
    problem = "the tensor is not contiguous";
  if (is_pending(t))
    problem = "its conjugation or negation is pending; use .resolve_conj() or .resolve_neg()";
  if (t->wrapping && !t->storage) problem = "the tensor has no memory: it is mapped over by vmap";
  if (problem) {
    PyErr_SetString(PyExc_BufferError, problem);
    return -1;
  }
  std::unique_ptr<BufferShape> shape;
  try {
    view->buf = t.data_ptr();
    shape = std::make_unique<BufferShape>();
    shape->sizes = t->sizes;
    shape->strides = t->strides;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return -1;
  } catch (const std::exception& e) {  // a fake tensor has no memory, nor has one whose storage was emptied
    PyErr_SetString(PyExc_BufferError, e.what());
    return -1;
  }
  for (int64_t& s : shape->strides) s *= static_cast<int64_t>(t.itemsize());
  view->len = static_cast<Py_ssize_t>(t.nbytes());
  view->itemsize = static_cast<Py_ssize_t>(t.itemsize());
  view->readonly = read_only;
  view->ndim = static_cast<int>(t.dim());
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(code->format) : nullptr;
  view->shape = flags & PyBUF_ND ? reinterpret_cast<Py_ssize_t*>(shape->sizes.data()) : nullptr;
  view->strides = flags & PyBUF_STRIDES ? reinterpret_cast<Py_ssize_t*>(shape->strides.data()) : nullptr;
  view->suboffsets = nullptr;
  view->internal = shape.release();
  view->obj = Py_NewRef(self);
  if (t->storage) t->storage->forbid_resize();
  return 0;
}
static void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<BufferShape*>(view->internal); }
PyBufferProcs tensor_buffer = {.bf_getbuffer = get_buffer, .bf_releasebuffer = release_buffer};

// --- array -> tensor

bool is_ndarray(PyObject* o) {
  if (std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0) return true;
  const char* name = Py_TYPE(o)->tp_name;
  if (PyFloat_Check(o) || PyLong_Check(o) || is_tensor(o) || PyList_Check(o) || PyTuple_Check(o))
    return false;
  for (PyTypeObject* t = Py_TYPE(o)->tp_base; t; t = t->tp_base)
    if (std::strcmp(t->tp_name, "numpy.ndarray") == 0) return true;
  (void)name;
  return false;
}

void release_object(void* context, void*, size_t) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  Py_DECREF(static_cast<PyObject*>(context));
}

class BufferView {
 public:
  explicit BufferView(PyObject* o) {
    if (PyObject_GetBuffer(o, &view_, PyBUF_STRIDES | PyBUF_FORMAT) < 0) throw PythonError();
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView&) = delete;
  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_;
};

[[noreturn]] static void throw_unsupported(PyObject* object) {
  PyErr_Clear();
  PyRef dtype(PyObject_GetAttrString(object, "dtype"));
  PyRef type(dtype ? PyObject_GetAttrString(dtype.get(), "type") : nullptr);
  PyRef text(type ? PyObject_GetAttrString(type.get(), "__name__") : nullptr);
  PyErr_Clear();
  const std::string_view name = text ? string_view(text.get()) : "unknown";
  throw_python(PyExc_TypeError,
               str("can't convert np.ndarray of type numpy.", name,
                   ". The only supported types are: float64, float32, float16, complex64, complex128, int64, "
                   "int32, int16, int8, uint64, uint32, uint16, uint8, and bool."));
}

// Kernels read elements at aligned addresses only; what deserializers cut out of a message may lie anywhere.
static bool is_aligned(const Py_buffer& b) {
  const auto item = static_cast<uintptr_t>(b.itemsize);
  return reinterpret_cast<uintptr_t>(b.buf) % (item > 8 ? item / 2 : item) == 0;
}
static Tensor copy_memory(const Py_buffer& b, DType dtype) {
  Tensor t = empty_tensor(Dims(b.shape, static_cast<size_t>(b.ndim)), dtype);
  auto* out = static_cast<char*>(t->data());
  if (PyBuffer_ToContiguous(out, const_cast<Py_buffer*>(&b), b.len, 'C') < 0) throw PythonError();
  return t;
}

// The storage spans from the lowest to the highest address that the strides reach.
static Tensor borrow_memory(PyObject* owner, const Py_buffer& b, DType dtype) {
  const auto item = static_cast<int64_t>(b.itemsize);
  Dims sizes, strides;
  int64_t low = 0, high = item, numel = 1;
  for (int i = 0; i < b.ndim; ++i) {
    RL_CHECK_VALUE(b.strides[i] % item == 0 || b.shape[i] <= 1,
                   "given numpy array strides not a multiple of the element byte size. Copy the numpy array "
                   "to reallocate the memory.");
    sizes.push_back(b.shape[i]);
    strides.push_back(b.strides[i] / item);
    numel *= b.shape[i];
    if (b.shape[i] > 1) (b.strides[i] < 0 ? low : high) += (b.shape[i] - 1) * b.strides[i];
  }
  if (numel == 0) return empty_tensor(sizes, dtype);
  if (!is_aligned(b)) return copy_memory(b, dtype);
  Storage storage = StorageImpl::wrap(static_cast<char*>(b.buf) + low, static_cast<size_t>(high - low),
                                      Device{}, release_object, Py_NewRef(owner), b.readonly);
  Tensor t(make_ref<TensorImpl>(std::move(storage), -low / item, dtype, Device{}));
  t->set_layout(sizes, strides);
  return t;
}

Tensor tensor_from_buffer(PyObject* object) {
  Py_buffer raw;
  if (PyObject_GetBuffer(object, &raw, PyBUF_STRIDES | PyBUF_FORMAT) < 0) throw_unsupported(object);
  PyBuffer_Release(&raw);
  BufferView view(object);
  const OptDType dtype = dtype_of_format(view->format, view->itemsize);
  if (!dtype) {
    RL_CHECK_VALUE(!view->format || view->format[0] != '>',
                   "given numpy array has byte order different from the native byte order. Conversion "
                   "between byte orders is currently not supported.");
    throw_unsupported(object);
  }
  return borrow_memory(object, *view.operator->(), *dtype);
}

OptDType dtype_of_array(PyObject* array) {
  Py_buffer b;
  if (PyObject_GetBuffer(array, &b, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    PyErr_Clear();
    return {};
  }
  const OptDType dtype = dtype_of_format(b.format, b.itemsize);
  PyBuffer_Release(&b);
  return dtype;
}

void warn_if_read_only(const Tensor& t, std::string_view what) {
  static std::atomic<bool> warned;
  if (!t->storage || !t->storage->read_only() || !warns_now(warned)) return;
  show_warning(
      str("The given ", what,
          " is not writable, and writing to non-writable tensors is refused. You may want to copy it to "
          "protect its data, or make it writable, before converting it to a tensor. This type of "
          "warning will be suppressed for the rest of this program."));
}

static PyObject* f_from_numpy(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    if (!is_ndarray(o)) throw_python(PyExc_TypeError, str("expected np.ndarray (got ", type_name(o), ")"));
    Tensor t = tensor_from_buffer(o);
    warn_if_read_only(t, "NumPy array");
    return wrap(std::move(t));
  });
}

// frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)
static PyObject* f_frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
  PyObject *buffer, *type = nullptr;
  Py_ssize_t count = -1, offset = 0;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Onnp", const_cast<char**>(names), &buffer, &type, &count,
                                   &offset, &requires_grad))
    return nullptr;
  return guard([&] {
    if (!type)
      throw_python(PyExc_TypeError, "frombuffer() missing 1 required keyword-only argument: 'dtype'");
    if (!is_dtype_like(type))
      throw_python(PyExc_TypeError,
                   "frombuffer(): argument 'dtype' must be torch.dtype, not " + type_name(type));
    const DType dtype = parse_dtype(type);
    if (!PyObject_CheckBuffer(buffer))
      throw_python(PyExc_ValueError, "object does not implement Python buffer protocol.");
    Py_buffer raw;
    check(PyObject_GetBuffer(buffer, &raw, PyBUF_SIMPLE));
    const Py_ssize_t bytes = raw.len, item = static_cast<Py_ssize_t>(element_size(dtype));
    char* start = static_cast<char*>(raw.buf);
    const bool read_only = raw.readonly;
    PyBuffer_Release(&raw);
    RL_CHECK_VALUE(bytes > 0 && count != 0, "both buffer length (", static_cast<int64_t>(bytes),
                   ") and count (", static_cast<int64_t>(count), ") must not be 0");
    RL_CHECK_VALUE(offset >= 0 && offset < bytes, "offset (", static_cast<int64_t>(offset),
                   " bytes) must be non-negative and no greater than buffer length (",
                   static_cast<int64_t>(bytes), " bytes) minus 1");
    RL_CHECK_VALUE(count > 0 || (bytes - offset) % item == 0, "buffer length (",
                   static_cast<int64_t>(bytes - offset), " bytes) after offset (",
                   static_cast<int64_t>(offset), " bytes) must be a multiple of element size (",
                   static_cast<int64_t>(item), ")");
    const Py_ssize_t n = count < 0 ? (bytes - offset) / item : count;
    RL_CHECK_VALUE(n <= (bytes - offset) / item, "requested buffer length (", static_cast<int64_t>(n), " * ",
                   static_cast<int64_t>(item), " bytes) after offset (", static_cast<int64_t>(offset),
                   " bytes) must not be greater than actual buffer length (", static_cast<int64_t>(bytes),
                   " bytes)");
    // A memoryview as owner keeps the export, and with it the memory, in place.
    PyRef owner(check(PyMemoryView_FromObject(buffer)));
    Storage s = StorageImpl::wrap(start + offset, static_cast<size_t>(n * item), Device{}, release_object,
                                  owner.release(), read_only);
    Tensor t(make_ref<TensorImpl>(std::move(s), 0, dtype, Device{}));
    t->set_contiguous({static_cast<int64_t>(n)});
    warn_if_read_only(t, "buffer");
    if (requires_grad) set_requires_grad(t, true);
    return wrap(std::move(t));
  });
}

template <class F>
static PyCFunction method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
static PyMethodDef tensor_methods[] = {
    {"numpy", method(m_numpy), METH_FASTCALL | METH_KEYWORDS,
     "numpy(*, force=False): an array on the same memory."
     "\n\nArgs:\n    force (bool, default False): whether what has no memory for NumPy is copied: other "
     "devices, gradients.\n\nExample:\n    >>> torch.ones(2).numpy().shape\n    (2,)"},
    {"__array__", method(m_array), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__array_wrap__", m_array_wrap, METH_VARARGS, nullptr},
    {}};
static PyMethodDef functions[] = {
    {"from_numpy", f_from_numpy, METH_O,
     "from_numpy($module, ndarray, /)\n--\n\nA tensor on the array's memory."
     "\n\nArgs:\n    ndarray (numpy.ndarray): the array.\n\nExample:\n    >>> import numpy\n    >>> "
     "torch.from_numpy(numpy.arange(3)).shape\n    torch.Size([3])"},
    {"frombuffer", method(f_frombuffer), METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False): a tensor on an object's bytes."},
    {}};

void init_numpy(PyObject* module) {
  add_tensor_members(tensor_methods, nullptr);
  add_tensor_member("__array_priority__", PyRef(PyLong_FromLong(1000)).get());
  add_functions(module, functions);
}

}  // namespace rushlight::python
