// Words of TorchScript code: Python's, with its rules for lines and indentation.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rushlight::jit {

struct Token {
  enum class Kind : uint8_t { Name, Integer, Real, Imaginary, Text, Symbol, Line, Indent, Dedent, End };
  Kind kind;
  std::string text;  // of Text: what it stands for
  int line;
};

// `file` is for errors.
std::vector<Token> split_into_tokens(std::string_view code, const std::string& file);

}  // namespace rushlight::jit
