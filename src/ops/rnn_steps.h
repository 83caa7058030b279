// Recurrent layers step by step, in public operators.
#pragma once
#include "core/tensor.h"

namespace rushlight {

// Visits the steps of an LSTM, [sequences, 4 hidden] each, in order; gives the last hidden state and cell.
std::vector<Tensor> run_lstm_steps(const std::vector<Tensor>& projected, const Tensor& hx, const Tensor& cx,
                                   const Tensor& w_hh, bool reverse, std::vector<Tensor>& outputs);

}  // namespace rushlight
