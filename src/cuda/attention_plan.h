// What both kinds of attention's tiles (attention.cu, attention_halves.cu) do with a plan.
#pragma once
#include <cmath>

#include "core/philox.h"
#include "cuda/memory.h"
#include "cuda/team.h"
#include "cuda/uniform.h"
#include "cuda/update.h"
#include "device/attention.h"

namespace rushlight::cuda {

// The numbers of a stream that say which weights dropout keeps.
struct DropoutNumbers {
  uint64_t seed, next;
  float p;

  RL_BOTH DropoutNumbers(const DeviceAttention::Dropout& d, uint64_t weight)
      : seed(d.seed_at ? static_cast<uint64_t>(*d.seed_at) : d.seed),
        next((d.offset_at ? static_cast<uint64_t>(*d.offset_at) : d.offset) + weight),
        p(static_cast<float>(d.p)) {}
  // Four numbers come of one draw: f(i, whether weight i from the first one on stays) for those of draw
  // `quad` which are among `count` weights.
  template <class F>
  RL_BOTH void draw(int quad, int count, F&& f) const {
    uint32_t x[4];
    Philox(seed, 0, next / 4 + static_cast<uint64_t>(quad)).draw(x);
    const int first = quad * 4 - static_cast<int>(next % 4);
    for (int k = 0; k < 4; ++k)
      if (first + k >= 0 && first + k < count) f(first + k, uniform(x[k]) > p);
  }
  RL_BOTH int quads(int count) const { return (static_cast<int>(next % 4) + count + 3) / 4; }
};

struct AttentionPlan {
  using Operand = DeviceAttention::Operand;
  DeviceAttention p;

  // The first element of matrix b of an operand; `group`: how many matrices of queries share one.
  RL_BOTH int64_t start(const Operand& o, int64_t b, int64_t group) const {
    int64_t at = 0;
    for (int d = p.lead_rank - 1; d >= 0; --d) {
      const int64_t size = d == p.lead_rank - 1 ? p.lead[d] / group : p.lead[d], rest = b / size;
      at += (b - rest * size) * o.strides[d];
      b = rest;
    }
    return at;
  }
  RL_BOTH bool hidden(int64_t query, int64_t key) const {
    return query >= p.queries || key >= p.keys || (p.causal && key > query);
  }
  // The score of a product of a query and a key that is not hidden from it.
  template <class C>
  RL_BOTH C score(C product, int64_t mask_begin, int64_t query, int64_t key) const {
    const C score = product * static_cast<C>(p.scale);
    if (!p.mask.data) return score;
    const int64_t at = mask_begin + query * p.mask.row + key * p.mask_column;
    const char* address = static_cast<const char*>(p.mask.data) + at * stored_size(p.mask_dtype);
    if (p.mask_dtype == DType::Bool)
      return load<bool>(DType::Bool, address) ? score : -static_cast<C>(INFINITY);
    return score + load<C>(p.mask_dtype, address);
  }
  // f(j, whether dropout keeps it) for those of `count` keys from `from` on that are a sharer's: neighbours
  // are different sharers', unless four of them are drawn at once.
  template <int count, int sharers, class F>
  RL_BOTH void for_own(int sharer, int64_t b, int64_t query, int64_t from, F&& f) const {
    if (p.dropout.p == 0) {
      for (int i = 0; i < count / sharers; ++i) f(sharer + i * sharers, true);
      return;
    }
    const DropoutNumbers numbers(p.dropout, static_cast<uint64_t>((b * p.queries + query) * p.keys + from));
    for (int quad = sharer; quad < numbers.quads(count); quad += sharers) numbers.draw(quad, count, f);
  }
  // By what the weights that stay grow.
  template <class C>
  RL_BOTH C growth() const {
    const C stays = C(1) - static_cast<C>(p.dropout.p);
    return stays > 0 ? C(1) / stays : C(0);
  }
  // Behind the last key that a tile of queries looks at.
  RL_BOTH int64_t last_key(int64_t first_query, int64_t tile) const {
    const int64_t seen = first_query + tile;
    return p.causal && seen < p.keys ? seen : p.keys;
  }
};

// A tile of the scores' gradients as the mask's, in a thread of a team. What lies beyond the ends is zero.
template <int rows, int columns, class C>
RL_BOTH void put_mask_gradient(uint32_t thread, const DeviceAttention& p, const DeviceAttentionGradients& g,
                               int64_t begin, int64_t first, int64_t from, const C* tile, int tile_row) {
  const int down = g.mask.row ? 1 : rows, across = g.mask_column ? 1 : columns;  // scores to an element
  const int high = rows / down, wide = columns / across;
  for (int i = static_cast<int>(thread); i < high * wide; i += kTeamThreads) {
    const int row = i / wide, column = i % wide;
    if (first + row >= p.queries || from + column >= p.keys) continue;
    C sum = 0;
    for (int r = row; r < row + down; ++r)
      for (int c = column; c < column + across; ++c) sum += tile[r * tile_row + c];
    C* to =
        static_cast<C*>(g.mask.data) + begin + (first + row) * g.mask.row + (from + column) * g.mask_column;
    if (g.mask_adds)
      add_to(to, sum);
    else
      *to = sum;
  }
}

inline bool lies_in_packs(const DeviceAttention& p, const DeviceAttention::Operand& o) {
  bool good = reinterpret_cast<uintptr_t>(o.data) % 16 == 0 && o.row % 8 == 0;
  for (int d = 0; d < p.lead_rank; ++d) good &= o.strides[d] % 8 == 0;
  return good;
}
// No mask and dropout, and halves whose rows begin at multiples of 16 bytes.
inline bool lies_in_packs(const DeviceAttention& p) {
  return !p.mask.data && p.dropout.p == 0 && p.scale > 0 && p.width == p.value_width && p.width % 8 == 0 &&
         p.width <= 128 && p.queries > 0 && p.keys > 0 && lies_in_packs(p, p.query) &&
         lies_in_packs(p, p.key) && lies_in_packs(p, p.value) && lies_in_packs(p, p.out);
}
inline bool lies_in_packs(const DeviceAttention& p, const DeviceAttentionGradients& g) {
  return lies_in_packs(p) && !g.mask.data && lies_in_packs(p, g.grad_out) && lies_in_packs(p, g.query) &&
         lies_in_packs(p, g.key) && lies_in_packs(p, g.value);
}

// Of what lies in packs, on a real device. False: not these.
bool attention_flash(int device, const DeviceAttention& plan);
bool attention_flash_backward(int device, const DeviceAttention& plan,
                              const DeviceAttentionGradients& gradients, const float* along);

// The same on compute capability 9.0.
bool attention_hopper(int device, const DeviceAttention& plan);
bool attention_hopper_backward(int device, const DeviceAttention& plan,
                               const DeviceAttentionGradients& gradients);

// Of float32 without dropout, in packs, on a real device. False: not these.
bool attention_in_tf32(int device, const DeviceAttention& plan);
bool attention_backward_in_tf32(int device, const DeviceAttention& plan,
                                const DeviceAttentionGradients& gradients, const float* along);

// Of float32, without dropout. False: not these.
bool attention_of_floats(int device, const DeviceAttention& plan);
bool attention_backward_of_floats(int device, const DeviceAttention& plan,
                                  const DeviceAttentionGradients& gradients, const float* along);

// Of halves of at most 128 columns, on tensor cores. `along`: of each query, what softmax's gradient
// subtracts.
void attention_of_halves(int device, const DeviceAttention& plan);
void attention_backward_of_halves(int device, const DeviceAttention& plan,
                                  const DeviceAttentionGradients& gradients, const float* along);

}  // namespace rushlight::cuda
