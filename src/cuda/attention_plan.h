// What both kinds of attention's tiles (attention.cu, attention_halves.cu) do with a plan.
#pragma once
#include <cmath>

#include "cuda/memory.h"
#include "dispatch/device_attention.h"

namespace rushlight::cuda {

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
  // Behind the last key that a tile of queries looks at.
  RL_BOTH int64_t last_key(int64_t first_query, int64_t tile) const {
    const int64_t seen = first_query + tile;
    return p.causal && seen < p.keys ? seen : p.keys;
  }
};

// Of halves of at most 128 columns, on tensor cores. `along`: of each query, what softmax's gradient
// subtracts.
void attention_of_halves(int device, const DeviceAttention& plan);
void attention_backward_of_halves(int device, const DeviceAttention& plan,
                                  const DeviceAttentionGradients& gradients, const float* along);

}  // namespace rushlight::cuda
