// All steps of an LSTM layer as one launch of a device's library.
#pragma once
#include <cstdint>

namespace rushlight {

// Contiguous, in one dtype; steps are in the order of memory or, with `reverse`, from the last one on.
struct DeviceLstmSequence {
  int64_t steps = 0, batch = 0, hidden = 0;
  bool reverse = false;
  const void *projected = nullptr, *weight = nullptr;          // [steps, batch, 4 hidden], [4 hidden, hidden]
  const void *first_hidden = nullptr, *first_cell = nullptr;   // [batch, hidden]
  void *output = nullptr, *cells = nullptr, *gates = nullptr;  // [steps, batch, ...]; but output, or null
  void* last_cell = nullptr;
};
struct DeviceLstmSequenceGradients {
  int64_t steps = 0, batch = 0, hidden = 0;
  bool reverse = false;
  const void *weight = nullptr, *first_cell = nullptr, *gates = nullptr, *cells = nullptr;
  const void* flow = nullptr;  // [steps, batch, hidden]: what reaches the state from the output
  void* grad_cell = nullptr;   // [batch, hidden]: of the last cell, then of the first one
  void* grad_gates = nullptr;
};

}  // namespace rushlight
