#include "jit/step.h"

#include <algorithm>

#include "core/cpu_allocator.h"

namespace rushlight::jit {
namespace {

bool has_uses(const List& list) {
  return std::ranges::any_of(list, [](const Element& e) { return std::holds_alternative<Use>(e); });
}

Scalar number_of(const Element& e) {
  if (const bool* b = std::get_if<bool>(&e)) return *b;
  if (const int64_t* i = std::get_if<int64_t>(&e)) return *i;
  return std::get<double>(e);
}
Scalar scalar_of(const Argument& a) {
  if (const bool* b = a.get<bool>()) return Scalar(*b);
  if (const int64_t* i = a.get<int64_t>()) return Scalar(*i);
  if (const double* d = a.get<double>()) return Scalar(*d);
  return Scalar(*a.get<complex128>());
}

}  // namespace

// --- preparation

void Step::prepare(const Graph& graph) {
  if (!node->op) return;
  for (size_t i = 0; i < node->arguments.size(); ++i)
    add_argument(graph, node->arguments[i], node->op->schema.parameters[i]);
}

void Step::add_argument(const Graph& graph, const Argument& argument, const Parameter& parameter) {
  const size_t i = args.size();
  args.emplace_back();
  const List* list = argument.get<List>();
  if (const Use* use = argument.get<Use>())
    places.push_back({i, &parameter, use->id, !graph.values[use->id].type.is_tensor()});
  else if (list && has_uses(*list))
    places.push_back({i, &parameter, kNoValue, false, list});
  else
    args[i] = boxed(argument, parameter.type);
}

// A literal as the parameter wants it, in memory of the step's.
Value Step::boxed(const Argument& a, Tag type) {
  if (a.is_none()) return {};
  if (const List* list = a.get<List>()) return boxed_list(*list, type);
  if (const std::string* s = a.get<std::string>())
    return owned.emplace_back(Value(std::string_view(*s))).get();
  if (const DType* t = a.get<DType>()) return Value(*t);
  if (const Device* d = a.get<Device>()) return Value(*d);
  if (const Layout* l = a.get<Layout>()) return Value(*l);
  if (const MemoryFormat* f = a.get<MemoryFormat>()) return Value(*f);
  if (type == Tag::Tensor) return owned.emplace_back(Value(wrapped_number(scalar_of(a)))).get();
  if (type == Tag::Scalar) return Value(scalar_of(a));
  if (const bool* b = a.get<bool>()) return Value(*b);
  if (const int64_t* i = a.get<int64_t>()) return Value(*i);
  return Value(*a.get<double>());
}

Value Step::boxed_list(const List& list, Tag type) {
  if (type == Tag::IntList) {
    std::vector<int64_t> numbers;
    for (const Element& e : list) numbers.push_back(std::get<int64_t>(e));
    return owned.emplace_back(Value(IntList(numbers))).get();
  }
  if (type == Tag::FloatList) {
    std::vector<double> numbers;
    for (const Element& e : list) numbers.push_back(std::get<double>(e));
    return owned.emplace_back(Value(FloatList(numbers))).get();
  }
  if (type == Tag::ScalarList) {
    std::vector<Scalar> numbers;
    for (const Element& e : list) numbers.push_back(number_of(e));
    return owned.emplace_back(Value(ScalarList(numbers))).get();
  }
  if (type == Tag::BoolList) {
    std::unique_ptr<bool[]> flags(new bool[list.size() + 1]);
    for (size_t i = 0; i < list.size(); ++i) flags[i] = std::get<bool>(list[i]);
    return owned.emplace_back(Value(std::span<const bool>(flags.get(), list.size()))).get();
  }
  return owned.emplace_back(Value(TensorList())).get();
}

// A pointwise operator may write over its first operand if that is not used again.
void Step::find_reuse(const Graph& graph) {
  const Op* op = node->op;
  if (!op || node->inplace || op->family != Family::Pointwise || !op->has_inplace || op->mutated ||
      node->results.size() != 1 || node->results[0] == kNoValue || op->schema.returns.size() != 1)
    return;
  const Use* first = node->arguments[0].get<Use>();
  const Type& type = graph.values[node->results[0]].type;
  if (!first || !type.has_sizes || std::ranges::find(dying, first->id) == dying.end()) return;
  if (!graph.values[first->id].type.is_tensor() || std::ranges::count(graph.inputs, first->id)) return;
  int uses = 0;
  for (const Argument& a : node->arguments) each_use(a, [&](const Use& use) { uses += use == *first; });
  if (uses != 1) return;
  reuse = first->id;
  result_dtype = type.dtype;
}

// --- runs

// Operators may give no tensor where they could give one; a kernel must not meet that unprepared.
const Tensor& Step::tensor_of(const Place& place, ValueId id, bool optional, const Frame& frame) const {
  static const Tensor none;
  if (id == kNoValue) return none;
  const Tensor& t = frame.tensors[id];
  RL_CHECK(optional || t.defined(), "the argument '", place.parameter->name,
           "' is a tensor that was not computed");
  return t;
}

Value Step::list_of(const Place& place, Frame& frame) const {
  if (place.parameter->type == Tag::TensorList) {
    std::vector<Tensor>& list = frame.tensor_lists.emplace_back();
    for (const Element& e : *place.list)
      list.push_back(tensor_of(place, std::get<Use>(e).id, place.parameter->elements_optional, frame));
    return Value(TensorList(list));
  }
  std::vector<int64_t>& list = frame.int_lists.emplace_back();
  for (const Element& e : *place.list) {
    const Use* use = std::get_if<Use>(&e);
    list.push_back(use ? frame.numbers[use->id].to_int() : std::get<int64_t>(e));
  }
  return Value(IntList(list));
}

Value Step::value_of(const Place& place, Frame& frame) const {
  if (place.list) return list_of(place, frame);
  if (!place.number) return Value(tensor_of(place, place.value, place.parameter->optional, frame));
  const Scalar& number = frame.numbers[place.value];
  switch (place.parameter->type) {
    case Tag::Int:
      return Value(number.to_int());
    case Tag::Float:
      return Value(number.to_double());
    case Tag::Bool:
      return Value(number.to<bool>());
    case Tag::Scalar:
      return Value(number);
    default:
      return Value(frame.wrapped.emplace_back(wrapped_number(number)));
  }
}

const std::vector<Value>& Step::fill(Frame& frame) const {
  if (places.empty()) return args;
  frame.tensor_lists.clear();
  frame.int_lists.clear();
  frame.wrapped.clear();
  frame.wrapped.reserve(places.size());
  frame.args = args;
  for (const Place& place : places) frame.args[place.index] = value_of(place, frame);
  return frame.args;
}

int64_t Step::compute_size(const Frame& frame) const {
  auto integer = [&](size_t i) {
    const Use* use = node->arguments[i].get<Use>();
    return use ? frame.numbers[use->id].to_int() : *node->arguments[i].get<int64_t>();
  };
  const int64_t b = integer(1);
  if (node->builtin == Builtin::Size) {
    const Tensor& t = frame.tensors[node->arguments[0].get<Use>()->id];
    RL_CHECK(t.defined(), "the size of a tensor that was not computed");
    return t.size(b);
  }
  const int64_t a = integer(0);
  int64_t result = 0;
  bool overflow = false;
  switch (node->builtin) {
    case Builtin::Add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Builtin::Sub:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Builtin::Mul:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Builtin::Max:
      result = std::max(a, b);
      break;
    case Builtin::Min:
      result = std::min(a, b);
      break;
    default:
      RL_CHECK_VALUE(b != 0, "a size divided by zero");
      overflow = a == INT64_MIN && b == -1;
      if (!overflow) result = a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
  RL_CHECK_VALUE(!overflow, "sizes of this model overflow");
  return result;
}

void Step::run(Frame& frame) const {
  if (node->is_constant() || node->is_state()) return;
  try {
    if (node->op)
      call(frame);
    else
      frame.numbers[node->results[0]] = Scalar(compute_size(frame));
  } catch (const Error& e) {
    const std::string where = node->source.empty() ? std::string() : str(", ", node->source);
    throw Error(e.kind(), str(e.what(), " (in the graph's ", node->name(), where, ")"));
  }
  for (const ValueId id : dying) frame.tensors[id].reset();
}

void Step::call(Frame& frame) const {
  const Op& op = *node->op;
  const std::vector<Value>& args = fill(frame);
  Results results;
  if (node->inplace) {
    const Tensor target = args[0].tensor();
    call_boxed(op, args.data(), results, &target, true);
  } else if (may_reuse(frame, args)) {
    const Tensor target = std::move(frame.tensors[reuse]);
    call_boxed(op, args.data(), results, &target, true);
    ++frame.reused;
  } else {
    call_boxed(op, args.data(), results);
  }
  keep_results(frame, results);
}

// Writing over an operand is exact when nobody else sees it and the result has its dtype and sizes.
bool Step::may_reuse(const Frame& frame, const std::vector<Value>& args) const {
  if (reuse == kNoValue) return false;
  const Tensor& operand = frame.tensors[reuse];
  if (operand->use_count() != 1 || operand->storage->use_count() != 1 || !operand.is_contiguous() ||
      operand->storage->read_only() || operand->view_base || operand.dtype() != result_dtype)
    return false;
  for (const Value& v : args) {
    if (v.tag() != Tag::Tensor || v.is_none()) continue;
    const Tensor& t = v.tensor();
    if (t.dtype() != operand.dtype() && !t.is_wrapped_number()) return false;
    if (t.sizes() == operand.sizes()) continue;
    if (t.dim() > operand.dim()) return false;
    const IntList whole = operand.sizes().slice(operand.sizes().size() - t.sizes().size());
    for (size_t d = 0; d < whole.size(); ++d)
      if (t.sizes()[d] != whole[d] && t.sizes()[d] != 1) return false;
  }
  return true;
}

void Step::keep_results(Frame& frame, Results& results) const {
  const auto& returns = node->op->schema.returns;
  if (node->results.empty() || returns.empty()) return;
  if (returns[0].type == Tag::TensorList) {
    RL_CHECK(results.list.size() == node->results.size(), node->name(), " gave ", results.list.size(),
             " tensors, but the graph takes ", node->results.size());
    for (size_t i = 0; i < node->results.size(); ++i)
      if (node->results[i] != kNoValue) frame.tensors[node->results[i]] = std::move(results.list[i]);
  } else if (returns[0].type == Tag::Tensor) {
    for (size_t i = 0; i < node->results.size(); ++i)
      if (node->results[i] != kNoValue) frame.tensors[node->results[i]] = std::move(results.tensors[i]);
  } else if (node->results[0] != kNoValue) {
    frame.numbers[node->results[0]] = results.plain.scalar();
  }
}

StorageSource* Frame::planned(const MemoryPlan& plan) {
  if (!arena || arena->nbytes() < plan.arena_bytes) {
    constexpr size_t kLarge = size_t{16} << 20;
    arena.reset();                                      // before the new one is made
    if (plan.arena_bytes >= kLarge) cpu_empty_cache();  // of what the run used that was recorded
    arena = make_ref<Arena>(plan.arena_bytes);
  }
  source = std::make_unique<PlannedMemory>(plan, *arena);
  ran_planned = true;
  return source.get();
}

}  // namespace rushlight::jit
