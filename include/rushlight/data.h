// Datasets, samplers, transforms, and loaders with worker threads.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "rushlight/nn/options.h"
#include "rushlight/samplers.h"

namespace rushlight::data {

template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}
  Data data;
  Target target;
};
struct TensorExample {
  TensorExample() = default;
  TensorExample(Tensor data) : data(std::move(data)) {}
  operator const Tensor&() const { return data; }
  Tensor data;
};

namespace transforms {

// Turns a batch into another one.
template <class In, class Out>
class BatchTransform {
 public:
  using InputBatchType = In;
  using OutputBatchType = Out;
  virtual ~BatchTransform() = default;
  virtual Out apply_batch(In batch) = 0;
};
template <class In, class Out = In>
class BatchLambda : public BatchTransform<In, Out> {
 public:
  explicit BatchLambda(std::function<Out(In)> function) : function_(std::move(function)) {}
  Out apply_batch(In batch) override { return function_(std::move(batch)); }

 private:
  std::function<Out(In)> function_;
};
// A list of examples into one.
template <class T, class Batch = std::vector<T>>
using Collation = BatchTransform<Batch, T>;
template <class T, class Batch = std::vector<T>>
using Collate = BatchLambda<Batch, T>;
// Turns each example into another one.
template <class In, class Out>
class Transform : public BatchTransform<std::vector<In>, std::vector<Out>> {
 public:
  virtual Out apply(In input) = 0;
  std::vector<Out> apply_batch(std::vector<In> batch) override {
    std::vector<Out> out;
    out.reserve(batch.size());
    for (In& example : batch) out.push_back(apply(std::move(example)));
    return out;
  }
};
template <class In, class Out = In>
class Lambda : public Transform<In, Out> {
 public:
  explicit Lambda(std::function<Out(In)> function) : function_(std::move(function)) {}
  Out apply(In input) override { return function_(std::move(input)); }

 private:
  std::function<Out(In)> function_;
};
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  virtual Tensor operator()(Tensor input) = 0;
  Example<Tensor, Target> apply(Example<Tensor, Target> e) override {
    e.data = (*this)(std::move(e.data));
    return e;
  }
};
template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  explicit TensorLambda(std::function<Tensor(Tensor)> function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  std::function<Tensor(Tensor)> function_;
};
// (x - mean) / stddev, per channel where there are several.
template <class Target = Tensor>
struct Normalize : TensorTransform<Target> {
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : mean(tensor(mean.vec(), kFloat32).unsqueeze(1).unsqueeze(2)),
        stddev(tensor(stddev.vec(), kFloat32).unsqueeze(1).unsqueeze(2)) {}
  Tensor operator()(Tensor input) override { return input.sub(mean).div(stddev); }
  Tensor mean, stddev;
};
// A list of examples into one example of tensors with one more dimension.
template <class T = Example<>>
struct Stack;
template <>
struct Stack<Example<>> : BatchTransform<std::vector<Example<>>, Example<>> {
  Example<> apply_batch(std::vector<Example<>> examples) override {
    std::vector<Tensor> data, targets;
    for (Example<>& e : examples) data.push_back(std::move(e.data)), targets.push_back(std::move(e.target));
    return {stack(data), stack(targets)};
  }
};
template <>
struct Stack<TensorExample> : BatchTransform<std::vector<TensorExample>, TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> examples) override {
    std::vector<Tensor> data;
    for (TensorExample& e : examples) data.push_back(std::move(e.data));
    return stack(data);
  }
};

}  // namespace transforms

namespace datasets {

template <class Self, class Batch, class Request = ArrayRef<size_t>>
class BatchDataset;
template <class D, class T>
class MapDataset;

// A function from a list of indices to a batch.
template <class Self, class Batch, class Request>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = Request;
  static constexpr bool is_stateful = false;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(Request request) = 0;
  virtual std::optional<size_t> size() const = 0;
  template <class T>
  MapDataset<Self, T> map(T transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class T>
  MapDataset<Self, T> map(T transform) && {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};
// A dataset whose examples have numbers: get(i).
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (const size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

// A dataset whose examples come one after the other: get_batch(how many).
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

// A stateful dataset's batches are optional, and so are those made of them.
template <class D, class T>
using MappedBatch = std::conditional_t<D::is_stateful, std::optional<typename T::OutputBatchType>,
                                       typename T::OutputBatchType>;

template <class D, class T>
class MapDataset : public BatchDataset<MapDataset<D, T>, MappedBatch<D, T>, typename D::BatchRequestType> {
 public:
  using DatasetType = D;
  using TransformType = T;
  static constexpr bool is_stateful = D::is_stateful;
  MapDataset(D dataset, T transform) : dataset_(std::move(dataset)), transform_(std::move(transform)) {}
  MappedBatch<D, T> get_batch(typename D::BatchRequestType request) override {
    if constexpr (is_stateful) {
      auto batch = dataset_.get_batch(std::move(request));
      if (!batch) return std::nullopt;
      return transform_.apply_batch(std::move(*batch));
    } else {
      return transform_.apply_batch(dataset_.get_batch(std::move(request)));
    }
  }
  std::optional<size_t> size() const override { return dataset_.size(); }
  void reset() {
    if constexpr (is_stateful) dataset_.reset();
  }
  const D& dataset() const { return dataset_; }
  const T& transform() const { return transform_; }

 private:
  D dataset_;
  T transform_;
};

class TensorDataset : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(const std::vector<Tensor>& tensors) : tensor(stack(tensors)) {}
  explicit TensorDataset(Tensor t) : tensor(std::move(t)) {}
  TensorExample get(size_t index) override { return tensor[static_cast<int64_t>(index)]; }
  std::optional<size_t> size() const override { return static_cast<size_t>(tensor.size(0)); }
  Tensor tensor;
};

// Images and labels in the format of the MNIST files, unpacked: train-images-idx3-ubyte and so on below
// `root`.
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override { return static_cast<size_t>(images_.size(0)); }
  bool is_train() const noexcept { return is_train_; }
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  bool is_train_;
  Tensor images_, targets_;
};

}  // namespace datasets

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}
  TORCH_ARG(size_t, batch_size) = 1;
  TORCH_ARG(size_t, workers) = 0;
  TORCH_ARG(std::optional<size_t>, max_jobs) = std::nullopt;
  TORCH_ARG(std::optional<std::chrono::milliseconds>, timeout) = std::nullopt;  // of waiting for a batch
  TORCH_ARG(bool, enforce_ordering) = true;
  TORCH_ARG(bool, drop_last) = false;
};

// The options of a loader, with what was left out.
struct FullDataLoaderOptions {
  explicit FullDataLoaderOptions(const DataLoaderOptions& o)
      : batch_size(o.batch_size()),
        workers(o.workers()),
        max_jobs(o.max_jobs().value_or(2 * workers)),
        timeout(o.timeout()),
        enforce_ordering(o.enforce_ordering()),
        drop_last(o.drop_last()) {}
  size_t batch_size, workers, max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering, drop_last;
};

// What went wrong in a worker thread.
struct WorkerException : std::exception {
  explicit WorkerException(std::exception_ptr original);
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::exception_ptr original_exception;
};

namespace detail {

// Jobs by number: threads take them in order, and results are handed out in order (or as they come).
class Workers {
 public:
  using Job = std::function<std::shared_ptr<void>(size_t thread)>;
  Workers(size_t threads, bool ordered);
  ~Workers();
  Workers(const Workers&) = delete;
  void submit(Job job);
  // The next result; fails as its job did, or after the time.
  std::shared_ptr<void> take(std::optional<std::chrono::milliseconds> timeout = std::nullopt);
  size_t pending() const { return submitted_ - taken_; }
  void drain();  // forgets what is under way

 private:
  struct Result {
    std::shared_ptr<void> value;
    std::exception_ptr error;
  };
  void work(size_t thread);
  bool ordered_, stop_ = false;
  size_t submitted_ = 0, taken_ = 0;
  std::mutex mutex_;
  std::condition_variable jobs_changed_, results_changed_;
  std::deque<std::pair<size_t, Job>> jobs_;
  std::map<size_t, Result> results_;
  std::vector<std::thread> threads_;
};

// One batch after the other of a data loader that hands them out by `next()`. The first is fetched when it is
// asked for.
template <class Loader>
class BatchIterator {
 public:
  using value_type = typename Loader::BatchType;
  using difference_type = std::ptrdiff_t;
  using reference = value_type&;
  using pointer = value_type*;
  using iterator_category = std::input_iterator_tag;
  BatchIterator() = default;
  explicit BatchIterator(Loader* loader) : state_(std::make_shared<State>(loader)) {}
  value_type& operator*() const {
    RL_CHECK(state_, "Dereferencing the DataLoader's past-the-end iterator is not allowed");
    RL_CHECK(!is_end(), "Attempted to dereference iterator that was past the end");
    return *state_->batch;
  }
  value_type* operator->() const { return &**this; }
  BatchIterator& operator++() {
    RL_CHECK(state_, "Incrementing the DataLoader's past-the-end iterator is not allowed");
    RL_CHECK(!is_end(), "Attempted to increment iterator past the end");
    state_->batch = state_->loader->next();
    return *this;
  }
  bool operator==(const BatchIterator& o) const {
    return is_end() || o.is_end() ? is_end() == o.is_end() : state_ == o.state_;
  }

 private:
  struct State {
    explicit State(Loader* l) : loader(l) {}
    Loader* loader;
    std::optional<value_type> batch;
    bool started = false;
  };
  bool is_end() const {
    if (!state_) return true;
    if (!std::exchange(state_->started, true)) state_->batch = state_->loader->next();
    return !state_->batch.has_value();
  }
  std::shared_ptr<State> state_;  // which copies share
};

}  // namespace detail

template <class Dataset, class Sampler>
class StatelessDataLoader {
 public:
  using BatchType = typename Dataset::BatchType;
  using Iterator = detail::BatchIterator<StatelessDataLoader>;

  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : sampler_(std::move(sampler)), options_(options) {
    // Each thread has a copy of the dataset, which may read files or draw numbers without a lock.
    if constexpr (std::is_copy_constructible_v<Dataset>)
      for (size_t i = 0; i < options_.workers; ++i) datasets_.push_back(std::make_unique<Dataset>(dataset));
    if (datasets_.empty()) {
      RL_CHECK(options_.workers <= 1, "a dataset that cannot be copied serves one worker thread at most");
      datasets_.push_back(std::make_unique<Dataset>(std::move(dataset)));
    }
    if (options_.workers > 0)
      workers_ = std::make_unique<detail::Workers>(options_.workers, options_.enforce_ordering);
  }
  StatelessDataLoader(const StatelessDataLoader&) = delete;  // jobs under way know its address
  Iterator begin() {
    if (workers_) workers_->drain();
    sampler_.reset();
    exhausted_ = false;
    read_ahead();
    return Iterator(this);
  }
  Iterator end() { return {}; }
  const FullDataLoaderOptions& options() const noexcept { return options_; }
  void join() {
    if (workers_) workers_->drain();
  }

 private:
  friend Iterator;
  using Request = typename Sampler::BatchRequestType;

  std::optional<Request> next_request() {
    if (exhausted_) return std::nullopt;
    auto request = sampler_.next(options_.batch_size);
    if (!request || (request->size() < options_.batch_size && options_.drop_last)) {
      exhausted_ = true;
      return std::nullopt;
    }
    return request;
  }
  void read_ahead() {
    while (workers_ && workers_->pending() < options_.max_jobs) {
      auto request = next_request();
      if (!request) break;
      workers_->submit([this, wanted = std::move(*request)](size_t thread) -> std::shared_ptr<void> {
        return std::make_shared<BatchType>(datasets_[thread]->get_batch(wanted));
      });
    }
  }
  std::optional<BatchType> next() {
    if (!workers_) {
      auto request = next_request();
      if (!request) return std::nullopt;
      return datasets_[0]->get_batch(*request);
    }
    read_ahead();
    if (workers_->pending() == 0) return std::nullopt;
    return std::move(*std::static_pointer_cast<BatchType>(workers_->take(options_.timeout)));
  }
  std::vector<std::unique_ptr<Dataset>> datasets_;  // one for each thread
  Sampler sampler_;
  FullDataLoaderOptions options_;
  std::unique_ptr<detail::Workers> workers_;  // joined before the dataset goes
  bool exhausted_ = false;
};

template <class Dataset, class Sampler>
  requires requires(Sampler& sampler) { sampler.next(size_t{1}); }
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset, Sampler sampler,
                                                                        DataLoaderOptions options = {}) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(std::move(dataset), std::move(sampler),
                                                                 options);
}
template <class Sampler = samplers::RandomSampler, class Dataset>
  requires(std::is_constructible_v<Sampler, size_t> && !Dataset::is_stateful)
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset,
                                                                        DataLoaderOptions options = {}) {
  const std::optional<size_t> size = dataset.size();
  RL_CHECK(size.has_value(), "Expected the dataset to be sized in order to construct the Sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), options);
}

}  // namespace rushlight::data
