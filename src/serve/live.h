// An exchange of a connection: who answers it calls it on any thread, its connection on its own.
#pragma once
#include <atomic>
#include <mutex>

#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/options.h"

namespace rushlight::serve {

class Live;

// What an exchange needs of its connection, whatever the stream is. Everything but `run` happens in run's
// functions, one at a time.
class Line {
 public:
  virtual ~Line() = default;
  virtual void run(std::function<void()> work) = 0;
  virtual void answer(Live& live, Reply reply) = 0;
  virtual void begin(Live& live, Reply head) = 0;
  virtual void piece(Live& live, std::string text) = 0;
  virtual void finish(Live& live) = 0;
};

class Live final : public Exchange, public std::enable_shared_from_this<Live> {
 public:
  Live(const Options& options, Counters& counters, std::shared_ptr<Line> line)
      : options_(options), counters_(counters), line_(std::move(line)) {
    counters_.in_flight.fetch_add(1, std::memory_order_relaxed);
  }
  ~Live() override {
    counters_.memory.fetch_sub(static_cast<int64_t>(memory_), std::memory_order_relaxed);
    counters_.in_flight.fetch_sub(1, std::memory_order_relaxed);
  }

  void reply(Reply reply) override {
    if (!answered_.exchange(true))
      line_->run([self = shared_from_this(), r = std::move(reply)]() mutable {
        self->line_->answer(*self, std::move(r));
      });
  }
  void begin(Reply head) override {
    if (!answered_.exchange(true))
      line_->run([self = shared_from_this(), r = std::move(head)]() mutable {
        self->line_->begin(*self, std::move(r));
      });
  }
  void send(std::string piece) override {
    line_->run([self = shared_from_this(), p = std::move(piece)]() mutable {
      self->line_->piece(*self, std::move(p));
    });
  }
  void end() override {
    line_->run([self = shared_from_this()] { self->line_->finish(*self); });
  }

  bool over() const override { return finished() || expired_.load(std::memory_order_relaxed); }
  bool finished() const { return over_.load(std::memory_order_relaxed); }
  bool answered() const { return answered_.load(std::memory_order_relaxed); }
  void when_lost(std::function<void()> callback) override {
    {
      std::lock_guard lock(mutex_);
      if (!lost_) {
        if (!finished()) callbacks_.push_back(std::move(callback));
        return;
      }
    }
    callback();
  }
  Clock::time_point deadline() const override { return deadline_.load(std::memory_order_relaxed); }
  void shorten_deadline(Clock::time_point t) override {
    if (t < deadline()) deadline_.store(t, std::memory_order_relaxed);
  }
  bool take_memory(size_t bytes) override {
    auto& all = counters_.memory;
    const auto n = static_cast<int64_t>(bytes);
    if (all.fetch_add(n, std::memory_order_relaxed) + n > static_cast<int64_t>(options_.memory)) {
      all.fetch_sub(n, std::memory_order_relaxed);
      return false;
    }
    std::lock_guard lock(mutex_);
    memory_ += bytes;
    return true;
  }

  // Nobody waits any more.
  void lose() {
    std::vector<std::function<void()>> callbacks;
    {
      std::lock_guard lock(mutex_);
      if (lost_ || finished()) return;
      lost_ = true, over_ = true;
      callbacks.swap(callbacks_);
    }
    for (auto& callback : callbacks) callback();
  }
  // The deadline passed: what computes may stop, the answer says so.
  void expire() {
    std::vector<std::function<void()>> callbacks;
    {
      std::lock_guard lock(mutex_);
      expired_ = lost_ = true;
      callbacks.swap(callbacks_);
    }
    for (auto& callback : callbacks) callback();
  }
  void complete() {
    std::lock_guard lock(mutex_);
    over_ = true;
    callbacks_.clear();
  }
  void start(Clock::time_point arrived, double limit) {
    request.arrived = arrived;
    deadline_ = arrived + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit));
  }

  Clock::time_point whole;  // when the request had arrived to its end
  bool streams = false, head_only = false, keep_alive = false, chunked = true;
  int status = 0;
  uint64_t sent = 0, received = 0;

 private:
  const Options& options_;
  Counters& counters_;
  std::shared_ptr<Line> line_;
  std::atomic<bool> answered_{false}, over_{false}, expired_{false};
  std::atomic<Clock::time_point> deadline_{Clock::time_point::max()};
  std::mutex mutex_;
  bool lost_ = false;
  std::vector<std::function<void()>> callbacks_;
  size_t memory_ = 0;
};

}  // namespace rushlight::serve
