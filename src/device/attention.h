// Attention in tiles on a device. Distances are in elements; elements of a row are adjacent, but for masks.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight {

struct DeviceAttention {
  static constexpr int kMaxLead = 4;
  // A matrix for each index of the leading dimensions.
  struct Operand {
    void* data = nullptr;
    int64_t strides[kMaxLead] = {};
    int64_t row = 0;
  };

  DType dtype = DType::Float32;
  int lead_rank = 0;
  int64_t lead[kMaxLead] = {};  // of queries; the last of keys and values is smaller by `group`
  int64_t group = 1;            // matrices of queries that share one of keys and values
  int64_t queries = 0, keys = 0, width = 0, value_width = 0;
  double scale = 1;
  bool causal = false;
  Operand query, key, value, out;
  Operand mask;  // data null: none; as queries, of rows of keys
  int64_t mask_column = 0;
  DType mask_dtype = DType::Bool;  // true: look here; floats are added to the scores
  void* logsumexp = nullptr;       // [lead, queries], contiguous, in the compute type; or null

  // Weight i of [lead, queries, keys] stays where number offset + i of a generator's stream is above p, and
  // grows by what the others leave.
  struct Dropout {
    double p = 0;
    uint64_t seed = 0, offset = 0;
    const int64_t *seed_at = nullptr, *offset_at = nullptr;  // on the device instead, or null
    double growth() const { return p < 1 ? 1 / (1 - p) : 0; }
  } dropout;

  int64_t batch() const {
    int64_t n = 1;
    for (int d = 0; d < lead_rank; ++d) n *= lead[d];
    return n;
  }
};

struct DeviceAttentionGradients {
  DeviceAttention::Operand grad_out, query, key, value;
  DeviceAttention::Operand mask{};  // data null: not wanted; in the compute type
  int64_t mask_column = 0;
  bool mask_adds = false;  // elements serve several scores: gradients are added to what is there
};

// What dropout makes of the weights of `count` queries from `first` on, [batch, count, keys].
struct DeviceDropoutFactors {
  DeviceAttention::Dropout dropout;
  int64_t batch = 0, queries = 0, keys = 0, first = 0, count = 0;
};

}  // namespace rushlight
