// Operators of ATen that are no records here, written with those that are.
#include <cmath>
#include <limits>

#include "frontend/torchscript/arguments.h"
#include "rushlight/nn/functional.h"
#include "rushlight/nn/rnn.h"
#include "rushlight/printed/functions.h"
#include "rushlight/printed/nn_functional.h"

namespace rushlight::jit {
namespace {

// The settings behind choose algorithms of a library that is not here.
IValue convolution(Arguments& a) {
  Arguments plain{{a.values.begin(), a.values.begin() + std::min<std::ptrdiff_t>(std::ssize(a.values), 9)},
                  {}};
  return call_table("aten::convolution", plain);
}

// A convolution that is padded by a name: "same" or "valid".
IValue named_padding(Arguments& a) {
  const int64_t dims = a[1].toTensor().dim() - 2;
  RL_CHECK_VALUE(dims >= 1 && dims <= 3, "_convolution_mode: a convolution of ", dims, " dimensions");
  return call_table("aten::conv" + std::to_string(dims) + "d", a);
}

IValue padded_sequences(Arguments& a) {
  const IValue *first = a.find(1, "batch_first"), *value = a.find(2, "padding_value"),
               *side = a.find(3, "padding_side");
  const std::vector<Tensor> sequences = a[0].toTensorVector();
  return IValue(nn::utils::rnn::pad_sequence(sequences, first && truth(*first),
                                             value ? value->toDouble() : 0.0,
                                             side ? side->toStringRef() : "right"));
}

Tensor number_like(const IValue& v) { return v.isNone() ? Tensor() : v.toTensor(); }

// `kind` 0: the mask is by position, 1: by key of each sequence, 2: both. True hides.
Tensor additive(const Tensor& mask, int64_t kind, const Tensor& like) {
  if (!mask.defined()) return {};
  Tensor m = kind == 1 ? mask.unsqueeze(1).unsqueeze(2) : mask;
  if (m.dtype() == DType::Bool)
    m = zeros_like(m, like.options()).masked_fill(m, Scalar(-std::numeric_limits<double>::infinity()));
  return m;
}
Tensor heads_of(const Tensor& x, int64_t heads) {
  return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}
struct Attention {
  Tensor query, key, value, qkv_weight, qkv_bias, out_weight, out_bias, mask;
  int64_t heads, mask_kind;
};
std::pair<Tensor, Tensor> attend(const Attention& a) {
  const auto weights = a.qkv_weight.chunk(3), biases = a.qkv_bias.chunk(3);
  const Tensor q = heads_of(linear(a.query, weights[0], biases[0]), a.heads);
  const Tensor k = heads_of(linear(a.key, weights[1], biases[1]), a.heads);
  const Tensor v = heads_of(linear(a.value, weights[2], biases[2]), a.heads);
  Tensor scores = matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  if (const Tensor added = additive(a.mask, a.mask_kind, scores); added.defined()) scores = scores + added;
  const Tensor chances = scores.softmax(-1);
  const Tensor mixed = matmul(chances, v).transpose(1, 2).flatten(2);
  return {linear(mixed, a.out_weight, a.out_bias), chances};
}
int64_t kind_at(Arguments& a, size_t i) { return a.size() > i && a[i].isInt() ? a[i].toInt() : 0; }

// query, key, value, embed_dim, heads, qkv weight and bias, projection's weight and bias, mask, need_weights,
// average_weights, kind of mask
IValue native_attention(Arguments& a) {
  const auto t = [&](size_t i) { return a.size() > i ? number_like(a[i]) : Tensor(); };
  const auto [out, chances] =
      attend({t(0), t(1), t(2), t(5), t(6), t(7), t(8), t(9), a[4].toInt(), kind_at(a, 12)});
  if (a.size() > 10 && !truth(a[10])) return IValue(IValue::Tuple{{IValue(out), IValue(empty({0}))}, {}, {}});
  const bool average = a.size() <= 11 || truth(a[11]);
  return IValue(
      IValue::Tuple{{IValue(out), IValue(average ? chances.mean(IntArrayRef{1}) : chances)}, {}, {}});
}

// x, embed_dim, heads, qkv weight and bias, projection's, use_gelu, norm_first, eps, norms' weights and
// biases, feed-forward's, mask, kind of mask
IValue encoder_layer(Arguments& a) {
  const auto t = [&](size_t i) { return a.size() > i ? number_like(a[i]) : Tensor(); };
  const int64_t width = a[1].toInt();
  const auto norm = [&](const Tensor& y, size_t i) {
    return layer_norm(y, {width}, t(i), t(i + 1), a[9].toDouble());
  };
  const auto attention = [&](const Tensor& y) {
    return attend({y, y, y, t(3), t(4), t(5), t(6), t(18), a[2].toInt(), kind_at(a, 19)}).first;
  };
  const auto feed_forward = [&](const Tensor& y) {
    const Tensor inner = linear(y, t(14), t(15));
    return linear(truth(a[7]) ? gelu(inner) : relu(inner), t(16), t(17));
  };
  Tensor x = t(0);
  if (truth(a[8])) {
    x = x + attention(norm(x, 10));
    return IValue(x + feed_forward(norm(x, 12)));
  }
  x = norm(x + attention(x), 10);
  return IValue(norm(x + feed_forward(x), 12));
}

// Without pad_mode, as PyTorch's first form has it, the signal is not padded.
IValue short_time_transform(Arguments& a) {
  if (a.size() > 6 && a[6].isString()) return call_table("aten::stft", a);
  if (a.size() > 5) a.values.insert(a.values.begin() + 5, {IValue(false), IValue("reflect")});
  return call_table("aten::stft", a);
}
std::vector<int64_t> sizes_of(const IValue& v, size_t n) {
  return v.isInt() ? std::vector<int64_t>(n, v.toInt()) : v.toIntVector();
}

template <std::tuple<Tensor, Tensor> (*Pool)(const Tensor&, IntArrayRef, bool), size_t N>
IValue adaptive_max(Arguments& a) {
  return IValue(Pool(a[0].toTensor(), sizes_of(a[1], N), true));
}

}  // namespace

std::vector<NamedBuiltin> layer_builtins() {
  return {
      {"aten::_convolution", convolution},
      {"aten::_convolution_mode", named_padding},
      {"aten::pad_sequence", padded_sequences},
      {"aten::relu6_", [](Arguments& a) { return call_table("aten::relu6", a[0], true); }},
      {"aten::_native_multi_head_attention", native_attention},
      {"aten::_transformer_encoder_layer_fwd", encoder_layer},
      // Without nested tensors: the layers then take padding as a mask.
      {"aten::_nested_tensor_from_mask_left_aligned", [](Arguments&) { return IValue(false); }},
      {"aten::adaptive_avg_pool1d",
       [](Arguments& a) { return IValue(adaptive_avg_pool1d(a[0].toTensor(), sizes_of(a[1], 1))); }},
      {"aten::adaptive_avg_pool2d",
       [](Arguments& a) { return IValue(adaptive_avg_pool2d(a[0].toTensor(), sizes_of(a[1], 2))); }},
      {"aten::adaptive_avg_pool3d",
       [](Arguments& a) { return IValue(adaptive_avg_pool3d(a[0].toTensor(), sizes_of(a[1], 3))); }},
      {"aten::adaptive_max_pool2d", adaptive_max<nn::functional::adaptive_max_pool2d_with_indices, 2>},
      {"aten::adaptive_max_pool3d", adaptive_max<nn::functional::adaptive_max_pool3d_with_indices, 3>},
      {"aten::stft", short_time_transform},
      {"aten::meshgrid",
       [](Arguments& a) {
         if (a.size() == 1 && a.named.empty()) a.named.emplace_back("indexing", IValue("ij"));
         return call_table("aten::meshgrid", a);
       }},
  };
}

}  // namespace rushlight::jit
