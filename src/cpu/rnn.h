// The pointwise part of a step of an LSTM or GRU.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

struct LstmStep {
  int64_t batch = 0, hidden = 0;
  // [batch, 4 hidden] with these row strides: input, forget, cell and output gate before activation, in two
  // terms.
  const void *input_gates = nullptr, *hidden_gates = nullptr;
  int64_t input_stride = 0, hidden_stride = 0;
  const void* cell = nullptr;                                         // [batch, hidden]
  void *new_hidden = nullptr, *new_cell = nullptr, *gates = nullptr;  // gates: activated, [batch, 4 hidden]
};

struct LstmStepGradients {
  int64_t batch = 0, hidden = 0;
  const void *grad_hidden = nullptr, *grad_cell = nullptr;  // either may be null
  const void *cell = nullptr, *new_cell = nullptr, *gates = nullptr;
  void *grad_gates = nullptr, *grad_old_cell = nullptr;
};

struct GruStep {
  int64_t batch = 0, hidden = 0;
  // [batch, 3 hidden] with these row strides: reset, update and new gate, from the input and the old state.
  const void *input_gates = nullptr, *hidden_gates = nullptr;
  int64_t input_stride = 0, hidden_stride = 0;
  const void* state = nullptr;  // [batch, hidden]
  void* new_state = nullptr;
  void* gates = nullptr;  // activated, and the new gate's share of the old state: [batch, 4 hidden]
};

struct GruStepGradients {
  int64_t batch = 0, hidden = 0;
  const void *grad_state = nullptr, *state = nullptr, *gates = nullptr;
  void *grad_input_gates = nullptr, *grad_hidden_gates = nullptr, *grad_old_state = nullptr;
};

void lstm_step(DType dtype, const LstmStep& step);
void lstm_step_backward(DType dtype, const LstmStepGradients& step);
void gru_step(DType dtype, const GruStep& step);
void gru_step_backward(DType dtype, const GruStepGradients& step);

}  // namespace rushlight::cpu
