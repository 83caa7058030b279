#include "jit/alias.h"

#include <numeric>

namespace rushlight::jit {

bool may_alias(const Node& node) {
  if (!node.op) return false;
  if (node.inplace || node.op->mutated) return true;
  switch (node.op->family) {
    case Family::Pointwise:
    case Family::Reduction:
    case Family::Matmul:
    case Family::Factory:
    case Family::Random:
    case Family::Index:
      return false;
    case Family::Kernel:  // few of these give back what they got
      for (const std::string_view name :
           {"positive", "lift_fresh", "values", "_values", "indices", "_indices", "coalesce", "to_dense"})
        if (node.op->schema.name == name) return true;
      return node.op->made_in_python || node.op->schema.name.starts_with("to_sparse");
    default:
      return true;
  }
}

bool writes_to(const Node& node, size_t parameter) {
  return node.op && ((node.inplace && parameter == 0) || (node.op->mutated >> parameter & 1));
}
bool writes(const Node& node) { return node.op && (node.inplace || node.op->mutated); }

bool is_random(const Node& node) {
  if (!node.op) return false;
  if (node.op->family == Family::Random || node.op->made_in_python) return true;
  // Composites that draw numbers: those that take a generator, dropout and attention with dropout.
  for (const Parameter& p : node.op->schema.parameters)
    if (p.type == Tag::Generator || p.name == "dropout_p" || p.name == "train" || p.name == "training")
      return true;
  return node.op->schema.name.starts_with("rand") || node.op->schema.name.starts_with("empty") ||
         node.op->schema.name.starts_with("new_empty");
}

Aliases::Aliases(const Graph& graph) : parent_(graph.values.size()), written_(graph.values.size(), false) {
  std::iota(parent_.begin(), parent_.end(), ValueId{0});
  std::unordered_map<std::string, ValueId> constants;
  for (const Node& node : graph.nodes) {
    if (node.is_constant() && !node.results.empty() && node.results[0] != kNoValue)
      join(constants.try_emplace(node.constant, node.results[0]).first->second, node.results[0]);
    if (!may_alias(node)) continue;
    ValueId first = kNoValue;
    auto add = [&](ValueId id) {
      if (id == kNoValue || !graph.values[id].type.is_tensor()) return;
      if (first == kNoValue) first = id;
      join(first, id);
    };
    for (size_t i = 0; i < node.arguments.size(); ++i)  // a write gives back what it wrote to
      if (!writes(node) || writes_to(node, i))
        each_use(node.arguments[i], [&](const Use& use) { add(use.id); });
    for (const ValueId id : node.results) add(id);
  }
  for (const Node& node : graph.nodes)
    for (size_t i = 0; i < node.arguments.size(); ++i)
      if (writes_to(node, i))
        each_use(node.arguments[i], [&](const Use& use) { written_[root(use.id)] = true; });
}

ValueId Aliases::root(ValueId v) {
  while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
  return v;
}
void Aliases::join(ValueId a, ValueId b) { parent_[root(a)] = root(b); }

bool Aliases::touches_written(const Node& node) {
  bool touches = false;
  for (const Argument& a : node.arguments) each_use(a, [&](const Use& use) { touches |= written(use.id); });
  for (const ValueId id : node.results) touches |= id != kNoValue && written(id);
  return touches;
}

std::vector<std::pair<std::string, std::string>> written_constants(const Graph& graph) {
  Aliases aliases(graph);
  std::vector<std::pair<std::string, std::string>> found;
  for (const Node& constant : graph.nodes) {
    if (!constant.is_constant() || constant.results.empty() || constant.results[0] == kNoValue) continue;
    const ValueId own = constant.results[0];
    for (const Node& node : graph.nodes) {
      bool hit = false;
      for (size_t i = 0; i < node.arguments.size() && aliases.written(own); ++i)
        if (writes_to(node, i))
          each_use(node.arguments[i], [&](const Use& use) { hit |= aliases.same(use.id, own); });
      if (!hit) continue;
      found.emplace_back(constant.constant, node.source);
      break;
    }
  }
  return found;
}

}  // namespace rushlight::jit
