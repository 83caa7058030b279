#include <mutex>

#include "io/model_file.h"
#include "jit/executor.h"
#include "ops/copy.h"
#include "rushlight/runtime.h"

namespace rushlight::runtime {
namespace {

using Named = std::unordered_map<std::string, Tensor>;

TensorInfo describe_value(const jit::Graph& graph, std::string name, jit::ValueId id) {
  const jit::Type& type = graph.values[id].type;
  TensorInfo info{std::move(name), type.dtype, type.has_sizes, {}, graph.type_text(type)};
  for (const jit::Size& size : type.sizes) info.sizes.push_back(size.is_number() ? size.offset : -1);
  return info;
}

struct Method {
  Method(const io::ModelFile& file, io::Method of)
      : state(file.state_of(of)),
        executor(of.graph, file.constants_of(of),
                 {.mapped_constants = true, .constants_in_file = file.file->is_mapped()}) {
    const jit::Graph& graph = executor.graph();
    for (const jit::ValueId id : graph.inputs)
      inputs.push_back(describe_value(graph, graph.values[id].name, id));
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const jit::Output& out = graph.outputs[i];
      outputs.push_back(describe_value(graph, out.name.empty() ? str("output_", i) : out.name, out.value));
    }
  }

  std::vector<Tensor> ordered(const Named& given) const {
    std::vector<Tensor> list;
    for (const TensorInfo& info : inputs) {
      const auto found = given.find(info.name);
      RL_CHECK_VALUE(found != given.end(), "the input '", info.name, "' is missing. The model expects\n",
                     executor.expected_inputs());
      list.push_back(found->second);
    }
    for (const auto& [name, tensor] : given) {
      const bool known = std::ranges::find(inputs, name, &TensorInfo::name) != inputs.end();
      RL_CHECK_VALUE(known, "there is no input '", name, "'. The model expects\n",
                     executor.expected_inputs());
    }
    return list;
  }
  Named named(const std::vector<Tensor>& results) const {
    Named found;
    for (size_t i = 0; i < results.size(); ++i) found.emplace(outputs[i].name, results[i]);
    return found;
  }

  std::vector<size_t> state;       // places in the model's
  mutable jit::Executor executor;  // it locks what it changes
  std::vector<TensorInfo> inputs, outputs;
};

TensorInfo describe_state(const io::StateTensor& t) {
  std::string type(dtype_name(t.dtype));
  return {t.name, t.dtype, true, {t.sizes.begin(), t.sizes.end()}, str(type, IntList(t.sizes))};
}

}  // namespace

// --- models

struct Model::State {
  explicit State(io::ModelFile file) : state(std::move(file.state)) {
    for (io::Method& method : file.methods) {
      names.push_back(method.name);
      methods.push_back(nullptr);
    }
    for (const io::StateTensor& t : state) state_info.push_back(describe_state(t));
    file.state = state;
    for (size_t i = 0; i < names.size(); ++i)
      methods[i] = std::make_unique<Method>(file, std::move(file.methods[i]));
    for (const auto& [name, text] : file.texts) texts.emplace(name, std::string(text));
  }

  const Method& method(const std::string& name) const {
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return *methods[static_cast<size_t>(found - names.begin())];
    std::string known;
    for (const std::string& n : names) known += str(known.empty() ? "" : ", ", n);
    RL_FAIL_AS(Value, "there is no method '", name, "'; the model has ", known);
  }

  std::vector<io::StateTensor> state;
  std::vector<TensorInfo> state_info;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Method>> methods;
  std::unordered_map<std::string, std::string> texts;
};

Model Model::load(const std::string& path) { return Model(std::make_shared<State>(io::read_model(path))); }
Model Model::load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  auto file = io::MappedFile::in_memory(bytes, std::move(owner));
  return Model(std::make_shared<State>(io::read_model(std::move(file), "in memory")));
}

const std::vector<std::string>& Model::methods() const { return state_->names; }
const std::vector<TensorInfo>& Model::inputs(const std::string& method) const {
  return state_->method(method).inputs;
}
const std::vector<TensorInfo>& Model::outputs(const std::string& method) const {
  return state_->method(method).outputs;
}
const std::vector<TensorInfo>& Model::state() const { return state_->state_info; }

const std::string* Model::text(const std::string& name) const {
  const auto found = state_->texts.find(name);
  return found == state_->texts.end() ? nullptr : &found->second;
}

std::vector<Tensor> Model::run(const std::string& method, const std::vector<Tensor>& inputs) const {
  const Method& m = state_->method(method);
  RL_CHECK_VALUE(m.state.empty(), "the method '", method, "' writes to the state '",
                 state_->state[m.state[0]].name, "': run it in a session of the model");
  return state_->method(method).executor.run(inputs);
}

Named Model::run(const std::string& method, const Named& inputs) const {
  const Method& m = state_->method(method);
  return m.named(run(method, m.ordered(inputs)));
}

// --- sessions

struct Session::Data {
  explicit Data(Model of, bool any_rows = false) : model(std::move(of)), any_rows(any_rows) {}
  Model model;
  const bool any_rows;
  std::vector<Tensor> state;
  mutable std::mutex mutex;
};

Session::Session(const Model& model) : data_(std::make_shared<Data>(model)) {
  const GradMode no_grad(false);
  for (const io::StateTensor& t : model.state_->state) data_->state.push_back(t.make());
}

Session::Session(const Model& model, int64_t rows) : data_(std::make_shared<Data>(model, true)) {
  RL_CHECK_VALUE(rows > 0, "a session's state needs rows, not ", rows);
  const GradMode no_grad(false);
  for (io::StateTensor t : model.state_->state) {
    RL_CHECK_VALUE(!t.initial.defined() && !t.sizes.empty(), "the state '", t.name,
                   "' does not begin as zeros: its rows can't be chosen");
    t.sizes[0] = rows;
    data_->state.push_back(t.make());
  }
}

const Model& Session::model() const { return data_->model; }

std::vector<Tensor> Session::run(const std::string& method, const std::vector<Tensor>& inputs) {
  const Method& m = data_->model.state_->method(method);
  std::lock_guard lock(data_->mutex);
  std::vector<Tensor> state;
  for (const size_t i : m.state) state.push_back(data_->state[i]);
  return m.executor.run(std::vector<Tensor>(inputs), state, data_->any_rows);
}

Named Session::run(const std::string& method, const Named& inputs) {
  const Method& m = data_->model.state_->method(method);
  return m.named(run(method, m.ordered(inputs)));
}

void Session::reset() {
  const GradMode no_grad(false);
  std::lock_guard lock(data_->mutex);
  const auto& state = data_->model.state_->state;
  for (size_t i = 0; i < state.size(); ++i) state[i].reset(data_->state[i]);
}

Session Session::clone() const {
  const GradMode no_grad(false);
  auto copy = std::make_shared<Data>(data_->model, data_->any_rows);
  std::lock_guard lock(data_->mutex);
  for (const Tensor& t : data_->state) copy->state.push_back(ops::clone(t, std::nullopt));
  return Session(std::move(copy));
}

size_t Session::nbytes() const {
  size_t total = 0;
  for (const Tensor& t : data_->state) total += t.nbytes();
  return total;
}

Tensor Session::state(const std::string& name) const {
  const auto& infos = data_->model.state();
  const auto found = std::ranges::find(infos, name, &TensorInfo::name);
  RL_CHECK_VALUE(found != infos.end(), "there is no state '", name, "'");
  return data_->state[static_cast<size_t>(found - infos.begin())];
}

}  // namespace rushlight::runtime
