// The Python objects for dtype, layout, memory format, device and size.
#pragma once
#include "core/device.h"
#include "core/dims.h"
#include "core/dtype.h"
#include "python/python.h"

namespace rushlight {
enum class QScheme : uint8_t;
}

namespace rushlight::python {

extern PyTypeObject DTypeType, LayoutType, MemoryFormatType, DeviceType_, SizeType;

template <class T>
struct PyBox {
  PyObject_HEAD T value;
};

inline bool is_dtype(PyObject* o) { return Py_TYPE(o) == &DTypeType; }
inline bool is_layout(PyObject* o) { return Py_TYPE(o) == &LayoutType; }
inline bool is_memory_format(PyObject* o) { return Py_TYPE(o) == &MemoryFormatType; }
inline bool is_device(PyObject* o) { return Py_TYPE(o) == &DeviceType_; }

inline DType dtype_of_object(PyObject* o) { return reinterpret_cast<PyBox<DType>*>(o)->value; }
inline Layout layout_of_object(PyObject* o) { return reinterpret_cast<PyBox<Layout>*>(o)->value; }
inline MemoryFormat memory_format_of_object(PyObject* o) {
  return reinterpret_cast<PyBox<MemoryFormat>*>(o)->value;
}
inline Device device_of_object(PyObject* o) { return reinterpret_cast<PyBox<Device>*>(o)->value; }

// All return new references.
PyObject* wrap(DType t);
PyObject* wrap(Layout layout);
PyObject* wrap(MemoryFormat format);
PyObject* wrap(Device device);
PyObject* wrap_size(IntList sizes);

// A dtype object, or one of the Python types float, int, bool, complex.
bool is_dtype_like(PyObject* o);
PyObject* wrap(QScheme s);
DType parse_dtype(PyObject* o);  // refuses types in which nothing computes
DType parse_any_dtype(PyObject* o);
[[noreturn]] void refuse_special_dtype(DType t);
// A device object, a string ("cuda:1") or an index.
bool is_device_like(PyObject* o);
Device parse_device(PyObject* o);

}  // namespace rushlight::python
