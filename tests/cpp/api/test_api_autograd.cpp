#include <gtest/gtest.h>
#include <torch/torch.h>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

TEST(ApiAutograd, BackwardAndGrad) {
  torch::Tensor x = torch::tensor({2.0, 3.0}, torch::requires_grad());
  (x * x).sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::tensor({4.0, 6.0})));
  (x * 2).backward(torch::ones(2));
  EXPECT_TRUE(torch::equal(x.grad(), torch::tensor({6.0, 8.0})));
  const torch::Tensor cubes = x.pow(3);
  const auto first = torch::autograd::grad({cubes.sum()}, {x}, {}, true, true);
  const auto second = torch::autograd::grad({first[0].sum()}, {x});
  EXPECT_TRUE(torch::allclose(second[0], 6 * x));
  torch::Tensor unused = torch::ones(1, torch::requires_grad());
  EXPECT_THROW(torch::autograd::grad({(x * 2).sum()}, {unused}), rushlight::Error);
  EXPECT_FALSE(torch::autograd::grad({(x * 2).sum()}, {unused}, {}, {}, false, true)[0].defined());
  x.mutable_grad().reset();
  torch::Tensor other = torch::ones(2, torch::requires_grad());
  (x * other).sum().backward({}, false, false, torch::TensorList({x}));
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(other.grad().defined());
}

TEST(ApiAutograd, ShowsTheGraph) {
  torch::Tensor x = torch::ones(2, torch::requires_grad());
  EXPECT_EQ(x.grad_fn(), nullptr);
  EXPECT_TRUE(x.is_leaf());
  const torch::Tensor y = x.exp();
  EXPECT_EQ(y.grad_fn()->name(), "ExpBackward0");
  EXPECT_NE(y.grad_fn()->next_edges()[0].function, nullptr);
  EXPECT_THROW(torch::ones(1, torch::kInt).set_requires_grad(true), rushlight::Error);
}

TEST(ApiAutograd, Modes) {
  torch::Tensor x = torch::ones(2, torch::requires_grad());
  {
    torch::NoGradGuard no_grad;
    EXPECT_FALSE((x * 2).requires_grad());
    torch::AutoGradMode on(true);
    EXPECT_TRUE((x * 2).requires_grad());
  }
  EXPECT_TRUE(torch::GradMode::is_enabled());
  {
    torch::InferenceMode guard;
    EXPECT_TRUE(torch::ones(1).is_inference());
    EXPECT_FALSE((x * 2).requires_grad());
  }
  EXPECT_FALSE(torch::ones(1).is_inference());
  EXPECT_FALSE(x.detach().requires_grad());
}

TEST(ApiAutograd, Hooks) {
  torch::Tensor x = torch::ones(2, torch::requires_grad());
  int seen = 0;
  const unsigned first = x.register_hook([&](torch::Tensor grad) { seen += static_cast<int>(grad.numel()); });
  const unsigned second = x.register_hook([](torch::Tensor grad) { return grad * 10; });
  (x * 3).sum().backward();
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(x.grad()[0].item<float>(), 30);
  x.remove_hook(second);
  x.remove_hook(first);
  (x * 3).sum().backward();
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(x.grad()[0].item<float>(), 33);
  torch::Tensor y = x * 2;
  y.retain_grad();
  y.register_hook([](torch::Tensor g) { return g * 2; });
  y.sum().backward();
  EXPECT_EQ(y.grad()[0].item<float>(), 2);
}

struct Scaled : torch::autograd::Function<Scaled> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x, double factor, torch::Tensor y) {
    ctx->saved_data["factor"] = factor;
    ctx->save_for_backward({x, y});
    return x * factor + x * y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const double factor = ctx->saved_data["factor"].toDouble();
    return {grads[0] * (factor + saved[1]), torch::Tensor(), grads[0] * saved[0]};
  }
};

TEST(ApiAutograd, FunctionsOfOnesOwn) {
  torch::Tensor x = torch::full({3}, 2.0, torch::requires_grad()),
                y = torch::full({3}, 5.0, torch::requires_grad());
  const torch::Tensor z = Scaled::apply(x, 4.0, y);
  EXPECT_NE(z.grad_fn()->name().find("Scaled"), std::string::npos);
  z.sum().backward({}, /*retain_graph=*/true);
  EXPECT_EQ(x.grad()[0].item<float>(), 9);
  EXPECT_EQ(y.grad()[0].item<float>(), 2);
  z.sum().backward();
  EXPECT_THROW(z.sum().backward(), rushlight::Error);
  EXPECT_FALSE(Scaled::apply(x.detach(), 1.0, y.detach()).requires_grad());
  // What was saved must not change until backward.
  torch::Tensor w = torch::ones(3);
  const torch::Tensor v = Scaled::apply(x, 1.0, w);
  w.add_(1);
  EXPECT_THROW(v.sum().backward(), rushlight::Error);
}

struct Split : torch::autograd::Function<Split> {
  static variable_list forward(AutogradContext* ctx, torch::Tensor x) {
    torch::Tensor signs = x.sign();
    ctx->mark_non_differentiable({signs});
    ctx->set_materialize_grads(false);
    return {x.abs(), signs};
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    EXPECT_FALSE(grads[1].defined());
    return {grads[0]};
  }
};
struct Doubled : torch::autograd::Function<Doubled> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0] * 2}; }
};

TEST(ApiAutograd, MarksOfFunctions) {
  torch::Tensor x = torch::tensor({1.0, -2.0}, torch::requires_grad());
  const auto parts = Split::apply(x);
  EXPECT_FALSE(parts[1].requires_grad());
  parts[0].sum().backward();
  EXPECT_EQ(x.grad()[1].item<float>(), 1);
  torch::Tensor y = x * 1;
  const torch::Tensor doubled = Doubled::apply(y);
  EXPECT_TRUE(doubled.is_same(y));
  x.mutable_grad().reset();
  doubled.sum().backward();
  EXPECT_EQ(x.grad()[0].item<float>(), 2);
}

}  // namespace
