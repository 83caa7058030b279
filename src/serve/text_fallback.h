// The interface of rushlight/text_service.h where that is missing: one text at a time.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.h"
#include "rushlight/generation.h"

namespace rushlight::generation {

struct TextLimits {
  size_t max_queued = 256;
  int64_t max_running = 16, max_prompt = 0, max_tokens = 0;
  size_t cache_bytes = 0;
  int64_t chunk = 64;
};
struct TextRequest {
  std::string prompt;
  std::vector<int64_t> tokens;
  Settings settings;
  std::string key;
  std::optional<std::chrono::steady_clock::time_point> deadline;
};
enum class TextOutcome { Done, Cancelled, Deadline, Failed };
struct TextEnd {
  TextOutcome outcome = TextOutcome::Done;
  Generated result;
  std::string error;
  ErrorKind kind = ErrorKind::Runtime;
  int64_t prompt_tokens = 0, reused_tokens = 0;
  double queued_seconds = 0, first_token_seconds = 0, total_seconds = 0;
};
struct TextCallbacks {
  std::function<void(std::string_view piece, std::span<const int64_t> tokens)> on_text;
  std::function<void(const TextEnd& end)> on_end;
};
struct TextStats {
  size_t queued = 0, running = 0;
  int64_t pages = 0, pages_used = 0, pages_cached = 0, page_tokens = 0;
  size_t cache_bytes = 0;
  int64_t submitted = 0, refused = 0, done = 0, cancelled = 0, expired = 0, failed = 0;
  int64_t prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0, put_back = 0, steps = 0;
  double tokens_per_second = 0, busy_seconds = 0;
};

class TextService {
 public:
  using Ticket = uint64_t;
  static std::unique_ptr<TextService> load(const std::string& path, const TextLimits& limits = {}) {
    return std::make_unique<TextService>(TextModel::load(path), limits);
  }
  explicit TextService(TextModel model, const TextLimits& limits = {});
  ~TextService();
  TextService(const TextService&) = delete;

  const TextModel& model() const { return model_; }
  const TextLimits& limits() const { return limits_; }
  bool batched() const { return false; }
  std::optional<Ticket> submit(TextRequest request, TextCallbacks callbacks);
  void cancel(Ticket ticket);
  TextStats stats() const;

 private:
  struct Waiting {
    Ticket ticket;
    TextRequest request;
    TextCallbacks callbacks;
  };
  void run();
  void write(Waiting& text);

  TextModel model_;
  TextLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  Ticket next_ = 1, running_ = 0;
  bool stop_running_ = false, ending_ = false;
  TextStats stats_;
  std::thread thread_;
};

}  // namespace rushlight::generation
