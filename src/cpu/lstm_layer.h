// All steps of one direction of an LSTM layer: the recurrent weight is laid out once in panels, products with
// it end in the gates' functions while the sums are still in registers. Sequences do not depend on each
// other, so that threads share them and meet only at the end; few sequences under a large weight share its
// panels.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "cpu/span.h"

namespace rushlight::cpu {

// Where the steps lie: sequence b of step t has row start[t] + b * row_step of each tensor. Sequences are
// sorted by length; those of step t are the first active[t].
struct LstmSteps {
  DType dtype;
  int64_t batch, hidden, count;
  const int64_t *start, *active;
  int64_t row_step;
  bool reverse;
  int64_t at(int64_t k) const { return reverse ? count - 1 - k : k; }
};

// `gates` and `cells` may be null where nothing will be differentiated. `cells` is of the computing type.
struct LstmLayer : LstmSteps {
  const void *projected, *hx, *cx, *weight;
  void *output, *last_hidden, *last_cell, *gates, *cells;
};

// The gradients that flow in may each be null.
struct LstmLayerGradients : LstmSteps {
  const void *grad_output, *grad_hidden, *grad_cell;
  const void *cx, *weight, *gates, *cells;
  void *grad_gates, *grad_hx, *grad_cx;
};

void lstm_layer(const LstmLayer& layer);
void lstm_layer_backward(const LstmLayerGradients& layer);

// What the instruction sets provide.

// Panels are [products, width] each, filled up with zeros; states are rows of `padded` elements. All in the
// computing type; with `pairs` weights and factors of products are bfloat16, with `tiles` they are multiplied
// by those of AMX, which read up to kLstmTileRows sequences from the first one on.
constexpr int64_t kLstmTileRows = 32;
struct LstmScratch {
  bool pairs, tiles;
  int64_t panels, width, padded;
  void* weight;
  void* states[2];  // backward: gradient of the hidden state, and of the gates [batch, 4 hidden]
  void* cell;
};

struct LstmKernels {
  bool pairs;                                             // whether bfloat16 is multiplied in pairs
  int64_t (*forward_width)(DType dtype, int64_t hidden);  // columns of a panel: four gates of some units
  void (*pack_forward)(const LstmLayer& s, const LstmScratch& m, Span panels);
  // Before step k, and after the last: sequences that start or end there.
  void (*enter_forward)(const LstmLayer& s, const LstmScratch& m, int64_t k, Span rows);
  void (*forward)(const LstmLayer& s, const LstmScratch& m, int64_t k, Span rows, Span panels);
};
// Apart: the small runtime does without them.
struct LstmBackwardKernels {
  bool pairs;
  int64_t (*backward_width)(DType dtype, int64_t hidden);  // columns of a panel: units
  void (*pack_backward)(const LstmLayerGradients& s, const LstmScratch& m, Span panels);
  void (*enter_backward)(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows);
  void (*gates_backward)(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows);
  void (*states_backward)(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows,
                          Span panels);
};

}  // namespace rushlight::cpu
