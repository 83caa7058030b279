#include "rushlight/text_service.h"

#include <condition_variable>
#include <thread>
#include <unordered_map>

#include "generation/text_engine.h"

namespace rushlight::generation {
namespace {

constexpr size_t kUsualCache = size_t{1} << 30;

}  // namespace

struct TextService::Engine {
  Engine(const TextModel& model, const TextLimits& given)
      : model(model), data(*this->model.data_), limits(resolved(given)), engine(model, limits, pages()) {
    engine.before_end = [this] {
      const std::lock_guard lock(mutex);
      publish();
    };
    engine.after_end = [this](const Text& text) {
      const std::lock_guard lock(mutex);
      live.erase(text.ticket);
      if (live.empty()) nothing_left.notify_all();
    };
    published = engine.stats;
    thread = std::thread([this] { run(); });
    own_id = thread.get_id();
  }
  ~Engine() { close(); }

  void close() {
    RL_CHECK_VALUE(std::this_thread::get_id() != own_id, "a callback can't close its service");
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    std::call_once(closed, [this] { thread.join(); });  // others wait for it
  }

  TextLimits resolved(TextLimits l) const {
    RL_CHECK_VALUE(l.max_running > 0 && l.chunk > 0 && l.max_prompt >= 0 && l.max_tokens >= 0,
                   "a text service needs room for one text at least, and limits that are not negative");
    const int64_t longest = data.max_length - 1;
    const auto bounded = [&](int64_t n) { return n == 0 ? longest : std::min(n, longest); };
    l.max_prompt = bounded(l.max_prompt), l.max_tokens = bounded(l.max_tokens);
    if (!data.paged()) {
      l.max_running = 1, l.cache_bytes = 0;
      return l;
    }
    const size_t least = static_cast<size_t>(data.pages_of_text()) * data.page_bytes();
    if (l.cache_bytes == 0) {
      const auto texts = static_cast<size_t>(std::max<int64_t>(1, l.max_running / 2));
      l.cache_bytes = std::max(least, std::min(kUsualCache, texts * least));
    }
    RL_CHECK_VALUE(l.cache_bytes >= least, "a cache of ", l.cache_bytes, " bytes does not hold a text of ",
                   data.max_length, " tokens, which takes ", least);
    return l;
  }
  int64_t pages() const {
    return data.paged() ? static_cast<int64_t>(limits.cache_bytes / std::max<size_t>(1, data.page_bytes()))
                        : 0;
  }

  std::optional<Ticket> submit(TextRequest request, TextCallbacks callbacks) {
    if (request.tokens.empty() && !request.prompt.empty()) {
      RL_CHECK_VALUE(data.tokenizer, "the file has no tokenizer: give the prompt as tokens");
      request.tokens = data.tokenizer->encode(request.prompt);
    }
    data.check(request.tokens, request.settings);
    RL_CHECK_VALUE(static_cast<int64_t>(request.tokens.size()) <= limits.max_prompt, "the prompt has ",
                   request.tokens.size(), " tokens, but at most ", limits.max_prompt, " are allowed");
    RL_CHECK_VALUE(request.settings.max_tokens <= limits.max_tokens, "max_tokens is ",
                   request.settings.max_tokens, ", but at most ", limits.max_tokens, " are allowed");
    const std::lock_guard lock(mutex);
    if (draining || stopping || live.size() >= limits.max_queued + published.running) {
      ++refused;
      return std::nullopt;
    }
    const Ticket ticket = next;
    auto text = std::make_unique<Text>(ticket, std::move(request), std::move(callbacks));
    inbox.reserve(inbox.size() + 1);
    live.emplace(ticket, text.get());
    inbox.push_back(std::move(text));
    ++next, ++submitted;
    wake.notify_all();
    return ticket;
  }

  void cancel(Ticket ticket) {
    const std::lock_guard lock(mutex);
    if (const auto found = live.find(ticket); found != live.end()) found->second->cancelled = true;
  }

  TextStats stats() const {
    const std::lock_guard lock(mutex);
    TextStats s = published;
    s.queued = live.size() - std::min(live.size(), s.running);
    s.submitted = submitted, s.refused = refused;
    return s;
  }

  bool drain(std::optional<Clock::time_point> deadline) {
    std::unique_lock lock(mutex);
    draining = true;
    const auto over = [&] { return live.empty(); };
    if (deadline) return nothing_left.wait_until(lock, *deadline, over);
    nothing_left.wait(lock, over);
    return true;
  }

  void forget() {
    const std::lock_guard lock(mutex);
    forgetting = true;
    wake.notify_all();
  }

 private:
  void publish() { published = engine.stats; }

  void run() {
    std::vector<std::unique_ptr<Text>> arrived;
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stopping || forgetting || !inbox.empty() || !engine.idle(); });
      arrived.swap(inbox);
      const bool forget_now = std::exchange(forgetting, false), stop_now = stopping;
      lock.unlock();
      for (auto& text : arrived) engine.add(std::move(text));
      arrived.clear();
      if (forget_now) engine.forget_prefixes();
      if (stop_now)
        engine.end_all(TextOutcome::Cancelled, "the service has ended", ErrorKind::Runtime);
      else
        engine.step();
      lock.lock();
      publish();
      if (stop_now && inbox.empty()) return;
    }
  }

 public:
  const TextModel model;
  const TextModel::Data& data;
  const TextLimits limits;

 private:
  TextEngine engine;  // the thread's
  mutable std::mutex mutex;
  std::condition_variable wake, nothing_left;
  std::vector<std::unique_ptr<Text>> inbox;
  std::unordered_map<Ticket, Text*> live;
  Ticket next = 1;
  int64_t submitted = 0, refused = 0;
  bool stopping = false, draining = false, forgetting = false;
  TextStats published;
  std::once_flag closed;
  std::thread::id own_id;
  std::thread thread;
};

std::unique_ptr<TextService> TextService::load(const std::string& path, const TextLimits& limits) {
  return std::make_unique<TextService>(TextModel::load(path), limits);
}
TextService::TextService(TextModel model, const TextLimits& limits)
    : engine_(std::make_unique<Engine>(model, limits)) {}
TextService::~TextService() = default;

const TextModel& TextService::model() const { return engine_->model; }
const TextLimits& TextService::limits() const { return engine_->limits; }
bool TextService::batched() const { return engine_->data.paged(); }
std::optional<TextService::Ticket> TextService::submit(TextRequest request, TextCallbacks callbacks) {
  return engine_->submit(std::move(request), std::move(callbacks));
}
void TextService::cancel(Ticket ticket) { engine_->cancel(ticket); }
TextStats TextService::stats() const { return engine_->stats(); }
bool TextService::drain(std::optional<std::chrono::steady_clock::time_point> deadline) {
  return engine_->drain(deadline);
}
void TextService::close() { engine_->close(); }
void TextService::forget_prefixes() { engine_->forget(); }

}  // namespace rushlight::generation
