#include "ops/lstm_layer_device.h"

#include "cpu/rnn.h"
#include "device/layers.h"
#include "device/lstm.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// Step after step of the recurrence; the first has no step before.
class Steps {
 public:
  Steps(int64_t count, bool reverse) : count_(count), reverse_(reverse) {}
  int64_t operator()(int64_t k) const { return reverse_ ? count_ - 1 - k : k; }
  int64_t count() const { return count_; }
  int64_t last() const { return (*this)(count_ - 1); }

 private:
  int64_t count_;
  bool reverse_;
};

Tensor at(const Tensor& t, int64_t step) { return select(t, 0, step); }

}  // namespace

void lstm_layer_on_device(const DeviceLstmLayer& l) {
  const int64_t batch = l.hx->sizes[0], hidden = l.hx->sizes[1];
  const Steps steps(l.projected->sizes[0], l.reverse);
  const DeviceLayers& layers = *device_layers(l.output);
  const bool keep = l.cells.defined(), whole = batch <= DeviceLayers::kFewRows;
  if (layers.lstm_sequence) {
    auto kept = [&](const Tensor& t) { return keep ? t.data_ptr() : nullptr; };
    DeviceLstmSequence all{.steps = steps.count(), .batch = batch, .hidden = hidden, .reverse = l.reverse};
    all.projected = l.projected.data_ptr(), all.weight = l.w_hh.data_ptr();
    all.first_hidden = l.hx.data_ptr(), all.first_cell = l.cx.data_ptr();
    all.output = l.output.data_ptr(), all.last_cell = l.last_c.data_ptr();
    all.cells = kept(l.cells), all.gates = kept(l.gates);
    if (layers.lstm_sequence(l.output.device().index(), l.output.dtype(), all))
      return loops::copy(l.last_h, at(l.output, steps.last()));
  }
  auto buffer = [&](bool used) {
    return empty_tensor(IntList{used ? batch : 0, 4 * hidden}, l.output.dtype(), l.output.device());
  };
  const Tensor product = buffer(!whole), scratch = buffer(!keep), turned = transpose(l.w_hh, 0, 1);
  Tensor h = l.hx, c = l.cx;
  for (int64_t k = 0; k < steps.count(); ++k) {
    const int64_t t = steps(k);
    const Tensor in = at(l.projected, t), out = at(l.output, t), gates = keep ? at(l.gates, t) : scratch,
                 cell = keep ? at(l.cells, t) : l.last_c;  // the old cell may be written over
    cpu::LstmStep step{.batch = batch, .hidden = hidden, .input_gates = in.data_ptr(), .cell = c.data_ptr()};
    step.input_stride = step.hidden_stride = 4 * hidden;
    step.new_hidden = out.data_ptr(), step.new_cell = cell.data_ptr(), step.gates = gates.data_ptr();
    if (whole) {
      layers.lstm_whole_step(out.device().index(), out.dtype(), step, h.data_ptr(), l.w_hh.data_ptr());
    } else {
      loops::product(product, h, turned, Scalar(1), Scalar(0));
      step.hidden_gates = product.data_ptr();
      layers.lstm_step(out.device().index(), out.dtype(), step);
    }
    h = out, c = cell;
  }
  loops::copy(l.last_h, h);
  if (keep) loops::copy(l.last_c, c);
}

void lstm_layer_gradients_on_device(const DeviceLstmLayerGradients& l) {
  const int64_t batch = l.cx->sizes[0], hidden = l.cx->sizes[1];
  const Steps steps(l.gates->sizes[0], l.reverse);
  const DeviceLayers& layers = *device_layers(l.gates);
  const bool whole = batch <= DeviceLayers::kFewRows;
  // What reaches the state after each step: from the output, and by products from the step that follows.
  const Tensor flow = empty_tensor(IntList{steps.count(), batch, hidden}, l.gates.dtype(), l.gates.device());
  const Tensor none = scalar_tensor_of(0, l.gates.dtype());
  loops::copy(flow, l.grad_output.defined() ? l.grad_output : none);
  if (l.grad_hidden.defined()) add.inplace(at(flow, steps.last()), l.grad_hidden, Scalar(1));
  loops::copy(l.grad_cx, l.grad_cell.defined() ? l.grad_cell : none);
  if (layers.lstm_sequence_backward) {
    DeviceLstmSequenceGradients all{
        .steps = steps.count(), .batch = batch, .hidden = hidden, .reverse = l.reverse};
    all.weight = l.w_hh.data_ptr(), all.first_cell = l.cx.data_ptr();
    all.gates = l.gates.data_ptr(), all.cells = l.cells.data_ptr(), all.flow = flow.data_ptr();
    all.grad_cell = l.grad_cx.data_ptr(), all.grad_gates = l.grad_gates.data_ptr();
    if (layers.lstm_sequence_backward(flow.device().index(), flow.dtype(), all))
      return loops::product(l.grad_hx, at(l.grad_gates, steps(0)), l.w_hh, Scalar(1), Scalar(0));
  }
  Tensor later;  // the gradients of the gates of the step that follows
  for (int64_t k = steps.count() - 1; k >= 0; --k) {
    const int64_t t = steps(k);
    const Tensor gates = at(l.gates, t), grad_gates = at(l.grad_gates, t), after = at(l.cells, t),
                 before = k ? at(l.cells, steps(k - 1)) : l.cx, wanted = at(flow, t);
    cpu::LstmStepGradients step{.batch = batch, .hidden = hidden, .grad_hidden = wanted.data_ptr()};
    step.grad_cell = l.grad_cx.data_ptr(), step.grad_old_cell = l.grad_cx.data_ptr();
    step.cell = before.data_ptr(), step.new_cell = after.data_ptr();
    step.gates = gates.data_ptr(), step.grad_gates = grad_gates.data_ptr();
    if (whole) {
      layers.lstm_whole_step_backward(gates.device().index(), gates.dtype(), step,
                                      later.defined() ? later.data_ptr() : nullptr, l.w_hh.data_ptr());
    } else {
      layers.lstm_step_backward(gates.device().index(), gates.dtype(), step);
      if (k) loops::product(at(flow, steps(k - 1)), grad_gates, l.w_hh, Scalar(1), Scalar(1));
    }
    later = grad_gates;
  }
  loops::product(l.grad_hx, later, l.w_hh, Scalar(1), Scalar(0));
}

}  // namespace rushlight
