#include "serve/chat_template.h"

#include <algorithm>
#include <ctime>
#include <functional>

#include "core/error.h"
#include "core/host/clock.h"
#include "io/json.h"
#include "serve/template_parser.h"

namespace rushlight::serve {

using namespace jinja;

struct ChatTemplate::Program {
  std::vector<Statement> statements;
};

namespace {

constexpr int64_t kMostSteps = 1'000'000;
constexpr size_t kLongest = 16 << 20;

class Machine {
 public:
  void set(std::string name, Value value) { find_or_add(std::move(name)) = std::move(value); }

  std::string run(const std::vector<Statement>& statements) {
    run_all(statements);
    return std::move(out_);
  }

 private:
  enum class Flow { On, Break, Continue };
  using Scope = std::vector<std::pair<std::string, Value>>;

  void step() { RL_CHECK_VALUE(++steps_ < kMostSteps, "the template takes too many steps"); }
  Value& find_or_add(std::string name) {
    for (auto& [known, value] : scopes_.back())
      if (known == name) return value;
    return scopes_.back().emplace_back(std::move(name), Value()).second;
  }
  Value look_up(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      for (const auto& [known, value] : *scope)
        if (known == name) return value;
    return {};
  }

  Flow run_all(const std::vector<Statement>& statements) {
    for (const Statement& s : statements)
      if (const Flow flow = run_one(s); flow != Flow::On) return flow;
    return Flow::On;
  }
  Flow run_one(const Statement& s) {
    using Kind = Statement::Kind;
    step();
    switch (s.kind) {
      case Kind::Text:
        write(s.text);
        break;
      case Kind::Write:
        write(value(*s.value).text());
        break;
      case Kind::If:
        return run_all(value(*s.value).truth() ? s.body : s.otherwise);
      case Kind::For:
        loop(s);
        break;
      case Kind::Set:
        assign(s.names, value(*s.value));
        break;
      case Kind::Break:
        return Flow::Break;
      case Kind::Continue:
        return Flow::Continue;
    }
    return Flow::On;
  }
  void write(std::string_view text) {
    out_ += text;
    RL_CHECK_VALUE(out_.size() < kLongest, "the template makes too long a text");
  }
  void assign(const std::vector<std::string>& names, Value v) {
    if (names.size() == 1) return set(names[0], std::move(v));
    const Value space = look_up(names[0]);
    RL_CHECK_VALUE(space.dict(), "the template sets a member of '", names[0], "', which is no namespace");
    for (auto& [known, value] : *space.dict())
      if (known == names[1]) {
        value = std::move(v);
        return;
      }
    space.dict()->emplace_back(names[1], std::move(v));
  }

  void set_items(const std::vector<std::string>& names, const Value& v) {
    if (names.size() == 1) return set(names[0], v);
    RL_CHECK_VALUE(v.list() && v.list()->size() == names.size(), "the template's loop has ", names.size(),
                   " names for ", v.kind());
    for (size_t i = 0; i < names.size(); ++i) set(names[i], (*v.list())[i]);
  }
  void loop(const Statement& s) {
    const Value over = value(*s.value);
    Value::List items;
    if (over.list()) items = *over.list();
    if (over.dict())
      for (const auto& member : *over.dict()) items.emplace_back(member.first);
    RL_CHECK_VALUE(over.list() || over.dict() || over.is_undefined(), "the template loops over ",
                   over.kind());
    if (s.filter)
      std::erase_if(items, [&](const Value& v) {
        step();
        scopes_.emplace_back();
        set_items(s.names, v);
        const bool out = !value(*s.filter).truth();
        scopes_.pop_back();
        return out;
      });
    for (size_t i = 0; i < items.size(); ++i) {
      const auto n = static_cast<int64_t>(items.size()), at = static_cast<int64_t>(i);
      scopes_.emplace_back();
      set_items(s.names, items[i]);
      Value::Dict loop{{"index", at + 1},        {"index0", at}, {"first", i == 0},
                       {"last", at + 1 == n},    {"length", n},  {"revindex", n - at},
                       {"revindex0", n - at - 1}};
      if (i) loop.emplace_back("previtem", items[i - 1]);
      if (at + 1 < n) loop.emplace_back("nextitem", items[i + 1]);
      set("loop", Value::of_dict(std::move(loop)));
      const Flow flow = run_all(s.body);
      scopes_.pop_back();
      if (flow == Flow::Break) break;
    }
    if (items.empty()) run_all(s.otherwise);
  }

  Arguments values(const Expression& e, size_t from) {
    Arguments all;
    for (size_t i = from; i < e.parts.size(); ++i) all.push_back(value(*e.parts[i]));
    return all;
  }
  Value value(const Expression& e) {
    using Kind = Expression::Kind;
    step();
    auto part = [&](size_t i) { return value(*e.parts[i]); };
    switch (e.kind) {
      case Kind::Constant:
        return e.constant;
      case Kind::Name:
        return look_up(e.name);
      case Kind::List:
        return Value::of_list(values(e, 0));
      case Kind::Dict: {
        Value::Dict members;
        for (size_t i = 0; i < e.parts.size(); i += 2) {
          const Value key = part(i);
          RL_CHECK_VALUE(key.string(), "the template has a dict with a key that is no text");
          members.emplace_back(*key.string(), part(i + 1));
        }
        return Value::of_dict(std::move(members));
      }
      case Kind::Item: {
        const Value of = part(0), key = part(1);
        RL_CHECK_VALUE(!of.is_undefined() || e.parts[0]->kind != Kind::Name, "the template takes '",
                       key.text(), "' of '", e.parts[0]->name, "', which is not there");
        return item(of, key);
      }
      case Kind::Slice:
        return slice(part(0), part(1), part(2), part(3));
      case Kind::Call:
        return call(e);
      case Kind::Filter:
        RL_CHECK_VALUE(e.keywords.empty(), "the template's filter '", e.name, "' with '", e.keywords[0],
                       "' is not covered");
        return filter(e.name, part(0), values(e, 1));
      case Kind::Test:
        return test(e.name, part(0), values(e, 1));
      case Kind::Not:
        return !part(0).truth();
      case Kind::And: {
        const Value left = part(0);
        return left.truth() ? part(1) : left;
      }
      case Kind::Or: {
        const Value left = part(0);
        return left.truth() ? left : part(1);
      }
      case Kind::Choice:
        return part(part(0).truth() ? 1 : 2);
      case Kind::Binary:
        return binary(e.name, part(0), part(1));
    }
    return {};
  }
  static Value binary(const std::string& sign, const Value& a, const Value& b) {
    if (sign == "==") return equal(a, b);
    if (sign == "!=") return !equal(a, b);
    if (sign == "in") return contains(b, a);
    if (sign == "<") return less(a, b);
    if (sign == ">") return less(b, a);
    if (sign == "<=") return !less(b, a);
    if (sign == ">=") return !less(a, b);
    return arithmetic(sign, a, b);
  }
  Value call(const Expression& e) {
    const Expression& of = *e.parts[0];
    if (of.kind == Expression::Kind::Item) {
      RL_CHECK_VALUE(of.parts[1]->constant.string() && e.keywords.empty(),
                     "the template's call is not covered");
      return method(value(*of.parts[0]), *of.parts[1]->constant.string(), values(e, 1));
    }
    const Arguments arguments = values(e, 1);
    const size_t plain = arguments.size() - e.keywords.size();
    if (of.name == "namespace" || of.name == "dict") {
      Value::Dict members;
      for (size_t i = 0; i < e.keywords.size(); ++i)
        members.emplace_back(e.keywords[i], arguments[plain + i]);
      return Value::of_dict(std::move(members));
    }
    if (of.name == "raise_exception") RL_FAIL_AS(Value, arguments.empty() ? "refused" : arguments[0].text());
    if (of.name == "range" && plain) {
      const auto *a = arguments[0].integer(), *b = plain > 1 ? arguments[1].integer() : a;
      RL_CHECK_VALUE(a && b && plain < 3 && *b < kMostSteps, "the template's range is not covered");
      Value::List list;
      for (int64_t i = plain > 1 ? *a : 0; i < *b; ++i) step(), list.emplace_back(i);
      return Value::of_list(std::move(list));
    }
    if (of.name == "strftime_now" && plain == 1 && arguments[0].string()) {
      const std::tm local = host::local_time(std::time(nullptr));
      char text[128];
      return std::string(text, std::strftime(text, sizeof text, arguments[0].string()->c_str(), &local));
    }
    RL_FAIL_AS(Value, "the template's function '", of.name, "' is not covered");
  }

  std::vector<Scope> scopes_{1};
  std::string out_;
  int64_t steps_ = 0;
};

}  // namespace

ChatTemplate::ChatTemplate(std::string_view text, std::string beginning, std::string end)
    : program_(new Program{parse(text)}), beginning_(std::move(beginning)), end_(std::move(end)) {}
ChatTemplate::~ChatTemplate() = default;

std::shared_ptr<const ChatTemplate> ChatTemplate::of(const runtime::Model& model) {
  const std::string* text = model.text("chat.json");
  if (!text) return nullptr;
  const io::Json chat = io::Json::parse(*text, "the section '@chat.json'");
  auto member = [&](const char* name) {
    const std::string* value = chat[name].string();
    RL_CHECK_VALUE(value, "the section '@chat.json' has no text '", name, "'");
    return *value;
  };
  return std::make_shared<const ChatTemplate>(member("template"), member("bos_token"), member("eos_token"));
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages) const {
  Machine machine;
  Value::List list;
  for (const ChatMessage& m : messages)
    list.push_back(Value::of_dict({{"role", m.role}, {"content", m.content}}));
  machine.set("messages", Value::of_list(std::move(list)));
  machine.set("add_generation_prompt", true);
  machine.set("bos_token", beginning_);
  machine.set("eos_token", end_);
  machine.set("tools", None());
  machine.set("documents", None());
  return machine.run(program_->statements);
}

}  // namespace rushlight::serve
