// JSON as values. Whatever the text is, reading gives a value or one RuntimeError; nesting is bounded.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rushlight::io {

class Json {
 public:
  using List = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in the order of the text

  // `what` names the text in errors.
  static Json parse(std::string_view text, std::string_view what);

  bool is_null() const { return content_.index() == 0; }
  const bool* boolean() const { return std::get_if<bool>(&content_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&content_); }
  const std::string* string() const { return std::get_if<std::string>(&content_); }
  const List* list() const { return std::get_if<List>(&content_); }
  const Object* object() const { return std::get_if<Object>(&content_); }
  // Whole or not.
  bool is_number() const { return integer() || std::get_if<double>(&content_); }
  double number() const;

  // The member of this name; null if there is none, or this is no object.
  const Json& operator[](std::string_view name) const;

 private:
  friend class JsonReader;
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Object> content_;
};

}  // namespace rushlight::io
