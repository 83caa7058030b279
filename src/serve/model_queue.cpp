#include "serve/model_queue.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "ops/copy.h"
#include "serve/log.h"

namespace rushlight::serve {
namespace {

using runtime::TensorInfo;

constexpr double kQuick = 200e-6;  // seconds of a run for which a connection's thread may be taken
constexpr uint64_t kKnown = 3;     // runs after which that is known: the first one makes plans

// The name of the first size, as "N" of "float32[N, 3]"; empty where it is a number or nothing.
std::string first_size(const TensorInfo& info) {
  if (!info.has_sizes || info.sizes.empty() || info.sizes[0] >= 0) return {};
  const size_t open = info.type.find('['), end = info.type.find_first_of(",]", open);
  if (open == std::string::npos || end == std::string::npos) return {};
  const std::string name = info.type.substr(open + 1, end - open - 1);
  return name == "?" ? std::string() : name;
}

bool starts_equal(const runtime::Model& model) {
  const auto &inputs = model.inputs(), &outputs = model.outputs();
  if (inputs.empty() || outputs.empty() || !model.state().empty()) return false;
  const std::string name = first_size(inputs[0]);
  auto same = [&](const TensorInfo& info) { return first_size(info) == name; };
  return !name.empty() && std::ranges::all_of(inputs, same) && std::ranges::all_of(outputs, same);
}

int64_t rows_of(const Job& job) { return job.inputs[0].size(0); }

bool fits(const Job& a, const Job& b) {
  if (a.model != b.model || a.method != b.method) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const Tensor &s = a.inputs[i], &t = b.inputs[i];
    if (s.dtype() != t.dtype() || s.dim() != t.dim()) return false;
    for (int64_t d = 1; d < s.dim(); ++d)
      if (s.size(d) != t.size(d)) return false;
  }
  return true;
}

// Its inputs agree about how many rows there are, so that it may share a batch.
bool shares(const Job& job) {
  if (!job.model->rows_are_free.load(std::memory_order_relaxed)) return false;
  if (job.method != job.model->model.methods()[0]) return false;
  return std::ranges::all_of(
      job.inputs, [&](const Tensor& t) { return t.dim() && t.size(0) == rows_of(job) && t.size(0) > 0; });
}

uint64_t bytes_of(const Job& job) {
  uint64_t bytes = 0;
  for (const Tensor& t : job.inputs) bytes += t.nbytes();
  return bytes;
}
BatchCosts& costs_of(const Job& job) {
  return job.model->costs[std::bit_width(bytes_of(job) / static_cast<uint64_t>(rows_of(job)))];
}
Costs& alone_of(const Job& job) { return job.model->alone[{job.method, std::bit_width(bytes_of(job))}]; }

std::vector<int64_t> with_rows(const Tensor& like, int64_t rows) {
  std::vector<int64_t> sizes(like.sizes().begin(), like.sizes().end());
  sizes[0] = rows;
  return sizes;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t unix_milliseconds() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

LoadedModel::LoadedModel(runtime::Model m) : model(std::move(m)) { rows_are_free = starts_equal(model); }

Failure current_failure() {
  try {
    throw;
  } catch (const Error& e) {
    switch (e.kind()) {
      case ErrorKind::Value:
      case ErrorKind::Type:
      case ErrorKind::Index:
        return {400, e.what()};
      case ErrorKind::OutOfMemory:
        return {503, e.what()};
      default:
        return {500, e.what()};
    }
  } catch (const std::bad_alloc&) {
    return {503, "out of memory"};
  } catch (const std::exception& e) {
    return {500, e.what()};
  } catch (...) {
    return {500, "the model failed"};
  }
}

ModelQueue::ModelQueue(const Options& options, ModelCounters& counters)
    : options_(options), counters_(counters), thread_([this] { run(); }) {}

ModelQueue::~ModelQueue() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  const Failure ended{503, "the server ends"};
  for (Job& job : jobs_) job.done({}, &ended);
}

bool ModelQueue::add(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (ending_ || jobs_.size() >= options_.queue) return false;
    job.queued = Clock::now();
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

bool ModelQueue::compute_here(Job& job) {
  {
    std::lock_guard lock(mutex_);
    if (options_.io_threads < 2 || ending_ || busy_ || !jobs_.empty() ||
        (options_.delay_ms > 0 && shares(job)))
      return false;
    const Costs& costs = alone_of(job);
    if (costs.count() < kKnown || costs.least() > kQuick) return false;
    busy_ = true;
  }
  struct End {
    ModelQueue& queue;
    ~End() {
      std::lock_guard lock(queue.mutex_);
      queue.busy_ = false;
      if (!queue.jobs_.empty()) queue.changed_.notify_one();  // those that came meanwhile
    }
  } end{*this};
  job.queued = Clock::now();
  std::vector<Job> batch;
  batch.push_back(std::move(job));
  compute(std::move(batch));
  return true;
}

size_t ModelQueue::length() const {
  std::lock_guard lock(mutex_);
  return jobs_.size();
}

int ModelQueue::seconds_to_wait() const {
  const double computed = static_cast<double>(counters_.compute_ns.load()) / 1e9;
  const double rows = static_cast<double>(std::max<uint64_t>(counters_.rows.load(), 1));
  return static_cast<int>(std::clamp(std::ceil(static_cast<double>(length()) * computed / rows), 1.0, 60.0));
}

void ModelQueue::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ending_ || (!jobs_.empty() && !busy_); });
    if (ending_) return;
    busy_ = true;
    std::vector<Job> batch = take_batch(lock);
    lock.unlock();
    compute(std::move(batch));
    lock.lock();
    busy_ = false;
  }
}

// The oldest, and those that fit to it; other requests keep their places.
std::vector<Job> ModelQueue::take_batch(std::unique_lock<std::mutex>& lock) {
  std::vector<Job> batch;
  int64_t rows = 0;
  auto gather = [&] {
    for (auto job = jobs_.begin(); job != jobs_.end();) {
      const bool gone = job->exchange->over();
      const bool fitting =
          batch.empty() || (shares(*job) && fits(batch[0], *job) && rows + rows_of(*job) <= options_.batch);
      if (!gone && !fitting) {
        ++job;
        continue;
      }
      if (gone)
        counters_.dropped.fetch_add(1, std::memory_order_relaxed);
      else
        batch.push_back(std::move(*job));
      job = jobs_.erase(job);
      if (gone) continue;
      if (!shares(batch[0])) return;
      rows += rows_of(batch.back());
      if (rows >= options_.batch) return;
    }
  };
  gather();
  if (options_.delay_ms > 0 && !batch.empty() && shares(batch[0])) {
    const auto until = batch[0].queued + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double, std::milli>(options_.delay_ms));
    const BatchCosts& costs = costs_of(batch[0]);
    while (rows < costs.choose(options_.batch) && !ending_ &&
           changed_.wait_until(lock, until) == std::cv_status::no_timeout)
      gather();
  }
  if (batch.size() < 2) return batch;
  // Powers of two alone: the runtime plans memory for each size, and keeps few plans.
  const int64_t most = costs_of(batch[0]).choose(rows);
  while (batch.size() > 1 && (rows > most || !std::has_single_bit(static_cast<uint64_t>(rows)))) {
    rows -= rows_of(batch.back());
    jobs_.push_front(std::move(batch.back()));
    batch.pop_back();
  }
  return batch;
}

void ModelQueue::compute(std::vector<Job> batch) {
  if (batch.empty()) return;
  const auto start = Clock::now();
  auto since = [](Clock::time_point a, Clock::time_point b) {
    return static_cast<uint64_t>(std::chrono::nanoseconds(b - a).count());
  };
  for (const Job& job : batch)
    counters_.queue_ns.fetch_add(since(job.queued, start), std::memory_order_relaxed);
  if (batch.size() == 1 || !compute_together(batch))
    for (Job& job : batch) compute_alone(job);
  counters_.compute_ns.fetch_add(since(start, Clock::now()), std::memory_order_relaxed);
  counters_.last_ms = unix_milliseconds();
}

// False if that did not work, so that each is computed for itself: a request that fails fails alone.
bool ModelQueue::compute_together(std::vector<Job>& batch) try {
  const auto start = Clock::now();
  int64_t rows = 0;
  for (const Job& job : batch) rows += rows_of(job);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < batch[0].inputs.size(); ++i) {
    const Tensor all = empty_tensor(with_rows(batch[0].inputs[i], rows), batch[0].inputs[i].dtype());
    auto* to = static_cast<std::byte*>(all.data_ptr());
    for (const Job& job : batch) {
      std::memcpy(to, job.inputs[i].data_ptr(), job.inputs[i].nbytes());
      to += job.inputs[i].nbytes();
    }
    inputs.push_back(all);
  }
  std::vector<Tensor> results = batch[0].model->model.run(batch[0].method, inputs);
  for (Tensor& result : results) {
    if (!result.dim() || result.size(0) != rows) {
      batch[0].model->rows_are_free = false;
      return false;
    }
    result = ops::contiguous(result);
  }
  costs_of(batch[0]).add(rows, seconds_since(start));
  counters_.batches.fetch_add(1, std::memory_order_relaxed);
  counters_.rows.fetch_add(static_cast<uint64_t>(rows), std::memory_order_relaxed);
  counters_.batch.add(static_cast<double>(rows));
  int64_t first = 0;
  for (Job& job : batch) {
    std::vector<Tensor> parts;
    for (const Tensor& result : results)
      parts.push_back(make_view(result, with_rows(result, rows_of(job)), result.strides(),
                                result.storage_offset() + first * result.stride(0), false));
    first += rows_of(job);
    job.done(std::move(parts), nullptr);
  }
  return true;
} catch (...) {
  return false;
}

void ModelQueue::compute_alone(Job& job) {
  const auto start = Clock::now();
  std::vector<Tensor> results;
  try {
    if (job.exchange->over()) {
      counters_.dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (job.model->model.state().empty())
      results = job.model->model.run(job.method, job.inputs);
    else
      results = runtime::Session(job.model->model).run(job.method, job.inputs);
    for (Tensor& result : results) result = ops::contiguous(result);
  } catch (...) {
    const Failure failure = current_failure();
    return job.done({}, &failure);
  }
  alone_of(job).add(seconds_since(start));
  const bool sharing = !job.inputs.empty() && shares(job);
  const int64_t rows = sharing ? rows_of(job) : 1;
  if (sharing) costs_of(job).add(rows, seconds_since(start));
  counters_.batches.fetch_add(1, std::memory_order_relaxed);
  counters_.rows.fetch_add(static_cast<uint64_t>(rows), std::memory_order_relaxed);
  counters_.batch.add(static_cast<double>(rows));
  job.done(std::move(results), nullptr);
}

}  // namespace rushlight::serve
