#include "ops/lstm_layer_device.h"

#include "cpu/rnn.h"
#include "device/layers.h"
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
  const bool keep = l.cells.defined();
  const Tensor product = empty_tensor(IntList{batch, 4 * hidden}, l.output.dtype(), l.output.device());
  const Tensor scratch = keep ? Tensor() : empty_like_tensor(product, product.dtype());
  const Tensor turned = transpose(l.w_hh, 0, 1);
  Tensor h = l.hx, c = l.cx;
  for (int64_t k = 0; k < steps.count(); ++k) {
    const int64_t t = steps(k);
    const Tensor in = at(l.projected, t), out = at(l.output, t), gates = keep ? at(l.gates, t) : scratch,
                 cell = keep ? at(l.cells, t) : l.last_c;  // the old cell may be written over
    loops::product(product, h, turned, Scalar(1), Scalar(0));
    layers.lstm_step(out.device().index(), out.dtype(),
                     {batch, hidden, in.data_ptr(), product.data_ptr(), 4 * hidden, 4 * hidden, c.data_ptr(),
                      out.data_ptr(), cell.data_ptr(), gates.data_ptr()});
    h = out, c = cell;
  }
  loops::copy(l.last_h, h);
  if (keep) loops::copy(l.last_c, c);
}

void lstm_layer_gradients_on_device(const DeviceLstmLayerGradients& l) {
  const int64_t batch = l.cx->sizes[0], hidden = l.cx->sizes[1];
  const Steps steps(l.gates->sizes[0], l.reverse);
  const DeviceLayers& layers = *device_layers(l.gates);
  // What reaches the state after each step: from the output, and by products from the step that follows.
  const Tensor flow = empty_tensor(IntList{steps.count(), batch, hidden}, l.gates.dtype(), l.gates.device());
  const Tensor none = scalar_tensor_of(0, l.gates.dtype());
  loops::copy(flow, l.grad_output.defined() ? l.grad_output : none);
  if (l.grad_hidden.defined()) add.inplace(at(flow, steps.last()), l.grad_hidden, Scalar(1));
  loops::copy(l.grad_cx, l.grad_cell.defined() ? l.grad_cell : none);
  for (int64_t k = steps.count() - 1; k >= 0; --k) {
    const int64_t t = steps(k);
    const Tensor gates = at(l.gates, t), grad_gates = at(l.grad_gates, t), after = at(l.cells, t),
                 before = k ? at(l.cells, steps(k - 1)) : l.cx, wanted = at(flow, t);
    layers.lstm_step_backward(
        gates.device().index(), gates.dtype(),
        {batch, hidden, wanted.data_ptr(), l.grad_cx.data_ptr(), before.data_ptr(), after.data_ptr(),
         gates.data_ptr(), grad_gates.data_ptr(), l.grad_cx.data_ptr()});
    loops::product(k ? at(flow, steps(k - 1)) : l.grad_hx, grad_gates, l.w_hh, Scalar(1), Scalar(k ? 1 : 0));
  }
}

}  // namespace rushlight
