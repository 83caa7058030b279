// Optimizers, schedulers, data and files.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "core/crc32.h"
#include "io/archive.h"

namespace {

namespace nn = torch::nn;

double trained(torch::optim::Optimizer& optimizer, nn::Linear& fc, int steps) {
  const torch::Tensor x = torch::tensor({{1.0, 2.0}, {3.0, -1.0}, {0.5, 0.5}}), y = x.sum(1, true);
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    auto closure = [&] {
      optimizer.zero_grad();
      torch::Tensor l = torch::mse_loss(fc(x), y);
      l.backward();
      return l;
    };
    loss = optimizer.step(closure).item<double>();
  }
  return loss;
}

template <class O, class Options>
void expect_learns(Options options, double below, int steps = 200) {
  torch::manual_seed(1);
  nn::Linear fc(2, 1);
  O optimizer(fc->parameters(), options);
  EXPECT_LT(trained(optimizer, fc, steps), below);
}

TEST(ApiOptim, Learn) {
  expect_learns<torch::optim::SGD>(torch::optim::SGDOptions(0.02).momentum(0.9), 1e-3);
  expect_learns<torch::optim::SGD>(torch::optim::SGDOptions(0.02).momentum(0.9).nesterov(true), 1e-3);
  expect_learns<torch::optim::Adam>(torch::optim::AdamOptions(0.1).amsgrad(true), 1e-3);
  expect_learns<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1).weight_decay(0), 1e-3);
  expect_learns<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.5), 1e-2);
  expect_learns<torch::optim::RMSprop>(torch::optim::RMSpropOptions(0.02).centered(true).momentum(0.5), 1e-2);
  expect_learns<torch::optim::LBFGS>(torch::optim::LBFGSOptions(1).max_iter(10), 1e-6, 5);
}

// Three steps of the optimizer and of its rule, written out.
template <class O, class Options, class Rule>
void expect_steps(Options options, Rule rule) {
  torch::manual_seed(2);
  torch::Tensor p = torch::randn({5}, torch::kDouble), q = p.clone();
  p.set_requires_grad(true);
  O optimizer({p}, options);
  for (int step = 1; step <= 3; ++step) {
    const torch::Tensor g = torch::randn({5}, torch::kDouble);
    p.mutable_grad() = g;
    optimizer.step();
    rule(q, g + options.weight_decay() * q, step);
    EXPECT_TRUE(p.detach().allclose(q, 1e-9, 1e-12)) << step;
  }
}

TEST(ApiOptim, RulesWrittenOut) {
  const auto adagrad =
      torch::optim::AdagradOptions(0.1).lr_decay(0.2).weight_decay(0.3).initial_accumulator_value(0.5);
  torch::Tensor sum = torch::full({5}, 0.5, torch::kDouble);
  expect_steps<torch::optim::Adagrad>(adagrad, [&](torch::Tensor& p, const torch::Tensor& g, int step) {
    sum += g * g;
    p -= 0.1 / (1 + (step - 1) * 0.2) * g / (sum.sqrt() + adagrad.eps());
  });
  const auto rmsprop = torch::optim::RMSpropOptions(0.1).alpha(0.9).weight_decay(0.2);
  torch::Tensor square = torch::zeros({5}, torch::kDouble);
  const auto average = [](torch::Tensor& of, const torch::Tensor& value) { of = 0.9 * of + 0.1 * value; };
  expect_steps<torch::optim::RMSprop>(rmsprop, [&](torch::Tensor& p, const torch::Tensor& g, int) {
    average(square, g * g);
    p -= 0.1 * g / (square.sqrt() + rmsprop.eps());
  });
  const auto centred = torch::optim::RMSpropOptions(rmsprop).centered(true).momentum(0.5);
  torch::Tensor mean = torch::zeros({5}, torch::kDouble), buffer = mean.clone();
  square.zero_();
  expect_steps<torch::optim::RMSprop>(centred, [&](torch::Tensor& p, const torch::Tensor& g, int) {
    average(square, g * g), average(mean, g);
    buffer = 0.5 * buffer + g / ((square - mean * mean).sqrt() + centred.eps());
    p -= 0.1 * buffer;
  });
}

TEST(ApiOptim, GroupsAndSchedulers) {
  nn::Linear a(2, 2), b(2, 2);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(a->parameters());
  groups.emplace_back(b->parameters(), std::make_unique<torch::optim::SGDOptions>(0.5));
  torch::optim::SGD optimizer(groups, torch::optim::SGDOptions(1.0));
  EXPECT_EQ(optimizer.param_groups()[1].options().get_lr(), 0.5);
  EXPECT_EQ(optimizer.size(), 4u);
  torch::optim::StepLR scheduler(optimizer, 2, 0.1);
  scheduler.step();
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 1.0);
  scheduler.step();
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 0.1);
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[1].options().get_lr(), 0.05);
  torch::optim::ReduceLROnPlateauScheduler plateau(optimizer, torch::optim::ReduceLROnPlateauScheduler::min,
                                                   0.5f, 0);
  plateau.step(1.0f);
  plateau.step(1.0f);
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 0.05);
  EXPECT_THROW(optimizer.add_param_group(a->parameters()), rushlight::Error);
  EXPECT_THROW(torch::optim::SGD(a->parameters(), -1.0), rushlight::Error);
  const auto weight = a->weight * 2;
  EXPECT_THROW(torch::optim::SGD({weight}, 0.1), rushlight::Error);
}

TEST(ApiOptim, StateGoesOnWhereItStopped) {
  torch::manual_seed(3);
  nn::Linear fc(2, 1);
  torch::optim::Adam optimizer(fc->parameters(), 0.1);
  trained(optimizer, fc, 5);
  std::stringstream model, state;
  torch::save(fc, model);
  torch::save(optimizer, state);
  trained(optimizer, fc, 5);
  nn::Linear again(2, 1);
  torch::optim::Adam resumed(again->parameters(), 0.7);
  torch::load(again, model);
  torch::load(resumed, state);
  trained(resumed, again, 5);
  EXPECT_TRUE(torch::equal(fc->weight, again->weight));
}

class File {
 public:
  explicit File(const std::string& name) : path(testing::TempDir() + name) {}
  ~File() { std::remove(path.c_str()); }
  std::string path;
};

TEST(ApiSerialize, TensorsModulesAndLists) {
  File file("api_serialize.pt"), safe("api_serialize.safetensors");
  const torch::Tensor x = torch::randn({3, 4});
  torch::save(x[1], file.path);
  torch::Tensor y;
  torch::load(y, file.path);
  EXPECT_TRUE(torch::equal(x[1], y));
  EXPECT_EQ(y->storage->nbytes(), 16u);  // a slice keeps its own bytes only
  torch::save(std::vector<torch::Tensor>{x, torch::ones(2, torch::kLong), x.to(torch::kBFloat16)}, file.path);
  std::vector<torch::Tensor> list;
  torch::load(list, file.path);
  EXPECT_TRUE(torch::equal(list[0], x));
  EXPECT_EQ(list[2].dtype(), torch::kBFloat16);
  nn::Sequential net(nn::Linear(3, 4), nn::BatchNorm1d(4)), other(nn::Linear(3, 4), nn::BatchNorm1d(4));
  for (const std::string& path : {file.path, safe.path}) {
    torch::save(net, path);
    torch::load(other, path);
    EXPECT_TRUE(torch::equal(net->parameters()[0], other->parameters()[0]));
  }
  nn::Sequential wrong(nn::Linear(3, 5));
  EXPECT_THROW(torch::load(wrong, file.path), rushlight::Error);
  EXPECT_THROW(torch::load(net, file.path + ".missing"), rushlight::Error);
}

TEST(ApiSerialize, DamagedFilesAreErrors) {
  std::stringstream out;
  torch::save(torch::arange(20), out);
  const std::string good = out.str();
  torch::Tensor t;
  for (size_t length = 0; length < good.size(); length += 7) {
    std::istringstream cut(good.substr(0, length));
    EXPECT_THROW(torch::load(t, cut), rushlight::Error) << length;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    std::istringstream in(bad);
    try {
      torch::load(t, in);
    } catch (const rushlight::Error&) {
    }
  }
}

// A million lists, each in the one before, and one that holds itself.
TEST(ApiSerialize, NestedPicklesAreErrors) {
  const std::string deep = std::string(1'000'000, ']') + std::string(999'999, 'a') + ".";
  for (const std::string& pickle : {deep, std::string("]q\0h\0a.", 7)}) {
    rushlight::io::ArchiveWriter writer("top");
    std::string file =
        writer.header("data.pkl", pickle.size(), rushlight::crc32(pickle.data(), pickle.size()));
    file += pickle + writer.end();
    EXPECT_THROW(rushlight::load_value(file.data(), file.size()), rushlight::Error);
  }
}

struct Numbers : torch::data::datasets::Dataset<Numbers> {
  torch::data::Example<> get(size_t i) override {
    if (i == 77) throw std::runtime_error("no 77");
    return {torch::full({2}, static_cast<double>(i)), torch::tensor(static_cast<int64_t>(i))};
  }
  std::optional<size_t> size() const override { return count; }
  size_t count = 10;
};

TEST(ApiData, LoadersWithAndWithoutThreads) {
  for (const size_t workers : {0, 3}) {
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        Numbers().map(torch::data::transforms::Stack<>()),
        torch::data::DataLoaderOptions().batch_size(4).workers(workers));
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<int64_t> sizes;
      int64_t expected = 0;
      for (torch::data::Example<>& batch : *loader) {
        sizes.push_back(batch.target.numel());
        for (int64_t i = 0; i < batch.target.numel(); ++i)
          EXPECT_EQ(batch.target[i].item<int64_t>(), expected++);
      }
      EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
    }
  }
  auto random = torch::data::make_data_loader(Numbers(), torch::data::DataLoaderOptions(3).drop_last(true));
  int64_t sum = 0, count = 0;
  for (auto& batch : *random)
    for (auto& example : batch) sum += example.target.item<int64_t>(), ++count;
  EXPECT_EQ(count, 9);
  EXPECT_LE(sum, 45);
  Numbers many;
  many.count = 100;
  auto failing = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      many, torch::data::DataLoaderOptions(10).workers(2));
  EXPECT_THROW(
      {
        for (auto& batch : *failing) EXPECT_EQ(batch.size(), 10u);
      },
      torch::data::WorkerException);
}

TEST(ApiData, ReadsTheFormatOfMnist) {
  const std::string root = testing::TempDir();
  File images("t10k-images-idx3-ubyte"), labels("t10k-labels-idx1-ubyte");
  std::ofstream(images.path, std::ios::binary) << std::string("\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\2", 16)
                                               << std::string("\0\xff\0\xff\xff\xff\0\0", 8);
  std::ofstream(labels.path, std::ios::binary) << std::string("\0\0\x08\x01\0\0\0\2\7\3", 10);
  torch::data::datasets::MNIST set(root, torch::data::datasets::MNIST::Mode::kTest);
  EXPECT_EQ(*set.size(), 2u);
  EXPECT_EQ(set.get(0).target.item<int64_t>(), 7);
  EXPECT_EQ(set.get(1).data.sum().item<float>(), 2);
  auto normalized = std::move(set).map(torch::data::transforms::Normalize<>(0.5, 0.5));
  const size_t first[] = {0};
  EXPECT_EQ(normalized.get_batch({first, 1})[0].data.min().item<float>(), -1);
  EXPECT_THROW(torch::data::datasets::MNIST(root + "missing"), rushlight::Error);
}

extern "C" int run_c_interface(char* message, size_t size);

TEST(CInterface, ServesPlainC) {
  char message[256] = "";
  EXPECT_EQ(run_c_interface(message, sizeof message), 0) << message;
}

}  // namespace
