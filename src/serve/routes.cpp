#include <algorithm>
#include <array>
#include <span>

#include "core/error.h"
#include "io/json.h"
#include "serve/app.h"
#include "serve/json_text.h"

namespace rushlight::serve {
namespace {

struct Route {
  std::string_view method, pattern;
  void (*handler)(App&, const ExchangePtr&);
  bool open = false;  // without a key
};

// A {} stands for one word.
constexpr Route kRoutes[] = {
    {"GET", "/", page, true},
    {"GET", "/stats", stats},
    {"GET", "/metrics", metrics},
    {"GET", "/health", server_live, true},
    {"GET", "/v2", server_metadata},
    {"GET", "/v2/health/live", server_live, true},
    {"GET", "/v2/health/ready", server_ready, true},
    {"POST", "/v2/repository/index", model_index},
    {"GET", "/v2/models/stats", model_stats},
    {"GET", "/v2/models/{}", model_metadata},
    {"GET", "/v2/models/{}/versions/{}", model_metadata},
    {"GET", "/v2/models/{}/config", model_configuration},
    {"GET", "/v2/models/{}/versions/{}/config", model_configuration},
    {"GET", "/v2/models/{}/ready", model_ready},
    {"GET", "/v2/models/{}/versions/{}/ready", model_ready},
    {"GET", "/v2/models/{}/stats", model_stats},
    {"GET", "/v2/models/{}/versions/{}/stats", model_stats},
    {"POST", "/v2/models/{}/infer", infer},
    {"POST", "/v2/models/{}/versions/{}/infer", infer},
    {"GET", "/v1/models", openai_models},
    {"GET", "/v1/models/{}", openai_models},
    {"POST", "/v1/completions", openai_completions},
    {"POST", "/v1/chat/completions", openai_chat},
};

std::string_view next_word(std::string_view& path) {
  path.remove_prefix(path.starts_with('/'));
  const std::string_view word = path.substr(0, path.find('/'));
  path.remove_prefix(word.size());
  return word;
}

bool matches(std::string_view pattern, std::string_view path, std::vector<std::string>* words) {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (!path.starts_with('/')) return false;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view expected = next_word(pattern), word = next_word(path);
    if (expected == "{}" && !word.empty()) {
      if (words) words->emplace_back(word);
    } else if (expected != word) {
      return false;
    }
  }
  return pattern.empty() && path.empty();
}

// Takes as long for any two texts of these lengths.
bool equal_in_constant_time(std::string_view key, std::string_view given) {
  size_t different = key.size() ^ given.size();
  for (size_t i = 0; i < key.size(); ++i)
    different |= static_cast<unsigned char>(key[i]) ^
                 static_cast<unsigned char>(given.empty() ? 0 : given[i % given.size()]);
  return !different;
}

bool has_key(const Options& options, const Request& request) {
  std::string_view given = request.header("authorization");
  static constexpr std::string_view kBearer = "bearer ";
  const bool bearer = given.size() >= kBearer.size() &&
                      std::equal(kBearer.begin(), kBearer.end(), given.begin(), [](char a, char b) {
                        return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b);
                      });
  given = bearer ? given.substr(kBearer.size()) : request.header("x-api-key");
  bool good = false;
  for (const std::string& key : options.keys) good |= equal_in_constant_time(key, given);
  return good;
}

// OpenAI's clients look for an object with a message.
Reply in_the_words_of(const Request& request, Reply reply) {
  if (!request.path.starts_with("/v1/") || reply.status < 400) return reply;
  const io::Json error = io::Json::parse(reply.body, "the answer");
  JsonObject object;
  object.add("message", *error["error"].string());
  object.add("type", reply.status < 500 ? "invalid_request_error" : "server_error");
  object.raw("param", "null").raw("code", "null");
  reply.body = JsonObject().raw("error", object.done()).done();
  return reply;
}

}  // namespace

std::optional<Reply> refuse(const App& app, const Request& request) {
  if (app.options.keys.empty()) return std::nullopt;
  for (const Route& route : kRoutes)
    if (route.open && matches(route.pattern, request.path, nullptr)) return std::nullopt;
  if (has_key(app.options, request)) return std::nullopt;
  Reply reply = error_reply(401, "this server wants a key: Authorization: Bearer KEY");
  reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return in_the_words_of(request, std::move(reply));
}

void handle(App& app, const ExchangePtr& exchange) {
  const Request& request = exchange->request;
  auto fail = [&](int status, std::string_view what) {
    exchange->reply(in_the_words_of(request, error_reply(status, what)));
  };
  std::string allowed;
  for (const Route& route : kRoutes) {
    if (!matches(route.pattern, request.path, &exchange->words)) {
      exchange->words.clear();
      continue;
    }
    exchange->route = route.pattern;
    if (request.method != route.method && !(request.method == "HEAD" && route.method == "GET")) {
      exchange->words.clear();
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
      continue;
    }
    try {
      return route.handler(app, exchange);
    } catch (const RequestError& e) {
      return fail(e.status, e.what);
    } catch (...) {
      const Failure failure = current_failure();
      return fail(failure.status, failure.what);
    }
  }
  if (allowed.empty()) {
    exchange->route = "unknown";
    return fail(404, "there is nothing at this path");
  }
  Reply reply = in_the_words_of(request, error_reply(405, "this path takes " + allowed));
  reply.headers.emplace_back("Allow", allowed);
  exchange->reply(std::move(reply));
}

ServedModel* model_of(const App& app, const ExchangePtr& exchange) {
  const auto& words = exchange->words;
  ServedModel* model = words.empty() ? nullptr : app.models.find(words[0]);
  if (!model) throw RequestError{404, "there is no model '" + (words.empty() ? "" : words[0]) + "'"};
  if (words.size() > 1 && words[1] != "1")
    throw RequestError{404, "the model '" + words[0] + "' has version 1 alone"};
  exchange->model = model->name();
  return model;
}

io::Json read_json(const ExchangePtr& exchange, std::string_view text) {
  static constexpr size_t kMostValues = 1'000'000;
  if (!exchange->request.header("content-encoding").empty())
    throw RequestError{415, "bodies are taken as they are, without a content encoding"};
  // Numbers take 8 bytes for two of text, other values some 100.
  if (!exchange->take_memory(6 * text.size() + 4096))
    throw RequestError{503, "the server's memory for requests is taken"};
  try {
    return io::Json::parse(text, "the request", {.pack = true, .most_values = kMostValues});
  } catch (const Error& e) {
    throw RequestError{400, e.what()};
  }
}

}  // namespace rushlight::serve
