#include "cuda/kernels.h"

#include "cuda/operands.h"
#include "dispatch/device_kernels.h"

namespace rushlight::cuda {
namespace {

bool where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  for (const Tensor* t : {&out, &a, &b})
    if (!loads(t->dtype())) return false;
  const Tensor* inputs[] = {&condition, &a, &b};
  for_each_piece(out, inputs, [&](const Piece& piece) { run_where(piece, out.device().index); });
  return true;
}

void copy(const Tensor& out, const Tensor& source) {
  const Tensor* inputs[] = {&source};
  for_each_piece(out, inputs, [&](const Piece& piece) { run_copy(piece, out.device().index); });
}

}  // namespace

DeviceKernels kernels() {
  DeviceKernels all;
  all.where = where;
  all.copy = copy;
  return all;
}

}  // namespace rushlight::cuda
