#include "jit/passes.h"

#include <algorithm>
#include <unordered_set>

#include "jit/alias.h"

namespace rushlight::jit {
namespace {

// --- functionalize

// Whether the form that gives a new tensor gives one of the operand's dtype.
bool same_dtype_without(const Graph& graph, const Node& node) {
  const Type& own = graph.values[node.arguments[0].get<Use>()->id].type;
  bool same = own.is_tensor() && own.has_sizes && is_floating(own.dtype);
  for (size_t i = 1; i < node.arguments.size(); ++i)
    each_use(node.arguments[i], [&](const Use& use) {
      const Type& type = graph.values[use.id].type;
      // A dtype of no dimensions counts for less only beside one that has some.
      const bool yields = type.sizes.empty() && !own.sizes.empty();
      if (type.is_tensor()) same &= type.has_sizes && (type.dtype == own.dtype || yields);
    });
  return same && !node.op->traits.gives_bool;
}

}  // namespace

// A write may become a new value where no other value shares the memory so far. Views that are taken later
// are views of the new value.
void functionalize(Graph& graph) {
  std::vector<ValueId> current(graph.values.size());  // what stands for a value now
  for (ValueId id = 0; id < current.size(); ++id) current[id] = id;
  std::vector<bool> shared(graph.values.size(), false);
  for (const ValueId id : graph.inputs) shared[id] = true;
  for (Node& node : graph.nodes) {
    for (Argument& a : node.arguments) each_use(a, [&](Use& use) { use.id = current[use.id]; });
    const ValueId own = node.inplace ? node.arguments[0].get<Use>()->id : kNoValue;
    if (node.inplace && node.op->family == Family::Pointwise && !shared[own] &&
        same_dtype_without(graph, node)) {
      if (node.results.empty()) node.results.push_back(kNoValue);
      if (node.results[0] == kNoValue) {
        node.results[0] = graph.add_value(graph.fresh_name("written"), graph.values[own].type);
        current.push_back(node.results[0]);
        shared.push_back(false);
      }
      node.inplace = false;
      std::ranges::replace(current, own, node.results[0]);
    } else if (node.is_constant() || node.is_state() || may_alias(node)) {
      for (const Argument& a : node.arguments) each_use(a, [&](const Use& use) { shared[use.id] = true; });
      for (const ValueId id : node.results)
        if (id != kNoValue) shared[id] = true;
    }
  }
  for (Output& out : graph.outputs) out.value = current[out.value];
}

// --- dead code

namespace {

// Called to refuse some values: without a result, and it writes nothing.
bool checks(const Node& node) {
  if (!node.op || !node.op->schema.returns.empty()) return false;
  for (size_t p = 0; p < node.arguments.size(); ++p)
    if (writes_to(node, p)) return false;
  return true;
}

}  // namespace

void eliminate_dead_code(Graph& graph) {
  Aliases aliases(graph);
  std::vector<bool> live(graph.values.size(), false);  // used by what is kept
  std::vector<bool> live_memory(graph.values.size(), false);
  auto use_value = [&](ValueId id) { live[id] = live_memory[aliases.representative(id)] = true; };
  for (const Output& out : graph.outputs) use_value(out.value);
  for (const ValueId id : graph.inputs) live_memory[aliases.representative(id)] = true;  // writes are seen
  for (const Node& node : graph.nodes)
    if (node.is_state() && !node.results.empty() && node.results[0] != kNoValue)
      live_memory[aliases.representative(node.results[0])] = true;  // by later runs
  std::vector<bool> kept(graph.nodes.size(), false);
  for (bool changed = true; changed;) {  // what is kept may read memory that an earlier node writes
    changed = false;
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      if (kept[i]) continue;
      bool needed = (node.op && node.op->made_in_python) || checks(node);
      for (const ValueId id : node.results) needed |= id != kNoValue && live[id];
      for (size_t p = 0; p < node.arguments.size() && !needed; ++p)
        if (writes_to(node, p))
          each_use(node.arguments[p],
                   [&](const Use& use) { needed |= live_memory[aliases.representative(use.id)]; });
      if (!needed) continue;
      kept[i] = changed = true;
      for (const Argument& a : node.arguments) each_use(a, [&](const Use& use) { use_value(use.id); });
    }
  }
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (kept[i]) nodes.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(nodes);
  for (Node& node : graph.nodes)
    for (ValueId& id : node.results)
      if (id != kNoValue && !live[id]) id = kNoValue;
}

// --- common subexpressions

void eliminate_common_subexpressions(Graph& graph) {
  Aliases aliases(graph);
  std::vector<ValueId> same(graph.values.size());
  for (ValueId id = 0; id < same.size(); ++id) same[id] = id;
  std::unordered_multimap<std::string, size_t> seen;  // by name, to nodes that may be equal
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    for (Argument& a : node.arguments) each_use(a, [&](Use& use) { use.id = same[use.id]; });
    if (may_differ(node) || writes(node) || aliases.touches_written(node)) continue;
    // Chains of long names would make this quadratic, so the first operand is part of the key.
    std::string key = node.name() + node.constant;
    for (const Argument& a : node.arguments) each_use(a, [&](const Use& use) { key += str(" ", use.id); });
    const auto [first, last] = seen.equal_range(key);
    const auto found = std::find_if(first, last, [&](const auto& entry) {
      const Node& other = graph.nodes[entry.second];
      return other.arguments == node.arguments && other.results.size() == node.results.size();
    });
    if (found == last) {
      seen.emplace(std::move(key), i);
      continue;
    }
    Node& other = graph.nodes[found->second];
    for (size_t k = 0; k < node.results.size(); ++k) {
      if (node.results[k] == kNoValue) continue;
      if (other.results[k] == kNoValue)
        other.results[k] = node.results[k];
      else
        same[node.results[k]] = other.results[k];
      node.results[k] = kNoValue;
    }
  }
  for (Output& out : graph.outputs) out.value = same[out.value];
  eliminate_dead_code(graph);
}

void optimize(Graph& graph, Constants& constants) {
  functionalize(graph);
  eliminate_dead_code(graph);
  eliminate_common_subexpressions(graph);
  fuse_quantized(graph, constants);
  fold_constants(graph, constants);
  fold_batch_norm(graph, constants);
  eliminate_dead_code(graph);
  const std::vector<std::string> names = graph.constants();
  const std::unordered_set<std::string> read(names.begin(), names.end());
  std::erase_if(constants, [&](const auto& entry) { return !read.contains(entry.first); });
}

}  // namespace rushlight::jit
