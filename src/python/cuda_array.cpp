// Reads __cuda_array_interface__: device memory of Numba, CuPy and others, versions 0 to 3.
#include "ops/copy.h"
#include "python/cuda.h"
#include "python/factory.h"
#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

constexpr const char* kInterface = "__cuda_array_interface__";

// What the dictionary has; none: nothing, or None.
PyRef entry(PyObject* interface, const char* name) {
  PyObject* found = PyDict_GetItemString(interface, name);
  return found && found != Py_None ? PyRef::borrow(found) : PyRef();
}
PyRef needed(PyObject* interface, const char* name) {
  PyRef found = entry(interface, name);
  if (!found) throw_python(PyExc_TypeError, str("attribute `", name, "` must exist"));
  return found;
}
Dims numbers(PyObject* sequence) {
  const PyRef tuple(check(PySequence_Tuple(sequence)));
  Dims out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i)
    out.push_back(to_int(PyTuple_GET_ITEM(tuple.get(), i)));
  return out;
}

// "<f4", "|b1", ...
DType dtype_of_text(PyObject* o) {
  const char* text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
  if (!text) throw_python(PyExc_TypeError, "`typestr` must be a string");
  const std::string_view all(text);
  RL_CHECK_VALUE(!all.starts_with('>'),
                 "given array has byte order different from the native byte order. Conversion between byte "
                 "orders is currently not supported.");
  static constexpr std::pair<std::string_view, DType> kKnown[] = {
      {"b1", DType::Bool},      {"u1", DType::UInt8},      {"i1", DType::Int8},    {"i2", DType::Int16},
      {"i4", DType::Int32},     {"i8", DType::Int64},      {"u2", DType::UInt16},  {"u4", DType::UInt32},
      {"u8", DType::UInt64},    {"f2", DType::Float16},    {"f4", DType::Float32}, {"f8", DType::Float64},
      {"c8", DType::Complex64}, {"c16", DType::Complex128}};
  for (const auto& [name, dtype] : kKnown)
    if (all.size() > 1 && all.substr(1) == name) return dtype;
  throw_python(PyExc_TypeError, str("cannot parse `typestr`: ", all));
}

Dims strides_of(PyObject* interface, const Dims& sizes, int64_t item) {
  const PyRef given = entry(interface, "strides");
  if (!given) return contiguous_strides(sizes);
  Dims strides = numbers(given.get());
  if (strides.size() != sizes.size())
    throw_python(PyExc_TypeError, "strides must be a sequence of the same length as shape");
  for (int64_t& s : strides) {
    RL_CHECK_VALUE(s % item == 0,
                   "given array strides not a multiple of the element byte size. Make a copy of the array to "
                   "reallocate the memory.");
    RL_CHECK_VALUE(
        s >= 0,
        "At least one stride in the given array is negative, and tensors with negative strides are "
        "not currently supported.");
    s /= item;
  }
  return strides;
}

}  // namespace

bool exports_cuda_array(PyObject* object) { return PyObject_HasAttrString(object, kInterface); }

Tensor tensor_from_cuda_array(PyObject* object) {
  const PyRef interface(check(PyObject_GetAttrString(object, kInterface)));
  if (!PyDict_Check(interface.get()))
    throw_python(PyExc_TypeError, "`__cuda_array_interface__` must be a dict");
  const Dims sizes = numbers(needed(interface.get(), "shape").get());
  const DType dtype = dtype_of_text(needed(interface.get(), "typestr").get());
  const PyRef data = needed(interface.get(), "data");
  if (!PyTuple_Check(data.get()) || PyTuple_GET_SIZE(data.get()) != 2)
    throw_python(PyExc_TypeError, "`data` must be a 2-tuple of (int, bool)");
  auto* address = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data.get(), 0));
  const int read_only = address || !PyErr_Occurred() ? PyObject_IsTrue(PyTuple_GET_ITEM(data.get(), 1)) : -1;
  check(read_only);
  if (read_only) throw_python(PyExc_TypeError, "the read only flag is not supported, should always be False");

  const auto item = static_cast<int64_t>(element_size(dtype));
  const Dims strides = strides_of(interface.get(), sizes, item);
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] > 1 ? sizes[i] - 1 : 0) * strides[i];
  const int64_t numel = checked_numel(sizes);
  int device = cuda().current_device();
  if (address) {
    device = cuda().driver().device_of(address);
    RL_CHECK(device >= 0,
             "The specified pointer resides on host memory and is not registered with any CUDA device.");
  }
  RL_CHECK_VALUE(address || numel == 0, "the address of an array with elements is 0");
  if (const PyRef stream = entry(interface.get(), "stream"))
    cuda().follow(cuda().current_stream(device), stream_of_protocol(device, to_int(stream.get())));
  const Device on{DeviceType::CUDA, device};
  Storage storage = StorageImpl::wrap(address, numel ? static_cast<size_t>((last + 1) * item) : 0, on,
                                      release_object, Py_NewRef(object));
  Tensor t(make_ref<TensorImpl>(std::move(storage), 0, dtype, on));
  t->set_layout(sizes, strides);
  return t;
}

}  // namespace rushlight::python
