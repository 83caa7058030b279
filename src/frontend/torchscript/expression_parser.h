// Reads expressions of TorchScript code, with the types and the variables that stand in them.
#pragma once
#include <limits>
#include <map>

#include "frontend/torchscript/lexer.h"
#include "frontend/torchscript/syntax.h"

namespace rushlight::jit {

// The operators that stand between or before operands, loosest first.
struct Infix {
  std::string_view symbol, name;
  int strength;
};
inline constexpr Infix kInfix[] = {
    {"==", "eq", 1},         {"!=", "ne", 1},       {"<", "lt", 1},        {"<=", "le", 1},
    {">", "gt", 1},          {">=", "ge", 1},       {"is", "__is__", 1},   {"in", "__contains__", 1},
    {"|", "__or__", 2},      {"^", "__xor__", 3},   {"&", "__and__", 4},   {"<<", "__lshift__", 5},
    {">>", "__rshift__", 5}, {"+", "add", 6},       {"-", "sub", 6},       {"*", "mul", 7},
    {"/", "div", 7},         {"//", "floordiv", 7}, {"%", "remainder", 7}, {"@", "matmul", 7},
};

class ExpressionParser {
 public:
  ExpressionParser(std::string_view code, const std::string& file, const std::vector<IValue>& constants,
                   int64_t version)
      : file_(file), constants_(constants), tokens_(split_into_tokens(code, file)), version_(version) {}

 protected:
  using Kind = Expression::Kind;
  using Word = Token::Kind;

  // --- words
  const Token& word(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is(Word kind) const { return word().kind == kind; }
  bool at(std::string_view text, size_t ahead = 0) const {
    const Token& w = word(ahead);
    return (w.kind == Word::Name || w.kind == Word::Symbol) && w.text == text;
  }
  bool take(Word kind) { return is(kind) && ++at_; }
  bool take(std::string_view text) { return at(text) && ++at_; }
  void expect(std::string_view text) {
    if (!take(text)) fail(str("expected '", text, "'"));
  }
  void expect(Word kind, const char* what) {
    if (!take(kind)) fail(str("expected ", what));
  }
  std::string name() {
    if (!is(Word::Name)) fail("expected a name");
    return tokens_[at_++].text;
  }
  [[noreturn]] void fail(const std::string& what) const {
    const std::string near = word().text.empty() ? "" : str(" near '", word().text, "'");
    RL_FAIL_AS(NotImplemented, "jit.load: ", file_, ":", word().line, ": ", what, near);
  }
  struct Deeper {
    explicit Deeper(ExpressionParser& p) : parser(p) {
      if (++parser.depth_ > 1000) parser.fail("the code is nested too deeply");
    }
    ~Deeper() { --parser.depth_; }
    ExpressionParser& parser;
  };
  // --- types
  TypeName type() {
    const Deeper deeper(*this);
    TypeName out;
    if (take("(")) {  // Tuple[()]
      expect(")");
      return out;
    }
    if (is(Word::Text)) {
      out.name = tokens_[at_++].text;
      return out;
    }
    out.name = name();
    while (take(".")) out.name += "." + name();
    if (take("[")) {
      while (!take("]")) {
        out.arguments.push_back(type());
        if (!at("]")) expect(",");
      }
    }
    return out;
  }

  // --- variables
  struct Variable {
    int slot = 0, loop = 0;        // `loop`: in which it was first bound
    Expression* reader = nullptr;  // the last one, where it stands, and the loop it is in
    size_t reader_at = 0;
    int reader_loop = 0;
  };
  void begin_function() {
    variables_.clear(), paths_.clear(), inner_.clear();
    loop_ = 0, loops_ = 0, slots_ = 0;
  }
  int slot_of(const std::string& name) {
    const auto [found, fresh] = variables_.try_emplace(name);
    if (fresh) found->second = {slots_++, loop_};
    paths_.erase(name);
    return found->second.slot;
  }
  // What was read since a word is not evaluated in the order of the text.
  void keep_values(size_t since) {
    for (auto& [name, v] : variables_)
      if (v.reader && v.reader_at >= since) v.reader_loop = -1;
  }
  // --- expressions
  ExpressionPtr make(Kind kind) const {
    auto e = std::make_unique<Expression>();
    e->kind = kind, e->line = word().line;
    return e;
  }
  ExpressionPtr made_constant(IValue value) const {
    ExpressionPtr e = make(Kind::Constant);
    e->value = std::move(value);
    return e;
  }
  ExpressionPtr made_operator(std::string_view space, std::string_view name) const {
    ExpressionPtr e = make(Kind::Operator);
    const std::string now = str(space, "::", name);
    const std::string_view then = name_then(now, version_);
    const size_t colons = then.find("::");
    e->callee = find_callee(then.substr(0, colons), then.substr(colons + 2));
    return e;
  }
  template <class... Items>
  ExpressionPtr with(ExpressionPtr e, Items... items) const {
    (e->items.push_back(std::move(items)), ...);
    return e;
  }

  ExpressionPtr expression() {
    const Deeper deeper(*this);
    const size_t begin = at_;
    ExpressionPtr value = either();
    if (!take("if")) return value;
    ExpressionPtr condition = either();
    keep_values(begin);
    expect("else");
    return with(make(Kind::Conditional), std::move(value), std::move(condition), expression());
  }
  // a, b without brackets is a tuple.
  ExpressionPtr expressions() {
    ExpressionPtr first = expression();
    if (!at(",")) return first;
    ExpressionPtr e = with(make(Kind::Tuple), std::move(first));
    while (take(",") && !is(Word::Line)) e->items.push_back(expression());
    return e;
  }
  ExpressionPtr either() {
    ExpressionPtr left = both();
    while (take("or")) left = with(make(Kind::Or), std::move(left), both());
    return left;
  }
  ExpressionPtr both() {
    ExpressionPtr left = negation();
    while (take("and")) left = with(make(Kind::And), std::move(left), negation());
    return left;
  }
  ExpressionPtr negation() {
    const Deeper deeper(*this);
    if (take("not")) return with(make(Kind::Not), negation());
    return infix(1);
  }
  ExpressionPtr infix(int strength) {
    if (strength > 7) return prefix();
    const size_t begin = at_;
    ExpressionPtr left = infix(strength + 1);
    while (true) {
      const bool negated = strength == 1 && at("not") && at("in", 1);
      if (negated) ++at_;
      const Infix* found = nullptr;
      for (const Infix& i : kInfix)
        if (i.strength == strength && at(i.symbol)) found = &i;
      if (!found) return left;
      ++at_;
      const bool is_not = found->symbol == "is" && take("not");
      ExpressionPtr right = infix(strength + 1);
      ExpressionPtr made = made_operator("aten", is_not ? "__isnot__" : found->name);
      const bool swapped = found->symbol == "in";
      if (swapped) keep_values(begin);
      left = swapped ? with(std::move(made), std::move(right), std::move(left))
                     : with(std::move(made), std::move(left), std::move(right));
      if (negated) left = with(make(Kind::Not), std::move(left));
    }
  }
  ExpressionPtr prefix() {
    const Deeper deeper(*this);
    if (take("+")) return prefix();
    if (take("~")) return with(made_operator("aten", "bitwise_not"), prefix());
    if (!take("-")) return power();
    if (is(Word::Integer) && !at("**", 1)) return made_constant(integer("-" + tokens_[at_++].text));
    ExpressionPtr operand = prefix();
    if (operand->kind == Kind::Constant && operand->value.isDouble())
      return made_constant(-operand->value.toDouble());
    if (operand->kind == Kind::Constant && operand->value.isComplexDouble())
      return made_constant(-operand->value.toComplexDouble());
    return with(made_operator("aten", "neg"), std::move(operand));
  }
  ExpressionPtr power() {
    ExpressionPtr left = postfix();
    if (!take("**")) return left;
    return with(made_operator("aten", "pow"), std::move(left), prefix());
  }
  IValue integer(const std::string& digits) const {
    errno = 0;
    const long long v = std::strtoll(digits.c_str(), nullptr, 10);
    if (errno) fail("a number does not fit 64 bits");
    return IValue(static_cast<int64_t>(v));
  }

  ExpressionPtr postfix() {
    ExpressionPtr e = primary();
    while (true) {
      if (take(".")) {
        ExpressionPtr outer = make(Kind::Attribute);
        outer->name = name();
        if (at("(")) outer->kind = Kind::Method, outer->callee = find_callee("aten", outer->name);
        e = with(std::move(outer), std::move(e));
        if (take("(")) arguments(*e);
      } else if (take("[")) {
        e = in_brackets(std::move(e));
      } else {
        return e;
      }
    }
  }
  // What stands in brackets behind a value: its item, or places of it.
  ExpressionPtr in_brackets(ExpressionPtr base) {
    ExpressionPtr e = with(make(Kind::Places), std::move(base));
    do {
      if (at("]")) break;
      e->items.push_back(place());
    } while (take(","));
    expect("]");
    const Kind only = e->items.size() == 2 ? e->items[1]->kind : Kind::Slice;
    if (only == Kind::Constant && !e->items[1]->value.isNone()) e->kind = Kind::Subscript;
    return e;
  }
  ExpressionPtr place() {
    if (at(".") && at(".", 1) && at(".", 2)) {
      at_ += 3;
      return make(Kind::Rest);
    }
    ExpressionPtr first = at(":") ? made_constant(IValue()) : expression();
    if (!at(":")) return first;
    ExpressionPtr e = with(make(Kind::Slice), std::move(first));
    while (e->items.size() < 3) {
      const bool there = take(":") && !at(":") && !at(",") && !at("]");
      e->items.push_back(there ? expression() : made_constant(IValue()));
    }
    return e;
  }
  // A name, or several that take the items of a value: a, (b, c)
  Target target() {
    Target out = one_target();
    if (!at(",")) return out;
    Target all{-1, {}};
    all.items.push_back(std::move(out));
    while (take(",") && (is(Word::Name) || at("(")) && !at("in")) all.items.push_back(one_target());
    return all;
  }
  Target one_target() {
    const Deeper deeper(*this);
    if (!take("(")) return {slot_of(name()), {}};
    Target out = target();
    expect(")");
    if (out.slot >= 0) return out;
    return out;
  }
  // How many words ahead the `for` of a list or dictionary stands that is being read; 0 where there is none.
  size_t comprehension() const {
    int depth = 0;
    for (size_t i = 0;; ++i) {
      const Token& w = word(i);
      if (w.kind == Word::End || w.kind == Word::Line) return 0;
      if (depth == 0 && i > 0 && at("for", i)) return i;
      if (w.kind != Word::Symbol) continue;
      if (w.text == "(" || w.text == "[" || w.text == "{") ++depth;
      if ((w.text == ")" || w.text == "]" || w.text == "}") && depth-- == 0) return 0;
      if (w.text == "," && depth == 0) return 0;
    }
  }
  // What is collected stands before what it is made of, and is read after it.
  ExpressionPtr collected(size_t ahead, std::string_view end) {
    const size_t begin = at_;
    at_ += ahead;
    expect("for");
    const int around = std::exchange(loop_, ++loops_);
    ExpressionPtr e = make(Kind::Collected);
    e->target = target();
    expect("in");
    e->items.push_back(expression());
    const size_t behind = at_;
    at_ = begin;
    e->items.push_back(expression());
    if (end == "}") expect(":"), e->items.push_back(expression());
    at_ = behind;
    expect(end);
    loop_ = around;
    keep_values(begin);
    return e;
  }
  void arguments(Expression& e) {
    while (!take(")")) {
      if (is(Word::Name) && at("=", 1)) {
        std::string word = name();
        expect("=");
        e.named.emplace_back(std::move(word), expression());
      } else {
        e.items.push_back(item());
      }
      if (!at(")")) expect(",");
    }
  }
  ExpressionPtr primary() {
    const Deeper deeper(*this);
    if (is(Word::Integer)) return made_constant(integer(tokens_[at_++].text));
    if (is(Word::Real)) return made_constant(IValue(std::strtod(tokens_[at_++].text.c_str(), nullptr)));
    if (is(Word::Imaginary))
      return made_constant(std::complex<double>(0, std::strtod(tokens_[at_++].text.c_str(), nullptr)));
    if (is(Word::Text)) {
      std::string text = tokens_[at_++].text;
      while (is(Word::Text)) text += tokens_[at_++].text;
      return made_constant(IValue(std::move(text)));
    }
    if (take("[")) {
      if (const size_t ahead = comprehension()) return collected(ahead, "]");
      return items(make(Kind::List), "]");
    }
    if (take("{")) {
      if (const size_t ahead = comprehension()) return collected(ahead, "}");
      ExpressionPtr e = make(Kind::Dict);
      while (!take("}")) {
        e->items.push_back(expression()), expect(":");
        e->items.push_back(expression());
        if (!at("}")) expect(",");
      }
      return e;
    }
    if (take("(")) {
      if (take(")")) return make(Kind::Tuple);
      ExpressionPtr first = expression();
      if (take(")")) return first;
      expect(",");
      return items(with(make(Kind::Tuple), std::move(first)), ")");
    }
    return named();
  }
  // An argument, or an item of a list, or all items of a value: *pair
  ExpressionPtr item() { return take("*") ? with(make(Kind::Spread), prefix()) : expression(); }
  ExpressionPtr items(ExpressionPtr e, std::string_view end) {
    while (!take(end)) {
      e->items.push_back(item());
      if (!at(end)) expect(",");
    }
    return e;
  }

  ExpressionPtr named() {
    const std::string first = name();
    if (const auto found = variables_.find(first); found != variables_.end()) {
      ExpressionPtr e = make(Kind::Local);
      e->slot = found->second.slot, e->name = first;
      found->second.reader = e.get(), found->second.reader_at = at_, found->second.reader_loop = loop_;
      if (at("(")) fail(str("'", first, "' is no function"));
      return e;
    }
    if (const auto found = paths_.find(first); found != paths_.end()) return path_call(found->second);
    if (first == "True" || first == "False") return made_constant(IValue(first == "True"));
    if (first == "None") return made_constant(IValue());
    if (first == "inf") return made_constant(std::numeric_limits<double>::infinity());
    if (first == "nan") return made_constant(std::numeric_limits<double>::quiet_NaN());
    if (at(".")) return path(first);
    if (!at("(")) fail(str("the name '", first, "' is not known"));
    return function_of_the_language(first);
  }
  ExpressionPtr path(const std::string& first) {
    std::vector<std::string> parts = {first};
    while (take(".")) parts.push_back(name());
    if (first == "CONSTANTS" && parts.size() == 2 && parts[1][0] == 'c') {
      const size_t i = static_cast<size_t>(std::atoll(parts[1].c_str() + 1));
      if (i >= constants_.size()) fail("there is no such constant");
      return made_constant(constants_[i]);
    }
    if (first == "__torch__") {
      std::string dotted = parts[0];
      const bool fresh = parts.back() == "__new__";
      for (size_t i = 1; i + fresh < parts.size(); ++i) dotted += "." + parts[i];
      if (!fresh) return path_call(dotted);
      ExpressionPtr e = make(Kind::New);
      e->name = dotted;
      expect("("), type(), expect(")");
      return e;
    }
    const bool is_operator = (first == "torch" && parts.size() == 2) || (first == "ops" && parts.size() == 3);
    if (!is_operator || !at("(")) fail("this name is not known");
    expect("(");
    ExpressionPtr e = made_operator(first == "torch" ? "aten" : parts[1], parts.back());
    arguments(*e);
    return e;
  }
  ExpressionPtr path_call(const std::string& dotted) {
    ExpressionPtr e = make(at("(") ? Kind::CallPath : Kind::EnumMember);
    e->name = dotted;
    if (take("(")) arguments(*e);
    return e;
  }
  ExpressionPtr function_of_the_language(const std::string& function) {
    expect("(");
    if (function == "annotate" || function == "unchecked_cast" || function == "uninitialized") {
      TypeName kind = type();
      if (function == "uninitialized") {
        expect(")");
        return make(Kind::Uninitialized);
      }
      expect(",");
      ExpressionPtr e = expression();
      take(","), expect(")");
      if (e->kind == Kind::List) e->types.push_back(std::move(kind));
      return e;
    }
    if (function == "getattr") {
      ExpressionPtr e = make(Kind::Attribute);
      e->items.push_back(expression());
      expect(",");
      if (!is(Word::Text)) fail("expected the name of an attribute");
      e->name = tokens_[at_++].text;
      take(","), expect(")");
      if (take("(")) {
        e->kind = Kind::Method;
        arguments(*e);
      }
      return e;
    }
    if (function == "isinstance") {
      ExpressionPtr e = make(Kind::IsInstance);
      e->items.push_back(expression());
      expect(",");
      const bool several = take("(");
      do e->types.push_back(type());
      while (several && take(",") && !at(")"));
      if (several) expect(")");
      take(","), expect(")");
      return e;
    }
    if (function == "fork") {
      ExpressionPtr e = make(Kind::Fork);
      const auto found = inner_.find(name());
      if (found == inner_.end()) fail("this function cannot be run by fork");
      e->slot = found->second;
      expect(")");
      return e;
    }
    ExpressionPtr e = made_operator("python", function);
    for (const std::string_view space : {"prim", "aten"})
      if (!e->callee.builtin) e = made_operator(space, function);
    if (!e->callee.builtin) fail(str("the function '", function, "' is not known"));
    arguments(*e);
    return e;
  }

  const std::string& file_;
  const std::vector<IValue>& constants_;
  std::vector<Token> tokens_;
  int64_t version_;  // of the archive
  size_t at_ = 0;
  int depth_ = 0;
  // Of the function that is read: its variables, names for functions and classes, functions inside.
  std::map<std::string, Variable> variables_;
  std::map<std::string, std::string> paths_;
  std::map<std::string, int> inner_;
  int loop_ = 0, loops_ = 0, slots_ = 0;
};

}  // namespace rushlight::jit
