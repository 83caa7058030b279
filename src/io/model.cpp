#include "io/model_file.h"
#include "jit/executor.h"
#include "rushlight/runtime.h"

namespace rushlight::runtime {

struct Model::State {
  explicit State(io::ModelFile file)
      : executor(std::move(file.graph), std::move(file.constants), {.mapped_constants = true}) {}
  jit::Executor executor;
  std::vector<TensorInfo> inputs, outputs;
};

namespace {

TensorInfo describe_value(const jit::Graph& graph, std::string name, jit::ValueId id) {
  const jit::Type& type = graph.values[id].type;
  TensorInfo info{std::move(name), type.dtype, type.has_sizes, {}, graph.type_text(type)};
  for (const jit::Size& size : type.sizes) info.sizes.push_back(size.is_number() ? size.offset : -1);
  return info;
}

}  // namespace

Model Model::load(const std::string& path) {
  auto state = std::make_shared<State>(io::read_model(path));
  const jit::Graph& graph = state->executor.graph();
  for (const jit::ValueId id : graph.inputs)
    state->inputs.push_back(describe_value(graph, graph.values[id].name, id));
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const jit::Output& out = graph.outputs[i];
    state->outputs.push_back(
        describe_value(graph, out.name.empty() ? str("output_", i) : out.name, out.value));
  }
  return Model(std::move(state));
}

const std::vector<TensorInfo>& Model::inputs() const { return state_->inputs; }
const std::vector<TensorInfo>& Model::outputs() const { return state_->outputs; }

std::vector<Tensor> Model::run(const std::vector<Tensor>& inputs) const {
  return state_->executor.run(inputs);
}

std::unordered_map<std::string, Tensor> Model::run(
    const std::unordered_map<std::string, Tensor>& inputs) const {
  std::vector<Tensor> ordered;
  for (const TensorInfo& info : state_->inputs) {
    const auto found = inputs.find(info.name);
    RL_CHECK_VALUE(found != inputs.end(), "the input '", info.name, "' is missing. The model expects\n",
                   state_->executor.expected_inputs());
    ordered.push_back(found->second);
  }
  for (const auto& [name, tensor] : inputs) {
    const bool known = std::ranges::find(state_->inputs, name, &TensorInfo::name) != state_->inputs.end();
    RL_CHECK_VALUE(known, "there is no input '", name, "'. The model expects\n",
                   state_->executor.expected_inputs());
  }
  const std::vector<Tensor> results = run(ordered);
  std::unordered_map<std::string, Tensor> named;
  for (size_t i = 0; i < results.size(); ++i) named.emplace(state_->outputs[i].name, results[i]);
  return named;
}

}  // namespace rushlight::runtime
