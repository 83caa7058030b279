// The state that optimizers keep, as programs for libtorch look at it.
#include <c10/util/flat_hash_map.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <sstream>

namespace {

namespace nn = torch::nn;
namespace optim = torch::optim;
using torch::Tensor;

template <class Optimizer>
void run_steps(Optimizer& optimizer, nn::Linear& model, int steps) {
  const Tensor x = torch::linspace(-1, 1, 12).view({4, 3});
  for (int i = 0; i < steps; ++i)
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = (model(x) - 1).square().mean();
      loss.backward();
      return loss;
    });
}

// Two steps, a file, and two more in a new optimizer are as four steps in one.
template <class State, class Optimizer, class Options>
void resumes(const Options& options) {
  torch::manual_seed(3);
  nn::Linear all(3, 2), half(3, 2);
  half = nn::Linear(std::dynamic_pointer_cast<nn::LinearImpl>(all->clone()));
  Optimizer whole(all->parameters(), options), first(half->parameters(), options);
  run_steps(whole, all, 4);
  run_steps(first, half, 2);
  std::stringstream file;
  torch::save(first, file);
  Optimizer second(half->parameters(), Options(options).lr(123));
  torch::load(second, file);
  void* const key = half->weight.unsafeGetTensorImpl();
  EXPECT_TRUE(static_cast<State&>(*second.state().at(key)) == static_cast<State&>(*first.state().at(key)));
  EXPECT_TRUE(second.param_groups()[0].options() == first.param_groups()[0].options());
  run_steps(second, half, 2);
  EXPECT_TRUE(half->weight.equal(all->weight));
  EXPECT_FALSE(static_cast<State&>(*second.state().at(key)) == static_cast<State&>(*first.state().at(key)));
}

TEST(ApiOptimState, ResumesFromFiles) {
  resumes<optim::SGDParamState, optim::SGD>(optim::SGDOptions(0.1).momentum(0.9));
  resumes<optim::AdamParamState, optim::Adam>(optim::AdamOptions(0.1).amsgrad(true));
  resumes<optim::AdamWParamState, optim::AdamW>(optim::AdamWOptions(0.1));
  resumes<optim::AdagradParamState, optim::Adagrad>(optim::AdagradOptions(0.1));
  resumes<optim::RMSpropParamState, optim::RMSprop>(optim::RMSpropOptions(0.1).momentum(0.5).centered(true));
  resumes<optim::LBFGSParamState, optim::LBFGS>(optim::LBFGSOptions(0.5).max_iter(2));
}

TEST(ApiOptimState, NamesOfLibtorch) {
  nn::Linear model(3, 2);
  optim::Adam adam(model->parameters(), optim::AdamOptions(0.1));
  run_steps(adam, model, 3);
  const ska::flat_hash_map<void*, std::unique_ptr<optim::OptimizerParamState>>& states = adam.state();
  auto& state = static_cast<optim::AdamParamState&>(*states.at(model->bias.unsafeGetTensorImpl()));
  EXPECT_EQ(state.step(), 3);
  EXPECT_EQ(state.exp_avg().sizes(), model->bias.sizes());
  EXPECT_FALSE(state.max_exp_avg_sq().defined());
  const auto copy = state.clone();
  state.step(7);
  EXPECT_EQ(state.step(), 7);
  EXPECT_EQ(static_cast<optim::AdamParamState&>(*copy).step(), 3);

  optim::Adagrad adagrad(model->parameters(), optim::AdagradOptions(0.1).initial_accumulator_value(2));
  auto& at_start =
      static_cast<optim::AdagradParamState&>(*adagrad.state().at(model->weight.unsafeGetTensorImpl()));
  EXPECT_TRUE(at_start.sum().equal(torch::full({2, 3}, 2.0)));
  EXPECT_FALSE(optim::SGDOptions(0.1) == optim::SGDOptions(0.2));

  optim::LBFGS lbfgs(model->parameters(), optim::LBFGSOptions(0.5).max_iter(3));
  run_steps(lbfgs, model, 1);
  auto& memory = static_cast<optim::LBFGSParamState&>(*lbfgs.state().at(model->weight.unsafeGetTensorImpl()));
  EXPECT_GT(memory.n_iter(), 1);
  EXPECT_EQ(memory.d().numel(), 8);
  EXPECT_EQ(memory.old_dirs().size(), memory.ro().size());
}

// An optimizer of one's own, with a state of its own class.
struct SignOptions : optim::OptimizerCloneableOptions<SignOptions> {
  SignOptions(double lr) : lr_(lr) {}
  TORCH_ARG(double, lr);
};
struct SignState : optim::OptimizerCloneableParamState<SignState> {
  TORCH_ARG(int64_t, step) = 0;
};
class Sign : public optim::Optimizer {
 public:
  Sign(std::vector<Tensor> params, SignOptions defaults)
      : Optimizer({optim::OptimizerParamGroup(std::move(params))}, std::make_unique<SignOptions>(defaults)) {}
  Tensor step(LossClosure = nullptr) override {
    torch::NoGradGuard no_grad;
    for (auto& group : param_groups_)
      for (auto& p : group.params()) {
        auto& slot = state_[p.unsafeGetTensorImpl()];
        if (!slot) slot = std::make_unique<SignState>();
        auto& state = static_cast<SignState&>(*slot);
        state.step(state.step() + 1);
        p.sub_(p.grad().sign(), static_cast<SignOptions&>(group.options()).lr());
      }
    return {};
  }
};

TEST(ApiOptimState, OptimizersOfOnesOwn) {
  Tensor x = torch::tensor({1.0, -2.0}, torch::requires_grad());
  Sign sign({x}, SignOptions(0.5));
  x.square().sum().backward();
  sign.step();
  sign.step();
  EXPECT_TRUE(x.detach().equal(torch::tensor({0.0, -1.0})));
  EXPECT_EQ(static_cast<SignState&>(*sign.state().at(x.unsafeGetTensorImpl())).step(), 2);
  // Which class its state has is not known to the library, so it is not loaded as another one.
  std::stringstream file;
  torch::save(sign, file);
  EXPECT_THROW(torch::load(sign, file), c10::Error);
}

TEST(ApiOptimState, SavesThroughFunctions) {
  const Tensor x = torch::randn({5, 5});
  std::string bytes;
  torch::save(x, [&](const void* from, size_t n) {
    bytes.append(static_cast<const char*>(from), n);
    return n;
  });
  Tensor y, z;
  torch::load(y, bytes.data(), bytes.size());
  EXPECT_TRUE(y.equal(x));
  torch::load(
      z,
      [&](uint64_t at, void* to, size_t n) -> size_t {  // a few bytes at a time
        const size_t count = std::min<size_t>({n, 100, bytes.size() - at});
        std::memcpy(to, bytes.data() + at, count);
        return count;
      },
      [&] { return bytes.size(); });
  EXPECT_TRUE(z.equal(x));
  EXPECT_THROW(torch::load(y, bytes.data(), bytes.size() / 2), c10::Error);
}

}  // namespace
