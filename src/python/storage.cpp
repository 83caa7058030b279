// StorageBase: a block of bytes as Python sees it, and the tensor members that deal in storages.
#include "python/storage.h"

#include <cstddef>
#include <cstring>

#include "autograd/meta.h"
#include "core/deferred_layout.h"
#include "core/lazy_clone.h"
#include "core/quantizer.h"
#include "core/sparse.h"
#include "core/storage_life.h"
#include "core/write_watch.h"
#include "python/op_function.h"
#include "python/types.h"
#include "transform/level.h"

namespace rushlight::python {

struct PyStorage {
  PyObject_HEAD StorageImpl* storage;  // owned
  PyObject* weakrefs;
  std::atomic<Py_ssize_t> exports;  // live buffer views: no resizing meanwhile
};

extern PyTypeObject StorageBaseType;

static PyStorage* as_storage(PyObject* o) { return reinterpret_cast<PyStorage*>(o); }
static StorageImpl* storage_of(PyObject* o) { return as_storage(o)->storage; }

static PyTypeObject* python_type() {
  static constinit Lazy storage_type;  // rushlight.UntypedStorage once that is loaded
  return reinterpret_cast<PyTypeObject*>(storage_type.get([] {
    PyRef module(check(PyImport_ImportModule("rushlight.storage")));
    return check(PyObject_GetAttrString(module.get(), "UntypedStorage"));
  }));
}

static PyObject* wrap_storage(Storage storage, PyTypeObject* type) {
  materialize_layout(*storage);
  auto existing = [&]() -> PyObject* {
    auto* there = static_cast<PyObject*>(storage->pyobj.get());
    return there && try_incref(there) ? there : nullptr;
  };
  if (storage->pyobj) {
    const IdentityLock lock(storage.get());
    if (PyObject* there = existing()) return there;
  }
  PyRef self(check(type->tp_alloc(type, 0)));
  enable_try_incref(self.get());
  const IdentityLock lock(storage.get());
  if (PyObject* there = existing()) return there;  // `self` dies after the lock
  as_storage(self.get())->storage = storage.get();
  storage->pyobj = self.get();  // one that is dying leaves it alone
  (void)storage.detach();
  return self.release();
}

PyObject* wrap_storage(Storage storage) { return wrap_storage(std::move(storage), python_type()); }

StorageImpl* expect_storage_object(PyObject* o) {
  if (!PyObject_TypeCheck(o, &StorageBaseType))
    throw_python(PyExc_TypeError, "expected an UntypedStorage, got " + type_name(o));
  return storage_of(o);
}

bool has_buffer_views(PyObject* o) { return as_storage(o)->exports > 0; }

// `o` is a TypedStorage, or of a class like it.
static void check_typed_storage(PyObject* o, DType dtype) {
  PyRef found(check(PyObject_GetAttrString(o, "dtype")));
  RL_CHECK(dtype_of_object(found.get()) == dtype, "Expected a Storage of type ", legacy_name(dtype),
           " or an UntypedStorage, but got type ", legacy_name(dtype_of_object(found.get())),
           " for argument 1 'storage'");
}

Tensor tensor_of_storage(PyObject* o, DType dtype) {
  if (PyObject_TypeCheck(o, &StorageBaseType)) {
    Storage s = Storage::share(storage_of(o));
    const auto n = static_cast<int64_t>(s->nbytes() / element_size(dtype));
    const Device device = s->device();
    Tensor t(make_ref<TensorImpl>(std::move(s), 0, dtype, device));
    t->set_contiguous(Dims{n});
    return t;
  }
  PyRef untyped(PyObject_GetAttrString(o, "_untyped_storage"));
  if (!untyped || !PyObject_TypeCheck(untyped.get(), &StorageBaseType)) {
    PyErr_Clear();
    return {};
  }
  check_typed_storage(o, dtype);
  return tensor_of_storage(untyped.get(), dtype);
}

static void storage_dealloc(PyObject* self) {
  if (as_storage(self)->weakrefs) PyObject_ClearWeakRefs(self);
  if (StorageImpl* s = storage_of(self)) {
    {
      const IdentityLock lock(s);
      if (s->pyobj == self) s->pyobj = nullptr;
    }
    Storage::adopt(s);
  }
  Py_TYPE(self)->tp_free(self);  // of a Python subclass, the subclass's dealloc releases the type
}

static Storage allocate_bytes(int64_t bytes, Device device) {
  RL_CHECK(bytes >= 0, "UntypedStorage: the size must not be negative, got ", bytes);
  return StorageImpl::allocate(static_cast<size_t>(bytes), device);
}

// UntypedStorage(), UntypedStorage(size), UntypedStorage(sequence of bytes), each with device=.
static PyObject* storage_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    if (type == &StorageBaseType)
      throw_python(PyExc_RuntimeError,
                   "Cannot directly construct StorageBase; subclass it and then construct that");
    Device device;
    if (PyObject* d = kwargs ? PyDict_GetItemString(kwargs, "device") : nullptr; d && d != Py_None)
      device = parse_device(d);
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n > 1)
      throw_python(PyExc_TypeError,
                   "UntypedStorage() takes one positional argument: a size or a sequence of bytes");
    if (n == 0) return wrap_storage(allocate_bytes(0, device), type);
    PyObject* first = PyTuple_GET_ITEM(args, 0);
    if (is_int(first)) return wrap_storage(allocate_bytes(to_int(first), device), type);
    PyRef bytes(check(PyBytes_FromObject(first)));
    Storage s = allocate_bytes(PyBytes_GET_SIZE(bytes.get()), device);
    if (device.is_cpu()) std::memcpy(s->data(), PyBytes_AS_STRING(bytes.get()), s->nbytes());
    return wrap_storage(std::move(s), type);
  });
}

static PyObject* m_nbytes(PyObject* self, PyObject*) { return PyLong_FromSize_t(storage_of(self)->nbytes()); }
static PyObject* m_data_ptr(PyObject* self, PyObject*) {
  return guard([&] {
    StorageImpl* s = storage_of(self);
    expose_contents(*s);
    if (!s->read_only()) note_write(*s);
    return PyLong_FromVoidPtr(s->data());
  });
}
static PyObject* m_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(storage_of(self)); }
static PyObject* get_device(PyObject* self, void*) {
  return guard([&] { return wrap(storage_of(self)->device()); });
}
static PyObject* m_resizable(PyObject* self, PyObject*) {
  const StorageImpl& s = *storage_of(self);
  return PyBool_FromLong((s.resizable() && s.owns_memory()) || is_shared_memory(s.data()));
}
static PyObject* m_false(PyObject*, PyObject*) { Py_RETURN_FALSE; }
static PyObject* m_resize(PyObject* self, PyObject* size) {
  return guard([&] {
    const int64_t bytes = to_int(size);
    RL_CHECK(bytes >= 0, "resize_: the size must not be negative, got ", bytes);
    RL_CHECK(as_storage(self)->exports == 0,
             "resize_: the memory of this storage is in use through a buffer");
    storage_of(self)->resize(static_cast<size_t>(bytes));
    return Py_NewRef(self);
  });
}

static void release_buffer(void* context, void*, size_t) {
  GilAcquire gil;
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  delete view;
}

// from_buffer(buffer, offset=0, count=-1): bytes of another object, shared.
static PyObject* m_from_buffer(PyObject* cls, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"buffer", "byte_order", "count", "offset", "dtype", nullptr};
  PyObject *buffer, *order = nullptr, *dtype = nullptr;
  Py_ssize_t count = -1, offset = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OnnO", const_cast<char**>(names), &buffer, &order, &count,
                                   &offset, &dtype))
    return nullptr;
  return guard([&] {
    auto view = std::make_unique<Py_buffer>();
    check(PyObject_GetBuffer(buffer, view.get(), PyBUF_SIMPLE));
    auto* held = view.release();
    const Py_ssize_t left = held->len - offset;
    if (offset < 0 || left < 0 || count > left) {
      PyBuffer_Release(held);
      delete held;
      RL_FAIL_AS(Value, "from_buffer: offset ", static_cast<int64_t>(offset), " and count ",
                 static_cast<int64_t>(count), " reach outside the buffer");
    }
    const size_t bytes = static_cast<size_t>(count < 0 ? left : count);
    Storage s = StorageImpl::wrap(static_cast<char*>(held->buf) + offset, bytes, Device{}, release_buffer,
                                  held, held->readonly);
    return wrap_storage(std::move(s), reinterpret_cast<PyTypeObject*>(cls));
  });
}

static PyObject* storage_compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(b, &StorageBaseType)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((storage_of(a) == storage_of(b)) == (op == Py_EQ));
}

static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  StorageImpl* s = storage_of(self);
  if (s->device().is_meta()) {
    PyErr_SetString(PyExc_BufferError, "a meta storage has no memory");
    return -1;
  }
  if (guard([&] {
        expose_contents(*s);
        begin_view(*s);
        return Py_None;
      }) == nullptr)
    return -1;
  if (PyBuffer_FillInfo(view, self, s->data(), static_cast<Py_ssize_t>(s->nbytes()), s->read_only(), flags) <
      0) {
    end_view(*s);
    return -1;
  }
  ++as_storage(self)->exports;
  if (!s->read_only()) note_write(*s);
  return 0;
}
static void drop_buffer(PyObject* self, Py_buffer*) {
  --as_storage(self)->exports;
  end_view(*storage_of(self));
  if (StorageImpl* s = storage_of(self); !s->read_only()) note_write(*s);
}
static PyBufferProcs buffer = {.bf_getbuffer = get_buffer, .bf_releasebuffer = drop_buffer};

// Exchanges the memory of two storages; what looks into one of them follows.
static PyObject* m_swap_contents(PyObject* self, PyObject* other) {
  return guard([&] {
    if (!PyObject_TypeCheck(other, &StorageBaseType))
      throw_python(PyExc_TypeError, "_swap_contents(): expected a storage, not " + type_name(other));
    expose_contents(*storage_of(self));
    RL_CHECK(
        as_storage(self)->exports == 0 && as_storage(other)->exports == 0 && storage_of(self)->resizable(),
        "_swap_contents: the memory of this storage is in use elsewhere");
    storage_of(self)->swap_contents(*storage_of(other));
    return Py_NewRef(Py_None);
  });
}

static PyMethodDef methods[] = {
    {"_swap_contents", m_swap_contents, METH_O, nullptr},
    {"nbytes", m_nbytes, METH_NOARGS, "The size in bytes."},
    {"data_ptr", m_data_ptr, METH_NOARGS, "The address of the first byte."},
    {"resizable", m_resizable, METH_NOARGS, "Whether resize_ is possible: not for borrowed memory."},
    {"resize_", m_resize, METH_O, "resize_(nbytes): grows or shrinks, keeping the common bytes."},
    {"is_pinned", m_false, METH_NOARGS, "Whether the memory is page-locked."},
    {"from_buffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(m_from_buffer)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, "Shares the bytes of an object that exports a buffer."},
    {}};
static PyGetSetDef properties[] = {{"device", get_device, nullptr, "Where the bytes live.", nullptr},
                                   {"_cdata", m_cdata, nullptr, nullptr, nullptr},
                                   {}};

PyTypeObject StorageBaseType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C.StorageBase",
    .tp_basicsize = sizeof(PyStorage),
    .tp_dealloc = storage_dealloc,
    .tp_hash = [](PyObject* self) { return _Py_HashPointer(storage_of(self)); },
    .tp_as_buffer = &buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "A block of bytes that tensors look into.",
    .tp_richcompare = storage_compare,
    .tp_weaklistoffset = offsetof(PyStorage, weakrefs),
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = storage_new,
};

// --- tensor members

static PyObject* m_untyped_storage(PyObject* self, PyObject*) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    check_memory(t);
    RL_CHECK_AS(NotImplemented, !is_sparse(t), "Cannot access storage of ",
                layout_of(t) == Layout::SparseCoo ? "SparseTensorImpl" : "SparseCsrTensorImpl");
    if (!t->storage) t->storage = StorageImpl::allocate(0, t.device());
    return wrap_storage(t->storage, python_type());
  });
}

static StorageImpl* expect_storage(PyObject* o, DType dtype) {
  if (PyObject_TypeCheck(o, &StorageBaseType)) return storage_of(o);
  PyRef untyped(PyObject_CallMethod(o, "untyped", nullptr));  // TypedStorage
  if (!untyped || !PyObject_TypeCheck(untyped.get(), &StorageBaseType)) {
    PyErr_Clear();
    throw_python(PyExc_TypeError,
                 "set_(): argument 'source' (position 1) must be a storage or a tensor, not " + type_name(o));
  }
  check_typed_storage(o, dtype);
  return storage_of(untyped.get());  // the TypedStorage keeps it
}

static Dims sizes_argument(PyObject* o) {
  Dims sizes;
  if (is_index(o)) return Dims{to_int(o)};
  PyRef items(check(PySequence_Fast(o, "expected a tuple of ints")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!is_index(item)) throw_python(PyExc_TypeError, "set_(): sizes must be ints, not " + type_name(item));
    sizes.push_back(to_int(item));
  }
  return sizes;
}

static void check_within(StorageImpl& s, IntList sizes, IntList strides, int64_t offset, DType dtype) {
  RL_CHECK(sizes.size() == strides.size(), "unequal size length (", sizes.size(), ") and stride length (",
           strides.size(), ")");
  RL_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  int64_t low = offset, high = offset, item = static_cast<int64_t>(element_size(dtype));
  const int64_t numel = checked_numel(sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    RL_CHECK(sizes[i] >= 0, "set_(): negative size ", sizes[i], " in ", sizes);
    int64_t reach;
    int64_t& end = strides[i] < 0 ? low : high;
    RL_CHECK(numel == 0 || (!__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
                            !__builtin_add_overflow(end, reach, &end)),
             "set_(): sizes ", sizes, " overflow");
  }
  if (numel == 0) return;
  int64_t bytes;
  RL_CHECK(low >= 0 && !__builtin_mul_overflow(high + 1, item, &bytes), "set_(): sizes ", sizes,
           " and strides ", strides, " leave the storage");
  if (bytes <= static_cast<int64_t>(s.nbytes())) return;
  RL_CHECK(s.resizable(), "setStorage: sizes ", sizes, ", strides ", strides, ", storage offset ", offset,
           ", and itemsize ", item, " requiring a storage size of ", bytes,
           " are out of bounds for storage of size ", s.nbytes());
  s.resize(static_cast<size_t>(bytes));
}

// Each index of the axis has a scale: what the tensor becomes must have as many.
static void check_channels(const Tensor& t, IntList sizes) {
  if (!t->quantizer || !t->quantizer->per_channel()) return;
  const auto axis = static_cast<size_t>(t->quantizer->axis);
  RL_CHECK(axis < sizes.size() && sizes[axis] == t->quantizer->scales.numel(), "set_(): dimension ",
           t->quantizer->axis, " has ", t->quantizer->scales.numel(), " scales, and doesn't fit sizes ",
           sizes);
}

// A tensor that graphs may have saved: its count goes on, whatever memory it counts for, as `set_data` does.
static void count_apart(const Tensor& t) {
  if (t->flags & kInference || !t->storage || t->storage->nbytes() == 0) return;
  const uint32_t version = t.version();
  t->version = make_ref<VersionCounter>();
  t->version->value = version + 1;
}

// set_(), set_(tensor), set_(storage), set_(source, storage_offset, size, stride=None)
static void check_dense(const Tensor& t) {
  if (is_sparse(t))
    RL_NOT_IMPLEMENTED("Could not run 'aten::set_' with arguments from the 'SparseCPU' backend: ",
                       describe(t), " has parts in place of a storage");
}

static PyObject* m_set(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"source", "storage_offset", "size", "stride", nullptr};
  PyObject *source = nullptr, *offset = nullptr, *size = nullptr, *stride = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO", const_cast<char**>(names), &source, &offset, &size,
                                   &stride))
    return nullptr;
  return guard([&] {
    const Tensor& t = tensor_of(self);
    RL_CHECK(!(t->flags & kAutograd && GradMode::enabled()),
             "set_() is not allowed on a tensor that requires grad; use .data");
    if (AutogradMeta* meta = t->autograd) {  // gradients of what it was do not fit what it becomes
      std::lock_guard guard(meta->lock);
      meta->accumulator = nullptr;
    }
    const Dims no_sizes{0};
    check_dense(t);
    if (source) {
      if (is_tensor(source)) check_dense(tensor_of(source));
      const Device from =
          is_tensor(source) ? tensor_of(source).device() : expect_storage(source, t.dtype())->device();
      RL_CHECK(from == t.device(), "Attempted to set the storage of a tensor on device \"", t.device(),
               "\" to a storage on different device \"", from,
               "\".  This is no longer allowed; the devices must match.");
    }
    if (!source) {
      check_channels(t, no_sizes);
      count_apart(t);
      t->storage = StorageImpl::allocate(0, t.device());
      t->offset = 0;
      t->set_contiguous(no_sizes);
    } else if (is_tensor(source) && !size) {
      const Tensor from = tensor_of(source);
      RL_CHECK(from.dtype() == t.dtype(), "Could not set tensor of type ", legacy_name(from.dtype()),
               " to a tensor of type ", legacy_name(t.dtype()));
      check_channels(t, from.sizes());
      count_apart(t);
      t->storage = from->storage;
      t->offset = from->offset;
      t->set_layout(from.sizes(), from.strides());
    } else {
      StorageImpl* s =
          is_tensor(source) ? tensor_of(source)->storage.get() : expect_storage(source, t.dtype());
      const int64_t at = offset ? to_int(offset) : 0;
      const Dims sizes = size ? sizes_argument(size) : Dims{static_cast<int64_t>(s->nbytes() / t.itemsize())};
      for (int64_t n : sizes) RL_CHECK(n >= 0, "set_(): negative size ", n, " in ", sizes);
      const Dims strides = stride && stride != Py_None ? sizes_argument(stride) : contiguous_strides(sizes);
      check_within(*s, sizes, strides, at, t.dtype());
      check_channels(t, sizes);
      count_apart(t);
      t->storage = Storage::share(s);
      t->offset = at;
      t->set_layout(sizes, strides);
    }
    return Py_NewRef(self);
  });
}

static PyObject* m_same_storage(PyObject* self, PyObject* other) {
  return guard([&] {
    return PyBool_FromLong(tensor_of(self)->storage ==
                               expect_tensor(other, "is_set_to(): argument 'tensor' (position 1)")->storage &&
                           tensor_of(self)->offset == tensor_of(other)->offset &&
                           tensor_of(self).sizes() == tensor_of(other).sizes() &&
                           tensor_of(self).strides() == tensor_of(other).strides());
  });
}

static PyMethodDef tensor_methods[] = {
    {"untyped_storage", m_untyped_storage, METH_NOARGS, "The bytes this tensor looks into."},
    {"set_", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(m_set)), METH_VARARGS | METH_KEYWORDS,
     "set_(source=None, storage_offset=0, size=None, stride=None): looks into other memory from now on."},
    {"is_set_to", m_same_storage, METH_O, "Whether both are the same window on the same storage."},
    {}};

// --- addresses as they are, where data_ptr would prepare the memory for writes

static PyObject* f_storage_address(PyObject*, PyObject* tensor) {
  return guard(
      [&] { return PyLong_FromVoidPtr(expect_tensor(tensor, "_storage_address()")->storage.get()); });
}
static PyObject* f_data_address(PyObject*, PyObject* tensor) {
  return guard([&] {
    const Tensor& t = expect_tensor(tensor, "_data_address()");
    check_memory(t);
    return PyLong_FromVoidPtr(t.has_data() ? t.data_ptr() : nullptr);
  });
}
static PyObject* f_is_lazy_clone(PyObject*, PyObject* tensor) {
  return guard([&] {
    const Tensor& t = expect_tensor(tensor, "_is_cow_tensor()");
    return PyBool_FromLong(t->storage && is_lazy_clone(*t->storage));
  });
}
// _check_writable(tensor, what): raises where others must not see a write, before code that writes by
// address.
static PyObject* f_check_writable(PyObject*, PyObject* args) {
  PyObject* tensor;
  const char* what;
  if (!PyArg_ParseTuple(args, "Os:_check_writable", &tensor, &what)) return nullptr;
  return guard([&] {
    expect_tensor(tensor, "_check_writable()").check_writable(what);
    return Py_NewRef(Py_None);
  });
}
// _storage_life(storage) and _storage_has_ended(life): what a weak reference keeps.
static PyObject* f_storage_life(PyObject*, PyObject* storage) {
  return guard([&] {
    if (!PyObject_TypeCheck(storage, &StorageBaseType))
      throw_python(PyExc_TypeError, "_storage_life(): expected a storage, not " + type_name(storage));
    return PyLong_FromUnsignedLongLong(life_of(*storage_of(storage)));
  });
}
static PyObject* f_storage_has_ended(PyObject*, PyObject* life) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(life);
  if (PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(has_ended(number));
}
static PyMethodDef functions[] = {{"_storage_life", f_storage_life, METH_O, nullptr},
                                  {"_storage_has_ended", f_storage_has_ended, METH_O, nullptr},
                                  {"_check_writable", f_check_writable, METH_VARARGS, nullptr},
                                  {"_storage_address", f_storage_address, METH_O, nullptr},
                                  {"_data_address", f_data_address, METH_O, nullptr},
                                  {"_is_cow_tensor", f_is_lazy_clone, METH_O, nullptr},
                                  {}};

void init_storage(PyObject* module) {
  add_functions(module, functions);
  add_type(module, "StorageBase", &StorageBaseType);
  add_tensor_members(tensor_methods, nullptr);
}

}  // namespace rushlight::python
