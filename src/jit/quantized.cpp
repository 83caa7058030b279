// Quantised models as integers: what was written as steps between floats and integers becomes operators on
// integers, and quantised tensors become plain ones.
#include <algorithm>
#include <cmath>
#include <optional>

#include "jit/alias.h"
#include "jit/passes.h"
#include "ops/factory.h"

namespace rushlight::jit {
namespace {

// Integers that stand for numbers.
struct Integers {
  ValueId value;
  double scale;
  int64_t zero;
  DType dtype;
  bool means_the_same(const Integers& o) const {
    return scale == o.scale && zero == o.zero && dtype == o.dtype;
  }
};

struct Operators {
  const Op *quantize = find_operator("quantized_decomposed::quantize_per_tensor"),
           *dequantize = find_operator("quantized_decomposed::dequantize_per_tensor"),
           *dequantize_channels = find_operator("quantized_decomposed::dequantize_per_channel"),
           *quantize_tensor = find_operator("quantize_per_tensor"),
           *integers = find_operator("_quantized_integers"), *sum = find_operator("_quantized_sum"),
           *make = find_operator("_make_per_tensor_quantized_tensor"),
           *dequantize_tensor = find_operator("dequantize.self"), *int_repr = find_operator("int_repr"),
           *conv = find_operator("onednn::qconv_pointwise"),
           *linear = find_operator("onednn::qlinear_pointwise"), *transposed = find_operator("t"),
           *maximum = find_operator("clamp_min"), *view = find_operator("view"),
           *reshape = find_operator("reshape");
  bool complete() const {
    for (const Op* op : {quantize, dequantize, dequantize_channels, quantize_tensor, integers, sum, make,
                         dequantize_tensor, int_repr, conv, linear, transposed, maximum, view, reshape})
      if (!op) return false;
    return true;
  }
};

bool is_byte(DType dtype) { return dtype == DType::UInt8 || dtype == DType::Int8; }
int64_t lowest_of(DType dtype) { return dtype == DType::Int8 ? -128 : 0; }
int64_t highest_of(DType dtype) { return dtype == DType::Int8 ? 127 : 255; }

std::optional<double> number(const Argument& a) {
  if (const auto* d = a.get<double>()) return *d;
  if (const auto* i = a.get<int64_t>()) return static_cast<double>(*i);
  return std::nullopt;
}

bool is_called(const Node& node, std::string_view name) {
  return node.op && !node.inplace && node.op->schema.space.empty() && node.op->schema.name == name &&
         node.results.size() == 1 && node.results[0] != kNoValue;
}

bool is_layer(const Node& node) {
  return node.op && !node.inplace && node.op->traits.layer.weight >= 0 && node.results.size() == 1 &&
         node.results[0] != kNoValue;
}

// The only tensor operand of a node that moves or orders elements, so that integers may take it as well.
const Use* moved(const Node& node) {
  if (!node.op || node.inplace || node.op->mutated || node.op->traits.on_quantized != OnQuantized::Integers ||
      node.op->quantized_kernel || node.results.empty() || node.results[0] == kNoValue ||
      node.arguments.empty() ||
      std::ranges::count(node.results, kNoValue) != static_cast<int64_t>(node.results.size()) - 1 ||
      node.op->schema.returns.empty() || node.op->schema.returns[0].type != Tag::Tensor)
    return nullptr;
  const auto& parameters = node.op->schema.parameters;
  for (size_t i = 1; i < node.arguments.size(); ++i)
    if (!node.arguments[i].is_none() &&
        (parameters[i].type == Tag::Tensor || parameters[i].type == Tag::TensorList ||
         node.arguments[i].get<DType>()))
      return nullptr;
  return parameters[0].type == Tag::Tensor ? node.arguments[0].get<Use>() : nullptr;
}

class Rewriter {
 public:
  Rewriter(Graph& graph, Constants& constants) : graph_(graph), constants_(constants) {}
  bool needed() const {
    return ops_.complete() && std::ranges::any_of(graph_.nodes, [this](const Node& node) {
             return node.op && (node.op == ops_.quantize || node.op == ops_.dequantize ||
                                node.op == ops_.dequantize_channels || node.op == ops_.quantize_tensor ||
                                node.op == ops_.make);
           });
  }

  void run() {
    to_integers();
    eliminate_dead_code(graph_);
    quantize_early();
    fuse();
    for (Node& node : graph_.nodes)  // layers of integers lay out what they give in their own way
      if (node.op == ops_.view && layers_) node.op = ops_.reshape;
    eliminate_dead_code(graph_);
  }

 private:
  // --- making nodes

  ValueId add(std::string_view stem, ValueId like, DType dtype) {
    Type type = graph_.values[like].type;
    type.dtype = dtype;
    return graph_.add_value(graph_.fresh_name(stem), type);
  }
  static Node call(const Op* op, std::vector<Argument> arguments, ValueId result, std::string source) {
    Node node;
    node.op = op;
    node.arguments = std::move(arguments);
    node.results = {result};
    node.source = std::move(source);
    return node;
  }
  Node dequantizing(const Integers& q, ValueId result, std::string source) const {
    return call(
        ops_.dequantize,
        {{Use{q.value}}, {q.scale}, {q.zero}, {lowest_of(q.dtype)}, {highest_of(q.dtype)}, {q.dtype}, {}},
        result, std::move(source));
  }
  Node making(const Integers& q, ValueId result, std::string source) const {
    return call(ops_.make, {{Use{q.value}}, {q.scale}, {q.zero}}, result, std::move(source));
  }
  Node constant(std::string_view stem, Tensor tensor, ValueId& value) {
    Type type;
    type.kind = Type::Kind::Tensor;
    type.dtype = tensor.dtype();
    type.has_sizes = true;
    for (const int64_t n : tensor.sizes()) type.sizes.push_back(Size::number(n));
    value = graph_.add_value(graph_.fresh_name(stem), type);
    Node node;
    node.builtin = Builtin::Constant;
    node.constant = "quantized." + graph_.values[value].name;
    while (constants_.contains(node.constant)) node.constant += '_';
    node.results = {value};
    constants_.emplace(node.constant, std::move(tensor));
    return node;
  }

  // --- reading nodes

  // (operand, scale, zero point, least, most, dtype) of a node with settings that are numbers.
  std::optional<Integers> settings(const Node& node, const Op* op) const {
    if (node.op != op || node.results.size() != 1 || node.results[0] == kNoValue) return std::nullopt;
    const Use* of = node.arguments[0].get<Use>();
    const auto scale = number(node.arguments[1]);
    const auto* zero = node.arguments[2].get<int64_t>();
    if (!of || !scale || !zero || !(*scale > 0) || !std::isfinite(*scale)) return std::nullopt;
    return Integers{of->id, *scale, *zero, DType::UInt8};
  }
  std::optional<Integers> read_dequantize(const Node& node) const {
    auto q = settings(node, ops_.dequantize);
    if (!q) return std::nullopt;
    const auto* dtype = node.arguments[5].get<DType>();
    const auto* result = node.arguments[6].get<DType>();
    if (!dtype || !is_byte(*dtype) || (result && *result != DType::Float32)) return std::nullopt;
    q->dtype = *dtype;
    return q;
  }
  // `value` is the float that is quantised. The whole range of the dtype is used.
  std::optional<Integers> read_quantize(const Node& node) const {
    if (auto q = settings(node, ops_.integers)) {
      const auto* dtype = node.arguments[3].get<DType>();
      if (!dtype || !is_byte(*dtype)) return std::nullopt;
      q->dtype = *dtype;
      return q;
    }
    auto q = settings(node, ops_.quantize);
    if (!q) return std::nullopt;
    const auto* dtype = node.arguments[5].get<DType>();
    const auto *low = node.arguments[3].get<int64_t>(), *high = node.arguments[4].get<int64_t>();
    if (!dtype || !is_byte(*dtype) || !low || !high || *low != lowest_of(*dtype) ||
        *high != highest_of(*dtype))
      return std::nullopt;
    q->dtype = *dtype;
    return q;
  }

  // --- quantised tensors become integers, which moves of elements are done on

  void to_integers() {
    std::unordered_map<ValueId, Integers> numbers, quantized;
    std::unordered_map<ValueId, ValueId> same;
    std::vector<Node> nodes;
    const auto known = [](const auto& map, const Argument& a) -> const Integers* {
      const Use* use = a.get<Use>();
      const auto found = use ? map.find(use->id) : map.end();
      return found == map.end() ? nullptr : &found->second;
    };
    const auto keep_quantized = [&](const Integers& q, ValueId result, const std::string& source) {
      quantized.emplace(result, q);
      nodes.push_back(making(q, result, source));
    };
    for (Node& node : graph_.nodes) {
      for (Argument& a : node.arguments)
        each_use(a, [&](Use& u) {
          if (const auto found = same.find(u.id); found != same.end()) u.id = found->second;
        });
      if (node.op == ops_.make) {
        if (auto q = settings(node, ops_.make); q && is_byte(type_of(q->value).dtype)) {
          q->dtype = type_of(q->value).dtype;
          quantized.emplace(node.results[0], *q);
        }
      } else if (node.op == ops_.quantize_tensor) {
        auto q = settings(node, ops_.quantize_tensor);
        const auto* dtype = node.arguments[3].get<DType>();
        if (q && dtype && (*dtype == DType::QUInt8 || *dtype == DType::QInt8)) {
          q->dtype = *dtype == DType::QInt8 ? DType::Int8 : DType::UInt8;
          const ValueId from = q->value;
          q->value = add("integers", from, q->dtype);
          nodes.push_back(
              call(ops_.integers, {{Use{from}}, {q->scale}, {q->zero}, {q->dtype}}, q->value, node.source));
          keep_quantized(*q, node.results[0], node.source);
          continue;
        }
      } else if (node.op == ops_.int_repr || node.op == ops_.dequantize_tensor) {
        if (const Integers* q = known(quantized, node.arguments[0]); q && node.results[0] != kNoValue) {
          if (node.op == ops_.int_repr) {
            same.emplace(node.results[0], q->value);
            continue;
          }
          const Integers found = *q;
          numbers.emplace(node.results[0], found);
          nodes.push_back(dequantizing(found, node.results[0], node.source));
          continue;
        }
      } else if (const auto q = read_dequantize(node)) {
        numbers.emplace(node.results[0], *q);
      } else if (const auto to = read_quantize(node)) {
        const auto found = numbers.find(to->value);
        if (found != numbers.end() && found->second.means_the_same(*to)) {
          same.emplace(node.results[0], found->second.value);
          continue;
        }
      } else if (const Use* operand = moved(node)) {
        const Integers *of = known(numbers, {*operand}), *tensor = known(quantized, {*operand});
        if (const Integers* from = of ? of : tensor) {
          Integers q = *from;
          const auto kept = std::ranges::find_if(node.results, [](ValueId id) { return id != kNoValue; });
          const ValueId result = *kept;
          q.value = add("moved", result, q.dtype);
          node.arguments[0] = {Use{from->value}};
          *kept = q.value;
          const std::string source = node.source;
          nodes.push_back(std::move(node));
          if (of) {
            numbers.emplace(result, q);
            nodes.push_back(dequantizing(q, result, source));
          } else {
            keep_quantized(q, result, source);
          }
          continue;
        }
      } else if (is_called(node, "relu") && known(quantized, node.arguments[0])) {
        Integers q = *known(quantized, node.arguments[0]);
        const ValueId from = q.value;
        q.value = add("bounded", from, q.dtype);
        nodes.push_back(call(ops_.maximum, {{Use{from}}, {q.zero}}, q.value, node.source));
        keep_quantized(q, node.results[0], node.source);
        continue;
      }
      nodes.push_back(std::move(node));
    }
    for (Output& out : graph_.outputs)
      if (const auto found = same.find(out.value); found != same.end()) out.value = found->second;
    graph_.nodes = std::move(nodes);
  }

  // --- who makes and who uses a value

  void index() {
    uses_.assign(graph_.values.size(), 0);
    user_.assign(graph_.values.size(), 0);
    maker_.assign(graph_.values.size(), SIZE_MAX);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const Argument& a : graph_.nodes[i].arguments)
        each_use(a, [&](const Use& u) { ++uses_[u.id], user_[u.id] = i; });
      for (const ValueId id : graph_.nodes[i].results)
        if (id != kNoValue) maker_[id] = i;
    }
    for (const Output& out : graph_.outputs) uses_[out.value] += 2;  // not only one node's
  }
  const Type& type_of(ValueId id) const { return graph_.values[id].type; }
  const Node* maker(ValueId id) const { return maker_[id] == SIZE_MAX ? nullptr : &graph_.nodes[maker_[id]]; }
  std::optional<Integers> dequantized(ValueId id) const {
    const Node* node = maker(id);
    return node ? read_dequantize(*node) : std::nullopt;
  }

  // Floats that are moved, then quantised, are quantised first: moving bytes is less.
  void quantize_early() {
    index();
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      Node& last = graph_.nodes[i];
      const auto q = read_quantize(last);
      if (!q || uses_[q->value] != 1 || maker_[q->value] == SIZE_MAX) continue;
      const size_t before = maker_[q->value];
      Node& move = graph_.nodes[before];
      const Use* from = moved(move);
      if (!from || type_of(from->id).dtype != DType::Float32) continue;
      const ValueId integers = add("integers", from->id, q->dtype);
      uses_.push_back(1), user_.push_back(i), maker_.push_back(before);
      Node first = last;
      first.arguments[0] = {*from};
      const ValueId result = last.results[0];
      first.results = {integers};
      move.arguments[0] = {Use{integers}};
      std::ranges::replace(move.results, q->value, result);
      last = std::move(move);
      maker_[result] = i;
      graph_.nodes[before] = std::move(first);
    }
  }

  // --- layers

  // A weight of int8 with scales and zero points in tensors.
  struct Weight {
    ValueId integers;
    Argument scales, zeros;
  };
  std::optional<Weight> weight_of(ValueId id, std::vector<Node>& made, int64_t channels = 0) {
    const Node* node = maker(id);
    if (!node) return std::nullopt;
    if (node->op == ops_.dequantize_channels) {
      const auto* axis = node->arguments[3].get<int64_t>();
      const auto* dtype = node->arguments[6].get<DType>();
      const Use *integers = node->arguments[0].get<Use>(), *scales = node->arguments[1].get<Use>();
      const bool fits = axis && *axis == channels && dtype && *dtype == DType::Int8 && integers && scales;
      if (!fits || node->arguments[7].get<DType>()) return std::nullopt;
      Weight found{integers->id, {*scales}, node->arguments[2]};
      if (found.zeros.is_none()) found.zeros = {Use{one_number(0, DType::Int64, made)}};
      return found;
    }
    const auto q = read_dequantize(*node);
    if (!q || q->dtype != DType::Int8) return std::nullopt;
    Weight found{q->value, {}, {}};
    found.scales = {Use{one_number(q->scale, DType::Float32, made)}};
    found.zeros = {Use{one_number(static_cast<double>(q->zero), DType::Int64, made)}};
    return found;
  }
  ValueId one_number(double x, DType dtype, std::vector<Node>& made) {
    const Tensor t = empty_tensor(IntList{1}, dtype);
    if (dtype == DType::Float32)
      *static_cast<float*>(t.data_ptr()) = static_cast<float>(x);
    else
      *static_cast<int64_t*>(t.data_ptr()) = static_cast<int64_t>(x);
    ValueId value = kNoValue;
    made.push_back(constant("setting", t, value));
    return value;
  }

  size_t only_user(ValueId id) const { return uses_[id] == 1 && !gone_[user_[id]] ? user_[id] : SIZE_MAX; }

  // A vector that a node adds to a value's last dimension.
  const Use* vector_added(const Node& node, ValueId value) const {
    if (!is_called(node, "add") || node.arguments.size() != 3 || number(node.arguments[2]) != 1.0)
      return nullptr;
    const Use *a = node.arguments[0].get<Use>(), *b = node.arguments[1].get<Use>();
    if (!a || !b) return nullptr;
    const Use* other = a->id == value ? b : a;
    const Type &own = type_of(other->id), &type = type_of(value);
    const bool fits = own.dtype == DType::Float32 && own.has_sizes && own.sizes.size() == 1 &&
                      type.has_sizes && !type.sizes.empty() && own.sizes[0] == type.sizes.back();
    return fits ? other : nullptr;
  }

  // Whether a bound is one of the integers' range anyhow.
  static bool covers(const Node& node, const Integers& q) {
    const auto low = number(node.arguments[1]), high = number(node.arguments[2]);
    if (!low || !high) return false;
    const auto zero = static_cast<double>(q.zero);
    return std::nearbyint(*low / q.scale) + zero <= static_cast<double>(lowest_of(q.dtype)) &&
           std::nearbyint(*high / q.scale) + zero >= static_cast<double>(highest_of(q.dtype));
  }

  void fuse() {
    index();
    layers_ = std::ranges::any_of(graph_.nodes, [this](const Node& n) { return n.op == ops_.conv; });
    gone_.assign(graph_.nodes.size(), false);
    std::vector<std::vector<Node>> before(graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (is_layer(node)) fuse_layer(i, *node.op, before);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) fuse_sum(i);
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (Node& n : before[i]) nodes.push_back(std::move(n));
      if (!gone_[i]) nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

  // The weight of a layer on matrices as [in, out], which a node makes of [out, in].
  std::optional<Weight> matrix_of(ValueId id, bool turned, std::vector<Node>& made) {
    const Node* node = maker(id);
    std::optional<Weight> weight;
    if (!turned) {
      weight = weight_of(id, made);
    } else if (node && node->op == ops_.transposed) {
      weight = weight_of(node->arguments[0].get<Use>()->id, made);
    } else {
      return weight_of(id, made, 1);
    }
    if (!weight) return weight;
    const ValueId result = graph_.add_value(graph_.fresh_name("turned"));
    graph_.values[result].type.kind = Type::Kind::Tensor;
    made.push_back(call(ops_.transposed, {{Use{weight->integers}}}, result, {}));
    weight->integers = result;
    return weight;
  }

  void fuse_layer(size_t at, const Op& op, std::vector<std::vector<Node>>& before) {
    const std::vector<Argument> of = graph_.nodes[at].arguments;
    const LayerOperands& layer = op.traits.layer;
    const bool conv = op.family == Family::Window;
    const Use *input = of[static_cast<size_t>(layer.input())].get<Use>(),
              *filters = of[static_cast<size_t>(layer.weight)].get<Use>();
    if (!input || !filters) return;
    const auto x = dequantized(input->id);
    if (!x) return;
    Argument bias;
    if (layer.bias >= 0) bias = of[static_cast<size_t>(layer.bias)];
    if (conv) {
      const bool* transposed = of[6].get<bool>();
      if (!transposed || *transposed) return;
    } else if (layer.bias == 0) {  // beta * bias + alpha * product
      const Use* use = bias.get<Use>();
      if (number(of[3]) != 1.0 || number(of[4]) != 1.0 || !use || type_of(use->id).sizes.size() != 1) return;
    }
    std::vector<Node> made;
    const auto weight = conv ? weight_of(filters->id, made) : matrix_of(filters->id, layer.turned, made);
    if (!weight) return;
    // What follows.
    size_t last = at;
    ValueId value = graph_.nodes[at].results[0];
    if (const size_t next = only_user(value); !conv && bias.is_none() && next != SIZE_MAX)
      if (const Use* added = vector_added(graph_.nodes[next], value))
        bias = {*added}, last = next, value = graph_.nodes[next].results[0];
    bool relu = false;
    std::optional<Integers> out;
    if (const size_t next = only_user(value); next != SIZE_MAX && is_called(graph_.nodes[next], "relu"))
      relu = true, last = next, value = graph_.nodes[next].results[0];
    size_t next = only_user(value);
    if (!relu && next != SIZE_MAX && is_called(graph_.nodes[next], "hardtanh"))
      if (const size_t after = only_user(graph_.nodes[next].results[0]); after != SIZE_MAX)
        if (const auto q = read_quantize(graph_.nodes[after]); q && covers(graph_.nodes[next], *q))
          next = after;
    if (next != SIZE_MAX) out = read_quantize(graph_.nodes[next]);
    if (out) last = next, value = graph_.nodes[next].results[0];
    std::vector<Argument> arguments{{Use{x->value}}, {x->scale},    {x->zero}, {Use{weight->integers}},
                                    weight->scales,  weight->zeros, bias};
    if (conv) arguments.insert(arguments.end(), {of[3], of[4], of[5], of[8]});
    arguments.insert(arguments.end(), {{out ? out->scale : 1.0},
                                       {out ? out->zero : int64_t{0}},
                                       {out ? out->dtype : DType::Float32},
                                       {std::string(relu ? "relu" : "none")},
                                       {List{}},
                                       {std::string()}});
    const std::string source = graph_.nodes[at].source;
    for (size_t i = at, v = graph_.nodes[at].results[0]; i != last;) {
      gone_[i] = true;
      i = user_[v], v = graph_.nodes[i].results[0];
    }
    gone_[last] = false;
    graph_.nodes[last] = call(conv ? ops_.conv : ops_.linear, std::move(arguments), value, source);
    maker_[value] = last;
    layers_ = true;
    for (Node& n : made) before[last].push_back(std::move(n));
  }

  // A sum of two tensors of one shape, of which one was integers, and a bound after it.
  void fuse_sum(size_t at) {
    if (gone_[at]) return;
    const auto out = read_quantize(graph_.nodes[at]);
    if (!out || uses_[out->value] != 1) return;
    ValueId value = out->value;
    std::vector<size_t> parts;
    const Node* node = maker(value);
    const bool relu = node && is_called(*node, "relu");
    if (relu) {
      parts.push_back(maker_[value]);
      const Use* from = node->arguments[0].get<Use>();
      if (!from || uses_[from->id] != 1) return;
      value = from->id, node = maker(value);
    }
    if (!node || !is_called(*node, "add") || node->arguments.size() != 3 || number(node->arguments[2]) != 1.0)
      return;
    parts.push_back(maker_[value]);
    const Use *a = node->arguments[0].get<Use>(), *b = node->arguments[1].get<Use>();
    if (!a || !b) return;
    const Type &left = type_of(a->id), &right = type_of(b->id);
    if (left.dtype != DType::Float32 || right.dtype != DType::Float32 || !left.has_sizes ||
        !right.has_sizes || left.sizes != right.sizes || !std::ranges::all_of(left.sizes, &Size::known))
      return;
    const auto first = dequantized(a->id), second = dequantized(b->id);
    if (!first && !second) return;
    std::vector<Argument> arguments;
    for (const auto& [use, q] : {std::pair(a, first), std::pair(b, second)})
      arguments.insert(arguments.end(),
                       {{Use{q ? q->value : use->id}}, {q ? q->scale : 1.0}, {q ? q->zero : int64_t{0}}});
    arguments.insert(arguments.end(), {{out->scale}, {out->zero}, {out->dtype}, {relu}});
    for (const size_t i : parts) gone_[i] = true;
    Node& last = graph_.nodes[at];
    last = call(ops_.sum, std::move(arguments), last.results[0], last.source);
  }

  Graph& graph_;
  Constants& constants_;
  const Operators ops_;
  std::vector<uint32_t> uses_;
  std::vector<size_t> user_, maker_;
  std::vector<bool> gone_;
  bool layers_ = false;
};

}  // namespace

void fuse_quantized(Graph& graph, Constants& constants) {
  if (std::ranges::any_of(graph.nodes, writes)) return;
  Rewriter rewriter(graph, constants);
  if (rewriter.needed()) rewriter.run();
}

}  // namespace rushlight::jit
