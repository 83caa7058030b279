// Tokens that a text is split at before anything else, such as <|endoftext|>.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "generation/normalize.h"

namespace rushlight::generation {

class AddedTokens {
 public:
  // Some are found in the text as it is, others in what the normalizer makes of it.
  AddedTokens(const io::Json& list, const Normalizer& normalizer);

  struct Part {
    std::string text;
    int64_t id = -1;  // of a token; -1: text between tokens
    bool first = false;
  };
  // The text, normalized but for tokens.
  std::vector<Part> split(std::string_view text, const Normalizer& normalizer) const;

  int64_t id_of(std::string_view token) const;
  const std::string* token_of(int64_t id) const;
  bool is_special(int64_t id) const;
  const std::unordered_map<int64_t, std::string>& all() const { return tokens_; }

 private:
  struct Token {
    std::string text;
    int64_t id;
    bool single_word, strip_left, strip_right, special;
  };
  // By the first byte, the longest first.
  using Finder = std::unordered_map<char, std::vector<Token>>;
  static std::vector<Part> find(const Finder& finder, const Part& part);

  Finder plain_, normalized_;
  std::unordered_map<int64_t, std::string> tokens_;
  std::unordered_map<std::string, int64_t> ids_;
  std::unordered_map<int64_t, bool> special_;
};

}  // namespace rushlight::generation
