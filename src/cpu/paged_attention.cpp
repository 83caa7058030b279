#include "cpu/paged_attention.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(PagedKernels paged_kernels();)

namespace {

const PagedKernels& kernels() {
  static const PagedKernels chosen = RL_ISA_VARIANT(paged_kernels());
  return chosen;
}

std::vector<PagedTile> tiles_of(const PagedAttention& p) {
  std::vector<PagedTile> tiles;
  for (int64_t first = 0; first < p.tokens;) {
    int64_t count = 1;
    while (first + count < p.tokens && count < kTileTokens && p.texts[first + count] == p.texts[first])
      ++count;
    for (int64_t head = 0; head < p.key_heads; ++head) tiles.push_back({first, count, head});
    first += count;
  }
  return tiles;
}

}  // namespace

void paged_attention(PagedAttention p) {
  if (p.tokens == 0) return;
  const std::vector<PagedTile> tiles = tiles_of(p);
  const int64_t furthest = *std::max_element(p.positions, p.positions + p.tokens) + 1;
  p.reach = (furthest + p.page - 1) / p.page * p.page;
  const int64_t work = std::max<int64_t>(1, furthest * p.width * (p.heads / p.key_heads));
  parallel_for(0, static_cast<int64_t>(tiles.size()), std::max<int64_t>(1, kGrainSize / work),
               [&](int64_t begin, int64_t end) {
                 const Buffer scratch(scratch_elements(p) * static_cast<int64_t>(sizeof(float)));
                 for (int64_t i = begin; i < end; ++i)
                   kernels().attend(p, tiles[static_cast<size_t>(i)], scratch.as<float>());
               });
}

}  // namespace rushlight::cpu
