#include "serve/template_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"

namespace rushlight::serve::jinja {
namespace {

using Kind = Expression::Kind;

constexpr int kDeepest = 60;

// --- the text as pieces
// -----------------------------------------------------------------------------------------

struct Piece {
  enum class Kind { Text, Write, Tag } kind;
  std::string_view text;
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
std::string_view trim_right(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}
std::string_view trim_left(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

bool begins_line(std::string_view part, std::string_view of) {
  return part.data() == of.data() || part.data()[-1] == '\n';
}
size_t first_tag(std::string_view text) {
  size_t at = text.npos;
  for (const std::string_view mark : {"{{", "{%", "{#"}) at = std::min(at, text.find(mark));
  return at;
}

// A tag takes the newline behind it away, and the indent before it, as transformers has its templates.
std::vector<Piece> pieces_of(const std::string_view all) {
  std::string_view rest = all;
  std::vector<Piece> pieces;
  bool strip = false, after_tag = false;
  while (!rest.empty()) {
    const size_t open = first_tag(rest);
    std::string_view text = rest.substr(0, open);
    const bool last = open == std::string_view::npos;
    if (strip) text = trim_left(text);
    if (!strip && after_tag && text.starts_with('\n')) text.remove_prefix(1);
    strip = after_tag = false;
    if (last) {
      if (!text.empty()) pieces.push_back({Piece::Kind::Text, text});
      return pieces;
    }
    const char mark = rest[open + 1];
    std::string_view inner = rest.substr(open + 2);
    if (inner.starts_with('-')) {
      text = trim_right(text), inner.remove_prefix(1);
    } else if (mark != '{' && !inner.starts_with('+')) {
      const size_t line = text.find_last_not_of(" \t");
      if (line == std::string_view::npos ? begins_line(text, all) : text[line] == '\n')
        text = text.substr(0, line + 1);
    }
    if (inner.starts_with('+')) inner.remove_prefix(1);
    if (!text.empty()) pieces.push_back({Piece::Kind::Text, text});
    const std::string_view closing = mark == '{' ? "}}" : mark == '%' ? "%}" : "#}";
    size_t end = 0;
    char quote = 0;  // what stands in quotes closes nothing
    for (; end < inner.size(); ++end) {
      const char c = inner[end];
      if (mark != '#' && quote && c == '\\') {
        ++end;
      } else if (mark != '#' && (quote ? c == quote : c == '"' || c == '\'')) {
        quote = quote ? 0 : c;
      } else if (!quote && inner.substr(end).starts_with(closing)) {
        break;
      }
    }
    RL_CHECK_VALUE(end < inner.size(), "the template ends inside of a tag");
    rest = inner.substr(end + 2);
    std::string_view code = inner.substr(0, end);
    if (code.ends_with('-')) code.remove_suffix(1), strip = true;
    after_tag = mark != '{';
    if (mark != '#') pieces.push_back({mark == '{' ? Piece::Kind::Write : Piece::Kind::Tag, code});
  }
  return pieces;
}

// --- expressions
// ------------------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(std::string_view code) : code_(code) { next(); }

  bool at_end() const { return kind_ == Token::End; }
  void end() const { RL_CHECK_VALUE(at_end(), "the template has '", token_, "' where nothing was expected"); }
  bool accept(std::string_view sign) {
    if (kind_ == Token::End || kind_ == Token::Text || token_ != sign) return false;
    return next(), true;
  }
  void expect(std::string_view sign) {
    RL_CHECK_VALUE(accept(sign), "the template has '", token_, "' where '", sign, "' was expected");
  }
  std::string name() {
    RL_CHECK_VALUE(kind_ == Token::Name, "the template has '", token_, "' where a name was expected");
    std::string name = token_;
    return next(), name;
  }

  ExpressionPtr expression() {
    RL_CHECK_VALUE(++depth_ < kDeepest, "the template is nested too deep");
    ExpressionPtr value = either();
    if (accept("if")) {
      ExpressionPtr condition = either(), other = accept("else") ? expression() : make(Kind::Constant);
      value = make(Kind::Choice, "", std::move(condition), std::move(value), std::move(other));
    }
    --depth_;
    return value;
  }
  ExpressionPtr loop_list() { return either(); }  // an `if` behind it is the loop's

 private:
  enum class Token { End, Name, Number, Text, Sign };

  template <class... Parts>
  static ExpressionPtr make(Kind kind, std::string name = {}, Parts... parts) {
    auto e = std::make_unique<Expression>();
    e->kind = kind, e->name = std::move(name);
    (e->parts.push_back(std::move(parts)), ...);
    return e;
  }
  static ExpressionPtr constant(Value value) {
    auto e = make(Kind::Constant);
    e->constant = std::move(value);
    return e;
  }

  void next() {
    code_ = trim_left(code_);
    token_.clear();
    if (code_.empty()) {
      kind_ = Token::End;
      return;
    }
    auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    auto digit = [](char c) { return c >= '0' && c <= '9'; };
    size_t n = 0;
    if (letter(code_[0])) {
      while (n < code_.size() && (letter(code_[n]) || digit(code_[n]))) ++n;
      kind_ = Token::Name;
    } else if (digit(code_[0])) {
      while (n < code_.size() &&
             (digit(code_[n]) || (code_[n] == '.' && n + 1 < code_.size() && digit(code_[n + 1]))))
        ++n;
      kind_ = Token::Number;
    } else if (code_[0] == '"' || code_[0] == '\'') {
      return text(code_[0]);
    } else {
      static constexpr std::string_view kPairs[] = {"==", "!=", "<=", ">=", "//", "**"};
      n = std::ranges::count(kPairs, code_.substr(0, 2)) ? 2 : 1;
      kind_ = Token::Sign;
    }
    token_ = code_.substr(0, n);
    code_.remove_prefix(n);
  }
  void text(char quote) {
    kind_ = Token::Text;
    for (size_t i = 1; i < code_.size(); ++i) {
      char c = code_[i];
      if (c == quote) return code_.remove_prefix(i + 1);
      if (c == '\\' && i + 1 < code_.size()) {
        c = code_[++i];
        const size_t known = std::string_view("ntr").find(c);
        if (known != std::string_view::npos)
          c = "\n\t\r"[known];
        else
          RL_CHECK_VALUE(c == '\\' || c == '\'' || c == '"', "the template's escape '\\", c,
                         "' is not covered");
      }
      token_ += c;
    }
    RL_FAIL_AS(Value, "the template ends inside of a text");
  }

  template <class Next>
  ExpressionPtr chain(Kind kind, std::string_view sign, Next next) {
    ExpressionPtr value = (this->*next)();
    while (accept(sign)) value = make(kind, "", std::move(value), (this->*next)());
    return value;
  }
  ExpressionPtr either() { return chain(Kind::Or, "or", &Reader::both); }
  ExpressionPtr both() { return chain(Kind::And, "and", &Reader::negation); }
  ExpressionPtr negation() {
    if (!accept("not")) return comparison();
    RL_CHECK_VALUE(++depth_ < kDeepest, "the template is nested too deep");
    ExpressionPtr value = make(Kind::Not, "", negation());
    --depth_;
    return value;
  }
  ExpressionPtr comparison() {
    ExpressionPtr value = binary(0);
    for (;;) {
      const std::string sign = kind_ == Token::Text ? "" : token_;
      if (sign == "is") {
        value = test(std::move(value));
      } else if (sign == "not") {
        next(), expect("in");
        value = make(Kind::Not, "", make(Kind::Binary, "in", std::move(value), binary(0)));
      } else if (sign == "==" || sign == "!=" || sign == "<" || sign == ">" || sign == "<=" || sign == ">=" ||
                 sign == "in") {
        next();
        value = make(Kind::Binary, sign, std::move(value), binary(0));
      } else {
        return value;
      }
    }
  }
  ExpressionPtr test(ExpressionPtr value) {
    next();
    const bool negated = accept("not");
    std::string what = name();
    RL_CHECK_VALUE(has_test(what), "the template's test '", what, "' is not covered");
    ExpressionPtr e = make(Kind::Test, std::move(what), std::move(value));
    if (accept("(")) arguments(*e);
    return negated ? make(Kind::Not, "", std::move(e)) : std::move(e);
  }
  // Level 0 is ~, 1 sums, 2 products.
  ExpressionPtr binary(int level) {
    static const std::vector<std::string_view> kSigns[] = {{"~"}, {"+", "-"}, {"*", "/", "//", "%"}};
    if (level == 3) return unary();
    ExpressionPtr value = binary(level + 1);
    while (kind_ == Token::Sign && std::ranges::count(kSigns[level], token_)) {
      std::string sign = token_;
      next();
      value = make(Kind::Binary, std::move(sign), std::move(value), binary(level + 1));
    }
    return value;
  }
  ExpressionPtr unary() {
    if (accept("-")) return make(Kind::Binary, "-", constant(int64_t{0}), postfix());
    return postfix();
  }
  ExpressionPtr postfix() {
    ExpressionPtr value = atom();
    for (;;) {
      if (accept(".")) {
        value = make(Kind::Item, "", std::move(value), constant(name()));
      } else if (accept("[")) {
        value = subscript(std::move(value));
      } else if (accept("(")) {
        value = make(Kind::Call, "", std::move(value));
        arguments(*value);
      } else if (accept("|")) {
        std::string what = name();
        RL_CHECK_VALUE(has_filter(what), "the template's filter '", what, "' is not covered");
        value = make(Kind::Filter, std::move(what), std::move(value));
        if (accept("(")) arguments(*value);
      } else {
        return value;
      }
    }
  }
  ExpressionPtr subscript(ExpressionPtr value) {
    ExpressionPtr parts[3];
    bool slices = false;
    for (size_t i = 0; i < 3; ++i) {
      parts[i] =
          kind_ == Token::Sign && (token_ == ":" || token_ == "]") ? make(Kind::Constant) : expression();
      if (accept("]")) {
        if (!slices) return make(Kind::Item, "", std::move(value), std::move(parts[0]));
        for (ExpressionPtr& p : parts)
          if (!p) p = make(Kind::Constant);
        return make(Kind::Slice, "", std::move(value), std::move(parts[0]), std::move(parts[1]),
                    std::move(parts[2]));
      }
      expect(":"), slices = true;
    }
    RL_FAIL_AS(Value, "the template has a part with too many bounds");
  }
  void arguments(Expression& call) {
    while (!accept(")")) {
      ExpressionPtr value = expression();
      if (value->kind == Kind::Name && accept("=")) {
        call.keywords.push_back(value->name);
        value = expression();
      } else {
        RL_CHECK_VALUE(call.keywords.empty(), "the template has a plain argument behind a named one");
      }
      call.parts.push_back(std::move(value));
      if (!accept(",")) {
        expect(")");
        return;
      }
    }
  }
  ExpressionPtr atom() {
    if (kind_ == Token::Text) {
      std::string text = token_;
      next();
      while (kind_ == Token::Text) text += token_, next();
      return constant(std::move(text));
    }
    if (kind_ == Token::Number) return number();
    if (kind_ == Token::Name) {
      std::string n = name();
      if (n == "true" || n == "True") return constant(true);
      if (n == "false" || n == "False") return constant(false);
      if (n == "none" || n == "None") return constant(None());
      return make(Kind::Name, std::move(n));
    }
    if (accept("(")) {
      ExpressionPtr value = expression();
      if (accept(",")) return list(")", std::move(value));
      expect(")");
      return value;
    }
    if (accept("[")) return list("]", nullptr);
    if (accept("{")) {
      ExpressionPtr dict = make(Kind::Dict);
      while (!accept("}")) {
        dict->parts.push_back(expression());
        expect(":");
        dict->parts.push_back(expression());
        if (!accept(",")) {
          expect("}");
          break;
        }
      }
      return dict;
    }
    RL_FAIL_AS(Value, "the template has '", token_, "' where a value was expected");
  }
  ExpressionPtr list(std::string_view closing, ExpressionPtr first) {
    ExpressionPtr all = make(Kind::List);
    if (first) all->parts.push_back(std::move(first));
    while (!accept(closing)) {
      all->parts.push_back(expression());
      if (!accept(",")) {
        expect(closing);
        break;
      }
    }
    return all;
  }
  ExpressionPtr number() {
    const char *begin = token_.data(), *end = begin + token_.size();
    int64_t whole = 0;
    double real = 0;
    Value value;
    if (const auto r = std::from_chars(begin, end, whole); r.ec == std::errc() && r.ptr == end)
      value = whole;
    else if (const auto d = std::from_chars(begin, end, real); d.ec == std::errc() && d.ptr == end)
      value = real;
    else
      RL_FAIL_AS(Value, "the template has the number '", token_, "', which is not covered");
    next();
    return constant(std::move(value));
  }

  std::string_view code_;
  std::string token_;
  Token kind_ = Token::End;
  int depth_ = 0;
};

// --- statements
// -------------------------------------------------------------------------------------------------

class Statements {
 public:
  explicit Statements(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

  std::vector<Statement> all() {
    std::vector<Statement> body;
    const std::string ended = block(body, 0);
    RL_CHECK_VALUE(ended.empty(), "the template has '", ended, "' that closes nothing");
    return body;
  }

 private:
  // Reads until a tag that closes or continues the block; its name, with `reader_` behind that.
  std::string block(std::vector<Statement>& body, int depth) {
    RL_CHECK_VALUE(depth < kDeepest, "the template is nested too deep");
    while (at_ < pieces_.size()) {
      const Piece piece = pieces_[at_++];
      if (piece.kind == Piece::Kind::Text) {
        body.emplace_back().text = piece.text;
        continue;
      }
      reader_ = Reader(piece.text);
      if (piece.kind == Piece::Kind::Write) {
        Statement& s = add(body, Statement::Kind::Write);
        s.value = reader_.expression();
        reader_.end();
        continue;
      }
      std::string tag = reader_.name();
      if (tag == "elif" || tag == "else" || tag.starts_with("end")) {
        if (tag == "endgeneration") continue;
        return tag;
      }
      statement(tag, body, depth);
    }
    return {};
  }
  static Statement& add(std::vector<Statement>& body, Statement::Kind kind) {
    body.emplace_back().kind = kind;
    return body.back();
  }
  void statement(const std::string& tag, std::vector<Statement>& body, int depth) {
    if (tag == "generation") return;  // marks what the model wrote, for training
    if (tag == "if") return condition(add(body, Statement::Kind::If), depth);
    if (tag == "for") return loop(add(body, Statement::Kind::For), depth);
    if (tag == "break" || tag == "continue") {
      add(body, tag == "break" ? Statement::Kind::Break : Statement::Kind::Continue);
      return reader_.end();
    }
    RL_CHECK_VALUE(tag == "set", "the template's tag '", tag, "' is not covered");
    Statement& s = add(body, Statement::Kind::Set);
    s.names.push_back(reader_.name());
    if (reader_.accept(".")) s.names.push_back(reader_.name());
    RL_CHECK_VALUE(reader_.accept("="), "the template's block of 'set' is not covered");
    s.value = reader_.expression();
    reader_.end();
  }
  void condition(Statement& s, int depth) {
    s.value = reader_.expression();
    reader_.end();
    const std::string tag = block(s.body, depth + 1);
    if (tag == "elif") return condition(add(s.otherwise, Statement::Kind::If), depth + 1);
    close(tag, "endif", s, depth);
  }
  void loop(Statement& s, int depth) {
    s.names.push_back(reader_.name());
    while (reader_.accept(",")) s.names.push_back(reader_.name());
    reader_.expect("in");
    s.value = reader_.loop_list();
    if (reader_.accept("if")) s.filter = reader_.expression();
    reader_.end();
    close(block(s.body, depth + 1), "endfor", s, depth);
  }
  void close(std::string tag, std::string_view end, Statement& s, int depth) {
    if (tag == "else") tag = block(s.otherwise, depth + 1);
    RL_CHECK_VALUE(tag == end, "the template has '", tag, "' where '", end, "' was expected");
  }

  std::vector<Piece> pieces_;
  size_t at_ = 0;
  Reader reader_{""};
};

}  // namespace

std::vector<Statement> parse(std::string_view text) { return Statements(pieces_of(text)).all(); }

}  // namespace rushlight::serve::jinja
