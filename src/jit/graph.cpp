#include "jit/graph.h"

#include <mutex>
#include <unordered_set>

namespace rushlight::jit {

std::string Node::name() const {
  static constexpr std::string_view builtins[] = {"",         "constant", "sym::size",     "sym::add",
                                                  "sym::sub", "sym::mul", "sym::floordiv", "sym::max",
                                                  "sym::min", "state"};
  if (!op) return std::string(builtins[static_cast<int>(builtin)]);
  const Schema& s = op->schema;
  std::string full = s.space.empty() ? std::string(s.name) : str(s.space, "::", s.name);
  if (inplace) full += '_';
  if (!s.overload.empty()) full += str(".", s.overload);
  return full;
}

ValueId Graph::add_value(std::string name, Type type) {
  values.push_back({std::move(name), std::move(type)});
  return static_cast<ValueId>(values.size() - 1);
}

std::string Graph::fresh_name(std::string_view stem) const {
  std::unordered_set<std::string_view> taken;
  for (const ValueInfo& v : values) taken.insert(v.name);
  std::string name(stem);
  for (int i = 1; taken.contains(name); ++i) name = str(stem, "_", i);
  return name;
}

namespace {

std::vector<std::string> held_names(const Graph& graph, Builtin kind) {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  for (const Node& node : graph.nodes)
    if (node.builtin == kind && seen.insert(node.constant).second) names.push_back(node.constant);
  return names;
}

}  // namespace

std::vector<std::string> Graph::constants() const { return held_names(*this, Builtin::Constant); }
std::vector<std::string> Graph::states() const { return held_names(*this, Builtin::State); }

std::string Graph::size_text(const Size& size) const {
  if (!size.known) return "?";
  if (size.symbol < 0) return str(size.offset);
  const std::string& name = symbols[static_cast<size_t>(size.symbol)].name;
  std::string text = size.factor == 1 ? name : str(size.factor, "*", name);
  if (size.offset > 0) text += '+';
  return size.offset ? str(text, size.offset) : text;
}

std::string Graph::type_text(const Type& type) const {
  static constexpr std::string_view kinds[] = {"", "", "int", "float", "bool"};
  if (!type.is_tensor()) return std::string(kinds[static_cast<int>(type.kind)]);
  std::string text(dtype_name(type.dtype));
  if (!type.has_sizes) return text;
  text += '[';
  for (size_t i = 0; i < type.sizes.size(); ++i) text += (i ? ", " : "") + size_text(type.sizes[i]);
  return text + ']';
}

Argument argument_of(const Value& value) {
  List list;
  switch (value.tag()) {
    case Tag::Bool:
      return {value.boolean()};
    case Tag::Int:
      return {value.integer()};
    case Tag::Float:
      return {value.floating()};
    case Tag::Scalar: {
      const Scalar s = value.scalar();
      if (s.is_bool()) return {s.to<bool>()};
      if (s.is_integral()) return {s.to_int()};
      if (s.is_complex()) return {s.to<complex128>()};
      return {s.to_double()};
    }
    case Tag::IntList:
      for (const int64_t i : value.ints()) list.emplace_back(i);
      return {std::move(list)};
    case Tag::FloatList:
      for (const double d : value.floats()) list.emplace_back(d);
      return {std::move(list)};
    case Tag::BoolList:
      for (const bool b : value.bools()) list.emplace_back(b);
      return {std::move(list)};
    case Tag::TensorList:
      return {std::move(list)};
    case Tag::String:
      return {std::string(value.string())};
    case Tag::DType:
      return {value.dtype()};
    case Tag::Device:
      return {value.device()};
    case Tag::Layout:
      return {value.layout()};
    case Tag::MemoryFormat:
      return {value.memory_format()};
    default:
      return {};
  }
}

namespace {

// Operators by full name; grows when programs add operators.
class Index {
 public:
  const Op* find(std::string_view full) {
    const auto& ops = operator_table().ops();
    std::lock_guard lock(mutex_);
    for (; seen_ < ops.size(); ++seen_) {
      const Schema& s = ops[seen_].schema;
      std::string name = s.space.empty() ? std::string(s.name) : str(s.space, "::", s.name);
      if (!s.overload.empty()) name += str(".", s.overload);
      by_name_.try_emplace(std::move(name), &ops[seen_]);
    }
    const auto found = by_name_.find(std::string(full));
    return found == by_name_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  size_t seen_ = 0;
  std::unordered_map<std::string, const Op*> by_name_;
};

}  // namespace

const Op* find_operator(std::string_view full_name) {
  static Index& index = *new Index;
  return index.find(full_name);
}

}  // namespace rushlight::jit
