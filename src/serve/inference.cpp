// Inference by the Open Inference Protocol v2, with its binary tensors.
#include <algorithm>

#include "core/error.h"
#include "io/json.h"
#include "serve/app.h"
#include "serve/json_text.h"
#include "serve/tensors.h"

namespace rushlight::serve {
namespace {

using runtime::TensorInfo;

// How the answer shall be written.
struct Wanted {
  std::string id;
  std::vector<std::pair<size_t, bool>> outputs;  // places in the model's; whether as bytes
};

// The JSON of a request, and the bytes behind it.
std::pair<std::string_view, std::string_view> parts_of(const Request& request) {
  const std::string_view body = request.body;
  const auto n = request.text_size();
  if (!n) throw RequestError{400, "the header Inference-Header-Content-Length is no length within the body"};
  return {body.substr(0, *n), body.substr(*n)};
}

bool flag(const io::Json& parameters, std::string_view name, bool otherwise) {
  const io::Json& value = parameters[name];
  if (value.is_null()) return otherwise;
  if (!value.boolean()) throw RequestError{400, "the parameter '" + std::string(name) + "' is true or false"};
  return *value.boolean();
}

void check_input(const TensorInfo& info, const Tensor& t) {
  if (!info.has_sizes) return;
  bool same = static_cast<size_t>(t.dim()) == info.sizes.size();
  for (size_t d = 0; same && d < info.sizes.size(); ++d)
    same = info.sizes[d] < 0 || t.size(static_cast<int64_t>(d)) == info.sizes[d];
  RL_CHECK_VALUE(same, "the input '", info.name, "' must be ", info.type, ", not ", IntList(t.sizes()));
}

Tensor read_input(const io::Json& given, const TensorInfo& info, std::string_view& bytes) {
  const std::string what = str("the input '", info.name, "'");
  const std::string* type = given["datatype"].string();
  const std::string_view expected = protocol_name(info.dtype);
  RL_CHECK_VALUE(type && *type == expected, what, " must have the datatype ", expected);
  const std::vector<int64_t> sizes = sizes_from(given["shape"], what);
  const io::Json& parameters = given["parameters"];
  RL_CHECK_VALUE(parameters["shared_memory_region"].is_null(), what, ": shared memory is not served");
  Tensor t;
  if (const io::Json& size = parameters["binary_data_size"]; !size.is_null()) {
    RL_CHECK_VALUE(
        size.integer() && *size.integer() >= 0 && static_cast<size_t>(*size.integer()) <= bytes.size(), what,
        ": the body ends before its bytes do");
    const auto n = static_cast<size_t>(*size.integer());
    t = tensor_from_bytes(bytes.substr(0, n), info.dtype, sizes, what);
    bytes.remove_prefix(n);
  } else {
    t = tensor_from_json(given["data"], info.dtype, sizes, what);
  }
  check_input(info, t);
  return t;
}

const std::string& name_of(const io::Json& given, std::string_view what) {
  const std::string* name = given["name"].string();
  RL_CHECK_VALUE(name, what, " has no name");
  return *name;
}

size_t place_of(const std::vector<TensorInfo>& infos, const std::string& name, std::string_view what) {
  const auto found = std::ranges::find(infos, name, &TensorInfo::name);
  if (found != infos.end()) return static_cast<size_t>(found - infos.begin());
  std::string known;
  for (const TensorInfo& info : infos) known += (known.empty() ? "" : ", ") + info.name;
  RL_FAIL_AS(Value, "there is no ", what, " '", name, "'; the model has ", known);
}

std::vector<Tensor> read_inputs(const io::Json& request, const std::vector<TensorInfo>& infos,
                                std::string_view bytes) {
  const auto* list = request["inputs"].list();
  RL_CHECK_VALUE(list, "the request has no list 'inputs'");
  std::vector<Tensor> inputs(infos.size());
  for (const io::Json& given : *list) {
    const size_t place = place_of(infos, name_of(given, "an input"), "input");
    RL_CHECK_VALUE(!inputs[place].defined(), "the input '", infos[place].name, "' is given twice");
    inputs[place] = read_input(given, infos[place], bytes);
  }
  for (size_t i = 0; i < infos.size(); ++i)
    RL_CHECK_VALUE(inputs[i].defined(), "the input '", infos[i].name, "' is missing");
  RL_CHECK_VALUE(bytes.empty(), "the body has ", bytes.size(), " bytes that belong to no input");
  return inputs;
}

Wanted read_wanted(const io::Json& request, const std::vector<TensorInfo>& infos) {
  Wanted wanted;
  if (const std::string* id = request["id"].string()) wanted.id = *id;
  const bool all = flag(request["parameters"], "binary_data_output", false);
  const io::Json& outputs = request["outputs"];
  if (const auto* list = outputs.list(); list && !list->empty()) {
    for (const io::Json& given : *list) {
      RL_CHECK_VALUE(given["parameters"]["classification"].is_null(), "classification is not served");
      RL_CHECK_VALUE(given["parameters"]["shared_memory_region"].is_null(), "shared memory is not served");
      wanted.outputs.emplace_back(place_of(infos, name_of(given, "an output"), "output"),
                                  flag(given["parameters"], "binary_data", all));
      RL_CHECK_VALUE(wanted.outputs.size() <= infos.size(), "more outputs are wanted than there are");
    }
  } else {
    RL_CHECK_VALUE(outputs.is_null() || list, "'outputs' is no list");
    for (size_t i = 0; i < infos.size(); ++i) wanted.outputs.emplace_back(i, all);
  }
  return wanted;
}

Reply answer(const std::string& model, const std::vector<TensorInfo>& infos, const Wanted& wanted,
             const std::vector<Tensor>& results) {
  std::string list = "[";
  size_t bytes = 0;
  for (const auto& [place, binary] : wanted.outputs) {
    const Tensor& t = results[place];
    const std::string_view type = protocol_name(t.dtype());
    RL_CHECK(!type.empty(), "the output '", infos[place].name, "' is ", t.dtype(),
             ", which the protocol does not have");
    JsonObject output;
    output.add("name", infos[place].name).add("datatype", type);
    output.raw("shape", json_list(t.sizes(), [](int64_t n) { return std::to_string(n); }));
    if (binary) {
      output.raw("parameters", JsonObject().add("binary_data_size", t.nbytes()).done());
      bytes += t.nbytes();
    } else {
      std::string data;
      if (!append_elements(data, t))
        throw RequestError{406,
                           str("the output '", infos[place].name,
                               "' holds a number that is not finite, which JSON does not have: ask for it "
                               "with \"binary_data\": true in its parameters")};
      output.raw("data", data);
    }
    if (list.size() > 1) list += ',';
    list += output.done();
  }
  JsonObject object;
  object.add("model_name", model).add("model_version", "1");
  if (!wanted.id.empty()) object.add("id", wanted.id);
  Reply reply;
  reply.body = object.raw("outputs", list + "]").done();
  if (std::ranges::any_of(wanted.outputs, [](const auto& o) { return o.second; })) {
    reply.type = "application/octet-stream";
    reply.headers.emplace_back("Inference-Header-Content-Length", std::to_string(reply.body.size()));
    reply.body.reserve(reply.body.size() + bytes);
    for (const auto& [place, binary] : wanted.outputs)
      if (binary) reply.body += bytes_of(results[place]);
  }
  return reply;
}

}  // namespace

void infer(App& app, const ExchangePtr& exchange) {
  ServedModel* served = model_of(app, exchange);
  const auto model = served->tensors();
  if (!model)
    throw RequestError{400, "'" + served->name() + "' is a language model: ask it at /v1/completions"};
  const auto [json, bytes] = parts_of(exchange->request);
  const io::Json request = read_json(exchange, json);
  if (!exchange->take_memory(bytes.size()))
    throw RequestError{503, "the server's memory for requests is taken"};

  const io::Json& parameters = request["parameters"];
  std::string method = model->model.methods()[0];
  if (const io::Json& name = parameters["method"]; !name.is_null()) {
    const auto& known = model->model.methods();
    if (!name.string() || std::ranges::find(known, *name.string()) == known.end())
      throw RequestError{400, "the parameter 'method' names no method of the model"};
    method = *name.string();
  }
  if (const io::Json& timeout = parameters["timeout"]; !timeout.is_null()) {
    if (!timeout.integer() || *timeout.integer() < 0)
      throw RequestError{400, "the parameter 'timeout' is a number of microseconds"};
    if (*timeout.integer())
      exchange->shorten_deadline(exchange->request.arrived + std::chrono::microseconds(*timeout.integer()));
  }
  Wanted wanted = read_wanted(request, model->model.outputs(method));
  Job job{exchange, model, method, read_inputs(request, model->model.inputs(method), bytes), {}};
  // The body is not needed any more.
  std::string().swap(exchange->request.body);

  job.done = [&app, served, exchange, model, method, wanted = std::move(wanted)](std::vector<Tensor> results,
                                                                                 const Failure* failure) {
    ModelCounters& counters = served->counters;
    const double took = std::chrono::duration<double>(Clock::now() - exchange->request.arrived).count();
    counters.requests.fetch_add(1, std::memory_order_relaxed);
    counters.latency.add(took);
    if (failure) {
      counters.failures.fetch_add(1, std::memory_order_relaxed);
      return exchange->reply(error_reply(failure->status, failure->what));
    }
    size_t text = 0, bytes = 0;
    for (const auto& [place, binary] : wanted.outputs) (binary ? bytes : text) += results[place].nbytes();
    const bool at_once = quick(text, bytes);
    auto write = [served, exchange, model, method, wanted, results = std::move(results), text, bytes] {
      try {
        if (!exchange->take_memory(4 * text + bytes))
          throw RequestError{503, "the server's memory for requests is taken"};
        exchange->reply(answer(served->name(), model->model.outputs(method), wanted, results));
      } catch (const RequestError& e) {
        exchange->reply(error_reply(e.status, e.what));
      } catch (...) {
        const Failure failed = current_failure();
        exchange->reply(error_reply(failed.status, failed.what));
      }
    };
    at_once ? write() : app.server.post(std::move(write));
  };
  // Beside other requests it would keep them waiting, and could not share a batch with them.
  const bool only_one = app.counters.in_flight.load(std::memory_order_relaxed) == 1;
  if (only_one && served->queue.compute_here(job)) return;
  if (served->queue.add(std::move(job))) return;
  served->counters.refused.fetch_add(1, std::memory_order_relaxed);
  Reply busy = error_reply(503, "too many requests wait for this model");
  busy.headers = {{"Retry-After", std::to_string(served->queue.seconds_to_wait())}};
  exchange->reply(std::move(busy));
}

}  // namespace rushlight::serve
