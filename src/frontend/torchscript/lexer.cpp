#include "frontend/torchscript/lexer.h"

#include <cctype>

#include "core/error.h"

namespace rushlight::jit {
namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c & '\x80'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view code, const std::string& file) : code_(code), file_(file) {}
  std::vector<Token> run() {
    while (at_ < code_.size()) {
      if (begins_line_ && depth_ == 0 && !indent()) continue;
      begins_line_ = false;
      word();
    }
    if (!tokens_.empty() && tokens_.back().kind != Token::Kind::Line) add(Token::Kind::Line);
    while (indents_.size() > 1) indents_.pop_back(), add(Token::Kind::Dedent);
    add(Token::Kind::End);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < code_.size() ? code_[at_ + ahead] : '\0'; }
  void add(Token::Kind kind, std::string text = {}) { tokens_.push_back({kind, std::move(text), line_}); }
  [[noreturn]] void fail(const std::string& what) const {
    RL_FAIL("jit.load: ", file_, ":", line_, ": ", what);
  }

  // Indentation of a line; false where the line is empty.
  bool indent() {
    size_t width = 0;
    while (peek() == ' ') ++width, ++at_;
    if (peek() == '#')
      while (at_ < code_.size() && peek() != '\n') ++at_;
    if (peek() == '\r') ++at_;
    if (peek() == '\n') {
      ++at_, ++line_;
      return false;
    }
    if (at_ == code_.size()) return false;
    if (width > indents_.back()) {
      if (indents_.size() > 900) fail("statements are nested too deeply");
      indents_.push_back(width), add(Token::Kind::Indent);
    }
    while (width < indents_.back()) indents_.pop_back(), add(Token::Kind::Dedent);
    if (width != indents_.back()) fail("the indentation fits no line above");
    return true;
  }

  void word() {
    const char c = peek();
    if (c == '\n') {
      ++at_;
      if (depth_ == 0) add(Token::Kind::Line), begins_line_ = true;
      ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < code_.size() && peek() != '\n') ++at_;
    } else if (c == '"' || c == '\'') {
      text(c);
    } else if (begins_name(c)) {
      const size_t begin = at_;
      while (begins_name(peek()) || is_digit(peek())) ++at_;
      add(Token::Kind::Name, std::string(code_.substr(begin, at_ - begin)));
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else {
      symbol();
    }
  }

  void number() {
    const size_t begin = at_;
    bool real = false;
    while (is_digit(peek())) ++at_;
    if (peek() == '.') {
      real = true, ++at_;
      while (is_digit(peek())) ++at_;
    }
    if (peek() == 'e' || peek() == 'E') {
      real = true, ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      while (is_digit(peek())) ++at_;
    }
    std::string digits(code_.substr(begin, at_ - begin));
    if (peek() == 'j') {
      ++at_;
      add(Token::Kind::Imaginary, std::move(digits));
    } else {
      add(real ? Token::Kind::Real : Token::Kind::Integer, std::move(digits));
    }
  }

  void symbol() {
    static constexpr std::string_view pairs[] = {"->", "==", "!=", "<=", ">=", "//", "**", "<<", ">>",
                                                 "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};
    const char c = peek();
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if (c == ')' || c == ']' || c == '}') --depth_;
    if (depth_ < 0 || depth_ > 900) fail("brackets do not match, or are nested too deeply");
    static constexpr std::string_view longer[] = {"**=", "<<=", ">>=", "//="};
    for (const std::string_view word : longer)
      if (code_.substr(at_, 3) == word) return at_ += 3, add(Token::Kind::Symbol, std::string(word));
    for (const std::string_view pair : pairs)
      if (code_.substr(at_, 2) == pair) return at_ += 2, add(Token::Kind::Symbol, std::string(pair));
    if (std::string_view("()[]{}.,:=+-*/%<>~&|^@").find(c) == std::string_view::npos)
      fail("there is a character that TorchScript has no use for");
    ++at_;
    add(Token::Kind::Symbol, std::string(1, c));
  }

  void text(char quote) {
    std::string out;
    for (++at_; peek() != quote;) {
      if (at_ >= code_.size() || peek() == '\n') fail("a string has no end");
      const char c = code_[at_++];
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
    ++at_;
    add(Token::Kind::Text, std::move(out));
  }
  void escape(std::string& out) {
    static constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
    const char c = peek();
    if (const size_t found = letters.find(c); c && found != std::string_view::npos) {
      out += meanings[found], ++at_;
    } else if (c == 'x' && std::isxdigit(peek(1)) && std::isxdigit(peek(2))) {
      out += static_cast<char>(std::stoi(std::string(code_.substr(at_ + 1, 2)), nullptr, 16)), at_ += 3;
    } else if (c >= '0' && c <= '7') {
      int value = 0;
      for (int n = 0; n < 3 && peek() >= '0' && peek() <= '7'; ++n) value = value * 8 + (code_[at_++] - '0');
      out += static_cast<char>(value);
    } else {
      out += '\\';
    }
  }

  std::string_view code_;
  const std::string& file_;
  size_t at_ = 0;
  int line_ = 1, depth_ = 0;
  bool begins_line_ = true;
  std::vector<size_t> indents_ = {0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> split_into_tokens(std::string_view code, const std::string& file) {
  return Lexer(code, file).run();
}

}  // namespace rushlight::jit
