#include "rushlight/data.h"

#include <cstring>
#include <fstream>

namespace rushlight::data {

// --- the files of MNIST: a big-endian header, then bytes
namespace datasets {

namespace {

Tensor read_idx(const std::string& path, uint32_t magic, size_t dims) {
  std::ifstream file(path, std::ios::binary);
  RL_CHECK(file, "Error opening ", path, ": ", std::strerror(errno));
  auto number = [&] {
    uint32_t v = 0;
    file.read(reinterpret_cast<char*>(&v), 4);
    RL_CHECK(file, path, " is truncated");
    return __builtin_bswap32(v);
  };
  const uint32_t found = number();
  RL_CHECK(found == magic, path, ": expected the magic number ", magic, ", but got ", found);
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < dims; ++d) sizes.push_back(number());
  file.seekg(0, std::ios::end);
  const auto bytes = static_cast<int64_t>(file.tellg()) - static_cast<int64_t>(4 * (dims + 1));
  RL_CHECK(checked_numel(sizes) <= bytes, path, " is truncated: it has ", bytes, " bytes of data for ",
           IntList(sizes));
  const Tensor t = empty(sizes, kByte);
  file.seekg(static_cast<std::streamoff>(4 * (dims + 1)));
  file.read(static_cast<char*>(t.data_ptr()), static_cast<std::streamsize>(t.nbytes()));
  RL_CHECK(file, path, " cannot be read");
  return t;
}

}  // namespace

MNIST::MNIST(const std::string& root, Mode mode) : is_train_(mode == Mode::kTrain) {
  const std::string start = root + (is_train_ ? "/train" : "/t10k");
  const Tensor images = read_idx(start + "-images-idx3-ubyte", 2051, 3);
  images_ = images.to(kFloat32).div(255).unsqueeze(1);
  targets_ = read_idx(start + "-labels-idx1-ubyte", 2049, 1).to(kInt64);
  RL_CHECK(images_.size(0) == targets_.size(0), root, " has ", images_.size(0), " images, but ",
           targets_.size(0), " labels");
}
Example<> MNIST::get(size_t index) {
  return {images_[static_cast<int64_t>(index)], targets_[static_cast<int64_t>(index)]};
}

}  // namespace datasets

// --- workers
static std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return std::string("Caught exception in DataLoader worker thread. Original message: ") + e.what();
  } catch (...) {
    return "Caught exception in DataLoader worker thread.";
  }
}
WorkerException::WorkerException(std::exception_ptr original)
    : message(message_of(original)), original_exception(std::move(original)) {}

namespace detail {

Workers::Workers(size_t threads, bool ordered) : ordered_(ordered) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
}
Workers::~Workers() {
  {
    std::lock_guard guard(mutex_);
    stop_ = true;
    jobs_.clear();
  }
  jobs_changed_.notify_all();
  for (std::thread& t : threads_) t.join();
}
void Workers::submit(Job job) {
  {
    std::lock_guard guard(mutex_);
    jobs_.emplace_back(submitted_++, std::move(job));
  }
  jobs_changed_.notify_one();
}
void Workers::work(size_t thread) {
  for (;;) {
    std::pair<size_t, Job> job;
    {
      std::unique_lock lock(mutex_);
      jobs_changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Result result;
    try {
      result.value = job.second(thread);
    } catch (...) {
      result.error = std::current_exception();
    }
    {
      std::lock_guard guard(mutex_);
      results_.emplace(job.first, std::move(result));
    }
    results_changed_.notify_one();
  }
}
std::shared_ptr<void> Workers::take(std::optional<std::chrono::milliseconds> timeout) {
  std::unique_lock lock(mutex_);
  auto is_there = [&] { return !results_.empty() && (!ordered_ || results_.begin()->first == taken_); };
  if (timeout)
    RL_CHECK(results_changed_.wait_for(lock, *timeout, is_there),
             "Timeout in DataLoader queue while waiting for next batch (timeout was ", timeout->count(),
             " ms)");
  else
    results_changed_.wait(lock, is_there);
  Result result = std::move(results_.begin()->second);
  results_.erase(results_.begin());
  ++taken_;
  lock.unlock();
  if (result.error) throw WorkerException(result.error);
  return result.value;
}
void Workers::drain() {
  std::unique_lock lock(mutex_);
  const size_t dropped = jobs_.size();
  jobs_.clear();
  results_changed_.wait(lock, [&] { return results_.size() + dropped == submitted_ - taken_; });
  results_.clear();
  taken_ = submitted_;
}

}  // namespace detail

}  // namespace rushlight::data
