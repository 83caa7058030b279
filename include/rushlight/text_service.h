// Texts of many clients at once from one language model: a queue, one thread that runs all texts together,
// caches in pages (docs/generation.md).
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rushlight/generation.h"

namespace rushlight::generation {

struct TextLimits {
  size_t max_queued = 256;   // requests that wait; submit() refuses more
  int64_t max_running = 16;  // texts in one step
  int64_t max_prompt = 0;    // tokens of a prompt; 0: what the model holds
  int64_t max_tokens = 0;    // tokens of a result; 0: what the model holds
  size_t cache_bytes = 0;    // of keys and values; 0: for max_running / 2 texts of full length, but at most 1
                             // GiB where that holds a text
  int64_t chunk = 64;        // tokens of prompts that go along with one step
};

struct TextRequest {
  std::string prompt;  // used if `tokens` is empty; needs a tokenizer in the file
  std::vector<int64_t> tokens;
  Settings settings;
  std::string key;  // whose it is: keys take turns (an API key, a client's address)
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

enum class TextOutcome {
  Done,       // result.finish says Length, End or Stop
  Cancelled,  // by cancel(), or by the service's end
  Deadline,   // it passed, waiting or running; result has what there was
  Failed      // error says why; others go on
};

struct TextEnd {
  TextOutcome outcome = TextOutcome::Done;
  Generated result;  // what there was until then
  std::string error;
  ErrorKind kind = ErrorKind::Runtime;
  int64_t prompt_tokens = 0, reused_tokens = 0;  // tokens of the prompt that another text's cache served
  double queued_seconds = 0, first_token_seconds = 0, total_seconds = 0;  // since submit()
};

// Called on the service's one thread, which runs all texts: they must not block, and must not call into the
// service but for cancel() and submit(). An exception out of one ends that text alone, as Failed.
struct TextCallbacks {
  // A piece of the text that no later token changes (maybe empty), and the tokens since the last call.
  std::function<void(std::string_view piece, std::span<const int64_t> tokens)> on_text;
  std::function<void(const TextEnd& end)> on_end;  // once for each ticket, the last call
  // Where Settings::logprobs asks for them: before on_text has the token. Files of the first format leave
  // them to TextEnd::result.
  std::function<void(const TokenChance& chance)> on_chance;
};

struct TextStats {
  size_t queued = 0, running = 0;
  int64_t pages = 0, pages_used = 0,
          pages_cached = 0;  // cached: not used now, kept for prompts that begin so
  int64_t page_tokens = 0;   // tokens in a page
  size_t cache_bytes = 0;
  int64_t submitted = 0, refused = 0, done = 0, cancelled = 0, expired = 0, failed = 0;  // since the start
  int64_t prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0, put_back = 0, steps = 0;
  double tokens_per_second = 0;  // generated, over the last seconds
  double busy_seconds = 0;       // the thread's time in steps
};

// Threads may share one.
class TextService {
 public:
  using Ticket = uint64_t;

  // A file that has no paged method (older ones) is served too, one text at a time (`batched()` is false).
  static std::unique_ptr<TextService> load(const std::string& path, const TextLimits& limits = {});
  explicit TextService(TextModel model, const TextLimits& limits = {});
  ~TextService();  // closes it
  TextService(const TextService&) = delete;

  const TextModel& model() const;
  const TextLimits& limits() const;  // as they hold: zeros replaced
  bool batched() const;

  // Throws Error of the kind Value for a request that can never run (settings, token numbers, lengths), on
  // the caller's thread; gives nothing where the queue is full or the service drains: try later (503).
  std::optional<Ticket> submit(TextRequest request, TextCallbacks callbacks);
  // It ends as Cancelled if it has not ended yet; a ticket that has ended is no error. Does not wait.
  void cancel(Ticket ticket);
  TextStats stats() const;
  // Takes no more requests; true when all have ended before the deadline.
  bool drain(std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);
  // Ends what is left as Cancelled, and the thread; it takes nothing more. Not from a callback.
  void close();
  // What cached prefixes hold is forgotten (of one tenant, say, before another); running texts go on.
  void forget_prefixes();

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace rushlight::generation
