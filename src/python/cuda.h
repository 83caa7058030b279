// What the files about CUDA share.
#pragma once
#include "core/device_backend.h"
#include "python/python.h"

namespace rushlight::python {

DeviceBackend& cuda();
// Checked; -1 becomes the current device.
int device_number(long index);
void init_cuda_memory(PyObject* module);

}  // namespace rushlight::python
