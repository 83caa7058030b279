#include "rushlight/nn/transformer.h"

#include <cmath>

#include "rushlight/nn/functional.h"
#include "rushlight/nn/init.h"

namespace rushlight::nn {
namespace {

Tensor activated(const activation_t& activation, const Tensor& x) {
  if (const auto* function = std::get_if<1>(&activation)) return (*function)(x);
  const Mode mode = std::get<Mode>(activation);
  RL_CHECK(mode == kReLU || mode == kGELU, "activation should be kReLU, kGELU, or a callable, but got ",
           mode.name());
  return mode == kReLU ? relu(x) : functional::gelu(x);
}

// What the two kinds of layers share: two linear layers, dropouts, norms, and one attention.
template <class Layer>
void register_common(Layer& layer) {
  const auto& o = layer.options;
  auto attention = [&] {
    return MultiheadAttention(MultiheadAttentionOptions(o.d_model(), o.nhead()).dropout(o.dropout()));
  };
  auto norm = [&] { return LayerNorm(LayerNormOptions({o.d_model()})); };
  layer.self_attn = layer.register_module("self_attn", attention());
  if constexpr (requires { layer.multihead_attn; })
    layer.multihead_attn = layer.register_module("multihead_attn", attention());
  layer.linear1 = layer.register_module("linear1", Linear(o.d_model(), o.dim_feedforward()));
  layer.dropout = layer.register_module("dropout", Dropout(o.dropout()));
  layer.linear2 = layer.register_module("linear2", Linear(o.dim_feedforward(), o.d_model()));
  layer.norm1 = layer.register_module("norm1", norm());
  layer.norm2 = layer.register_module("norm2", norm());
  if constexpr (requires { layer.norm3; }) layer.norm3 = layer.register_module("norm3", norm());
  layer.dropout1 = layer.register_module("dropout1", Dropout(o.dropout()));
  layer.dropout2 = layer.register_module("dropout2", Dropout(o.dropout()));
  if constexpr (requires { layer.norm3; })
    layer.dropout3 = layer.register_module("dropout3", Dropout(o.dropout()));
}

template <class Layer>
Tensor fed_forward(Layer& layer, const Tensor& x) {
  return layer.linear2(layer.dropout(activated(layer.options.activation(), layer.linear1(x))));
}

void redraw(Module& module) {
  for (Tensor& p : module.parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

// Copies of a layer, as deep as its parameters, and the norm.
template <class Stack, class Layer>
void register_stack(Stack& stack, const Layer& layer) {
  RL_CHECK(stack.options.num_layers() > 0, "a transformer needs at least one layer, but num_layers is ",
           stack.options.num_layers());
  stack.layers = stack.register_module("layers", ModuleList());
  for (int64_t i = 0; i < stack.options.num_layers(); ++i) stack.layers->push_back(layer->clone());
  if (stack.options.norm().is_empty()) return;
  stack.norm = stack.options.norm().clone();
  stack.register_module("norm", stack.norm.ptr());
}

template <class Stack>
Tensor normalised(Stack& stack, const Tensor& x) {
  return stack.norm.is_empty() ? x : stack.norm.forward(x);
}

}  // namespace

void TransformerEncoderLayerImpl::reset() { register_common(*this); }
void TransformerEncoderLayerImpl::reset_parameters() { redraw(*this); }

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask) {
  const Tensor seen = std::get<0>(self_attn(src, src, src, src_key_padding_mask, false, src_mask));
  const Tensor x = norm1(src + dropout1(seen));
  return norm2(x + dropout2(fed_forward(*this, x)));
}

void TransformerDecoderLayerImpl::reset() { register_common(*this); }
void TransformerDecoderLayerImpl::reset_parameters() { redraw(*this); }

Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                            const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask) {
  const Tensor own = std::get<0>(self_attn(tgt, tgt, tgt, tgt_key_padding_mask, false, tgt_mask));
  Tensor x = norm1(tgt + dropout1(own));
  const Tensor seen =
      std::get<0>(multihead_attn(x, memory, memory, memory_key_padding_mask, false, memory_mask));
  x = norm2(x + dropout2(seen));
  return norm3(x + dropout3(fed_forward(*this, x)));
}

void TransformerEncoderImpl::reset() { register_stack(*this, options.encoder_layer()); }
void TransformerEncoderImpl::reset_parameters() { redraw(*this); }

Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask,
                                       const Tensor& src_key_padding_mask) {
  Tensor x = src;
  for (size_t i = 0; i < layers->size(); ++i)
    x = layers->at<TransformerEncoderLayerImpl>(i).forward(x, src_mask, src_key_padding_mask);
  return normalised(*this, x);
}

void TransformerDecoderImpl::reset() { register_stack(*this, options.decoder_layer()); }
void TransformerDecoderImpl::reset_parameters() { redraw(*this); }

Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                       const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask) {
  Tensor x = tgt;
  for (size_t i = 0; i < layers->size(); ++i)
    x = layers->at<TransformerDecoderLayerImpl>(i).forward(x, memory, tgt_mask, memory_mask,
                                                           tgt_key_padding_mask, memory_key_padding_mask);
  return normalised(*this, x);
}

namespace {

template <class Stack, class StackOptions, class LayerOptions>
AnyModule made_stack(const TransformerOptions& o, int64_t num_layers) {
  const auto layer = LayerOptions(o.d_model(), o.nhead())
                         .dim_feedforward(o.dim_feedforward())
                         .dropout(o.dropout())
                         .activation(o.activation());
  return AnyModule(
      Stack(StackOptions(layer, num_layers).norm(AnyModule(LayerNorm(LayerNormOptions({o.d_model()}))))));
}

}  // namespace

void TransformerImpl::reset() {
  encoder = options.custom_encoder().is_empty()
                ? made_stack<TransformerEncoder, TransformerEncoderOptions, TransformerEncoderLayerOptions>(
                      options, options.num_encoder_layers())
                : options.custom_encoder().clone();
  decoder = options.custom_decoder().is_empty()
                ? made_stack<TransformerDecoder, TransformerDecoderOptions, TransformerDecoderLayerOptions>(
                      options, options.num_decoder_layers())
                : options.custom_decoder().clone();
  register_module("encoder", encoder.ptr());
  register_module("decoder", decoder.ptr());
  reset_parameters();
}
void TransformerImpl::reset_parameters() { redraw(*this); }

Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                                const Tensor& tgt_mask, const Tensor& memory_mask,
                                const Tensor& src_key_padding_mask, const Tensor& tgt_key_padding_mask,
                                const Tensor& memory_key_padding_mask) {
  RL_CHECK(src.dim() == 3 && tgt.dim() == 3, "src and tgt should have 3 dimensions, but got ", src.dim(),
           " and ", tgt.dim());
  RL_CHECK(src.size(1) == tgt.size(1), "src and tgt should have equal batch size, but got ", src.size(1),
           " and ", tgt.size(1));
  RL_CHECK(src.size(2) == options.d_model() && tgt.size(2) == options.d_model(),
           "src and tgt should have same feature size as d_model, but got ", src.size(2), " and ",
           tgt.size(2), " for d_model ", options.d_model());
  const Tensor memory = encoder.forward(src, src_mask, src_key_padding_mask);
  return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
}

Tensor TransformerImpl::generate_square_subsequent_mask(int64_t size) {
  RL_CHECK(size >= 1, "Input size must be non-negative to generate a valid square subsequent mask, but got ",
           size);
  return full({size, size}, -INFINITY).triu(1);
}

}  // namespace rushlight::nn
