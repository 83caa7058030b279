// Samplers: which examples come next. All can be saved within an epoch and loaded again.
#pragma once
#include "rushlight/serialize.h"

namespace rushlight::data::samplers {

template <class Batch = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = Batch;
  virtual ~Sampler() = default;
  // From the beginning, and of so many examples.
  virtual void reset(std::optional<size_t> new_size = std::nullopt) = 0;
  virtual std::optional<Batch> next(size_t batch_size) = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};
template <class Batch>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Sampler<Batch>& sampler) {
  sampler.save(archive);
  return archive;
}
template <class Batch>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Sampler<Batch>& sampler) {
  sampler.load(archive);
  return archive;
}

// What a sampler of one's own asks a dataset for, where indices are not what it needs.
struct CustomBatchRequest {
  virtual ~CustomBatchRequest() = default;
  virtual size_t size() const = 0;
};
// A number of examples: what streams are asked for.
struct BatchSize : CustomBatchRequest {
  explicit BatchSize(size_t size) : size_(size) {}
  size_t size() const noexcept override { return size_; }
  operator size_t() const noexcept { return size_; }

 private:
  size_t size_;
};

class SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
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
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  size_t index() const noexcept { return index_; }

 private:
  size_t size_, index_ = 0;
  Tensor order_;
};
// Counts examples up to the length of an epoch, for datasets that are streams.
class StreamSampler : public Sampler<BatchSize> {
 public:
  explicit StreamSampler(size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<BatchSize> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  size_t examples_ = 0, epoch_size_;
};

// One replica's part of the examples, which are as many for each: the first ones come twice where the number
// does not divide, or the last ones not at all.
class DistributedSampler : public Sampler<> {
 public:
  DistributedSampler(size_t size, size_t num_replicas = 1, size_t rank = 0, bool allow_duplicates = true);
  // The epoch decides the order of samplers that shuffle; takes effect with the next reset.
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const { return epoch_; }
  size_t index() const noexcept { return index_; }
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 protected:
  size_t count() const;  // of this replica's examples
  size_t begin() const { return rank_ * count(); }
  // The next positions, at most `batch_size`.
  std::optional<std::vector<size_t>> positions(size_t batch_size);
  size_t size_, replicas_, rank_, epoch_ = 0, index_;

 private:
  bool duplicates_;
};
// In an order that is shuffled anew for each epoch, and alike on all replicas.
class DistributedRandomSampler : public DistributedSampler {
 public:
  DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                           bool allow_duplicates = true);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void load(serialize::InputArchive& archive) override;

 private:
  std::vector<size_t> order_;
};
// Neighbouring examples.
class DistributedSequentialSampler : public DistributedSampler {
 public:
  using DistributedSampler::DistributedSampler;
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
};

}  // namespace rushlight::data::samplers
