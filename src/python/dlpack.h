// DLPack 1.3: the structures of the standard (dlpack.h), and what its two interfaces share: `__dlpack__` and
// the table of C functions.
#pragma once
#include <cstdint>

#include "python/python.h"
#include "python/tensor_type.h"

namespace rushlight::python {

struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
constexpr DLVersion kDLVersion{1, 3};
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
constexpr int32_t kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13;

// The table that a type of arrays shows as `__dlpack_c_exchange_api__`, a capsule of this name: functions
// that answer 0, or -1 with a Python error set. None waits for a stream.
constexpr const char* kExchange = "dlpack_exchange_api";
struct DLExchangeHeader {
  DLVersion version;
  DLExchangeHeader* former;
};
struct DLExchange {
  DLExchangeHeader header;
  int (*allocate)(DLTensor* like, DLManagedTensorVersioned** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*managed_of_object)(void* object, DLManagedTensorVersioned** out);
  int (*object_of_managed)(DLManagedTensorVersioned* managed, void** out);
  int (*view_of_object)(void* object, DLTensor* out);
  int (*current_stream)(int32_t device_type, int32_t device_id, void** out);
};

DLDevice dl_device_of(Device device);
Device device_of(DLDevice device);
DLDataType dl_type_of(DType type);
DType dtype_of(DLDataType type);
// BufferError where the tensor cannot be described by addresses and strides.
void check_exported(const Tensor& t);
// What the tensor holds, as it lies in memory.
void describe(const Tensor& t, DLTensor& d);
// A new owner of the tensor.
DLManagedTensorVersioned* export_versioned(const Tensor& t, bool copied = false);
// Takes what is managed over, unless it raises.
Tensor import_versioned(DLManagedTensorVersioned* managed);

void add_dlpack_exchange();

}  // namespace rushlight::python
