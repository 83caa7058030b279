// What depends on how many elements are true, on devices: flags are sorted, the true ones to the front in
// their order, and only their number is read.
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/reduction.h"
#include "ops/sort.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// The positions of what is true in a vector, in order.
Tensor true_positions(const Tensor& flags) {
  const int64_t count = read_scalar(sum(flags, DType::Int64)).to_int();
  return narrow(argsort_stable(flags, true, 0, true), 0, 0, count);
}

}  // namespace

Tensor nonzero_on_device(const Tensor& self) {
  const Tensor flags = reshape(ops::ne(self, wrapped_number(Scalar(0))), IntList{self.numel()});
  Tensor rest = self.numel() == 0 ? empty_tensor({0}, DType::Int64, self.device()) : true_positions(flags);
  if (self.dim() == 0) return empty_tensor({rest.numel(), 0}, DType::Int64, self.device());
  std::vector<Tensor> columns(static_cast<size_t>(self.dim()));
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    const Tensor size = wrapped_number(Scalar(std::max<int64_t>(self.size(d), 1)));
    columns[static_cast<size_t>(d)] = remainder(rest, size);
    if (d > 0) rest = floor_divide(rest, size);
  }
  return stack(columns, 1);
}

Tensor select_on_device(const Tensor& self, const Tensor& mask) {
  if (self.numel() == 0) return empty_tensor({0}, self.dtype(), self.device());
  const Dims flat{self.numel()};
  return index_select(reshape(self, flat), 0, true_positions(reshape(mask, flat)));
}

}  // namespace rushlight
