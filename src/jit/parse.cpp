#include <unordered_map>

#include "jit/bind.h"
#include "jit/lexer.h"
#include "jit/text.h"
#include "jit/words.h"

namespace rushlight::jit {
namespace {

constexpr size_t kMaxDims = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text), token_(lexer_.next()) {}

  Graph run() {
    version();
    while (skip_lines(), token_.is_word("symbol")) symbol();
    signature();
    while (skip_lines(), !token_.is_word("return")) statement();
    outputs();
    skip_lines();
    if (!token_.is(Token::Kind::End)) lexer_.fail("text after the end of the graph");
    return std::move(graph_);
  }

 private:
  using Kind = Token::Kind;

  // --- tokens
  Token advance() { return std::exchange(token_, lexer_.next()); }
  bool accept(std::string_view mark) {
    if (!token_.is_mark(mark)) return false;
    advance();
    return true;
  }
  void expect(std::string_view mark) {
    if (!accept(mark)) lexer_.fail(str("expected '", mark, "'"));
  }
  void expect_word(std::string_view word) {
    if (!token_.is_word(word)) lexer_.fail(str("expected '", word, "'"));
    advance();
  }
  Token expect(Kind kind, std::string_view what) {
    if (!token_.is(kind)) lexer_.fail(str("expected ", what));
    return advance();
  }
  void skip_lines() {
    while (token_.is(Kind::NewLine) || token_.is(Kind::Comment)) advance();
  }
  void end_line() {
    if (token_.is(Kind::Comment)) advance();
    if (!token_.is(Kind::End)) expect(Kind::NewLine, "the end of the line");
  }
  template <class F>  // errors of what knows no lines
  auto at_this_line(F&& f) {
    try {
      return f();
    } catch (const Error& e) {
      if (std::string_view(e.what()).starts_with("graph text, line")) throw;
      lexer_.fail(e.what());
    }
  }

  // --- the head
  void version() {
    skip_lines();
    expect_word("rushlight");
    expect_word("graph");
    const int64_t version = expect(Kind::Integer, "the version of the text").integer;
    if (version != kTextVersion)
      lexer_.fail(str("version ", version, " of the text, but this program reads version ", kTextVersion));
    end_line();
  }

  void symbol() {
    advance();
    Symbol s;
    s.name = expect(Kind::Word, "the name of a symbol").text;
    expect("=");
    s.example = size_number();
    expect_word("in");
    expect("[");
    s.lower = size_number();
    expect(",");
    if (token_.is(Kind::Float) && token_.text == "inf")
      advance();
    else
      s.upper = size_number();
    expect("]");
    end_line();
    if (!symbols_.try_emplace(s.name, graph_.symbols.size()).second)
      lexer_.fail(str("the symbol ", s.name, " is there twice"));
    graph_.symbols.push_back(std::move(s));
  }
  int64_t size_number() {
    const int64_t n = expect(Kind::Integer, "a size").integer;
    if (n < 0) lexer_.fail("a size below zero");
    return n;
  }

  void signature() {
    expect_word("graph");
    expect("(");
    while (!accept(")")) {
      const std::string name(expect(Kind::Value, "an input").text);
      Type type;
      if (accept(":")) type = parse_type();
      if (type.kind == Type::Kind::Unknown) type.kind = Type::Kind::Tensor;
      graph_.inputs.push_back(define(name, std::move(type)));
      if (!token_.is_mark(")")) expect(",");
      skip_lines();
    }
    expect("{");
    end_line();
  }

  // --- types
  Type parse_type() {
    const Token word = expect(Kind::Word, "a type");
    Type type;
    for (const auto& [name, kind] :
         {std::pair{"int", Type::Kind::Int}, {"float", Type::Kind::Float}, {"bool", Type::Kind::Bool}})
      if (word.text == name && !(kind == Type::Kind::Bool && token_.is_mark("["))) {
        type.kind = kind;
        return type;
      }
    const auto dtype = dtype_word(word.text);
    if (!dtype) lexer_.fail(str("there is no type '", word.text, "'"));
    type.kind = Type::Kind::Tensor;
    type.dtype = *dtype;
    if (!accept("[")) return type;
    type.has_sizes = true;
    while (!accept("]")) {
      if (type.sizes.size() == kMaxDims) lexer_.fail("more than 64 dimensions");
      type.sizes.push_back(parse_size());
      if (!token_.is_mark("]")) expect(",");
    }
    return type;
  }

  // 3, N, 2*N, N+1, 2*N-1 or ?
  Size parse_size() {
    if (accept("?")) return Size::unknown();
    Size size;
    if (token_.is(Kind::Integer)) {
      const int64_t n = size_number();
      if (!accept("*")) return Size::number(n);
      size.factor = n;
    } else {
      size.factor = 1;
    }
    const std::string name(expect(Kind::Word, "a size").text);
    const auto found = symbols_.find(name);
    if (found == symbols_.end()) lexer_.fail(str("the symbol ", name, " is not declared"));
    size.symbol = static_cast<int32_t>(found->second);
    if (accept("+"))
      size.offset = size_number();
    else if (token_.is(Kind::Integer) && token_.integer < 0)
      size.offset = advance().integer;
    if (size.factor == 0) lexer_.fail("a size of zero times a symbol");
    return size;
  }

  // --- nodes
  ValueId define(const std::string& name, Type type) {
    const ValueId id = graph_.add_value(name, std::move(type));
    if (!ids_.try_emplace(name, id).second) lexer_.fail(str("%", name, " is defined twice"));
    return id;
  }
  ValueId lookup(std::string_view name) {
    const auto found = ids_.find(std::string(name));
    if (found == ids_.end()) lexer_.fail(str("%", name, " is not defined before"));
    return found->second;
  }

  struct Result {
    std::string name;  // empty: dropped
    Type type;
  };

  void statement() {
    if (token_.is(Kind::End)) lexer_.fail("the graph has no end: expected 'return'");
    std::vector<Result> results;
    while (token_.is(Kind::Value) || token_.is_word("_")) {
      Result r;
      if (const Token t = advance(); t.is(Kind::Value)) r.name = t.text;
      if (accept(":")) r.type = parse_type();
      results.push_back(std::move(r));
      if (!accept(",")) break;
    }
    if (!results.empty()) expect("=");
    Node node = call();
    for (size_t i = 0; i < results.size(); ++i) {
      const Type type = result_type(node, i, results.size(), std::move(results[i].type));
      node.results.push_back(results[i].name.empty() ? kNoValue : define(results[i].name, type));
    }
    if (token_.is(Kind::Comment)) node.source = advance().string;
    end_line();
    graph_.nodes.push_back(std::move(node));
  }

  // The declared type, if it agrees with what the schema says of result i of n.
  Type result_type(const Node& node, size_t i, size_t n, Type declared) {
    Type::Kind kind = Type::Kind::Int;
    if (node.is_constant() || node.is_state()) {
      kind = Type::Kind::Tensor;
    } else if (node.op) {
      const auto& returns = node.op->schema.returns;
      const bool list = returns.size() == 1 && returns[0].type == Tag::TensorList;
      if (!list && i >= returns.size()) lexer_.fail(str(node.name(), " has fewer than ", n, " results"));
      kind = kind_of(returns[list ? 0 : i].type);
    } else if (n != 1) {
      lexer_.fail(str(node.name(), " has one result"));
    }
    if (declared.kind == Type::Kind::Unknown || kind == Type::Kind::Unknown) {
      if (declared.kind == Type::Kind::Tensor) lexer_.fail(str(node.name(), " gives a number"));
      if (kind != Type::Kind::Unknown) declared.kind = kind;
      declared.dtype = DType::Float32;
      return declared;
    }
    if (declared.kind != kind) lexer_.fail(str("the result of ", node.name(), " is of another type"));
    return declared;
  }
  static Type::Kind kind_of(Tag tag) {
    switch (tag) {
      case Tag::Tensor:
      case Tag::TensorList:
        return Type::Kind::Tensor;
      case Tag::Int:
        return Type::Kind::Int;
      case Tag::Float:
        return Type::Kind::Float;
      case Tag::Bool:
        return Type::Kind::Bool;
      default:
        return Type::Kind::Unknown;
    }
  }

  Node call() {
    std::string name(expect(Kind::Word, "an operator").text);
    if (accept("::")) name += str("::", expect(Kind::Word, "an operator").text);
    expect("(");
    Node node;
    if (name == "constant" || name == "state") {
      node.builtin = name == "state" ? Builtin::State : Builtin::Constant;
      node.constant = expect(Kind::String, "the name of a constant").string;
      expect(")");
    } else if (name.starts_with("sym::")) {
      arithmetic(node, name);
    } else {
      find(node, name);
      at_this_line([&] { arguments(node); });
    }
    return node;
  }

  // "relu_" and "add_.Tensor" are in place forms, unless a record has that very name.
  void find(Node& node, const std::string& name) {
    node.op = find_operator(name);
    if (!node.op) {
      const size_t dot = name.rfind('.');
      const size_t end = dot == std::string::npos ? name.size() : dot;
      if (end > 1 && name[end - 1] == '_') {
        const Op* op = find_operator(name.substr(0, end - 1) + name.substr(end));
        if (op && op->has_inplace) node.op = op, node.inplace = true;
      }
    }
    if (!node.op) lexer_.fail(str("there is no operator '", name, "'"));
  }

  void arithmetic(Node& node, const std::string& name) {
    static constexpr std::string_view names[] = {"sym::size",     "sym::add", "sym::sub", "sym::mul",
                                                 "sym::floordiv", "sym::max", "sym::min"};
    const auto found = std::ranges::find(names, name);
    if (found == std::end(names)) lexer_.fail(str("there is no operator '", name, "'"));
    node.builtin = static_cast<Builtin>(static_cast<int>(Builtin::Size) + (found - std::begin(names)));
    for (int i = 0; i < 2; ++i) {
      const Literal l = literal();
      const bool tensor = i == 0 && node.builtin == Builtin::Size;
      if (const Use* use = std::get_if<Use>(&l)) {
        if (graph_.values[use->id].type.kind != (tensor ? Type::Kind::Tensor : Type::Kind::Int))
          lexer_.fail(str(name, " takes ", tensor ? "a tensor" : "integers"));
        node.arguments.push_back({*use});
      } else if (const int64_t* n = std::get_if<int64_t>(&l); n && !tensor) {
        node.arguments.push_back({*n});
      } else {
        lexer_.fail(str(name, " takes ", tensor ? "a tensor and a dimension" : "two integers"));
      }
      expect(i == 0 ? "," : ")");
    }
  }

  void arguments(Node& node) {
    ArgumentBinder binder(graph_, *node.op);
    bool names = false;
    while (!accept(")")) {
      // A word before '=' is a name; otherwise it is an argument such as `float32`.
      if (token_.is(Kind::Word)) {
        const Token word = advance();
        if (accept("=")) {
          names = true;
          binder.named(word.text, literal());
        } else {
          if (names) lexer_.fail("a positional argument after one with a name");
          binder.positional(word_literal(word));
        }
      } else {
        if (names) lexer_.fail("a positional argument after one with a name");
        binder.positional(literal());
      }
      if (!token_.is_mark(")")) expect(",");
    }
    node.arguments = binder.finish();
    if (node.inplace && !node.arguments[0].get<Use>())
      lexer_.fail(str(node.name(), " writes to its first argument, which must be a tensor"));
  }

  // --- literals
  static Literal word_literal(const Token& word) {
    if (word.text == "None") return std::monostate();
    if (word.text == "True" || word.text == "False") return word.text == "True";
    return Word{word.text};
  }

  Literal literal() {
    if (accept("[")) return list();
    if (accept("(")) return complex_number();
    Token t = advance();
    switch (t.kind) {
      case Kind::Value:
        return Use{lookup(t.text)};
      case Kind::Integer:
        return t.integer;
      case Kind::Float:
        return t.number;
      case Kind::String:
        return std::move(t.string);
      case Kind::Word:
        return word_literal(t);
      default:
        lexer_.fail("expected an argument");
    }
  }

  List list() {
    List elements;
    while (!accept("]")) {
      if (token_.is_mark("[") || token_.is_mark("(")) lexer_.fail("a list may hold numbers and values only");
      const Literal l = literal();
      if (const Use* use = std::get_if<Use>(&l))
        elements.emplace_back(*use);
      else if (std::holds_alternative<std::monostate>(l))
        elements.emplace_back(Use{});
      else if (const bool* b = std::get_if<bool>(&l))
        elements.emplace_back(*b);
      else if (const int64_t* i = std::get_if<int64_t>(&l))
        elements.emplace_back(*i);
      else if (const double* d = std::get_if<double>(&l))
        elements.emplace_back(*d);
      else
        lexer_.fail("a list may hold numbers and values only");
      if (!token_.is_mark("]")) expect(",");
    }
    return elements;
  }

  // (1+2j): the lexer gives the numbers with their signs.
  Literal complex_number() {
    const double real = real_number();
    accept("+");
    const double imaginary = real_number();
    expect_word("j");
    expect(")");
    return complex128(real, imaginary);
  }
  double real_number() {
    const Token t = advance();
    if (!t.is(Kind::Integer) && !t.is(Kind::Float)) lexer_.fail("expected a number");
    return t.is(Kind::Integer) ? static_cast<double>(t.integer) : t.number;
  }

  // --- the end
  void outputs() {
    advance();
    expect("(");
    while (!accept(")")) {
      Output out;
      if (token_.is(Kind::Word)) {
        out.name = advance().text;
        expect(":");
      }
      out.value = lookup(expect(Kind::Value, "an output").text);
      if (graph_.values[out.value].type.kind != Type::Kind::Tensor)
        lexer_.fail(str("the output %", graph_.values[out.value].name, " is no tensor"));
      graph_.outputs.push_back(std::move(out));
      if (!token_.is_mark(")")) expect(",");
      skip_lines();
    }
    skip_lines();
    expect("}");
  }

  Lexer lexer_;
  Token token_;
  Graph graph_;
  std::unordered_map<std::string, size_t> symbols_;
  std::unordered_map<std::string, ValueId> ids_;
};

}  // namespace

Graph parse_graph(std::string_view text) { return Parser(text).run(); }

}  // namespace rushlight::jit
