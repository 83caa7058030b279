// DLPack, both ways: versioned capsules where the other side asks for them, the old kind otherwise.
#include "python/dlpack.h"

#include <cstring>
#include <memory>

#include "core/lazy_clone.h"
#include "core/pending.h"
#include "core/sparse.h"
#include "ops/copy.h"
#include "python/cuda.h"
#include "python/parse.h"
#include "python/types.h"
#include "transform/level.h"

namespace rushlight::python {

constexpr const char *kOld = "dltensor", *kNew = "dltensor_versioned", *kUsedOld = "used_dltensor",
                     *kUsedNew = "used_dltensor_versioned";

// --- out

enum Code : uint8_t { kInt, kUInt, kFloat, kOpaque, kBfloat, kComplex, kBool };

// Formats that have a code each.
struct Narrow {
  DType type;
  DLDataType data_type;
};
constexpr Narrow kNarrow[] = {
    {DType::Float8_e4m3fn, {10, 8, 1}},  {DType::Float8_e4m3fnuz, {11, 8, 1}},
    {DType::Float8_e5m2, {12, 8, 1}},    {DType::Float8_e5m2fnuz, {13, 8, 1}},
    {DType::Float8_e8m0fnu, {14, 8, 1}}, {DType::Float4_e2m1fn_x2, {17, 4, 2}},
};

DLDataType dl_type_of(DType t) {
  const auto bits = static_cast<uint8_t>(8 * element_size(t));
  for (const Narrow& narrow : kNarrow)
    if (narrow.type == t) return narrow.data_type;
  if (is_special(t)) throw_python(PyExc_BufferError, str("Can't export tensors of ", t, " through DLPack"));
  if (t == DType::Bool) return {kBool, 8, 1};
  if (t == DType::BFloat16) return {kBfloat, 16, 1};
  if (is_complex(t)) return {kComplex, bits, 1};
  if (is_floating(t)) return {kFloat, bits, 1};
  return {is_signed(t) ? kInt : kUInt, bits, 1};
}

DLDevice dl_device_of(Device device) {
  if (device.is_cuda()) return {kDLCUDA, device.index()};
  RL_CHECK_VALUE(device.is_cpu(), "Unknown device type ", device_type_name(device.type()), " for Dlpack");
  return {kDLCPU, 0};
}
Device device_of(DLDevice device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      return {};
    case kDLCUDA:
    case kDLCUDAManaged:
      return {DeviceType::CUDA, device_number(device.device_id)};
    default:
      RL_FAIL("from_dlpack: unsupported device type ", device.device_type);
  }
}

void check_exported(const Tensor& t) {
  if (layout_of(t) != Layout::Strided)
    throw_python(PyExc_BufferError, "Can't export tensors with layout other than torch.strided");
  if (is_pending(t))
    throw_python(PyExc_BufferError, t->flags & kPendingConj
                                        ? "Can't export tensors with the conjugate bit set"
                                        : "Can't export tensors with the negative bit set");
  if (t.device().is_meta()) throw_python(PyExc_BufferError, "Can't export a tensor on meta through DLPack");
}

void describe(const Tensor& t, DLTensor& d) {
  check_memory(t);
  d.data = t.data_ptr();
  d.device = dl_device_of(t.device());
  d.ndim = static_cast<int32_t>(t.dim());
  d.dtype = dl_type_of(t.dtype());
  d.shape = t->sizes.data();
  d.strides = t->strides.data();
  d.byte_offset = 0;
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
  describe(t, d);
  d.shape = owner->shape.data();
  d.strides = owner->strides.data();
  owner->managed.manager_ctx = owner.get();
  owner->managed.deleter = [](Managed* m) { delete static_cast<Exported<Managed>*>(m->manager_ctx); };
  if (t->storage) t->storage->forbid_resize();
  return &owner.release()->managed;
}

static bool is_read_only(const Tensor& t) { return t->storage && t->storage->read_only(); }

DLManagedTensorVersioned* export_versioned(const Tensor& t, bool copied) {
  if (t->storage) expose_contents(*t->storage);
  auto* m = make_managed<DLManagedTensorVersioned>(t);
  m->version = kDLVersion;
  m->flags = (is_read_only(t) ? kReadOnly : 0) | (copied ? kIsCopied : 0);
  return m;
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

// On the device that the reader wants, if that is another one, or copied where it asks for that.
static Tensor moved(const Tensor& t, PyObject* dl_device, PyObject* copy) {
  Device to = t.device();
  if (dl_device != Py_None) {
    DLDevice wanted{};
    if (!PyTuple_Check(dl_device) ||
        !PyArg_ParseTuple(dl_device, "ii", &wanted.device_type, &wanted.device_id)) {
      PyErr_Clear();
      throw_python(PyExc_TypeError, "dl_device must be None or a tuple of a device's type and number");
    }
    to = device_of(wanted);
  }
  if (to != t.device() && copy == Py_False)
    throw_python(PyExc_ValueError, str("cannot move (i.e. copy) tensor from ", to_string(t.device()), " to ",
                                       to_string(to), " without copying."));
  if (to == t.device() && copy != Py_True) return t;
  return ops::to_copy(t, std::nullopt, to, std::nullopt);
}

// The stream that waits for what the tensor holds, by the array API's numbers: 1 is the default one, -1 none.
static void show_on_stream(const Tensor& t, PyObject* stream) {
  if (!t.device().is_cuda()) return;
  const int device = t.device().index();
  const int64_t number = stream == Py_None ? 1 : to_int(stream);
  if (number == -1) return;
  if (number == 2) throw_python(PyExc_BufferError, "per-thread default stream is not supported.");
  if (number == 0 || number < -1)
    throw_python(PyExc_BufferError, str("unsupported stream on CUDA: ", number, "."));
  cuda().follow(stream_of_protocol(device, number), cuda().current_stream(device));
}

// __dlpack__(*, stream=-1, max_version=None, dl_device=None, copy=None)
static PyObject* m_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = nullptr, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", const_cast<char**>(names), &stream, &max_version,
                                   &device, &copy))
    return nullptr;
  return guard([&]() -> PyObject* {
    Tensor t = tensor_of(self);
    if (stream && stream != Py_None && !PyLong_CheckExact(stream))
      throw_python(PyExc_TypeError, "stream must be ``int`` or ``none``");
    if (t->flags & kAutograd)
      throw_python(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    check_exported(t);
    if (t.device().is_cuda() && t.device().index() != cuda().current_device())
      throw_python(PyExc_BufferError, str("Can't export tensors on a different CUDA device index. Expected: ",
                                          static_cast<int>(t.device().index()),
                                          ". Current device: ", cuda().current_device(), "."));
    const Tensor given = t;
    t = moved(given, device, copy);
    const bool copied = !t.is_same(given);
    if (stream) show_on_stream(t, stream);
    if (wants_versioned(max_version))
      return check(PyCapsule_New(export_versioned(t, copied), kNew, drop_capsule<DLManagedTensorVersioned>));
    if (t->storage) expose_contents(*t->storage);
    if (is_read_only(t))
      throw_python(PyExc_BufferError,
                   "This tensor's memory is read-only, which only versioned DLPack capsules can say");
    return check(PyCapsule_New(make_managed<DLManagedTensor>(t), kOld, drop_capsule<DLManagedTensor>));
  });
}

static PyObject* m_dlpack_device(PyObject* self, PyObject*) {
  return guard([&] {
    const DLDevice device = dl_device_of(tensor_of(self).device());
    return check(Py_BuildValue("(ii)", device.device_type, device.device_id));
  });
}

// --- in

DType dtype_of(DLDataType d) {
  const auto same = [&](DLDataType own) {
    return own.code == d.code && own.bits == d.bits && own.lanes == d.lanes;
  };
  for (const Narrow& narrow : kNarrow)
    if (same(narrow.data_type)) return narrow.type;
  RL_CHECK_AS(Value, d.lanes == 1, "from_dlpack: vector types (", static_cast<int>(d.lanes),
              " lanes) are not supported");
  for (int i = 0; i < kDTypeCount; ++i)
    if (same(dl_type_of(static_cast<DType>(i)))) return static_cast<DType>(i);
  RL_FAIL_AS(Value, "from_dlpack: unsupported type, code ", static_cast<int>(d.code), " with ",
             static_cast<int>(d.bits), " bits");
}

template <class Managed>
static Tensor import(Managed* m, bool read_only) {
  const DLTensor& d = m->dl_tensor;
  const Device device = device_of(d.device);
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
  Storage storage = StorageImpl::wrap(data, bytes, device, release, m, read_only);
  Tensor t(make_ref<TensorImpl>(std::move(storage), numel ? -low : 0, dtype, device));
  t->set_layout(sizes, strides);
  return t;
}

Tensor import_versioned(DLManagedTensorVersioned* m) {
  RL_CHECK(m->version.major == kDLVersion.major, "from_dlpack: DLPack version ", m->version.major,
           " is not supported");
  return import(m, m->flags & kReadOnly);
}

static Tensor take_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kNew)) {
    Tensor t = import_versioned(static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kNew)));
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

// The stream that will read, which the producer of device memory lets wait for what it has under way.
static PyRef reading_stream(PyObject* object) {
  if (!PyObject_HasAttrString(object, "__dlpack_device__")) return {};
  const PyRef found(check(PyObject_CallMethod(object, "__dlpack_device__", nullptr)));
  const PyRef pair(check(PySequence_Tuple(found.get())));
  if (PyTuple_GET_SIZE(pair.get()) != 2 || to_int(PyTuple_GET_ITEM(pair.get(), 0)) != kDLCUDA) return {};
  const int device = device_number(static_cast<long>(to_int(PyTuple_GET_ITEM(pair.get(), 1))));
  return PyRef(check(PyLong_FromLongLong(protocol_of_stream(cuda().current_stream(device)))));
}

static PyObject* ask_for_capsule(PyObject* object, PyObject* copy) {
  const PyRef method(check(PyObject_GetAttrString(object, "__dlpack__"))), stream = reading_stream(object);
  const PyRef none(check(PyTuple_New(0)));
  const PyRef keywords(check(Py_BuildValue("{s:(ii)}", "max_version", 1, 0)));
  auto set = [&](const char* name, PyObject* value) {
    if (PyDict_SetItemString(keywords.get(), name, value) < 0) throw PythonError();
  };
  if (copy != Py_None) set("copy", copy);
  if (stream) set("stream", stream.get());
  if (PyObject* capsule = PyObject_Call(method.get(), none.get(), keywords.get())) return capsule;
  if (!PyErr_ExceptionMatches(PyExc_TypeError) || copy != Py_None) throw PythonError();
  PyErr_Clear();  // a producer from before max_version
  if (PyDict_DelItemString(keywords.get(), "max_version") < 0) throw PythonError();
  return check(PyObject_Call(method.get(), none.get(), keywords.get()));
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
  add_dlpack_exchange();
}

}  // namespace rushlight::python
