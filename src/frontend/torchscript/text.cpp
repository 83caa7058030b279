// What TorchScript does with text.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <sstream>

#include "frontend/torchscript/arguments.h"
#include "rushlight/warning.h"

namespace rushlight::jit {

std::string to_text(const IValue& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

namespace {

const std::string& text(Arguments& a, size_t i = 0) { return a[i].toStringRef(); }
IValue texts(std::vector<std::string> list) { return IValue(list); }

// Python's [begin, end) of a sequence; -1 is the last one.
std::string part(const std::string& s, int64_t begin, int64_t end) {
  const auto n = static_cast<int64_t>(s.size());
  const auto at = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  return at(begin) < at(end)
             ? s.substr(static_cast<size_t>(at(begin)), static_cast<size_t>(at(end) - at(begin)))
             : "";
}
std::string part(Arguments& a, size_t from) {
  return part(text(a), a.size() > from ? a[from].toInt() : 0,
              a.size() > from + 1 ? a[from + 1].toInt() : INT64_MAX);
}

template <int (*Test)(int)>
IValue all_are(Arguments& a) {
  const std::string& s = text(a);
  return IValue(!s.empty() &&
                std::ranges::all_of(s, [](char c) { return Test(static_cast<unsigned char>(c)) != 0; }));
}
template <int (*Wanted)(int), int (*Other)(int)>
IValue is_case(Arguments& a) {
  const auto has = [&](int (*test)(int)) {
    return std::ranges::any_of(text(a), [&](char c) { return test(static_cast<unsigned char>(c)) != 0; });
  };
  return IValue(has(Wanted) && !has(Other));
}
template <int (*Change)(int)>
IValue mapped(Arguments& a) {
  std::string s = text(a);
  for (char& c : s) c = static_cast<char>(Change(static_cast<unsigned char>(c)));
  return IValue(std::move(s));
}
int swapped(int c) { return std::isupper(c) ? std::tolower(c) : std::toupper(c); }
std::string title(const std::string& given, bool every_word) {
  std::string s = given;
  bool first = true;
  for (char& c : s) {
    const auto u = static_cast<unsigned char>(c);
    c = static_cast<char>(first ? std::toupper(u) : std::tolower(u));
    first = every_word && !std::isalpha(u);
  }
  return s;
}
// Whether capitals stand at the beginnings of words and nowhere else.
IValue is_title(Arguments& a) {
  bool within = false, found = false;
  for (const char letter : text(a)) {
    const auto c = static_cast<unsigned char>(letter);
    if (std::isupper(c) ? within : std::islower(c) && !within) return IValue(false);
    within = std::isalpha(c) != 0;
    found = found || within;
  }
  return IValue(found);
}
IValue is_identifier(Arguments& a) {
  const auto fits = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const std::string& s = text(a);
  return IValue(!s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) &&
                std::ranges::all_of(s, fits));
}
IValue expanded_tabs(Arguments& a) {
  const int64_t width = a.size() > 1 ? std::clamp<int64_t>(a[1].toInt(), 0, 1 << 20) : 8;
  std::string out;
  size_t column = 0;
  for (const char c : text(a)) {
    if (c == '\t' && width > 0) {
      const auto more = static_cast<size_t>(width) - column % static_cast<size_t>(width);
      out.append(more, ' ');
      column += more;
    } else if (c != '\t') {
      out += c;
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return IValue(std::move(out));
}
template <bool Left, bool Right>
IValue stripped(Arguments& a) {
  const std::string set = a.size() > 1 && a[1].isString() ? text(a, 1) : " \t\n\r\v\f";
  const std::string& s = text(a);
  const size_t begin = Left ? s.find_first_not_of(set) : 0;
  const size_t end = Right ? s.find_last_not_of(set) : s.size() - 1;
  if (begin == std::string::npos || end == std::string::npos) return IValue("");
  return IValue(s.substr(begin, end - begin + 1));
}
IValue split(Arguments& a) {
  const std::string& s = text(a);
  const int64_t most = a.size() > 2 ? a[2].toInt() : -1;
  std::vector<std::string> out;
  if (a.size() < 2 || a[1].isNone()) {
    std::istringstream in(s);
    for (std::string word; in >> word;) out.push_back(word);
    return texts(out);
  }
  const std::string& by = text(a, 1);
  RL_CHECK_VALUE(!by.empty(), "empty separator");
  size_t at = 0;
  for (size_t found; (most < 0 || std::ssize(out) < most) && (found = s.find(by, at)) != std::string::npos;)
    out.push_back(s.substr(at, found - at)), at = found + by.size();
  out.push_back(s.substr(at));
  return texts(out);
}
IValue right_split(Arguments& a) {
  const std::string &s = text(a), &by = text(a, 1);
  RL_CHECK_VALUE(!by.empty(), "empty separator");
  const int64_t most = a.size() > 2 ? a[2].toInt() : -1;
  std::vector<std::string> out;
  std::string rest = s;
  for (size_t found; (most < 0 || std::ssize(out) < most) && (found = rest.rfind(by)) != std::string::npos;)
    out.push_back(rest.substr(found + by.size())), rest.resize(found);
  out.push_back(rest);
  std::ranges::reverse(out);
  return texts(out);
}
IValue split_lines(Arguments& a) {
  std::vector<std::string> out;
  std::istringstream in(text(a));
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return texts(out);
}
IValue replace(Arguments& a) {
  const std::string &from = text(a, 1), &to = text(a, 2);
  int64_t left = a.size() > 3 ? a[3].toInt() : -1;
  std::string s = text(a);
  RL_CHECK_VALUE(!from.empty(), "replace: the text to be replaced is empty");
  for (size_t at = 0; left != 0 && (at = s.find(from, at)) != std::string::npos; at += to.size(), --left)
    s.replace(at, from.size(), to);
  return IValue(std::move(s));
}
IValue join(Arguments& a) {
  std::string out;
  for (const IValue& item : a[1].toListRef()) {
    if (&item != &a[1].toListRef()[0]) out += text(a);
    out += item.toStringRef();
  }
  return IValue(std::move(out));
}
IValue find(Arguments& a, bool last) {
  const std::string inside = part(a, 2);
  const size_t found = last ? inside.rfind(text(a, 1)) : inside.find(text(a, 1));
  if (found == std::string::npos) return IValue(int64_t{-1});
  int64_t begin = a.size() > 2 ? a[2].toInt() : 0;
  if (begin < 0) begin = std::max<int64_t>(0, begin + std::ssize(text(a)));
  return IValue(begin + static_cast<int64_t>(found));
}
IValue index(Arguments& a, bool last) {
  IValue found = find(a, last);
  RL_CHECK_VALUE(found.toInt() >= 0, "substring not found");
  return found;
}
IValue count(Arguments& a) {
  const std::string inside = part(a, 2);
  int64_t n = 0;
  for (size_t at = 0; (at = inside.find(text(a, 1), at)) != std::string::npos;
       at += std::max<size_t>(1, text(a, 1).size()))
    ++n;
  return IValue(n);
}
IValue padded(Arguments& a, bool left, bool right) {
  std::string s = text(a);
  const std::string fill = a.size() > 2 ? text(a, 2) : " ";
  RL_CHECK_TYPE(fill.size() == 1, "The fill character must be exactly one character long");
  const int64_t more = std::min<int64_t>(a[1].toInt(), 1 << 30) - std::ssize(s);
  if (more <= 0) return IValue(std::move(s));
  const auto before = static_cast<size_t>(left && right ? more / 2 : left ? more : 0);
  return IValue(std::string(before, fill[0]) + s + std::string(static_cast<size_t>(more) - before, fill[0]));
}
IValue zero_filled(Arguments& a) {
  const std::string& s = text(a);
  const bool sign = !s.empty() && (s[0] == '-' || s[0] == '+');
  const int64_t more = std::min<int64_t>(a[1].toInt(), 1 << 30) - std::ssize(s);
  return IValue(s.substr(0, sign) + std::string(static_cast<size_t>(std::max<int64_t>(0, more)), '0') +
                s.substr(sign));
}
IValue parts(Arguments& a, bool last) {
  const std::string &s = text(a), &by = text(a, 1);
  const size_t found = last ? s.rfind(by) : s.find(by);
  IValue::List items;
  if (found == std::string::npos)
    items = last ? IValue::List{"", "", s} : IValue::List{s, "", ""};
  else
    items = {s.substr(0, found), by, s.substr(found + by.size())};
  return IValue(IValue::Tuple{std::move(items), {}, {}});
}
// Braces stand for the arguments in turn.
IValue format(Arguments& a) {
  const std::string& pattern = text(a);
  std::string out;
  size_t next = 1, at = 0;
  for (size_t found; (found = pattern.find("{}", at)) != std::string::npos; at = found + 2) {
    RL_CHECK(next < a.size(), "Too few arguments for format string: ", pattern);
    out += pattern.substr(at, found - at) + to_text(a[next++]);
  }
  return IValue(out + pattern.substr(at));
}
// One number as a format says it: without widths and digits, of C++'s `int` and `float`.
std::string formatted_number(char kind, const IValue& v) {
  RL_CHECK(v.isScalar() || v.isTensor(), "%", kind, " requires a number for formatting, but got ",
           v.tagKind());
  std::ostringstream out;
  if (kind == 'd' || kind == 'i') {
    const double d = v.isDouble() ? v.toDouble() : 0;
    if (!v.isDouble()) return std::to_string(to_integer(v));
    return std::to_string(std::abs(d) < 0x1p31 ? static_cast<int32_t>(d) : INT32_MIN);
  }
  if (kind == 'E' || kind == 'F') out << std::uppercase;
  out << (kind == 'e' || kind == 'E' ? std::scientific : std::fixed) << static_cast<float>(to_real(v));
  return out.str();
}
std::string formatted_letter(const IValue& v) {
  if (v.isInt()) return std::string(1, static_cast<char>(v.toInt()));
  RL_CHECK(v.isString() && v.toStringRef().size() == 1, "%c requires an int or char for formatting, but got ",
           v.tagKind());
  return v.toStringRef();
}
IValue percent_format(Arguments& a) {
  const std::string& pattern = text(a);
  std::vector<IValue> values(a.values.begin() + 1, a.values.end());
  if (values.size() == 1 && values[0].isTuple()) values = std::vector<IValue>(values[0].toTupleRef().items);
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    RL_CHECK(++i < pattern.size(), "Incomplete format specifier");
    const char kind = pattern[i];
    if (kind == '%') {
      out += '%';
      continue;
    }
    RL_CHECK(next < values.size(), "Too few arguments for format string: ", pattern);
    const IValue& v = values[next++];
    RL_CHECK(std::string_view("dieEfFcs").find(kind) != std::string_view::npos, "The specifier %", kind,
             " is not supported in TorchScript format strings");
    out += kind == 's' ? to_text(v) : kind == 'c' ? formatted_letter(v) : formatted_number(kind, v);
  }
  RL_CHECK(next == values.size(), "Too many arguments for format string: ", pattern);
  return IValue(std::move(out));
}
std::string digits(int64_t v, unsigned base, const char* prefix) {
  uint64_t rest = v < 0 ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  std::string out;
  do out.insert(out.begin(), "0123456789abcdef"[rest % base]);
  while (rest /= base);
  return (v < 0 ? "-" : "") + std::string(prefix) + out;
}
IValue print(Arguments& a) {
  std::string line;
  for (size_t i = 0; i < a.size(); ++i) line += (i ? " " : "") + to_text(a[i]);
  std::cout << line << "\n";
  return IValue();
}
IValue raise(Arguments& a) {
  std::string message = to_text(a[0]);
  static constexpr std::pair<std::string_view, ErrorKind> kinds[] = {
      {"ValueError", ErrorKind::Value}, {"TypeError", ErrorKind::Type},
      {"IndexError", ErrorKind::Index}, {"NotImplementedError", ErrorKind::NotImplemented},
      {"KeyError", ErrorKind::Index},   {"AssertionError", ErrorKind::Assertion}};
  const std::string name = a.size() > 1 && a[1].isString() ? text(a, 1) : "";
  ErrorKind kind = ErrorKind::Runtime;
  for (const auto& [wanted, k] : kinds)
    if (name.ends_with(wanted) || message.starts_with(wanted)) kind = k;
  throw Error(kind, std::move(message));
}

}  // namespace

std::vector<NamedBuiltin> text_builtins() {
  return {
      {"aten::str", [](Arguments& a) { return IValue(to_text(a[0])); }},
      {"python::str", [](Arguments& a) { return IValue(to_text(a[0])); }},
      {"python::print", print},
      {"prim::Print", print},
      {"prim::RaiseException", raise},
      {"aten::warn",
       [](Arguments& a) {
         warn(to_text(a[0]));
         return IValue();
       }},
      {"aten::format", format},
      {"aten::percentFormat", percent_format},
      {"aten::ord",
       [](Arguments& a) { return IValue(static_cast<int64_t>(static_cast<unsigned char>(text(a).at(0)))); }},
      {"aten::chr", [](Arguments& a) { return IValue(std::string(1, static_cast<char>(a[0].toInt()))); }},
      {"aten::hex", [](Arguments& a) { return IValue(digits(a[0].toInt(), 16, "0x")); }},
      {"aten::oct", [](Arguments& a) { return IValue(digits(a[0].toInt(), 8, "0o")); }},
      {"aten::bin", [](Arguments& a) { return IValue(digits(a[0].toInt(), 2, "0b")); }},
      {"aten::upper", mapped<std::toupper>},
      {"aten::lower", mapped<std::tolower>},
      {"aten::swapcase", mapped<swapped>},
      {"aten::capitalize", [](Arguments& a) { return IValue(title(text(a), false)); }},
      {"aten::title", [](Arguments& a) { return IValue(title(text(a), true)); }},
      {"aten::isdigit", all_are<std::isdigit>},
      {"aten::isnumeric", all_are<std::isdigit>},
      {"aten::isdecimal", all_are<std::isdigit>},
      {"aten::isalpha", all_are<std::isalpha>},
      {"aten::isalnum", all_are<std::isalnum>},
      {"aten::isspace", all_are<std::isspace>},
      {"aten::isprintable", all_are<std::isprint>},
      {"aten::islower", is_case<std::islower, std::isupper>},
      {"aten::isupper", is_case<std::isupper, std::islower>},
      {"aten::istitle", is_title},
      {"aten::isidentifier", is_identifier},
      {"aten::expandtabs", expanded_tabs},
      {"aten::strip", stripped<true, true>},
      {"aten::lstrip", stripped<true, false>},
      {"aten::rstrip", stripped<false, true>},
      {"aten::split", split, true},
      {"aten::rsplit", right_split},
      {"aten::splitlines", split_lines},
      {"aten::replace", replace},
      {"aten::join", join},
      {"aten::find", [](Arguments& a) { return find(a, false); }},
      {"aten::rfind", [](Arguments& a) { return find(a, true); }},
      {"aten::rindex", [](Arguments& a) { return index(a, true); }},
      {"aten::startswith", [](Arguments& a) { return IValue(part(a, 2).starts_with(text(a, 1))); }},
      {"aten::endswith", [](Arguments& a) { return IValue(part(a, 2).ends_with(text(a, 1))); }},
      {"aten::ljust", [](Arguments& a) { return padded(a, false, true); }},
      {"aten::rjust", [](Arguments& a) { return padded(a, true, false); }},
      {"aten::center", [](Arguments& a) { return padded(a, true, true); }},
      {"aten::zfill", zero_filled},
      {"aten::partition", [](Arguments& a) { return parts(a, false); }},
      {"aten::rpartition", [](Arguments& a) { return parts(a, true); }},
      // What lists and text share is in containers.cpp, which asks these.
      {"text::index", [](Arguments& a) { return index(a, false); }},
      {"text::count", count},
  };
}

}  // namespace rushlight::jit
