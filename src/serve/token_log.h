// Log-probabilities of a text's tokens, as OpenAI's protocol has them.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rushlight/text_service.h"

namespace rushlight::serve {

class TokenLog {
 public:
  TokenLog(const generation::Tokenizer* tokenizer, bool chat) : tokenizer_(tokenizer), chat_(chat) {}

  void add(const generation::TokenChance& chance) { tokens_.push_back({chance}); }
  size_t size() const { return tokens_.size(); }
  // Of tokens that begin within the text so far, or of all, those that were not given yet; null where there
  // are none.
  std::string within(std::string_view text) { return up_to(text.size(), text); }
  std::string rest(std::string_view text) { return up_to(SIZE_MAX, text); }
  void drop_last() { tokens_.pop_back(); }  // an end, say, which no text shows

 private:
  struct Token {
    generation::TokenChance chance;
    size_t offset = 0;  // as its place, in characters
  };

  std::string up_to(size_t bytes, std::string_view text);
  std::string label(int64_t id) const;
  std::string described(const generation::Likelihood& token, std::string_view top) const;
  std::string chat_form(size_t begin, size_t end) const;
  std::string plain_form(size_t begin, size_t end) const;
  std::string likeliest(const Token& token) const;

  const generation::Tokenizer* const tokenizer_;
  const bool chat_;
  std::vector<Token> tokens_;
  size_t given_ = 0, bytes_ = 0, characters_ = 0;  // which have been counted
};

}  // namespace rushlight::serve
