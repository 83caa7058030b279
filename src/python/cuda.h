// What the files about CUDA share.
#pragma once
#include "core/device_backend.h"
#include "python/python.h"

namespace rushlight::python {

DeviceBackend& cuda();
// Checked; -1 becomes the current device.
int device_number(long index);
// Streams by the numbers that the array API and __cuda_array_interface__ give them: 1 is the default stream,
// larger ones are the runtime's handles.
StreamId stream_of_protocol(int device, int64_t number);
int64_t protocol_of_stream(StreamId id);
void init_cuda_memory(PyObject* module);

}  // namespace rushlight::python
