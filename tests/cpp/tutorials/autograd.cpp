// "Autograd in C++ Frontend".
#include <torch/torch.h>

#include "check.h"

using namespace torch::autograd;

class LinearFunction : public Function<LinearFunction> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    auto input = saved[0], weight = saved[1], bias = saved[2];
    auto grad_output = grad_outputs[0];
    auto grad_bias = torch::Tensor();
    if (bias.defined()) grad_bias = grad_output.sum(0);
    return {grad_output.mm(weight), grad_output.t().mm(input), grad_bias};
  }
};

class MulConstant : public Function<MulConstant> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor tensor, double constant) {
    ctx->saved_data["constant"] = constant;
    return tensor * constant;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    return {grad_outputs[0] * ctx->saved_data["constant"].toDouble(), torch::Tensor()};
  }
};

static void basic_operations() {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  CHECK(y.grad_fn()->name() == "AddBackward0" || y.grad_fn()->name() == "AddBackward1");
  auto z = y * y * 3;
  auto out = z.mean();
  CHECK(out.item<float>() == 27);
  CHECK(out.grad_fn()->name() == "MeanBackward0");
  auto a = torch::randn({2, 2});
  a = ((a * 3) / (a - 1));
  CHECK(!a.requires_grad());
  a.requires_grad_(true);
  CHECK(a.requires_grad());
  auto b = (a * a).sum();
  CHECK(b.grad_fn()->name() == "SumBackward0");
  out.backward();
  CHECK(torch::allclose(x.grad(), torch::full({2, 2}, 4.5)));

  x = torch::randn(3, torch::requires_grad());
  y = x * 2;
  int doublings = 1;
  while (y.norm().item<double>() < 1000) y = y * 2, ++doublings;
  auto v = torch::tensor({0.1, 1.0, 0.0001}, torch::kFloat);
  y.backward(v);
  CHECK(torch::allclose(x.grad(), v * std::pow(2.0, doublings)));

  CHECK(x.pow(2).requires_grad());
  {
    torch::NoGradGuard no_grad;
    CHECK(!x.pow(2).requires_grad());
  }
  y = x.detach();
  CHECK(!y.requires_grad() && x.eq(y).all().item<bool>());
}

static void higher_order_gradients() {
  auto model = torch::nn::Linear(4, 3);
  auto input = torch::randn({3, 4}).requires_grad_(true);
  auto output = model(input);
  auto target = torch::randn({3, 3});
  auto loss = torch::nn::MSELoss()(output, target);
  auto grad_output = torch::ones_like(output);
  auto gradient =
      torch::autograd::grad({output}, {input}, /*grad_outputs=*/{grad_output}, /*retain_graph=*/true,
                            /*create_graph=*/true)[0];
  auto gradient_penalty = torch::pow((gradient.norm(2, /*dim=*/1) - 1), 2).mean();
  auto combined_loss = loss + gradient_penalty;
  combined_loss.backward();
  CHECK(input.grad().sizes() == input.sizes() && model->weight.grad().defined());
  CHECK(!input.grad().requires_grad());
}

static void functions_of_ones_own() {
  auto x = torch::randn({2, 3}).requires_grad_();
  auto weight = torch::randn({4, 3}).requires_grad_();
  auto y = LinearFunction::apply(x, weight);
  y.sum().backward();
  CHECK(torch::allclose(x.grad(), torch::ones({2, 4}).mm(weight.detach())));
  CHECK(torch::allclose(weight.grad(), torch::ones({4, 2}).mm(x.detach())));

  auto z = torch::randn({2}).requires_grad_();
  MulConstant::apply(z, 5.5).sum().backward();
  CHECK(torch::allclose(z.grad(), torch::full({2}, 5.5)));
}

static void hooks_and_leaves() {
  auto x = torch::ones({2}, torch::requires_grad());
  auto y = x * 3;
  y.retain_grad();
  double seen = 0;
  const unsigned handle = y.register_hook([&](torch::Tensor grad) { seen = grad.sum().item<double>(); });
  (y * y).sum().backward();
  CHECK(seen == 12 && torch::equal(y.grad(), torch::full({2}, 6.0)));
  y.remove_hook(handle);
  CHECK(x.is_leaf() && !y.is_leaf());
}

int main() {
  torch::manual_seed(1);
  basic_operations();
  higher_order_gradients();
  functions_of_ones_own();
  hooks_and_leaves();
  return 0;
}
