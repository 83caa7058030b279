// The Python object of a storage, for the files that make or take one.
#pragma once
#include "core/tensor.h"
#include "python/python.h"

namespace rushlight::python {

// One StorageImpl, one Python object while that lives: an UntypedStorage.
PyObject* wrap_storage(Storage storage);
// The storage behind an UntypedStorage; a TypeError for anything else.
StorageImpl* expect_storage_object(PyObject* object);
// Whether memoryviews look at it.
bool has_buffer_views(PyObject* object);
// All of a storage as a tensor of one dimension; undefined if the object is no storage, a RuntimeError if it
// is a TypedStorage of another type.
Tensor tensor_of_storage(PyObject* object, DType dtype);

}  // namespace rushlight::python
