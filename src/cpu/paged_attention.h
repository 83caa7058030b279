// Attention of tokens of many texts, whose keys and values lie in pages.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

struct PagedAttention {
  int64_t tokens, heads, key_heads, width;
  int64_t page;          // positions in a page
  const float* query;    // [tokens, heads, width]
  float* result;         // likewise
  DType dtype;           // of keys and values: float32 or bfloat16
  const void* keys;      // [all pages, key_heads, width, page]
  const void* values;    // [all pages, key_heads, page, width]
  const int64_t* pages;  // [texts, most]: where each text's positions lie
  int64_t most;
  const int64_t* texts;      // [tokens]: the row of `pages`; tokens of a text adjacent
  const int64_t* positions;  // [tokens]
  int64_t window;            // positions that a token sees, itself included; 0: all before it
  float scale;
  int64_t reach = 0;  // positions of the furthest token's pages; paged_attention() finds it
};
// Each token's result has the same bits, whatever the others are.
void paged_attention(PagedAttention p);

// A page holds a multiple of this many positions, or the kernel can't be used.
constexpr int64_t kPageUnit = 32;

// Tokens of one text that look at the same pages together.
struct PagedTile {
  int64_t first, count, key_head;
};
struct PagedKernels {
  // `scratch` has scratch_elements(p) elements.
  void (*attend)(const PagedAttention& p, const PagedTile& tile, float* scratch);
};
constexpr int64_t kTileTokens = 8;
constexpr int64_t scratch_elements(const PagedAttention& p) {
  return kTileTokens * (p.heads / p.key_heads) * p.reach;
}

}  // namespace rushlight::cpu
