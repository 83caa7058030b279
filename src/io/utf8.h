// Text as bytes of UTF-8.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rushlight::io {

inline void append_code_point(std::string& out, uint32_t code) {
  const auto more = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6), more(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12), more(6), more(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18), more(12), more(6), more(0);
  }
}

// The length of the valid UTF-8 sequence at the beginning; 0 if there is none.
inline size_t sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Neither longer than needed, nor half of a surrogate pair, nor beyond the last code point.
  const uint8_t second = byte(1);
  const bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return bad ? 0 : length;
}

// The code point of a valid sequence.
inline char32_t code_point(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  if (s.size() == 1) return byte(0);
  char32_t code = byte(0) & (s.size() == 2 ? 0x1f : s.size() == 3 ? 0x0f : 0x07);
  for (size_t i = 1; i < s.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

}  // namespace rushlight::io
