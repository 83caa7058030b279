// Datasets that are read in chunks: files too large to be indexed, each of which holds some examples.
#pragma once
#include <algorithm>
#include <random>

#include "rushlight/data.h"
#include "rushlight/serialize.h"

namespace rushlight::data {

namespace datasets {

// A dataset that decides itself what comes next, and ends with an empty optional.
template <class Self, class Batch = std::vector<Example<>>, class Request = size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, Request> {
 public:
  static constexpr bool is_stateful = true;
  virtual void reset() = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

template <class Self, class Batch, class Request>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const StatefulDataset<Self, Batch, Request>& dataset) {
  dataset.save(archive);
  return archive;
}
template <class Self, class Batch, class Request>
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    StatefulDataset<Self, Batch, Request>& dataset) {
  dataset.load(archive);
  return archive;
}

// Reads chunk by chunk. Several threads call read_chunk, each for another chunk.
template <class ExampleType_, class ChunkType_ = std::vector<ExampleType_>>
class ChunkDataReader {
 public:
  using ChunkType = ChunkType_;
  using ExampleType = ExampleType_;
  using BatchType = ChunkType_;
  virtual ~ChunkDataReader() = default;
  virtual ChunkType read_chunk(size_t chunk_index) = 0;
  virtual size_t chunk_count() = 0;
  virtual void reset() = 0;
};

struct ChunkDatasetOptions {
  ChunkDatasetOptions() = delete;
  ChunkDatasetOptions(size_t preloader_count, size_t batch_size, size_t cache_size = 2048,
                      size_t cross_chunk_shuffle_count = 1)
      : preloader_count_(preloader_count),
        batch_size_(batch_size),
        cache_size_(cache_size),
        cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
    RL_CHECK(preloader_count > 0, "Preloader count is 0. At least one preloader needs to be specified.");
    RL_CHECK(batch_size > 0, "Batch size is 0. A positive batch size needs to be specified.");
    RL_CHECK(cache_size > 0, "Cache size is 0. A positive cache size needs to be specified.");
    RL_CHECK(cache_size >= batch_size,
             "Cache size is less than batch size. Cache needs to be large enough to "
             "hold at least one batch.");
    RL_CHECK(cross_chunk_shuffle_count > 0, "cross_chunk_shuffle_count needs to be greater than 0.");
  }
  TORCH_ARG(size_t, preloader_count);  // threads that read chunks ahead
  TORCH_ARG(size_t, batch_size);
  TORCH_ARG(size_t, cache_size);  // examples that wait at most; one chunk more may be under way
  TORCH_ARG(size_t, cross_chunk_shuffle_count);  // chunks whose examples are mixed
};

// Batches of examples from chunks, in the order of a sampler of chunks and one of the examples in each.
template <class ChunkReader, class ChunkSampler = samplers::RandomSampler,
          class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>,
                                                  typename ChunkReader::BatchType, size_t> {
 public:
  using UnwrappedBatchType = typename ChunkReader::BatchType;
  using BatchType = std::optional<UnwrappedBatchType>;
  using BatchRequestType = size_t;
  using ChunkSamplerType = ChunkSampler;
  using ExampleSamplerType = ExampleSampler;

  ChunkDataset(ChunkReader reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler,
               ChunkDatasetOptions options,
               std::function<void(UnwrappedBatchType&)> preprocessing_policy = {})
      : reader_(std::move(reader)),
        chunk_sampler_(std::move(chunk_sampler)),
        example_sampler_(std::move(example_sampler)),
        options_(options),
        prepare_(std::move(preprocessing_policy)) {}
  ~ChunkDataset() override { workers_.reset(); }

  // The next examples, fewer at the end. One thread at a time may ask.
  BatchType get_batch(size_t batch_size) override {
    RL_CHECK(workers_, "Dataset needs to call reset() before calling get_batch().");
    RL_CHECK(batch_size == options_.batch_size(),
             "The requested batch size does not match with the initialized batch size.\n The requested batch "
             "size is ",
             batch_size, ", while the dataset is created with batch size equal to ", options_.batch_size());
    const std::lock_guard lock(mutex_);
    while (waiting_.size() < batch_size && take_chunks()) {
    }
    const size_t count = std::min(batch_size, waiting_.size());
    if (count == 0) return std::nullopt;
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
    UnwrappedBatchType batch(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    read_ahead();
    return batch;
  }
  BatchType get_batch() { return get_batch(options_.batch_size()); }

  // Begins again with the first chunk.
  void reset() override {
    const std::lock_guard lock(mutex_);
    workers_.reset();  // what was under way is awaited and forgotten
    waiting_.clear();
    reader_.reset();
    if (!std::exchange(loaded_, false)) chunk_sampler_.reset(reader_.chunk_count());
    exhausted_ = false;
    workers_ = std::make_unique<detail::Workers>(options_.preloader_count(), true);
    read_ahead();
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  ChunkSamplerType& chunk_sampler() { return chunk_sampler_; }

  // Where the sampler of chunks stands is what can be kept; samplers that can are asked.
  void save(serialize::OutputArchive& archive) const override {
    if constexpr (requires { chunk_sampler_.save(archive); }) chunk_sampler_.save(archive);
  }
  void load(serialize::InputArchive& archive) override {
    if constexpr (requires { chunk_sampler_.load(archive); }) chunk_sampler_.load(archive), loaded_ = true;
  }

 private:
  void read_ahead() {
    while (!exhausted_ && workers_->pending() < options_.preloader_count() &&
           waiting_.size() < options_.cache_size()) {
      auto chunks = chunk_sampler_.next(options_.cross_chunk_shuffle_count());
      if (!chunks || chunks->empty()) {
        exhausted_ = true;
        return;
      }
      workers_->submit(
          [this, list = std::move(*chunks)](size_t) -> std::shared_ptr<void> { return read(list); });
    }
  }
  std::shared_ptr<void> read(const std::vector<size_t>& chunks) {
    auto examples = std::make_shared<UnwrappedBatchType>();
    for (const size_t chunk : chunks) {
      UnwrappedBatchType part = reader_.read_chunk(chunk);
      std::move(part.begin(), part.end(), std::back_inserter(*examples));
    }
    if (prepare_) prepare_(*examples);
    return examples;
  }
  // Examples of the next chunks join those that wait; whether there were any chunks.
  bool take_chunks() {
    read_ahead();
    if (workers_->pending() == 0) return false;
    const auto examples = std::static_pointer_cast<UnwrappedBatchType>(workers_->take());
    example_sampler_.reset(examples->size());
    while (const auto places = example_sampler_.next(std::max<size_t>(examples->size(), 1))) {
      if (places->empty()) break;
      for (const size_t place : *places) waiting_.push_back(std::move((*examples)[place]));
    }
    read_ahead();
    return true;
  }

  ChunkReader reader_;
  ChunkSampler chunk_sampler_;
  ExampleSampler example_sampler_;
  ChunkDatasetOptions options_;
  std::function<void(UnwrappedBatchType&)> prepare_;
  std::mutex mutex_;
  std::deque<typename UnwrappedBatchType::value_type> waiting_;
  bool exhausted_ = false, loaded_ = false;   // loaded: the next epoch begins where the archive says
  std::unique_ptr<detail::Workers> workers_;  // joined before what they read from goes
};

// A dataset that loaders and the program share.
template <class D>
class SharedBatchDataset
    : public BatchDataset<SharedBatchDataset<D>, typename D::BatchType, typename D::BatchRequestType> {
 public:
  using BatchType = typename D::BatchType;
  using BatchRequestType = typename D::BatchRequestType;
  static constexpr bool is_stateful = D::is_stateful;
  SharedBatchDataset(std::shared_ptr<D> dataset) : dataset_(std::move(dataset)) {}
  BatchType get_batch(BatchRequestType request) override { return dataset_->get_batch(std::move(request)); }
  std::optional<size_t> size() const override { return dataset_->size(); }
  D& operator*() { return *dataset_; }
  D* operator->() { return dataset_.get(); }
  void reset() { dataset_->reset(); }

 private:
  std::shared_ptr<D> dataset_;
};
template <class D, class... Args>
SharedBatchDataset<D> make_shared_dataset(Args&&... args) {
  return std::make_shared<D>(std::forward<Args>(args)...);
}

}  // namespace datasets

// Hands out what a stateful dataset gives, until it ends.
template <class Dataset>
class StatefulDataLoader {
 public:
  using BatchType = typename Dataset::BatchType::value_type;
  using Iterator = detail::BatchIterator<StatefulDataLoader>;

  StatefulDataLoader(Dataset dataset, DataLoaderOptions options)
      : dataset_(std::make_unique<Dataset>(std::move(dataset))), options_(options) {}
  Iterator begin() {
    dataset_->reset();
    return Iterator(this);
  }
  Iterator end() { return {}; }
  const FullDataLoaderOptions& options() const noexcept { return options_; }
  void join() {}

 private:
  friend Iterator;

  std::optional<BatchType> next() { return dataset_->get_batch(options_.batch_size); }
  std::unique_ptr<Dataset> dataset_;
  FullDataLoaderOptions options_;
};

template <class Dataset>
  requires(Dataset::is_stateful)
std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(Dataset dataset,
                                                              DataLoaderOptions options = {}) {
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), options);
}

}  // namespace rushlight::data
