// vmap of neural-network operators: examples join the batch, the channels or the groups.
#include "ops/attention.h"
#include "ops/conv.h"
#include "ops/copy.h"
#include "ops/fold.h"
#include "ops/index.h"
#include "ops/loss.h"
#include "ops/norm.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/rnn.h"
#include "ops/view.h"
#include "transform/vmap.h"

namespace rushlight {
namespace {

// [examples, n, ...] as [examples * n, ...] and back.
Tensor fold(const Tensor& t) { return ops::flatten(t, 0, 1); }
Tensor unfold_first(const Tensor& t, int64_t examples) {
  return ops::unflatten(t, 0, IntList{examples, examples ? t->sizes[0] / examples : 0});
}
// [examples, n, c, ...] as [n, examples * c, ...] and back.
Tensor fold_channels(const Tensor& t) { return ops::flatten(ops::transpose(t, 0, 1), 1, 2); }
Tensor unfold_channels(const Tensor& t, int64_t examples) {
  return ops::transpose(ops::unflatten(t, 1, IntList{examples, examples ? t->sizes[1] / examples : 0}), 0, 1);
}

// --- convolution

void convolution_rule(BatchCall& c) {
  const Value* a = c.frame().args;
  const int64_t groups = a[8].integer();
  auto run = [&](const Tensor& x, const Tensor& w, const Tensor& bias, int64_t g) {
    return ops::convolution(x, w, bias, a[3].ints(), a[4].ints(), a[5].ints(), a[6].boolean(), a[7].ints(),
                            g);
  };
  const bool shared_bias = !c.batched(1) && !c.batched(2);
  Tensor y =
      c.batched(1)
          ? unfold_channels(run(fold_channels(c.examples(0)), fold(c.front(1)), Tensor(), groups * c.size()),
                            c.size())
          : unfold_first(
                run(fold(c.examples(0)), c.logical(1), shared_bias ? c.logical(2) : Tensor(), groups),
                c.size());
  if (!shared_bias && c.given(2)) {
    Dims sizes{c.size(), 1, c.logical(2).numel()};
    for (int64_t d = 3; d < y.dim(); ++d) sizes.push_back(1);
    y = y + ops::reshape(c.examples(2), sizes);
  }
  c.result(std::move(y));
}

void input_gradient_rule(BatchCall& c) {
  const Value* a = c.frame().args;
  Dims sizes = a[2].ints().dims();
  auto run = [&](const Tensor& g, const Tensor& w, int64_t groups) {
    return ops::conv_input_gradient(g, w, sizes, a[3].ints(), a[4].ints(), a[5].ints(), groups);
  };
  if (!c.batched(1)) {
    sizes[0] *= c.size();
    return c.result(unfold_first(run(fold(c.examples(0)), c.logical(1), a[6].integer()), c.size()));
  }
  sizes[1] *= c.size();
  c.result(unfold_channels(run(fold_channels(c.examples(0)), fold(c.front(1)), a[6].integer() * c.size()),
                           c.size()));
}

void weight_gradient_rule(BatchCall& c) {
  const Value* a = c.frame().args;
  Dims sizes = a[2].ints().dims();
  sizes[0] *= c.size();
  const Tensor w =
      ops::conv_weight_gradient(fold_channels(c.examples(0)), fold_channels(c.examples(1)), sizes,
                                a[3].ints(), a[4].ints(), a[5].ints(), a[6].integer() * c.size());
  c.result(unfold_first(w, c.size()));
}

// --- pooling and padding

// How many spatial dimensions an operator of these has.
int64_t spatial_dims(const BatchCall& c) {
  const std::string_view name = c.op().name();
  for (char d : {'1', '2', '3'})
    if (name.find(std::string{d, 'd'}) != name.npos) return d - '0';
  const auto& schema = c.op().schema;
  const int kernel = schema.index_of("kernel_size"), n = schema.index_of("n");
  if (kernel >= 0) return static_cast<int64_t>(c.arg(kernel).ints().size());
  if (n >= 0) return c.arg(n).integer();
  const int amounts = std::max(schema.index_of("padding"), schema.index_of("pad"));
  return static_cast<int64_t>(c.arg(amounts).ints().size()) / 2;
}

// Examples join the batch, which is the first dimension of every operand, or are the batch where there is
// none.
void join(BatchCall& c, bool has_batch, uint64_t operand_bits) {
  std::vector<Value> args = c.args();
  std::vector<Tensor> operands(args.size());
  for (uint64_t bits = operand_bits; bits; bits &= bits - 1) {
    const int p = __builtin_ctzll(bits);
    if (!c.given(p)) continue;
    operands[p] = has_batch ? fold(c.examples(p)) : c.examples(p);
    args[p] = Value(operands[p]);
  }
  Dims sizes;  // of an input, where the operator computes its gradient
  for (const char* name : {"input_sizes", "input_size"}) {
    const int p = c.op().schema.index_of(name);
    if (p < 0) continue;
    sizes = c.arg(p).ints().dims();
    if (has_batch)
      sizes[0] *= c.size();
    else
      sizes.insert(0, c.size());
    args[p] = Value(IntList(sizes));
  }
  c.call(args.data());
  if (has_batch)
    for (int i = 0; i < c.results.count; ++i)
      if (c.results.tensors[i].defined()) c.results.tensors[i] = unfold_first(c.results.tensors[i], c.size());
}

}  // namespace

void join_window_batch(BatchCall& c) { join(c, c.rank(0) == spatial_dims(c) + 2, c.op().tensor_parameters); }

void join_batch(BatchCall& c) { join(c, true, c.op().tensor_parameters); }

namespace {

// Images of four dimensions, columns of three.
void im2col_rule(BatchCall& c) { join(c, c.rank(0) == 4, c.op().tensor_parameters); }
void col2im_rule(BatchCall& c) { join(c, c.rank(0) == 3, c.op().tensor_parameters); }

// The state of a cell tells whether there is a batch; biases have none.
void cell_rule(BatchCall& c) {
  uint64_t biases = 0;
  for (const char* name : {"input_bias", "hidden_bias"})
    if (const int p = c.op().schema.index_of(name); p >= 0) {
      if (c.batched(p)) return loop_over_examples(c);
      biases |= uint64_t{1} << p;
    }
  const int cell = c.op().schema.index_of("cx"), hidden = c.op().schema.index_of("hx");
  join(c, c.rank(cell >= 0 ? cell : hidden) == 2, c.op().tensor_parameters & ~biases);
}

// A mask that all examples and all of the batch share stays as it is.
void attention_rule(BatchCall& c) {
  const int mask = c.op().schema.index_of("attn_mask");
  const bool shared = c.given(mask) && c.rank(mask) < 4;
  if (shared && c.batched(mask)) return loop_over_examples(c);
  const bool whole = !c.given(mask) || shared || c.logical(mask).size(0) == c.logical(0).size(0);
  if (!whole) return loop_over_examples(c);
  join(c, true, c.op().tensor_parameters & ~(shared ? uint64_t{1} << mask : 0));
}

// --- normalisation

// A parameter, examples first, lined up with `rank` dimensions so that its own stand from `at` on.
Tensor parameter_at(const BatchCall& c, int p, int64_t rank, int64_t at) {
  Dims sizes{c.batched(p) ? c.size() : 1};
  for (int64_t d = 0; d < at; ++d) sizes.push_back(1);
  for (int64_t s : c.logical(p).sizes()) sizes.push_back(s);
  while (static_cast<int64_t>(sizes.size()) < rank + 1) sizes.push_back(1);
  return ops::reshape(c.front(p), sizes);
}

Tensor affine(const BatchCall& c, const Tensor& y, int weight, int bias, int64_t at) {
  Tensor result = y;
  const int64_t rank = y.dim() - 1;
  if (c.given(weight)) result = result * parameter_at(c, weight, rank, at);
  if (bias >= 0 && c.given(bias)) result = result + parameter_at(c, bias, rank, at);
  return result;
}

// `bias`: its parameter, or -1 where there is none.
template <int bias>
void layer_norm_rule(BatchCall& c) {
  const bool apart = c.batched(2) || (bias >= 0 && c.batched(bias));
  std::vector<Value> args = c.args();
  const Tensor x = c.examples(0);
  args[0] = Value(x);
  if (apart) args[2] = Value();
  if (apart && bias >= 0) args[bias] = Value();
  c.call(args.data());
  if (apart)
    c.results.tensors[0] =
        affine(c, c.results.tensors[0], 2, bias, c.rank(0) - static_cast<int64_t>(c.arg(1).ints().size()));
}

constexpr const char* kRunningStatistics =
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated "
    "in "
    "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
    "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, please "
    "see the functorch website for resources on how to patch your module to work with vmap";

void batch_norm_rule(BatchCall& c) {
  const bool training = c.arg(5).boolean();
  std::vector<Value> args = c.args();
  const Tensor x = fold_channels(c.examples(0));
  args[0] = Value(x);
  Tensor flat[5];
  for (int p = 1; p <= 4; ++p) {
    if (!c.given(p)) continue;
    RL_CHECK(p < 3 || !training || c.batched(p), kRunningStatistics);
    flat[p] = ops::reshape(c.examples(p), IntList{-1});
    args[p] = Value(flat[p]);
  }
  c.call(args.data());
  c.results.tensors[0] = unfold_channels(c.results.tensors[0], c.size());
  for (int i = 1; i < c.results.count; ++i) {
    Tensor& s = c.results.tensors[i];
    if (s.defined() && s.numel()) s = ops::reshape(s, IntList{c.size(), -1});
  }
  for (int p = 3; p <= 4; ++p) {
    if (!training || !c.given(p)) continue;
    const Tensor target = c.front(p);
    if (flat[p]->storage != target->storage || target->wrapping)
      ops::copy_(target, ops::reshape(flat[p], target.sizes()), false);
  }
}

void group_norm_rule(BatchCall& c) {
  const bool apart = c.batched(1) || c.batched(2);
  std::vector<Value> args = c.args();
  const Tensor x = fold(c.examples(0));
  args[0] = Value(x);
  args[3] = Value(c.arg(3).integer() * c.size());
  if (apart) args[1] = args[2] = Value();
  c.call(args.data());
  for (int i = 0; i < c.results.count; ++i)
    c.results.tensors[i] = unfold_first(c.results.tensors[i], c.size());
  if (apart) c.results.tensors[0] = affine(c, c.results.tensors[0], 1, 2, 1);
}

// --- losses

Tensor reduce_examples(const Tensor& t, int64_t reduction) {
  if (reduction == kNone) return t;
  int64_t each = 1;  // not -1, which is anything where there are no examples
  for (int64_t d = 1; d < t.dim(); ++d) each *= t.size(d);
  const Tensor flat = ops::reshape(t, IntList{t.size(0), each});
  return reduction == kMean ? ops::mean_dim(flat, OptIntList(IntList{1}), false, std::nullopt)
                            : ops::sum_dim(flat, OptIntList(IntList{1}), false, std::nullopt);
}

}  // namespace

// Element by element, then reduced.
void batch_loss(BatchCall& c) {
  const int r = c.op().schema.index_of("reduction");
  std::vector<Value> args = c.args();
  args[r] = Value(int64_t{kNone});
  int64_t rank = 0;
  for (uint64_t bits = c.op().tensor_parameters; bits; bits &= bits - 1)
    if (const int p = __builtin_ctzll(bits); c.given(p)) rank = std::max(rank, c.rank(p));
  Tensor operands[4];
  for (uint64_t bits = c.op().tensor_parameters; bits; bits &= bits - 1) {
    const int p = __builtin_ctzll(bits);
    if (!c.given(p)) continue;
    operands[p] = c.aligned(c.logical(p), rank);
    args[p] = Value(operands[p]);
  }
  c.call(args.data());
  c.results.tensors[0] = reduce_examples(c.results.tensors[0], c.arg(r).integer());
}

namespace {

// The negative log likelihoods of all examples as one batch, one number per target.
struct LikelihoodCall {
  bool single;  // one sample without a batch dimension
  Tensor target;
  Dims sizes;  // of the input, examples joined with the batch

  LikelihoodCall(const BatchCall& c, IntList input_sizes, int target_parameter)
      : single(input_sizes.size() == 1) {
    target = single ? c.examples(target_parameter) : fold(c.examples(target_parameter));
    sizes = input_sizes.dims();
    if (single)
      sizes.insert(0, c.size());
    else
      sizes[0] *= c.size();
  }
};

Tensor target_weights(const BatchCall& c, const Tensor& target, const Tensor& weight, int64_t ignored,
                      DType dtype) {
  const Tensor counted = rushlight::ne(target, Scalar(ignored));
  if (!weight.defined()) return to_dtype(counted, dtype);
  const Tensor safe = rushlight::where(counted, target, Scalar(int64_t{0}));
  (void)c;
  return ops::reshape(ops::gather(weight, 0, ops::reshape(safe, IntList{-1}), false), target.sizes()) *
         to_dtype(counted, dtype);
}

void nll_rule(BatchCall& c) {
  if (c.batched(2)) return loop_over_examples(c);
  const int64_t reduction = c.arg(3).integer();
  const LikelihoodCall l(c, c.logical(0).sizes(), 1);
  const Tensor x = l.single ? c.examples(0) : fold(c.examples(0));
  std::vector<Value> args = c.args();
  args[0] = Value(x);
  args[1] = Value(l.target);
  args[3] = Value(int64_t{kNone});
  c.call(args.data());
  Tensor loss = l.single ? c.results.tensors[0] : unfold_first(c.results.tensors[0], c.size());
  const Tensor weights = ops::reshape(
      target_weights(c, l.target, c.logical(2), c.arg(4).integer(), x.dtype()), IntList{c.size(), -1});
  const Tensor total = ops::sum_dim(weights, OptIntList(IntList{1}), false, std::nullopt);
  if (reduction != kNone) {
    loss = reduce_examples(loss, kSum);
    if (reduction == kMean) loss = loss / total;
  }
  c.results.tensors[0] = loss;
  c.results.tensors[1] = total;
}

void nll_backward_rule(BatchCall& c) {
  if (c.batched(2)) return loop_over_examples(c);
  const int64_t reduction = c.arg(3).integer();
  const LikelihoodCall l(c, c.arg(6).ints(), 1);
  Tensor grad = c.examples(0);
  if (reduction == kMean) grad = grad / c.examples(5);
  if (reduction != kNone) {
    Dims shape{c.size()};
    for (int64_t d = 0; d < c.rank(1); ++d) shape.push_back(1);
    Dims sizes{c.size()};
    for (int64_t s : c.logical(1).sizes()) sizes.push_back(s);
    grad = ops::expand(ops::reshape(grad, shape), sizes, false);
  }
  if (!l.single) grad = fold(grad);
  std::vector<Value> args = c.args();
  const Tensor total = ops::sum(grad, std::nullopt);  // not used without a reduction
  args[0] = Value(grad);
  args[1] = Value(l.target);
  args[3] = Value(int64_t{kNone});
  args[5] = Value(total);
  args[6] = Value(IntList(l.sizes));
  c.call(args.data());
  if (!l.single) c.results.tensors[0] = unfold_first(c.results.tensors[0], c.size());
}

}  // namespace

void add_nn_rules(BatchTable& t) {
  t.set(ops::convolution, convolution_rule, "groups");
  t.set(ops::conv_input_gradient, input_gradient_rule, "groups");
  t.set(ops::conv_weight_gradient, weight_gradient_rule, "groups");
  t.set(ops::im2col, im2col_rule, "batch");
  t.set(ops::col2im, col2im_rule, "batch");
  t.set(ops::fused_lstm_cell, cell_rule, "batch");
  t.set(ops::fused_lstm_cell_backward, cell_rule, "batch");
  t.set(ops::fused_gru_cell, cell_rule, "batch");
  t.set(ops::fused_gru_cell_backward, cell_rule, "batch");
  t.set(ops::flash_attention, attention_rule, "batch");
  t.set(ops::flash_attention_backward, attention_rule, "batch");
  t.set(ops::native_layer_norm, layer_norm_rule<3>, "batch");
  t.set(ops::fused_rms_norm, layer_norm_rule<-1>, "batch");
  t.set(ops::native_batch_norm, batch_norm_rule, "channels");
  t.set(ops::native_group_norm, group_norm_rule, "batch");
  t.set(ops::nll_loss_forward, nll_rule, "loss");
  t.set(ops::nll_loss2d_forward, nll_rule, "loss");
  t.set(ops::nll_loss_backward, nll_backward_rule, "loss");
}

}  // namespace rushlight
