// JSON's strings (RFC 8259, section 7).
#pragma once
#include <charconv>
#include <string>
#include <string_view>

#include "io/utf8.h"

namespace rushlight::io {

// Four hexadecimal digits at `at`, which moves behind them. `fail` raises.
template <class Fail>
uint32_t read_json_hexadecimal(std::string_view text, size_t& at, Fail&& fail) {
  const std::string_view digits = text.substr(at, 4);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (error != std::errc() || digits.size() != 4 || end != digits.data() + 4) fail("has an unknown escape");
  at += 4;
  return code;
}

// The character that the escape at `at` means, in UTF-8.
template <class Fail>
void read_json_escape(std::string_view text, size_t& at, std::string& out, Fail&& fail) {
  static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const char c = at < text.size() ? text[at++] : '\0';
  if (c != 'u') {
    const size_t found = kLetters.find(c);
    if (found == std::string_view::npos) fail("has an unknown escape");
    out += kMeanings[found];
    return;
  }
  uint32_t code = read_json_hexadecimal(text, at, fail);
  if (code >= 0xd800 && code < 0xdc00 && text.substr(at, 2) == "\\u") {
    at += 2;
    const uint32_t low = read_json_hexadecimal(text, at, fail);
    if (low < 0xdc00 || low > 0xdfff) fail("has half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xd800 && code < 0xe000) {
    fail("has half of a surrogate pair");
  }
  append_code_point(out, code);
}

// The string whose opening quote stands before `at`, which moves behind the closing one.
template <class Fail>
std::string read_json_string(std::string_view text, size_t& at, Fail&& fail) {
  std::string out;
  for (;;) {
    if (at == text.size()) fail("ends inside of a string");
    const char c = text[at];
    if (c == '"') return ++at, out;
    if (c == '\\') {
      read_json_escape(text, ++at, out, fail);
      continue;
    }
    const size_t length = static_cast<uint8_t>(c) < 0x20 ? 0 : sequence_length(text.substr(at));
    if (!length) fail("has a string that is not text");
    out += text.substr(at, length);
    at += length;
  }
}

}  // namespace rushlight::io
