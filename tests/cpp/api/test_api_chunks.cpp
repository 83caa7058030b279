// Datasets in chunks, and what programs leave out when they make loaders and call losses.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>
#include <sstream>

using namespace torch::data;

namespace {

// Chunk i has 10 + i numbers from 100 i on.
struct Numbers : datasets::ChunkDataReader<int> {
  explicit Numbers(size_t damaged = 99) : damaged(damaged) {}
  std::vector<int> read_chunk(size_t i) override {
    if (i == damaged) throw std::runtime_error("chunk is damaged");
    std::vector<int> chunk(10 + i);
    std::iota(chunk.begin(), chunk.end(), static_cast<int>(100 * i));
    return chunk;
  }
  size_t chunk_count() override { return 5; }
  void reset() override {}
  size_t damaged;
};

template <class Sampler>
auto numbers(datasets::ChunkDatasetOptions options, Numbers reader = Numbers()) {
  using Set = datasets::ChunkDataset<Numbers, Sampler, Sampler>;
  return datasets::make_shared_dataset<Set>(reader, Sampler(0), Sampler(0), options);
}

TEST(ChunkDataset, GivesEachExampleOnceInEachPass) {
  auto loader = make_data_loader(numbers<samplers::RandomSampler>({2, 8, 16, 2}), DataLoaderOptions(8));
  std::vector<std::vector<int>> passes(2);
  for (std::vector<int>& pass : passes) {
    size_t batches = 0;
    for (auto& batch : *loader) {
      ++batches;
      pass.insert(pass.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(batches, 8u);
    EXPECT_EQ(std::set<int>(pass.begin(), pass.end()).size(), 60u);
    EXPECT_EQ(pass.size(), 60u);
  }
  EXPECT_NE(passes[0], passes[1]);
}

TEST(ChunkDataset, KeepsTheOrderOfItsSamplers) {
  auto dataset = numbers<samplers::SequentialSampler>({3, 7, 7});
  auto loader = make_data_loader(dataset, DataLoaderOptions(7));
  std::vector<int> found;
  for (auto& batch : *loader) found.insert(found.end(), batch.begin(), batch.end());
  EXPECT_EQ(found.size(), 60u);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  EXPECT_FALSE(dataset.size().has_value());
}

TEST(ChunkDataset, ExamplesArePreparedAndErrorsArrive) {
  using Set = datasets::ChunkDataset<Numbers, samplers::SequentialSampler, samplers::SequentialSampler>;
  Set dataset(Numbers(), samplers::SequentialSampler(0), samplers::SequentialSampler(0), {1, 4, 8},
              [](std::vector<int>& chunk) { std::reverse(chunk.begin(), chunk.end()); });
  EXPECT_THROW(dataset.get_batch(), torch::Error);
  dataset.reset();
  EXPECT_EQ(*dataset.get_batch(), (std::vector<int>{9, 8, 7, 6}));
  EXPECT_THROW(dataset.get_batch(5), torch::Error);
  EXPECT_THROW(datasets::ChunkDatasetOptions(1, 8, 4), torch::Error);

  auto loader =
      make_data_loader(numbers<samplers::SequentialSampler>({2, 8, 8}, Numbers(2)), DataLoaderOptions(8));
  auto all = [&] {
    for (auto& batch : *loader) (void)batch;
  };
  EXPECT_THROW(all(), std::exception);
}

// An epoch that was left goes on with the chunk where it stood; the next one begins with the first.
TEST(ChunkDataset, GoesOnWithinAnEpoch) {
  using Set = datasets::ChunkDataset<Numbers, samplers::SequentialSampler, samplers::SequentialSampler>;
  samplers::SequentialSampler sampler(5);
  sampler.next(2);
  std::stringstream file;
  torch::save(sampler, file);
  auto dataset = datasets::make_shared_dataset<Set>(Numbers(), sampler, samplers::SequentialSampler(0),
                                                    datasets::ChunkDatasetOptions(1, 4, 8));
  torch::load(*dataset, file);
  auto loader = make_data_loader(dataset, DataLoaderOptions(4));
  EXPECT_EQ(loader->begin()->at(0), 200);
  EXPECT_EQ(loader->begin()->at(0), 0);
}

TEST(DataLoader, TakesTheSizeOfABatchAlone) {
  const int size = 4;
  auto stacked = datasets::TensorDataset(torch::arange(6)).map(transforms::Stack<TensorExample>());
  std::vector<int64_t> sizes;
  auto loader = make_data_loader<samplers::SequentialSampler>(std::move(stacked), size);
  for (auto& batch : *loader) sizes.push_back(batch.data.size(0));
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 2}));
}

TEST(Losses, TakeTheirDefaults) {
  const auto x = torch::tensor({0.0f, 3.0f}), y = torch::zeros(2), p = torch::tensor({0.5f, 0.5f});
  EXPECT_FLOAT_EQ(torch::smooth_l1_loss(x, y).item<float>(), 1.25f);
  EXPECT_FLOAT_EQ(torch::huber_loss(x, y, at::Reduction::Sum).item<float>(), 2.5f);
  EXPECT_NEAR(torch::kl_div(p.log(), p).item<float>(), 0.0f, 1e-6);
  EXPECT_FLOAT_EQ(torch::kl_div(y, p, torch::Reduction::Sum, true).item<float>(), std::exp(0.5f));
}

struct Doubled : torch::autograd::Function<Doubled> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, torch::Tensor x) { return x * 2; }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               torch::autograd::tensor_list grads) {
    return {grads[0] * 2};
  }
};

TEST(Function, KnowsListsByBothNames) {
  const auto x = torch::ones(2, torch::requires_grad());
  Doubled::apply(x).sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::full({2}, 2.0)));
}

}  // namespace
