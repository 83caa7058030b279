#include "jit/alias.h"

#include <numeric>

namespace rushlight::jit {

bool may_alias(const Node& node) {
  return node.op && (node.inplace || node.op->traits.aliasing != Aliasing::Fresh);
}

namespace {

// Parameters whose operands the node writes to.
uint64_t written_parameters(const Node& node) {
  if (!node.op) return 0;
  uint64_t written = node.op->mutated | (node.inplace ? 1 : 0);
  const UnmarkedWrites& unmarked = node.op->traits.unmarked_writes;
  const bool* where = unmarked.where < 0 ? nullptr : node.arguments[unmarked.where].get<bool>();
  if (!where || *where) written |= unmarked.parameters;
  return written;
}

}  // namespace

bool writes_to(const Node& node, size_t parameter) {
  return parameter < 64 && (written_parameters(node) >> parameter & 1);
}
bool writes(const Node& node) { return written_parameters(node) != 0; }

bool may_differ(const Node& node) {
  return node.op && (node.op->traits.random || node.op->traits.uninitialized);
}

Aliases::Aliases(const Graph& graph) : parent_(graph.values.size()), written_(graph.values.size(), false) {
  std::iota(parent_.begin(), parent_.end(), ValueId{0});
  std::unordered_map<std::string, ValueId> constants, states;
  for (const Node& node : graph.nodes) {
    if ((node.is_constant() || node.is_state()) && !node.results.empty() && node.results[0] != kNoValue) {
      auto& names = node.is_state() ? states : constants;
      join(names.try_emplace(node.constant, node.results[0]).first->second, node.results[0]);
    }
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
