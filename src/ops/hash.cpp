// A hash of tensors: their elements' bits, combined.
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// The elements along the last dimension, combined by halves.
Tensor combined(Tensor lines) {
  while (lines.size(-1) > 1) {
    const int64_t n = lines.size(-1), half = n / 2;
    const Tensor folded = bitwise_xor(narrow(lines, -1, 0, half), narrow(lines, -1, half, half));
    lines = n % 2 ? cat({folded, narrow(lines, -1, n - 1, 1)}, -1) : folded;
  }
  return lines.size(-1) ? select(lines, -1, 0) : new_zeros(lines, lines.sizes().slice(0, lines.dim() - 1));
}

Tensor hash_body(const Call&, const Tensor& self, IntList dim, bool keepdim, int64_t mode) {
  RL_CHECK(mode == 0, "hash_tensor: only mode 0 (xor) is supported, but got ", mode);
  if (is_complex(self.dtype()))
    RL_NOT_IMPLEMENTED("hash_tensor: not implemented for ", dtype_name(self.dtype()));
  RL_CHECK(
      !dim.empty() || self.numel(),
      "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
      "dim with the 'dim' argument.");
  const Tensor bits = is_floating(self.dtype())
                          ? view_dtype(contiguous(to_dtype(self, DType::Float64)), DType::Int64)
                          : to_dtype(self, DType::Int64);
  uint64_t reduced = dim.empty() ? ~uint64_t{0} : 0;
  for (const int64_t d : dim) reduced |= uint64_t{1} << wrap_dim(d, self.dim());
  Dims order, sizes, kept;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool goes = reduced >> d & 1;
    if (!goes) order.push_back(d), sizes.push_back(self.size(d));
    if (!goes || keepdim) kept.push_back(goes ? 1 : self.size(d));
  }
  int64_t length = 1;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (reduced >> d & 1) order.push_back(d), length *= self.size(d);
  sizes.push_back(length);
  const Tensor hash = combined(reshape(permute(bits, order), sizes));
  return view_dtype(clone(reshape(hash, kept), MemoryFormat::Contiguous), DType::UInt64);
}

}  // namespace

void register_hash_operators(Table& t) {
  t.composite("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
              hash_body)
      .out(OutRule::SameType)
      .doc("The elements' bits, as 64-bit integers, combined by exclusive or over `dim` (all for none).");
}

}  // namespace rushlight
