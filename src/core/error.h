// Errors: user mistakes (RL_CHECK family, mapped to Python exception types) and internal bugs (RL_ASSERT).
#pragma once
#include <charconv>
#include <complex>
#include <cstdint>
#include <exception>
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
template <class T>
void append(std::string& out, const T& part) {
  if constexpr (std::is_same_v<T, bool>) {
    out += part ? "True" : "False";
  } else if constexpr (std::is_same_v<T, char>) {
    out += part;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out += std::string_view(part);
  } else if constexpr (std::is_arithmetic_v<T>) {
    char buffer[32];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, part).ptr;
    out.append(buffer, end);
  } else {
    out += to_string(part);  // found by argument-dependent look-up
  }
}
[[noreturn]] void throw_error(ErrorKind kind, std::string message);
[[noreturn]] void throw_internal(const char* condition, const char* file, int line, std::string message);
}  // namespace detail

// Joins its arguments into one string; types outside the library join in through a to_string overload.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

}  // namespace rushlight

#define RL_FAIL_AS(kind, ...) \
  ::rushlight::detail::throw_error(::rushlight::ErrorKind::kind, ::rushlight::str(__VA_ARGS__))
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
#define RL_ASSERT(condition, ...)                                                                            \
  do {                                                                                                       \
    if (!(condition)) [[unlikely]]                                                                           \
      ::rushlight::detail::throw_internal(#condition, __FILE__, __LINE__, ::rushlight::str("" __VA_ARGS__)); \
  } while (false)
