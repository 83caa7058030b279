// The pointwise part of an LSTM step.
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

void lstm_step(DType dtype, const LstmStep& step);
void lstm_step_backward(DType dtype, const LstmStepGradients& step);

}  // namespace rushlight::cpu
