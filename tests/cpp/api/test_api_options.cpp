// Layers and functions by options, compared with the same in plain arguments.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(ApiOptions, Pooling) {
  const Tensor x = torch::randn({2, 3, 6, 6, 6}).abs();
  const Tensor by_layer = nn::LPPool3d(nn::LPPool3dOptions(2, 2).stride(2))(x);
  EXPECT_TRUE(by_layer.allclose(F::lp_pool3d(x, F::LPPool3dFuncOptions(2, 2))));
  EXPECT_TRUE(by_layer.allclose(F::avg_pool3d(x * x, F::AvgPool3dFuncOptions(2)).mul(8).sqrt(), 1e-4, 1e-5));

  nn::AdaptiveAvgPool3d open(nn::AdaptiveAvgPool3dOptions({2, std::nullopt, 3}));
  EXPECT_EQ(open(x).sizes(), torch::IntArrayRef({2, 3, 2, 6, 3}));
  EXPECT_EQ(printed(open), "torch::nn::AdaptiveAvgPool3d(output_size=[2, None, 3])");
  EXPECT_TRUE(nn::AdaptiveMaxPool3d(6)(x).equal(x));
  const auto [y, at] =
      F::adaptive_max_pool2d_with_indices(x[0], F::AdaptiveMaxPool2dFuncOptions({3, std::nullopt}));
  EXPECT_EQ(y.sizes(), torch::IntArrayRef({3, 6, 3, 6}));
  EXPECT_EQ(at.sizes(), y.sizes());
}

TEST(ApiOptions, Functions) {
  const Tensor x = torch::randn({4, 6, 5}), weight = torch::randn({6, 2, 3});
  EXPECT_TRUE(
      F::group_norm(x, F::GroupNormFuncOptions(2).eps(1e-3)).equal(F::group_norm(x, 2, {}, {}, 1e-3)));
  EXPECT_TRUE(F::instance_norm(x, F::InstanceNormFuncOptions().eps(1e-3))
                  .allclose(F::group_norm(x, 6, {}, {}, 1e-3), 1e-4, 1e-5));
  EXPECT_TRUE(
      F::local_response_norm(x, F::LocalResponseNormFuncOptions(3)).equal(F::local_response_norm(x, 3)));
  EXPECT_TRUE(F::conv_transpose1d(x, weight, F::ConvTranspose1dFuncOptions().stride(2).output_padding(1))
                  .equal(F::conv_transpose1d(x, weight, {}, {2}, {0}, {1})));
  EXPECT_TRUE(F::rrelu(x, F::RReLUFuncOptions().lower(0.25).upper(0.25)).allclose(F::leaky_relu(x, 0.25)));
  Tensor out = torch::empty_like(x);
  F::normalize(x, F::NormalizeFuncOptions().p(1).dim(-1).out(out));
  EXPECT_TRUE(out.abs().sum(-1).allclose(torch::ones({4, 6})));
  // As in libtorch: dropout acts unless told otherwise, alpha dropout does not.
  EXPECT_GT(F::dropout(torch::ones(1000), F::DropoutFuncOptions().p(0.5)).eq(0).sum().item<int64_t>(), 300);
  EXPECT_TRUE(F::alpha_dropout(x, F::AlphaDropoutFuncOptions().p(0.5)).equal(x));
  EXPECT_EQ(F::soft_margin_loss(x, x.sign()).dim(), 0);
  EXPECT_TRUE(F::smooth_l1_loss(x, x + 2, torch::kMean, 0.5).allclose(torch::tensor(1.75)));
}

// With options, by name and in the form of torch:: they are one body, which checks its arguments.
TEST(ApiOptions, LossesAreRecords) {
  const Tensor a = torch::randn({4, 3}), b = torch::randn({4, 3}), sign = torch::tensor({1, -1, 1, -1});
  const Tensor cosine = F::cosine_embedding_loss(
      a, b, sign, F::CosineEmbeddingLossFuncOptions().margin(0.2).reduction(torch::kSum));
  EXPECT_TRUE(cosine.equal(torch::cosine_embedding_loss(a, b, sign, 0.2, torch::Reduction::Sum)));
  EXPECT_TRUE(cosine.equal(F::cosine_embedding_loss(a, b, sign, 0.2, "sum")));
  EXPECT_THROW(torch::cosine_embedding_loss(a, b, a), c10::Error);
  EXPECT_TRUE(F::hinge_embedding_loss(a, b.sign()).equal(torch::hinge_embedding_loss(a, b.sign())));
  const Tensor classes = torch::tensor({0, 2, 1, 1});
  const auto squares = F::MultiMarginLossFuncOptions().p(2).reduction(torch::kNone);
  EXPECT_TRUE(F::multi_margin_loss(a, classes, squares)
                  .equal(torch::multi_margin_loss(a, classes, 2, 1, {}, torch::Reduction::None)));
  EXPECT_THROW(torch::multi_margin_loss(a, classes, 3), c10::Error);
  EXPECT_THROW(F::margin_ranking_loss(a, b, sign, F::MarginRankingLossFuncOptions()), c10::Error);
  EXPECT_THROW(torch::cosine_similarity(a, b, 1, -1.0), c10::Error);
  EXPECT_TRUE(torch::pairwise_distance(a, b, 2, 0).allclose((a - b).norm(2, 1), 1e-5, 1e-6));
  EXPECT_TRUE(torch::hann_window(4).allclose(torch::tensor({0.0, 0.5, 1.0, 0.5})));
  EXPECT_TRUE(torch::hann_window(3, false).allclose(torch::tensor({0.0, 1.0, 0.0})));
  EXPECT_EQ(torch::bartlett_window(3, torch::kDouble).scalar_type(), torch::kDouble);
}

TEST(ApiOptions, TargetsWithoutTheLastDimension) {
  const Tensor x = torch::rand({5, 1}, torch::requires_grad()), y = torch::rand({5});
  const Tensor loss = torch::binary_cross_entropy(x, y);
  EXPECT_TRUE(loss.allclose(torch::binary_cross_entropy(x.squeeze(1), y)));
  loss.backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_THROW(torch::binary_cross_entropy(x, torch::rand({5, 5})), torch::Error);
}

TEST(ApiOptions, Embeddings) {
  const Tensor rows = torch::arange(12, torch::kFloat).view({4, 3}),
               indices = torch::tensor({{0, 1}, {3, 3}});
  nn::EmbeddingBag sums = nn::EmbeddingBag::from_pretrained(
      rows, nn::EmbeddingBagFromPretrainedOptions().mode(torch::kSum).padding_idx(3));
  EXPECT_FALSE(sums->weight.requires_grad());
  EXPECT_TRUE(sums(indices).equal(torch::stack({rows[0] + rows[1], torch::zeros(3)})));
  EXPECT_EQ(printed(sums),
            "torch::nn::EmbeddingBag(num_embeddings=4, embedding_dim=3, mode=kSum, padding_idx=3)");
  Tensor bounded = rows.clone();
  F::embedding_bag(indices, bounded, F::EmbeddingBagFuncOptions().max_norm(1.0));
  EXPECT_LT(bounded[3].norm().item<float>(), 1.001f);
  EXPECT_TRUE(bounded[2].equal(rows[2]));
}

TEST(ApiOptions, TripletByDistance) {
  const Tensor a = torch::randn({5, 4}), p = torch::randn({5, 4}), n = torch::randn({5, 4});
  auto squared = [](const Tensor& x, const Tensor& y) { return (x - y).pow(2).sum(-1); };
  nn::TripletMarginWithDistanceLoss loss(
      nn::TripletMarginWithDistanceLossOptions().distance_function(squared).margin(0.5).reduction(
          torch::kSum));
  EXPECT_TRUE(loss(a, p, n).allclose((squared(a, p) - squared(a, n) + 0.5).clamp_min(0).sum()));
  EXPECT_TRUE(F::triplet_margin_with_distance_loss(a, p, n).allclose(F::triplet_margin_loss(a, p, n)));
}

TEST(ApiOptions, ResponsesAcrossChannels) {
  const Tensor x = torch::randn({2, 6, 3, 3});
  EXPECT_TRUE(nn::CrossMapLRN2d(3)(x).allclose(nn::LocalResponseNorm(3)(x)));
  // A window of size 4 reaches one channel to each side; the sum is still divided by 4.
  const Tensor y = nn::CrossMapLRN2d(nn::CrossMapLRN2dOptions(4).alpha(2).beta(1).k(1))(x);
  const Tensor squares = x * x,
               sum = squares.narrow(1, 0, 4) + squares.narrow(1, 1, 4) + squares.narrow(1, 2, 4);
  EXPECT_TRUE(y.narrow(1, 1, 4).allclose(x.narrow(1, 1, 4) / (1 + sum * 2 / 4)));
}

TEST(ApiOptions, ProjectedStates) {
  torch::manual_seed(0);
  nn::LSTM lstm(nn::LSTMOptions(4, 6).num_layers(2).proj_size(3).bidirectional(true));
  const auto [y, state] = lstm(torch::randn({5, 2, 4}));
  EXPECT_EQ(y.sizes(), torch::IntArrayRef({5, 2, 6}));
  EXPECT_EQ(std::get<0>(state).sizes(), torch::IntArrayRef({4, 2, 3}));
  EXPECT_EQ(std::get<1>(state).sizes(), torch::IntArrayRef({4, 2, 6}));
  EXPECT_EQ(lstm->named_parameters()["weight_hr_l1_reverse"].sizes(), torch::IntArrayRef({3, 6}));
  EXPECT_THROW(nn::LSTM(nn::LSTMOptions(4, 6).proj_size(6)), torch::Error);
}

TEST(ApiOptions, Sequences) {
  namespace rnn = torch::nn::utils::rnn;
  const Tensor a = torch::tensor({1., 2., 3.}), b = torch::tensor({4.});
  EXPECT_TRUE(rnn::pad_sequence({a, b}, true, 0, "left").equal(torch::tensor({{1., 2., 3.}, {0., 0., 4.}})));
  EXPECT_THROW(rnn::pad_sequence({a, b}, true, 0, "top"), torch::Error);
  const auto packed = rnn::pack_sequence({a, b}).to(torch::dtype(torch::kInt));
  EXPECT_EQ(packed.data().scalar_type(), torch::kInt);
  EXPECT_EQ(packed.batch_sizes().scalar_type(), torch::kLong);
}

TEST(ApiOptions, ContainersAreChanged) {
  nn::ModuleDict dict;
  dict->insert("a", nn::Linear(1, 2));
  const auto replaced = nn::Linear(3, 4).ptr();
  dict->update(
      torch::OrderedDict<std::string, std::shared_ptr<nn::Module>>{{"a", replaced}, {"b", nn::ReLU().ptr()}});
  EXPECT_EQ((*dict)["a"], replaced);
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"a", "b"}));
  nn::ModuleList list{nn::ReLU(), nn::Tanh()};
  list->insert(1, nn::Linear(1, 1));
  EXPECT_NE(list[1]->as<nn::Linear>(), nullptr);
  nn::ParameterList left(torch::ones(1)), right(torch::zeros(2));
  *left += *right;
  left->extend(std::vector<Tensor>{torch::ones(3)});
  EXPECT_EQ(left->size(), 3u);
  nn::ParameterDict named, other;
  named->insert("w", torch::ones(1));
  other->insert("w", torch::zeros(1));
  named->update(*other);
  EXPECT_EQ(named->get("w").item<float>(), 0);
  other->insert("x", torch::zeros(1));
  EXPECT_THROW(named->update(*other), torch::Error);
  for (auto& p : named->named_parameters()) EXPECT_TRUE(p->equal(*p));
}

struct CountsImpl : nn::Cloneable<CountsImpl> {
  CountsImpl() { reset(); }
  void reset() override { weight = register_parameter("weight", torch::ones(2)); }
  Tensor weight;
  int count = 0;
};
TORCH_MODULE(Counts);
struct HolderImpl : nn::Cloneable<HolderImpl> {
  HolderImpl() { reset(); }
  void reset() override {
    counts = register_module("counts", Counts());
    layers = register_module("layers", nn::Sequential(nn::Linear(2, 2), nn::Dropout(0.5)));
  }
  Counts counts{nullptr};
  nn::Sequential layers{nullptr};
};
TEST(ApiOptions, ClonesKeepWhatSubmodulesHold) {
  HolderImpl original;
  original.counts->count = 5;
  const auto copy = std::dynamic_pointer_cast<HolderImpl>(original.clone());
  EXPECT_EQ(copy->counts->count, 5);
  EXPECT_NE(copy->counts->weight.data_ptr(), original.counts->weight.data_ptr());
  EXPECT_EQ(copy->counts->weight.data_ptr(), copy->named_parameters()["counts.weight"].data_ptr());
  copy->eval();
  const Tensor x = torch::ones({1, 2});
  original.eval();
  EXPECT_TRUE(copy->layers->forward(x).equal(original.layers->forward(x)));
  copy->layers[0]->as<nn::Linear>()->weight.data().zero_();
  EXPECT_FALSE(copy->layers->forward(x).equal(original.layers->forward(x)));
}

TEST(ApiOptions, ParametersArePrinted) {
  EXPECT_EQ(printed(nn::ParameterList(torch::ones({1, 2}))),
            "torch::nn::ParameterList(\n(0): Parameter containing: [Float of size [1, 2]]\n)");
  EXPECT_THROW(nn::ParameterList(torch::ones(1))->at(1), torch::Error);
}

struct StepOptions : torch::optim::OptimizerCloneableOptions<StepOptions> {
  StepOptions(double lr = 0.5) : lr_(lr) {}
  TORCH_ARG(double, lr);
};
struct Step : torch::optim::Optimizer {
  explicit Step(std::vector<Tensor> parameters)
      : Optimizer({torch::optim::OptimizerParamGroup(std::move(parameters))},
                  std::make_unique<StepOptions>()) {}
  Tensor step(LossClosure = nullptr) override {
    torch::NoGradGuard no_grad;
    for (auto& group : param_groups())
      for (Tensor& p : group.params()) p.sub_(p.grad(), group.options().get_lr());
    return {};
  }
};
TEST(ApiOptions, OptimizersOfOnesOwn) {
  const Tensor w = torch::ones(2, torch::requires_grad()), v = torch::ones(1, torch::requires_grad());
  Step optimizer({w});
  optimizer.add_parameters({v});
  (w.sum() + v.sum()).backward();
  torch::optim::StepLR schedule(optimizer, 1, 0.5);
  schedule.step();
  optimizer.step();
  EXPECT_TRUE(w.equal(torch::full({2}, 0.75)));
  EXPECT_TRUE(v.equal(torch::full({1}, 0.75)));  // added to the first group
  EXPECT_EQ(optimizer.param_groups().size(), 1u);
  EXPECT_EQ(optimizer.param_groups()[0].options().to_dict().size(), 1u);
}

}  // namespace
