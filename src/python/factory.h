// Tensors from Python data.
#pragma once
#include "python/op_function.h"

namespace rushlight::python {

// A tensor of nested sequences or numbers; `dtype` or else what PyTorch infers.
Tensor tensor_from_data(PyObject* data, OptDType dtype, Device device = {});
// A constant enters the program here: dispatch modes may want a tensor of their own in its place.
Tensor lifted(Tensor t);
// A tensor on the memory of an object that exports a buffer (a NumPy array); keeps the object alive.
Tensor tensor_from_buffer(PyObject* object);       // numpy.cpp
void release_object(void* object, void*, size_t);  // numpy.cpp; ends what a storage keeps of an object
// A tensor on the memory of an object with __cuda_array_interface__. cuda_array.cpp
bool exports_cuda_array(PyObject* object);
Tensor tensor_from_cuda_array(PyObject* object);
OptDType dtype_of_array(PyObject* array);  // numpy.cpp; none for what no tensor holds
// Once in a program, for memory that is not to be written to. numpy.cpp
void warn_if_read_only(const Tensor& t, std::string_view what);
bool is_ndarray(PyObject* o);  // by its type's name; NumPy is not imported
// Writes a Python number into one element.
void store_number(const Tensor& t, int64_t offset, PyObject* number);

}  // namespace rushlight::python
