// Reading and writing at computed positions where the operands are.
#include "cpu/index.h"
#include "ops/device_loops.h"
#include "ops/device_multi_tensor.h"

namespace rushlight::loops {
namespace {

Tensor no_offsets(IntList sizes, Device device) {
  const Tensor offsets = empty_tensor(sizes, DType::Int64, device);
  copy(offsets, scalar_tensor_of(0, DType::Int64));
  return offsets;
}

Tensor based_on(const Tensor& self, const Positions& at) {
  return make_view(self, at.sizes, at.strides, self.storage_offset(), false);
}

// Where the elements of `index` point along `dim`.
Positions lines(const Tensor& self, int64_t dim, const Tensor& index) {
  Positions at{index->sizes, self->strides, no_offsets(index.sizes(), self.device())};
  const auto d = static_cast<size_t>(dim);
  at.strides[d] = 0;
  add_positions(at.offsets, index, self->sizes[d], self->strides[d], false);
  return at;
}

}  // namespace

void add_positions(const Tensor& offsets, const Tensor& index, int64_t size, int64_t stride, bool wraps) {
  if (offsets.numel() == 0) return;
  if (index.is_cpu()) {
    const Tensor moved = empty_tensor(index.sizes(), index.dtype(), offsets.device());
    copy(moved, index);
    return add_positions(offsets, moved, size, stride, wraps);
  }
  kernels_on(offsets).add_positions(offsets, index, size, stride, wraps);
}

Positions slices(const Tensor& self, int64_t dim, const Tensor& index, bool wraps) {
  const auto d = static_cast<size_t>(dim);
  Positions at{self->sizes, self->strides, no_offsets(index.sizes(), self.device())};
  add_positions(at.offsets, index, self->sizes[d], self->strides[d], wraps);
  at.sizes[d] = index.numel(), at.strides[d] = 0;
  Dims along(at.sizes.size(), 0);
  along[d] = 1;
  at.offsets = make_view(at.offsets, at.sizes, along, 0, false);
  return at;
}

void take(const Tensor& out, const Tensor& self, const Positions& at) {
  if (out.numel() == 0) return;
  kernels_on(self).take(out, based_on(self, at), at.offsets);
}

void put(cpu::ScatterOp op, const Tensor& self, const Positions& at, const Tensor& values) {
  if (at.offsets.numel() == 0) return;
  if (values.is_cpu() && is_complex(self.dtype())) {
    const Tensor moved = empty_tensor(values.sizes(), self.dtype(), self.device());
    copy(moved, values);
    return put(op, self, at, moved);
  }
  if (kernels_on(self).put(op, based_on(self, at), at.offsets, values)) return;
  RL_NOT_IMPLEMENTED("writing ", dtype_name(self.dtype()), " at indices on a device; move it with .cpu()");
}

bool gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  if (self.is_cpu()) return cpu::gather(self, dim, index, out);
  if (!self.device().is_meta()) take(out, self, lines(self, dim, index));
  return true;
}

bool scatter(cpu::ScatterOp op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
             bool check) {
  if (self.is_cpu()) return cpu::scatter(op, self, dim, index, src, check);
  if (self.device().is_meta()) return true;
  const Tensor part = make_view(src, index.sizes(), src.strides(), src.storage_offset(), false);
  put(op, self, lines(self, dim, index), part);
  return true;
}

}  // namespace rushlight::loops
