// Requests that wait for one model, and the thread that computes them: those of equal shapes
// together, where that pays.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "rushlight/runtime.h"
#include "serve/batch_costs.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/options.h"

namespace rushlight::serve {

// One loaded version of a model's file.
struct LoadedModel {
  explicit LoadedModel(runtime::Model m);

  runtime::Model model;
  // Whether rows of several requests may be computed together: all inputs and outputs begin with the same
  // size, which callers choose, and nothing is kept from one run to the next.
  mutable std::atomic<bool> rows_are_free{false};
  // By the size of a row in bytes, its power of two; only the thread that computes looks at it.
  mutable std::map<int, BatchCosts> costs;
  // Of requests that were computed alone, by their method and the size of all their inputs.
  mutable std::map<std::pair<std::string, int>, Costs> alone;
};

struct Failure {
  int status;
  std::string what;
};
// Of the exception that is being handled.
Failure current_failure();

struct Job {
  ExchangePtr exchange;
  std::shared_ptr<const LoadedModel> model;  // whose inputs these are
  std::string method;
  std::vector<Tensor> inputs;
  // Called on the queue's thread: the results, or what went wrong.
  std::function<void(std::vector<Tensor> results, const Failure* failure)> done;
  Clock::time_point queued{};
};

class ModelQueue {
 public:
  ModelQueue(const Options& options, ModelCounters& counters);
  ~ModelQueue();  // what waits is answered with 503

  // False if the queue is full or ends.
  bool add(Job job);
  // Computes it on the calling thread, which is that of a connection: where nothing else is under way and the
  // model is known to be quick, another thread would cost more time than it saves. False, with the job
  // untouched, where that does not hold.
  bool compute_here(Job& job);
  size_t length() const;
  // Seconds until a request that comes now would be taken, as far as the past tells.
  int seconds_to_wait() const;

 private:
  void run();
  std::vector<Job> take_batch(std::unique_lock<std::mutex>& lock);
  void compute(std::vector<Job> batch);
  bool compute_together(std::vector<Job>& batch);
  void compute_alone(Job& job);

  const Options& options_;
  ModelCounters& counters_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  bool busy_ = false;  // something is computed, on whichever thread
  std::thread thread_;
};

}  // namespace rushlight::serve
