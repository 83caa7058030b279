#include "frontend/torchscript/parser.h"

#include <map>

#include "frontend/torchscript/expression_parser.h"

namespace rushlight::jit {
namespace {

class Parser : ExpressionParser {
 public:
  Parser(std::string_view code, const std::string& file, const std::string& prefix,
         const std::vector<IValue>& constants, int64_t version)
      : ExpressionParser(code, file, constants, version), prefix_(prefix) {}

  CodeFile run() {
    CodeFile out;
    while (!is(Word::End)) {
      if (take(Word::Line)) continue;
      if (at("class"))
        out.classes.push_back(class_definition());
      else if (at("def"))
        keep(out.functions, function());
      else
        statement_of_a_file();
    }
    return out;
  }

 private:
  template <class T>
  void keep(OrderedDict<std::string, std::unique_ptr<T>>& to, std::unique_ptr<T> made) {
    if (to.contains(made->name)) fail(str("'", made->name, "' is defined twice"));
    const std::string key = made->name;
    to.insert(key, std::move(made));
  }

  // --- classes and files
  void statement_of_a_file() {  // older archives bind constants here: op_version_set = 1
    name(), expect("="), expression_outside();
    expect(Word::Line, "the end of the line");
  }
  ExpressionPtr expression_outside() {
    begin_function();
    function_ = nullptr;
    return expression();
  }
  std::unique_ptr<ClassType> class_definition() {
    expect("class");
    auto out = std::make_unique<ClassType>();
    out->name = name(), out->path = prefix_ + "." + out->name;
    if (take("(")) {
      if (!at(")")) base(*out, name());
      expect(")");
    }
    expect(":"), expect(Word::Line, "the end of the line"), expect(Word::Indent, "the body of a class");
    while (!take(Word::Dedent)) member(*out);
    return out;
  }
  void base(ClassType& made, const std::string& name) {
    static const std::map<std::string_view, ClassType::Kind> kinds = {
        {"Module", ClassType::Kind::Module},         {"Object", ClassType::Kind::Object},
        {"NamedTuple", ClassType::Kind::NamedTuple}, {"Enum", ClassType::Kind::Enum},
        {"Interface", ClassType::Kind::Object},      {"ModuleInterface", ClassType::Kind::Object}};
    const auto found = kinds.find(name);
    if (found == kinds.end()) fail(str("classes of the kind '", name, "' are not read"));
    made.kind = found->second;
    made.is_module = made.kind == ClassType::Kind::Module;
  }
  void member(ClassType& made) {
    if (take(Word::Line)) return;
    if (at("def")) return keep(made.methods, function());
    if (take("pass")) return expect(Word::Line, "the end of the line");
    if (at("__annotations__") && at("[", 1)) {
      at_ += 2;
      if (!is(Word::Text)) fail("expected the name of an attribute");
      made.fields.push_back(tokens_[at_++].text);
      expect("]"), expect("=");
      made.types.push_back(to_string(type()));
    } else if (const std::string field = name(); take(":")) {
      made.fields.push_back(field);
      made.types.push_back(to_string(type()));
      if (take("=")) made.constants.insert(field, constant());
    } else {
      expect("=");
      IValue value = constant();
      static const std::map<std::string_view, std::vector<std::string> ClassType::*> lists = {
          {"__parameters__", &ClassType::parameters},
          {"__buffers__", &ClassType::buffers},
          {"__forward_pre_hooks__", &ClassType::forward_pre_hooks},
          {"__forward_hooks__", &ClassType::forward_hooks}};
      if (const auto found = lists.find(field); found != lists.end())
        made.*found->second = value.to<std::vector<std::string>>();
      else if (made.kind == ClassType::Kind::Enum)
        made.constants.insert(field, std::move(value));
    }
    expect(Word::Line, "the end of the line");
  }
  // A value that is known when code is read.
  IValue constant() {
    const ExpressionPtr e = expression_outside();
    return value_of(*e);
  }
  IValue value_of(const Expression& e) const {
    std::vector<IValue> items;
    for (const ExpressionPtr& item : e.items) items.push_back(value_of(*item));
    switch (e.kind) {
      case Kind::Constant:
        return e.value;
      case Kind::List:
        return IValue(std::move(items));
      case Kind::Tuple:
        return IValue(IValue::Tuple{std::move(items), {}, {}});
      case Kind::Dict: {
        IValue::Dict dict;
        for (size_t i = 0; i + 1 < items.size(); i += 2) dict.push_back({items[i], items[i + 1]});
        return IValue(std::move(dict));
      }
      case Kind::Operator: {
        Arguments arguments{std::move(items), {}};
        return call(e.callee, arguments);
      }
      default:
        fail("expected a constant");
    }
  }

  // --- functions
  std::unique_ptr<Function> function() {
    expect("def");
    auto out = std::make_unique<Function>();
    begin_function();
    function_ = out.get();
    out->name = name(), out->file = file_;
    expect("(");
    while (!take(")")) {
      if (take("*") && take(",")) continue;  // what follows is given by name
      FunctionParameter& p = out->parameters.emplace_back();
      p.name = name();
      if (take(":")) p.type = type();
      if (take("=")) p.otherwise = value_of(*expression());
      if (!at(")")) expect(",");
    }
    for (const FunctionParameter& p : out->parameters) slot_of(p.name);
    if (variables_.size() != out->parameters.size()) fail("two parameters have the same name");
    if (take("->")) out->returns = type();
    out->body = block();
    // A variable's last reader takes the value over, unless a loop may come back to it.
    for (auto& [name, v] : variables_)
      if (v.reader && v.reader_loop == v.loop) v.reader->last = true;
    out->slots = slots_;
    return out;
  }
  std::vector<Statement> block() {
    const Deeper deeper(*this);
    expect(":");
    expect(Word::Line, "the end of the line"), expect(Word::Indent, "an indented block");
    std::vector<Statement> out;
    while (!take(Word::Dedent))
      if (!take(Word::Line) && !inner_function()) statement(out);
    return out;
  }
  // A function inside, which torch.jit.fork runs. It sees the variables around it.
  bool inner_function() {
    if (!at("def")) return false;
    expect("def");
    const std::string inner = name();
    expect("("), expect(")");
    if (take("->")) type();
    if (!function_) fail("a function stands where none can be");
    const int around = std::exchange(loop_, ++loops_);
    std::vector<Statement> body = block();
    loop_ = around;
    inner_[inner] = static_cast<int>(function_->inner.size());
    function_->inner.push_back(std::move(body));
    return true;
  }

  Statement& add(std::vector<Statement>& to, Statement::Kind kind) {
    Statement& s = to.emplace_back();
    s.kind = kind, s.line = word().line;
    return s;
  }
  void statement(std::vector<Statement>& to) {
    if (at("if")) {
      Statement& s = add(to, Statement::Kind::If);
      expect("if");
      s.value = expression();
      s.body = block();
      if (at("elif")) {
        tokens_[at_].text = "if";
        statement(s.otherwise);
      } else if (take("else")) {
        s.otherwise = block();
      }
    } else if (at("while") || at("for")) {
      loop(to);
    } else if (at("with")) {
      Statement& s = add(to, Statement::Kind::With);
      expect("with");
      s.value = expression();
      if (take("as")) s.target.slot = slot_of(name());
      s.body = block();
    } else {
      simple_statement(to);
      expect(Word::Line, "the end of the line");
    }
  }
  void loop(std::vector<Statement>& to) {
    const bool counted = at("for");
    Statement& s = add(to, counted ? Statement::Kind::For : Statement::Kind::While);
    ++at_;
    size_t behind = at_;
    if (counted) {  // what is gone through is known before the names are
      const size_t begin = at_;
      while (!at("in")) ++at_;
      expect("in");
      s.value = expression();  // once, before the loop
      behind = std::exchange(at_, begin);
    }
    const int around = std::exchange(loop_, ++loops_);
    if (counted)
      s.target = target(), at_ = behind;
    else
      s.value = expression();
    s.body = block();
    loop_ = around;
  }
  void simple_statement(std::vector<Statement>& to) {
    if (take("pass")) return;
    if (at("assert")) return assertion(to);
    if (take("del")) return deletion(to);
    if (at("return")) {
      Statement& s = add(to, Statement::Kind::Return);
      expect("return");
      if (!is(Word::Line)) s.value = expressions();
    } else if (take("break")) {
      add(to, Statement::Kind::Break);
    } else if (take("continue")) {
      add(to, Statement::Kind::Continue);
    } else if (is_assignment()) {
      assignment(to);
    } else {
      Statement& s = add(to, Statement::Kind::Evaluate);
      const size_t begin = at_;
      ExpressionPtr e = expression();
      if (const std::string_view operation = augmenting(); !operation.empty()) {
        s.kind = Statement::Kind::Augment, s.name = operation;
        check_target(*e);
        keep_values(begin);
        s.object = std::move(e);
        s.value = expression();
      } else if (take("=")) {
        check_target(*e);
        s.kind = e->kind == Kind::Attribute ? Statement::Kind::SetAttribute : Statement::Kind::SetItem;
        s.name = e->name;
        if (s.kind == Statement::Kind::SetItem)
          s.object = std::move(e);
        else
          s.object = std::move(e->items[0]);
        s.value = expressions();
      } else {
        s.value = std::move(e);
      }
    }
  }
  void check_target(const Expression& e) const {
    const bool fits = e.kind == Kind::Attribute || e.kind == Kind::Subscript || e.kind == Kind::Places;
    if (!fits && e.kind != Kind::Local) fail("nothing can be assigned here");
  }
  // The operator of `x += y`, whose sign is read; empty where there is another statement.
  std::string_view augmenting() {
    static constexpr std::pair<std::string_view, std::string_view> signs[] = {
        {"+=", "add"},       {"-=", "sub"},     {"*=", "mul"},         {"/=", "div"},
        {"%=", "remainder"}, {"**=", "pow"},    {"//=", "floordiv"},   {"&=", "__and__"},
        {"|=", "__or__"},    {"^=", "__xor__"}, {"<<=", "__lshift__"}, {">>=", "__rshift__"}};
    for (const auto& [sign, operation] : signs)
      if (take(sign)) return operation;
    return {};
  }
  void assertion(std::vector<Statement>& to) {
    Statement& s = add(to, Statement::Kind::Assert);
    expect("assert");
    s.value = expression();
    if (take(",")) s.index = expression();
  }
  void deletion(std::vector<Statement>& to) {
    Statement& s = add(to, Statement::Kind::Evaluate);
    ExpressionPtr e = expression();
    if ((e->kind != Kind::Subscript && e->kind != Kind::Places) || e->items.size() != 2)
      fail("nothing can be deleted here");
    s.value = with(made_operator("aten", "Delete"), std::move(e->items[0]), std::move(e->items[1]));
  }
  // name = ..., name : type = ..., a, b = ..., (a, b) = ...
  bool is_assignment() const {
    if (is(Word::Name) && (at("=", 1) || at(":", 1))) return true;
    size_t i = 0;
    bool several = false;
    for (int depth = 0;; ++i) {  // names, commas and brackets
      const Token& w = word(i);
      if (w.kind == Word::Name && w.text != "in") continue;
      if (w.kind != Word::Symbol) return false;
      if (w.text == "=") return several && depth == 0;
      if (w.text == "(" && (i == 0 || word(i - 1).kind != Word::Name)) {
        ++depth, several = true;
        continue;
      }
      if (w.text == ")") {
        --depth;
        continue;
      }
      if (w.text != ",") return false;
      several = true;
    }
  }
  void assignment(std::vector<Statement>& to) {
    const bool plain = is(Word::Name) && (at("=", 1) || at(":", 1));
    if (plain) {
      const std::string to_name = name();
      const bool typed = take(":");
      if (typed) type();
      if (!take("=")) {
        if (!typed) fail("expected '='");
        return;  // a declaration alone
      }
      ExpressionPtr value = expressions();
      if (value->kind == Kind::EnumMember) {  // or a function or class, to be called
        paths_[to_name] = value->name;
        variables_.erase(to_name);
        return;
      }
      Statement& s = add(to, Statement::Kind::Assign);
      s.value = std::move(value);
      s.target.slot = slot_of(to_name);
      return;
    }
    const size_t begin = at_;
    while (!at("=")) ++at_;
    expect("=");
    Statement& s = add(to, Statement::Kind::Assign);
    s.value = expressions();
    const size_t behind = std::exchange(at_, begin);
    s.target = target();
    if (s.target.slot >= 0) s.target = Target{-1, {std::move(s.target)}};
    at_ = behind;
  }

  const std::string& prefix_;
  Function* function_ = nullptr;  // that is read
};

}  // namespace

CodeFile parse_code(std::string_view code, const std::string& file, const std::string& prefix,
                    const std::vector<IValue>& constants, int64_t version) {
  return Parser(code, file, prefix, constants, version).run();
}

}  // namespace rushlight::jit
