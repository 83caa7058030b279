// torch.nn.functional's spelling of the activations: first parameter `input`, a flag for in-place work.
#include "ops/activation.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/register.h"

namespace rushlight {
namespace {

// body(input, parameters..., inplace) and body_(input, parameters...) for an operator with an in-place form.
template <auto& Handle, class F = std::remove_cvref_t<decltype(Handle)>>
struct Functional;
template <auto& Handle, class... P>
struct Functional<Handle, Fn<Tensor(const Tensor&, P...)>> {
  static Tensor body(const Call&, const Tensor& input, P... parameters, bool inplace) {
    return inplace ? Handle.inplace(input, parameters...) : Handle(input, parameters...);
  }
  static Tensor plain(const Call&, const Tensor& input, P... parameters) {
    return Handle(input, parameters...);
  }
  static Tensor inplace(const Call&, const Tensor& input, P... parameters) {
    return Handle.inplace(input, parameters...);
  }
};

Tensor relu6_body(const Call&, const Tensor& input, bool inplace) {
  RL_CHECK(!is_bool(input.dtype()), "Boolean inputs not supported for relu6");
  return inplace ? ops::hardtanh.inplace(input, Scalar(0), Scalar(6))
                 : ops::hardtanh(input, Scalar(0), Scalar(6));
}

Tensor elu_body(const Call&, const Tensor& input, const Scalar& alpha, bool inplace) {
  return inplace ? ops::elu.inplace(input, alpha, Scalar(1), Scalar(1))
                 : ops::elu(input, alpha, Scalar(1), Scalar(1));
}
Tensor elu_inplace(const Call&, const Tensor& input, const Scalar& alpha) {
  return ops::elu.inplace(input, alpha, Scalar(1), Scalar(1));
}

Tensor softsign_body(const Call&, const Tensor& input) { return input / (ops::abs(input) + 1); }
Tensor tanhshrink_body(const Call&, const Tensor& input) { return input - ops::tanh(input); }

Tensor rrelu_body(const Call&, const Tensor& input, const Scalar& lower, const Scalar& upper, bool training,
                  bool inplace) {
  return inplace ? ops::rrelu_(input, lower, upper, training, nullptr)
                 : ops::rrelu(input, lower, upper, training, nullptr);
}

}  // namespace

void register_activation_functional_operators(Table& t) {
  using namespace ops;
  auto flagged = [&](const char* schema, auto body, const Op& op) {
    return t.composite(schema, body).doc(op.doc);
  };
  flagged("nn::relu(Tensor input, bool inplace=False) -> Tensor", Functional<relu>::body, relu.op())
      .elementwise();
  flagged("nn::relu_(Tensor(a!) input) -> Tensor(a!)", Functional<relu>::inplace, relu.op());
  flagged("nn::relu6(Tensor self, bool inplace=False) -> Tensor", relu6_body, hardtanh.op()).elementwise();
  flagged("nn::leaky_relu(Tensor input, Scalar negative_slope=0.01, bool inplace=False) -> Tensor",
          Functional<leaky_relu>::body, leaky_relu.op())
      .elementwise();
  flagged("nn::leaky_relu_(Tensor(a!) input, Scalar negative_slope=0.01) -> Tensor(a!)",
          Functional<leaky_relu>::inplace, leaky_relu.op());
  flagged("nn::elu(Tensor input, Scalar alpha=1.0, bool inplace=False) -> Tensor", elu_body, elu.op())
      .elementwise();
  flagged("nn::elu_(Tensor(a!) input, Scalar alpha=1.0) -> Tensor(a!)", elu_inplace, elu.op());
  flagged("nn::selu(Tensor input, bool inplace=False) -> Tensor", Functional<selu>::body, selu.op())
      .elementwise();
  flagged("nn::selu_(Tensor(a!) input) -> Tensor(a!)", Functional<selu>::inplace, selu.op());
  flagged("nn::celu(Tensor input, Scalar alpha=1.0, bool inplace=False) -> Tensor", Functional<celu>::body,
          celu.op())
      .one_node()
      .elementwise();
  flagged("nn::celu_(Tensor(a!) input, Scalar alpha=1.0) -> Tensor(a!)", Functional<celu>::inplace,
          celu.op());
  flagged("nn::gelu(Tensor input, str approximate='none') -> Tensor", Functional<gelu>::plain, gelu.op())
      .out(OutRule::SameType)
      .out_apart(kFirst)
      .elementwise();
  flagged("nn::silu(Tensor input, bool inplace=False) -> Tensor", Functional<silu>::body, silu.op())
      .elementwise();
  flagged("nn::mish(Tensor input, bool inplace=False) -> Tensor", Functional<mish>::body, mish.op())
      .elementwise();
  flagged("nn::softplus(Tensor input, Scalar beta=1, Scalar threshold=20) -> Tensor",
          Functional<softplus>::plain, softplus.op())
      .out(OutRule::SameType)
      .autocast(Cast::None, Cast::Float)
      .out_apart(kFirst)
      .elementwise();
  flagged("nn::hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0, bool inplace=False) -> Tensor",
          Functional<hardtanh>::body, hardtanh.op())
      .elementwise();
  flagged("nn::hardtanh_(Tensor(a!) input, Scalar min_val=-1.0, Scalar max_val=1.0) -> Tensor(a!)",
          Functional<hardtanh>::inplace, hardtanh.op());
  flagged("nn::hardsigmoid(Tensor input, bool inplace=False) -> Tensor", Functional<hardsigmoid>::body,
          hardsigmoid.op())
      .elementwise();
  flagged("nn::hardswish(Tensor input, bool inplace=False) -> Tensor", Functional<hardswish>::body,
          hardswish.op())
      .elementwise();
  flagged("nn::threshold(Tensor input, Scalar threshold, Scalar value, bool inplace=False) -> Tensor",
          Functional<threshold>::body, threshold.op())
      .elementwise();
  flagged("nn::threshold_(Tensor(a!) input, Scalar threshold, Scalar value) -> Tensor(a!)",
          Functional<threshold>::inplace, threshold.op());
  flagged("nn::softshrink(Tensor input, Scalar lambd=0.5) -> Tensor", Functional<softshrink>::plain,
          softshrink.op())
      .out(OutRule::SameType)
      .out_apart(kFirst)
      .elementwise();
  flagged("nn::hardshrink(Tensor input, Scalar lambd=0.5) -> Tensor", Functional<hardshrink>::plain,
          hardshrink.op())
      .out(OutRule::SameType)
      .out_apart(kFirst)
      .elementwise();
  flagged("nn::logsigmoid(Tensor input) -> Tensor", Functional<log_sigmoid>::plain, log_sigmoid.op())
      .out(OutRule::SameType)
      .elementwise();
  flagged("nn::glu(Tensor input, int dim=-1) -> Tensor", Functional<glu>::plain, glu.op()).one_node();
  flagged("nn::prelu(Tensor input, Tensor weight) -> Tensor", Functional<prelu>::plain, prelu.op())
      .autocast(Cast::Half);
  flagged("nn::sigmoid(Tensor input) -> Tensor", Functional<sigmoid>::plain, sigmoid.op()).elementwise();
  flagged("nn::tanh(Tensor input) -> Tensor", Functional<tanh>::plain, tanh.op()).elementwise();
  flagged("special::expit(Tensor self) -> Tensor", Functional<sigmoid>::plain, sigmoid.op()).out();
  t.composite(
       "nn::rrelu(Tensor input, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
       "bool inplace=False) -> Tensor",
       rrelu_body)
      .doc("Leaky relu with random slopes while training.")
      .one_node()
      .node("RreluWithNoiseBackward0")
      .elementwise();
  t.composite("nn::softsign(Tensor input) -> Tensor", softsign_body)
      .doc("input / (1 + |input|).")
      .elementwise();
  t.composite("nn::tanhshrink(Tensor input) -> Tensor", tanhshrink_body)
      .doc("input - tanh(input).")
      .elementwise();
}

}  // namespace rushlight
