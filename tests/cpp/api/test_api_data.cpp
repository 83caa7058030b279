#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

namespace {

using namespace torch::data;

struct Numbers : datasets::Dataset<Numbers, int> {
  int get(size_t index) override { return static_cast<int>(index) + 1; }
  std::optional<size_t> size() const override { return 10; }
};

struct Counter : datasets::StreamDataset<Counter, std::vector<int>> {
  std::vector<int> get_batch(size_t size) override {
    std::vector<int> batch(size);
    for (int& i : batch) i = next++;
    return batch;
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  int next = 0;
};

template <class Sampler>
std::vector<size_t> all_of(Sampler& sampler, size_t batch) {
  std::vector<size_t> all;
  while (const auto next = sampler.next(batch)) all.insert(all.end(), next->begin(), next->end());
  return all;
}

TEST(ApiData, TransformsOfBatches) {
  auto sums = Numbers().map(transforms::Collate<int>(
      [](std::vector<int> batch) { return std::accumulate(batch.begin(), batch.end(), 0); }));
  EXPECT_EQ(sums.get_batch({0, 1, 2}), 6);
  auto texts = Numbers().map(transforms::BatchLambda<std::vector<int>, std::string>(
      [](std::vector<int> batch) { return std::to_string(batch.size()); }));
  EXPECT_EQ(texts.get_batch({3, 4}), "2");
  const transforms::TensorLambda<> doubled([](torch::Tensor x) { return x * 2; });
  auto mapped = datasets::MNIST::BatchType{Example<>(torch::ones(2), torch::ones(1))};
  EXPECT_TRUE(transforms::TensorLambda<>(doubled).apply_batch(mapped)[0].data.equal(torch::full({2}, 2.0)));
}

TEST(ApiData, StreamsAreAskedForNumbersOfExamples) {
  auto loader = make_data_loader(Counter().map(transforms::Lambda<int>([](int i) { return i * 10; })),
                                 samplers::StreamSampler(7), 3);
  std::vector<size_t> sizes;
  std::vector<int> seen;
  for (const auto& batch : *loader)
    sizes.push_back(batch.size()), seen.insert(seen.end(), batch.begin(), batch.end());
  EXPECT_EQ(sizes, (std::vector<size_t>{3, 3, 1}));
  EXPECT_EQ(seen, (std::vector<int>{0, 10, 20, 30, 40, 50, 60}));
}

TEST(ApiData, OptionsAreFilledIn) {
  auto loader = make_data_loader(Numbers(), DataLoaderOptions(4).workers(2));
  EXPECT_EQ(loader->options().batch_size, 4u);
  EXPECT_EQ(loader->options().max_jobs, 4u);
  EXPECT_TRUE(loader->options().enforce_ordering);
  EXPECT_FALSE(loader->options().timeout.has_value());
}

TEST(ApiData, Iterators) {
  auto loader = make_data_loader<samplers::SequentialSampler>(Numbers(), 5);
  auto i = loader->begin(), end = loader->end();
  auto copy = i;
  EXPECT_NE(i, end);
  ++i;
  EXPECT_EQ((*copy)[0], 6);  // copies share what they stand at
  ++copy;
  EXPECT_EQ(i, end);
  EXPECT_THROW(*i, torch::Error);
  EXPECT_THROW(++i, torch::Error);
  EXPECT_NE(loader->begin(), loader->begin());
}

struct Slow : datasets::Dataset<Slow, int> {
  int get(size_t) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return 1;
  }
  std::optional<size_t> size() const override { return 1; }
};

TEST(ApiData, WaitingEndsAfterTheTime) {
  auto loader =
      make_data_loader(Slow(), DataLoaderOptions(1).workers(1).timeout(std::chrono::milliseconds(10)));
  EXPECT_THROW(*loader->begin(), torch::Error);
}

TEST(ApiData, DistributedSamplersShareTheExamples) {
  for (const bool duplicates : {true, false}) {
    std::vector<size_t> in_order, shuffled;
    for (size_t rank = 0; rank < 3; ++rank) {
      samplers::DistributedSequentialSampler sequential(10, 3, rank, duplicates);
      samplers::DistributedRandomSampler random(10, 3, rank, duplicates);
      random.set_epoch(5);
      random.reset();
      for (const size_t i : all_of(sequential, 2)) in_order.push_back(i);
      for (const size_t i : all_of(random, 2)) shuffled.push_back(i);
      EXPECT_EQ(in_order.size(), (rank + 1) * (duplicates ? 4 : 3));
    }
    EXPECT_NE(shuffled, in_order);
    std::sort(in_order.begin(), in_order.end());
    const std::vector<size_t> with = {0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                              without = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    EXPECT_EQ(in_order, duplicates ? with : without);
    std::sort(shuffled.begin(), shuffled.end());
    EXPECT_EQ(std::set<size_t>(shuffled.begin(), shuffled.end()).size(), duplicates ? 10u : 9u);
    if (duplicates) {
      EXPECT_EQ(shuffled, with);
    }
  }
  EXPECT_THROW(samplers::DistributedSequentialSampler(10, 2, 2), torch::Error);
}

template <class Sampler>
void continues_after_loading(Sampler before, Sampler after) {
  before.next(3);
  std::stringstream stream;
  torch::save(before, stream);
  torch::load(after, stream);
  EXPECT_EQ(all_of(after, 4), all_of(before, 4));
}
TEST(ApiData, SamplersAreSaved) {
  continues_after_loading(samplers::SequentialSampler(10), samplers::SequentialSampler(10));
  continues_after_loading(samplers::RandomSampler(10), samplers::RandomSampler(10));
  continues_after_loading(samplers::DistributedSequentialSampler(10, 2, 1),
                          samplers::DistributedSequentialSampler(10, 2, 1));
  samplers::DistributedRandomSampler epoch(10, 2, 1);
  epoch.set_epoch(7);
  epoch.reset();
  continues_after_loading(epoch, samplers::DistributedRandomSampler(10, 2, 1));
  samplers::StreamSampler half(10), rest(10);
  half.next(6);
  std::stringstream stream;
  torch::save(half, stream);
  torch::load(rest, stream);
  EXPECT_EQ(rest.next(10)->size(), 4u);
}

}  // namespace
