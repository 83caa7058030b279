#include "rushlight/nn/rnn.h"

#include <cmath>
#include <ostream>

#include "rushlight/autograd.h"
#include "rushlight/nn/init.h"

namespace rushlight::nn {

using utils::rnn::PackedSequence;

// --- layers
template <class Derived, class Options>
void RNNImplBase<Derived, Options>::reset() {
  weights_.clear();
  const int64_t directions = options.bidirectional() ? 2 : 1, rows = gates_ * options.hidden_size();
  const bool projects = outputs() != options.hidden_size();
  RL_CHECK_VALUE(options.hidden_size() > 0, "hidden_size must be greater than zero");
  RL_CHECK_VALUE(options.num_layers() > 0, "num_layers must be greater than zero");
  RL_CHECK(options.dropout() >= 0 && options.dropout() <= 1, "dropout should be a number in range [0, 1]");
  for (int64_t layer = 0; layer < options.num_layers(); ++layer)
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t inputs = layer == 0 ? options.input_size() : outputs() * directions;
      const std::string suffix = str("_l", layer, direction ? "_reverse" : "");
      auto add = [&](const char* name, IntArrayRef sizes) {
        weights_.push_back(this->register_parameter(name + suffix, rushlight::empty(sizes)));
      };
      add("weight_ih", {rows, inputs});
      add("weight_hh", {rows, outputs()});
      if (options.bias()) add("bias_ih", rows), add("bias_hh", rows);
      if (projects) add("weight_hr", {outputs(), options.hidden_size()});
    }
  reset_parameters();
}
template <class Derived, class Options>
void RNNImplBase<Derived, Options>::reset_parameters() {
  const double bound =
      options.hidden_size() > 0 ? 1 / std::sqrt(static_cast<double>(options.hidden_size())) : 0;
  for (Tensor& w : weights_) init::uniform_(w, -bound, bound);
}
template <class Derived, class Options>
void RNNImplBase<Derived, Options>::print(std::ostream& out, const char* name) const {
  out << std::boolalpha << "torch::nn::" << name << "(input_size=" << options.input_size()
      << ", hidden_size=" << options.hidden_size() << ", num_layers=" << options.num_layers()
      << ", bias=" << options.bias() << ", batch_first=" << options.batch_first()
      << ", dropout=" << options.dropout() << ", bidirectional=" << options.bidirectional();
  if (outputs() != options.hidden_size()) out << ", proj_size=" << outputs();
  out << ")";
}
template <class Derived, class Options>
int64_t RNNImplBase<Derived, Options>::outputs() const {
  if constexpr (requires { options.proj_size(); })
    if (options.proj_size() > 0) return options.proj_size();
  return options.hidden_size();
}
template <class Derived, class Options>
Tensor RNNImplBase<Derived, Options>::zero_state(const Tensor& input, int64_t batch, int64_t features) const {
  const int64_t layers = options.num_layers() * (options.bidirectional() ? 2 : 1);
  return zeros({layers, batch, features}, input.options());
}
static Tensor permuted(const Tensor& t, const Tensor& order) {
  return order.defined() ? t.index_select(1, order) : t;
}

template <class Impl, class Run>
static std::tuple<Tensor, Tensor> run_padded(Impl& m, const Tensor& input, Tensor hx, Run run) {
  const auto& o = m.options;
  RL_CHECK(input.dim() == 3 || input.dim() == 2, "RNN: expected input to be 2D or 3D, got ", input.dim(),
           "D tensor");
  const bool single = input.dim() == 2;
  const Tensor x = single ? input.unsqueeze(o.batch_first() ? 0 : 1) : input;
  if (hx.defined() && single) hx = hx.unsqueeze(1);
  auto [y, h] = run(x, hx);
  return single ? std::make_tuple(y.squeeze(o.batch_first() ? 0 : 1), h.squeeze(1)) : std::make_tuple(y, h);
}

#define RL_RUN(Impl, padded_call, packed_call)                                                               \
  std::tuple<Tensor, Tensor> Impl::forward(const Tensor& input, Tensor hx) {                                 \
    return run_padded(*this, input, std::move(hx), [&](const Tensor& x, Tensor h) {                          \
      if (!h.defined()) h = zero_state(x, x.size(options.batch_first() ? 0 : 1), options.hidden_size());     \
      return padded_call(x, h, weights_, options.bias(), options.num_layers(), options.dropout(),            \
                         is_training(), options.bidirectional(), options.batch_first());                     \
    });                                                                                                      \
  }                                                                                                          \
  std::tuple<PackedSequence, Tensor> Impl::forward_with_packed_input(const PackedSequence& s, Tensor hx) {   \
    hx = hx.defined() ? permuted(hx, s.sorted_indices())                                                     \
                      : zero_state(s.data(), s.batch_sizes()[0].item<int64_t>(), options.hidden_size());     \
    auto [y, h] = packed_call(s.data(), s.batch_sizes(), hx, weights_, options.bias(), options.num_layers(), \
                              options.dropout(), is_training(), options.bidirectional());                    \
    return {PackedSequence(y, s.batch_sizes(), s.sorted_indices(), s.unsorted_indices()),                    \
            permuted(h, s.unsorted_indices())};                                                              \
  }
RNNImpl::RNNImpl(const RNNOptions& o) : RNNImplBase(o, 1) {}
void RNNImpl::pretty_print(std::ostream& out) const { print(out, "RNN"); }
#define RL_CHOSEN(...) (options.nonlinearity() == kReLU ? rnn_relu(__VA_ARGS__) : rnn_tanh(__VA_ARGS__))
RL_RUN(RNNImpl, RL_CHOSEN, RL_CHOSEN)
#undef RL_CHOSEN
GRUImpl::GRUImpl(const GRUOptions& o) : RNNImplBase(o, 3) {}
void GRUImpl::pretty_print(std::ostream& out) const { print(out, "GRU"); }
RL_RUN(GRUImpl, gru, gru)
#undef RL_RUN

LSTMImpl::LSTMImpl(const LSTMOptions& o) : RNNImplBase(o, 4) {
  RL_CHECK_VALUE(o.proj_size() >= 0 && o.proj_size() < o.hidden_size(),
                 "proj_size has to be smaller than hidden_size and not negative, but got ", o.proj_size());
}
std::vector<Tensor> LSTMImpl::zero_states(const Tensor& input, int64_t batch) const {
  return {zero_state(input, batch, outputs()), zero_state(input, batch, options.hidden_size())};
}
void LSTMImpl::pretty_print(std::ostream& out) const { print(out, "LSTM"); }
std::tuple<Tensor, std::tuple<Tensor, Tensor>> LSTMImpl::forward(const Tensor& input, State state) {
  RL_CHECK(input.dim() == 3 || input.dim() == 2, "LSTM: expected input to be 2D or 3D, got ", input.dim(),
           "D tensor");
  const int64_t batch_dim = options.batch_first() ? 0 : 1;
  const bool single = input.dim() == 2;
  const Tensor x = single ? input.unsqueeze(batch_dim) : input;
  std::vector<Tensor> hx(2);
  if (state) {
    hx = {std::get<0>(*state), std::get<1>(*state)};
    if (single) hx = {hx[0].unsqueeze(1), hx[1].unsqueeze(1)};
  } else {
    hx = zero_states(x, x.size(batch_dim));
  }
  auto [y, h, c] = lstm(x, hx, weights_, options.bias(), options.num_layers(), options.dropout(),
                        is_training(), options.bidirectional(), options.batch_first());
  if (single) return {y.squeeze(batch_dim), {h.squeeze(1), c.squeeze(1)}};
  return {y, {h, c}};
}
std::tuple<PackedSequence, std::tuple<Tensor, Tensor>> LSTMImpl::forward_with_packed_input(
    const PackedSequence& s, State state) {
  std::vector<Tensor> hx(2);
  if (state)
    hx = {permuted(std::get<0>(*state), s.sorted_indices()),
          permuted(std::get<1>(*state), s.sorted_indices())};
  else
    hx = zero_states(s.data(), s.batch_sizes()[0].item<int64_t>());
  auto [y, h, c] = lstm(s.data(), s.batch_sizes(), hx, weights_, options.bias(), options.num_layers(),
                        options.dropout(), is_training(), options.bidirectional());
  return {PackedSequence(y, s.batch_sizes(), s.sorted_indices(), s.unsorted_indices()),
          {permuted(h, s.unsorted_indices()), permuted(c, s.unsorted_indices())}};
}

// --- cells
template <class Derived>
void RNNCellImplBase<Derived>::reset() {
  const int64_t rows = gates_ * options.hidden_size();
  weight_ih = this->register_parameter("weight_ih", rushlight::empty({rows, options.input_size()}));
  weight_hh = this->register_parameter("weight_hh", rushlight::empty({rows, options.hidden_size()}));
  bias_ih =
      this->register_parameter("bias_ih", options.bias() ? rushlight::empty(rows) : Tensor(), options.bias());
  bias_hh =
      this->register_parameter("bias_hh", options.bias() ? rushlight::empty(rows) : Tensor(), options.bias());
  const double bound =
      options.hidden_size() > 0 ? 1 / std::sqrt(static_cast<double>(options.hidden_size())) : 0;
  for (Tensor* t : {&weight_ih, &weight_hh, &bias_ih, &bias_hh})
    if (t->defined()) init::uniform_(*t, -bound, bound);
}
static void print_cell(std::ostream& out, const char* name, const RNNCellOptions& o) {
  out << "torch::nn::" << name << "(" << o.input_size() << ", " << o.hidden_size();
  if (!o.bias()) out << ", bias=false";
  if (o.nonlinearity() != kTanh) out << ", nonlinearity=" << o.nonlinearity().enumerator();
  out << ")";
}
void RNNCellImpl::pretty_print(std::ostream& out) const { print_cell(out, "RNNCell", options); }
void GRUCellImpl::pretty_print(std::ostream& out) const { print_cell(out, "GRUCell", options); }
void LSTMCellImpl::pretty_print(std::ostream& out) const { print_cell(out, "LSTMCell", options); }
// One example without a batch is a batch of one. Of states: all have the input's dimensions.
static Tensor batched(const char* name, const char* what, const Tensor& t, int64_t dim) {
  if (!t.defined()) return t;
  RL_CHECK(t.dim() == dim && (dim == 1 || dim == 2), name, ": Expected ", what, " to be 1D or 2D",
           " as the input is, got ", t.dim(), "D instead");
  return dim == 1 ? t.unsqueeze(0) : t;
}
static Tensor unbatched(const Tensor& y, const Tensor& input) { return input.dim() == 1 ? y.squeeze(0) : y; }

Tensor RNNCellImpl::forward(const Tensor& input, const Tensor& hx) {
  const Tensor x = batched("RNNCell", "input", input, input.dim());
  const Tensor h = state_or_zeros(batched("RNNCell", "hidden", hx, input.dim()), x);
  return unbatched(options.nonlinearity() == kReLU
                       ? rnn_relu_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh)
                       : rnn_tanh_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh),
                   input);
}
Tensor GRUCellImpl::forward(const Tensor& input, const Tensor& hx) {
  const Tensor x = batched("GRUCell", "input", input, input.dim());
  const Tensor h = state_or_zeros(batched("GRUCell", "hidden", hx, input.dim()), x);
  return unbatched(gru_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh), input);
}
std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const Tensor& input,
                                                 std::optional<std::tuple<Tensor, Tensor>> state) {
  const Tensor x = batched("LSTMCell", "input", input, input.dim());
  auto [h, c] = state.value_or(std::tuple<Tensor, Tensor>());
  h = state_or_zeros(batched("LSTMCell", "hx", h, input.dim()), x);
  c = state_or_zeros(batched("LSTMCell", "cx", c, input.dim()), x);
  std::tie(h, c) = lstm_cell(x, {h, c}, weight_ih, weight_hh, bias_ih, bias_hh);
  return {unbatched(h, input), unbatched(c, input)};
}

template class RNNImplBase<RNNImpl, RNNOptions>;
template class RNNImplBase<GRUImpl, GRUOptions>;
template class RNNImplBase<LSTMImpl, LSTMOptions>;
template class RNNCellImplBase<RNNCellImpl>;
template class RNNCellImplBase<GRUCellImpl>;
template class RNNCellImplBase<LSTMCellImpl>;

// --- packed sequences
namespace utils::rnn {

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return {};
  return empty_like(permutation).scatter_(0, permutation, arange(permutation.numel(), TensorOptions(kLong)));
}
PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices,
                               Tensor unsorted_indices)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_(std::move(sorted_indices)),
      unsorted_(unsorted_indices.defined() ? std::move(unsorted_indices) : invert_permutation(sorted_)) {}

PackedSequence PackedSequence::to(TensorOptions options) const {
  auto there = [&](const Tensor& t) { return t.defined() ? t.to(options.device()) : t; };
  PackedSequence moved = *this;
  moved.data_ = data_.to(options);
  if (options.has_device()) {  // sizes stay, for the host reads them
    moved.sorted_ = there(sorted_);
    moved.unsorted_ = there(unsorted_);
  }
  return moved;
}
PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first, bool enforce_sorted) {
  Tensor order;
  if (!enforce_sorted) {
    std::tie(lengths, order) = lengths.sort(-1, true);
    input = input.index_select(batch_first ? 0 : 1, order);
  }
  if (batch_first) input = input.transpose(0, 1);
  const Tensor counted = lengths.to(kLong).contiguous();
  const int64_t* n = counted.data_ptr<int64_t>();
  const int64_t batch = counted.numel();
  RL_CHECK(batch == input.size(1), "Expected `len(lengths)` to be equal to batch_size, but got ", batch,
           " (batch_size=", input.size(1), ")");
  RL_CHECK(batch > 0 && n[batch - 1] > 0,
           "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  for (int64_t i = 1; i < batch; ++i)
    RL_CHECK(
        n[i] <= n[i - 1],
        "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
        "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement.");
  RL_CHECK(n[0] <= input.size(0), "Expected a length of at most ", input.size(0), ", but got ", n[0]);
  std::vector<Tensor> steps;
  std::vector<int64_t> sizes;
  int64_t alive = batch;
  for (int64_t t = 0; t < n[0]; ++t) {
    while (n[alive - 1] <= t) --alive;
    steps.push_back(input[t].narrow(0, 0, alive));
    sizes.push_back(alive);
  }
  return PackedSequence(cat(steps), tensor(sizes, kLong), order);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& s, bool batch_first,
                                               double padding_value, std::optional<int64_t> total_length) {
  const Tensor& sizes = s.batch_sizes();
  const int64_t steps = sizes.numel(), length = total_length.value_or(steps);
  RL_CHECK(length >= steps,
           "Expected total_length to be at least the length of the longest sequence in input, but got "
           "total_length=",
           length, " and max sequence length being ", steps);
  const int64_t batch = sizes[0].item<int64_t>();
  std::vector<int64_t> shape = {length, batch};
  shape.insert(shape.end(), s.data().sizes().begin() + 1, s.data().sizes().end());
  Tensor padded = full(shape, padding_value, s.data().options());
  std::vector<int64_t> lengths(static_cast<size_t>(batch), 0);
  for (int64_t t = 0, at = 0; t < steps; ++t) {
    const int64_t alive = sizes[t].item<int64_t>();
    padded[t].narrow(0, 0, alive).copy_(s.data().narrow(0, at, alive));
    for (int64_t i = 0; i < alive; ++i) ++lengths[static_cast<size_t>(i)];
    at += alive;
  }
  Tensor counted = tensor(lengths, kLong);
  if (s.unsorted_indices().defined()) {
    padded = padded.index_select(1, s.unsorted_indices());
    counted = counted.index_select(0, s.unsorted_indices());
  }
  return {batch_first ? padded.transpose(0, 1) : padded, counted};
}

Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first, double padding_value,
                    std::string_view padding_side) {
  RL_CHECK(!sequences.empty(), "pad_sequence: received an empty list of sequences");
  RL_CHECK(padding_side == "left" || padding_side == "right", "Expected padding_side to be one of left or ",
           "right, but got ", padding_side, ".");
  int64_t longest = 0;
  for (const Tensor& s : sequences) longest = std::max(longest, s.size(0));
  std::vector<Tensor> padded;
  for (const Tensor& s : sequences) {
    std::vector<int64_t> around(static_cast<size_t>(2 * s.dim()), 0);
    around[around.size() - (padding_side == "left" ? 2 : 1)] = longest - s.size(0);
    padded.push_back(constant_pad_nd(s, around, padding_value));
  }
  return stack(padded, batch_first ? 0 : 1);
}
PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  for (const Tensor& s : sequences) lengths.push_back(s.size(0));
  return pack_padded_sequence(pad_sequence(sequences), tensor(lengths, kLong), false, enforce_sorted);
}

}  // namespace utils::rnn

}  // namespace rushlight::nn
