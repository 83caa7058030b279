#include "rushlight/samplers.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace rushlight::data::samplers {

using serialize::InputArchive, serialize::OutputArchive;

static void write(OutputArchive& archive, const char* key, size_t number) {
  archive.write(key, tensor(static_cast<int64_t>(number), kLong), /*is_buffer=*/true);
}
static size_t read(InputArchive& archive, const char* key) {
  Tensor number;
  archive.read(key, number, /*is_buffer=*/true);
  return static_cast<size_t>(number.item<int64_t>());
}

void SequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}
std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch_size) {
  if (index_ >= size_) return std::nullopt;
  std::vector<size_t> batch(std::min(batch_size, size_ - index_));
  for (size_t& i : batch) i = index_++;
  return batch;
}
void SequentialSampler::save(OutputArchive& archive) const { write(archive, "index", index_); }
void SequentialSampler::load(InputArchive& archive) { index_ = read(archive, "index"); }

void RandomSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  order_ = randperm(static_cast<int64_t>(size_), TensorOptions(kLong));
  index_ = 0;
}
std::optional<std::vector<size_t>> RandomSampler::next(size_t batch_size) {
  if (index_ >= size_) return std::nullopt;
  std::vector<size_t> batch(std::min(batch_size, size_ - index_));
  const int64_t* order = order_.data_ptr<int64_t>();
  for (size_t& i : batch) i = static_cast<size_t>(order[index_++]);
  return batch;
}
void RandomSampler::save(OutputArchive& archive) const {
  write(archive, "index", index_);
  archive.write("indices", order_, /*is_buffer=*/true);
}
void RandomSampler::load(InputArchive& archive) {
  index_ = read(archive, "index");
  Tensor order;
  archive.read("indices", order, /*is_buffer=*/true);
  order_ = order.to(kLong).contiguous();
  size_ = static_cast<size_t>(order_.numel());
}

void StreamSampler::reset(std::optional<size_t> new_size) {
  epoch_size_ = new_size.value_or(epoch_size_);
  examples_ = 0;
}
std::optional<BatchSize> StreamSampler::next(size_t batch_size) {
  if (examples_ >= epoch_size_) return std::nullopt;
  const BatchSize batch(std::min(batch_size, epoch_size_ - examples_));
  examples_ += batch.size();
  return batch;
}
void StreamSampler::save(OutputArchive& archive) const {
  write(archive, "examples_retrieved_so_far", examples_);
}
void StreamSampler::load(InputArchive& archive) { examples_ = read(archive, "examples_retrieved_so_far"); }

DistributedSampler::DistributedSampler(size_t size, size_t num_replicas, size_t rank, bool allow_duplicates)
    : size_(size), replicas_(num_replicas), rank_(rank), duplicates_(allow_duplicates) {
  RL_CHECK(num_replicas > 0 && rank < num_replicas,
           "DistributedSampler: expected a rank below the number of ", "replicas, but got rank ", rank,
           " of ", num_replicas);
  index_ = begin();
}
size_t DistributedSampler::count() const {
  return duplicates_ ? (size_ + replicas_ - 1) / replicas_ : size_ / replicas_;
}
std::optional<std::vector<size_t>> DistributedSampler::positions(size_t batch_size) {
  const size_t end = begin() + count();
  if (index_ >= end) return std::nullopt;
  std::vector<size_t> batch(std::min(batch_size, end - index_));
  for (size_t& i : batch) i = index_++;
  return batch;
}
void DistributedSampler::save(OutputArchive& archive) const {
  write(archive, "sample_index_", index_);
  write(archive, "epoch_", epoch_);
}
void DistributedSampler::load(InputArchive& archive) {
  epoch_ = read(archive, "epoch_");
  index_ = read(archive, "sample_index_");
}

DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank,
                                                   bool allow_duplicates)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
  DistributedRandomSampler::reset();
}
void DistributedRandomSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  order_.resize(replicas_ == 1 ? size_ : count() * replicas_);
  std::iota(order_.begin(), order_.end(), size_t{0});
  for (size_t& i : order_) i %= std::max<size_t>(size_, 1);
  std::mt19937 random(static_cast<uint32_t>(epoch_));
  std::shuffle(order_.begin(), order_.end(), random);
  index_ = begin();
}
std::optional<std::vector<size_t>> DistributedRandomSampler::next(size_t batch_size) {
  auto batch = positions(batch_size);
  if (batch)
    for (size_t& i : *batch) i = order_[i];
  return batch;
}
void DistributedRandomSampler::load(InputArchive& archive) {
  DistributedSampler::load(archive);
  const size_t index = index_;
  reset();
  index_ = index;
}

void DistributedSequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = begin();
}
std::optional<std::vector<size_t>> DistributedSequentialSampler::next(size_t batch_size) {
  auto batch = positions(batch_size);
  if (batch)
    for (size_t& i : *batch) i %= size_;
  return batch;
}

}  // namespace rushlight::data::samplers
