// std::from_chars for floating point, which not every standard library has.
#pragma once
#include <charconv>
#include <cstdlib>
#include <string>
#include <version>

namespace rushlight {

inline std::from_chars_result read_number(const char* first, const char* last, double& value) {
#if defined(__cpp_lib_to_chars)
  return std::from_chars(first, last, value);
#else
  // strtod also takes blanks, a plus sign and hexadecimal digits.
  const char* digits = first != last && *first == '-' ? first + 1 : first;
  const bool decimal = digits != last && *digits != '+' && *digits != '-' && *digits > ' ' &&
                       !(last - digits > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'));
  if (!decimal) return {first, std::errc::invalid_argument};
  const std::string text(first, last);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, std::errc::invalid_argument};
  const char* stop = first + (end - text.c_str());
  const bool written_as_infinite = *digits == 'i' || *digits == 'I';
  if (number - number != 0 && number == number && !written_as_infinite)
    return {stop, std::errc::result_out_of_range};
  value = number;
  return {stop, std::errc{}};
#endif
}

}  // namespace rushlight
