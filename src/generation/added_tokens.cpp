#include "generation/added_tokens.h"

#include <algorithm>

#include "core/error.h"
#include "generation/unicode.h"

namespace rushlight::generation {
namespace {

size_t last_sequence(std::string_view text) {
  size_t at = text.size();
  while (at > 0 && (static_cast<uint8_t>(text[--at]) & 0xc0) == 0x80) {
  }
  return at;
}
bool word_at(std::string_view text) {
  const size_t length = unicode::sequence_length(text);
  return length && unicode::is_word(unicode::code_point(text.substr(0, length)));
}
bool space_at(std::string_view text) {
  const size_t length = unicode::sequence_length(text);
  return length && unicode::is_space(unicode::code_point(text.substr(0, length)));
}

}  // namespace

AddedTokens::AddedTokens(const io::Json& list, const Normalizer& normalizer) {
  if (!list.list()) return;
  for (const io::Json& item : *list.list()) {
    const std::string* text = item["content"].string();
    const int64_t* id = item["id"].integer();
    RL_CHECK(text && id && *id >= 0, "an added token of the tokenizer is damaged");
    auto flag = [&](const char* name) { return item[name].boolean() && *item[name].boolean(); };
    tokens_[*id] = *text;
    ids_[*text] = *id;
    special_[*id] = flag("special");
    const bool normalized = flag("normalized");
    Token token{normalized ? normalizer(*text) : *text,
                *id,
                flag("single_word"),
                flag("lstrip"),
                flag("rstrip"),
                flag("special")};
    if (token.text.empty()) continue;
    std::vector<Token>& same = (normalized ? normalized_ : plain_)[token.text[0]];
    same.push_back(std::move(token));
    std::ranges::stable_sort(same,
                             [](const Token& a, const Token& b) { return a.text.size() > b.text.size(); });
  }
}

std::vector<AddedTokens::Part> AddedTokens::find(const Finder& finder, const Part& part) {
  std::vector<Part> parts;
  const std::string_view text = part.text;
  size_t done = 0;
  auto add_text = [&](size_t end) {
    if (end > done)
      parts.push_back({std::string(text.substr(done, end - done)), -1, part.first && done == 0});
  };
  for (size_t at = 0; at < text.size();) {
    const auto same = finder.find(text[at]);
    const Token* token = nullptr;
    if (same != finder.end())
      for (const Token& t : same->second)
        if (!token && text.substr(at).starts_with(t.text)) token = &t;
    if (!token) {
      ++at;
      continue;
    }
    size_t start = at, end = at + token->text.size();
    at = end;
    if (token->single_word && ((start > 0 && word_at(text.substr(last_sequence(text.substr(0, start))))) ||
                               word_at(text.substr(end))))
      continue;
    while (token->strip_left && start > done && space_at(text.substr(last_sequence(text.substr(0, start)))))
      start = last_sequence(text.substr(0, start));
    while (token->strip_right && end < text.size() && space_at(text.substr(end)))
      end += unicode::sequence_length(text.substr(end));
    add_text(std::max(start, done));
    parts.push_back({std::string(text.substr(start, end - start)), token->id, false});
    done = at = end;
  }
  add_text(text.size());
  return parts;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, const Normalizer& normalizer) const {
  std::vector<Part> parts;
  for (Part& part : find(plain_, {std::string(text), -1, true})) {
    if (part.id >= 0) {
      parts.push_back(std::move(part));
      continue;
    }
    part.text = normalizer(std::move(part.text));
    for (Part& inner : find(normalized_, part)) parts.push_back(std::move(inner));
  }
  return parts;
}

int64_t AddedTokens::id_of(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  return found == ids_.end() ? -1 : found->second;
}
const std::string* AddedTokens::token_of(int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}
bool AddedTokens::is_special(int64_t id) const {
  const auto found = special_.find(id);
  return found != special_.end() && found->second;
}

}  // namespace rushlight::generation
