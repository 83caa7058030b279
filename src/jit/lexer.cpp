#include "jit/lexer.h"

#include <charconv>
#include <limits>

#include "core/error.h"
#include "core/real_number.h"

namespace rushlight::jit {
namespace {

// Apart from <cctype>, whose answers depend on the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}
size_t word_length(std::string_view s) {
  size_t n = 0;
  while (n < s.size() && is_word_char(s[n])) ++n;
  return n;
}
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void Lexer::fail(std::string_view what) const { RL_FAIL_AS(Value, "graph text, line ", line_, ": ", what); }

void Lexer::skip_blanks() {
  while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) rest_.remove_prefix(1);
}

Token Lexer::take(Token::Kind kind, size_t length) {
  Token token;
  token.kind = kind;
  token.text = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return token;
}

Token Lexer::next() {
  line_ += ended_line_;
  ended_line_ = false;
  skip_blanks();
  if (rest_.empty()) return {};
  const char c = rest_[0];
  if (c == '\n') {
    ended_line_ = true;
    return take(Token::Kind::NewLine, 1);
  }
  if (c == '#') {
    Token token = take(Token::Kind::Comment, std::min(rest_.find('\n'), rest_.size()));
    token.string = token.text.substr(std::min(token.text.find_first_not_of("# "), token.text.size()));
    return token;
  }
  if (c == '%') {
    rest_.remove_prefix(1);
    if (word_length(rest_) == 0) fail("expected a name after '%'");
    return take(Token::Kind::Value, word_length(rest_));
  }
  if (c == '"') return string();
  const bool negative = (c == '-') && rest_.size() > 1;
  if (is_digit(negative ? rest_[1] : c) || (negative && rest_.substr(1, 3) == "inf")) return number();
  if (const size_t n = word_length(rest_)) {
    const std::string_view word = rest_.substr(0, n);
    return word == "inf" || word == "nan" ? number() : take(Token::Kind::Word, n);
  }
  for (const std::string_view mark : {"::", "(", ")", "[", "]", "{", "}", ",", ":", "=", "*", "+", "-", "?"})
    if (rest_.starts_with(mark)) return take(Token::Kind::Mark, mark.size());
  fail("a character that has no meaning here");
}

// Integers, decimals and inf, nan; the sign belongs to the number.
Token Lexer::number() {
  size_t n = rest_[0] == '-';
  while (n < rest_.size() && (is_word_char(rest_[n]) || ((rest_[n] == '-' || rest_[n] == '+') &&
                                                         (rest_[n - 1] == 'e' || rest_[n - 1] == 'E'))))
    ++n;
  if (rest_[n - 1] == 'j') --n;  // the imaginary part of (1+2j): the parser asks for the letter
  const bool whole = rest_.substr(0, n).find_first_of(".eEin") == std::string_view::npos;
  Token token = take(whole ? Token::Kind::Integer : Token::Kind::Float, n);
  const char *first = token.text.data(), *last = first + n;
  const auto [end, error] =
      whole ? std::from_chars(first, last, token.integer) : real_from_chars(first, last, token.number);
  if (error == std::errc::result_out_of_range) fail(str("the number ", token.text, " is out of range"));
  if (error != std::errc{} || end != last) fail(str("'", token.text, "' is no number"));
  return token;
}

// "..." with \", \\, \n and \xHH.
Token Lexer::string() {
  std::string content;
  size_t i = 1;
  for (;; ++i) {
    if (i >= rest_.size() || rest_[i] == '\n') fail("a string without end");
    if (rest_[i] == '"') break;
    if (rest_[i] != '\\') {
      content += rest_[i];
      continue;
    }
    const char escape = ++i < rest_.size() ? rest_[i] : '\0';
    if (escape == 'n') {
      content += '\n';
    } else if (escape == '"' || escape == '\\') {
      content += escape;
    } else if (escape == 'x' && i + 2 < rest_.size() && hex_digit(rest_[i + 1]) >= 0 &&
               hex_digit(rest_[i + 2]) >= 0) {
      content += static_cast<char>(hex_digit(rest_[i + 1]) * 16 + hex_digit(rest_[i + 2]));
      i += 2;
    } else {
      fail("an escape in a string that has no meaning");
    }
  }
  Token token = take(Token::Kind::String, i + 1);
  token.string = std::move(content);
  return token;
}

}  // namespace rushlight::jit
