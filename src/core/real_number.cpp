#include "core/real_number.h"

#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace rushlight {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether a text begins with a word of small letters, whatever the size of its own.
bool begins_with(const char* at, const char* end, std::string_view word) {
  if (static_cast<size_t>(end - at) < word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i)
    if ((at[i] | 0x20) != word[i]) return false;
  return true;
}

const char* skip_digits(const char* at, const char* end) {
  while (at != end && is_digit(*at)) ++at;
  return at;
}

}  // namespace

std::from_chars_result real_from_chars_plainly(const char* begin, const char* end, double& value) {
  const bool negative = begin != end && *begin == '-';
  const char* const first = begin + negative;
  auto special = [&](double number, size_t length) {
    value = negative ? -number : number;
    return std::from_chars_result{first + length, std::errc()};
  };
  for (const std::string_view word : {"infinity", "inf"})
    if (begins_with(first, end, word)) return special(std::numeric_limits<double>::infinity(), word.size());
  if (begins_with(first, end, "nan")) return special(std::numeric_limits<double>::quiet_NaN(), 3);

  const char* at = skip_digits(first, end);
  bool digits = at != first;
  if (at != end && *at == '.') {
    const char* const rest = skip_digits(at + 1, end);
    digits |= rest != at + 1;
    if (digits) at = rest;
  }
  if (!digits) return {begin, std::errc::invalid_argument};
  const std::string_view mantissa(first, static_cast<size_t>(at - first));
  if (at != end && (*at | 0x20) == 'e') {
    const char* const exponent = at + 1 + (at + 1 != end && (at[1] == '-' || at[1] == '+'));
    if (exponent != end && is_digit(*exponent)) at = skip_digits(exponent, end);
  }
  std::istringstream in(std::string(begin, at));
  in.imbue(std::locale::classic());
  double number = 0;
  in >> number;
  const bool zero = mantissa.find_first_of("123456789") == mantissa.npos;
  // Large numbers come back as the largest, small ones as zero.
  if ((in.fail() && std::abs(number) > 1) || std::isinf(number) || (number == 0 && !zero))
    return {at, std::errc::result_out_of_range};
  value = number;
  return {at, std::errc()};
}

}  // namespace rushlight
