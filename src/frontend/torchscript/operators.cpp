// Calls of the operator table from TorchScript: overloads are found by the arguments, as their schemas say.
#include <algorithm>
#include <forward_list>
#include <mutex>
#include <unordered_map>

#include "dispatch/table.h"
#include "frontend/torchscript/arguments.h"

namespace rushlight::jit {

// --- numbers that stand for types
namespace {
struct DTypeNumber {
  int64_t number;
  DType dtype;
};
constexpr DTypeNumber kDTypes[] = {
    {0, DType::UInt8},     {1, DType::Int8},         {2, DType::Int16},          {3, DType::Int32},
    {4, DType::Int64},     {5, DType::Float16},      {6, DType::Float32},        {7, DType::Float64},
    {8, DType::Complex32}, {9, DType::Complex64},    {10, DType::Complex128},    {11, DType::Bool},
    {15, DType::BFloat16}, {23, DType::Float8_e5m2}, {24, DType::Float8_e4m3fn}, {27, DType::UInt16},
    {28, DType::UInt32},   {29, DType::UInt64}};
constexpr Layout kLayouts[] = {Layout::Strided,   Layout::SparseCoo, Layout::SparseCsr, Layout::Strided,
                               Layout::SparseCsc, Layout::SparseBsr, Layout::SparseBsc};
}  // namespace

DType dtype_of_number(int64_t number) {
  const auto found = std::ranges::find(kDTypes, number, &DTypeNumber::number);
  if (found == std::end(kDTypes))
    RL_NOT_IMPLEMENTED("the dtype number ", number, " of TorchScript is not covered");
  return found->dtype;
}
int64_t number_of_dtype(DType dtype) {
  const auto found = std::ranges::find(kDTypes, dtype, &DTypeNumber::dtype);
  if (found == std::end(kDTypes)) RL_NOT_IMPLEMENTED("TorchScript has no number for ", dtype_name(dtype));
  return found->number;
}

// --- which operators there are
namespace {

struct Candidate {
  const Op* op;
  bool inplace;
};
// By their names in ATen: linalg_norm is norm of linalg; functions of nn come after operators proper.
class Index {
 public:
  const std::vector<Candidate>* find(std::string_view name) {
    const std::scoped_lock lock(mutex_);
    const auto& ops = operator_table().ops();
    for (; known_ < ops.size(); ++known_) add(ops[known_]);
    auto found = by_name_.find(std::string(name));
    if (found == by_name_.end()) found = by_name_.find(other_name(name));
    return found == by_name_.end() ? nullptr : &found->second;
  }

 private:
  // What Python's operator signs are called for tensors.
  static std::string other_name(std::string_view name) {
    static constexpr std::pair<std::string_view, std::string_view> names[] = {
        {"aten::__and__", "aten::bitwise_and"},
        {"aten::__iand__", "aten::bitwise_and_"},
        {"aten::__or__", "aten::bitwise_or"},
        {"aten::__ior__", "aten::bitwise_or_"},
        {"aten::__xor__", "aten::bitwise_xor"},
        {"aten::__ixor__", "aten::bitwise_xor_"},
        {"aten::__lshift__", "aten::bitwise_left_shift"},
        {"aten::__rshift__", "aten::bitwise_right_shift"},
        {"aten::__not__", "aten::logical_not"},
        {"aten::floordiv", "aten::floor_divide"}};
    for (const auto& [sign, meant] : names)
      if (sign == name) return std::string(meant);
    return {};
  }
  void add(const Op& op) {
    static constexpr std::string_view inside[] = {"", "nn", "aten", "linalg", "fft", "special"};
    const std::string_view space = op.schema.space;
    const bool own = std::ranges::find(inside, space) != std::end(inside);
    std::string name = own ? "aten::" : std::string(space) + "::";
    if (own && space.size() > 0 && space != "nn" && space != "aten") (name += space) += "_";
    name += op.schema.name;
    insert(name, {&op, false});
    if (op.has_inplace) insert(name + "_", {&op, true});
  }
  void insert(const std::string& name, Candidate c) {
    std::vector<Candidate>& list = by_name_[name];
    const bool is_function = c.op->schema.space == "nn";
    const auto at = std::ranges::find_if(list, [](const Candidate& o) { return o.op->schema.space == "nn"; });
    list.insert(is_function ? list.end() : at, c);
  }
  std::mutex mutex_;
  size_t known_ = 0;
  std::unordered_map<std::string, std::vector<Candidate>> by_name_;
};
Index& index() {
  static Index* const made = new Index;
  return *made;
}

// --- arguments as an operator takes them
class Binding {
 public:
  // What each parameter gets, or nothing where one does not fit. `cost` grows with every conversion.
  bool bind(const Op& op, const Arguments& arguments) {
    const auto& parameters = op.schema.parameters;
    if (arguments.values.size() > parameters.size()) return false;
    size_t used = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& p = parameters[i];
      const IValue* given = i < arguments.values.size() ? &arguments.values[i] : nullptr;
      if (given && p.keyword_only) ++cost;
      if (!given) {
        const auto found =
            std::ranges::find(arguments.named, p.name, &std::pair<std::string_view, IValue>::first);
        if (found != arguments.named.end()) given = &found->second, ++used;
      }
      if (given) {
        if (!convert(*given, p)) return false;
      } else if (p.has_default || p.type == Tag::Generator) {
        values.push_back(p.default_value);
      } else {
        return false;
      }
    }
    return used == arguments.named.size();
  }
  std::vector<Value> values;
  int cost = 0;

 private:
  bool put(Value v, int more = 0) {
    values.push_back(v), cost += more;
    return true;
  }
  bool convert(const IValue& v, const Parameter& p) {
    if (v.isNone()) return (p.optional || p.type == Tag::Generator) && put(Value());
    const bool is_number = v.isInt() || v.isDouble() || v.isBool() || v.isComplexDouble();
    switch (p.type) {
      case Tag::Tensor:
        if (v.isTensor()) return put(Value(v.toTensor()));
        return is_number && put(Value(keep(wrapped_number(v.toScalar()))), 10);
      case Tag::TensorList:
        return tensors(v, p);
      case Tag::Scalar:
        if (is_number) return put(Value(v.toScalar()));
        return v.isTensor() && v.toTensor().numel() == 1 && put(Value(v.toTensor().item()), 5);
      case Tag::Int:
        if (v.isInt()) return put(Value(v.toInt()));
        if (v.isBool()) return put(Value(static_cast<int64_t>(v.toBool())), 3);
        return v.isTensor() && v.toTensor().numel() == 1 && put(Value(to_integer(v)), 5);
      case Tag::Float:
        if (v.isDouble()) return put(Value(v.toDouble()));
        if (v.isInt()) return put(Value(v.toDouble()), 1);
        return v.isTensor() && v.toTensor().numel() == 1 && put(Value(to_real(v)), 5);
      case Tag::Bool:
        if (v.isBool()) return put(Value(v.toBool()));
        return v.isInt() && put(Value(v.toInt() != 0), 3);
      case Tag::IntList:
        return ints(v, p);
      case Tag::FloatList:
      case Tag::ScalarList:
      case Tag::BoolList:
        return numbers(v, p);
      case Tag::String:
        return v.isString() && put(Value(std::string_view(v.toStringRef())));
      case Tag::DType:
        return v.isInt() && put(Value(dtype_of_number(v.toInt())));
      case Tag::Layout:
        return v.isInt() && v.toInt() >= 0 && v.toInt() < std::ssize(kLayouts) &&
               put(Value(kLayouts[v.toInt()]));
      case Tag::MemoryFormat:
        return v.isInt() && v.toInt() >= 0 && v.toInt() < 4 &&
               put(Value(static_cast<MemoryFormat>(v.toInt())));
      case Tag::Device:
        if (v.isString()) return put(Value(Device::parse(v.toStringRef())));
        return v.isDevice() && put(Value(v.toDevice()));
      default:
        return false;
    }
  }
  const Tensor& keep(Tensor t) { return tensors_.emplace_front(1, std::move(t))[0]; }
  bool tensors(const IValue& v, const Parameter& p) {
    if (!v.isList() && !v.isTuple()) return false;
    std::vector<Tensor>& list = tensors_.emplace_front();
    for (const IValue& item : v.isList() ? v.toListRef() : v.toTupleRef().items) {
      if (!item.isTensor() && !(item.isNone() && p.elements_optional)) return false;
      list.push_back(item.isNone() ? Tensor() : item.toTensor());
    }
    return put(Value(TensorList(list)));
  }
  bool ints(const IValue& v, const Parameter& p) {
    if (!v.isList() && !v.isTuple()) {
      if (!p.list_length || !(v.isInt() || (v.isTensor() && v.toTensor().numel() == 1))) return false;
      const auto n = static_cast<size_t>(p.list_length);
      return put(Value(IntList(ints_.emplace_front(n, to_integer(v)))), 1);
    }
    std::vector<int64_t>& list = ints_.emplace_front();
    for (const IValue& item : v.isTuple() ? v.toTupleRef().items : v.toListRef()) {
      if (!item.isInt() && !item.isTensor()) return false;
      if (item.isTensor()) ++cost;
      list.push_back(to_integer(item));
    }
    if (p.list_length > 1 && list.size() == 1) list.resize(static_cast<size_t>(p.list_length), list[0]);
    return put(Value(IntList(list)));
  }
  bool numbers(const IValue& v, const Parameter& p) {
    if (!v.isList()) return false;
    const IValue::List& items = v.toListRef();
    const bool bools = p.type == Tag::BoolList;
    if (!std::ranges::all_of(items,
                             [&](const IValue& item) { return bools ? item.isBool() : item.isScalar(); }))
      return false;
    if (p.type == Tag::FloatList) {
      std::vector<double>& list = reals_.emplace_front();
      for (const IValue& item : items) list.push_back(to_real(item));
      return put(Value(FloatList(list)));
    }
    if (p.type == Tag::ScalarList) {
      std::vector<Scalar>& list = scalars_.emplace_front();
      for (const IValue& item : items) list.push_back(item.toScalar());
      return put(Value(ScalarList(list)));
    }
    std::unique_ptr<bool[]>& list = bools_.emplace_front(new bool[items.size() + 1]);
    for (size_t i = 0; i < items.size(); ++i) list[i] = items[i].toBool();
    return put(Value(std::span<const bool>(list.get(), items.size())));
  }
  std::forward_list<std::vector<Tensor>> tensors_;
  std::forward_list<std::vector<int64_t>> ints_;
  std::forward_list<std::vector<double>> reals_;
  std::forward_list<std::vector<Scalar>> scalars_;
  std::forward_list<std::unique_ptr<bool[]>> bools_;
};

IValue result_of(const Op& op, Results& r) {
  if (op.schema.returns.size() == 1 && op.schema.returns[0].type == Tag::TensorList)
    return IValue(IValue::List(r.list.begin(), r.list.end()), ivalue::Elements::Tensor);
  if (r.count == 1) return IValue(std::move(r.tensors[0]));
  if (r.count > 1) {
    IValue::List items;
    for (int i = 0; i < r.count; ++i) items.emplace_back(std::move(r.tensors[i]));
    return IValue(IValue::Tuple{std::move(items), {}, {}});
  }
  switch (r.plain.tag()) {
    case Tag::Bool:
      return IValue(r.plain.boolean());
    case Tag::Int:
      return IValue(r.plain.integer());
    case Tag::Float:
      return IValue(r.plain.floating());
    case Tag::Scalar:
      return IValue(r.plain.scalar());
    default:
      return IValue();
  }
}

IValue run(const Candidate& c, Binding& binding, const Tensor* out) {
  Results results;
  const Tensor self = c.inplace ? binding.values[0].tensor() : Tensor();
  call_boxed(*c.op, binding.values.data(), results, c.inplace ? &self : out, c.inplace);
  if (c.inplace) return IValue(self);
  return out ? IValue(*out) : result_of(*c.op, results);
}

[[noreturn, gnu::cold]] void refuse(std::string_view name, const Arguments& arguments,
                                    const std::vector<Candidate>& candidates) {
  std::string given, schemas;
  for (const IValue& v : arguments.values) given += (given.empty() ? "" : ", ") + std::string(v.kind());
  for (const auto& [word, v] : arguments.named) given += str(given.empty() ? "" : ", ", word, "=", v.kind());
  for (const Candidate& c : candidates) schemas += "\n  " + std::string(c.op->schema.text);
  RL_FAIL_AS(Type, name, ": the arguments (", given, ") fit none of", schemas);
}

}  // namespace

IValue call_table(std::string_view name, Arguments& arguments) {
  const std::vector<Candidate>* candidates = index().find(name);
  if (!candidates)
    RL_NOT_IMPLEMENTED(
        name, ": this operator of a TorchScript archive is not covered; export the model without it");
  // out= is not in the schemas.
  const auto given = std::ranges::find(arguments.named, "out", &std::pair<std::string_view, IValue>::first);
  std::optional<Tensor> out;
  if (given != arguments.named.end()) {
    out = given->second.toTensor();
    arguments.named.erase(given);
  }
  std::optional<Binding> best;
  const Candidate* chosen = nullptr;
  for (const Candidate& c : *candidates) {
    if (out && !c.op->has_out) continue;
    Binding binding;
    binding.values.reserve(c.op->schema.parameters.size());
    if (!binding.bind(*c.op, arguments)) continue;
    if (!chosen || binding.cost < best->cost) best = std::move(binding), chosen = &c;
    if (best->cost == 0) break;
  }
  if (!chosen) refuse(name, arguments, *candidates);
  return run(*chosen, *best, out ? &*out : nullptr);
}

// --- names
Callee find_callee(std::string_view space, std::string_view name) {
  static const auto* const builtins = [] {
    auto* map = new std::unordered_map<std::string_view, NamedBuiltin>;
    for (auto table : {number_builtins, text_builtins, sequence_builtins, container_builtins, tensor_builtins,
                       layer_builtins, builtins_then})
      for (const NamedBuiltin& b : table()) map->emplace(b.name, b);
    return map;
  }();
  Callee out{nullptr, std::string(space) + "::" + std::string(name)};
  if (const auto found = builtins->find(out.name); found != builtins->end()) out.builtin = &found->second;
  return out;
}

IValue call(const Callee& callee, Arguments& arguments) {
  const NamedBuiltin* b = callee.builtin;
  if (b && !(b->plain_only && arguments.has_tensors())) return b->run(arguments);
  return call_table(callee.name, arguments);
}

const IValue* Arguments::find(size_t position, std::string_view name) const {
  if (position < values.size()) return &values[position];
  const auto found = std::ranges::find(named, name, &std::pair<std::string_view, IValue>::first);
  return found == named.end() ? nullptr : &found->second;
}
bool Arguments::has_tensors() const {
  return std::ranges::any_of(values, [](const IValue& v) { return v.isTensor(); });
}

}  // namespace rushlight::jit
