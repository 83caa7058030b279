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
      take("*");  // what follows is given by name
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
    std::vector<std::string> names;
    if (counted) {
      do names.push_back(name());
      while (take(",") && !at("in"));
      expect("in");
      s.value = expression();  // once, before the loop
    }
    const int around = std::exchange(loop_, ++loops_);
    if (counted)
      s.target = names.size() == 1 ? Target{slot_of(names[0]), {}} : Target{};
    else
      s.value = expression();
    if (names.size() > 1)
      for (const std::string& n : names) s.target.items.push_back({slot_of(n), {}});
    s.body = block();
    loop_ = around;
  }
  void simple_statement(std::vector<Statement>& to) {
    if (take("pass")) return;
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
      ExpressionPtr e = expression();
      if (take("=")) {
        s.kind = e->kind == Kind::Attribute ? Statement::Kind::SetAttribute : Statement::Kind::SetItem;
        if (e->kind != Kind::Attribute && e->kind != Kind::Subscript) fail("nothing can be assigned here");
        s.name = e->name;
        s.object = std::move(e->items[0]);
        if (s.kind == Statement::Kind::SetItem) s.index = std::move(e->items[1]);
        s.value = expression();
      } else {
        s.value = std::move(e);
      }
    }
  }
  // name = ..., name : type = ..., a, b = ..., (a, b) = ...
  bool is_assignment() const {
    if (is(Word::Name)) {
      if (at("=", 1) || at(":", 1)) return true;
      size_t i = 0;
      while (word(i).kind == Word::Name && at(",", i + 1)) i += 2;
      return i > 0 && (at("=", i) || (word(i).kind == Word::Name && at("=", i + 1)));
    }
    if (!at("(")) return false;
    size_t i = 1;
    while (word(i).kind == Word::Name && at(",", i + 1)) i += 2;
    if (word(i).kind == Word::Name) ++i;
    return i > 1 && at(")", i) && at("=", i + 1);
  }
  void assignment(std::vector<Statement>& to) {
    std::vector<std::string> names;
    const bool brackets = take("(");
    bool several = false;
    do names.push_back(name());
    while (take(",") && (several = true) && is(Word::Name));
    if (brackets) expect(")");
    const bool typed = take(":");
    if (typed) type();
    if (!take("=")) {
      if (!typed) fail("expected '='");
      return;  // a declaration alone
    }
    ExpressionPtr value = expressions();
    if (value->kind == Kind::EnumMember && names.size() == 1) {  // or a function or class, to be called
      paths_[names[0]] = value->name;
      variables_.erase(names[0]);
      return;
    }
    Statement& s = add(to, Statement::Kind::Assign);
    s.value = std::move(value);
    if (!several && !brackets)
      s.target.slot = slot_of(names[0]);
    else
      for (const std::string& n : names) s.target.items.push_back({slot_of(n), {}});
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
