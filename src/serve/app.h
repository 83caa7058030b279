// What the handlers of requests share, and the handlers.
#pragma once
#include "io/json.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/options.h"
#include "serve/repository.h"
#include "serve/server.h"

namespace rushlight::serve {

struct App {
  const Options& options;
  Counters& counters;
  Server& server;
  Repository& models;
  std::atomic<bool> ending{false};
};

// The one home for what is found where (routes.cpp).
std::optional<Reply> refuse(const App& app, const Request& request);
void handle(App& app, const ExchangePtr& exchange);

// The Open Inference Protocol v2 (inference.cpp, metadata.cpp).
void server_metadata(App& app, const ExchangePtr& exchange);
void server_live(App& app, const ExchangePtr& exchange);
void server_ready(App& app, const ExchangePtr& exchange);
void model_metadata(App& app, const ExchangePtr& exchange);
void model_configuration(App& app, const ExchangePtr& exchange);
void model_ready(App& app, const ExchangePtr& exchange);
void model_index(App& app, const ExchangePtr& exchange);
void model_stats(App& app, const ExchangePtr& exchange);
void infer(App& app, const ExchangePtr& exchange);
// OpenAI's protocol (openai.cpp).
void openai_models(App& app, const ExchangePtr& exchange);
void openai_completions(App& app, const ExchangePtr& exchange);
void openai_chat(App& app, const ExchangePtr& exchange);
// The page and its numbers, and Prometheus' (metadata.cpp).
void page(App& app, const ExchangePtr& exchange);
void stats(App& app, const ExchangePtr& exchange);
void metrics(App& app, const ExchangePtr& exchange);

// The model that the path names; null after the request was answered with 404.
ServedModel* model_of(const App& app, const ExchangePtr& exchange);
// Takes the memory that reading this much JSON needs and reads it, or throws a RequestError.
io::Json read_json(const ExchangePtr& exchange, std::string_view text);

// Ends a request with this answer.
struct RequestError {
  int status;
  std::string what;
};

}  // namespace rushlight::serve
