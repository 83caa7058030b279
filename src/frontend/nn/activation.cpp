#include "rushlight/nn/activation.h"

#include <cmath>
#include <ostream>

#include "rushlight/nn/functional.h"
#include "rushlight/nn/init.h"

namespace rushlight::nn {

namespace F = functional;

namespace {

const char* inplace_text(bool inplace) { return inplace ? "inplace=true" : ""; }

}  // namespace

#define RL_INPLACE(Name, expression)                                             \
  void Name##Impl::pretty_print(std::ostream& stream) const {                    \
    stream << "torch::nn::" #Name "(" << inplace_text(options.inplace()) << ")"; \
  }                                                                              \
  Tensor Name##Impl::forward(Tensor input) { return expression; }
RL_INPLACE(ReLU, F::relu(input, options.inplace()))
RL_INPLACE(ReLU6, F::relu6(input, options.inplace()))
RL_INPLACE(SELU, F::selu(input, options.inplace()))
#undef RL_INPLACE
#define RL_PLAIN(Name, expression)                                                                  \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << "torch::nn::" #Name "()"; } \
  Tensor Name##Impl::forward(Tensor input) { return expression; }
RL_PLAIN(SiLU, F::silu(input))
RL_PLAIN(Mish, F::mish(input))
RL_PLAIN(Sigmoid, sigmoid(input))
RL_PLAIN(Tanh, tanh(input))
RL_PLAIN(Softsign, F::softsign(input))
RL_PLAIN(Tanhshrink, F::tanhshrink(input))
RL_PLAIN(LogSigmoid, F::logsigmoid(input))
RL_PLAIN(Hardsigmoid, F::hardsigmoid(input))
RL_PLAIN(Hardswish, F::hardswish(input))
RL_PLAIN(Softmax2d, F::softmax(input, std::optional<int64_t>(-3)))
#undef RL_PLAIN
#define RL_SHOWN(Name, expression, shown)                                \
  void Name##Impl::pretty_print(std::ostream& stream) const {            \
    stream << std::boolalpha << "torch::nn::" #Name "(" << shown << ")"; \
  }                                                                      \
  Tensor Name##Impl::forward(Tensor input) { return expression; }
#define RL_INPLACE_TOO (options.inplace() ? ", inplace=true" : "")
RL_SHOWN(GELU, F::gelu(input, options.approximate()), "")
RL_SHOWN(ELU, F::elu(input, options.alpha(), options.inplace()),
         "alpha=" << options.alpha() << RL_INPLACE_TOO)
RL_SHOWN(CELU, F::celu(input, options.alpha(), options.inplace()),
         "alpha=" << options.alpha() << RL_INPLACE_TOO)
RL_SHOWN(LeakyReLU, F::leaky_relu(input, options.negative_slope(), options.inplace()),
         "negative_slope=" << options.negative_slope() << RL_INPLACE_TOO)
RL_SHOWN(Hardtanh, F::hardtanh(input, options.min_val(), options.max_val(), options.inplace()),
         "min_val=" << options.min_val() << ", max_val=" << options.max_val() << RL_INPLACE_TOO)
RL_SHOWN(RReLU, F::rrelu(input, options.lower(), options.upper(), is_training(), options.inplace()),
         "lower=" << options.lower() << ", upper=" << options.upper() << RL_INPLACE_TOO)
RL_SHOWN(Threshold, F::threshold(input, options.threshold(), options.value(), options.inplace()),
         "threshold=" << options.threshold() << ", value=" << options.value() << RL_INPLACE_TOO)
RL_SHOWN(Hardshrink, F::hardshrink(input, options.lambda()), options.lambda())
RL_SHOWN(Softshrink, F::softshrink(input, options.lambda()), options.lambda())
RL_SHOWN(Softplus, F::softplus(input, options.beta(), options.threshold()),
         "beta=" << options.beta() << ", threshold=" << options.threshold())
RL_SHOWN(GLU, F::glu(input, options.dim()), "dim=" << options.dim())
#undef RL_INPLACE_TOO
#undef RL_SHOWN
#define RL_OVER_DIM(Name, function)                                   \
  void Name##Impl::pretty_print(std::ostream& stream) const {         \
    stream << "torch::nn::" #Name "(dim=" << options.dim() << ")";    \
  }                                                                   \
  Tensor Name##Impl::forward(const Tensor& input) {                   \
    return F::function(input, std::optional<int64_t>(options.dim())); \
  }
RL_OVER_DIM(Softmax, softmax)
RL_OVER_DIM(Softmin, softmin)
RL_OVER_DIM(LogSoftmax, log_softmax)
#undef RL_OVER_DIM

void PReLUImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::PReLU(num_parameters=" << options.num_parameters() << ")";
}

// --- attention
void MultiheadAttentionImpl::reset() {
  const int64_t e = options.embed_dim();
  RL_CHECK(options.num_heads() > 0 && e % options.num_heads() == 0,
           "embed_dim must be divisible by num_heads");
  in_proj_weight = register_parameter("in_proj_weight", rushlight::empty({3 * e, e}));
  in_proj_bias = options.bias() ? register_parameter("in_proj_bias", zeros(3 * e)) : Tensor();
  out_proj_weight = rushlight::empty({e, e});
  out_proj_bias = options.bias() ? zeros(e) : Tensor();
  init::kaiming_uniform_(out_proj_weight, std::sqrt(5.0));
  init::xavier_uniform_(in_proj_weight);
  // Python's module keeps these in a Linear called out_proj.
  auto out_proj = register_module("out_proj", std::make_shared<Module>("out_proj"));
  out_proj_weight = out_proj->register_parameter("weight", out_proj_weight);
  if (options.bias()) out_proj_bias = out_proj->register_parameter("bias", out_proj_bias);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key,
                                                           const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask,
                                                           bool average_attn_weights) {
  const int64_t e = options.embed_dim(), h = options.num_heads(), d = e / h;
  const int64_t target = query.size(0), batch = query.size(1), source = key.size(0);
  const auto weights = in_proj_weight.chunk(3, 0);
  std::vector<Tensor> biases(3);
  if (in_proj_bias.defined()) biases = in_proj_bias.chunk(3, 0);
  auto heads = [&](const Tensor& x, size_t i) {
    return F::linear(x, weights[i], biases[i]).reshape({x.size(0), batch * h, d}).transpose(0, 1);
  };
  const Tensor q = heads(query, 0) / std::sqrt(static_cast<double>(d)), k = heads(key, 1),
               v = heads(value, 2);
  Tensor scores = bmm(q, k.transpose(1, 2));
  auto masked = [](const Tensor& s, const Tensor& mask) {
    return mask.scalar_type() == kBool ? s.masked_fill(mask, -INFINITY) : s + mask;
  };
  if (attn_mask.defined()) scores = masked(scores, attn_mask);
  if (key_padding_mask.defined())
    scores = masked(scores.view({batch, h, target, source}), key_padding_mask.view({batch, 1, 1, source}))
                 .view({batch * h, target, source});
  const Tensor attention = F::dropout(scores.softmax(-1), options.dropout(), is_training());
  const Tensor joined = bmm(attention, v).transpose(0, 1).reshape({target, batch, e});
  const Tensor out = F::linear(joined, out_proj_weight, out_proj_bias);
  if (!need_weights) return {out, Tensor()};
  const Tensor shown = attention.view({batch, h, target, source});
  return {out, average_attn_weights ? shown.mean(1) : shown};
}

}  // namespace rushlight::nn
