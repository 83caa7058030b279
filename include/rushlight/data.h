// Datasets, samplers, transforms, and loaders with worker threads.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "rushlight/nn/options.h"

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

template <class D, class T>
class MapDataset : public BatchDataset<MapDataset<D, T>, typename T::OutputBatchType> {
 public:
  using DatasetType = D;
  MapDataset(D dataset, T transform) : dataset_(std::move(dataset)), transform_(std::move(transform)) {}
  typename T::OutputBatchType get_batch(ArrayRef<size_t> indices) override {
    return transform_.apply_batch(dataset_.get_batch(indices));
  }
  std::optional<size_t> size() const override { return dataset_.size(); }
  const D& dataset() const { return dataset_; }

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

namespace samplers {

template <class Batch = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = Batch;
  virtual ~Sampler() = default;
  virtual void reset(std::optional<size_t> new_size = std::nullopt) = 0;
  virtual std::optional<Batch> next(size_t batch_size) = 0;
};
class SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t index() const noexcept { return index_; }

 private:
  size_t size_, index_ = 0;
};
// A fresh permutation (torch::randperm) for each pass.
class RandomSampler : public Sampler<> {
 public:
  explicit RandomSampler(size_t size, ScalarType = kLong) : size_(size) { reset(); }
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t index() const noexcept { return index_; }

 private:
  size_t size_, index_ = 0;
  Tensor order_;
};
// The part of every `replicas`-th example.
class DistributedSequentialSampler : public Sampler<> {
 public:
  DistributedSequentialSampler(size_t size, size_t replicas = 1, size_t rank = 0)
      : size_(size), replicas_(replicas), rank_(rank), index_(rank) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;

 private:
  size_t size_, replicas_, rank_, index_;
};

}  // namespace samplers

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}
  TORCH_ARG(size_t, batch_size) = 1;
  TORCH_ARG(size_t, workers) = 0;
  TORCH_ARG(std::optional<size_t>, max_jobs) = std::nullopt;
  TORCH_ARG(bool, enforce_ordering) = true;
  TORCH_ARG(bool, drop_last) = false;
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
  using Job = std::function<std::shared_ptr<void>()>;
  Workers(size_t threads, bool ordered);
  ~Workers();
  Workers(const Workers&) = delete;
  void submit(Job job);
  std::shared_ptr<void> take();  // the next result; fails as its job did
  size_t pending() const { return submitted_ - taken_; }
  void drain();  // forgets what is under way

 private:
  struct Result {
    std::shared_ptr<void> value;
    std::exception_ptr error;
  };
  void work();
  bool ordered_, stop_ = false;
  size_t submitted_ = 0, started_ = 0, taken_ = 0;
  std::mutex mutex_;
  std::condition_variable jobs_changed_, results_changed_;
  std::deque<std::pair<size_t, Job>> jobs_;
  std::map<size_t, Result> results_;
  std::vector<std::thread> threads_;
};

// One batch after the other of a data loader that hands them out by `next()`.
template <class Loader>
class BatchIterator {
 public:
  using value_type = typename Loader::BatchType;
  using difference_type = std::ptrdiff_t;
  using reference = value_type&;
  using pointer = value_type*;
  using iterator_category = std::input_iterator_tag;
  BatchIterator() = default;
  explicit BatchIterator(Loader* loader) : loader_(loader) { ++*this; }
  value_type& operator*() { return *batch_; }
  value_type* operator->() { return &*batch_; }
  BatchIterator& operator++() {
    batch_ = loader_->next();
    return *this;
  }
  bool operator==(const BatchIterator& o) const { return batch_.has_value() == o.batch_.has_value(); }

 private:
  Loader* loader_ = nullptr;
  std::optional<value_type> batch_;
};

}  // namespace detail

template <class Dataset, class Sampler>
class StatelessDataLoader {
 public:
  using BatchType = typename Dataset::BatchType;
  using Iterator = detail::BatchIterator<StatelessDataLoader>;

  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : dataset_(std::make_shared<Dataset>(std::move(dataset))),
        sampler_(std::move(sampler)),
        options_(options) {
    if (options_.workers() > 0)
      workers_ = std::make_unique<detail::Workers>(options_.workers(), options_.enforce_ordering());
  }
  Iterator begin() {
    if (workers_) workers_->drain();
    sampler_.reset();
    exhausted_ = false;
    return Iterator(this);
  }
  Iterator end() { return {}; }
  const DataLoaderOptions& options() const noexcept { return options_; }
  void join() {
    if (workers_) workers_->drain();
  }

 private:
  friend Iterator;

  std::optional<std::vector<size_t>> next_indices() {
    if (exhausted_) return std::nullopt;
    auto indices = sampler_.next(options_.batch_size());
    if (!indices || (indices->size() < options_.batch_size() && options_.drop_last())) {
      exhausted_ = true;
      return std::nullopt;
    }
    return indices;
  }
  std::optional<BatchType> next() {
    if (!workers_) {
      auto indices = next_indices();
      if (!indices) return std::nullopt;
      return dataset_->get_batch(*indices);
    }
    const size_t ahead = options_.max_jobs().value_or(2 * options_.workers());
    while (workers_->pending() < ahead) {
      auto indices = next_indices();
      if (!indices) break;
      workers_->submit([dataset = dataset_, list = std::move(*indices)]() -> std::shared_ptr<void> {
        return std::make_shared<BatchType>(dataset->get_batch(list));
      });
    }
    if (workers_->pending() == 0) return std::nullopt;
    return std::move(*std::static_pointer_cast<BatchType>(workers_->take()));
  }
  std::shared_ptr<Dataset> dataset_;
  Sampler sampler_;
  DataLoaderOptions options_;
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
