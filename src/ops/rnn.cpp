#include "ops/rnn.h"

#include "cpu/rnn.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/random.h"
#include "ops/reference.h"
#include "ops/register.h"
#include "ops/rnn_steps.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// --- the fused LSTM step

// Rows may lie apart, their elements not.
Tensor with_dense_rows(const Tensor& t) { return t->strides[1] == 1 || t->sizes[1] <= 1 ? t : contiguous(t); }

// Where the state is: on the CPU, or by its device's counterpart.
template <class OnCpu, class OnDevice, class Step>
void run_step(const Tensor& state, OnCpu on_cpu, OnDevice on_device, const Step& step) {
  if (state.numel() == 0) return;
  const DeviceLayers* layers = device_layers(state);
  layers ? (layers->*on_device)(state.device().index(), state.dtype(), step) : on_cpu(state.dtype(), step);
}

std::tuple<Tensor, Tensor, Tensor> fused_lstm_cell_kernel(const Call&, const Tensor& input_gates,
                                                          const Tensor& hidden_gates, const Tensor& cell) {
  RL_CHECK(input_gates.dim() == 2 && input_gates.sizes() == hidden_gates.sizes() && cell.dim() == 2 &&
               input_gates->sizes[0] == cell->sizes[0] && input_gates->sizes[1] == 4 * cell->sizes[1],
           "lstm: gates of shape ", input_gates.sizes(), " and ", hidden_gates.sizes(),
           " do not fit a cell of shape ", cell.sizes());
  RL_CHECK(input_gates.dtype() == hidden_gates.dtype() && input_gates.dtype() == cell.dtype(),
           "lstm: expected one dtype, got ", describe(input_gates), ", ", describe(hidden_gates), " and ",
           describe(cell));
  Tensor hidden = empty_tensor(cell.sizes(), cell.dtype(), cell.device()),
         new_cell = empty_tensor(cell.sizes(), cell.dtype(), cell.device());
  Tensor gates = empty_tensor(input_gates.sizes(), cell.dtype(), cell.device());
  if (cell.device().is_meta()) return {hidden, new_cell, gates};
  const Tensor a = with_dense_rows(input_gates), b = with_dense_rows(hidden_gates), c = as_contiguous(cell);
  run_step(
      cell, cpu::lstm_step, &DeviceLayers::lstm_step,
      cpu::LstmStep{cell->sizes[0], cell->sizes[1], a.data_ptr(), b.data_ptr(), a->strides[0], b->strides[0],
                    c.data_ptr(), hidden.data_ptr(), new_cell.data_ptr(), gates.data_ptr()});
  return {hidden, new_cell, gates};
}

std::tuple<Tensor, Tensor> fused_lstm_cell_backward_kernel(const Call&, const Tensor& grad_hidden,
                                                           const Tensor& grad_cell, const Tensor& cell,
                                                           const Tensor& new_cell, const Tensor& gates) {
  const auto fits = [&](const Tensor& t) {
    return !t.defined() || (t.sizes() == cell.sizes() && t.dtype() == cell.dtype());
  };
  RL_CHECK(cell.dim() == 2 && gates.sizes() == IntList({cell->sizes[0], 4 * cell->sizes[1]}) &&
               gates.dtype() == cell.dtype() && fits(new_cell) && fits(grad_hidden) && fits(grad_cell),
           "lstm: gates ", describe(gates), " or gradients do not fit a state ", describe(cell));
  Tensor grad_gates = empty_tensor(gates.sizes(), gates.dtype(), gates.device()),
         old = empty_tensor(cell.sizes(), cell.dtype(), cell.device());
  if (cell.device().is_meta()) return {grad_gates, old};
  const Tensor gh = as_contiguous(grad_hidden), gc = as_contiguous(grad_cell);
  const Tensor c = as_contiguous(cell), after = as_contiguous(new_cell), activated = as_contiguous(gates);
  run_step(cell, cpu::lstm_step_backward, &DeviceLayers::lstm_step_backward,
           cpu::LstmStepGradients{cell->sizes[0], cell->sizes[1], gh.defined() ? gh.data_ptr() : nullptr,
                                  gc.defined() ? gc.data_ptr() : nullptr, c.data_ptr(), after.data_ptr(),
                                  activated.data_ptr(), grad_gates.data_ptr(), old.data_ptr()});
  return {grad_gates, old};
}

// The same in public operators, from the gates before activation, so that it can be differentiated again.
Grads lstm_cell_gradients_reference(const Tensor& grad_hidden, const Tensor& grad_cell, const Tensor& pre,
                                    const Tensor& cell) {
  const std::vector<Tensor> parts = chunk(pre, 4, 1);
  const Tensor i = sigmoid(parts[0]), f = sigmoid(parts[1]), g = tanh(parts[2]), o = sigmoid(parts[3]);
  const Tensor t = tanh(f * cell + i * g), one = wrapped_number(1);
  Tensor dc = grad_cell, d_o = o * Scalar(0);
  if (grad_hidden.defined()) {
    const Tensor through = grad_hidden * o * (one - t * t);
    dc = dc.defined() ? dc + through : through;
    d_o = grad_hidden * t * o * (one - o);
  }
  const Tensor gates =
      cat({dc * g * i * (one - i), dc * cell * f * (one - f), dc * i * (one - g * g), d_o}, 1);
  return {gates, gates, dc * f};
}

// --- the fused GRU step

Tensor gru_cell_reference(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& state) {
  const std::vector<Tensor> x = chunk(input_gates, 3, 1), y = chunk(hidden_gates, 3, 1);
  const Tensor r = sigmoid(x[0] + y[0]), z = sigmoid(x[1] + y[1]), n = tanh(x[2] + r * y[2]);
  return (state - n) * z + n;
}

std::tuple<Tensor, Tensor> fused_gru_cell_kernel(const Call&, const Tensor& input_gates,
                                                 const Tensor& hidden_gates, const Tensor& state,
                                                 const Tensor& input_bias, const Tensor& hidden_bias) {
  RL_CHECK(input_gates.dim() == 2 && input_gates.sizes() == hidden_gates.sizes() && state.dim() == 2 &&
               input_gates->sizes[0] == state->sizes[0] && input_gates->sizes[1] == 3 * state->sizes[1],
           "gru: gates of shape ", input_gates.sizes(), " and ", hidden_gates.sizes(),
           " do not fit a state of shape ", state.sizes());
  RL_CHECK(input_gates.dtype() == hidden_gates.dtype() && input_gates.dtype() == state.dtype(),
           "gru: expected one dtype, got ", describe(input_gates), ", ", describe(hidden_gates), " and ",
           describe(state));
  for (const Tensor& bias : {input_bias, hidden_bias})
    RL_CHECK(!bias.defined() || (bias.dtype() == state.dtype() && bias.dim() == 1 &&
                                 bias->sizes[0] == input_gates->sizes[1]),
             "gru: a bias ", describe(bias), " does not fit gates ", describe(input_gates));
  const int64_t batch = state->sizes[0], hidden = state->sizes[1];
  Tensor fresh = empty_tensor(state.sizes(), state.dtype(), state.device());
  Tensor gates = empty_tensor(IntList{batch, 4 * hidden}, state.dtype(), state.device());
  if (state.device().is_meta()) return {fresh, gates};
  const Tensor a = with_dense_rows(input_bias.defined() ? input_gates + input_bias : input_gates),
               b = with_dense_rows(hidden_bias.defined() ? hidden_gates + hidden_bias : hidden_gates),
               h = as_contiguous(state);
  run_step(state, cpu::gru_step, &DeviceLayers::gru_step,
           cpu::GruStep{batch, hidden, a.data_ptr(), b.data_ptr(), a->strides[0], b->strides[0], h.data_ptr(),
                        fresh.data_ptr(), gates.data_ptr()});
  return {fresh, gates};
}

std::tuple<Tensor, Tensor, Tensor> fused_gru_cell_backward_kernel(const Call&, const Tensor& grad,
                                                                  const Tensor& state, const Tensor& gates) {
  RL_CHECK(state.dim() == 2 && grad.sizes() == state.sizes() && grad.dtype() == state.dtype() &&
               gates.sizes() == IntList({state->sizes[0], 4 * state->sizes[1]}) &&
               gates.dtype() == state.dtype() && is_floating(state.dtype()),
           "gru: gates ", describe(gates), " or a gradient ", describe(grad), " do not fit a state ",
           describe(state));
  const int64_t batch = state->sizes[0], hidden = state->sizes[1];
  const Dims wide{batch, 3 * hidden};
  Tensor x = empty_tensor(wide, state.dtype(), state.device()),
         y = empty_tensor(wide, state.dtype(), state.device());
  Tensor old = empty_tensor(state.sizes(), state.dtype(), state.device());
  if (state.device().is_meta()) return {x, y, old};
  const Tensor g = as_contiguous(grad), h = as_contiguous(state), activated = as_contiguous(gates);
  run_step(state, cpu::gru_step_backward, &DeviceLayers::gru_step_backward,
           cpu::GruStepGradients{batch, hidden, g.data_ptr(), h.data_ptr(), activated.data_ptr(),
                                 x.data_ptr(), y.data_ptr(), old.data_ptr()});
  return {x, y, old};
}

Grads gru_cell_gradients(const Tensor& g, const Tensor& a, const Tensor& b, const Tensor& state,
                         const Tensor& input_bias, const Tensor& hidden_bias, const Tensor& gates) {
  if (derivatives_wanted() || dispatch_state.level) {
    const auto reference = [](const std::vector<Tensor>& t) {
      return gru_cell_reference(t[3].defined() ? t[0] + t[3] : t[0], t[4].defined() ? t[1] + t[4] : t[1],
                                t[2]);
    };
    return gradients_of_reference(reference, {a, b, state, input_bias, hidden_bias}, g);
  }
  auto [x, y, old] = fused_gru_cell_backward(g, state, gates);
  return Grads{x, y, old, input_bias.defined() ? x : Tensor(), hidden_bias.defined() ? y : Tensor()};
}

// --- one step of each kind of cell

enum class Cell { Lstm, Gru, Tanh, Relu };
using State = std::vector<Tensor>;  // h, and c of an LSTM

struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

// Under autocast products come in a half type and states need not: their common type, as sums of them have.
Tensor beside(const Tensor& gates, const Tensor& state) {
  return dispatch_state.always & kAutocast ? to_dtype(gates, result_type(gates, state)) : gates;
}
std::tuple<Tensor, Tensor, Tensor> lstm_step(const Tensor& input_gates, const Tensor& hidden_gates,
                                             const Tensor& cell) {
  const Tensor a = beside(input_gates, cell), b = beside(hidden_gates, cell);
  return fused_lstm_cell(a, b, beside(cell, a));
}

State advance(Cell kind, const Tensor& projected, const State& state, const Weights& w) {
  const Tensor hidden = linear(state[0], w.w_hh, w.b_hh);
  switch (kind) {
    case Cell::Lstm: {
      auto [h, c, gates] = lstm_step(projected, hidden, state[1]);
      return {w.w_hr.defined() ? linear(h, w.w_hr, Tensor()) : h, c};
    }
    case Cell::Gru:
      return {std::get<0>(fused_gru_cell(beside(projected, state[0]), beside(hidden, state[0]),
                                         beside(state[0], hidden), Tensor(), Tensor()))};
    case Cell::Tanh:
      return {tanh(projected + hidden)};
    default:
      return {relu(projected + hidden)};
  }
}

void check_cell(const char* who, const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                const Tensor& w_hh, int64_t gates) {
  RL_CHECK(w_ih.dim() == 2 && w_hh.dim() == 2, who, ": weights must be matrices, got ", describe(w_ih),
           " and ", describe(w_hh));
  RL_CHECK(input.dim() == 2 && hx.dim() == 2, who, ": Expected input and hx to be 2D, got ", input.dim(),
           "D and ", hx.dim(), "D");
  RL_CHECK(input->sizes[1] == w_ih->sizes[1], "input has inconsistent input_size: got ", input->sizes[1],
           " expected ", w_ih->sizes[1]);
  RL_CHECK(hx->sizes[1] == w_hh->sizes[1], "hidden has inconsistent hidden_size: got ", hx->sizes[1],
           ", expected ", w_hh->sizes[1]);
  RL_CHECK(input->sizes[0] == hx->sizes[0], "Input batch size ", input->sizes[0],
           " doesn't match hidden0 batch size ", hx->sizes[0]);
  RL_CHECK(w_ih->sizes[0] == gates * hx->sizes[1], who, ": weight_ih must have ", gates * hx->sizes[1],
           " rows, got ", describe(w_ih));
}

std::tuple<Tensor, Tensor> lstm_cell_body(const Call&, const Tensor& input, TensorList hx, const Tensor& w_ih,
                                          const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  RL_CHECK(hx.size() == 2, "lstm_cell expects two hidden states");
  check_cell("lstm_cell", input, hx[0], w_ih, w_hh, 4);
  auto [h, c, gates] = lstm_step(linear(input, w_ih, b_ih), linear(hx[0], w_hh, b_hh), hx[1]);
  return {h, c};
}

template <Cell kind>
Tensor plain_cell_body(const Call&, const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                       const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  check_cell("rnn cell", input, hx, w_ih, w_hh, kind == Cell::Gru ? 3 : 1);
  return advance(kind, linear(input, w_ih, b_ih), {hx}, {w_ih, w_hh, b_ih, b_hh, Tensor()})[0];
}

// --- layers

State rows_of(const State& s, int64_t from, int64_t to) {
  State part;
  for (const Tensor& t : s) part.push_back(slice(t, 0, from, to, 1));
  return part;
}
State joined(const State& a, const State& b) {
  State both;
  for (size_t i = 0; i < a.size(); ++i) both.push_back(cat({a[i], b[i]}, 0));
  return both;
}

// Visits the steps in order. Sequences are sorted by length: the batch shrinks where some end, or grows when
// reading backwards.
State run_direction(Cell kind, const std::vector<Tensor>& steps, const State& start, const Weights& w,
                    bool reverse, std::vector<Tensor>& outputs) {
  const auto count = static_cast<int64_t>(steps.size());
  outputs.resize(steps.size());
  int64_t size = steps[static_cast<size_t>(reverse ? count - 1 : 0)]->sizes[0];
  State current = start[0]->sizes[0] == size ? start : rows_of(start, 0, size);
  std::vector<State> ended;
  for (int64_t k = 0; k < count; ++k) {
    const auto t = static_cast<size_t>(reverse ? count - 1 - k : k);
    const int64_t wanted = steps[t]->sizes[0];
    if (wanted < size) {
      ended.push_back(rows_of(current, wanted, size));
      current = rows_of(current, 0, wanted);
    } else if (wanted > size) {
      current = joined(current, rows_of(start, size, wanted));
    }
    size = wanted;
    current = advance(kind, steps[t], current, w);
    outputs[t] = current[0];
  }
  for (size_t i = ended.size(); i-- > 0;) current = joined(current, ended[i]);
  return current;
}

struct Layers {
  Cell kind;
  TensorList params;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional;

  size_t per_cell() const {
    const int64_t cells = num_layers * (bidirectional ? 2 : 1);
    RL_CHECK(num_layers > 0 && static_cast<int64_t>(params.size()) % cells == 0,
             "rnn: got an incorrect number of RNN parameters: ", params.size(), " for ", cells, " cells");
    const size_t n = params.size() / static_cast<size_t>(cells);
    const size_t plain = has_biases ? 4 : 2;
    RL_CHECK(n == plain || (kind == Cell::Lstm && n == plain + 1),
             "rnn: got an incorrect number of RNN parameters: ", params.size());
    return n;
  }
  Weights weights(size_t k) const {
    const size_t n = per_cell();
    const Tensor* p = params.data() + k * n;
    Weights w{p[0], p[1], has_biases ? p[2] : Tensor(), has_biases ? p[3] : Tensor(),
              n % 2 ? p[n - 1] : Tensor()};
    return w;
  }
};

// Whether one operator can do all steps. Inside a function transform the steps' own rules are better; packed
// sequences keep their states in single precision under autocast.
bool runs_as_one(const Layers& layers, const Weights& w, const Dims* batch_sizes) {
  if (device_layers(w.w_hh) && batch_sizes) return false;  // steps of unequal batches are apart there
  if (layers.kind != Cell::Lstm || w.w_hr.defined() || dispatch_state.level) return false;
  return !batch_sizes || !(dispatch_state.always & kAutocast);
}
// Whoever sees operators, to make a graph of them or as a class, sees the product of the input as one.
bool seen_by_python(const Tensor& data, const Weights& w) {
  return (dispatch_state.always | data->flags | w.w_ih->flags) & kPythonDispatch;
}
Tensor both_biases(const Weights& w) { return w.b_ih.defined() ? w.b_ih + w.b_hh : Tensor(); }

// What the steps of one direction give: outputs in the layout of the input, and last states.
struct Direction {
  Tensor output;
  State finals;
};

Direction run_as_one(const Tensor& data, const State& start, const Weights& w, const Dims* batch_sizes,
                     bool reverse, bool batch_first) {
  const IntList sizes = batch_sizes ? IntList(*batch_sizes) : IntList();
  const bool keep = GradMode::enabled(), projects = !seen_by_python(data, w);
  const Tensor bias = both_biases(w);
  auto [output, h, c, gates, cells] =
      lstm_layer(projects ? data : linear(data, w.w_ih, bias), start[0], start[1], w.w_hh, sizes, reverse,
                 batch_first, keep, projects ? w.w_ih : Tensor(), projects ? bias : Tensor());
  return {output, {h, c}};
}

Direction run_by_steps(Cell kind, const Tensor& data, const State& start, const Weights& w,
                       const Dims* batch_sizes, bool reverse, bool batch_first) {
  const Tensor projected = linear(data, w.w_ih, w.b_ih);  // one product for all steps
  const int64_t time = batch_first ? 1 : 0;
  const std::vector<Tensor> steps =
      batch_sizes ? split_with_sizes(projected, *batch_sizes, 0) : unbind(projected, time);
  std::vector<Tensor> outputs;
  const State finals = run_direction(kind, steps, start, w, reverse, outputs);
  return {batch_sizes ? cat(outputs, 0) : stack(outputs, time), finals};
}

struct Outcome {
  Tensor output;
  State finals;  // [layers * directions, batch, features]
};

// `data`: [steps, batch, features], with batch_first [batch, steps, features], or [rows, features] with
// `batch_sizes`.
Outcome run_layers(const Layers& layers, Tensor data, const State& hx, const Dims* batch_sizes,
                   bool batch_first) {
  const size_t directions = layers.bidirectional ? 2 : 1;
  const size_t n = static_cast<size_t>(layers.num_layers) * directions;
  layers.per_cell();
  for (const Tensor& h : hx)
    RL_CHECK(h.dim() == 3 && h->sizes[0] == static_cast<int64_t>(n), "rnn: expected a hidden state of [", n,
             ", batch, features], got ", describe(h));
  std::vector<State> finals(hx.size());
  for (size_t layer = 0; layer * directions < n; ++layer) {
    std::vector<Tensor> results;
    for (size_t direction = 0; direction < directions; ++direction) {
      const size_t k = layer * directions + direction;
      const Weights w = layers.weights(k);
      RL_CHECK(data.size(-1) == w.w_ih.size(-1), "input.size(-1) must be equal to input_size. Expected ",
               w.w_ih.size(-1), ", got ", data.size(-1));
      State start;
      for (const Tensor& h : hx) start.push_back(select(h, 0, static_cast<int64_t>(k)));
      const bool reverse = direction == 1;
      Direction done = runs_as_one(layers, w, batch_sizes)
                           ? run_as_one(data, start, w, batch_sizes, reverse, batch_first)
                           : run_by_steps(layers.kind, data, start, w, batch_sizes, reverse, batch_first);
      for (size_t i = 0; i < hx.size(); ++i) finals[i].push_back(done.finals[i]);
      results.push_back(done.output);
    }
    data = directions == 1 ? results[0] : cat(results, -1);
    if (layers.dropout > 0 && layers.train && (layer + 1) * directions < n)
      data = dropout(data, layers.dropout, true);
  }
  Outcome outcome{data, {}};
  for (const State& f : finals) outcome.finals.push_back(stack(f, 0));
  return outcome;
}

Outcome run_padded(const Layers& layers, const Tensor& input, const State& hx, bool batch_first) {
  RL_CHECK(input.dim() == 3, "rnn: Expected input to be 3D, got ", describe(input));
  RL_CHECK(input->sizes[batch_first ? 1 : 0] > 0, "Expected sequence length to be larger than 0 in RNN");
  const int64_t batch = input->sizes[batch_first ? 0 : 1];
  for (const Tensor& h : hx)
    RL_CHECK(h.dim() == 3 && h->sizes[1] == batch, "rnn: Expected hidden size with batch ", batch, ", got ",
             describe(h));
  if (!batch_first || !device_layers(input))
    return run_layers(layers, as_contiguous(input), hx, nullptr, batch_first);
  // A device's steps lie one after the other, as PyTorch's do: dropout draws in the order of memory.
  Outcome outcome = run_layers(layers, as_contiguous(transpose(input, 0, 1)), hx, nullptr, false);
  outcome.output = transpose(outcome.output, 0, 1);
  return outcome;
}

Outcome run_packed(const Layers& layers, const Tensor& data, const Tensor& batch_sizes, const State& hx) {
  RL_CHECK(data.dim() == 2 && batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::Int64 &&
               batch_sizes.numel() > 0,
           "rnn: expected packed data of [rows, features] and batch_sizes of int64, got ", describe(data),
           " and ", describe(batch_sizes));
  const Tensor counts = as_contiguous(on_cpu(batch_sizes));
  const Dims sizes(counts.data<int64_t>(), static_cast<size_t>(counts.numel()));
  int64_t total = 0, before = counts.data<int64_t>()[0];
  for (int64_t s : sizes) {
    RL_CHECK(s > 0 && s <= before, "rnn: batch_sizes must be positive and must not grow, got ", sizes);
    total += before = s;
  }
  RL_CHECK(total == data->sizes[0], "rnn: batch_sizes add up to ", total, " rows, but data has ",
           data->sizes[0]);
  for (const Tensor& h : hx)
    RL_CHECK(h.dim() == 3 && h->sizes[1] == sizes[0], "rnn: Expected hidden size with batch ", sizes[0],
             ", got ", describe(h));
  return run_layers(layers, data, hx, &sizes, false);
}

std::tuple<Tensor, Tensor, Tensor> lstm_body(const Call&, const Tensor& input, TensorList hx,
                                             TensorList params, bool has_biases, int64_t num_layers,
                                             double dropout, bool train, bool bidirectional,
                                             bool batch_first) {
  RL_CHECK(hx.size() == 2, "lstm expects two hidden states");
  Outcome o = run_padded({Cell::Lstm, params, has_biases, num_layers, dropout, train, bidirectional}, input,
                         {hx[0], hx[1]}, batch_first);
  return {o.output, o.finals[0], o.finals[1]};
}
std::tuple<Tensor, Tensor, Tensor> lstm_packed_body(const Call&, const Tensor& data,
                                                    const Tensor& batch_sizes, TensorList hx,
                                                    TensorList params, bool has_biases, int64_t num_layers,
                                                    double dropout, bool train, bool bidirectional) {
  RL_CHECK(hx.size() == 2, "lstm expects two hidden states");
  Outcome o = run_packed({Cell::Lstm, params, has_biases, num_layers, dropout, train, bidirectional}, data,
                         batch_sizes, {hx[0], hx[1]});
  return {o.output, o.finals[0], o.finals[1]};
}
template <Cell kind>
std::tuple<Tensor, Tensor> plain_body(const Call&, const Tensor& input, const Tensor& hx, TensorList params,
                                      bool has_biases, int64_t num_layers, double dropout, bool train,
                                      bool bidirectional, bool batch_first) {
  Outcome o = run_padded({kind, params, has_biases, num_layers, dropout, train, bidirectional}, input, {hx},
                         batch_first);
  return {o.output, o.finals[0]};
}
template <Cell kind>
std::tuple<Tensor, Tensor> plain_packed_body(const Call&, const Tensor& data, const Tensor& batch_sizes,
                                             const Tensor& hx, TensorList params, bool has_biases,
                                             int64_t num_layers, double dropout, bool train,
                                             bool bidirectional) {
  Outcome o = run_packed({kind, params, has_biases, num_layers, dropout, train, bidirectional}, data,
                         batch_sizes, {hx});
  return {o.output, o.finals[0]};
}

template <Cell kind, class Padded, class Packed, class One>
void register_plain(Table& t, Padded& padded, Packed& packed, One& cell, const char* name) {
  t.composite(padded,
              kept_schema(str(
                  name,
                  ".input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
                  "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)")),
              plain_body<kind>)
      .doc(
          "Recurrent layers over padded sequences: outputs and last hidden states. Shape: [time, batch, "
          "features].")
      .function_only();
  t.composite(
       packed,
       kept_schema(str(name,
                       ".data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
                       "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)")),
       plain_packed_body<kind>)
      .doc("Recurrent layers over packed sequences: outputs and last hidden states.")
      .function_only()
      .any_device(kAllOperands);
  t.composite(cell,
              kept_schema(str(name,
                              "_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
                              "Tensor? b_hh=None) -> Tensor")),
              plain_cell_body<kind>)
      .doc("One step of a recurrent layer: the hidden state. Shapes: [batch?, features], [batch?, hidden].")
      .function_only()
      .autocast(Cast::None, Cast::Half);
}

}  // namespace

State run_lstm_steps(const std::vector<Tensor>& projected, const Tensor& hx, const Tensor& cx,
                     const Tensor& w_hh, bool reverse, std::vector<Tensor>& outputs) {
  return run_direction(Cell::Lstm, projected, {hx, cx}, {Tensor(), w_hh, Tensor(), Tensor(), Tensor()},
                       reverse, outputs);
}

void register_lstm_layer_operators(Table& t);
void register_packed_sequence_operators(Table& t);

void register_rnn_operators(Table& t) {
  register_lstm_layer_operators(t);
  register_packed_sequence_operators(t);
  t.op(fused_lstm_cell,
       "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx) -> (Tensor, Tensor, "
       "Tensor)",
       fused_lstm_cell_kernel)
      .absent_in_pytorch()
      .doc("One LSTM step from the sums of its gates: hidden state, cell state, gates after activation.")
      .internal()
      .family(Family::Recurrent)
      .on_devices()
      .autocast(Cast::Widest, Cast::Half)
      .derivative(
          [](GradOf<0> gh, GradOf<1> gc, In<0> a, In<1> b, In<2> cell, Out<1> new_cell, Out<2> gates) {
            if (derivatives_wanted() || dispatch_state.level)
              return lstm_cell_gradients_reference(gh, gc, a + b, cell);
            auto [grad, old] = fused_lstm_cell_backward(gh, gc, cell, new_cell, gates);
            return Grads{grad, grad, old};
          });
  t.op(fused_lstm_cell_backward,
       "_thnn_fused_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor gates) "
       "-> (Tensor, Tensor)",
       fused_lstm_cell_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradients of one LSTM step with respect to its gates and the cell state before it.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .not_differentiable(
          "the rule of _thnn_fused_lstm_cell uses its reference implementation when gradients are recorded");
  t.op(fused_gru_cell,
       "_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, "
       "Tensor? hidden_bias=None) -> (Tensor, Tensor)",
       fused_gru_cell_kernel)
      .absent_in_pytorch()
      .doc("A GRU step from its gates before activation.")
      .internal()
      .family(Family::Recurrent)
      .on_devices()
      .autocast(Cast::Widest, Cast::Half)
      .derivative(
          [](Grad g, In<0> a, In<1> b, In<2> state, In<3> input_bias, In<4> hidden_bias, Out<1> gates) {
            return gru_cell_gradients(g, a, b, state, input_bias, hidden_bias, gates);
          });
  t.op(fused_gru_cell_backward,
       "_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor hx, Tensor workspace) -> (Tensor, Tensor, "
       "Tensor)",
       fused_gru_cell_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradients of a GRU step's gates and old state.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .not_differentiable(
          "the rule of _thnn_fused_gru_cell uses its reference implementation when gradients are recorded");
  t.composite(lstm,
              "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
              "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
              lstm_body)
      .doc(
          "LSTM layers over padded sequences: outputs, last hidden and last cell states. Shape: [time, "
          "batch, features].")
      .function_only()
      .autocast(Cast::Half);
  t.composite(lstm_packed,
              "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int "
              "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
              lstm_packed_body)
      .doc("LSTM layers over packed sequences: outputs, last hidden and last cell states.")
      .function_only()
      .any_device(kAllOperands);
  t.composite(lstm_cell,
              "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
              "b_hh=None) -> (Tensor, Tensor)",
              lstm_cell_body)
      .doc("One step of an LSTM: hidden and cell state.")
      .function_only()
      .autocast(Cast::None, Cast::Half);
  register_plain<Cell::Gru>(t, gru, gru_packed, gru_cell, "gru");
  register_plain<Cell::Tanh>(t, rnn_tanh, rnn_tanh_packed, rnn_tanh_cell, "rnn_tanh");
  register_plain<Cell::Relu>(t, rnn_relu, rnn_relu_packed, rnn_relu_cell, "rnn_relu");
}

}  // namespace rushlight
