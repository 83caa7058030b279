// Values of templates, and what can be done with them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rushlight::serve::jinja {

struct Undefined {};
struct None {};

class Value {
 public:
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<std::string, Value>>;  // keys are texts
  using Content = std::variant<Undefined, None, bool, int64_t, double, std::string, std::shared_ptr<List>,
                               std::shared_ptr<Dict>>;

  Value() = default;
  template <class T>
    requires std::is_constructible_v<Content, T> && (!std::is_pointer_v<std::decay_t<T>>)
  Value(T&& content) : content_(std::forward<T>(content)) {}
  Value(const char* text) : content_(std::string(text)) {}
  static Value of_list(List items = {}) { return std::make_shared<List>(std::move(items)); }
  static Value of_dict(Dict members = {}) { return std::make_shared<Dict>(std::move(members)); }

  bool is_undefined() const { return std::holds_alternative<Undefined>(content_); }
  bool is_none() const { return std::holds_alternative<None>(content_); }
  const bool* boolean() const { return std::get_if<bool>(&content_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&content_); }
  const double* real() const { return std::get_if<double>(&content_); }
  bool is_number() const { return integer() || real(); }
  double number() const { return integer() ? static_cast<double>(*integer()) : *real(); }
  const std::string* string() const { return std::get_if<std::string>(&content_); }
  List* list() const { return get<List>(); }
  Dict* dict() const { return get<Dict>(); }

  bool truth() const;
  std::string text() const;  // as {{ }} writes it
  std::string json() const;
  std::string_view kind() const;

 private:
  template <class T>
  T* get() const {
    const auto* p = std::get_if<std::shared_ptr<T>>(&content_);
    return p ? p->get() : nullptr;
  }
  Content content_;
};

bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);
bool contains(const Value& in, const Value& item);
Value item(const Value& of, const Value& key);  // undefined if there is none
Value slice(const Value& of, const Value& from, const Value& to, const Value& step);
// + - * / // % ~
Value arithmetic(std::string_view sign, const Value& a, const Value& b);

using Arguments = std::vector<Value>;
// What is not known is a ValueError that names it.
Value filter(std::string_view name, const Value& value, const Arguments& arguments);
bool test(std::string_view name, const Value& value, const Arguments& arguments);
Value method(const Value& of, std::string_view name, const Arguments& arguments);
bool has_filter(std::string_view name);
bool has_test(std::string_view name);

}  // namespace rushlight::serve::jinja
