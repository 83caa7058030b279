#include "dispatch/schema.h"

#include <algorithm>
#include <charconv>

#include "core/real_number.h"

namespace rushlight {

// Recursive descent over:  [space::]name[.overload](parameter, ..., *, parameter, ...) -> returns
class SchemaParser {
 public:
  SchemaParser(std::string_view text, Schema& schema) : rest_(text), schema_(schema) { schema.text = text; }

  void run() {
    parse_name();
    expect("(");
    const auto parameters = rest_.substr(0, rest_.find("->"));
    const auto commas = std::count(parameters.begin(), parameters.end(), ',');
    schema_.parameters.reserve(static_cast<size_t>(commas) + 1);  // a few too many: some are in defaults
    bool keyword_only = false;
    while (!accept(")")) {
      if (accept("*"))
        keyword_only = true;
      else
        parse_parameter(keyword_only);
      accept(",");
    }
    expect("->");
    if (accept("(")) {
      while (!accept(")")) {
        parse_return();
        accept(",");
      }
    } else {
      parse_return();
    }
    RL_CHECK(rest_.empty(), "trailing text in schema: ", schema_.text);
  }

 private:
  void skip_space() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    RL_CHECK(accept(token), "expected '", token, "' in schema: ", schema_.text);
  }
  std::string_view word() {
    skip_space();
    size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_')) ++n;
    RL_CHECK(n > 0, "expected a word in schema: ", schema_.text);
    const auto w = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return w;
  }
  int64_t integer() {
    skip_space();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    RL_CHECK(error == std::errc{}, "expected an integer in schema: ", schema_.text);
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  void parse_name() {
    std::string_view w = word();
    if (accept("::")) {
      schema_.space = w;
      w = word();
    }
    schema_.name = w;
    if (accept(".")) schema_.overload = word();
  }

  static Tag tag_of(std::string_view type, std::string_view text) {
    static constexpr std::pair<std::string_view, Tag> names[] = {{"Tensor", Tag::Tensor},
                                                                 {"Scalar", Tag::Scalar},
                                                                 {"int", Tag::Int},
                                                                 {"SymInt", Tag::Int},
                                                                 {"float", Tag::Float},
                                                                 {"bool", Tag::Bool},
                                                                 {"str", Tag::String},
                                                                 {"ScalarType", Tag::DType},
                                                                 {"Device", Tag::Device},
                                                                 {"Layout", Tag::Layout},
                                                                 {"MemoryFormat", Tag::MemoryFormat},
                                                                 {"Generator", Tag::Generator}};
    for (auto [name, tag] : names)
      if (name == type) return tag;
    const std::string_view hint = type == "int64_t"  ? ". Use `SymInt` or `int`"
                                  : type == "double" ? ". Use `float`"
                                                     : "";
    RL_FAIL("unknown type specifier '", type, "'", hint, " in schema: ", text);
    return Tag::None;
  }
  static Tag list_of(Tag element, std::string_view text) {
    switch (element) {
      case Tag::Tensor:
        return Tag::TensorList;
      case Tag::Int:
        return Tag::IntList;
      case Tag::Float:
        return Tag::FloatList;
      case Tag::Scalar:
        return Tag::ScalarList;
      case Tag::Bool:
        return Tag::BoolList;
      default:
        RL_FAIL("no list of this type, in schema: ", text);
        return element;
    }
  }

  struct Type {
    Tag tag;
    bool optional = false, elements_optional = false, mutated = false;
    int list_length = 0;
  };
  Type parse_type() {
    Type type{tag_of(word(), schema_.text)};
    type.mutated = alias_mark();
    type.optional = accept("?");
    if (accept("[")) {
      type.elements_optional = std::exchange(type.optional, false);
      type.tag = list_of(type.tag, schema_.text);
      if (!accept("]")) {
        type.list_length = static_cast<int>(integer());
        expect("]");
      }
      type.mutated |= alias_mark();
      type.optional = accept("?");
    }
    return type;
  }
  // "(a)", "(a!)", "(a -> *)", or "!" alone of a tensor that is written to and shares with no other. True if
  // written.
  bool alias_mark() {
    if (accept("!")) return true;
    if (!accept("(")) return false;
    const size_t end = rest_.find(')');
    RL_CHECK(end != std::string_view::npos, "expected ')' in schema: ", schema_.text);
    const bool written = rest_.substr(0, end).find('!') != std::string_view::npos;
    rest_.remove_prefix(end + 1);
    return written;
  }

  void parse_parameter(bool keyword_only) {
    const Type type = parse_type();
    Parameter p;
    p.type = type.tag;
    p.optional = type.optional;
    p.elements_optional = type.elements_optional;
    p.mutated = type.mutated;
    p.list_length = type.list_length;
    p.keyword_only = keyword_only;
    p.name = word();
    if (accept("=")) {
      p.has_default = true;
      p.default_value = parse_default(p);
    }
    schema_.parameters.push_back(p);
  }

  void parse_return() {
    if (accept("()") || accept("None")) return;
    const Type type = parse_type();
    Return r{type.tag, "", type.mutated};
    skip_space();
    if (!rest_.empty() && rest_[0] != ',' && rest_[0] != ')') r.name = word();
    schema_.returns.push_back(r);
  }

  double number() {
    if (accept("inf")) return std::numeric_limits<double>::infinity();
    if (accept("-inf")) return -std::numeric_limits<double>::infinity();
    skip_space();
    double value = 0;
    const auto [end, error] = real_from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    RL_CHECK(error == std::errc{}, "expected a number in schema: ", schema_.text);
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  std::string_view quoted() {
    const char mark = accept("\"") ? '"' : '\'';
    if (mark == '\'') expect("'");
    const size_t n = rest_.find(mark);
    const auto s = rest_.substr(0, n);
    rest_.remove_prefix(n + 1);
    return s;
  }
  IntList keep(std::vector<int64_t> list) {
    return *schema_.int_lists_.emplace_back(std::make_unique<std::vector<int64_t>>(std::move(list)));
  }

  Value parse_default(const Parameter& p) {
    if (accept("None")) return Value();
    switch (p.type) {
      case Tag::Int:
        return Value(integer());
      case Tag::Float:
        return Value(number());
      case Tag::Bool:
        return Value(accept("True") || (expect("False"), false));
      case Tag::String:
        return Value(quoted());
      case Tag::Scalar:
        return scalar_default();
      case Tag::IntList:
        return Value(keep(int_list_default(p.list_length)));
      case Tag::FloatList: {
        auto& list = *schema_.float_lists_.emplace_back(std::make_unique<std::vector<double>>());
        expect("[");
        while (!accept("]")) {
          list.push_back(number());
          accept(",");
        }
        return Value(FloatList(list));
      }
      case Tag::TensorList:
        expect("[]");
        return Value(TensorList());
      case Tag::DType:
        return dtype_default();
      case Tag::MemoryFormat:
        return memory_format_default();
      case Tag::Device:
        return Value(Device::parse(quoted()));
      default:
        RL_FAIL("no default of this type, in schema: ", schema_.text);
        return Value();
    }
  }
  Value scalar_default() {
    if (accept("True")) return Value(Scalar(true));
    if (accept("False")) return Value(Scalar(false));
    skip_space();
    const size_t end = rest_.find_first_of(",)");
    const bool whole = rest_.substr(0, end).find_first_of(".e") == std::string_view::npos && rest_[0] != 'i';
    return whole ? Value(Scalar(integer())) : Value(Scalar(number()));
  }
  std::vector<int64_t> int_list_default(int length) {
    if (!accept("[")) return std::vector<int64_t>(std::max(length, 1), integer());
    std::vector<int64_t> list;
    while (!accept("]")) {
      list.push_back(integer());
      accept(",");
    }
    return list;
  }
  Value dtype_default() {
    const auto name = word();
    if (name == "long") return Value(DType::Int64);
    for (int i = 0; i < kDTypeCount; ++i)
      if (dtype_name(static_cast<DType>(i)) == name) return Value(static_cast<DType>(i));
    RL_FAIL("unknown dtype default in schema: ", schema_.text);
    return Value();
  }
  Value memory_format_default() {
    const auto name = word();
    if (name == "contiguous_format") return Value(MemoryFormat::Contiguous);
    RL_CHECK(name == "preserve_format", "unknown memory format default in schema: ", schema_.text);
    return Value(MemoryFormat::Preserve);
  }

  std::string_view rest_;
  Schema& schema_;
};

Schema Schema::parse(std::string_view text) {
  Schema schema;
  SchemaParser(text, schema).run();
  return schema;
}

int Schema::positional_count() const {
  int n = 0;
  for (const Parameter& p : parameters) n += !p.keyword_only;
  return n;
}

int Schema::index_of(std::string_view parameter) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == parameter) return static_cast<int>(i);
  return -1;
}

}  // namespace rushlight
