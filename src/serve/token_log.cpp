#include "serve/token_log.h"

#include <algorithm>
#include <set>
#include <span>

#include "io/utf8.h"
#include "serve/json_text.h"

namespace rushlight::serve {
namespace {

using generation::Likelihood;

bool is_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = io::sequence_length(bytes.substr(at));
    if (!length) return false;
    at += length;
  }
  return true;
}

std::string number(double logprob) {
  std::string out;
  append_number(out, std::max(logprob, -9999.0));  // JSON has no infinity
  return out;
}

}  // namespace

std::string TokenLog::up_to(size_t bytes, std::string_view text) {
  const size_t begin = given_;
  for (; given_ < tokens_.size() && tokens_[given_].chance.place < bytes; ++given_) {
    Token& token = tokens_[given_];
    for (; bytes_ < std::min(token.chance.place, text.size()); ++bytes_)
      characters_ += (static_cast<unsigned char>(text[bytes_]) & 0xc0) != 0x80;
    token.offset = characters_;
  }
  if (begin == given_) return "null";
  return chat_ ? chat_form(begin, given_) : plain_form(begin, given_);
}

// Parts of characters are written as OpenAI writes them.
std::string TokenLog::label(int64_t id) const {
  static constexpr char kDigits[] = "0123456789abcdef";
  if (!tokenizer_) return "token_id:" + std::to_string(id);
  const std::string bytes = tokenizer_->bytes(id);
  if (is_utf8(bytes)) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    out += "\\x", out += kDigits[b >> 4], out += kDigits[b & 15];
  }
  return out;
}

std::string TokenLog::described(const Likelihood& token, std::string_view top) const {
  const std::string bytes = tokenizer_ ? tokenizer_->bytes(token.token) : std::string();
  JsonObject object;
  object.add("token", label(token.token)).raw("logprob", number(token.logprob));
  object.raw("bytes", json_list(bytes, [](char c) { return std::to_string(static_cast<unsigned char>(c)); }));
  if (!top.empty()) object.raw("top_logprobs", top);
  return object.done();
}

std::string TokenLog::chat_form(size_t begin, size_t end) const {
  const std::string list = json_list(std::span(tokens_).subspan(begin, end - begin), [&](const Token& token) {
    const auto one = [&](const Likelihood& other) { return described(other, {}); };
    return described(token.chance.chosen, json_list(token.chance.top, one));
  });
  return JsonObject().raw("content", list).raw("refusal", "null").done();
}

// The token itself is among them, likely or not.
std::string TokenLog::likeliest(const Token& token) const {
  JsonObject object;
  std::set<std::string> names;
  const auto add = [&](const Likelihood& other) {
    const std::string name = label(other.token);
    if (names.insert(name).second) object.raw(name, number(other.logprob));
  };
  std::ranges::for_each(token.chance.top, add);
  add(token.chance.chosen);
  return object.done();
}

std::string TokenLog::plain_form(size_t begin, size_t end) const {
  const auto tokens = std::span(tokens_).subspan(begin, end - begin);
  JsonObject object;
  object.raw("text_offset", json_list(tokens, [](const Token& t) { return std::to_string(t.offset); }));
  object.raw("token_logprobs",
             json_list(tokens, [](const Token& t) { return number(t.chance.chosen.logprob); }));
  object.raw("tokens",
             json_list(tokens, [&](const Token& t) { return quoted(label(t.chance.chosen.token)); }));
  const bool none = std::ranges::all_of(tokens, [](const Token& t) { return t.chance.top.empty(); });
  object.raw("top_logprobs", none ? "null" : json_list(tokens, [&](const Token& t) { return likeliest(t); }));
  return object.done();
}

}  // namespace rushlight::serve
