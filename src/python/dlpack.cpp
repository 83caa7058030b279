// DLPack, both ways: versioned capsules where the other side asks for them, the old kind otherwise.
#include <cstring>
#include <memory>

#include "core/lazy_clone.h"
#include "core/sparse.h"
#include "ops/copy.h"
#include "python/parse.h"
#include "python/types.h"
#include "transform/level.h"

namespace rushlight::python {

// The structures of the standard (dlpack.h), version 1.0.
struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
constexpr int32_t kDLCPU = 1;
constexpr const char *kOld = "dltensor", *kNew = "dltensor_versioned", *kUsedOld = "used_dltensor",
                     *kUsedNew = "used_dltensor_versioned";

// --- out

enum Code : uint8_t { kInt, kUInt, kFloat, kOpaque, kBfloat, kComplex, kBool };

static DLDataType data_type(DType t) {
  const auto bits = static_cast<uint8_t>(8 * element_size(t));
  RL_CHECK_AS(Value, !is_float8(t), "to_dlpack: ", dtype_name(t), " has no type in this version of DLPack");
  if (t == DType::Bool) return {kBool, 8, 1};
  if (t == DType::BFloat16) return {kBfloat, 16, 1};
  if (is_complex(t)) return {kComplex, bits, 1};
  if (is_floating(t)) return {kFloat, bits, 1};
  return {is_signed(t) ? kInt : kUInt, bits, 1};
}

template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  Dims shape, strides;
};

template <class Managed>
static Managed* make_managed(const Tensor& t) {
  auto owner = std::make_unique<Exported<Managed>>();
  owner->tensor = t;
  owner->shape = t->sizes;
  owner->strides = t->strides;
  DLTensor& d = owner->managed.dl_tensor;
  check_memory(t);
  d.data = t.data_ptr();
  d.device = {kDLCPU, 0};
  d.ndim = static_cast<int32_t>(t.dim());
  d.dtype = data_type(t.dtype());
  d.shape = owner->shape.data();
  d.strides = owner->strides.data();
  owner->managed.manager_ctx = owner.get();
  owner->managed.deleter = [](Managed* m) { delete static_cast<Exported<Managed>*>(m->manager_ctx); };
  if (t->storage) t->storage->forbid_resize();
  return &owner.release()->managed;
}

// A capsule that nobody took still owns the tensor.
template <class Managed>
static void drop_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (name && (std::strcmp(name, kOld) == 0 || std::strcmp(name, kNew) == 0)) {
    auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    if (m && m->deleter) m->deleter(m);
  }
}

static bool wants_versioned(PyObject* max_version) {
  if (max_version == Py_None || !PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) < 1)
    return false;
  return to_int(PyTuple_GET_ITEM(max_version, 0)) >= 1;
}

// __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
static PyObject* m_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", const_cast<char**>(names), &stream, &max_version,
                                   &device, &copy))
    return nullptr;
  return guard([&]() -> PyObject* {
    Tensor t = tensor_of(self);
    if (stream != Py_None && !PyLong_Check(stream))
      throw_python(PyExc_TypeError, "stream must be ``int`` or ``none``");
    if (layout_of(t) != Layout::Strided)
      throw_python(PyExc_BufferError, "Can't export tensors with layout other than torch.strided");
    if (is_special(t.dtype()))
      throw_python(PyExc_BufferError, str("Can't export tensors of ", t.dtype(), " through DLPack"));
    if (t->flags & kAutograd)
      throw_python(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    if (!t.is_cpu())
      throw_python(PyExc_BufferError,
                   str("Can't export a tensor on ", to_string(t.device()), " through DLPack"));
    const bool copied = copy == Py_True;
    if (copied) t = ops::to_copy(t, std::nullopt, std::nullopt, std::nullopt);
    if (t->storage) expose_contents(*t->storage);
    const bool read_only = t->storage && t->storage->read_only();
    if (wants_versioned(max_version)) {
      auto* m = make_managed<DLManagedTensorVersioned>(t);
      m->version = {1, 0};
      m->flags = (read_only ? kReadOnly : 0) | (copied ? kIsCopied : 0);
      return check(PyCapsule_New(m, kNew, drop_capsule<DLManagedTensorVersioned>));
    }
    if (read_only)
      throw_python(PyExc_BufferError,
                   "This tensor's memory is read-only, which only versioned DLPack capsules can say");
    return check(PyCapsule_New(make_managed<DLManagedTensor>(t), kOld, drop_capsule<DLManagedTensor>));
  });
}

static PyObject* m_dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", kDLCPU, 0); }

// --- in

static DType dtype_of(DLDataType d) {
  RL_CHECK_AS(Value, d.lanes == 1, "from_dlpack: vector types (", static_cast<int>(d.lanes),
              " lanes) are not supported");
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    if (is_float8(t)) continue;
    const DLDataType own = data_type(t);
    if (own.code == d.code && own.bits == d.bits) return t;
  }
  RL_FAIL_AS(Value, "from_dlpack: unsupported type, code ", static_cast<int>(d.code), " with ",
             static_cast<int>(d.bits), " bits");
}

template <class Managed>
static Tensor import(Managed* m, bool read_only) {
  const DLTensor& d = m->dl_tensor;
  RL_CHECK(d.device.device_type == kDLCPU, "from_dlpack: this build takes CPU memory only, got device type ",
           d.device.device_type);
  RL_CHECK_VALUE(d.ndim >= 0 && d.ndim <= 64, "from_dlpack: bad number of dimensions ", d.ndim);
  const DType dtype = dtype_of(d.dtype);
  const auto item = static_cast<int64_t>(element_size(dtype));
  Dims sizes(d.shape, static_cast<size_t>(d.ndim));
  Dims strides = d.strides ? Dims(d.strides, static_cast<size_t>(d.ndim)) : contiguous_strides(sizes);
  int64_t low = 0, high = 0;
  const int64_t numel = checked_numel(sizes);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) (strides[i] < 0 ? low : high) += (sizes[i] - 1) * strides[i];
  auto release = [](void* context, void*, size_t) {
    auto* managed = static_cast<Managed*>(context);
    if (managed->deleter) managed->deleter(managed);
  };
  char* data = static_cast<char*>(d.data) + d.byte_offset + low * item;
  const size_t bytes = numel ? static_cast<size_t>((high - low + 1) * item) : 0;
  Storage storage = StorageImpl::wrap(data, bytes, Device{}, release, m, read_only);
  Tensor t(make_ref<TensorImpl>(std::move(storage), numel ? -low : 0, dtype, Device{}));
  t->set_layout(sizes, strides);
  return t;
}

static Tensor take_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kNew)) {
    auto* m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kNew));
    RL_CHECK(m->version.major == 1, "from_dlpack: DLPack version ", m->version.major, " is not supported");
    Tensor t = import(m, m->flags & kReadOnly);
    check(PyCapsule_SetName(capsule, kUsedNew));
    return t;
  }
  if (!PyCapsule_IsValid(capsule, kOld))
    RL_FAIL(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so "
        "you might have already constructed a tensor from it once.");
  Tensor t = import(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOld)), false);
  check(PyCapsule_SetName(capsule, kUsedOld));
  return t;
}

static PyObject* ask_for_capsule(PyObject* object, PyObject* copy) {
  PyRef method(check(PyObject_GetAttrString(object, "__dlpack__")));
  PyRef none(PyTuple_New(0));
  PyRef keywords(copy == Py_None ? Py_BuildValue("{s:(ii)}", "max_version", 1, 0)
                                 : Py_BuildValue("{s:(ii),s:O}", "max_version", 1, 0, "copy", copy));
  if (PyObject* capsule = PyObject_Call(method.get(), none.get(), keywords.get())) return capsule;
  if (!PyErr_ExceptionMatches(PyExc_TypeError) || copy != Py_None) throw PythonError();
  PyErr_Clear();  // a producer from before max_version
  return check(PyObject_CallNoArgs(method.get()));
}

// from_dlpack(ext_tensor, *, device=None, copy=None)
static PyObject* f_from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"ext_tensor", "device", "copy", nullptr};
  PyObject *object, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO", const_cast<char**>(names), &object, &device, &copy))
    return nullptr;
  return guard([&] {
    PyRef capsule =
        PyCapsule_CheckExact(object) ? PyRef::borrow(object) : PyRef(ask_for_capsule(object, copy));
    Tensor t = take_capsule(capsule.get());
    if (device != Py_None) t = ops::to(t, std::nullopt, parse_device(device), false, false, std::nullopt);
    return wrap(std::move(t));
  });
}
static PyObject* f_to_dlpack(PyObject*, PyObject* tensor) {
  PyRef none(PyTuple_New(0));
  return is_tensor(tensor) ? m_dlpack(tensor, none.get(), nullptr)
                           : PyErr_Format(PyExc_TypeError, "to_dlpack: expected a Tensor, got %s",
                                          Py_TYPE(tensor)->tp_name);
}

template <class F>
static PyCFunction method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
static PyMethodDef tensor_methods[] = {
    {"__dlpack__", method(m_dlpack), METH_VARARGS | METH_KEYWORDS,
     "A capsule that shares this tensor's memory."},
    {"__dlpack_device__", m_dlpack_device, METH_NOARGS, "(device type, device number)"},
    {}};
static PyMethodDef functions[] = {{"from_dlpack", method(f_from_dlpack), METH_VARARGS | METH_KEYWORDS,
                                   "from_dlpack(ext_tensor, *, device=None, copy=None): a tensor on the "
                                   "memory of another library's array."},
                                  {"_to_dlpack", f_to_dlpack, METH_O, nullptr},
                                  {}};

void init_dlpack(PyObject* module) {
  add_tensor_members(tensor_methods, nullptr);
  add_functions(module, functions);
}

}  // namespace rushlight::python
