// Decimal numbers in texts, in every locale.
#pragma once
#include <charconv>

namespace rushlight {

/// As std::from_chars has it, by means that each standard library has.
std::from_chars_result real_from_chars_plainly(const char* begin, const char* end, double& value);

/// std::from_chars, which libc++ has for integers alone.
inline std::from_chars_result real_from_chars(const char* begin, const char* end, double& value) {
#if defined(__cpp_lib_to_chars)
  return std::from_chars(begin, end, value);
#else
  return real_from_chars_plainly(begin, end, value);
#endif
}

}  // namespace rushlight
