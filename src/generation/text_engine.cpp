#include "generation/text_engine.h"

#include <algorithm>
#include <numeric>

#include "ops/view.h"

namespace rushlight::generation {
namespace {

constexpr int64_t kLeastShare = 16;  // tokens of a prompt that are worth a step
constexpr int64_t kAlone = 4;        // times as many tokens of prompts where no text would wait for them
constexpr double kRateSeconds = 5;

std::span<const int64_t> part_of(const std::vector<int64_t>& ids, size_t begin, size_t count) {
  return std::span(ids).subspan(begin, count);
}

// Calls f(message, kind) for an exception that is being handled; there may be no memory for its message.
template <class F>
void with_current_error(F&& f) {
  std::string message = "out of memory";  // short enough to need none
  ErrorKind kind = ErrorKind::OutOfMemory;
  try {
    try {
      throw;
    } catch (const Error& e) {
      message = e.what(), kind = e.kind();
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& e) {
      message = e.what(), kind = ErrorKind::Runtime;
    } catch (...) {
      message = "an exception of an unknown type", kind = ErrorKind::Runtime;
    }
  } catch (const std::bad_alloc&) {
  }
  f(message, kind);
}

}  // namespace

Text::Text(uint64_t ticket, TextRequest request, TextCallbacks callbacks)
    : ticket(ticket),
      key(std::move(request.key)),
      settings(std::move(request.settings)),
      callbacks(std::move(callbacks)),
      deadline(request.deadline),
      ids(std::move(request.tokens)),
      prompt(ids.size()) {
  end.prompt_tokens = static_cast<int64_t>(prompt);
}

TextEngine::TextEngine(const TextModel& model, const TextLimits& limits, int64_t pages)
    : model_(model), data_(*model_.data_), limits_(limits), pool_(pages, std::max<int64_t>(1, data_.page)) {
  if (data_.paged()) session_.emplace(data_.model, pages);
  running_.reserve(static_cast<size_t>(limits.max_running));
  stats.pages = pages, stats.page_tokens = data_.page;
  stats.cache_bytes = data_.paged() ? session_->nbytes() : 0;
}

void TextEngine::add(std::unique_ptr<Text> text) {
  try {
    queue_.push(std::move(text), text->key);
  } catch (...) {
    fail(std::move(text));
  }
  note();
}

void TextEngine::note() {
  stats.queued = queue_.size(), stats.running = running_.size();
  stats.pages_cached = pool_.cached();
  stats.pages_used = data_.paged() ? pool_.size() - pool_.available() : 0;
}

void TextEngine::count_tokens(int64_t count) {
  const auto now = Clock::now();
  stats.generated_tokens += count;
  made_.emplace_back(now, count);
  const auto age = [&] { return std::chrono::duration<double>(now - made_.front().first).count(); };
  while (age() > kRateSeconds) made_.pop_front();
  int64_t sum = 0;
  for (const auto& [at, n] : made_) sum += n;
  stats.tokens_per_second = static_cast<double>(sum) / kRateSeconds;
}

// --- the end of a text

void TextEngine::finish(Text& text, TextOutcome outcome, std::string_view error, ErrorKind kind) {
  const auto found = std::ranges::find(running_, &text, &std::unique_ptr<Text>::get);
  if (found == running_.end()) return;
  std::unique_ptr<Text> own = std::move(*found);
  running_.erase(found);
  report(std::move(own), outcome, error, kind);
}

void TextEngine::report(std::unique_ptr<Text> text, TextOutcome outcome, std::string_view error,
                        ErrorKind kind) {
  text->pages.reset();
  TextEnd& end = text->end;
  end.outcome = outcome, end.kind = kind;
  try {
    end.error = error;
  } catch (const std::bad_alloc&) {
  }
  if (outcome == TextOutcome::Cancelled) end.result.finish = Finish::Cancelled;
  end.total_seconds = text->since_submitted();
  (outcome == TextOutcome::Done        ? stats.done
   : outcome == TextOutcome::Cancelled ? stats.cancelled
   : outcome == TextOutcome::Deadline  ? stats.expired
                                       : stats.failed)++;
  note();
  if (before_end) before_end();
  try {
    if (text->callbacks.on_end) text->callbacks.on_end(end);
  } catch (...) {  // whoever threw it knows; the others go on
  }
  if (after_end) after_end(*text);
}

// For an exception that is being handled.
void TextEngine::fail(std::unique_ptr<Text> text) {
  with_current_error([&](const std::string& error, ErrorKind kind) {
    report(std::move(text), TextOutcome::Failed, error, kind);
  });
}

void TextEngine::end_all(TextOutcome outcome, std::string_view error, ErrorKind kind) {
  while (!running_.empty()) finish(*running_.back(), outcome, error, kind);
  while (!queue_.empty()) report(queue_.pop(), outcome, error, kind);
}

void TextEngine::sweep() {
  const auto now = Clock::now();
  const auto over = [&](const Text& t) { return t.cancelled.load() || t.expired(now); };
  const auto outcome = [](const Text& t) {
    return t.cancelled.load() ? TextOutcome::Cancelled : TextOutcome::Deadline;
  };
  while (auto text = queue_.take(over)) {
    const TextOutcome why = outcome(*text);
    report(std::move(text), why, {}, ErrorKind::Runtime);
  }
  for (size_t i = running_.size(); i-- > 0;)
    if (i < running_.size() && over(*running_[i])) finish(*running_[i], outcome(*running_[i]));
}

// --- who runs

// Pages of other texts that begin alike; the last id is always computed.
void TextEngine::take_known_pages(Text& text) {
  const auto page = static_cast<size_t>(data_.page);
  text.pages.emplace(pool_);
  text.prefix = PagePool::kNothing, text.known = text.computed = 0;
  while (text.computed + page < text.ids.size() &&
         text.pages->add_known(text.prefix, part_of(text.ids, text.computed, page))) {
    text.computed += page;
    ++text.known;
  }
}

// Gives a text that waits all pages that its ids need; false, with nothing taken, if there are too few.
bool TextEngine::prepare(Text& text) {
  take_known_pages(text);
  const int64_t need = (static_cast<int64_t>(text.ids.size()) + data_.page - 1) / data_.page;
  const auto have = static_cast<int64_t>(text.pages->list().size());
  if (need - have > pool_.available()) {
    text.pages.reset();
    return false;
  }
  while (text.pages->tokens() < static_cast<int64_t>(text.ids.size()) && text.pages->add_new()) continue;
  if (!text.sampler) {
    text.sampler.emplace(text.settings);
    if (data_.tokenizer) text.stream.emplace(*data_.tokenizer, text.ids, text.settings.stop);
    text.end.queued_seconds = text.since_submitted();
    text.end.reused_tokens = static_cast<int64_t>(text.computed);
    stats.prompt_tokens += text.end.prompt_tokens;
    stats.reused_tokens += text.end.reused_tokens;
  }
  return true;
}

void TextEngine::admit() {
  while (!queue_.empty() && running_.size() < static_cast<size_t>(limits_.max_running)) {
    Text& text = queue_.next();
    try {
      if (!prepare(text)) return;
      running_.push_back(queue_.pop());
    } catch (...) {
      fail(queue_.pop());
    }
  }
}

// Its cache is computed again when its turn comes.
void TextEngine::put_back(size_t i) {
  std::unique_ptr<Text> text = std::move(running_[i]);
  running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
  text->pages.reset();
  text->computed = 0;
  ++stats.put_back;
  try {
    queue_.put_back(std::move(text), text->key);
  } catch (...) {
    fail(std::move(text));
  }
}

// Pages for `count` more ids of a running text. The one let in last gives way, which may be the text itself:
// false.
bool TextEngine::make_room(size_t& i, size_t count) {
  Text& text = *running_[i];
  while (text.pages->tokens() < static_cast<int64_t>(text.computed + count)) {
    if (text.pages->add_new()) continue;
    const bool own = i + 1 == running_.size();
    put_back(running_.size() - 1);
    if (own) return false;
  }
  return true;
}

// --- what a step computes

// The next token of each text that makes some, and parts of prompts, which take turns.
std::vector<TextEngine::Part> TextEngine::plan() {
  std::vector<Part> parts;
  const auto left_of = [](const Text& t) { return t.ids.size() - t.computed; };
  const auto prompts = std::ranges::count_if(running_, [&](const auto& t) { return left_of(*t) > 1; });
  const bool alone = prompts == static_cast<int64_t>(running_.size());
  int64_t room = alone ? limits_.chunk * kAlone : limits_.chunk;
  const int64_t share = std::max(kLeastShare, room / std::max<int64_t>(1, prompts));
  for (size_t i = 0; i < running_.size(); ++i) {
    if (left_of(*running_[i]) > 1) continue;
    if (make_room(i, 1)) parts.push_back({running_[i].get(), 1});
  }
  const size_t all = running_.size(), first = turn_++;
  for (size_t k = 0; k < all && room > 0; ++k) {
    Text& text = *running_[(first + k) % all];
    const auto left = static_cast<int64_t>(left_of(text));
    if (left < 2) continue;
    const int64_t count = std::min({left, share, room});  // whose pages it has
    parts.push_back({&text, static_cast<size_t>(count)});
    room -= count;
  }
  return parts;
}

Tensor TextEngine::compute(const std::vector<Part>& parts) {
  StepInput input;
  const auto most = static_cast<size_t>(data_.pages_of_text());
  for (size_t row = 0; row < parts.size(); ++row) {
    const Text& text = *parts[row].text;
    const size_t count = parts[row].count;
    const auto ids = part_of(text.ids, text.computed, count);
    input.tokens.insert(input.tokens.end(), ids.begin(), ids.end());
    for (size_t i = 0; i < count; ++i) input.positions.push_back(static_cast<int64_t>(text.computed + i));
    input.texts.insert(input.texts.end(), count, static_cast<int64_t>(row));
    const auto pages = text.pages->list();
    input.pages.insert(input.pages.end(), pages.begin(), pages.end());
    input.pages.resize((row + 1) * most);
    input.wanted.push_back(static_cast<int64_t>(input.tokens.size()) - 1);
  }
  ++stats.steps;
  return data_.step(*session_, input);
}

// Where a step fails, each text is tried alone: one that fails again ends, and no other.
void TextEngine::run(std::vector<Part> parts) {
  if (parts.empty()) return;
  Tensor logits;
  try {
    logits = compute(parts);
  } catch (...) {
    if (parts.size() > 1) {
      for (const Part& part : parts) run({part});
      return;
    }
    return with_current_error([&](const std::string& error, ErrorKind kind) {
      finish(*parts[0].text, TextOutcome::Failed, error, kind);
    });
  }
  int64_t row = 0;
  for (const Part& part : parts) {
    const bool last = part.last();
    try {
      const GradMode no_grad(false);
      advance(part, last ? ops::slice(logits, 0, row, row + 1, 1) : Tensor());
    } catch (...) {
      with_current_error([&](const std::string& error, ErrorKind kind) {
        finish(*part.text, TextOutcome::Failed, error, kind);
      });
    }
    ++row;
  }
}

void TextEngine::publish_pages(Text& text) {
  const auto page = static_cast<size_t>(data_.page);
  for (; (text.known + 1) * page <= text.computed; ++text.known)
    pool_.publish(text.pages->list()[text.known], text.prefix, part_of(text.ids, text.known * page, page));
}

void TextEngine::advance(const Part& part, const Tensor& logits) {
  Text& text = *part.text;
  text.computed += part.count;
  publish_pages(text);
  if (!logits.defined()) return;
  const int64_t token = text.sampler->next(logits, text.ids, text.prompt);
  if (text.settings.logprobs >= 0)
    text.end.result.chances.push_back(chance_of(logits, token, text.settings.logprobs));
  add_token(text, token);
}

void TextEngine::tell(Text& text, const std::string& piece, std::span<const int64_t> tokens) {
  text.end.result.text += piece;
  if (text.callbacks.on_text && (!piece.empty() || !tokens.empty())) text.callbacks.on_text(piece, tokens);
}

// As TextModel::generate() does.
void TextEngine::add_token(Text& text, int64_t token) {
  Generated& result = text.end.result;
  text.ids.push_back(token);
  result.tokens.push_back(token);
  count_tokens(1);
  if (result.tokens.size() == 1) text.end.first_token_seconds = text.since_submitted();
  const bool end = !text.settings.ignore_end && std::ranges::count(data_.end, token);
  const bool full = static_cast<int64_t>(result.tokens.size()) == text.settings.max_tokens ||
                    static_cast<int64_t>(text.ids.size()) == data_.max_length;
  std::string piece = text.stream && !end ? text.stream->add(token) : std::string();
  if (!result.chances.empty()) {
    if (text.stream) result.chances.back().place = end ? text.stream->size() : text.stream->place();
    if (text.callbacks.on_chance) text.callbacks.on_chance(result.chances.back());
  }
  const bool stopped = text.stream && text.stream->stopped();
  result.finish = stopped ? Finish::Stop : end ? Finish::End : Finish::Length;
  const bool over = stopped || end || full;
  if (over && text.stream && !stopped) piece += text.stream->finish();
  tell(text, piece, std::span(&token, 1));
  if (over) finish(text, TextOutcome::Done);
}

// What can't be assigned to one text is the end of all that run.
void TextEngine::step() {
  try {
    do_step();
  } catch (...) {
    with_current_error(
        [&](const std::string& error, ErrorKind kind) { end_all(TextOutcome::Failed, error, kind); });
  }
}

void TextEngine::do_step() {
  sweep();
  if (!data_.paged()) {
    if (!queue_.empty()) whole_text(queue_.pop());
    return;
  }
  const auto begin = Clock::now();
  admit();
  run(plan());
  stats.busy_seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  note();
}

// A text of a file of the first format, which has no other beside it.
void TextEngine::whole_text(std::unique_ptr<Text> own) {
  Text& text = *own;
  std::vector<int64_t> waiting;  // tokens that no piece told of yet
  text.end.queued_seconds = text.since_submitted();
  stats.prompt_tokens += text.end.prompt_tokens;
  running_.push_back(std::move(own));
  note();
  const auto flush = [&](std::string_view piece) {
    const std::vector<int64_t> tokens = std::exchange(waiting, {});
    tell(text, std::string(piece), tokens);
  };
  const auto go_on = [&] { return !text.cancelled.load() && !text.expired(Clock::now()); };
  const auto begin = Clock::now();
  try {
    Generated made = model_.generate(
        text.ids, text.settings,
        [&](int64_t token) {
          if (!waiting.empty()) flush({});
          waiting.push_back(token);
          text.end.result.tokens.push_back(token);
          if (text.end.result.tokens.size() == 1) text.end.first_token_seconds = text.since_submitted();
          count_tokens(1);
          return go_on();
        },
        [&](std::string_view piece) {
          flush(piece);
          return go_on();
        });
    if (!waiting.empty()) flush({});
    text.end.result.finish = made.finish;
    text.end.result.chances = std::move(made.chances);
    const bool cut = made.finish == Finish::Cancelled;
    finish(text, !cut                    ? TextOutcome::Done
                 : text.cancelled.load() ? TextOutcome::Cancelled
                                         : TextOutcome::Deadline);
  } catch (...) {
    with_current_error(
        [&](const std::string& error, ErrorKind kind) { finish(text, TextOutcome::Failed, error, kind); });
  }
  stats.busy_seconds += std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace rushlight::generation
