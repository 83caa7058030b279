#include "jit/bind.h"

#include "jit/words.h"

namespace rushlight::jit {
namespace {

bool is_number(const Literal& l) {
  return std::holds_alternative<bool>(l) || std::holds_alternative<int64_t>(l) ||
         std::holds_alternative<double>(l) || std::holds_alternative<complex128>(l);
}

// The same content as an argument; words have none.
Argument plain(Literal literal) {
  return std::visit(
      [](auto& content) -> Argument {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(content)>, Word>)
          return {};
        else
          return {std::move(content)};
      },
      literal);
}

}  // namespace

ArgumentBinder::ArgumentBinder(const Graph& graph, const Op& op)
    : graph_(graph),
      op_(op),
      arguments_(op.schema.parameters.size()),
      given_(op.schema.parameters.size(), false) {}

void ArgumentBinder::refuse(const Parameter& p) const {
  RL_FAIL_AS(Value, op_.schema.name, ": the argument '", p.name, "' does not fit ", op_.schema.text);
}

void ArgumentBinder::positional(Literal literal) {
  RL_CHECK_VALUE(next_ < arguments_.size() && !op_.schema.parameters[next_].keyword_only, op_.schema.name,
                 ": too many positional arguments for ", op_.schema.text);
  put(next_++, std::move(literal));
}

void ArgumentBinder::named(std::string_view name, Literal literal) {
  const int i = op_.schema.index_of(name);
  RL_CHECK_VALUE(i >= 0, op_.schema.name, ": no parameter is named '", name, "' in ", op_.schema.text);
  put(static_cast<size_t>(i), std::move(literal));
}

void ArgumentBinder::put(size_t i, Literal literal) {
  const Parameter& p = op_.schema.parameters[i];
  RL_CHECK_VALUE(!given_[i], op_.schema.name, ": the argument '", p.name, "' is given twice");
  given_[i] = true;
  arguments_[i] = bind(p, std::move(literal));
}

std::vector<Argument> ArgumentBinder::finish() {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (given_[i]) continue;
    const Parameter& p = op_.schema.parameters[i];
    RL_CHECK_VALUE(p.has_default || p.type == Tag::Generator, op_.schema.name, ": missing argument '", p.name,
                   "' of ", op_.schema.text);
    arguments_[i] = argument_of(p.default_value);
  }
  return std::move(arguments_);
}

// Whether a value computed by another node may stand for a parameter of this type. What a Scalar result is
// shows when it is computed.
bool ArgumentBinder::fits(const Use& use, Tag tag) const {
  using Kind = Type::Kind;
  const Kind kind = graph_.values[use.id].type.kind;
  switch (tag) {
    case Tag::Tensor:
    case Tag::Scalar:
      return tag == Tag::Tensor || kind != Kind::Tensor;
    case Tag::TensorList:
      return kind == Kind::Tensor;
    case Tag::Int:
    case Tag::IntList:
      return kind == Kind::Int || kind == Kind::Unknown;
    case Tag::Float:
      return kind == Kind::Int || kind == Kind::Float || kind == Kind::Unknown;
    case Tag::Bool:
      return kind == Kind::Bool || kind == Kind::Unknown;
    default:
      return false;
  }
}

Argument ArgumentBinder::bind(const Parameter& p, Literal literal) const {
  if (std::holds_alternative<std::monostate>(literal)) {
    if (!p.optional && p.type != Tag::Generator) refuse(p);
    return {};
  }
  if (const Word* word = std::get_if<Word>(&literal)) return bind_word(p, word->text);
  const bool list = p.type == Tag::TensorList || p.type == Tag::IntList || p.type == Tag::FloatList ||
                    p.type == Tag::ScalarList || p.type == Tag::BoolList;
  if (list) return bind_list(p, std::move(literal));
  bool good = false;
  if (const Use* use = std::get_if<Use>(&literal)) {
    good = fits(*use, p.type);
  } else if (p.type == Tag::Tensor || p.type == Tag::Scalar) {
    good = is_number(literal);
  } else if (p.type == Tag::Float && std::holds_alternative<int64_t>(literal)) {
    return {static_cast<double>(std::get<int64_t>(literal))};
  } else if (p.type == Tag::Int && std::holds_alternative<bool>(literal)) {
    return {static_cast<int64_t>(std::get<bool>(literal))};
  } else if (p.type == Tag::Device && std::holds_alternative<std::string>(literal)) {
    return {Device::parse(std::get<std::string>(literal))};
  } else {
    good = (p.type == Tag::Int && std::holds_alternative<int64_t>(literal)) ||
           (p.type == Tag::Float && std::holds_alternative<double>(literal)) ||
           (p.type == Tag::Bool && std::holds_alternative<bool>(literal)) ||
           (p.type == Tag::String && std::holds_alternative<std::string>(literal));
  }
  if (!good) refuse(p);
  return plain(std::move(literal));
}

Argument ArgumentBinder::bind_list(const Parameter& p, Literal literal) const {
  if (p.type == Tag::IntList && p.list_length > 0) {  // one number for all
    if (const int64_t* one = std::get_if<int64_t>(&literal))
      return {List(static_cast<size_t>(p.list_length), *one)};
  }
  List* list = std::get_if<List>(&literal);
  if (!list) refuse(p);
  for (Element& e : *list) {
    if (const Use* use = std::get_if<Use>(&e)) {
      if (use->id == kNoValue ? !p.elements_optional : !fits(*use, p.type)) refuse(p);
      continue;
    }
    if (p.type == Tag::FloatList && std::holds_alternative<int64_t>(e))
      e = static_cast<double>(std::get<int64_t>(e));
    const bool good = p.type == Tag::ScalarList ||  // any number but a complex one, which no element holds
                      (p.type == Tag::IntList && std::holds_alternative<int64_t>(e)) ||
                      (p.type == Tag::FloatList && std::holds_alternative<double>(e)) ||
                      (p.type == Tag::BoolList && std::holds_alternative<bool>(e));
    if (!good) refuse(p);
  }
  return {std::move(*list)};
}

Argument ArgumentBinder::bind_word(const Parameter& p, std::string_view word) const {
  if (p.type == Tag::DType) {
    if (const auto found = dtype_argument(word)) return {*found};
  } else if (p.type == Tag::Layout) {
    if (const auto found = word_in<Layout>(kLayouts, word)) return {*found};
  } else if (p.type == Tag::MemoryFormat) {
    if (const auto found = word_in<MemoryFormat>(kMemoryFormats, word)) return {*found};
  } else if (p.type == Tag::Device) {
    return {Device::parse(word)};
  }
  refuse(p);
}

}  // namespace rushlight::jit
