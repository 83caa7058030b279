#include "serve/template_values.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "serve/json_text.h"

namespace rushlight::serve::jinja {
namespace {

constexpr std::string_view kSpace = " \t\n\r\f\v";
constexpr size_t kLongest = 16 << 20;  // of any text

std::string strip(std::string_view text, std::string_view of, bool left, bool right) {
  const size_t first = left ? text.find_first_not_of(of) : 0;
  if (first == std::string_view::npos) return {};
  const size_t last = right ? text.find_last_not_of(of) : text.size() - 1;
  if (last == std::string_view::npos) return {};
  return std::string(text.substr(first, last + 1 - first));
}
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
std::string mapped(std::string text, char (*f)(char)) {
  std::ranges::transform(text, text.begin(), f);
  return text;
}
std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  RL_CHECK_VALUE(!from.empty(), "the template replaces an empty text");
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string::npos) return out;
    out += to, at = found + from.size();
    RL_CHECK_VALUE(out.size() < kLongest, "the template makes too long a text");
  }
}
Value split(const std::string& text, const std::string* by) {
  Value::List parts;
  if (!by) {
    for (size_t at = 0; (at = text.find_first_not_of(kSpace, at)) != std::string::npos;) {
      const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
      parts.emplace_back(text.substr(at, end - at));
      at = end;
    }
    return Value::of_list(std::move(parts));
  }
  RL_CHECK_VALUE(!by->empty(), "the template splits by an empty text");
  for (size_t at = 0;;) {
    const size_t found = text.find(*by, at);
    parts.emplace_back(text.substr(at, found - at));
    if (found == std::string::npos) return Value::of_list(std::move(parts));
    at = found + by->size();
  }
}
const std::string& text_of(const Value& v, std::string_view what) {
  RL_CHECK_VALUE(v.string(), "the template's '", what, "' takes a text, not ", v.kind());
  return *v.string();
}
const Value& argument(const Arguments& arguments, size_t i, std::string_view what) {
  RL_CHECK_VALUE(i < arguments.size(), "the template's '", what, "' lacks an argument");
  return arguments[i];
}
Value items(const Value& v, std::string_view part) {
  Value::List list;
  for (const auto& [key, value] : *v.dict())
    list.push_back(part == "keys" ? Value(key) : part == "values" ? value : Value::of_list({key, value}));
  return Value::of_list(std::move(list));
}

constexpr std::string_view kFilters[] = {
    "trim", "length", "count", "tojson", "upper", "lower",   "first",      "last", "default", "d",
    "join", "string", "list",  "items",  "safe",  "replace", "capitalize", "int",  "reverse", "strip"};
constexpr std::string_view kTests[] = {"defined",  "undefined", "none",   "string",  "mapping",
                                       "iterable", "sequence",  "number", "integer", "true",
                                       "false",    "boolean",   "eq",     "equalto", "in"};

}  // namespace

bool has_filter(std::string_view name) { return std::ranges::count(kFilters, name); }
bool has_test(std::string_view name) { return std::ranges::count(kTests, name); }

bool Value::truth() const {
  if (const bool* b = boolean()) return *b;
  if (is_number()) return number() != 0;
  if (string()) return !string()->empty();
  if (list()) return !list()->empty();
  return dict() && !dict()->empty();
}

std::string_view Value::kind() const {
  static constexpr std::string_view kKinds[] = {"nothing",  "none",   "a truth value", "a number",
                                                "a number", "a text", "a list",        "a dict"};
  return kKinds[content_.index()];
}

std::string Value::text() const {
  if (is_undefined()) return {};
  if (is_none()) return "None";
  if (const bool* b = boolean()) return *b ? "True" : "False";
  if (string()) return *string();
  if (real() && *real() == std::floor(*real()) && std::abs(*real()) < 1e15)
    return str(static_cast<int64_t>(*real()), ".0");
  return json();
}

std::string Value::json() const {
  std::string out;
  if (is_undefined() || is_none()) return "null";
  if (const bool* b = boolean()) return *b ? "true" : "false";
  if (const int64_t* i = integer()) return append_number(out, *i), out;
  if (const double* d = real()) return append_number(out, *d), out;
  if (string()) return quoted(*string());
  auto add = [&](const std::string& part) { out += (out.size() > 1 ? ", " : "") + part; };
  if (list()) {
    out = "[";
    for (const Value& v : *list()) add(v.json());
    return out + "]";
  }
  out = "{";
  for (const auto& [key, v] : *dict()) add(quoted(key) + ": " + v.json());
  return out + "}";
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.string() && b.string()) return *a.string() == *b.string();
  if (a.boolean() && b.boolean()) return *a.boolean() == *b.boolean();
  if (a.list() && b.list()) return std::ranges::equal(*a.list(), *b.list(), equal);
  if (a.dict() && b.dict()) return a.json() == b.json();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

bool less(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() < b.number();
  RL_CHECK_VALUE(a.string() && b.string(), "the template compares ", a.kind(), " with ", b.kind());
  return *a.string() < *b.string();
}

bool contains(const Value& in, const Value& item) {
  if (in.string()) return in.string()->find(text_of(item, "in")) != std::string::npos;
  if (in.list()) return std::ranges::any_of(*in.list(), [&](const Value& v) { return equal(v, item); });
  if (in.dict())
    return item.string() &&
           std::ranges::any_of(*in.dict(), [&](const auto& m) { return m.first == *item.string(); });
  RL_CHECK_VALUE(in.is_undefined(), "the template looks into ", in.kind());
  return false;
}

Value item(const Value& of, const Value& key) {
  if (of.dict()) {
    if (key.string())
      for (const auto& [name, value] : *of.dict())
        if (name == *key.string()) return value;
    return {};
  }
  if (!key.integer()) return {};
  const auto size = static_cast<int64_t>(of.list()     ? of.list()->size()
                                         : of.string() ? of.string()->size()
                                                       : 0);
  const int64_t place = *key.integer() < 0 ? *key.integer() + size : *key.integer();
  if (place < 0 || place >= size) return {};
  if (of.list()) return (*of.list())[static_cast<size_t>(place)];
  return std::string(1, (*of.string())[static_cast<size_t>(place)]);
}

Value slice(const Value& of, const Value& from, const Value& to, const Value& step) {
  RL_CHECK_VALUE(of.list() || of.string(), "the template takes a part of ", of.kind());
  const auto size = static_cast<int64_t>(of.list() ? of.list()->size() : of.string()->size());
  const int64_t by = step.integer() ? *step.integer() : 1;
  RL_CHECK_VALUE(by == 1 || (by == -1 && of.list()), "the template takes parts in steps of ", by);
  auto place = [&](const Value& v, int64_t otherwise) {
    if (!v.integer()) return otherwise;
    return std::clamp<int64_t>(*v.integer() < 0 ? *v.integer() + size : *v.integer(), by < 0 ? -1 : 0,
                               by < 0 ? size - 1 : size);
  };
  const int64_t first = place(from, by < 0 ? size - 1 : 0), last = place(to, by < 0 ? -1 : size);
  if (of.string())
    return first < last ? of.string()->substr(static_cast<size_t>(first), static_cast<size_t>(last - first))
                        : std::string();
  Value::List items;
  for (int64_t i = first; by < 0 ? i > last : i < last; i += by)
    items.push_back((*of.list())[static_cast<size_t>(i)]);
  return Value::of_list(std::move(items));
}

Value arithmetic(std::string_view sign, const Value& a, const Value& b) {
  if (sign == "~" || (sign == "+" && a.string() && b.string())) {
    std::string text = a.text() + b.text();
    RL_CHECK_VALUE(text.size() < kLongest, "the template makes too long a text");
    return text;
  }
  if (sign == "+" && a.list() && b.list()) {
    Value::List all = *a.list();
    all.insert(all.end(), b.list()->begin(), b.list()->end());
    return Value::of_list(std::move(all));
  }
  RL_CHECK_VALUE(a.is_number() && b.is_number(), "the template has ", a.kind(), " ", sign, " ", b.kind());
  if (a.integer() && b.integer() && sign != "/") {
    const int64_t x = *a.integer(), y = *b.integer();
    int64_t result = 0;
    bool bad = false;
    if (sign == "+") bad = __builtin_add_overflow(x, y, &result);
    if (sign == "-") bad = __builtin_sub_overflow(x, y, &result);
    if (sign == "*") bad = __builtin_mul_overflow(x, y, &result);
    if (sign == "%" || sign == "//") {
      RL_CHECK_VALUE(y != 0 && !(y == -1 && x == INT64_MIN), "the template divides by zero");
      const int64_t rest = (x % y + y) % y;
      result = sign == "%" ? rest : (x - rest) / y;
    }
    RL_CHECK_VALUE(!bad, "the template's numbers are too large");
    return result;
  }
  const double x = a.number(), y = b.number();
  RL_CHECK_VALUE(y != 0 || sign == "+" || sign == "-" || sign == "*", "the template divides by zero");
  if (sign == "+") return x + y;
  if (sign == "-") return x - y;
  if (sign == "*") return x * y;
  if (sign == "/") return x / y;
  return sign == "//" ? std::floor(x / y) : x - std::floor(x / y) * y;
}

Value filter(std::string_view name, const Value& value, const Arguments& arguments) {
  if (name == "default" || name == "d") {
    const bool falsy = arguments.size() > 1 && arguments[1].truth() && !value.truth();
    return value.is_undefined() || falsy ? argument(arguments, 0, name) : value;
  }
  if (name == "tojson") {
    RL_CHECK_VALUE(arguments.empty(), "the template's 'tojson' with arguments is not covered");
    return value.json();
  }
  if (name == "safe") return value;
  if (name == "string") return value.text();
  if (name == "trim" || name == "strip") return strip(value.text(), kSpace, true, true);
  if (name == "upper" || name == "lower") return mapped(value.text(), name == "upper" ? upper : lower);
  if (name == "capitalize") {
    std::string text = mapped(value.text(), lower);
    if (!text.empty()) text[0] = upper(text[0]);
    return text;
  }
  if (name == "replace")
    return replaced(value.text(), text_of(argument(arguments, 0, name), name),
                    text_of(argument(arguments, 1, name), name));
  if (name == "length" || name == "count") {
    RL_CHECK_VALUE(value.list() || value.dict() || value.string(), "the template asks for the length of ",
                   value.kind());
    return static_cast<int64_t>(value.list()   ? value.list()->size()
                                : value.dict() ? value.dict()->size()
                                               : value.string()->size());
  }
  if (name == "int")
    return value.is_number() ? Value(static_cast<int64_t>(value.number())) : Value(int64_t{0});
  if (name == "items") {
    RL_CHECK_VALUE(value.dict(), "the template asks for the items of ", value.kind());
    return items(value, name);
  }
  if (name == "list" && value.list()) return Value::of_list(*value.list());
  if (name == "list" && value.dict()) return items(value, "keys");
  if (name == "first") return item(value, int64_t{0});
  if (name == "last") return item(value, int64_t{-1});
  if (name == "reverse") return slice(value, {}, {}, int64_t{-1});
  if (name == "join") {
    RL_CHECK_VALUE(value.list(), "the template joins ", value.kind());
    std::string out;
    for (const Value& v : *value.list())
      out += (out.empty() || arguments.empty() ? "" : arguments[0].text()) + v.text();
    return out;
  }
  RL_FAIL_AS(Value, "the template's filter '", name, "' is not covered");
}

bool test(std::string_view name, const Value& value, const Arguments& arguments) {
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "string") return value.string();
  if (name == "mapping") return value.dict();
  if (name == "iterable" || name == "sequence") return value.list() || value.dict() || value.string();
  if (name == "number") return value.is_number();
  if (name == "integer") return value.integer();
  if (name == "boolean") return value.boolean();
  if (name == "true" || name == "false") return value.boolean() && *value.boolean() == (name == "true");
  if (name == "eq" || name == "equalto") return equal(value, argument(arguments, 0, name));
  if (name == "in") return contains(argument(arguments, 0, name), value);
  RL_FAIL_AS(Value, "the template's test '", name, "' is not covered");
}

Value method(const Value& of, std::string_view name, const Arguments& arguments) {
  if (of.string()) {
    const std::string& text = *of.string();
    const bool left = name == "lstrip", right = name == "rstrip";
    if (left || right || name == "strip")
      return strip(text, arguments.empty() ? kSpace : std::string_view(text_of(arguments[0], name)), !right,
                   !left);
    if (name == "split") return split(text, arguments.empty() ? nullptr : &text_of(arguments[0], name));
    if (name == "startswith") return text.starts_with(text_of(argument(arguments, 0, name), name));
    if (name == "endswith") return text.ends_with(text_of(argument(arguments, 0, name), name));
    if (name == "upper" || name == "lower" || name == "capitalize" || name == "replace")
      return filter(name, of, arguments);
  }
  if (of.dict()) {
    if (name == "items" || name == "keys" || name == "values") return items(of, name);
    if (name == "get") {
      const Value found = item(of, argument(arguments, 0, name));
      return !found.is_undefined() ? found : arguments.size() > 1 ? arguments[1] : Value(None());
    }
  }
  RL_FAIL_AS(Value, "the template's '", name, "' of ", of.kind(), " is not covered");
}

}  // namespace rushlight::serve::jinja
