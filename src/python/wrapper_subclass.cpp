// Tensors of Python classes that compute elsewhere: they have a shape, a dtype and a device, and no data.
#include "autograd/meta.h"
#include "core/deferred_layout.h"
#include "core/pending.h"
#include "core/quantizer.h"
#include "python/answered_facts.h"
#include "python/factory.h"
#include "python/torch_dispatch.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

PyTypeObject* dispatching_class(PyObject* cls, const char* who) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorBaseType))
    throw_python(PyExc_TypeError, "cls must be a type that inherits from Tensor");
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (!type_has_torch_dispatch(type))
    throw_python(PyExc_RuntimeError, str(who, " requires that the class ", type->tp_name,
                                         " defines __torch_dispatch__, which it does not"));
  return type;
}

Dims ints_of(PyObject* sequence, const char* what) {
  PyRef items(check(PySequence_Fast(sequence, what)));
  Dims out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    out.push_back(to_int(PySequence_Fast_GET_ITEM(items.get(), i)));
  return out;
}

// A tensor on memory that is not there, on whichever device it claims to be.
Tensor hollow_tensor(IntList sizes, const OptIntList& strides, int64_t offset, DType dtype, Device device) {
  const Device meta{DeviceType::Meta};
  Tensor t = strides ? empty_strided_tensor(sizes, *strides, dtype, meta) : empty_tensor(sizes, dtype, meta);
  if (offset > 0) {
    t->storage->resize(t->storage->nbytes() + static_cast<size_t>(offset) * t.itemsize());
    t->offset = offset;
  }
  t->device = device;
  t->flags = device.is_cpu() ? t->flags & ~uint32_t{kNotCpu} : t->flags | kNotCpu;
  return t;
}

// _make_wrapper_subclass(cls, size, strides=None, storage_offset=None, memory_format=None, dtype=None, ...)
PyObject* make_wrapper_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cls",
                                "size",
                                "strides",
                                "storage_offset",
                                "memory_format",
                                "dtype",
                                "layout",
                                "device",
                                "pin_memory",
                                "requires_grad",
                                "dispatch_sizes_strides_policy",
                                "dispatch_device",
                                "dispatch_layout",
                                "_extra_dispatch_keys",
                                "storage_size",
                                nullptr};
  PyObject *cls, *size, *strides = Py_None, *offset = Py_None, *format = Py_None, *dtype = Py_None,
                        *layout = Py_None, *device = Py_None, *policy = nullptr, *ignored = nullptr,
                        *storage_size = Py_None;
  int pin_memory = 0, requires_grad = 0, answers_device = 0, answers_layout = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOOOOOppOppOO", const_cast<char**>(names), &cls, &size,
                                   &strides, &offset, &format, &dtype, &layout, &device, &pin_memory,
                                   &requires_grad, &policy, &answers_device, &answers_layout, &ignored,
                                   &storage_size))
    return nullptr;
  return guard([&] {
    PyTypeObject* type = dispatching_class(cls, "_make_wrapper_subclass");
    const Dims sizes = ints_of(size, "_make_wrapper_subclass(): argument 'size' must be a tuple of ints");
    std::optional<Dims> steps;
    if (strides != Py_None)
      steps = ints_of(strides, "_make_wrapper_subclass(): argument 'strides' must be a tuple of ints");
    else if (format != Py_None && is_memory_format(format) &&
             memory_format_of_object(format) != MemoryFormat::Contiguous)
      steps = empty_tensor(sizes, DType::Float32, Device{DeviceType::Meta}, memory_format_of_object(format))
                  ->strides;
    const Tensor t = hollow_tensor(sizes, steps ? OptIntList(IntList(*steps)) : std::nullopt,
                                   offset == Py_None ? 0 : to_int(offset),
                                   dtype == Py_None ? get_default_dtype() : parse_dtype(dtype),
                                   device == Py_None ? Device{} : parse_device(device));
    if (storage_size != Py_None) t->storage->resize(static_cast<size_t>(to_int(storage_size)));
    t->flags |= answered_flags(policy, answers_device, answers_layout);
    PyRef self(wrap_as(type, t));
    if (requires_grad) {
      RL_CHECK(is_differentiable(t.dtype()),
               "Only Tensors of floating point and complex dtype can require gradients");
      set_requires_grad(t, true);
    }
    return self.release();
  });
}

// A tensor on the storage of another one, elsewhere: what a fake tensor and its meta tensor are to each
// other.
Tensor on_device(const Tensor& t, Device device) {
  auto impl = Ref<TensorImpl>::adopt(new TensorImpl(t->storage, t.storage_offset(), t.dtype(), device));
  impl->set_layout(t.sizes(), t.strides());
  impl->version = t->version;
  impl->flags |= (t->flags & (kWrappedNumber | kInference)) | pending_flags(*t.impl());
  if (t->quantizer) impl->quantizer = new Quantizer(*t->quantizer);
  return Tensor(std::move(impl));
}

// _as_meta(tensor): its shape, strides and storage on the meta device, outside any graph.
PyObject* as_meta(PyObject*, PyObject* tensor) {
  return guard([&] {
    const Tensor& t = expect_tensor(tensor, "_as_meta(): argument");
    const Device meta{DeviceType::Meta};
    if (t->storage && !t.has_data() && !has_deferred_layout(t)) return wrap(on_device(t, meta));
    Tensor hollow = on_device(t, meta);  // real memory stays where it is
    hollow->storage = StorageImpl::allocate(t->storage ? t->storage->nbytes() : 0, meta);
    return wrap(std::move(hollow));
  });
}

// _wrap_meta(cls, meta, device): a tensor of class `cls` that claims to be on `device`, on the storage of
// `meta`.
PyObject* wrap_meta(PyObject*, PyObject* args) {
  PyObject *cls = nullptr, *meta = nullptr, *device = nullptr;
  if (!PyArg_ParseTuple(args, "OOO", &cls, &meta, &device)) return nullptr;
  return guard([&] {
    const Tensor& t = expect_tensor(meta, "_wrap_meta(): argument 'meta'");
    return wrap_as(dispatching_class(cls, "_wrap_meta"), on_device(t, parse_device(device)));
  });
}

// _take_layout(target, source): sizes, strides, dtype and storage of `source`, after resize_, t_ or set_.
PyObject* take_layout(PyObject*, PyObject* args) {
  PyObject *target = nullptr, *source = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &target, &source)) return nullptr;
  return guard([&]() -> PyObject* {
    const Tensor& to = expect_tensor(target, "_take_layout(): argument 'target'");
    const Tensor& from = expect_tensor(source, "_take_layout(): argument 'source'");
    to->storage = from->storage;
    to->offset = from->offset;
    to->set_layout(from.sizes(), from.strides());
    Py_RETURN_NONE;
  });
}

// _answer_of_class(tensor, fact, argument): what its class says of its strides, or None.
PyObject* answer(PyObject*, PyObject* args) {
  PyObject *tensor = nullptr, *argument = nullptr;
  const char* fact = nullptr;
  if (!PyArg_ParseTuple(args, "Os|O", &tensor, &fact, &argument)) return nullptr;
  return guard([&]() -> PyObject* {
    PyRef answer = answer_of_class(expect_tensor(tensor, "_answer_of_class(): argument"), kAnswersStrides,
                                   fact, argument);
    return answer ? answer.release() : Py_NewRef(Py_None);
  });
}

// _share_storage(target, source): from now on the two alias, as a view and its base do.
PyObject* share_storage(PyObject*, PyObject* args) {
  PyObject *target = nullptr, *source = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &target, &source)) return nullptr;
  return guard([&]() -> PyObject* {
    const Tensor& to = expect_tensor(target, "_share_storage(): argument 'target'");
    to->storage = expect_tensor(source, "_share_storage(): argument 'source'")->storage;
    Py_RETURN_NONE;
  });
}

// Whether the tensor was made within the operator's caller: the program itself holds no such object.
PyObject* is_temporary(PyObject*, PyObject* tensor) {
  return guard([&] {
    return PyBool_FromLong((expect_tensor(tensor, "_is_temporary(): argument")->flags & kBoxedTemporary) !=
                           0);
  });
}

template <class F>
PyCFunction keywords(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

PyMethodDef methods[] = {
    {"_make_wrapper_subclass", keywords(make_wrapper_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A tensor of a class with __torch_dispatch__ that has a shape and no data."},
    {}};
PyMethodDef functions[] = {{"_as_meta", as_meta, METH_O, nullptr},
                           {"_wrap_meta", wrap_meta, METH_VARARGS, nullptr},
                           {"_take_layout", take_layout, METH_VARARGS, nullptr},
                           {"_answer_of_class", answer, METH_VARARGS, nullptr},
                           {"_share_storage", share_storage, METH_VARARGS, nullptr},
                           {"_is_temporary", is_temporary, METH_O, nullptr},
                           {}};

}  // namespace

void init_wrapper_subclass(PyObject* module) {
  add_tensor_members(methods, nullptr);
  add_functions(module, functions);
}

}  // namespace rushlight::python
