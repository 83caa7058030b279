// What programs for libtorch rely on besides the main road.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/parallel/data_parallel.h>
#include <torch/torch.h>

#include <atomic>
#include <sstream>

namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;

TEST(ApiDetails, ElementTypesOfTensor) {
  EXPECT_EQ(torch::tensor(1).dtype(), torch::kLong);
  EXPECT_EQ(torch::tensor({1.5f, 2.5f}).dtype(), torch::kFloat);
  EXPECT_EQ(torch::tensor(std::vector<double>{1, 2}).dtype(), torch::kFloat);
  EXPECT_EQ(torch::tensor(std::vector<uint8_t>{1, 255}).dtype(), torch::kByte);
  EXPECT_EQ(torch::tensor(std::vector<int16_t>{}).dtype(), torch::kShort);
  EXPECT_EQ(torch::tensor(torch::Half(2.f)).dtype(), torch::kHalf);
  EXPECT_EQ(torch::tensor(c10::complex<double>(1, 2)).dtype(), torch::kComplexDouble);
  EXPECT_EQ(torch::tensor(std::vector<bool>{true, false}).dtype(), torch::kBool);
  EXPECT_TRUE(torch::tensor(std::vector<uint32_t>{1, 4000000000u}).equal(torch::tensor({1, 4000000000L})));
  EXPECT_TRUE(torch::tensor({{{1, 2}}, {{3, 4}}}).equal(torch::arange(1, 5).view({2, 1, 2})));
  // at::tensor keeps the type of C++, and makes one dimension of a number.
  EXPECT_EQ(at::tensor({1, 2}).dtype(), at::kInt);
  EXPECT_EQ(at::tensor({1.5, 2.5}).dtype(), at::kDouble);
  EXPECT_EQ(at::tensor(std::vector<float>{1}, at::kDouble).dtype(), at::kDouble);
  EXPECT_EQ(at::tensor(2.5).sizes(), at::IntArrayRef({1}));

  EXPECT_THROW(torch::tensor(300, torch::kByte), c10::Error);
  EXPECT_THROW(torch::tensor({c10::complex<float>(1, 2)}, torch::kFloat), c10::Error);
  try {
    torch::tensor({{1, 2}, {3}});
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_STREQ(e.what_without_backtrace(),
                 "Expected all sub-lists to have sizes: 2 (e.g. {1, 2}), but got sub-list {3} with sizes: 1");
  }
}

// A lone number is a dimension there, never `unbiased`.
TEST(ApiDetails, VarianceOverADimension) {
  const Tensor x = torch::randn({4, 3});
  EXPECT_EQ(x.var(0).sizes(), torch::IntArrayRef({3}));
  EXPECT_EQ(torch::std(x, 1).sizes(), torch::IntArrayRef({4}));
  EXPECT_EQ(std::get<1>(torch::var_mean(x, int64_t{0})).sizes(), torch::IntArrayRef({3}));
  EXPECT_EQ(x.std(false).dim(), 0);
}

TEST(ApiDetails, Storage) {
  const Tensor x = torch::arange(6, torch::kInt), y = x.slice(0, 2);
  EXPECT_EQ(y.storage().nbytes(), 24u);
  EXPECT_TRUE(y.storage().is_alias_of(x.storage()));
  static_cast<int32_t*>(y.storage().mutable_data())[2] = 50;
  EXPECT_EQ(y[0].item<int>(), 50);
}

struct Listener : c10::WarningHandler {
  void process(const c10::Warning& warning) override { heard.push_back(warning.msg()); }
  std::vector<std::string> heard;
};
TEST(ApiDetails, WarningHandlers) {
  Listener listener;
  c10::WarningUtils::set_warning_handler(&listener);
  TORCH_WARN("one ", 1);
  torch::var(torch::ones(1));  // degrees of freedom <= 0
  c10::WarningUtils::set_warning_handler(nullptr);
  ASSERT_EQ(listener.heard.size(), 2u);
  EXPECT_EQ(listener.heard[0], "one 1");
}

struct Scaled : nn::Module {
  Tensor forward(Tensor x, double scale = 2, int64_t shift = 0) { return x * scale + shift; }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, nn::AnyValue(5.0)}, {2, nn::AnyValue(int64_t{1})})
};
TEST(ApiDetails, AnyModules) {
  nn::AnyModule any(Scaled{});
  EXPECT_EQ(any.forward(torch::ones(1)).item<float>(), 6);
  EXPECT_EQ(any.forward(torch::ones(1), 3.0).item<float>(), 4);
  EXPECT_THROW(any.forward(), c10::Error);
  EXPECT_THROW(any.forward(torch::ones(1), 3), c10::Error);  // an int is no double
  EXPECT_THROW(any.ptr<nn::LinearImpl>(), c10::Error);
  EXPECT_EQ(nn::AnyModule(nn::Linear(3, 4)).get<nn::Linear>()->options.out_features(), 4);
  EXPECT_THROW(nn::AnyModule().ptr(), c10::Error);
}

struct SumOfProducts : torch::autograd::Function<SumOfProducts> {
  static Tensor forward(torch::autograd::AutogradContext* ctx, at::TensorList list, double scale) {
    ctx->save_for_backward(list.vec());
    ctx->saved_data["scale"] = scale;
    return list[0] * list[1] * scale;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor g = grads[0] * ctx->saved_data["scale"].toDouble();
    return {g * saved[1], g * saved[0], Tensor()};
  }
};
TEST(ApiDetails, FunctionsOfTensorLists) {
  const Tensor x = torch::tensor({2.0}, torch::requires_grad()),
               y = torch::tensor({3.0}, torch::requires_grad());
  const std::vector<Tensor> both = {x, y};
  SumOfProducts::apply(at::TensorList(both), 10.0).backward();
  EXPECT_EQ(x.grad().item<double>(), 30);
  EXPECT_EQ(y.grad().item<double>(), 20);
  EXPECT_THROW(torch::autograd::grad({x * 2}, {}), c10::Error);
  EXPECT_THROW((x * 2).backward({}, false, false, std::vector<Tensor>()), c10::Error);
  Listener listener;
  c10::WarningUtils::set_warning_handler(&listener);
  const Tensor z = x * 2;
  EXPECT_FALSE(z.grad().defined());
  c10::WarningUtils::set_warning_handler(nullptr);
  EXPECT_EQ(listener.heard.size(), 1u);
}

TEST(ApiDetails, AttentionAsAFunction) {
  nn::MultiheadAttention m(nn::MultiheadAttentionOptions(8, 2).add_zero_attn(true));
  const Tensor x = torch::randn({5, 3, 8});
  const auto options = F::MultiheadAttentionForwardFuncOptions(
      8, 2, m->in_proj_weight, m->in_proj_bias, {}, {}, true, 0.0, m->out_proj->weight, m->out_proj->bias);
  const auto [y, weights] = F::multi_head_attention_forward(x, x, x, options);
  EXPECT_TRUE(y.equal(std::get<0>(m(x, x, x))));
  EXPECT_EQ(weights.sizes(), torch::IntArrayRef({3, 5, 6}));
  // Keys and values that are projected already: [batch * heads, source, head_dim].
  auto fixed = [&](int64_t part) {
    const Tensor rows =
        F::linear(x, m->in_proj_weight.chunk(3)[part], m->in_proj_bias.chunk(3)[part]);  // [5, 3, 8]
    return rows.view({5, 6, 4}).transpose(0, 1).contiguous();
  };
  const auto [same, _] = F::multi_head_attention_forward(
      x, x, x, F::MultiheadAttentionForwardFuncOptions(options).static_k(fixed(1)).static_v(fixed(2)));
  EXPECT_TRUE(same.allclose(y, 1e-5, 1e-6));
  // A mask of bytes is one of bools.
  const Tensor mask = torch::ones({5, 5}).triu(1).to(torch::kByte);
  EXPECT_TRUE(std::get<0>(m(x, x, x, Tensor(), true, mask))
                  .equal(std::get<0>(m(x, x, x, Tensor(), true, mask.to(torch::kBool)))));
}

TEST(ApiDetails, CellsOfOneExample) {
  nn::LSTMCell lstm(3, 4);
  nn::GRUCell gru(3, 4);
  const Tensor x = torch::randn(3), h = torch::randn(4), c = torch::randn(4);
  const auto [h1, c1] = lstm(x, std::make_tuple(h, c));
  const auto [h2, c2] = lstm(x.unsqueeze(0), std::make_tuple(h.unsqueeze(0), c.unsqueeze(0)));
  EXPECT_TRUE(h1.equal(h2[0]) && c1.equal(c2[0]));
  EXPECT_TRUE(gru(x).equal(gru(x.unsqueeze(0))[0]));
  EXPECT_THROW(gru(x, h.unsqueeze(0)), c10::Error);
  EXPECT_THROW(nn::RNN(3, 0), c10::Error);
}

TEST(ApiDetails, DataParallel) {
  nn::Linear layer(3, 2);
  const Tensor x = torch::randn({4, 3});
  const std::vector<torch::Device> one = {torch::kCPU}, two = {torch::kCPU, torch::kCPU};
  EXPECT_TRUE(nn::parallel::data_parallel(layer, x, one).equal(layer(x)));
  EXPECT_THROW(nn::parallel::data_parallel(layer, x, two), c10::Error);
}

TEST(ApiDetails, ErrorsOfOptions) {
  EXPECT_THROW(nn::Conv1d(nn::Conv1dOptions(2, 2, 3).stride(2).padding(torch::kSame)), c10::Error);
  EXPECT_THROW(nn::Hardtanh(nn::HardtanhOptions().min_val(1).max_val(1)), c10::Error);
  EXPECT_EQ(F::hardtanh(torch::ones(1), F::HardtanhFuncOptions().min_val(0).max_val(0)).item<float>(), 0);
  EXPECT_THROW(torch::ones(1).to(torch::TensorOptions().requires_grad(true)), c10::Error);
  std::ostringstream shown;
  shown << nn::Upsample(
               nn::UpsampleOptions().scale_factor(std::vector<double>{0.5, 2}).mode(torch::kBilinear))
        << nn::TripletMarginLoss();
  EXPECT_EQ(shown.str(),
            "torch::nn::Upsample(scale_factor=[0.5, 2], mode=kBilinear)"
            "torch::nn::TripletMarginLoss(margin=1, p=2, eps=1e-06, swap=false)");
}

// --- loaders
namespace data = torch::data;

// Not to be called by two threads at once; each thread has a copy.
struct Counting : data::datasets::Dataset<Counting, int> {
  Counting() = default;
  Counting(const Counting&) { ++copies; }
  Counting(Counting&&) {}
  int get(size_t index) override {
    EXPECT_FALSE(busy.exchange(true));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    busy = false;
    return static_cast<int>(index);
  }
  std::optional<size_t> size() const override { return 24; }
  std::atomic<bool> busy{false};
  static inline int copies = 0;
};
TEST(ApiDetails, EachWorkerHasItsDataset) {
  Counting::copies = 0;
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      Counting(), data::DataLoaderOptions().batch_size(2).workers(4));
  EXPECT_EQ(Counting::copies, 4);
  for (int epoch = 0; epoch < 2; ++epoch) {
    int next = 0;
    for (const std::vector<int>& batch : *loader)
      for (const int i : batch) EXPECT_EQ(i, next++);
    EXPECT_EQ(next, 24);
  }
}

struct Failing : data::datasets::Dataset<Failing, int> {
  int get(size_t) override { throw std::invalid_argument("badness"); }
  std::optional<size_t> size() const override { return 10; }
};
TEST(ApiDetails, IteratorsOfLoaders) {
  auto loader = data::make_data_loader(Failing(), data::DataLoaderOptions().workers(2));
  auto i = loader->begin();  // nothing is fetched yet
  try {
    (void)*i;
    FAIL();
  } catch (const data::WorkerException& e) {
    EXPECT_THROW(std::rethrow_exception(e.original_exception), std::invalid_argument);
  }
  EXPECT_THROW(*loader->end(), c10::Error);
  auto end = loader->end();
  EXPECT_THROW(++end, c10::Error);
}

struct Countdown : data::datasets::StatefulDataset<Countdown, std::vector<int>, size_t> {
  std::optional<std::vector<int>> get_batch(size_t n) override {
    if (left == 0) return std::nullopt;
    return std::vector<int>(n, left--);
  }
  void reset() override { left = 3; }
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("left", c10::IValue(left));
  }
  void load(torch::serialize::InputArchive& archive) override {
    c10::IValue v;
    archive.read("left", v);
    left = static_cast<int>(v.toInt());
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  int left = 0;
};
TEST(ApiDetails, MapsOfStatefulDatasets) {
  auto loader = data::make_data_loader(
      Countdown().map(data::transforms::Lambda<int, float>([](int i) { return i + 0.5f; })),
      data::DataLoaderOptions(2));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<float> seen;
    for (const std::vector<float>& batch : *loader) seen.insert(seen.end(), batch.begin(), batch.end());
    EXPECT_EQ(seen, (std::vector<float>{3.5, 3.5, 2.5, 2.5, 1.5, 1.5}));
  }
  Countdown one, other;
  one.left = 2;
  std::stringstream file;
  torch::save(one, file);
  torch::load(other, file);
  EXPECT_EQ(other.left, 2);
}

}  // namespace
