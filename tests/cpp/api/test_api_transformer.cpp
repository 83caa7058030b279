// Attention, transformers, adaptive softmax, pooling undone and at random.
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

TEST(ApiAttention, IsSoftmaxOfProducts) {
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(8, 2));
  EXPECT_EQ(attention->named_parameters().keys(),
            (std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}));
  const torch::Tensor x = torch::randn({5, 3, 8}), y = torch::randn({4, 3, 8});
  const auto [out, weights] = attention(x, y, y);
  EXPECT_EQ(out.sizes(), (torch::IntArrayRef{5, 3, 8}));
  EXPECT_EQ(weights.sizes(), (torch::IntArrayRef{3, 5, 4}));
  EXPECT_TRUE(torch::allclose(weights.sum(-1), torch::ones({3, 5})));
  const auto [same, none] = attention(x, y, y, torch::Tensor(), false);
  EXPECT_TRUE(torch::allclose(out, same, 1e-4, 1e-5));
  EXPECT_FALSE(none.defined());
}

TEST(ApiAttention, MasksWhatIsPadding) {
  nn::MultiheadAttention attention(
      nn::MultiheadAttentionOptions(8, 2).kdim(6).vdim(7).add_bias_kv(true).add_zero_attn(true));
  const torch::Tensor x = torch::randn({5, 2, 8});
  torch::Tensor key = torch::randn({4, 2, 6}), value = torch::randn({4, 2, 7});
  const torch::Tensor padding = torch::tensor({0, 0, 1, 1, 0, 0, 0, 1}).view({2, 4}).to(torch::kBool);
  const auto [out, weights] = attention(x, key, value, padding, true, torch::Tensor(), false);
  EXPECT_EQ(weights.sizes(), (torch::IntArrayRef{2, 2, 5, 6}));
  EXPECT_EQ(weights.index({0, 0, 0, 2}).item<float>(), 0.f);
  key[3][0] += 100;
  const auto [again, unseen] = attention(x, key, value, padding, false);
  EXPECT_TRUE(torch::allclose(out, again, 1e-4, 1e-5));
  EXPECT_THROW(nn::MultiheadAttention(nn::MultiheadAttentionOptions(8, 3)), rushlight::Error);
}

TEST(ApiTransformer, TranslatesAndLearns) {
  torch::manual_seed(1);
  nn::Transformer model(nn::TransformerOptions(16, 2, 2, 2).dim_feedforward(32).dropout(0.0));
  const torch::Tensor source = torch::randn({6, 3, 16}), target = torch::randn({5, 3, 16});
  const torch::Tensor mask = nn::TransformerImpl::generate_square_subsequent_mask(5);
  const torch::Tensor out = model(source, target, torch::Tensor(), mask);
  EXPECT_EQ(out.sizes(), target.sizes());
  // Later targets do not change earlier results.
  torch::Tensor other = target.clone();
  other[4] += 1;
  const torch::Tensor changed = model(source, other, torch::Tensor(), mask);
  EXPECT_TRUE(torch::allclose(out.narrow(0, 0, 4), changed.narrow(0, 0, 4), 1e-4, 1e-5));
  EXPECT_FALSE(torch::allclose(out[4], changed[4], 1e-4, 1e-5));
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-3));
  double first = 0, last = 0;
  for (int step = 0; step < 15; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = F::mse_loss(model(source, target, torch::Tensor(), mask), target);
    loss.backward();
    optimizer.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_LT(last, first);
}

TEST(ApiTransformer, NamesItsPartsAsPythonDoes) {
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(4));
  nn::TransformerEncoder encoder(
      nn::TransformerEncoderOptions(layer, 2).norm(nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({8})))));
  const auto names = encoder->named_parameters().keys();
  EXPECT_EQ(names.size(), 26u);
  EXPECT_EQ(names.front(), "layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(names.back(), "norm.bias");
  // Layers begin equal, and are not shared.
  const auto parameters = encoder->named_parameters();
  EXPECT_TRUE(torch::equal(parameters["layers.0.linear1.weight"], parameters["layers.1.linear1.weight"]));
  EXPECT_FALSE(parameters["layers.0.linear1.weight"].is_same(parameters["layers.1.linear1.weight"]));
  nn::TransformerDecoder decoder(nn::TransformerDecoderLayer(8, 2), 1);
  EXPECT_EQ(decoder(torch::randn({3, 2, 8}), torch::randn({4, 2, 8})).sizes(), (torch::IntArrayRef{3, 2, 8}));
  auto doubled =
      nn::TransformerEncoderLayerOptions(8, 2).activation([](const torch::Tensor& x) { return x * 2; });
  EXPECT_EQ(nn::TransformerEncoderLayer(doubled)(torch::randn({3, 2, 8})).sizes(),
            (torch::IntArrayRef{3, 2, 8}));
}

TEST(ApiAdaptiveSoftmax, IsALogSoftmax) {
  nn::AdaptiveLogSoftmaxWithLoss model(nn::AdaptiveLogSoftmaxWithLossOptions(8, 10, {4, 7}).div_value(2.));
  const torch::Tensor x = torch::randn({6, 8}), target = torch::tensor({0, 3, 4, 6, 9, 2});
  const torch::Tensor all = model->log_prob(x);
  EXPECT_TRUE(torch::allclose(all.exp().sum(1), torch::ones(6)));
  const auto result = model->forward(x, target);
  EXPECT_TRUE(torch::allclose(result.output, all.gather(1, target.unsqueeze(1)).squeeze(1)));
  EXPECT_NEAR(result.loss, -result.output.mean().item<double>(), 1e-6);
  EXPECT_TRUE(torch::equal(model->predict(x), all.argmax(1)));
  EXPECT_THROW(model->forward(x, target + 1), rushlight::Error);
  EXPECT_THROW(nn::AdaptiveLogSoftmaxWithLoss(8, 10, std::vector<int64_t>{4, 4}), rushlight::Error);
}

TEST(ApiPooling, UndoesMaxPooling) {
  const torch::Tensor x = torch::rand({2, 3, 8, 6});
  nn::MaxPool2d pool(nn::MaxPool2dOptions(2));
  const auto [values, indices] = pool->forward_with_indices(x);
  const torch::Tensor back = nn::MaxUnpool2d(2)(values, indices);
  EXPECT_EQ(back.sizes(), x.sizes());
  EXPECT_TRUE(torch::equal(pool(back), values));
  EXPECT_EQ((back != 0).sum().item<int64_t>(), values.numel());
  EXPECT_EQ(nn::MaxUnpool2d(2)(values, indices, std::vector<int64_t>{9, 7}).size(2), 9);
  EXPECT_THROW(nn::MaxUnpool2d(2)(values, indices, std::vector<int64_t>{20, 7}), rushlight::Error);
  const auto [line, at] = nn::MaxPool1d(2)->forward_with_indices(x.flatten(2));
  EXPECT_EQ(nn::MaxUnpool1d(2)(line, at).sizes(), x.flatten(2).sizes());
}

TEST(ApiPooling, TakesWindowsAtRandom) {
  const torch::Tensor x = torch::rand({2, 3, 9, 9});
  nn::FractionalMaxPool2d pool(nn::FractionalMaxPool2dOptions(2).output_size(4));
  const auto [values, indices] = pool->forward_with_indices(x);
  EXPECT_EQ(values.sizes(), (torch::IntArrayRef{2, 3, 4, 4}));
  EXPECT_TRUE(torch::equal(x.flatten(2).gather(2, indices.flatten(2)), values.flatten(2)));
  nn::FractionalMaxPool3d volume(nn::FractionalMaxPool3dOptions(2).output_ratio(0.5));
  EXPECT_EQ(volume(torch::rand({1, 2, 6, 6, 6})).sizes(), (torch::IntArrayRef{1, 2, 3, 3, 3}));
  EXPECT_THROW(nn::FractionalMaxPool2d(2), rushlight::Error);
}

// Rosenbrock's valley: steps of the learning rate alone leave it.
TEST(ApiLbfgs, SearchesAlongTheLine) {
  torch::Tensor x = torch::tensor({-1.5, 2.0}, torch::dtype(torch::kFloat64)).requires_grad_();
  torch::optim::LBFGS optimizer({x},
                                torch::optim::LBFGSOptions(1).max_iter(80).line_search_fn("strong_wolfe"));
  int evaluations = 0;
  auto closure = [&] {
    ++evaluations;
    optimizer.zero_grad();
    const torch::Tensor loss = (1 - x[0]).pow(2) + 100 * (x[1] - x[0].pow(2)).pow(2);
    loss.backward();
    return loss;
  };
  optimizer.step(closure);
  EXPECT_NEAR(x[0].item<double>(), 1, 1e-5);
  EXPECT_NEAR(x[1].item<double>(), 1, 1e-5);
  EXPECT_GT(evaluations, 20);
  EXPECT_THROW(torch::optim::LBFGS({x}, torch::optim::LBFGSOptions(1).line_search_fn("armijo")),
               rushlight::Error);
}

}  // namespace
