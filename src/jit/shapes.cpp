// Shape propagation: the graph runs on tensors without data, so that kernels say what they would give.
#include <algorithm>

#include "jit/passes.h"
#include "jit/step.h"

namespace rushlight::jit {
namespace {

using Shapes = std::vector<Tensor>;  // by value; undefined where nothing is known

int64_t at(const Size& size, const std::vector<int64_t>& symbols) {
  return size.symbol < 0 ? size.offset
                         : size.factor * symbols[static_cast<size_t>(size.symbol)] + size.offset;
}

Tensor without_data(const Tensor& t) {
  return empty_strided_tensor(t.sizes(), t.strides(), t.dtype(), DeviceType::Meta);
}

Tensor state_without_data(const Type& type, const std::vector<int64_t>& symbols) {
  RL_CHECK(type.has_sizes && std::ranges::all_of(type.sizes, &Size::known), "a state of unknown sizes");
  Dims sizes;
  for (const Size& s : type.sizes) sizes.push_back(at(s, symbols));
  return empty_tensor(sizes, type.dtype, DeviceType::Meta);
}

// All values at these sizes of the symbols.
Shapes run_without_data(const Graph& graph, const Constants& constants, const std::vector<int64_t>& symbols) {
  Frame frame;
  frame.tensors.resize(graph.values.size());
  frame.numbers.resize(graph.values.size());
  std::vector<bool> known(graph.values.size(), false);
  for (const ValueId id : graph.inputs) {
    const Type& type = graph.values[id].type;
    if (!type.has_sizes) continue;
    Dims sizes;
    for (const Size& s : type.sizes) sizes.push_back(s.known ? at(s, symbols) : 1);
    if (std::ranges::any_of(type.sizes, [](const Size& s) { return !s.known; })) continue;
    frame.tensors[id] = empty_tensor(sizes, type.dtype, DeviceType::Meta);
    known[id] = true;
  }
  for (const Node& node : graph.nodes) {
    bool ready = true;
    for (const Argument& a : node.arguments) each_use(a, [&](const Use& use) { ready &= known[use.id]; });
    if (!ready) continue;
    Step step;
    step.node = &node;
    step.prepare(graph);
    try {
      if (const auto found = constants.find(node.constant); node.is_constant() && found != constants.end())
        frame.tensors[node.results.at(0)] = without_data(found->second);
      else if (node.is_state() && !node.results.empty() && node.results[0] != kNoValue)
        frame.tensors[node.results[0]] = state_without_data(graph.values[node.results[0]].type, symbols);
      else
        step.run(frame);
    } catch (const Error&) {
      continue;  // needs data
    }
    for (const ValueId id : node.results) {
      if (id == kNoValue) continue;
      // A factory makes a tensor with data where it names the CPU.
      Tensor& t = frame.tensors[id];
      known[id] = t.defined() || !graph.values[id].type.is_tensor();
      if (t.defined() && !t.device().is_meta()) t = without_data(t);
    }
  }
  return frame.tensors;
}

}  // namespace

void propagate_shapes(Graph& graph, const Constants& constants) {
  const GradMode no_grad(false);
  std::vector<int64_t> symbols;
  for (const Symbol& s : graph.symbols) symbols.push_back(s.example);
  const Shapes base = run_without_data(graph, constants, symbols);
  for (ValueId id = 0; id < base.size(); ++id) {
    Type& type = graph.values[id].type;
    if (!base[id].defined() || is_special(base[id].dtype()) || std::ranges::count(graph.inputs, id)) continue;
    type.kind = Type::Kind::Tensor;
    type.dtype = base[id].dtype();
    type.has_sizes = true;
    type.sizes.clear();
    for (const int64_t n : base[id].sizes()) type.sizes.push_back(Size::number(n));
  }
  // A symbol one larger, then two: what grows by the same both times is a multiple of it.
  for (size_t s = 0; s < symbols.size(); ++s) {
    Shapes grown[2];
    for (int64_t step = 1; step <= 2; ++step) {
      std::vector<int64_t> other = symbols;
      other[s] += step;
      grown[step - 1] = run_without_data(graph, constants, other);
    }
    for (ValueId id = 0; id < base.size(); ++id) {
      if (!base[id].defined() || std::ranges::count(graph.inputs, id)) continue;
      Type& type = graph.values[id].type;
      const bool same_rank = grown[0][id].defined() && grown[1][id].defined() &&
                             grown[0][id].dim() == base[id].dim() && grown[1][id].dim() == base[id].dim();
      for (size_t d = 0; d < type.sizes.size(); ++d) {
        Size& size = type.sizes[d];
        if (!same_rank) size = Size::unknown();
        if (!size.known) continue;
        const int64_t n = base[id].sizes()[d], first = grown[0][id].sizes()[d] - n;
        if (grown[1][id].sizes()[d] - n != 2 * first || (first != 0 && size.symbol >= 0))
          size = Size::unknown();
        else if (first != 0)
          size = {static_cast<int32_t>(s), true, first, n - first * symbols[s]};
      }
    }
  }
}

}  // namespace rushlight::jit
