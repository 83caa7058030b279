// One direction of an LSTM layer as one operator: the recurrent weight is packed once for all steps, and its
// gradient is one product over all steps instead of a sum over them.
#include <cstring>

#include "cpu/packed_gemm.h"
#include "cpu/rnn.h"
#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/rnn.h"
#include "ops/twin.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// Products over the batch are small: halves are computed in float from end to end.
DType layer_dtype(DType t) { return is_reduced_float(t) ? DType::Float32 : t; }
Tensor as_computed(const Tensor& t, DType dtype) {
  const Tensor typed = to_dtype(t, dtype);
  return typed.is_contiguous() ? typed : contiguous(typed);
}

Tensor computed_or_none(const Tensor& t, DType dtype) { return t.defined() ? as_computed(t, dtype) : t; }

// The steps in the order in which they are computed.
struct Steps {
  int64_t count, batch, hidden;
  bool reverse;
  int64_t at(int64_t k) const { return reverse ? count - 1 - k : k; }
  size_t bytes(DType t, int64_t width) const {
    return static_cast<size_t>(batch * width * hidden) * element_size(t);
  }
  // Step k of [time, batch, width * hidden].
  char* row(const Tensor& t, int64_t k, int64_t width) const {
    return t.data<char>() + static_cast<size_t>(at(k)) * bytes(t.dtype(), width);
  }
};

void check_layer(const Tensor& projected, const Tensor& hx, const Tensor& cx, const Tensor& w) {
  RL_CHECK(w.dim() == 2 && w->sizes[0] == 4 * w->sizes[1] && projected.dim() == 3 &&
               projected->sizes[0] > 0 && projected->sizes[2] == w->sizes[0],
           "lstm: gates of shape ", projected.sizes(), " do not fit a recurrent weight of shape ", w.sizes());
  for (const Tensor* t : {&hx, &cx}) {
    RL_CHECK(t->dim() == 2 && t->sizes()[0] == projected->sizes[1] && t->sizes()[1] == w->sizes[1],
             "Expected hidden size ", IntList{projected->sizes[1], w->sizes[1]}, ", got ", t->sizes());
    RL_CHECK(t->dtype() == projected.dtype(), "lstm: expected one dtype, got ", describe(projected), " and ",
             describe(*t));
  }
  RL_CHECK(w.dtype() == projected.dtype(), "lstm: expected one dtype, got ", describe(projected), " and ",
           describe(w));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstm_layer_kernel(const Call&, const Tensor& projected,
                                                             const Tensor& hx, const Tensor& cx,
                                                             const Tensor& w_hh, bool reverse) {
  check_layer(projected, hx, cx, w_hh);
  const Steps s{projected->sizes[0], projected->sizes[1], w_hh->sizes[1], reverse};
  const DType dtype = layer_dtype(projected.dtype());
  const Dims all{s.count, s.batch, s.hidden};
  const Tensor output = empty_tensor(all, dtype, projected.device()),
               cells = empty_tensor(all, dtype, projected.device()),
               gates = empty_tensor(projected.sizes(), dtype, projected.device());
  const Tensor last_cell = empty_tensor(cx.sizes(), projected.dtype(), projected.device());
  if (!projected.is_cpu()) return {to_dtype(output, projected.dtype()), last_cell, gates, cells};
  const Tensor p = as_computed(projected, dtype), w = as_computed(w_hh, dtype), c = as_computed(cx, dtype),
               h = as_computed(hx, dtype);
  const Tensor share = empty_tensor(IntList{s.batch, 4 * s.hidden}, dtype);
  const cpu::PackedGemm recurrent(dtype, s.batch, 4 * s.hidden, s.hidden, {w.data_ptr(), 1, s.hidden}, false);
  const void *state = h.data_ptr(), *cell = c.data_ptr();
  for (int64_t k = 0; k < s.count; ++k) {
    recurrent.run(state, share.data_ptr());
    void *new_state = s.row(output, k, 1), *new_cell = s.row(cells, k, 1);
    cpu::lstm_step(dtype, {s.batch, s.hidden, s.row(p, k, 4), share.data_ptr(), 4 * s.hidden, 4 * s.hidden,
                           cell, new_state, new_cell, s.row(gates, k, 4)});
    state = new_state;
    cell = new_cell;
  }
  copy_(last_cell, select(cells, 0, s.at(s.count - 1)), false);
  return {to_dtype(output, projected.dtype()), last_cell, gates, cells};
}

std::tuple<Tensor, Tensor, Tensor> lstm_layer_backward_kernel(const Call&, const Tensor& grad_output,
                                                              const Tensor& grad_cell, const Tensor& cx,
                                                              const Tensor& w_hh, const Tensor& gates,
                                                              const Tensor& cells, bool reverse) {
  const DType dtype = cells.dtype();
  const Steps s{cells->sizes[0], cells->sizes[1], cells->sizes[2], reverse};
  const Tensor grad_gates = empty_tensor(gates.sizes(), dtype, gates.device()),
               grad_h = empty_tensor(cx.sizes(), dtype, cx.device());
  Tensor grad_c = empty_tensor(cx.sizes(), dtype, cx.device()),
         older = empty_tensor(cx.sizes(), dtype, cx.device());
  if (!cells.is_cpu()) return {grad_gates, grad_h, grad_c};
  const Tensor w = as_computed(w_hh, dtype), c = as_computed(cx, dtype),
               g = computed_or_none(grad_output, dtype), gc = computed_or_none(grad_cell, dtype);
  const cpu::PackedGemm recurrent(dtype, s.batch, s.hidden, 4 * s.hidden, {w.data_ptr(), s.hidden, 1}, true);
  const size_t bytes = s.bytes(dtype, 1);
  auto start = [&](int64_t k) {
    if (g.defined())
      std::memcpy(grad_h.data_ptr(), s.row(g, k, 1), bytes);
    else
      std::memset(grad_h.data_ptr(), 0, bytes);
  };
  start(s.count - 1);
  if (gc.defined())
    std::memcpy(grad_c.data_ptr(), gc.data_ptr(), bytes);
  else
    std::memset(grad_c.data_ptr(), 0, bytes);
  for (int64_t k = s.count - 1; k >= 0; --k) {
    const void* before = k ? s.row(cells, k - 1, 1) : c.data_ptr();
    cpu::lstm_step_backward(
        dtype, {s.batch, s.hidden, grad_h.data_ptr(), grad_c.data_ptr(), before, s.row(cells, k, 1),
                s.row(gates, k, 4), s.row(grad_gates, k, 4), older.data_ptr()});
    std::swap(grad_c, older);
    if (k)
      start(k - 1);
    else
      std::memset(grad_h.data_ptr(), 0, bytes);
    recurrent.run(s.row(grad_gates, k, 4), grad_h.data_ptr());
  }
  return {grad_gates, grad_h, grad_c};
}

// Step by step, in public operators: [outputs, last cell] as rows of one matrix.
Tensor lstm_layer_twin(const Tensor& projected, const Tensor& hx, const Tensor& cx, const Tensor& w_hh,
                       bool reverse) {
  std::vector<Tensor> steps = unbind(projected, 0), rows(steps.size() + 1);
  Tensor h = hx, c = cx;
  for (size_t k = 0; k < steps.size(); ++k) {
    const size_t at = reverse ? steps.size() - 1 - k : k;
    auto [new_h, new_c, gates] = fused_lstm_cell(steps[at], linear(h, w_hh, Tensor()), c);
    rows[at] = h = new_h;
    c = new_c;
  }
  rows.back() = c;
  return stack(rows, 0);
}

// dW = sum over the steps of (gradient of the gates)' (state before), as one product over neighbours in time.
Tensor recurrent_weight_gradient(const Tensor& grad_gates, const Tensor& output, const Tensor& hx,
                                 bool reverse) {
  const int64_t count = output->sizes[0], first = reverse ? count - 1 : 0;
  const Tensor start = mm(transpose(select(grad_gates, 0, first), 0, 1), hx);
  if (count == 1) return start;
  auto later = [&](const Tensor& t, bool follows) {
    const int64_t from = follows != reverse ? 1 : 0;
    return flatten(slice(t, 0, from, from + count - 1, 1), 0, 1);
  };
  return addmm(start, transpose(later(grad_gates, true), 0, 1), later(output, false), Scalar(1), Scalar(1));
}

Grads lstm_layer_gradients(const Tensor& g, const Tensor& gc, const Tensor& projected, const Tensor& hx,
                           const Tensor& cx, const Tensor& w_hh, bool reverse, const Tensor& output,
                           const Tensor& gates, const Tensor& cells, Needs need) {
  if (derivatives_wanted() || dispatch_state.level) {
    const auto twin = [reverse](const std::vector<Tensor>& t) {
      return lstm_layer_twin(t[0], t[1], t[2], t[3], reverse);
    };
    const Tensor outputs = g.defined() ? g : new_zeros(output, output.sizes()),
                 cell = gc.defined() ? gc : new_zeros(cx, cx.sizes());
    return gradients_by_twin(twin, {projected, hx, cx, w_hh}, cat({outputs, unsqueeze(cell, 0)}, 0));
  }
  auto [grad_gates, grad_h, grad_c] = lstm_layer_backward(g, gc, cx, w_hh, gates, cells, reverse);
  Tensor grad_w;
  if (need[3])
    grad_w = recurrent_weight_gradient(grad_gates, to_dtype(output, cells.dtype()),
                                       to_dtype(hx, cells.dtype()), reverse);
  return Grads{grad_gates, grad_h, grad_c, grad_w};
}

}  // namespace

void register_lstm_layer_operators(Table& t) {
  t.op(lstm_layer,
       "_lstm_layer(Tensor projected, Tensor hx, Tensor cx, Tensor w_hh, bool reverse) -> (Tensor, Tensor, "
       "Tensor, Tensor)",
       lstm_layer_kernel)
      .doc("One direction of an LSTM layer: outputs, last cell, and gates and cells of all steps.")
      .internal()
      .derivative([](GradOf<0> g, GradOf<1> gc, In<0> projected, In<1> hx, In<2> cx, In<3> w,
                     Attr<4, bool> reverse, Out<0> output, Out<2> gates, Out<3> cells, Needs need) {
        return lstm_layer_gradients(g, gc, projected, hx, cx, w, reverse, output, gates, cells, need);
      });
  t.op(lstm_layer_backward,
       "_lstm_layer_backward(Tensor? grad_output, Tensor? grad_cell, Tensor cx, Tensor w_hh, Tensor gates, "
       "Tensor cells, bool reverse) -> (Tensor, Tensor, Tensor)",
       lstm_layer_backward_kernel)
      .doc("Gradients of an LSTM layer with respect to its gates, first hidden and first cell state.")
      .internal()
      .not_differentiable("the rule of _lstm_layer uses its twin when gradients are recorded");
}

}  // namespace rushlight
