// DLPack's table of C functions, by which compiled libraries take and make tensors without calling Python.
#include "core/lazy_clone.h"
#include "python/cuda.h"
#include "python/dlpack.h"
#include "python/types.h"

namespace rushlight::python {

static const Tensor& operand(void* object) {
  auto* given = static_cast<PyObject*>(object);
  if (!is_tensor(given)) throw_python(PyExc_TypeError, str("expected a Tensor, got ", type_name(given)));
  const Tensor& t = tensor_of(given);
  check_exported(t);
  return t;
}

// Callers may run without the interpreter's lock, and are told by their own function.
static int allocate(DLTensor* like, DLManagedTensorVersioned** out, void* context,
                    void (*set_error)(void*, const char*, const char*)) {
  try {
    const IntList sizes(like->shape, static_cast<size_t>(like->ndim));
    *out = export_versioned(empty_tensor(sizes, dtype_of(like->dtype), device_of(like->device)));
    return 0;
  } catch (const std::exception& e) {
    set_error(context, dynamic_cast<const std::bad_alloc*>(&e) ? "MemoryError" : "RuntimeError", e.what());
    return -1;
  }
}

static int managed_of_object(void* object, DLManagedTensorVersioned** out) {
  return guard_status([&] { *out = export_versioned(operand(object)); });
}

static int object_of_managed(DLManagedTensorVersioned* managed, void** out) {
  return guard_status([&] { *out = wrap(import_versioned(managed)); });
}

static int view_of_object(void* object, DLTensor* out) {
  return guard_status([&] {
    const Tensor& t = operand(object);
    if (t->storage) expose_contents(*t->storage);
    describe(t, *out);
  });
}

static int current_stream(int32_t device_type, int32_t device_id, void** out) {
  return guard_status([&] {
    *out = nullptr;
    const Device device = device_of({device_type, device_id});
    if (device.is_cuda()) *out = cuda().stream(cuda().current_stream(device.index())).handle;
  });
}

void add_dlpack_exchange() {
  static DLExchange table{{kDLVersion, nullptr}, allocate,       managed_of_object,
                          object_of_managed,     view_of_object, current_stream};
  const PyRef capsule(check(PyCapsule_New(&table, kExchange, nullptr)));
  check(PyDict_SetItemString(TensorBaseType.tp_dict, "__dlpack_c_exchange_api__", capsule.get()));
}

}  // namespace rushlight::python
