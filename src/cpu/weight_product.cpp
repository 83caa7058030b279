#include "cpu/weight_product.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/chain_product.h"
#include "cpu/gemm.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(WeightKernels weight_kernels();)

namespace {

// Rows of x that are multiplied by the weight as it is read; for more it is unpacked.
constexpr int64_t kFewRows = 64;
// Rows of a weight that are unpacked at once: enough for a product to be worth its own packing.
constexpr int64_t kPanelRows = 256;
constexpr int64_t kSerialWork = 1 << 16;

const WeightKernels& kernels() {
  static const WeightKernels chosen = RL_ISA_VARIANT(weight_kernels());
  return chosen;
}

CachedVector<float> group_sums(const WeightProduct& p) {
  const int64_t groups = (p.k + p.group - 1) / p.group;
  CachedVector<float> sums(static_cast<size_t>(p.m * groups));
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t g = 0; g < groups; ++g) {
      float sum = 0;
      for (int64_t c = g * p.group; c < std::min(p.k, (g + 1) * p.group); ++c) sum += p.x[i * p.k + c];
      sums[static_cast<size_t>(i * groups + g)] = sum;
    }
  return sums;
}

}  // namespace

void weight_product(const WeightProduct& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    std::fill_n(p.y, p.m * p.n, 0.0f);
    return;
  }
  if (p.m <= kFewRows && !batch_invariant()) {
    const auto sums = p.bits == 4 ? group_sums(p) : CachedVector<float>();
    const int64_t each = std::max<int64_t>(1, p.m * p.k), grain = std::max<int64_t>(4, kSerialWork / each);
    const int64_t groups = p.bits == 4 ? (p.k + p.group - 1) / p.group : 1;
    parallel_for(0, p.n, grain, [&](int64_t begin, int64_t end) {
      CachedVector<float> scratch(static_cast<size_t>(2 * WeightKernels::kRows * groups));
      kernels().products(p, sums.data(), scratch.data(), begin, end);
    });
    return;
  }
  parallel_for(0, (p.n + kPanelRows - 1) / kPanelRows, 1, [&](int64_t first, int64_t last) {
    CachedVector<float> panel(static_cast<size_t>(kPanelRows * p.k));
    for (int64_t begin = first * kPanelRows; begin < std::min(p.n, last * kPanelRows); begin += kPanelRows) {
      const int64_t rows = std::min(kPanelRows, p.n - begin);
      for (int64_t row = 0; row < rows; ++row) kernels().unpack(p, begin + row, panel.data() + row * p.k);
      gemm(DType::Float32, p.m, rows, p.k, 1, {p.x, p.k, 1}, {panel.data(), 1, p.k}, 0, p.y + begin, p.n);
    }
  });
}

void weight_row(const WeightProduct& p, int64_t row, float* out) { kernels().unpack(p, row, out); }

void pack_halves(const int32_t* numbers, int64_t k, uint8_t* out) {
  for (int64_t begin = 0; begin < k; begin += 32) {
    const int64_t half = std::min<int64_t>(32, k - begin) / 2;
    for (int64_t i = 0; i < half; ++i)
      *out++ = static_cast<uint8_t>((numbers[begin + i] & 15) | (numbers[begin + half + i] & 15) << 4);
  }
}

}  // namespace rushlight::cpu
