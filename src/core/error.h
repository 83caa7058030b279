// Errors: user mistakes (RL_CHECK family, mapped to Python exception types) and internal bugs (RL_ASSERT).
#pragma once
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rushlight {

enum class ErrorKind : uint8_t {
  Runtime,
  Value,
  Type,
  Index,
  NotImplemented,
  OutOfMemory,
  Linalg,
  Overflow,
  Assertion,
  Internal
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : message_(std::move(message)), kind_(kind) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const char* what_without_backtrace() const noexcept { return what(); }  // as programs for libtorch ask
  const std::string& msg() const noexcept { return message_; }
  ErrorKind kind() const noexcept { return kind_; }

 private:
  std::string message_;
  ErrorKind kind_;
};

namespace detail {

// One part of a message. Whoever makes a message stores parts and calls one function: the text is put
// together out of line, so that the two thousand places that check something stay small and compile fast.
class MessagePart {
 public:
  template <class T>
  constexpr MessagePart(const T& part) {
    if constexpr (std::is_same_v<T, bool>) {
      text_ = part ? "True" : "False", size_ = part ? 4 : 5;
    } else if constexpr (std::is_same_v<T, char>) {
      kind_ = Kind::Char, integer_ = part;
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      const std::string_view view = part;
      text_ = view.data(), size_ = view.size();
    } else if constexpr (std::is_same_v<T, float>) {
      kind_ = Kind::Float, real_ = part;
    } else if constexpr (std::is_floating_point_v<T>) {
      kind_ = Kind::Double, real_ = static_cast<double>(part);
    } else if constexpr (std::is_integral_v<T>) {
      kind_ = std::is_signed_v<T> ? Kind::Signed : Kind::Unsigned, integer_ = static_cast<int64_t>(part);
    } else {
      kind_ = Kind::Object, object_ = &part;
      print_ = [](const void* object) { return to_string(*static_cast<const T*>(object)); };  // found by ADL
    }
  }
  void append_to(std::string& out) const;

 private:
  enum class Kind : uint8_t { Text, Char, Signed, Unsigned, Float, Double, Object };
  union {
    const char* text_;
    int64_t integer_;
    double real_;
    const void* object_;
  };
  union {
    size_t size_;
    std::string (*print_)(const void*);
  };
  Kind kind_ = Kind::Text;
};

using MessageParts = std::initializer_list<MessagePart>;
std::string join(MessageParts parts);
[[noreturn, gnu::cold]] void throw_error(ErrorKind kind, MessageParts parts);
[[noreturn, gnu::cold]] void throw_internal(const char* condition, const char* file, int line,
                                            MessageParts parts);
}  // namespace detail

// Joins its arguments into one string; types outside the library join in through a to_string overload.
template <class... Parts>
std::string str(const Parts&... parts) {
  return detail::join({detail::MessagePart(parts)...});
}

}  // namespace rushlight

#define RL_FAIL_AS(kind, ...) ::rushlight::detail::throw_error(::rushlight::ErrorKind::kind, {__VA_ARGS__})
#define RL_CHECK_AS(kind, condition, ...) \
  do {                                    \
    if (!(condition)) [[unlikely]]        \
      RL_FAIL_AS(kind, __VA_ARGS__);      \
  } while (false)

#define RL_CHECK(condition, ...) RL_CHECK_AS(Runtime, condition, __VA_ARGS__)
#define RL_CHECK_VALUE(condition, ...) RL_CHECK_AS(Value, condition, __VA_ARGS__)
#define RL_CHECK_TYPE(condition, ...) RL_CHECK_AS(Type, condition, __VA_ARGS__)
#define RL_CHECK_INDEX(condition, ...) RL_CHECK_AS(Index, condition, __VA_ARGS__)
#define RL_FAIL(...) RL_FAIL_AS(Runtime, __VA_ARGS__)
#define RL_NOT_IMPLEMENTED(...) RL_FAIL_AS(NotImplemented, __VA_ARGS__)
#define RL_ASSERT(condition, ...)                                                                     \
  do {                                                                                                \
    if (!(condition)) [[unlikely]]                                                                    \
      ::rushlight::detail::throw_internal(#condition, __FILE__, __LINE__, {__VA_OPT__(__VA_ARGS__)}); \
  } while (false)
