// A hash of tensors: their elements' bits, combined.
#include <algorithm>

#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/plain.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor bits_of(const Tensor& t) {
  return is_floating(t.dtype()) ? view_dtype(contiguous(to_dtype(t, DType::Float64)), DType::Int64)
                                : to_dtype(t, DType::Int64);
}

#if defined(__GNUC__) && !defined(__clang__) && !defined(RUSHLIGHT_INFERENCE)
#pragma GCC push_options
#pragma GCC optimize("O3")  // by vectors
#endif
int64_t combined(const int64_t* bits, int64_t n) {
  constexpr int64_t kLanes = 8;
  int64_t lane[kLanes] = {}, hash = 0, i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lane[l] ^= bits[i + l];
  for (const int64_t l : lane) hash ^= l;
  for (; i < n; ++i) hash ^= bits[i];
  return hash;
}
#if defined(__GNUC__) && !defined(__clang__) && !defined(RUSHLIGHT_INFERENCE)
#pragma GCC pop_options
#endif

// All elements, in the order that they lie in, part by part: their bits stay in the cache.
Tensor combined_whole(const Tensor& self) {
  const bool dense = is_non_overlapping_and_dense(self) &&
                     std::ranges::all_of(self.strides(), [](int64_t stride) { return stride >= 0; });
  const Tensor flat =
      dense ? as_strided(self, IntList{self.numel()}, IntList{1}, std::nullopt) : reshape(self, {-1});
  constexpr int64_t kPart = 1 << 12;
  int64_t hash = 0;
  for (int64_t begin = 0; begin < flat.numel(); begin += kPart) {
    const int64_t count = std::min(kPart, flat.numel() - begin);
    hash ^= combined(contiguous(bits_of(narrow(flat, 0, begin, count))).data<int64_t>(), count);
  }
  return full(IntList{}, Scalar(hash), DType::Int64, std::nullopt, self.device(), std::nullopt);
}

// The elements along the last dimension; by halves where operators have to do it.
Tensor combined_lines(Tensor lines) {
  const Dims kept = lines.sizes().slice(0, lines.dim() - 1).dims();
  const int64_t n = lines.size(-1);
  if (n && is_plain(lines)) {
    lines = contiguous(lines);
    const Tensor hash = new_zeros(lines, kept);
    for (int64_t i = 0; i < hash.numel(); ++i)
      hash.data<int64_t>()[i] = combined(lines.data<int64_t>() + i * n, n);
    return hash;
  }
  while (lines.size(-1) > 1) {
    const int64_t length = lines.size(-1), half = length / 2;
    const Tensor folded = bitwise_xor(narrow(lines, -1, 0, half), narrow(lines, -1, half, half));
    lines = length % 2 ? cat({folded, narrow(lines, -1, length - 1, 1)}, -1) : folded;
  }
  return lines.size(-1) ? select(lines, -1, 0) : new_zeros(lines, kept);
}

Tensor hash_body(const Call&, const Tensor& self, IntList dim, bool keepdim, int64_t mode) {
  RL_CHECK(mode == 0, "hash_tensor: only mode 0 (xor) is supported, but got ", mode);
  if (is_complex(self.dtype()))
    RL_NOT_IMPLEMENTED("hash_tensor: not implemented for ", dtype_name(self.dtype()));
  RL_CHECK(
      !dim.empty() || self.numel(),
      "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
      "dim with the 'dim' argument.");
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
  const bool whole = length == self.numel() && length > 0 && is_plain(self);
  const Tensor hash =
      whole ? combined_whole(self) : combined_lines(reshape(permute(bits_of(self), order), sizes));
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
