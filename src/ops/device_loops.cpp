#include "ops/device_loops.h"

#include <vector>

#include "core/device_backend.h"
#include "cpu/copy.h"
#include "cpu/pointwise.h"
#include "ops/device_multi_tensor.h"

namespace rushlight::loops {
namespace {

using Inputs = std::span<const Tensor* const>;

Tensor on_cpu(const Tensor& t) {
  if (t.is_cpu()) return t;
  const Tensor moved = empty_tensor(t.sizes(), t.dtype());
  copy(moved, t);
  return moved;
}

// What a device does not compute: there and back.
template <class F>
void detour(const Tensor& out, Inputs inputs, F&& compute) {
  std::vector<Tensor> moved;
  std::vector<const Tensor*> pointers;
  moved.reserve(inputs.size());
  for (const Tensor* t : inputs) pointers.push_back(&moved.emplace_back(on_cpu(*t)));
  const Tensor result = empty_tensor(out.sizes(), out.dtype());
  compute(result, pointers);
  copy(out, result);
}

// The same bytes one after the other, in the other's dtype.
bool is_packed(const Tensor& t, DType dtype) { return t.dtype() == dtype && t.is_contiguous(); }

Tensor packed(const Tensor& t, DType dtype) {
  if (is_packed(t, dtype)) return t;
  const Tensor result = empty_tensor(t.sizes(), dtype, t.device());
  copy(result, t);
  return result;
}

void move_bytes(const Tensor& out, const Tensor& source, bool non_blocking) {
  MultiTensorLaunch::launch_waiting();
  DeviceBackend& backend = device_backend(out.is_cpu() ? source.device().type() : out.device().type());
  backend.copy(out.data_ptr(), out.device(), source.data_ptr(), source.device(), out.nbytes(), non_blocking);
}

}  // namespace

void formula(Formula f, DType compute, const Tensor& out, Inputs inputs, std::span<const Scalar> parameters) {
  if (out.is_cpu()) return cpu::run_formula(f, compute, out, inputs, parameters);
  if (out.device().is_meta() || out.numel() == 0) return;
  if (MultiTensorLaunch::hold(f, compute, out, inputs, parameters)) return;
  const DeviceKernels& kernels = kernels_on(out);
  if (kernels.formula && kernels.formula(f, compute, out, inputs, parameters)) return;
  detour(out, inputs, [&](const Tensor& result, Inputs moved) {
    cpu::run_formula(f, compute, result, moved, parameters);
  });
}

void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (out.is_cpu()) return cpu::run_where(out, condition, a, b);
  if (out.device().is_meta() || out.numel() == 0) return;
  const DeviceKernels& kernels = kernels_on(out);
  if (kernels.where && kernels.where(out, condition, a, b)) return;
  const Tensor* inputs[] = {&condition, &a, &b};
  detour(out, inputs, [&](const Tensor& result, Inputs moved) {
    cpu::run_where(result, *moved[0], *moved[1], *moved[2]);
  });
}

void copy(const Tensor& out, const Tensor& source, bool non_blocking) {
  if (out.is_cpu() && source.is_cpu()) return cpu::copy(out, source);
  if (out.device().is_meta() || out.numel() == 0) return;
  if (out.device() == source.device()) {
    const bool same_bytes = is_packed(out, source.dtype()) && source.is_contiguous();
    if (same_bytes && out.sizes() == source.sizes()) return move_bytes(out, source, true);
    if (kernels_on(out).copy(out, source)) return;
    const Tensor* inputs[] = {&source};
    return detour(out, inputs, [&](const Tensor& result, Inputs moved) { cpu::copy(result, *moved[0]); });
  }
  if (source.is_cpu() && source.dim() == 0) {  // a number travels with the kernel
    const Tensor value = source.dtype() == out.dtype() ? source : empty_tensor({}, out.dtype());
    if (!value.is_same(source)) cpu::copy(value, source);
    kernels_on(out).copy(out, value);
    return;
  }
  // Converted and packed before it travels, spread out after it arrived.
  const Tensor sent = packed(source, out.dtype());
  if (is_packed(out, sent.dtype()) && out.sizes() == sent.sizes()) return move_bytes(out, sent, non_blocking);
  const Tensor arrived = empty_tensor(sent.sizes(), sent.dtype(), out.device());
  move_bytes(arrived, sent, non_blocking && !out.is_cpu());
  copy(out, arrived);
}

}  // namespace rushlight::loops
