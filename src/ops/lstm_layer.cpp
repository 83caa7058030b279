// One direction of an LSTM layer as one operator, and the gradient of its recurrent weight as one product.
#include "cpu/lstm_layer.h"

#include "core/prepared_weight.h"
#include "cpu/packed_product.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/lstm_layer_device.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reference.h"
#include "ops/rnn.h"
#include "ops/rnn_steps.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// The loops of the CPU keep cells of halves in single precision.
DType cell_dtype(const Tensor& t) {
  return is_reduced_float(t.dtype()) && !device_layers(t) ? DType::Float32 : t.dtype();
}

// How the steps lie in tensors of [time, batch, ...], [batch, time, ...] or packed rows.
class StepLayout {
 public:
  StepLayout(const Tensor& gates, int64_t batch, int64_t hidden, IntList batch_sizes, bool reverse,
             bool batch_first) {
    const bool packed = !batch_sizes.empty();
    const int64_t count = packed        ? static_cast<int64_t>(batch_sizes.size())
                          : batch_first ? gates->sizes[1]
                                        : gates->sizes[0];
    int64_t row = 0;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t live = packed ? batch_sizes[static_cast<size_t>(t)] : batch;
      start_.push_back(row);
      active_.push_back(live);
      row += batch_first ? 1 : live;
    }
    view_ = {gates.dtype(),           batch,  hidden, count, start_.data(), active_.data(),
             batch_first ? count : 1, reverse};
  }
  const cpu::LstmSteps& view() const { return view_; }
  // Where each row's state before lies in [first states, rows]; packed rows only.
  Tensor rows_before() const {
    std::vector<int64_t> from;
    for (size_t t = 0; t < start_.size(); ++t)
      for (int64_t b = 0; b < active_[t]; ++b) from.push_back(before(t, b));
    Tensor index = empty_tensor(IntList{static_cast<int64_t>(from.size())}, DType::Int64);
    std::copy(from.begin(), from.end(), index.data<int64_t>());
    return index;
  }

 private:
  int64_t before(size_t t, int64_t b) const {
    const bool first = view_.reverse ? t + 1 == start_.size() || b >= active_[t + 1] : t == 0;
    return first ? b : view_.batch + start_[view_.reverse ? t + 1 : t - 1] + b;
  }
  Dims start_, active_;
  cpu::LstmSteps view_;
};

void check_layer(const Tensor& projected, const Tensor& hx, const Tensor& cx, const Tensor& w,
                 IntList batch_sizes, bool batch_first) {
  const bool packed = !batch_sizes.empty();
  RL_CHECK(w.dim() == 2 && w->sizes[0] == 4 * w->sizes[1] && projected.dim() == (packed ? 2 : 3) &&
               projected.numel() >= 0 && projected->sizes.back() == w->sizes[0],
           "lstm: gates of shape ", projected.sizes(), " do not fit a recurrent weight of shape ", w.sizes());
  int64_t rows = 0, batch = packed ? batch_sizes[0] : projected->sizes[batch_first ? 0 : 1];
  for (int64_t live = batch; int64_t n : batch_sizes) {
    RL_CHECK(n > 0 && n <= live, "lstm: batch_sizes must be positive and must not grow, got ", batch_sizes);
    rows += live = n;
  }
  RL_CHECK(packed ? rows == projected->sizes[0] && !batch_first : projected->sizes[batch_first ? 1 : 0] > 0,
           "lstm: steps of ", batch_sizes, " rows do not fit gates of shape ", projected.sizes());
  for (const Tensor* t : {&hx, &cx}) {
    RL_CHECK(t->dim() == 2 && t->sizes()[0] == batch && t->sizes()[1] == w->sizes[1], "Expected hidden size ",
             IntList{batch, w->sizes[1]}, ", got ", t->sizes());
    RL_CHECK(t->dtype() == projected.dtype(), "lstm: expected one dtype, got ", describe(projected), " and ",
             describe(*t));
  }
  RL_CHECK(w.dtype() == projected.dtype(), "lstm: expected one dtype, got ", describe(projected), " and ",
           describe(w));
}

// [steps, batch, ...] of either layout.
Tensor time_first(const Tensor& t, bool batch_first) {
  return t.defined() && batch_first ? contiguous(transpose(t, 0, 1)) : as_contiguous(t);
}
// Of these sizes, [batch, steps, ...] or [steps, batch, ...], its steps one after the other in memory.
Tensor empty_by_steps(IntList sizes, bool batch_first, DType dtype, Device device) {
  if (!batch_first) return empty_tensor(sizes, dtype, device);
  return empty_strided_tensor(sizes, IntList{sizes[2], sizes[0] * sizes[2], 1}, dtype, device);
}

bool is_row(const Tensor& t, int64_t n) { return t.dim() == 1 && t->sizes[0] == n && t.is_contiguous(); }
Tensor rows_of(const Tensor& t) { return t.dim() == 3 ? flatten(t, 0, 1) : t; }
// The input's share of the gates; without w_ih, the input is that already.
Tensor projected_of(const Tensor& input, const Tensor& w_ih, const Tensor& bias) {
  if (!w_ih.defined()) return input;
  const Tensor rows = linear(rows_of(input), w_ih, bias);
  return input.dim() != 3 ? rows
                          : unsafe_view(rows, IntList{input->sizes[0], input->sizes[1], rows->sizes[1]});
}

// The same on the CPU. So few rows that panels of a kept weight are ahead of the library take panels of a
// fresh one too: a library sums in another order, and a layer's bits shall not depend on how often it was
// called.
Tensor projected_here(const Tensor& input, const Tensor& w_ih, const Tensor& bias) {
  constexpr DType kFloat = DType::Float32;
  if (!w_ih.defined() || !input.is_cpu() || input.dtype() != kFloat || w_ih.dtype() != kFloat ||
      w_ih.dim() != 2 || (bias.defined() && (bias.dtype() != kFloat || !is_row(bias, w_ih->sizes[0]))))
    return projected_of(input, w_ih, bias);
  const int64_t n = w_ih->sizes[0], k = w_ih->sizes[1], m = k > 0 ? input.numel() / k : 0;
  if (m < 2 || n < 2 || k < 2 || input->sizes.back() != k || m > cpu::most_packed_rows(k, n))
    return projected_of(input, w_ih, bias);
  const Tensor x = as_contiguous(input), w = as_contiguous(w_ih);
  Dims sizes = input->sizes;
  sizes.back() = n;
  const Tensor result = empty_tensor(sizes, kFloat);
  const PreparedWeight prepared(w);
  cpu::multiply_in_panels(kFloat, m, n, k, x.data_ptr(), k, {w.data_ptr(), 1, k},
                          bias.defined() ? bias.data_ptr() : nullptr, result.data_ptr());
  return result;
}

// `own`: nobody else sees `projected`, so that activated gates may take its place.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> lstm_layer_there(const Tensor& projected, const Tensor& hx,
                                                                    const Tensor& cx, const Tensor& w_hh,
                                                                    bool reverse, bool batch_first, bool keep,
                                                                    bool own) {
  const DType dtype = projected.dtype();
  const Device device = projected.device();
  Dims sizes = projected->sizes;
  sizes.back() = w_hh->sizes[1];
  auto buffer = [&](IntList of) { return empty_by_steps(of, batch_first, dtype, device); };
  const Tensor output = buffer(sizes), last_h = empty_tensor(hx.sizes(), dtype, device),
               last_c = empty_tensor(hx.sizes(), dtype, device),
               gates = !keep                 ? empty_tensor(Dims{0}, dtype, device)
                       : own && !batch_first ? projected
                                             : buffer(projected.sizes()),
               cells = keep ? buffer(sizes) : empty_tensor(Dims{0}, dtype, device);
  if (output.numel()) {
    auto kept = [&](const Tensor& t) { return keep ? time_first(t, batch_first) : Tensor(); };
    lstm_layer_on_device({time_first(projected, batch_first), as_contiguous(hx), as_contiguous(cx),
                          as_contiguous(w_hh), reverse, time_first(output, batch_first), last_h, last_c,
                          kept(gates), kept(cells)});
  }
  return {contiguous(output), last_h, last_c, gates, cells};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> lstm_layer_kernel(
    const Call&, const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& w_hh,
    IntList batch_sizes, bool reverse, bool batch_first, bool keep, const Tensor& w_ih, const Tensor& bias) {
  const Tensor projected = projected_here(input, w_ih, bias);
  const bool own = w_ih.defined() && projected.is_contiguous();
  check_layer(projected, hx, cx, w_hh, batch_sizes, batch_first);
  if (device_layers(projected)) {
    RL_CHECK(batch_sizes.empty(), "lstm: packed sequences go step by step on a device");
    return lstm_layer_there(projected, hx, cx, w_hh, reverse, batch_first, keep, own);
  }
  const DType dtype = projected.dtype();
  const Device device = projected.device();
  Dims sizes = projected->sizes;
  sizes.back() = w_hh->sizes[1];
  const Dims none{0};
  const Tensor output = empty_tensor(sizes, dtype, device), last_h = empty_tensor(hx.sizes(), dtype, device),
               last_c = empty_tensor(hx.sizes(), dtype, device),
               gates = keep && own ? projected
                                   : empty_tensor(keep ? projected.sizes() : IntList(none), dtype, device),
               cells = empty_tensor(keep ? sizes : none, cell_dtype(projected), device);
  if (projected.is_cpu() && output.numel() > 0) {
    const Tensor p = as_contiguous(projected), h = as_contiguous(hx), c = as_contiguous(cx),
                 w = as_contiguous(w_hh);
    const StepLayout layout(p, hx->sizes[0], hx->sizes[1], batch_sizes, reverse, batch_first);
    const PreparedWeight prepared(w);
    cpu::lstm_layer({layout.view(), p.data_ptr(), h.data_ptr(), c.data_ptr(), w.data_ptr(), output.data_ptr(),
                     last_h.data_ptr(), last_c.data_ptr(), keep ? gates.data_ptr() : nullptr,
                     keep ? cells.data_ptr() : nullptr});
  }
  return {output, last_h, last_c, gates, cells};
}

#ifndef RUSHLIGHT_INFERENCE  // the small runtime does not train
const void* data_or_null(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

std::tuple<Tensor, Tensor, Tensor> lstm_layer_backward_kernel(const Call&, const Tensor& grad_output,
                                                              const Tensor& grad_hidden,
                                                              const Tensor& grad_cell, const Tensor& cx,
                                                              const Tensor& w_hh, const Tensor& gates,
                                                              const Tensor& cells, IntList batch_sizes,
                                                              bool reverse, bool batch_first) {
  const Tensor grad_gates = empty_by_steps(gates.sizes(), batch_first && device_layers(gates), gates.dtype(),
                                           gates.device()),
               grad_hx = empty_tensor(cx.sizes(), cx.dtype(), cx.device()),
               grad_cx = empty_tensor(cx.sizes(), cx.dtype(), cx.device());
  if (device_layers(gates) && gates.numel() > 0)
    lstm_layer_gradients_on_device({time_first(grad_output, batch_first), grad_hidden, grad_cell,
                                    as_contiguous(cx), as_contiguous(w_hh), time_first(gates, batch_first),
                                    time_first(cells, batch_first), reverse,
                                    time_first(grad_gates, batch_first), grad_hx, grad_cx});
  if (gates.is_cpu() && gates.numel() > 0) {
    check_layer(gates, cx, cx, w_hh, batch_sizes, batch_first);
    Dims sizes = gates->sizes;
    sizes.back() = w_hh->sizes[1];
    const auto fits = [&](const Tensor& t, IntList expected) {
      return !t.defined() || (t.sizes() == expected && t.dtype() == gates.dtype());
    };
    RL_CHECK(fits(grad_output, sizes) && fits(grad_hidden, cx.sizes()) && fits(grad_cell, cx.sizes()) &&
                 cells.sizes() == IntList(sizes) && cells.dtype() == cell_dtype(gates),
             "_lstm_layer_backward: cells or gradients do not fit gates ", describe(gates), " and a state ",
             describe(cx));
    const Tensor g = as_contiguous(grad_output), gh = as_contiguous(grad_hidden),
                 gc = as_contiguous(grad_cell), c = as_contiguous(cx), w = as_contiguous(w_hh),
                 activated = as_contiguous(gates), states = as_contiguous(cells);
    const StepLayout layout(gates, cx->sizes[0], cx->sizes[1], batch_sizes, reverse, batch_first);
    cpu::lstm_layer_backward({layout.view(), data_or_null(g), data_or_null(gh), data_or_null(gc),
                              c.data_ptr(), w.data_ptr(), activated.data_ptr(), states.data_ptr(),
                              grad_gates.data_ptr(), grad_hx.data_ptr(), grad_cx.data_ptr()});
  }
  return {grad_gates, grad_hx, grad_cx};
}
#endif

// Outputs, last hidden states and last cells as rows of one matrix; outputs in the order of time.
Tensor lstm_layer_reference(const Tensor& projected, const Tensor& hx, const Tensor& cx, const Tensor& w_hh,
                            IntList batch_sizes, bool reverse, bool batch_first) {
  const std::vector<Tensor> steps = batch_sizes.empty() ? unbind(projected, batch_first ? 1 : 0)
                                                        : split_with_sizes(projected, batch_sizes, 0);
  std::vector<Tensor> rows;
  for (const Tensor& last : run_lstm_steps(steps, hx, cx, w_hh, reverse, rows)) rows.push_back(last);
  return cat(rows, 0);
}

// The state before each row, row by row as in `output`.
Tensor states_before(const Tensor& output, const Tensor& hx, IntList batch_sizes, bool reverse,
                     bool batch_first) {
  if (!batch_sizes.empty()) {
    const StepLayout layout(output, hx->sizes[0], hx->sizes[1], batch_sizes, reverse, false);
    return index_select(cat({hx, output}, 0), 0, layout.rows_before());
  }
  const int64_t time = batch_first ? 1 : 0, count = output->sizes[static_cast<size_t>(time)];
  const Tensor start = unsqueeze(hx, time), rest = slice(output, time, reverse, count - !reverse, 1);
  return flatten(reverse ? cat({rest, start}, time) : cat({start, rest}, time), 0, 1);
}

struct LayerGradients {
  const Tensor &output, &hidden, &cell;
};

struct LayerInputs {
  const Tensor &input, &hx, &cx, &w_hh, &w_ih, &bias;
};

Grads lstm_layer_gradients(const LayerGradients& g, const LayerInputs& of, IntList batch_sizes, bool reverse,
                           bool batch_first, const Tensor& output, const Tensor& gates, const Tensor& cells,
                           Needs need) {
  const auto& [input, hx, cx, w_hh, w_ih, bias] = of;
  const bool packed = !batch_sizes.empty();
  if (derivatives_wanted() || dispatch_state.level) {
    const auto reference = [&](const std::vector<Tensor>& t) {
      return lstm_layer_reference(projected_of(t[0], t[4], t[5]), t[1], t[2], t[3], batch_sizes, reverse,
                                  batch_first);
    };
    Tensor outputs = g.output.defined() ? g.output : new_zeros(output, output.sizes());
    if (!packed) outputs = flatten(batch_first ? transpose(outputs, 0, 1) : outputs, 0, 1);
    return gradients_of_reference(reference, {input, hx, cx, w_hh, w_ih, bias},
                                  cat({outputs, g.hidden.defined() ? g.hidden : new_zeros(hx, hx.sizes()),
                                       g.cell.defined() ? g.cell : new_zeros(cx, cx.sizes())},
                                      0));
  }
  auto [grad_gates, grad_hx, grad_cx] = lstm_layer_backward(g.output, g.hidden, g.cell, cx, w_hh, gates,
                                                            cells, batch_sizes, reverse, batch_first);
  const Tensor rows = rows_of(grad_gates), columns = transpose(rows, 0, 1);
  Tensor grad_input = grad_gates, grad_hh, grad_ih;
  if (need[3]) grad_hh = mm(columns, states_before(output, hx, batch_sizes, reverse, batch_first));
  if (w_ih.defined()) {
    if (need[8]) grad_ih = mm(columns, rows_of(input));
    grad_input = need[0] ? reshape(mm(rows, w_ih), input.sizes()) : Tensor();
  }
  return Grads{grad_input, grad_hx, grad_cx, grad_hh, grad_ih, need[9] ? rows : Tensor()};
}

}  // namespace

void register_lstm_layer_operators(Table& t) {
  t.op(lstm_layer,
       "_lstm_layer(Tensor input, Tensor hx, Tensor cx, Tensor w_hh, int[] batch_sizes, bool reverse, bool "
       "batch_first, bool keep, Tensor? w_ih=None, Tensor? bias=None) -> (Tensor, Tensor, Tensor, Tensor, "
       "Tensor)",
       lstm_layer_kernel)
      .absent_in_pytorch()
      .doc("One direction of an LSTM layer: outputs, last states, and gates and cells of all steps.")
      .on_devices()
      .internal()
      .family(Family::Recurrent)
      .autocast(Cast::Half)
      .node("MkldnnRnnLayerBackward0")
      .derivative([](GradOf<0> g, GradOf<1> gh, GradOf<2> gc, In<0> input, In<1> hx, In<2> cx, In<3> w_hh,
                     Attr<4, IntList> batch_sizes, Attr<5, bool> reverse, Attr<6, bool> batch_first,
                     In<8> w_ih, In<9> bias, Out<0> output, Out<3> gates, Out<4> cells, Needs need) {
        return lstm_layer_gradients({g, gh, gc}, {input, hx, cx, w_hh, w_ih, bias}, batch_sizes, reverse,
                                    batch_first, output, gates, cells, need);
      });
#ifndef RUSHLIGHT_INFERENCE
  t.op(lstm_layer_backward,
       "_lstm_layer_backward(Tensor? grad_output, Tensor? grad_hidden, Tensor? grad_cell, Tensor cx, Tensor "
       "w_hh, Tensor gates, Tensor cells, int[] batch_sizes, bool reverse, bool batch_first) -> (Tensor, "
       "Tensor, Tensor)",
       lstm_layer_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradients of an LSTM layer with respect to its gates, first hidden and first cell state.")
      .on_devices()
      .internal()
      .family(Family::Gradient)
      .not_differentiable(
          "the rule of _lstm_layer uses its reference implementation when gradients are recorded");
#endif
}

}  // namespace rushlight
