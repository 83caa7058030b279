// The texts that a service runs: which wait, which run, what each step computes. Only the service's thread
// uses an engine.
#pragma once
#include <atomic>

#include "generation/fair_queue.h"
#include "generation/page_pool.h"
#include "generation/sampler.h"
#include "generation/text_model_data.h"
#include "generation/text_stream.h"
#include "rushlight/text_service.h"

namespace rushlight::generation {

using Clock = std::chrono::steady_clock;

// One request on its way.
struct Text {
  Text(uint64_t ticket, TextRequest request, TextCallbacks callbacks);

  uint64_t ticket;
  std::string key;
  Settings settings;
  TextCallbacks callbacks;
  std::optional<Clock::time_point> deadline;
  std::atomic<bool> cancelled = false;

  std::vector<int64_t> ids;  // the prompt's, and those made
  size_t prompt = 0;         // how many are the prompt's
  TextEnd end;
  const Clock::time_point submitted = Clock::now();

  // While it runs; sampler and stream stay when it is put back.
  std::optional<Sampler> sampler;
  std::optional<TextStream> stream;
  std::optional<PageList> pages;
  size_t computed = 0;  // ids whose keys and values are in pages
  size_t known = 0;     // pages that a prefix tells of
  PagePool::Prefix prefix = PagePool::kNothing;

  bool expired(Clock::time_point now) const { return deadline && now >= *deadline; }
  double since_submitted() const { return std::chrono::duration<double>(Clock::now() - submitted).count(); }
};

class TextEngine {
 public:
  using Data = TextModel::Data;
  TextEngine(const TextModel& model, const TextLimits& limits, int64_t pages);

  void add(std::unique_ptr<Text> text);
  bool idle() const { return queue_.empty() && running_.empty(); }
  // Ends what is cancelled or late, lets in what there is room for, and computes one step.
  void step();  // does not throw
  void end_all(TextOutcome outcome, std::string_view error, ErrorKind kind);
  void forget_prefixes() { pool_.forget(); }

  TextStats stats;  // of texts and steps, not of the service
  // Around the callback of a text that ends; they do not throw.
  std::function<void()> before_end;
  std::function<void(const Text& text)> after_end;

 private:
  void do_step();
  // A part of a text in a step.
  struct Part {
    Text* text;
    size_t count;  // ids from text->computed on
    bool last() const { return text->computed + count == text->ids.size(); }
  };

  void sweep();
  void admit();
  bool prepare(Text& text);
  void take_known_pages(Text& text);
  bool make_room(size_t& i, size_t count);
  void put_back(size_t i);
  std::vector<Part> plan();
  Tensor compute(const std::vector<Part>& parts);
  void run(std::vector<Part> parts);
  void advance(const Part& part, const Tensor& logits);
  void publish_pages(Text& text);
  void add_token(Text& text, int64_t token);
  void tell(Text& text, const std::string& piece, std::span<const int64_t> tokens);
  void finish(Text& text, TextOutcome outcome, std::string_view error = {},
              ErrorKind kind = ErrorKind::Runtime);
  void report(std::unique_ptr<Text> text, TextOutcome outcome, std::string_view error, ErrorKind kind);
  void fail(std::unique_ptr<Text> text);
  void whole_text(std::unique_ptr<Text> text);
  void count_tokens(int64_t count);
  void note();

  const TextModel model_;
  const Data& data_;
  const TextLimits limits_;
  PagePool pool_;
  std::optional<runtime::Session> session_;
  FairQueue<Text> queue_;
  std::vector<std::unique_ptr<Text>> running_;              // the one let in last comes last
  size_t turn_ = 0;                                         // which prompt goes on first
  std::deque<std::pair<Clock::time_point, int64_t>> made_;  // tokens of the last seconds
};

}  // namespace rushlight::generation
