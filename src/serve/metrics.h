// Numbers that /metrics and the page show. Counting takes no lock.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace rushlight::serve {

// Counts of values up to each bound, as Prometheus wants them.
class Histogram {
 public:
  static constexpr size_t kBounds = 14;
  explicit constexpr Histogram(const std::array<double, kBounds>& bounds) : bounds_(bounds) {}
  void add(double value);
  uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  // The bound that this share of all values does not pass.
  double quantile(double share) const;
  void print(std::string& out, std::string_view name, const std::string& labels) const;

 private:
  std::array<double, kBounds> bounds_;
  std::array<std::atomic<uint64_t>, kBounds + 1> counts_{};
  std::atomic<double> sum_{0};
};

inline constexpr std::array<double, Histogram::kBounds> kSeconds = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};
inline constexpr std::array<double, Histogram::kBounds> kRows = {1,  2,   4,   8,   16,  32,   64,
                                                                 96, 128, 192, 256, 512, 1024, 4096};

// A model's own.
struct ModelCounters {
  std::atomic<uint64_t> requests{0}, failures{0}, refused{0}, dropped{0}, batches{0}, rows{0}, reloads{0};
  std::atomic<uint64_t> queue_ns{0}, compute_ns{0};
  std::atomic<int64_t> last_ms{0};  // when the last one was computed, in Unix time
  Histogram latency{kSeconds}, batch{kRows};
};

// The server's.
struct Counters {
  std::atomic<int64_t> connections{0}, in_flight{0}, memory{0};
  std::atomic<uint64_t> connections_total{0}, connections_refused{0}, bytes_in{0}, bytes_out{0}, lost{0};

  // One request was answered; `route` lives as long as the process.
  void answered(std::string_view route, int status, double seconds);
  void print(std::string& out) const;

 private:
  struct Route {
    std::map<int, uint64_t> statuses;
    Histogram latency{kSeconds};
  };
  mutable std::mutex mutex_;
  std::map<std::string_view, Route> routes_;
};

// name{labels} value
void print_metric(std::string& out, std::string_view name, const std::string& labels, double value);
// key="value", escaped.
std::string label(std::string_view key, std::string_view value);

}  // namespace rushlight::serve
