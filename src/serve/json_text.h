// JSON as it is written: whatever a text holds, it comes out as a string of JSON on one line.
#pragma once
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

#include "io/utf8.h"

namespace rushlight::serve {

// In quotes. Control characters are escaped; bytes that are no UTF-8 become U+FFFD.
inline void append_quoted(std::string& out, std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\', out += text[i++];
    } else if (c == '\n') {
      out += "\\n", ++i;
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\u00", out += kDigits[c >> 4], out += kDigits[c & 15], ++i;
    } else if (c < 0x80) {
      out += text[i++];
    } else if (const size_t length = io::sequence_length(text.substr(i))) {
      out += text.substr(i, length), i += length;
    } else {
      out += "\xef\xbf\xbd", ++i;
    }
  }
  out += '"';
}
inline std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

// The shortest text that means this number; finite ones only.
template <class T>
  requires std::integral<T> || std::floating_point<T>
void append_number(std::string& out, T value) {
  char digits[40];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// {"a":1,"b":"x"} put together member by member.
class JsonObject {
 public:
  JsonObject& raw(std::string_view name, std::string_view json) {
    text_ += text_.empty() ? '{' : ',';
    append_quoted(text_, name);
    text_ += ':';
    text_ += json;
    return *this;
  }
  JsonObject& add(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
  JsonObject& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  JsonObject& add(std::string_view name, const std::string& value) {
    return add(name, std::string_view(value));
  }
  JsonObject& add(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  template <class T>
    requires(!std::same_as<T, bool> && (std::integral<T> || std::floating_point<T>))
  JsonObject& add(std::string_view name, T value) {
    std::string number;
    append_number(number, value);
    return raw(name, number);
  }
  std::string done() const { return text_.empty() ? "{}" : text_ + '}'; }

 private:
  std::string text_;
};

template <class List, class Write>
std::string json_list(const List& list, Write&& write) {
  std::string out = "[";
  for (const auto& item : list) {
    if (out.size() > 1) out += ',';
    out += write(item);
  }
  return out + "]";
}

}  // namespace rushlight::serve
