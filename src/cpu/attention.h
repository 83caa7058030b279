// Attention in tiles: scores exist for one block of queries and keys at a time, so that memory does not grow
// with the square of the length.
#pragma once
#include <cstdint>

#include "core/dims.h"
#include "core/dtype.h"
#include "cpu/span.h"

namespace rushlight::cpu {

// The matrices of one operand: where each starts (in elements), and how far apart its rows are. Elements of a
// row are adjacent.
struct AttentionOperand {
  void* data = nullptr;
  Dims start;
  int64_t row = 0;
};

struct AttentionMask {
  const void* data = nullptr;  // null: none
  DType dtype = DType::Bool;   // true: look here; floats are added to the scores
  Dims start;
  int64_t row = 0, column = 0;
};

struct AttentionPlan {
  DType dtype = DType::Float32;
  int64_t batch = 0;  // matrices of queries
  int64_t group = 1;  // matrices of queries that share one of keys and values
  int64_t queries = 0, keys = 0, width = 0, value_width = 0;
  double scale = 1;
  bool causal = false;
  AttentionOperand query, key, value, out;
  AttentionMask mask;
  void* logsumexp = nullptr;  // [batch, queries], in the compute type
};

struct AttentionGradients {
  AttentionOperand grad_out, query, key, value;
};

void attention(const AttentionPlan& plan);
// Reads out and logsumexp; writes all three gradients.
void attention_backward(const AttentionPlan& plan, const AttentionGradients& gradients);

// What the instruction sets provide. One matrix of queries, and what it looks at; distances in elements.
struct AttentionHead {
  DType dtype;
  int64_t queries, keys, width, value_width;
  double scale;
  bool causal;
  const void *query, *key, *value;
  int64_t query_row, key_row, value_row;
  void* out;
  int64_t out_row;
  const void* mask;  // null: none
  DType mask_dtype;
  int64_t mask_row, mask_column;
  void* logsumexp;
};

struct AttentionHeadGradients {
  const void* grad_out;
  int64_t grad_out_row;
  void *query, *key, *value;
  int64_t query_row, key_row, value_row;
};

struct AttentionKernels {
  int64_t (*packed_bytes)(const AttentionHead& h);   // keys and values laid out
  int64_t (*scratch_bytes)(const AttentionHead& h);  // what a thread needs beside them
  void (*pack)(const AttentionHead& h, void* packed);
  void (*forward)(const AttentionHead& h, const void* packed, void* scratch, Span queries);
  int64_t (*backward_bytes)(const AttentionHead& h);
  // One matrix of queries; memory is kept for all that share keys and values, of which it is first or last.
  void (*backward)(const AttentionHead& h, const AttentionHeadGradients& g, void* memory, bool first,
                   bool last);
};
AttentionKernels attention_kernels();

}  // namespace rushlight::cpu
