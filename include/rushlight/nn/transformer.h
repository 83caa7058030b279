// Transformers (Vaswani et al., 2017). Sequences are [length, batch, features].
#pragma once
#include "rushlight/nn/attention.h"
#include "rushlight/nn/container.h"
#include "rushlight/nn/norm.h"

namespace rushlight::nn {

// torch::kReLU, torch::kGELU, or a function of one tensor.
using activation_t = std::variant<Mode, std::function<Tensor(const Tensor&)>>;

#define RL_LAYER_OPTIONS(Name)                                                          \
  struct Name##Options {                                                                \
    Name##Options(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {} \
    TORCH_ARG(int64_t, d_model);                                                        \
    TORCH_ARG(int64_t, nhead);                                                          \
    TORCH_ARG(int64_t, dim_feedforward) = 2048;                                         \
    TORCH_ARG(double, dropout) = 0.1;                                                   \
    TORCH_ARG(activation_t, activation) = kReLU;                                        \
  }
RL_LAYER_OPTIONS(TransformerEncoderLayer);
RL_LAYER_OPTIONS(TransformerDecoderLayer);
#undef RL_LAYER_OPTIONS

// Self-attention, then two linear layers; each is added to its input and normalised.
class TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions o) : options(std::move(o)) {
    TransformerEncoderLayerImpl::reset();
  }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});
  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
};
TORCH_MODULE(TransformerEncoderLayer);

// Self-attention, attention to the encoder's result, then two linear layers.
class TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions o) : options(std::move(o)) {
    TransformerDecoderLayerImpl::reset();
  }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
};
TORCH_MODULE(TransformerDecoderLayer);

#define RL_STACK_OPTIONS(Name, layer)                                    \
  struct Name##Options {                                                 \
    Name##Options(Name##Layer layer, int64_t num_layers)                 \
        : layer##_(std::move(layer)), num_layers_(num_layers) {}         \
    Name##Options(const Name##LayerOptions& options, int64_t num_layers) \
        : Name##Options(Name##Layer(options), num_layers) {}             \
    TORCH_ARG(Name##Layer, layer);                                       \
    TORCH_ARG(int64_t, num_layers);                                      \
    TORCH_ARG(AnyModule, norm);                                          \
  }
RL_STACK_OPTIONS(TransformerEncoder, encoder_layer);
RL_STACK_OPTIONS(TransformerDecoder, decoder_layer);
#undef RL_STACK_OPTIONS

// num_layers copies of a layer, and a norm behind them where one is given.
class TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  TransformerEncoderImpl(TransformerEncoderLayer layer, int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(std::move(layer), num_layers)) {}
  explicit TransformerEncoderImpl(TransformerEncoderOptions o) : options(std::move(o)) {
    TransformerEncoderImpl::reset();
  }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});
  TransformerEncoderOptions options;
  ModuleList layers{nullptr};
  AnyModule norm;
};
TORCH_MODULE(TransformerEncoder);

class TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  TransformerDecoderImpl(TransformerDecoderLayer layer, int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(std::move(layer), num_layers)) {}
  explicit TransformerDecoderImpl(TransformerDecoderOptions o) : options(std::move(o)) {
    TransformerDecoderImpl::reset();
  }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  TransformerDecoderOptions options;
  ModuleList layers{nullptr};
  AnyModule norm;
};
TORCH_MODULE(TransformerDecoder);

struct TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers, int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  TORCH_ARG(int64_t, d_model) = 512;
  TORCH_ARG(int64_t, nhead) = 8;
  TORCH_ARG(int64_t, num_encoder_layers) = 6;
  TORCH_ARG(int64_t, num_decoder_layers) = 6;
  TORCH_ARG(int64_t, dim_feedforward) = 2048;
  TORCH_ARG(double, dropout) = 0.1;
  TORCH_ARG(activation_t, activation) = kReLU;
  TORCH_ARG(AnyModule, custom_encoder);
  TORCH_ARG(AnyModule, custom_decoder);
};
class TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  explicit TransformerImpl(TransformerOptions o = {}) : options(std::move(o)) { TransformerImpl::reset(); }
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  // [size, size]: minus infinity above the diagonal, zero elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size);
  TransformerOptions options;
  AnyModule encoder, decoder;
};
TORCH_MODULE(Transformer);

}  // namespace rushlight::nn
