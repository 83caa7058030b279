#if !__has_include("rushlight/text_service.h")
#include "serve/text_fallback.h"

#include <algorithm>

namespace rushlight::generation {

TextService::TextService(TextModel model, const TextLimits& limits)
    : model_(std::move(model)), limits_(limits), thread_([this] { run(); }) {
  if (!limits_.max_prompt) limits_.max_prompt = model_.max_length() - 1;
  if (!limits_.max_tokens) limits_.max_tokens = model_.max_length();
}

TextService::~TextService() {
  {
    std::lock_guard lock(mutex_);
    ending_ = stop_running_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (Waiting& text : waiting_) {
    TextEnd end;
    end.outcome = TextOutcome::Cancelled;
    text.callbacks.on_end(end);
  }
}

std::optional<TextService::Ticket> TextService::submit(TextRequest request, TextCallbacks callbacks) {
  request.settings.check();
  RL_CHECK_VALUE(request.settings.max_tokens > 0, "max_tokens must be above zero");
  if (request.tokens.empty()) {
    RL_CHECK_VALUE(model_.tokenizer(), "the model has no tokenizer: send numbers of tokens");
    request.tokens = model_.tokenizer()->encode(request.prompt);
  }
  const auto n = static_cast<int64_t>(request.tokens.size());
  RL_CHECK_VALUE(n > 0, "the prompt has no tokens");
  RL_CHECK_VALUE(n <= limits_.max_prompt && n < model_.max_length(), "the prompt has ", n,
                 " tokens, but the limit is ", std::min(limits_.max_prompt, model_.max_length() - 1));
  for (const int64_t id : request.tokens)
    RL_CHECK_VALUE(id >= 0 && id < model_.vocabulary(), "the prompt's token ", id,
                   " is not one of the model's ", model_.vocabulary());
  RL_CHECK_VALUE(request.settings.max_tokens <= limits_.max_tokens, "max_tokens is ",
                 request.settings.max_tokens, ", but at most ", limits_.max_tokens, " are allowed");
  std::lock_guard lock(mutex_);
  if (ending_ || waiting_.size() >= limits_.max_queued) {
    ++stats_.refused;
    return std::nullopt;
  }
  ++stats_.submitted;
  waiting_.push_back({next_, std::move(request), std::move(callbacks)});
  changed_.notify_one();
  return next_++;
}

void TextService::cancel(Ticket ticket) {
  std::lock_guard lock(mutex_);
  if (running_ == ticket) stop_running_ = true;
  for (Waiting& text : waiting_)
    if (text.ticket == ticket) text.request.deadline = std::chrono::steady_clock::time_point::min();
}

TextStats TextService::stats() const {
  std::lock_guard lock(mutex_);
  TextStats now = stats_;
  now.queued = waiting_.size(), now.running = running_ != 0;
  return now;
}

void TextService::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    Waiting text = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = text.ticket, stop_running_ = false;
    lock.unlock();
    write(text);
    lock.lock();
    running_ = 0;
  }
}

void TextService::write(Waiting& text) {
  TextEnd end;
  end.prompt_tokens = static_cast<int64_t>(text.request.tokens.size());
  const auto late = [&] {
    return text.request.deadline && std::chrono::steady_clock::now() > *text.request.deadline;
  };
  std::vector<int64_t> tokens;
  auto on_token = [&](int64_t token) {
    tokens.push_back(token);
    std::lock_guard lock(mutex_);
    return !stop_running_ && !late();
  };
  auto on_text = [&](std::string_view piece) {
    if (text.callbacks.on_text) text.callbacks.on_text(piece, tokens);
    tokens.clear();
    return true;
  };
  try {
    if (late())
      end.outcome = TextOutcome::Deadline;
    else
      end.result = model_.generate(text.request.tokens, text.request.settings, on_token, on_text);
    if (end.result.finish == Finish::Cancelled)
      end.outcome = late() ? TextOutcome::Deadline : TextOutcome::Cancelled;
  } catch (const Error& e) {
    end.outcome = TextOutcome::Failed, end.error = e.what(), end.kind = e.kind();
  } catch (const std::exception& e) {
    end.outcome = TextOutcome::Failed, end.error = e.what();
  }
  {
    std::lock_guard lock(mutex_);
    ++stats_.done;
    stats_.generated_tokens += static_cast<int64_t>(end.result.tokens.size());
    stats_.prompt_tokens += end.prompt_tokens;
  }
  text.callbacks.on_end(end);
}

}  // namespace rushlight::generation
#endif
