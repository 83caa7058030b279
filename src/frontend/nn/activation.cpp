#include "rushlight/nn/activation.h"

#include <ostream>

#include "rushlight/nn/functional.h"

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

}  // namespace rushlight::nn
