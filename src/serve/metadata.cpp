// What the server and its models are and do: the protocol's metadata, the page, metrics.
#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "io/json.h"
#include "serve/app.h"
#include "serve/json_text.h"
#include "serve/page.h"
#include "serve/tensors.h"

namespace rushlight::serve {
namespace {

using runtime::TensorInfo;

void ok(const ExchangePtr& exchange, std::string body) {
  exchange->reply({200, std::move(body), "application/json", {}});
}

std::string describe(const std::vector<TensorInfo>& infos) {
  return json_list(infos, [](const TensorInfo& info) {
    JsonObject object;
    object.add("name", info.name);
    object.add("datatype", protocol_name(info.dtype));
    object.raw("shape", json_list(info.sizes, [](int64_t n) { return std::to_string(n); }));
    return object.done();
  });
}

std::string describe(const ServedModel& served) {
  JsonObject object;
  object.add("name", served.name()).raw("versions", "[\"1\"]");
  if (const auto model = served.tensors()) {
    const runtime::Model& m = model->model;
    object.add("platform", "rushlight");
    object.raw("inputs", describe(m.inputs())).raw("outputs", describe(m.outputs()));
    object.raw("methods", json_list(m.methods(), quoted));
  } else if (const auto texts = served.texts()) {
    object.add("platform", "rushlight_text").raw("inputs", "[]").raw("outputs", "[]");
    object.add("max_length", texts->model().max_length()).add("vocabulary", texts->model().vocabulary());
  }
  return object.done();
}

// As Triton's extension "model_configuration". Sizes are whole: a model of no batches, in its words.
std::string configuration(const ServedModel& served) {
  const auto tensors = [](const std::vector<TensorInfo>& infos) {
    return json_list(infos, [](const TensorInfo& info) {
      JsonObject object;
      object.add("name", info.name).add("data_type", str("TYPE_", protocol_name(info.dtype)));
      object.raw("dims", json_list(info.sizes, [](int64_t n) { return std::to_string(n); }));
      return object.done();
    });
  };
  const auto model = served.tensors();
  const std::vector<TensorInfo> none;
  JsonObject object;
  object.add("name", served.name()).add("platform", model ? "rushlight" : "rushlight_text");
  object.add("backend", "rushlight").add("max_batch_size", 0);
  object.raw("input", tensors(model ? model->model.inputs() : none));
  object.raw("output", tensors(model ? model->model.outputs() : none));
  return object.done();
}

uint64_t get(const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

std::string duration(uint64_t count, uint64_t ns) {
  return JsonObject().add("count", count).add("ns", ns).done();
}

// As Triton's extension "statistics".
std::string protocol_stats(const ServedModel& served) {
  const ModelCounters& c = served.counters;
  const uint64_t requests = get(c.requests), failures = get(c.failures),
                 good = requests - std::min(failures, requests);
  JsonObject parts;
  parts.raw("success", duration(good, static_cast<uint64_t>(c.latency.sum() * 1e9)));
  parts.raw("fail", duration(failures, 0)).raw("queue", duration(requests, get(c.queue_ns)));
  parts.raw("compute_input", duration(requests, 0))
      .raw("compute_infer", duration(get(c.batches), get(c.compute_ns)));
  parts.raw("compute_output", duration(requests, 0));
  JsonObject object;
  object.add("name", served.name()).add("version", "1").add("last_inference", c.last_ms.load());
  object.add("inference_count", get(c.rows)).add("execution_count", get(c.batches));
  object.raw("inference_stats", parts.done()).raw("batch_stats", "[]");
  return object.done();
}

// For the page: what has been counted; it makes rates of differences.
std::string page_stats(const ServedModel& served) {
  const ModelCounters& c = served.counters;
  JsonObject object;
  object.raw("model", describe(served)).add("path", served.path()).add("problem", served.problem());
  object.add("queue", served.queue.length())
      .add("requests", get(c.requests))
      .add("failures", get(c.failures));
  object.add("refused", get(c.refused)).add("dropped", get(c.dropped)).add("batches", get(c.batches));
  object.add("rows", get(c.rows)).add("reloads", get(c.reloads)).add("seconds", c.latency.sum());
  object.add("p50", c.latency.quantile(0.5)).add("p99", c.latency.quantile(0.99));
  object.add("compute_seconds", static_cast<double>(get(c.compute_ns)) / 1e9);
  if (const auto texts = served.texts()) {
    const auto s = texts->stats();
    JsonObject t;
    t.add("queued", s.queued).add("running", s.running).add("prompt_tokens", s.prompt_tokens);
    t.add("reused_tokens", s.reused_tokens).add("generated_tokens", s.generated_tokens);
    t.add("tokens_per_second", s.tokens_per_second).add("pages", s.pages).add("pages_used", s.pages_used);
    object.raw("texts", t.done());
  }
  return object.done();
}

void print_model(std::string& out, std::string_view name, std::string_view type,
                 const std::vector<std::unique_ptr<ServedModel>>& models, auto&& value) {
  out += "# TYPE ", out += name, out += ' ', out += type, out += '\n';
  for (const auto& m : models)
    if (const auto v = value(*m)) print_metric(out, name, label("model", m->name()), *v);
}

}  // namespace

void server_metadata(App&, const ExchangePtr& exchange) {
  JsonObject object;
  object.add("name", "rushlight-serve").add("version", RUSHLIGHT_VERSION);
  object.raw("extensions", R"(["binary_tensor_data","model_configuration","model_repository","statistics"])");
  ok(exchange, object.done());
}

void server_live(App&, const ExchangePtr& exchange) { ok(exchange, R"({"live":true})"); }

void server_ready(App& app, const ExchangePtr& exchange) {
  if (app.ending) return exchange->reply(error_reply(503, "the server ends"));
  ok(exchange, R"({"ready":true})");
}

void model_metadata(App& app, const ExchangePtr& exchange) {
  ok(exchange, describe(*model_of(app, exchange)));
}

void model_configuration(App& app, const ExchangePtr& exchange) {
  ok(exchange, configuration(*model_of(app, exchange)));
}

void model_ready(App& app, const ExchangePtr& exchange) {
  const ServedModel* model = model_of(app, exchange);
  ok(exchange, JsonObject().add("name", model->name()).add("ready", true).done());
}

void model_index(App& app, const ExchangePtr& exchange) {
  ok(exchange, json_list(app.models.models(), [](const auto& model) {
       return JsonObject()
           .add("name", model->name())
           .add("version", "1")
           .add("state", "READY")
           .add("reason", "")
           .done();
     }));
}

void model_stats(App& app, const ExchangePtr& exchange) {
  std::string list;
  if (exchange->words.empty())
    list = json_list(app.models.models(), [](const auto& model) { return protocol_stats(*model); });
  else
    list = "[" + protocol_stats(*model_of(app, exchange)) + "]";
  ok(exchange, JsonObject().raw("model_stats", list).done());
}

void stats(App& app, const ExchangePtr& exchange) {
  JsonObject object;
  object.raw("models", json_list(app.models.models(), [](const auto& model) { return page_stats(*model); }));
  object.add("connections", app.counters.connections.load()).add("in_flight", app.counters.in_flight.load());
  object.add("memory", app.counters.memory.load()).add("memory_limit", app.options.memory);
  object.add("ending", app.ending.load());
  ok(exchange, object.done());
}

void page(App&, const ExchangePtr& exchange) {
  Reply reply{200, std::string(kPage), "text/html; charset=utf-8", {}};
  reply.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
      "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  exchange->reply(std::move(reply));
}

void metrics(App& app, const ExchangePtr& exchange) {
  std::string out;
  app.counters.print(out);
  const auto& models = app.models.models();
  using Value = std::optional<double>;
  auto counter = [&](std::string_view name, std::atomic<uint64_t> ModelCounters::* member) {
    print_model(out, name, "counter", models,
                [&](const ServedModel& m) { return Value(static_cast<double>(get(m.counters.*member))); });
  };
  counter("rushlight_model_requests_total", &ModelCounters::requests);
  counter("rushlight_model_failures_total", &ModelCounters::failures);
  counter("rushlight_model_refused_total", &ModelCounters::refused);
  counter("rushlight_model_dropped_total", &ModelCounters::dropped);
  counter("rushlight_model_batches_total", &ModelCounters::batches);
  counter("rushlight_model_rows_total", &ModelCounters::rows);
  counter("rushlight_model_reloads_total", &ModelCounters::reloads);
  print_model(out, "rushlight_model_compute_seconds_total", "counter", models, [](const ServedModel& m) {
    return Value(static_cast<double>(get(m.counters.compute_ns)) / 1e9);
  });
  print_model(out, "rushlight_model_queue", "gauge", models,
              [](const ServedModel& m) { return Value(static_cast<double>(m.queue.length())); });
  auto of_texts = [&](std::string_view name, std::string_view type, auto&& value) {
    print_model(out, name, type, models, [&](const ServedModel& m) -> Value {
      const auto texts = m.texts();
      return texts ? Value(static_cast<double>(value(texts->stats()))) : std::nullopt;
    });
  };
  of_texts("rushlight_texts_queued", "gauge", [](const auto& s) { return s.queued; });
  of_texts("rushlight_texts_running", "gauge", [](const auto& s) { return s.running; });
  of_texts("rushlight_prompt_tokens_total", "counter", [](const auto& s) { return s.prompt_tokens; });
  of_texts("rushlight_reused_tokens_total", "counter", [](const auto& s) { return s.reused_tokens; });
  of_texts("rushlight_generated_tokens_total", "counter", [](const auto& s) { return s.generated_tokens; });
  of_texts("rushlight_cache_pages_used", "gauge", [](const auto& s) { return s.pages_used; });
  out += "# TYPE rushlight_model_latency_seconds histogram\n";
  for (const auto& m : models)
    m->counters.latency.print(out, "rushlight_model_latency_seconds", label("model", m->name()));
  out += "# TYPE rushlight_model_batch_rows histogram\n";
  for (const auto& m : models)
    m->counters.batch.print(out, "rushlight_model_batch_rows", label("model", m->name()));
  exchange->reply({200, std::move(out), "text/plain; version=0.0.4; charset=utf-8", {}});
}

}  // namespace rushlight::serve
