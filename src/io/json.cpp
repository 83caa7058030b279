#include "io/json.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/real_number.h"
#include "io/json_string.h"

namespace rushlight::io {
namespace {

constexpr int kDeepest = 100;

}  // namespace

class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view what, const Json::Reading& reading)
      : text_(text), what_(what), reading_(reading) {}

  Json run() {
    Json value = read(0);
    skip_space();
    if (at_ != text_.size()) fail("has text behind its end");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { RL_FAIL(what_, " ", what, " at byte ", at_); }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n'))
      ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    return ++at_, true;
  }
  void expect(char c) {
    if (!accept(c)) fail(str("is not JSON: expected '", c, "'"));
  }

  Json read(int depth) {
    if (depth > kDeepest) fail("is nested too deep");
    if (++values_ > reading_.most_values) fail("has too many values");
    skip_space();
    if (at_ == text_.size()) fail("ends early");
    Json value;
    if (accept('{')) {
      value.content_ = object(depth);
    } else if (accept('[')) {
      list(value, depth);
    } else if (text_[at_] == '"') {
      value.content_ = string();
    } else if (word("true")) {
      value.content_ = true;
    } else if (word("false")) {
      value.content_ = false;
    } else if (!word("null")) {
      number(value);
    }
    return value;
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return false;
    return at_ += w.size(), true;
  }

  Json::Object object(int depth) {
    Json::Object members;
    if (accept('}')) return members;
    do {
      skip_space();
      std::string name = string();
      expect(':');
      members.emplace_back(std::move(name), read(depth + 1));
    } while (accept(','));
    expect('}');
    return members;
  }
  void list(Json& value, int depth) {
    Json::List items;
    bool more = !accept(']');
    if (more && reading_.pack) {
      auto numbers = std::make_shared<Json::Numbers>();
      more = pack(*numbers);
      if (!more && numbers->size()) {
        value.content_ = std::shared_ptr<const Json::Numbers>(std::move(numbers));
        return;
      }
      unpack(*numbers, items);
    }
    if (more) {
      do items.push_back(read(depth + 1));
      while (accept(','));
      expect(']');
    }
    value.content_ = std::move(items);
  }
  // Reads numbers until the list ends, or something else follows: true.
  bool pack(Json::Numbers& numbers) {
    auto real = [&](double x) {
      for (const int64_t i : numbers.whole) numbers.real.push_back(static_cast<double>(i));
      numbers.whole.clear();
      numbers.real.push_back(x);
    };
    for (;;) {
      skip_space();
      if (at_ == text_.size() || !(text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9')))
        return true;
      Json one;
      number(one);
      if (const int64_t* i = one.integer(); i && numbers.real.empty())
        numbers.whole.push_back(*i);
      else
        real(one.number());
      if (accept(',')) continue;
      expect(']');
      return false;
    }
  }
  void unpack(const Json::Numbers& numbers, Json::List& items) {
    auto add = [&](auto x) {
      if (++values_ > reading_.most_values) fail("has too many values");
      items.emplace_back().content_ = x;
    };
    for (const int64_t i : numbers.whole) add(i);
    for (const double x : numbers.real) add(x);
  }

  void number(Json& value) {
    const size_t start = at_;
    bool whole = true;
    auto digits = [&] {
      const size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      if (at_ == first) fail("is not JSON: expected a value");
      return at_ - first;
    };
    if (text_[at_] == '-') ++at_;
    const size_t first = at_;
    if (digits() > 1 && text_[first] == '0') fail("has a number that begins with zero");
    if (at_ < text_.size() && text_[at_] == '.') ++at_, digits(), whole = false;
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_, whole = false;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      digits();
    }
    const char *begin = text_.data() + start, *end = text_.data() + at_;
    int64_t integer = 0;
    if (whole && std::from_chars(begin, end, integer).ec == std::errc()) {
      value.content_ = integer;
      return;
    }
    double real = 0;
    if (real_from_chars(begin, end, real).ec != std::errc()) fail("has a number that is too large");
    value.content_ = real;
  }

  std::string string() {
    if (at_ == text_.size() || text_[at_] != '"') fail("is not JSON: expected a string");
    ++at_;
    return read_json_string(text_, at_, [&](const char* what) { fail(what); });
  }

  std::string_view text_, what_;
  Json::Reading reading_;
  size_t at_ = 0, values_ = 0;
};

Json Json::parse(std::string_view text, std::string_view what, const Reading& reading) {
  return JsonReader(text, what, reading).run();
}

double Json::number() const {
  if (const int64_t* i = integer()) return static_cast<double>(*i);
  const double* d = std::get_if<double>(&content_);
  return d ? *d : std::nan("");
}

const Json& Json::operator[](std::string_view name) const {
  static const Json none;
  if (const Object* members = object())
    for (const auto& [key, value] : *members)
      if (key == name) return value;
  return none;
}

}  // namespace rushlight::io
