// Recurrent layers and cells, and packed sequences.
#pragma once
#include "rushlight/nn/module.h"

namespace rushlight::nn {

namespace utils::rnn {

// Sequences of different lengths, time step by time step.
class PackedSequence {
 public:
  PackedSequence() = default;
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {},
                          Tensor unsorted_indices = {});
  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_; }
  const Tensor& unsorted_indices() const { return unsorted_; }
  PackedSequence to(TensorOptions options) const;
  PackedSequence cpu() const { return to(Device(kCPU)); }
  PackedSequence cuda() const { return to(Device(kCUDA)); }
  Device device() const { return data_.device(); }
  bool is_cuda() const { return data_.is_cuda(); }

 private:
  Tensor data_, batch_sizes_, sorted_, unsorted_;
};
PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first = false,
                                    bool enforce_sorted = true);
std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                                               double padding_value = 0.0,
                                               std::optional<int64_t> total_length = std::nullopt);
// `padding_side`: "right" or "left".
Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first = false, double padding_value = 0,
                    std::string_view padding_side = "right");
PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted = true);
Tensor invert_permutation(const Tensor& permutation);

}  // namespace utils::rnn

#define RL_RNN_OPTIONS(Name)                                    \
  struct Name##Options {                                        \
    Name##Options(int64_t input_size, int64_t hidden_size)      \
        : input_size_(input_size), hidden_size_(hidden_size) {} \
    TORCH_ARG(int64_t, input_size);                             \
    TORCH_ARG(int64_t, hidden_size);                            \
    TORCH_ARG(int64_t, num_layers) = 1;                         \
    TORCH_ARG(bool, bias) = true;                               \
    TORCH_ARG(bool, batch_first) = false;                       \
    TORCH_ARG(double, dropout) = 0.0;                           \
    TORCH_ARG(bool, bidirectional) = false;                     \
    RL_RNN_EXTRA                                                \
  }
#define RL_RNN_EXTRA TORCH_ARG(Mode, nonlinearity) = kTanh;
RL_RNN_OPTIONS(RNN);
#undef RL_RNN_EXTRA
#define RL_RNN_EXTRA TORCH_ARG(int64_t, proj_size) = 0;
RL_RNN_OPTIONS(LSTM);
#undef RL_RNN_EXTRA
#define RL_RNN_EXTRA
RL_RNN_OPTIONS(GRU);
#undef RL_RNN_EXTRA
#undef RL_RNN_OPTIONS

namespace detail {
// What the options of all three have in common.
struct RNNOptionsBase {
  template <class Options>
  RNNOptionsBase(Mode mode, const Options& o)
      : mode_(mode),
        input_size_(o.input_size()),
        hidden_size_(o.hidden_size()),
        num_layers_(o.num_layers()),
        bias_(o.bias()),
        batch_first_(o.batch_first()),
        dropout_(o.dropout()),
        bidirectional_(o.bidirectional()) {
    if constexpr (requires { o.proj_size(); }) proj_size_ = o.proj_size();
  }
  TORCH_ARG(Mode, mode);  // kRNN_TANH, kRNN_RELU, kLSTM, kGRU
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(int64_t, num_layers);
  TORCH_ARG(bool, bias);
  TORCH_ARG(bool, batch_first);
  TORCH_ARG(double, dropout);
  TORCH_ARG(bool, bidirectional);
  TORCH_ARG(int64_t, proj_size) = 0;
};
}  // namespace detail

// The parameters weight_ih_l0, weight_hh_l0, ... as Python names them.
template <class Derived, class Options>
class RNNImplBase : public Cloneable<Derived> {
 public:
  RNNImplBase(const Options& o, int64_t gates)
      : options(o), options_base(mode_of(o, gates), o), gates_(gates) {
    RNNImplBase::reset();
  }
  void reset() override;
  void reset_parameters();
  void flatten_parameters() {}
  std::vector<Tensor> all_weights() const { return weights_; }
  Options options;
  detail::RNNOptionsBase options_base;  // what `options` said at first, to read

 protected:
  static Mode mode_of(const Options& o, int64_t gates) {
    if constexpr (requires { o.nonlinearity(); }) return o.nonlinearity() == kTanh ? kRNN_TANH : kRNN_RELU;
    return gates == 4 ? kLSTM : kGRU;
  }
  void print(std::ostream& stream, const char* name) const;
  int64_t outputs() const;  // features of a step's result
  Tensor zero_state(const Tensor& input, int64_t batch, int64_t features) const;
  int64_t gates_;
  std::vector<Tensor> weights_;
};

#define RL_RNN(Name)                                                          \
  class Name##Impl : public RNNImplBase<Name##Impl, Name##Options> {          \
   public:                                                                    \
    Name##Impl(int64_t input_size, int64_t hidden_size)                       \
        : Name##Impl(Name##Options(input_size, hidden_size)) {}               \
    explicit Name##Impl(const Name##Options& o);                              \
    void pretty_print(std::ostream& stream) const override;                   \
    std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});  \
    std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input( \
        const utils::rnn::PackedSequence& input, Tensor hx = {});             \
  };                                                                          \
  extern template class RNNImplBase<Name##Impl, Name##Options>;               \
  TORCH_MODULE(Name)
RL_RNN(RNN);
RL_RNN(GRU);
#undef RL_RNN

class LSTMImpl : public RNNImplBase<LSTMImpl, LSTMOptions> {
 public:
  using State = std::optional<std::tuple<Tensor, Tensor>>;
  LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& o);
  void pretty_print(std::ostream& stream) const override;
  std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(const Tensor& input, State state = {});
  std::tuple<utils::rnn::PackedSequence, std::tuple<Tensor, Tensor>> forward_with_packed_input(
      const utils::rnn::PackedSequence& input, State state = {});

 private:
  std::vector<Tensor> zero_states(const Tensor& input, int64_t batch) const;
};
extern template class RNNImplBase<LSTMImpl, LSTMOptions>;
TORCH_MODULE(LSTM);

struct RNNCellOptions {
  RNNCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(Mode, nonlinearity) = kTanh;
};
using LSTMCellOptions = RNNCellOptions;
using GRUCellOptions = RNNCellOptions;

template <class Derived>
class RNNCellImplBase : public Cloneable<Derived> {
 public:
  RNNCellImplBase(const RNNCellOptions& o, int64_t gates) : options(o), gates_(gates) {
    RNNCellImplBase::reset();
  }
  void reset() override;
  RNNCellOptions options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  Tensor state_or_zeros(const Tensor& hx, const Tensor& input) const {
    return hx.defined() ? hx : zeros({input.size(0), options.hidden_size()}, input.options());
  }
  int64_t gates_;
};
#define RL_RNN_CELL(Name, gates)                                                            \
  class Name##Impl : public RNNCellImplBase<Name##Impl> {                                   \
   public:                                                                                  \
    Name##Impl(int64_t input_size, int64_t hidden_size)                                     \
        : Name##Impl(RNNCellOptions(input_size, hidden_size)) {}                            \
    explicit Name##Impl(const RNNCellOptions& o) : RNNCellImplBase<Name##Impl>(o, gates) {} \
    void pretty_print(std::ostream& stream) const override;                                 \
    Tensor forward(const Tensor& input, const Tensor& hx = {});                             \
  };                                                                                        \
  extern template class RNNCellImplBase<Name##Impl>;                                        \
  TORCH_MODULE(Name)
RL_RNN_CELL(RNNCell, 1);
RL_RNN_CELL(GRUCell, 3);
#undef RL_RNN_CELL
class LSTMCellImpl : public RNNCellImplBase<LSTMCellImpl> {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size)
      : LSTMCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const RNNCellOptions& o) : RNNCellImplBase<LSTMCellImpl>(o, 4) {}
  void pretty_print(std::ostream& stream) const override;
  std::tuple<Tensor, Tensor> forward(const Tensor& input,
                                     std::optional<std::tuple<Tensor, Tensor>> state = {});
};
extern template class RNNCellImplBase<LSTMCellImpl>;
TORCH_MODULE(LSTMCell);

}  // namespace rushlight::nn
