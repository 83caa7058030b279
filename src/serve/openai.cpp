// OpenAI's protocol for language models: models, completions, chats; at once, or as server-sent events.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <random>

#include "core/error.h"
#include "io/json.h"
#include "serve/app.h"
#include "serve/chat_template.h"
#include "serve/json_text.h"
#include "serve/token_log.h"

namespace rushlight::serve {
namespace {

using generation::Finish;
using generation::TextCallbacks;
using generation::TextEnd;
using generation::TextOutcome;
using generation::TextRequest;
using generation::TextService;
using io::Json;

constexpr size_t kMostChoices = 64;
constexpr size_t kMostBiases = 1024;
constexpr int64_t kMostLogprobs = 20;
constexpr int kMostBias = 100, kMostPenalty = 2;
constexpr int64_t kShort = 16;  // tokens of a completion that does not say how many, as OpenAI has it

int64_t unix_seconds() {
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

uint64_t random_seed() {
  static std::mutex mutex;
  static std::mt19937_64 numbers{std::random_device{}()};
  std::lock_guard lock(mutex);
  return numbers();
}

std::string hexadecimal(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[value >> shift & 15];
  return out;
}

[[noreturn]] void refuse(const std::string& what) { throw RequestError{400, what}; }

// --- what a request says
// --------------------------------------------------------------------------------------

double real(const Json& request, const char* name, double otherwise) {
  const Json& value = request[name];
  if (value.is_null()) return otherwise;
  if (!value.is_number()) refuse(str("'", name, "' is a number"));
  return value.number();
}
int64_t whole(const Json& request, const char* name, int64_t otherwise) {
  const Json& value = request[name];
  if (value.is_null()) return otherwise;
  if (!value.integer()) refuse(str("'", name, "' is a whole number"));
  return *value.integer();
}
bool flag(const Json& request, const char* name) {
  const Json& value = request[name];
  if (value.is_null()) return false;
  if (!value.boolean()) refuse(str("'", name, "' is true or false"));
  return *value.boolean();
}

// What would change the answer and is not there is refused, never passed over.
void check_unserved(const Json& request) {
  if (flag(request, "echo")) refuse("'echo' is not served");
  for (const char* name : {"suffix", "audio", "functions"})
    if (!request[name].is_null()) refuse(str("'", name, "' is not served"));
  if (const Json& tools = request["tools"]; !tools.is_null() && !(tools.list() && tools.list()->empty()))
    refuse("'tools' is not served");
  if (const std::string* type = request["response_format"]["type"].string(); type && *type != "text")
    refuse("'response_format' is text alone");
  if (whole(request, "best_of", 1) != 1) refuse("'best_of' is not served");
}

// How many of the likeliest tokens come with each: a number for completions; a flag and a number for chats.
int64_t logprobs_of(const Json& request, bool chat) {
  const Json &wanted = request["logprobs"], &top = request["top_logprobs"];
  const bool none = wanted.is_null() || (wanted.boolean() && !*wanted.boolean());
  const char* name = chat ? "top_logprobs" : "logprobs";
  if (!top.is_null() && (!chat || none)) refuse("'top_logprobs' belongs to chats with 'logprobs'");
  if (none) return -1;
  if (chat) flag(request, "logprobs");
  const int64_t count = whole(request, name, 0);
  if (count < 0 || count > kMostLogprobs) refuse(str("'", name, "' is from 0 to ", kMostLogprobs));
  return count;
}

std::vector<std::pair<int64_t, double>> bias_of(const Json& request) {
  std::vector<std::pair<int64_t, double>> found;
  const Json& bias = request["logit_bias"];
  if (bias.is_null()) return found;
  if (!bias.object()) refuse("'logit_bias' is an object of tokens and numbers");
  if (bias.object()->size() > kMostBiases) refuse(str("'logit_bias' has at most ", kMostBiases, " tokens"));
  for (const auto& [name, value] : *bias.object()) {
    int64_t token = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (error != std::errc() || end != name.data() + name.size())
      refuse("'logit_bias' names tokens by their numbers");
    if (!value.is_number() || !(std::abs(value.number()) <= kMostBias))
      refuse(str("a bias in 'logit_bias' is from -", kMostBias, " to ", kMostBias));
    found.emplace_back(token, value.number());
  }
  return found;
}

double penalty_of(const Json& request, const char* name) {
  const double value = real(request, name, 0);
  if (!(std::abs(value) <= kMostPenalty)) refuse(str("'", name, "' is from -2 to 2"));
  return value;
}

generation::Settings settings_of(const Json& request, int64_t otherwise, bool chat) {
  check_unserved(request);
  generation::Settings s;
  s.max_tokens = whole(request, "max_completion_tokens", whole(request, "max_tokens", otherwise));
  s.temperature = real(request, "temperature", 1);
  s.top_p = real(request, "top_p", 1);
  s.top_k = whole(request, "top_k", 0);
  s.repetition_penalty = real(request, "repetition_penalty", 1);
  s.presence_penalty = penalty_of(request, "presence_penalty");
  s.frequency_penalty = penalty_of(request, "frequency_penalty");
  s.bias = bias_of(request), s.logprobs = logprobs_of(request, chat);
  s.ignore_end = flag(request, "ignore_eos");
  s.seed = request["seed"].is_null() ? random_seed() : static_cast<uint64_t>(whole(request, "seed", 0));
  const Json& stop = request["stop"];
  if (stop.string()) s.stop.push_back(*stop.string());
  if (stop.list())
    for (const Json& text : *stop.list()) {
      if (!text.string() || s.stop.size() >= 16) refuse("'stop' is a text or a list of at most 16");
      s.stop.push_back(*text.string());
    }
  if (!stop.is_null() && !stop.string() && !stop.list()) refuse("'stop' is a text or a list of texts");
  return s;
}

TextRequest prompt_of(const Json& value) {
  TextRequest request;
  if (value.string())
    request.prompt = *value.string();
  else if (const auto* n = value.numbers(); n && n->real.empty())
    request.tokens = n->whole;
  else
    refuse("'prompt' is a text, a list of token numbers, or a list of such");
  if (request.prompt.empty() && request.tokens.empty()) refuse("the prompt is empty");
  return request;
}

// --- an answer
// ------------------------------------------------------------------------------------------------

// All texts that one request asked for.
class Answer : public std::enable_shared_from_this<Answer> {
 public:
  Answer(ExchangePtr exchange, ServedModel& served, std::weak_ptr<TextService> texts, const Json& request,
         bool chat)
      : exchange_(std::move(exchange)),
        served_(served),
        texts_(std::move(texts)),
        chat_(chat),
        streams_(flag(request, "stream")),
        usage_(flag(request["stream_options"], "include_usage")),
        id_((chat ? "chatcmpl-" : "cmpl-") + hexadecimal(random_seed())),
        created_(unix_seconds()) {}

  void start(TextService& service, std::vector<TextRequest> requests) {
    choices_.resize(requests.size());
    for (size_t i = 0; i < requests.size(); ++i)
      if (requests[i].settings.logprobs >= 0) choices_[i].log.emplace(service.model().tokenizer(), chat_);
    left_ = requests.size();
    std::string key(exchange_->request.header("authorization"));
    if (key.empty()) key = exchange_->request.client.substr(0, exchange_->request.client.rfind(':'));
    try {
      for (size_t i = 0; i < requests.size(); ++i) {
        requests[i].key = key;
        requests[i].deadline = exchange_->deadline();
        submit(service, i, std::move(requests[i]));
      }
    } catch (...) {  // those before it are nobody's
      cancel();
      throw;
    }
    exchange_->when_lost([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->cancel();
    });
  }

  void cancel() {
    const auto texts = texts_.lock();
    std::vector<TextService::Ticket> tickets;
    {
      std::lock_guard lock(mutex_);
      tickets = tickets_;
    }
    if (texts)
      for (const auto ticket : tickets) texts->cancel(ticket);
  }

 private:
  struct Choice {
    TextEnd end;
    bool begun = false;
    std::string text;  // what was sent of it
    std::optional<TokenLog> log;
  };

  void submit(TextService& service, size_t i, TextRequest request) {
    auto self = shared_from_this();
    TextCallbacks callbacks;
    if (choices_[i].log)
      callbacks.on_chance = [self, i](const generation::TokenChance& chance) {
        std::lock_guard lock(self->mutex_);
        self->choices_[i].log->add(chance);
      };
    callbacks.on_text = [self, i](std::string_view piece, std::span<const int64_t>) {
      self->piece(i, piece);
    };
    callbacks.on_end = [self, i](const TextEnd& end) { self->ended(i, end); };
    const auto ticket = service.submit(std::move(request), std::move(callbacks));
    if (!ticket) {
      served_.counters.refused.fetch_add(1, std::memory_order_relaxed);
      throw RequestError{503, "too many requests wait for this model"};
    }
    std::lock_guard lock(mutex_);
    tickets_.push_back(*ticket);
  }

  void piece(size_t i, std::string_view text) {
    if (!streams_ || text.empty()) return;
    std::lock_guard lock(mutex_);
    begin(i);
    Choice& choice = choices_[i];
    if (choice.log) choice.text += text;
    send_choice(i, text, {}, choice.log ? choice.log->within(choice.text) : "null");
  }

  // What the tokens' log-probabilities are that were not sent yet.
  static std::string last_chances(Choice& choice) {
    if (!choice.log) return "null";
    const generation::Generated& made = choice.end.result;
    for (size_t i = choice.log->size(); i < made.chances.size(); ++i) choice.log->add(made.chances[i]);
    if (made.finish == Finish::Stop) return choice.log->within(made.text);
    if (made.finish == Finish::End && choice.log->size()) choice.log->drop_last();
    return choice.log->rest(made.text);
  }

  void ended(size_t i, const TextEnd& end) {
    std::lock_guard lock(mutex_);
    choices_[i].end = end;
    if (streams_ && end.outcome == TextOutcome::Done) {
      begin(i);
      send_choice(i, {}, reason(end), last_chances(choices_[i]));
    }
    if (--left_) return;
    const double took = std::chrono::duration<double>(Clock::now() - exchange_->request.arrived).count();
    served_.counters.requests.fetch_add(1, std::memory_order_relaxed);
    served_.counters.latency.add(took);
    if (const auto failure = failed()) {
      served_.counters.failures.fetch_add(1, std::memory_order_relaxed);
      if (!head_sent_) return exchange_->reply(failure_reply(failure->status, failure->what));
      exchange_->send("data: " + failure_reply(failure->status, failure->what).body + "\n\n");
      return exchange_->end();
    }
    if (!streams_) return exchange_->reply({200, whole_answer(), "application/json", {}});
    if (usage_) send(frame("[]").raw("usage", usage()));
    exchange_->send("data: [DONE]\n\n");
    exchange_->end();
  }

  std::optional<Failure> failed() const {
    for (const Choice& choice : choices_) switch (choice.end.outcome) {
        case TextOutcome::Done:
          break;
        case TextOutcome::Cancelled:
          return Failure{503, "the text was cancelled"};
        case TextOutcome::Deadline:
          return Failure{504, "the deadline passed"};
        case TextOutcome::Failed:
          return Failure{choice.end.kind == ErrorKind::Value ? 400 : 500, choice.end.error};
      }
    return std::nullopt;
  }
  static Reply failure_reply(int status, std::string_view what) {
    JsonObject error;
    error.add("message", what).add("type", status < 500 ? "invalid_request_error" : "server_error");
    error.raw("param", "null").raw("code", "null");
    Reply reply = error_reply(status, what);
    reply.body = JsonObject().raw("error", error.done()).done();
    return reply;
  }

  static std::string_view reason(const TextEnd& end) {
    return end.result.finish == Finish::Length ? "length" : "stop";
  }

  JsonObject frame(std::string_view choices) const {
    JsonObject object;
    const char* kind = !chat_ ? "text_completion" : streams_ ? "chat.completion.chunk" : "chat.completion";
    object.add("id", id_).add("object", kind).add("created", created_).add("model", served_.name());
    object.raw("choices", choices);
    return object;
  }
  void send(const JsonObject& object) { exchange_->send("data: " + object.done() + "\n\n"); }
  void begin(size_t i) {
    if (!head_sent_) {
      head_sent_ = true;
      exchange_->begin({200,
                        {},
                        "text/event-stream; charset=utf-8",
                        {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
    }
    if (chat_ && !choices_[i].begun) send_delta(i, R"({"role":"assistant","content":""})", {}, "null");
    choices_[i].begun = true;
  }
  void send_delta(size_t i, std::string_view delta, std::string_view why, std::string_view logprobs) {
    JsonObject choice;
    choice.add("index", i).raw("delta", delta).raw("logprobs", logprobs);
    choice.raw("finish_reason", why.empty() ? "null" : quoted(why));
    send(frame("[" + choice.done() + "]"));
  }
  void send_choice(size_t i, std::string_view text, std::string_view why, std::string_view logprobs) {
    const std::string delta = why.empty() ? JsonObject().add("content", text).done() : "{}";
    if (chat_) return send_delta(i, delta, why, logprobs);
    JsonObject choice;
    choice.add("index", i).add("text", text).raw("logprobs", logprobs);
    choice.raw("finish_reason", why.empty() ? "null" : quoted(why));
    send(frame("[" + choice.done() + "]"));
  }

  std::string usage() const {
    int64_t prompt = 0, written = 0, reused = 0;
    for (const Choice& choice : choices_) {
      prompt += choice.end.prompt_tokens, reused += choice.end.reused_tokens;
      written += static_cast<int64_t>(choice.end.result.tokens.size());
    }
    JsonObject object;
    object.add("prompt_tokens", prompt)
        .add("completion_tokens", written)
        .add("total_tokens", prompt + written);
    object.raw("prompt_tokens_details", JsonObject().add("cached_tokens", reused).done());
    return object.done();
  }
  std::string whole_answer() {
    std::string list = "[";
    for (size_t i = 0; i < choices_.size(); ++i) {
      const TextEnd& end = choices_[i].end;
      JsonObject choice;
      choice.add("index", i);
      if (chat_)
        choice.raw("message", JsonObject().add("role", "assistant").add("content", end.result.text).done());
      else
        choice.add("text", end.result.text);
      choice.raw("logprobs", last_chances(choices_[i])).add("finish_reason", reason(end));
      list += (i ? "," : "") + choice.done();
    }
    return frame(list + "]").raw("usage", usage()).done();
  }

  const ExchangePtr exchange_;
  ServedModel& served_;
  const std::weak_ptr<TextService> texts_;  // whose own thread calls this: it must not be the last to hold it
  const bool chat_, streams_, usage_;
  const std::string id_;
  const int64_t created_;
  std::mutex mutex_;
  std::vector<Choice> choices_;
  std::vector<TextService::Ticket> tickets_;
  size_t left_ = 0;
  bool head_sent_ = false;
};

ServedModel& model_named(App& app, const ExchangePtr& exchange, const Json& request) {
  const std::string* name = request["model"].string();
  if (!name) refuse("the request names no model");
  ServedModel* served = app.models.find(*name);
  if (!served) throw RequestError{404, "there is no model '" + *name + "'"};
  exchange->model = served->name();
  return *served;
}

std::shared_ptr<TextService> texts_of(const ServedModel& served) {
  auto texts = served.texts();
  if (!texts)
    refuse("'" + served.name() + "' is no language model: ask it at /v2/models/" + served.name() + "/infer");
  return texts;
}

void start(const ExchangePtr& exchange, ServedModel& served, const std::shared_ptr<TextService>& texts,
           const Json& request, std::vector<TextRequest> prompts, const generation::Settings& settings,
           bool chat) {
  const int64_t n = whole(request, "n", 1);
  if (n < 1 || static_cast<size_t>(n) * prompts.size() > kMostChoices)
    refuse(str("'n' times prompts is from 1 to ", kMostChoices));
  std::vector<TextRequest> all;
  for (TextRequest& prompt : prompts)
    for (int64_t i = 0; i < n; ++i) {
      all.push_back(prompt);
      all.back().settings = settings;
      all.back().settings.seed += static_cast<uint64_t>(i);
    }
  std::string().swap(exchange->request.body);
  const auto answer = std::make_shared<Answer>(exchange, served, texts, request, chat);
  answer->start(*texts, std::move(all));
}

std::string content_of(const Json& message) {
  const Json& content = message["content"];
  if (content.string()) return *content.string();
  if (content.is_null()) return {};
  std::string text;
  if (!content.list()) refuse("a message's content is a text or a list of parts");
  for (const Json& part : *content.list()) {
    const std::string* piece = part["text"].string();
    if (!piece) refuse("a message's content has a part that is no text");
    text += *piece;
  }
  return text;
}

}  // namespace

void openai_models(App& app, const ExchangePtr& exchange) {
  auto describe = [](const ServedModel& model) {
    JsonObject object;
    object.add("id", model.name())
        .add("object", "model")
        .add("created", unix_seconds())
        .add("owned_by", "rushlight");
    return object.done();
  };
  std::string body;
  if (!exchange->words.empty()) {
    body = describe(*model_of(app, exchange));
  } else {
    std::string list;
    for (const auto& model : app.models.models())
      if (model->texts()) list += (list.empty() ? "" : ",") + describe(*model);
    body = JsonObject().add("object", "list").raw("data", "[" + list + "]").done();
  }
  exchange->reply({200, std::move(body), "application/json", {}});
}

void openai_completions(App& app, const ExchangePtr& exchange) {
  const Json request = read_json(exchange, exchange->request.body);
  ServedModel& served = model_named(app, exchange, request);
  const auto texts = texts_of(served);
  const int64_t usual = std::min(kShort, texts->limits().max_tokens);
  const generation::Settings settings = settings_of(request, usual, false);
  std::vector<TextRequest> prompts;
  if (const auto* list = request["prompt"].list()) {
    if (list->empty() || list->size() > kMostChoices)
      refuse(str("'prompt' holds from 1 to ", kMostChoices, " prompts"));
    for (const Json& prompt : *list) prompts.push_back(prompt_of(prompt));
  } else {
    prompts.push_back(prompt_of(request["prompt"]));
  }
  start(exchange, served, texts, request, std::move(prompts), settings, false);
}

void openai_chat(App& app, const ExchangePtr& exchange) {
  const Json request = read_json(exchange, exchange->request.body);
  ServedModel& served = model_named(app, exchange, request);
  const auto texts = texts_of(served);
  const auto* messages = request["messages"].list();
  if (!messages || messages->empty()) refuse("'messages' is a list of at least one");
  std::vector<ChatMessage> chat;
  for (const Json& message : *messages) {
    const std::string* role = message["role"].string();
    if (!role) refuse("a message has no role");
    if (!message["tool_calls"].is_null()) refuse("'tool_calls' is not served");
    chat.push_back({*role, content_of(message)});
  }
  const auto format = served.chat_template();
  if (!format) refuse("'" + served.name() + "' has no template for chats: ask it at /v1/completions");
  TextRequest prompt;
  const std::string text = format->render(chat);
  if (!texts->model().tokenizer()) refuse("the model has no tokenizer");
  prompt.tokens = texts->model().tokenizer()->encode(text, false);
  if (prompt.tokens.empty()) refuse("the chat has no tokens");
  const int64_t left = texts->model().max_length() - static_cast<int64_t>(prompt.tokens.size());
  const int64_t room = std::clamp<int64_t>(left, 1, texts->limits().max_tokens);
  start(exchange, served, texts, request, {std::move(prompt)}, settings_of(request, room, true), true);
}

}  // namespace rushlight::serve
