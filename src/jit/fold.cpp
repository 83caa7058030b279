// What constants decide: folding them, and normalisations into convolutions.
#include <unordered_set>

#include "jit/alias.h"
#include "jit/executor.h"
#include "jit/passes.h"
#include "ops/copy.h"
#include "ops/pointwise.h"

namespace rushlight::jit {
namespace {

constexpr size_t kSmallBytes = 64 * 1024;  // a result of this size is always worth keeping

// Constants by the values that stand for them.
std::vector<const Tensor*> constant_values(const Graph& graph, const Constants& constants) {
  std::vector<const Tensor*> values(graph.values.size(), nullptr);
  for (const Node& node : graph.nodes)
    if (node.is_constant() && !node.results.empty() && node.results[0] != kNoValue)
      if (const auto found = constants.find(node.constant); found != constants.end())
        values[node.results[0]] = &found->second;
  return values;
}

Type type_of(const Tensor& t) {
  Type type;
  type.kind = Type::Kind::Tensor;
  type.dtype = t.dtype();
  type.has_sizes = true;
  for (const int64_t n : t.sizes()) type.sizes.push_back(Size::number(n));
  return type;
}

Node constant_node(Graph& graph, Constants& constants, ValueId value, Tensor tensor) {
  std::string name = "folded." + graph.values[value].name;
  while (constants.contains(name)) name += '_';
  graph.values[value].type = type_of(tensor);
  Node node;
  node.builtin = Builtin::Constant;
  node.constant = name;
  node.results = {value};
  constants.emplace(std::move(name), std::move(tensor));
  return node;
}

// Nodes that depend on nothing but constants.
std::vector<bool> constant_nodes(const Graph& graph) {
  Aliases aliases(graph);
  std::vector<bool> constant(graph.values.size(), false), foldable(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    bool all = node.is_constant() || (node.op && !may_differ(node) && !writes(node) &&
                                      !node.op->schema.returns.empty() && !aliases.touches_written(node));
    for (const Argument& a : node.arguments) each_use(a, [&](const Use& use) { all &= constant[use.id]; });
    for (const ValueId id : node.results) all &= id == kNoValue || graph.values[id].type.is_tensor();
    foldable[i] = all;
    for (const ValueId id : node.results)
      if (id != kNoValue) constant[id] = all && !aliases.written(id);
  }
  return foldable;
}

}  // namespace

// Views cost nothing when they run, so they stay, unless what they lead to is folded.
void fold_constants(Graph& graph, Constants& constants) {
  const std::vector<bool> foldable = constant_nodes(graph);
  Graph part;  // what can be computed now, with all its results as outputs
  part.symbols = graph.symbols;
  part.values = graph.values;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!foldable[i]) continue;
    part.nodes.push_back(graph.nodes[i]);
    if (graph.nodes[i].is_constant() || may_alias(graph.nodes[i])) continue;
    for (const ValueId id : graph.nodes[i].results)
      if (id != kNoValue) part.outputs.push_back({"", id});
  }
  if (part.outputs.empty()) return;
  eliminate_dead_code(part);
  const std::vector<Tensor> computed =
      Executor(part, constants, {.plan_memory = false}).run(std::vector<Tensor>());
  std::unordered_map<ValueId, Tensor> found;
  for (size_t i = 0; i < computed.size(); ++i) found.emplace(part.outputs[i].value, computed[i]);
  const std::vector<const Tensor*> given = constant_values(graph, constants);
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    const bool computes = foldable[i] && !node.is_constant() && !may_alias(node);
    size_t before = kSmallBytes, after = 0;
    for (const Argument& a : node.arguments)
      each_use(a, [&](const Use& use) { before += given[use.id] ? given[use.id]->nbytes() : 0; });
    for (const ValueId id : node.results)
      if (computes && id != kNoValue) after += found.at(id).nbytes();
    if (!computes || after > before) {
      nodes.push_back(std::move(node));
      continue;
    }
    for (const ValueId id : node.results)
      if (id != kNoValue) nodes.push_back(constant_node(graph, constants, id, found.at(id)));
  }
  graph.nodes = std::move(nodes);
  eliminate_dead_code(graph);
}

// --- batch normalisation

namespace {

struct Folded {
  Tensor weight, bias;
};

// (conv(x, w) + b - mean) * scale + shift, where scale = gamma / sqrt(var + eps), is conv(x, w * scale) and a
// bias; computed in double precision.
Folded fold_into(const Tensor& weight, const Tensor& bias, const Tensor& gamma, const Tensor& beta,
                 const Tensor& mean, const Tensor& variance, double eps) {
  auto wide = [](const Tensor& t) { return to_dtype(t, DType::Float64); };
  Tensor scale = ops::rsqrt(ops::add(wide(variance), wrapped_number(Scalar(eps))));
  if (gamma.defined()) scale = ops::mul(scale, wide(gamma));
  Tensor shift = ops::neg(wide(mean));
  if (bias.defined()) shift = ops::add(shift, wide(bias));
  shift = ops::mul(shift, scale);
  if (beta.defined()) shift = ops::add(shift, wide(beta));
  Dims per_filter(weight.sizes().size(), 1);
  per_filter[0] = weight.sizes()[0];
  const Tensor scaled =
      ops::mul(wide(weight), make_view(scale, per_filter, contiguous_strides(per_filter), 0));
  return {to_dtype(scaled, weight.dtype()), to_dtype(shift, weight.dtype())};
}

class BatchNormFolder {
 public:
  BatchNormFolder(Graph& graph, Constants& constants)
      : graph_(graph),
        constants_(constants),
        uses_(graph.values.size(), 0),
        makers_(graph.values.size(), -1) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const Argument& a : graph.nodes[i].arguments) each_use(a, [&](const Use& u) { ++uses_[u.id]; });
      for (const ValueId id : graph.nodes[i].results)
        if (id != kNoValue) makers_[id] = static_cast<int64_t>(i);
    }
    for (const Output& out : graph.outputs) ++uses_[out.value];
  }

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) try_fold(i);
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (Node& n : before_[i]) nodes.push_back(std::move(n));
      if (!dropped_.contains(i)) nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  // The constant behind an argument: null if it is computed, an undefined tensor if it is None.
  const Tensor* constant(const Argument& a) const {
    static const Tensor none;
    if (a.is_none()) return &none;
    const Use* use = a.get<Use>();
    if (!use || makers_[use->id] < 0) return nullptr;
    const Node& maker = graph_.nodes[static_cast<size_t>(makers_[use->id])];
    if (!maker.is_constant()) return nullptr;
    const auto found = constants_.find(maker.constant);
    return found == constants_.end() ? nullptr : &found->second;
  }

  void try_fold(size_t i) {
    enum : size_t { kInput, kGamma, kBeta, kMean, kVariance, kTraining, kMomentum, kEps };
    Node& norm = graph_.nodes[i];
    if (!norm.op || norm.op->schema.name != "native_batch_norm" || norm.results.size() != 3 ||
        norm.results[1] != kNoValue || norm.results[2] != kNoValue || norm.results[0] == kNoValue)
      return;
    const Use* input = norm.arguments[kInput].get<Use>();
    const bool* training = norm.arguments[kTraining].get<bool>();
    const double* eps = norm.arguments[kEps].get<double>();
    if (!input || uses_[input->id] != 1 || makers_[input->id] < 0 || !training || *training || !eps) return;
    const auto at = static_cast<size_t>(makers_[input->id]);
    Node& conv = graph_.nodes[at];
    if (!conv.op || conv.op->schema.name != "convolution") return;
    const bool* transposed =
        conv.arguments[static_cast<size_t>(conv.op->schema.index_of("transposed"))].get<bool>();
    const Tensor *weight = constant(conv.arguments[1]), *bias = constant(conv.arguments[2]);
    const Tensor* parts[] = {constant(norm.arguments[kGamma]), constant(norm.arguments[kBeta]),
                             constant(norm.arguments[kMean]), constant(norm.arguments[kVariance])};
    if (!transposed || *transposed || !weight || !weight->defined() || !bias || !is_floating(weight->dtype()))
      return;
    for (const Tensor* p : parts)
      if (!p) return;
    const int64_t filters = weight->dim() ? weight->sizes()[0] : 0;
    if (!parts[2]->defined() || !parts[3]->defined() || parts[2]->numel() != filters ||
        parts[3]->numel() != filters)
      return;
    const Folded folded = fold_into(*weight, *bias, *parts[0], *parts[1], *parts[2], *parts[3], *eps);
    conv.arguments[1] = {Use{add_constant(at, "weight", folded.weight)}};
    conv.arguments[2] = {Use{add_constant(at, "bias", folded.bias)}};
    conv.results[0] = norm.results[0];
    dropped_.insert(i);
  }

  ValueId add_constant(size_t before, std::string_view what, const Tensor& tensor) {
    const std::string& stem = graph_.values[graph_.nodes[before].results[0]].name;
    const ValueId id = graph_.add_value(graph_.fresh_name(str(stem, "_", what)));
    before_[before].push_back(constant_node(graph_, constants_, id, tensor));
    return id;
  }

  Graph& graph_;
  Constants& constants_;
  std::vector<uint32_t> uses_;
  std::vector<int64_t> makers_;
  std::unordered_map<size_t, std::vector<Node>> before_;  // new nodes, by the node they come before
  std::unordered_set<size_t> dropped_;
};

}  // namespace

void fold_batch_norm(Graph& graph, Constants& constants) {
  const GradMode no_grad(false);
  BatchNormFolder(graph, constants).run();
  eliminate_dead_code(graph);
}

}  // namespace rushlight::jit
