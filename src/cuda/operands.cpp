#include "cuda/operands.h"

#include <cstring>

#include "cpu/iterator.h"

namespace rushlight::cuda {
namespace {

constexpr int64_t kReach = int64_t{1} << 31;

struct Walk {
  Dims sizes;
  Dims strides[kMaxOperands];
  Operand operands[kMaxOperands];
  int count = 0;

  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  // The bytes that one operand's elements span.
  int64_t span(int operand) const {
    int64_t reach = 0;
    for (size_t d = 0; d < sizes.size(); ++d) reach += (sizes[d] - 1) * std::abs(strides[operand][d]);
    return reach;
  }
  bool fits() const {
    if (numel() >= kReach) return false;
    for (int i = 0; i < count; ++i)
      if (span(i) >= kReach) return false;
    return true;
  }
  // The dimension whose halving shortens the longest reach most.
  size_t widest() const {
    size_t best = 0;
    int64_t most = -1;
    for (size_t d = 0; d < sizes.size(); ++d)
      for (int i = 0; i < count; ++i)
        if (const int64_t reach = (sizes[d] - 1) * std::max<int64_t>(std::abs(strides[i][d]), 1);
            reach > most)
          most = reach, best = d;
    return best;
  }
};

bool is_linear(const Walk& walk) {
  if (walk.sizes.size() > 1) return false;
  for (int i = 0; i < walk.count; ++i) {
    const Operand& operand = walk.operands[i];
    const auto item = static_cast<int64_t>(element_size(operand.dtype));
    if (!operand.is_value && !walk.sizes.empty() && walk.strides[i][0] != item) return false;
  }
  return true;
}

void run_piece(const Walk& walk, const std::function<void(const Piece&)>& run) {
  Piece piece;
  piece.linear = is_linear(walk);
  Geometry& g = piece.geometry;
  g.rank = static_cast<int>(walk.sizes.size());
  g.operands = walk.count;
  g.numel = static_cast<uint32_t>(walk.numel());
  for (int d = 0; d < g.rank; ++d) {
    g.sizes[d] = Divider(static_cast<uint32_t>(walk.sizes[d]));
    for (int i = 0; i < walk.count; ++i) g.strides[d][i] = static_cast<int32_t>(walk.strides[i][d]);
  }
  std::copy_n(walk.operands, walk.count, piece.operands);
  run(piece);
}

void split(Walk walk, const std::function<void(const Piece&)>& run) {
  while (!walk.fits()) {
    const size_t d = walk.widest();
    Walk first = walk;
    first.sizes[d] = walk.sizes[d] / 2;
    split(first, run);
    for (int i = 0; i < walk.count; ++i) walk.operands[i].data += first.sizes[d] * walk.strides[i][d];
    walk.sizes[d] -= first.sizes[d];
  }
  run_piece(walk, run);
}

Operand operand_of(const Tensor& t, bool is_input, char* data) {
  Operand operand;
  operand.dtype = t.dtype();
  operand.is_value = is_input && t.is_cpu();
  operand.data = data;
  if (operand.is_value) {
    std::memcpy(operand.value, t.data_ptr(), t.itemsize());
    operand.data = nullptr;
  }
  return operand;
}

}  // namespace

View view_of(const Tensor& t) {
  RL_ASSERT(t.dim() <= kMaxRank, "too many dimensions");
  View view;
  view.data = static_cast<char*>(t.data_ptr());
  view.dtype = t.dtype(), view.device = t.device().index();
  view.rank = static_cast<int>(t.dim()), view.numel = t.numel();
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    view.sizes[d] = t->sizes[d];
    view.strides[d] = t->strides[d] * static_cast<int64_t>(t.itemsize());
  }
  return view;
}

void for_each_piece(const Tensor& out, std::span<const Tensor* const> inputs,
                    const std::function<void(const Piece&)>& run) {
  if (out.numel() == 0) return;
  RL_ASSERT(inputs.size() < kMaxOperands, "too many operands");
  cpu::Iteration it(out.sizes());
  it.add(out);
  for (const Tensor* t : inputs) it.add(*t);
  it.finish();
  RL_CHECK(it.sizes().size() <= kMaxRank, "tensors of ", it.sizes().size(),
           " dimensions that cannot be merged: CUDA loops take ", kMaxRank);
  Walk walk;
  walk.sizes = it.sizes().dims();
  walk.count = it.count();
  for (int i = 0; i < walk.count; ++i) {
    walk.strides[i] = it.strides(i).dims();
    walk.operands[i] = operand_of(i ? *inputs[i - 1] : out, i > 0, it.data(i));
  }
  split(walk, run);
}

}  // namespace rushlight::cuda
