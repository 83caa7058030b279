#include "ops/packed_bytes.h"

#include "core/prepared_weight.h"

namespace rushlight {
namespace {

struct KeptBytes final : ConstantMemory::Made {
  KeptBytes(int64_t k, int64_t n, const cpu::MatrixView& view) : view(view), packed(k, n, view) {}
  size_t nbytes() const override { return packed.nbytes(); }
  bool is(int64_t k, int64_t n, const cpu::MatrixView& other) const {
    return packed.k == k && packed.n == n && view.row_stride == other.row_stride &&
           view.column_stride == other.column_stride;
  }
  const cpu::MatrixView view;
  const cpu::PackedBytes packed;
};

}  // namespace

std::shared_ptr<const cpu::PackedBytes> packed_bytes(const Tensor& weight) {
  const int64_t k = weight->sizes[0], n = weight->sizes[1];
  const cpu::MatrixView view{weight.data_ptr(), weight->strides[0], weight->strides[1]};
  const PreparedWeight prepared(weight);
  const bool constant = ConstantMemory::contains(view.data);
  auto kept = constant ? ConstantMemory::find<KeptBytes>(
                             view.data, [&](const KeptBytes& made) { return made.is(k, n, view); })
                       : nullptr;
  if (!kept) {
    kept = std::make_shared<const KeptBytes>(k, n, view);
    if (constant) ConstantMemory::keep(view.data, kept);
  }
  return {kept, &kept->packed};
}

}  // namespace rushlight
