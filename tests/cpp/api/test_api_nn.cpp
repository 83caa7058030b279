#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct NetImpl : nn::Cloneable<NetImpl> {
  explicit NetImpl(int64_t hidden = 8) : hidden(hidden) { reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(4, hidden));
    norm = register_module("norm", nn::BatchNorm1d(hidden));
    second = register_module("second", nn::Linear(nn::LinearOptions(hidden, 2).bias(false)));
    scale = register_parameter("scale", torch::ones(1));
  }
  torch::Tensor forward(torch::Tensor x) { return second(torch::relu(norm(first(x)))) * scale; }
  int64_t hidden;
  nn::Linear first{nullptr}, second{nullptr};
  nn::BatchNorm1d norm{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(Net);

TEST(ApiModule, NamesItsParts) {
  Net net(8);
  const auto parameters = net->named_parameters();
  EXPECT_EQ(parameters.keys(), (std::vector<std::string>{"scale", "first.weight", "first.bias", "norm.weight",
                                                         "norm.bias", "second.weight"}));
  EXPECT_EQ(net->named_buffers().size(), 3u);
  EXPECT_EQ(net->modules().size(), 4u);
  EXPECT_EQ(net->named_modules("net").keys()[1], "net.first");
  EXPECT_TRUE(parameters["first.weight"].requires_grad());
  int visited = 0;
  net->apply([&](nn::Module& m) { visited += m.as<nn::LinearImpl>() != nullptr; });
  EXPECT_EQ(visited, 2);
  EXPECT_THROW(net->register_module("a.b", nn::Linear(1, 1)), rushlight::Error);
  EXPECT_THROW(net->register_parameter("scale", torch::ones(1)), rushlight::Error);
  EXPECT_THROW(nn::Linear{nullptr}->forward(torch::ones(1)), rushlight::Error);
}

TEST(ApiModule, ChangesStateAsAWhole) {
  Net net;
  net->eval();
  EXPECT_FALSE(net->norm->is_training());
  net->train();
  EXPECT_TRUE(net->norm->is_training());
  net->to(torch::kFloat64);
  EXPECT_EQ(net->forward(torch::ones({3, 4}, torch::kFloat64)).dtype(), torch::kFloat64);
  EXPECT_EQ(net->norm->num_batches_tracked.dtype(), torch::kInt64);
  net->forward(torch::ones({3, 4}, torch::kFloat64)).sum().backward();
  EXPECT_TRUE(net->scale.grad().defined());
  net->zero_grad();
  EXPECT_FALSE(net->scale.grad().defined());
}

TEST(ApiModule, ClonesDeeply) {
  Net net;
  auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone());
  ASSERT_NE(copy, nullptr);
  const torch::Tensor x = torch::randn({5, 4});
  net->eval(), copy->eval();
  EXPECT_TRUE(torch::allclose(net->forward(x), copy->forward(x)));
  {
    torch::NoGradGuard no_grad;
    copy->scale.fill_(3);
    copy->first->weight.zero_();
  }
  EXPECT_EQ(net->scale.item<float>(), 1);
  EXPECT_GT(net->first->weight.abs().sum().item<float>(), 0);
  struct Plain : nn::Module {};
  EXPECT_THROW(Plain().clone(), rushlight::Error);
}

TEST(ApiModule, PrintsItself) {
  std::ostringstream out;
  out << nn::Sequential(nn::Linear(3, 4), nn::Dropout(0.25),
                        nn::Conv2d(nn::Conv2dOptions(1, 2, {3, 5}).padding(1)));
  EXPECT_EQ(out.str(),
            "torch::nn::Sequential(\n"
            "  (0): torch::nn::Linear(in_features=3, out_features=4, bias=true)\n"
            "  (1): torch::nn::Dropout(p=0.25, inplace=false)\n"
            "  (2): torch::nn::Conv2d(1, 2, kernel_size=[3, 5], stride=[1, 1], padding=[1, 1])\n"
            ")");
}

TEST(ApiModule, Containers) {
  nn::Sequential seq({{"fc", nn::Linear(3, 4)}, {"act", nn::Functional(torch::relu)}});
  EXPECT_EQ(seq->forward(torch::ones({2, 3})).sizes(), torch::IntArrayRef({2, 4}));
  EXPECT_EQ(seq->named_parameters().keys()[0], "fc.weight");
  EXPECT_EQ(seq->at<nn::LinearImpl>(0).options.out_features(), 4);
  seq->push_back(nn::Functional(torch::log_softmax, 1, torch::nullopt));
  EXPECT_NEAR(seq->forward(torch::ones({2, 3})).exp().sum().item<float>(), 2, 1e-5);
  auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(seq->clone());
  EXPECT_TRUE(torch::equal(copy->forward(torch::ones({2, 3})), seq->forward(torch::ones({2, 3}))));
  EXPECT_FALSE(copy->at<nn::LinearImpl>(0).weight.is_same(seq->at<nn::LinearImpl>(0).weight));
  EXPECT_THROW(nn::Sequential()->forward(torch::ones(1)), rushlight::Error);
  EXPECT_THROW(seq->forward<int>(torch::ones({2, 3})), rushlight::Error);

  nn::ModuleList list(nn::Linear(1, 2), nn::ReLU());
  list->push_back(nn::Linear(2, 3));
  EXPECT_EQ(list->size(), 3u);
  EXPECT_EQ(list->at<nn::LinearImpl>(2).options.in_features(), 2);
  nn::ModuleDict dict;
  dict->insert("a", nn::Linear(1, 2));
  EXPECT_TRUE(dict->contains("a"));
  EXPECT_EQ(dict->named_parameters().keys()[0], "a.weight");

  nn::AnyModule any(nn::Bilinear(2, 3, 4));
  EXPECT_EQ(any.forward(torch::ones({5, 2}), torch::ones({5, 3})).sizes(), torch::IntArrayRef({5, 4}));
  EXPECT_THROW(any.forward(torch::ones({5, 2})), rushlight::Error);
  EXPECT_THROW(any.forward<int>(torch::ones({5, 2}), torch::ones({5, 3})), rushlight::Error);
}

TEST(ApiModule, Layers) {
  const torch::Tensor image = torch::randn({2, 3, 8, 8});
  EXPECT_EQ(nn::Conv2d(nn::Conv2dOptions(3, 6, 3).stride(2).padding(1).groups(3))(image).sizes(),
            torch::IntArrayRef({2, 6, 4, 4}));
  EXPECT_EQ(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(torch::kSame))(image).size(3), 8);
  EXPECT_EQ(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1).padding_mode(torch::kReflect))(image).size(3),
            8);
  EXPECT_EQ(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(3, 2, 4).stride(2).padding(1))(image).size(2), 16);
  EXPECT_EQ(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2))(image).size(2), 3);
  EXPECT_EQ(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({2, 3}))(image).sizes(),
            torch::IntArrayRef({2, 3, 2, 3}));
  EXPECT_NEAR(nn::InstanceNorm2d(3)(image).mean().item<float>(), 0, 1e-4);
  EXPECT_NEAR(nn::GroupNorm(3, 3)(image).var().item<float>(), 1, 2e-2);
  EXPECT_EQ(nn::LayerNorm(std::vector<int64_t>{8})(image).sizes(), image.sizes());
  EXPECT_EQ(nn::Upsample(
                nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kBilinear))(image)
                .size(3),
            16);
  EXPECT_EQ(nn::PixelShuffle(nn::PixelShuffleOptions(2))(torch::ones({1, 8, 2, 2})).sizes(),
            torch::IntArrayRef({1, 2, 4, 4}));
  EXPECT_EQ(nn::ReflectionPad2d(1)(image).size(2), 10);
  EXPECT_EQ(nn::Embedding(10, 4)(torch::tensor({1, 9})).sizes(), torch::IntArrayRef({2, 4}));
  EXPECT_EQ(nn::EmbeddingBag(10, 4)(torch::tensor({{1, 9}, {0, 3}})).sizes(), torch::IntArrayRef({2, 4}));
  nn::Dropout dropout(0.5);
  dropout->eval();
  EXPECT_TRUE(torch::equal(dropout(image), image));
  EXPECT_THROW(nn::Dropout(1.5), rushlight::Error);
  EXPECT_THROW(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).groups(2)), rushlight::Error);
}

TEST(ApiModule, Recurrent) {
  nn::LSTM lstm(nn::LSTMOptions(3, 5).num_layers(2).bidirectional(true));
  const auto [y, state] = lstm(torch::randn({7, 2, 3}));
  EXPECT_EQ(y.sizes(), torch::IntArrayRef({7, 2, 10}));
  EXPECT_EQ(std::get<1>(state).sizes(), torch::IntArrayRef({4, 2, 5}));
  nn::GRU gru(nn::GRUOptions(3, 5).batch_first(true));
  const torch::Tensor x = torch::randn({2, 4, 3});
  const auto packed = nn::utils::rnn::pack_padded_sequence(x, torch::tensor({2, 4}), true, false);
  const auto [out, hidden] = gru->forward_with_packed_input(packed);
  const auto [padded, lengths] = nn::utils::rnn::pad_packed_sequence(out, true);
  EXPECT_TRUE(torch::equal(lengths, torch::tensor({2, 4})));
  EXPECT_TRUE(torch::allclose(padded[1], std::get<0>(gru(x))[1], 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(hidden[0][0], padded[0][1], 1e-5, 1e-6));
  nn::LSTMCell cell(3, 5);
  EXPECT_EQ(std::get<0>(cell(torch::randn({2, 3}))).sizes(), torch::IntArrayRef({2, 5}));
  EXPECT_EQ(nn::RNN(nn::RNNOptions(3, 5).nonlinearity(torch::kReLU))->all_weights().size(), 4u);
}

TEST(ApiModule, AttentionAgreesWithTheFusedOperator) {
  nn::MultiheadAttention attention(8, 2);
  const torch::Tensor x = torch::randn({5, 3, 8});
  const auto [y, weights] = attention(x, x, x);
  EXPECT_NEAR(weights.sum().item<float>(), 15, 1e-4);
  const auto projected = F::linear(x, attention->in_proj_weight, attention->in_proj_bias).chunk(3, -1);
  auto heads = [](const torch::Tensor& t) { return t.view({5, 3, 2, 4}).permute({1, 2, 0, 3}); };
  const torch::Tensor fused =
      F::scaled_dot_product_attention(heads(projected[0]), heads(projected[1]), heads(projected[2]))
          .permute({2, 0, 1, 3})
          .reshape({5, 3, 8});
  EXPECT_TRUE(torch::allclose(y, F::linear(fused, attention->out_proj->weight, attention->out_proj->bias),
                              1e-4, 1e-5));
}

TEST(ApiFunctional, LossesAndOptions) {
  const torch::Tensor x = torch::randn({4, 3}), target = torch::tensor({0, 2, 1, 1});
  const torch::Tensor loss = F::cross_entropy(x, target);
  EXPECT_TRUE(torch::allclose(loss, F::nll_loss(F::log_softmax(x, 1), target)));
  EXPECT_TRUE(torch::allclose(
      nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().reduction(torch::kSum))(x, target), loss * 4));
  EXPECT_EQ(F::mse_loss(x, x, F::MSELossFuncOptions(torch::kNone)).sizes(), x.sizes());
  EXPECT_TRUE(torch::equal(F::relu(x, F::ReLUFuncOptions().inplace(false)), x.clamp_min(0)));
  EXPECT_TRUE(
      torch::allclose(F::normalize(x, F::NormalizeFuncOptions().p(2).dim(1)).norm(2, 1), torch::ones(4)));
  EXPECT_NEAR(nn::TripletMarginLoss()(x, x, x).item<float>(), 1, 1e-4);
  EXPECT_THROW(F::mse_loss(x, x, F::MSELossFuncOptions("other")), rushlight::Error);
  EXPECT_EQ(
      F::interpolate(torch::ones({1, 1, 2, 2}), F::InterpolateFuncOptions().size(std::vector<int64_t>{4, 4}))
          .size(2),
      4);
  EXPECT_EQ(F::pad(x, F::PadFuncOptions({1, 2}).value(5)).sizes(), torch::IntArrayRef({4, 6}));
}

TEST(ApiInit, Fills) {
  torch::Tensor w = torch::empty({20, 30});
  nn::init::orthogonal_(w);
  EXPECT_TRUE(torch::allclose(w.mm(w.t()), torch::eye(20), 1e-4, 1e-5));
  nn::init::constant_(w, 3);
  EXPECT_EQ(w.sum().item<float>(), 1800);
  nn::init::xavier_uniform_(w);
  EXPECT_LE(w.abs().max().item<double>(), std::sqrt(6.0 / 50));
  nn::init::trunc_normal_(w, 0, 1, -0.5, 0.5);
  EXPECT_LE(w.abs().max().item<double>(), 0.5);
  EXPECT_THROW(nn::init::kaiming_normal_(torch::empty(3)), rushlight::Error);
}

TEST(ApiUtils, GradientsAndVectors) {
  nn::Linear fc(3, 2);
  fc(torch::ones({1, 3})).sum().backward();
  const double norm = nn::utils::clip_grad_norm_(fc->parameters(), 0.5);
  EXPECT_GT(norm, 0.5);
  EXPECT_LT(nn::utils::clip_grad_norm_(fc->parameters(), 1.0), 0.51);
  const torch::Tensor flat = nn::utils::parameters_to_vector(fc->parameters());
  EXPECT_EQ(flat.numel(), 8);
  nn::utils::vector_to_parameters(torch::arange(8, torch::kFloat), fc->parameters());
  EXPECT_EQ(fc->bias[1].item<float>(), 7);
}

}  // namespace
