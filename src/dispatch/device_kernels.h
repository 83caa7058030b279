// The loops that a device's library provides, and the way out for operators that it lacks.
#pragma once
#include <span>

#include "core/tensor.h"
#include "formulas/table.h"

namespace rushlight {

struct Op;
struct Results;
class Value;

// All tensors are on one device, except that inputs of no dimensions may be on the CPU: those are numbers.
struct DeviceKernels {
  // out = formula(inputs), computed in `compute`; broadcast, any strides and dtypes. False where the device
  // does not compute this formula in this type.
  bool (*formula)(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
                  std::span<const Scalar> parameters) = nullptr;
  // out = condition ? a : b
  bool (*where)(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) = nullptr;
  // out = source, broadcast and converted. Every device has this one.
  void (*copy)(const Tensor& out, const Tensor& source) = nullptr;
};
void register_device_kernels(DeviceType type, const DeviceKernels* kernels);
const DeviceKernels& device_kernels(DeviceType type);

// Note [Operators that a device lacks]
// An operator runs on a device when its record has a kernel there: a view, a composite, a kernel whose loops
// ask ops/device_loops.h, or one of the device's library. The others run on the CPU: operands are copied
// there, results and what was written in place are copied back, and the first call of each operator warns.
// RUSHLIGHT_CUDA_FALLBACK=error refuses instead, =silent does not warn.
void run_on_cpu(const Op& op, const Value* args, Results& results, Device device);

}  // namespace rushlight
