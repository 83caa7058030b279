// Recurrent layers and their cells.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& input, TensorList hx, TensorList params,
                                             bool has_biases, int64_t num_layers, double dropout, bool train,
                                             bool bidirectional, bool batch_first)>
    lstm;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& input, const Tensor& hx, TensorList params,
                                     bool has_biases, int64_t num_layers, double dropout, bool train,
                                     bool bidirectional, bool batch_first)>
    gru, rnn_tanh, rnn_relu;
// Packed sequences: `data` holds the steps of all sequences one after the other, batch_sizes[t] rows for step
// t.
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& data, const Tensor& batch_sizes, TensorList hx,
                                             TensorList params, bool has_biases, int64_t num_layers,
                                             double dropout, bool train, bool bidirectional)>
    lstm_packed;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                     TensorList params, bool has_biases, int64_t num_layers, double dropout,
                                     bool train, bool bidirectional)>
    gru_packed, rnn_tanh_packed, rnn_relu_packed;
// What makes packed sequences of padded ones, and padded ones of packed ones.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& input, const Tensor& lengths, bool batch_first)>
    pack_padded_sequence;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& data, const Tensor& batch_sizes, bool batch_first,
                                     const Scalar& padding_value, int64_t total_length)>
    pad_packed_sequence;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                     const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh)>
    lstm_cell;
inline Fn<Tensor(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                 const Tensor& b_ih, const Tensor& b_hh)>
    gru_cell, rnn_tanh_cell, rnn_relu_cell;

// From the two halves of the gates before activation: new hidden state, new cell, activated gates.
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& input_gates, const Tensor& hidden_gates,
                                             const Tensor& cell)>
    fused_lstm_cell;
// All steps of one direction of an LSTM layer: of [time, batch, features], with batch_first [batch, time,
// features], or packed rows with batch_sizes. Without w_ih, the features are the input's share of the four
// gates, bias included. Outputs of all steps, last hidden state and cell; with `keep` the activated gates and
// the cells of all steps, which the gradient needs.
inline Fn<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(
    const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& w_hh, IntList batch_sizes,
    bool reverse, bool batch_first, bool keep, const Tensor& w_ih, const Tensor& bias)>
    lstm_layer;
// Gradients of the gates before activation, hx and cx.
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& grad_output, const Tensor& grad_hidden,
                                             const Tensor& grad_cell, const Tensor& cx, const Tensor& w_hh,
                                             const Tensor& gates, const Tensor& cells, IntList batch_sizes,
                                             bool reverse, bool batch_first)>
    lstm_layer_backward;
// Gradients of the gates and of the old cell.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& grad_hidden, const Tensor& grad_cell, const Tensor& cell,
                                     const Tensor& new_cell, const Tensor& gates)>
    fused_lstm_cell_backward;
// The same of a GRU: new state; activated gates and the new gate's share of the old state.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                     const Tensor& input_bias, const Tensor& hidden_bias)>
    fused_gru_cell;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& grad_hy, const Tensor& hx,
                                             const Tensor& workspace)>
    fused_gru_cell_backward;

}  // namespace rushlight::ops
