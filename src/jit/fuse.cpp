// What follows a convolution becomes a part of it, so that its result is written once.
#include <algorithm>
#include <limits>
#include <optional>

#include "jit/alias.h"
#include "jit/passes.h"

namespace rushlight::jit {
namespace {

struct Bounds {
  double low, high;
};

std::optional<double> number(const Argument& a) {
  if (const auto* d = a.get<double>()) return *d;
  if (const auto* i = a.get<int64_t>()) return static_cast<double>(*i);
  return std::nullopt;
}

class ConvolutionFuser {
 public:
  explicit ConvolutionFuser(Graph& graph)
      : graph_(graph),
        uses_(graph.values.size(), 0),
        user_(graph.values.size(), 0),
        gone_(graph.nodes.size(), false) {
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (const Argument& a : graph.nodes[i].arguments)
        each_use(a, [&](const Use& u) { ++uses_[u.id], user_[u.id] = i; });
    for (const Output& out : graph.outputs) uses_[out.value] += 2;  // not only one node's
  }

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (!gone_[i] && is_convolution(graph_.nodes[i])) fuse(i);
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (!gone_[i]) nodes.push_back(std::move(graph_.nodes[i]));
    graph_.nodes = std::move(nodes);
  }

 private:
  enum : size_t {
    kInput,
    kWeight,
    kBias,
    kStride,
    kPadding,
    kDilation,
    kTransposed,
    kOutputPadding,
    kGroups
  };

  bool is_called(const Node& node, std::string_view name) const {
    return node.op && node.op->schema.name == name && node.results.size() == 1 && node.results[0] != kNoValue;
  }
  const Type& type_of(ValueId id) const { return graph_.values[id].type; }

  bool is_convolution(const Node& node) const {
    if (!is_called(node, "convolution")) return false;
    const bool* transposed = node.arguments[kTransposed].get<bool>();
    const Type& type = type_of(node.results[0]);
    return transposed && !*transposed && type.has_sizes && type.sizes.size() == 4 &&
           type.dtype == DType::Float32;
  }
  // The node that alone uses a value, unless it is a part of another one by now.
  size_t only_user(ValueId id) const { return uses_[id] == 1 && !gone_[user_[id]] ? user_[id] : SIZE_MAX; }

  // The other operand of a plain sum of two values of one type.
  const Use* residual(const Node& node, ValueId value) const {
    if (!is_called(node, "add") || node.arguments.size() != 3 || number(node.arguments[2]) != 1.0)
      return nullptr;
    const Use *a = node.arguments[0].get<Use>(), *b = node.arguments[1].get<Use>();
    if (!a || !b || a->id == b->id) return nullptr;
    const Use* other = a->id == value ? b : a;
    const Type &type = type_of(value), &own = type_of(other->id);
    const bool fits = own.is_tensor() && own.dtype == type.dtype && own.has_sizes &&
                      own.sizes == type.sizes && std::ranges::all_of(own.sizes, &Size::known);
    return fits ? other : nullptr;
  }
  std::optional<Bounds> bounds(const Node& node) const {
    if (is_called(node, "relu")) return Bounds{0, std::numeric_limits<double>::infinity()};
    if (!is_called(node, "hardtanh")) return std::nullopt;
    const auto low = number(node.arguments[1]), high = number(node.arguments[2]);
    return low && high && *low <= *high ? std::optional(Bounds{*low, *high}) : std::nullopt;
  }

  void fuse(size_t at) {
    size_t last = at;
    Argument sum;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Bounds limits{-kInfinity, kInfinity};
    ValueId value = graph_.nodes[at].results[0];
    if (const size_t next = only_user(value); next != SIZE_MAX)
      if (const Use* other = residual(graph_.nodes[next], value)) {
        sum = {*other};
        last = next, value = graph_.nodes[next].results[0];
      }
    if (const size_t next = only_user(value); next != SIZE_MAX)
      if (const auto found = bounds(graph_.nodes[next])) {
        limits = *found;
        last = next, value = graph_.nodes[next].results[0];
      }
    if (last == at) return;
    std::vector<Argument>& of = graph_.nodes[at].arguments;
    Node fused;
    fused.op = epilogue_;
    fused.arguments = {of[kInput],  of[kWeight], of[kBias], of[kStride], of[kPadding], of[kDilation],
                       of[kGroups], {},          {},        sum,         {limits.low}, {limits.high}};
    fused.results = {value};
    fused.source = std::move(graph_.nodes[at].source);
    for (size_t i = at, v = graph_.nodes[at].results[0]; i != last;) {
      gone_[i] = true;
      i = user_[v], v = graph_.nodes[i].results[0];
    }
    graph_.nodes[last] = std::move(fused);
  }

  Graph& graph_;
  const Op* epilogue_ = find_operator("_convolution_epilogue");
  std::vector<uint32_t> uses_;
  std::vector<size_t> user_;
  std::vector<bool> gone_;
};

// The operator that gives the first result of `op` alone, of the arguments that both have, or null.
const Op* without_positions(const Op& op) {
  constexpr std::string_view kSuffix = "_with_indices";
  std::string_view name = op.schema.name;
  if (!name.ends_with(kSuffix)) return nullptr;
  name.remove_suffix(kSuffix.size());
  const Op* alone = find_operator(name);
  if (!alone || alone->schema.returns.size() != 1 || alone->schema.returns[0].type != Tag::Tensor)
    return nullptr;
  const auto &wanted = alone->schema.parameters, &own = op.schema.parameters;
  const bool same = wanted.size() <= own.size() &&
                    std::equal(wanted.begin(), wanted.end(), own.begin(), [](const auto& a, const auto& b) {
                      return a.name == b.name && a.type == b.type;
                    });
  return same ? alone : nullptr;
}

}  // namespace

void leave_out_positions(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (!node.op || node.results.size() != 2 || node.results[1] != kNoValue) continue;
    if (const Op* alone = without_positions(*node.op)) {
      node.arguments.resize(std::min(node.arguments.size(), alone->schema.parameters.size()));
      node.results.resize(1);
      node.op = alone;
    }
  }
}

void fuse_convolutions(Graph& graph) {
  if (std::ranges::any_of(graph.nodes, writes)) return;  // what is read later may not be what was read then
  ConvolutionFuser(graph).run();
}

}  // namespace rushlight::jit
