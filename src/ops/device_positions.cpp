// Reading and writing at computed positions where the operands are.
#include "ops/device_positions.h"

#include "cpu/index.h"
#include "ops/device_multi_tensor.h"

namespace rushlight::loops {
namespace {

// `index` as int64 on the device.
Tensor beside(const Tensor& index, Device device) {
  if (!index.is_cpu() && index.dtype() == DType::Int64) return index;
  const Tensor moved = empty_tensor(index.sizes(), DType::Int64, device);
  copy(moved, index);
  return moved;
}

Tensor based_on(const Tensor& self, const Positions& at) {
  return make_view(self, at.sizes, at.strides, self.storage_offset(), false);
}

// Where the elements of `index` point along `dim`.
IndexedPositions lines(const Tensor& self, int64_t dim, const Tensor& index) {
  const auto d = static_cast<size_t>(dim);
  IndexedPositions lines{{index->sizes, self->strides, beside(index, self.device())},
                         {self->sizes[d], self->strides[d], false}};
  lines.at.strides[d] = 0;
  return lines;
}

}  // namespace

const DeviceMoves& moves_on(const Tensor& t) {
  MultiTensorLaunch::launch_waiting();
  return device_moves(t);
}

void add_positions(const Tensor& offsets, const Tensor& index, int64_t size, int64_t stride, bool wraps) {
  if (offsets.numel() == 0) return;
  if (index.is_cpu()) {
    const Tensor moved = empty_tensor(index.sizes(), index.dtype(), offsets.device());
    copy(moved, index);
    return add_positions(offsets, moved, size, stride, wraps);
  }
  kernels_on(offsets).add_positions(offsets, index, size, stride, wraps);
}

IndexedPositions indexed_slices(const Tensor& self, int64_t dim, const Tensor& index, bool wraps) {
  const auto d = static_cast<size_t>(dim);
  const Tensor here = beside(index, self.device());
  IndexedPositions slices{{self->sizes, self->strides, Tensor()}, {self->sizes[d], self->strides[d], wraps}};
  Positions& at = slices.at;
  at.sizes[d] = index.numel(), at.strides[d] = 0;
  Dims along(at.sizes.size(), 0);
  along[d] = here.dim() > 0 ? here->strides[0] : 0;
  at.offsets = make_view(here, at.sizes, along, here.storage_offset(), false);
  return slices;
}

void take(const Tensor& out, const Tensor& self, const Positions& at) {
  take(out, self, IndexedPositions{at});
}
void take(const Tensor& out, const Tensor& self, const IndexedPositions& indexed) {
  if (out.numel() == 0) return;
  moves_on(self).take(out, based_on(self, indexed.at), indexed.at.offsets, indexed.by);
}

void put(cpu::ScatterOp op, const Tensor& self, const Positions& at, const Tensor& values) {
  put(op, self, IndexedPositions{at}, values);
}
void put(cpu::ScatterOp op, const Tensor& self, const IndexedPositions& indexed, const Tensor& values) {
  const Tensor& offsets = indexed.at.offsets;
  if (offsets.numel() == 0) return;
  if (values.is_cpu() && is_complex(self.dtype())) {
    const Tensor moved = empty_tensor(values.sizes(), self.dtype(), self.device());
    copy(moved, values);
    return put(op, self, indexed, moved);
  }
  if (offsets->storage.get() == self->storage.get()) {  // positions stay while they are read
    IndexedPositions apart = indexed;
    apart.at.offsets = empty_tensor(offsets.sizes(), DType::Int64, self.device());
    copy(apart.at.offsets, offsets);
    return put(op, self, apart, values);
  }
  if (moves_on(self).put(op, based_on(self, indexed.at), offsets, indexed.by, values)) return;
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
