// JSON as values. Whatever the text is, reading gives a value or one RuntimeError; nesting is bounded.
#pragma once
#include <cstdint>
#include <memory>
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

  // A list of one number or more and nothing else, at 8 bytes each: one of the two holds all.
  struct Numbers {
    std::vector<int64_t> whole;
    std::vector<double> real;
    size_t size() const { return whole.size() + real.size(); }
  };
  struct Reading {
    bool pack = false;              // lists of numbers are Numbers
    size_t most_values = SIZE_MAX;  // but those in Numbers; more are an error
  };

  // `what` names the text in errors.
  static Json parse(std::string_view text, std::string_view what) { return parse(text, what, Reading()); }
  static Json parse(std::string_view text, std::string_view what, const Reading& reading);

  bool is_null() const { return content_.index() == 0; }
  const bool* boolean() const { return std::get_if<bool>(&content_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&content_); }
  const std::string* string() const { return std::get_if<std::string>(&content_); }
  const List* list() const { return std::get_if<List>(&content_); }
  const Numbers* numbers() const {
    const auto* n = std::get_if<std::shared_ptr<const Numbers>>(&content_);
    return n ? n->get() : nullptr;
  }
  const Object* object() const { return std::get_if<Object>(&content_); }
  // Whole or not.
  bool is_number() const { return integer() || std::get_if<double>(&content_); }
  double number() const;

  // The member of this name; null if there is none, or this is no object.
  const Json& operator[](std::string_view name) const;

 private:
  friend class JsonReader;
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Object,
               std::shared_ptr<const Numbers>>
      content_;
};

}  // namespace rushlight::io
