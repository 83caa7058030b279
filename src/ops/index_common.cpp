// What the files of the indexing family share.
#include "ops/index_common.h"

#include <cstring>

#include "cpu/index.h"
#include "cpu/moves.h"
#include "ops/copy.h"
#include "ops/factory.h"

namespace rushlight {

using namespace ops;

Tensor contiguous_copy(const Tensor& t) {
  const Tensor copy = empty_tensor(t.sizes(), t.dtype(), t.device());
  if (!t.is_contiguous() || t.device().is_cuda())
    copy_result(copy, t, false);
  else if (t.numel() > 0 && t.is_cpu())
    std::memcpy(copy.data_ptr(), t.data_ptr(), t.nbytes());
  return copy;
}

Tensor dense(const Tensor& t) { return t.is_contiguous() ? t : contiguous_copy(t); }

Tensor working_copy(const Call& call, const Tensor& self) {
  const bool in_place =
      call.inplace && call.out && call.out[0].dtype() == self.dtype() && call.out[0].sizes() == self.sizes();
  return in_place ? call.out[0] : contiguous_copy(self);
}

Tensor as_positions(const Tensor& index, const char* who) {
  RL_CHECK(is_integral(index.dtype()) && index.dtype() != DType::UInt8, who,
           "(): Expected dtype int32/int64 for index, got ", dtype_name(index.dtype()));
  return to_dtype(index, DType::Int64);
}

Tensor taken_from_vector(const Tensor& self, const Tensor& index) {
  if (self.dim() != 1 || !self.is_cpu() || !index.is_cpu() || index.dtype() != DType::Int64 ||
      !self.is_contiguous() || !index.is_contiguous() || self.numel() == 0)
    return {};
  const int64_t* positions = index.data<int64_t>();
  if (!cpu::all_within(positions, index.numel(), self.numel())) return {};
  const Tensor out = empty_tensor(index.sizes(), self.dtype(), self.device());
  cpu::take(self.data_ptr(), positions, index.numel(), self.itemsize(), out.data_ptr());
  return out;
}

Tensor apart_from(const Tensor& target, const Tensor& t) {
  return target->storage != t->storage ? t : contiguous_copy(t);
}

void require_data(const Tensor& t, const char* who) {
  RL_CHECK_AS(NotImplemented, !t.device().is_meta(), who,
              "(): the result depends on the values of a tensor on the meta device, which has none");
}

Tensor zeros_of(IntList sizes, const Tensor& like) {
  return new_zeros(like, sizes, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}

Tensor at_least_vector(const Tensor& t) {
  return t.dim() > 0 ? t : make_view(t, {1}, {1}, t.storage_offset(), false);
}

void plan_runs(cpu::IndexBlocks& blocks, IntList sizes, IntList strides) {
  size_t n = sizes.size();
  blocks.run = 1;
  while (n > 0 && (sizes[n - 1] == 1 || strides[n - 1] == blocks.run)) blocks.run *= sizes[--n];
  blocks.after = cpu::all_offsets(sizes.slice(0, n), strides.slice(0, n));
}

}  // namespace rushlight
