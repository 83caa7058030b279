// The words of a graph's text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace rushlight::jit {

struct Token {
  enum class Kind : uint8_t { End, NewLine, Word, Value, Integer, Float, String, Comment, Mark };
  Kind kind = Kind::End;
  std::string_view text;  // as written; of a value without its percent sign
  std::string string;     // of a string: without quotes and escapes; of a comment: what it says
  int64_t integer = 0;
  double number = 0;

  bool is(Kind k) const { return kind == k; }
  bool is_mark(std::string_view mark) const { return kind == Kind::Mark && text == mark; }
  bool is_word(std::string_view word) const { return kind == Kind::Word && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}
  Token next();
  int line() const { return line_; }
  [[noreturn]] void fail(std::string_view what) const;

 private:
  Token take(Token::Kind kind, size_t length);
  Token number();
  Token string();
  void skip_blanks();

  std::string_view rest_;
  int line_ = 1;
  bool ended_line_ = false;
};

}  // namespace rushlight::jit
