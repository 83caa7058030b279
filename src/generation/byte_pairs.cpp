#include "generation/byte_pairs.h"

#include <algorithm>
#include <cstdio>
#include <queue>

#include "core/error.h"
#include "io/utf8.h"

namespace rushlight::generation {

using io::Json;

BytePairs::BytePairs(const Json& model) {
  const std::string* type = model["type"].string();
  RL_CHECK(!type || *type == "BPE", "the tokenizer's model is ", type ? *type : "", "; only BPE is covered");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
    RL_CHECK(model[name].is_null() || (model[name].string() && model[name].string()->empty()),
             "the tokenizer's ", name, " is not covered");
  RL_CHECK(model["dropout"].is_null() || model["dropout"].number() == 0,
           "a tokenizer with dropout is not covered");
  const Json::Object* vocabulary = model["vocab"].object();
  RL_CHECK(vocabulary, "the tokenizer has no vocabulary");
  for (const auto& [token, id] : *vocabulary) {
    RL_CHECK(id.integer() && *id.integer() >= 0 && *id.integer() <= INT32_MAX, "the tokenizer's token '",
             token, "' has no number");
    const auto number = static_cast<uint32_t>(*id.integer());
    ids_[token] = number;
    tokens_[number] = token;
  }
  read_merges(model["merges"]);
  auto flag = [&](const char* name) { return model[name].boolean() && *model[name].boolean(); };
  fuse_unknown_ = flag("fuse_unk");
  ignore_merges_ = flag("ignore_merges");
  if (const std::string* unknown = model["unk_token"].string()) unknown_ = id_of(*unknown);
  std::ranges::fill(bytes_, -1);
  if (!flag("byte_fallback")) return;
  for (int i = 0; i < 256; ++i) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(i));
    bytes_[i] = id_of(name);
  }
}

void BytePairs::read_merges(const Json& merges) {
  RL_CHECK(merges.list(), "the tokenizer has no merges");
  uint32_t rank = 0;
  for (const Json& merge : *merges.list()) {
    std::string_view a, b;
    if (const std::string* text = merge.string()) {  // "a b"
      const size_t space = text->find(' ');
      RL_CHECK(space != std::string::npos && text->find(' ', space + 1) == std::string::npos,
               "the tokenizer's merge '", *text, "' is damaged");
      a = std::string_view(*text).substr(0, space), b = std::string_view(*text).substr(space + 1);
    } else {
      const Json::List* pair = merge.list();
      RL_CHECK(pair && pair->size() == 2 && (*pair)[0].string() && (*pair)[1].string(),
               "a merge of the tokenizer is damaged");
      a = *(*pair)[0].string(), b = *(*pair)[1].string();
    }
    const uint64_t key = uint64_t{known(a)} << 32 | known(b);
    merges_.insert_or_assign(key, Merge{rank++, known(std::string(a).append(b))});
  }
}

uint32_t BytePairs::known(std::string_view token) const {
  const int64_t id = id_of(token);
  RL_CHECK(id >= 0, "a merge of the tokenizer needs the token '", token, "', which is not in its vocabulary");
  return static_cast<uint32_t>(id);
}

int64_t BytePairs::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? int64_t{-1} : int64_t{found->second};
}
const std::string* BytePairs::token_of(int64_t id) const {
  const auto found = id < 0 || id > UINT32_MAX ? tokens_.end() : tokens_.find(static_cast<uint32_t>(id));
  return found == tokens_.end() ? nullptr : &found->second;
}

std::vector<BytePairs::Symbol> BytePairs::symbols_of(std::string_view word) const {
  std::vector<Symbol> symbols;
  auto add = [&](int64_t id) {
    const auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({static_cast<uint32_t>(id), at - 1, at + 1});
  };
  bool unknown = false;  // seen, and not yet written
  for (size_t at = 0; at < word.size();) {
    const size_t length = std::max<size_t>(io::sequence_length(word.substr(at)), 1);
    const std::string_view c = word.substr(at, length);
    at += length;
    if (const int64_t id = id_of(c); id >= 0) {
      if (std::exchange(unknown, false)) add(unknown_);
      add(id);
      continue;
    }
    if (std::ranges::all_of(c, [&](char b) { return bytes_[static_cast<uint8_t>(b)] >= 0; })) {
      for (const char b : c) add(bytes_[static_cast<uint8_t>(b)]);
      continue;
    }
    if (unknown_ < 0) continue;  // as the tokenizers package leaves it out
    if (unknown && !fuse_unknown_) add(unknown_);
    unknown = true;
  }
  if (unknown) add(unknown_);
  if (!symbols.empty()) symbols.back().after = -1;
  return symbols;
}

const BytePairs::Merge* BytePairs::merge_of(const std::vector<Symbol>& symbols, int32_t left) const {
  if (left < 0) return nullptr;
  const Symbol& a = symbols[static_cast<size_t>(left)];
  if (a.after < 0) return nullptr;
  const auto found = merges_.find(uint64_t{a.id} << 32 | symbols[static_cast<size_t>(a.after)].id);
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairs::encode(std::string_view word, std::vector<int64_t>& ids) const {
  if (ignore_merges_)
    if (const int64_t id = id_of(word); id >= 0) {
      ids.push_back(id);
      return;
    }
  std::vector<Symbol> symbols = symbols_of(word);
  struct Candidate {
    uint32_t rank;
    int32_t left;
    uint32_t id;
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : left > o.left; }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto consider = [&](int32_t left) {
    if (const Merge* merge = merge_of(symbols, left)) queue.push({merge->rank, left, merge->id});
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int32_t>(i));
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    Symbol& a = symbols[static_cast<size_t>(c.left)];
    const Merge* merge = a.gone ? nullptr : merge_of(symbols, c.left);
    if (!merge || merge->id != c.id) continue;  // one of the two was merged meanwhile
    Symbol& b = symbols[static_cast<size_t>(a.after)];
    a.id = c.id;
    a.after = b.after;
    b.gone = true;
    if (a.after >= 0) symbols[static_cast<size_t>(a.after)].before = c.left;
    consider(a.before);
    consider(c.left);
  }
  for (const Symbol& s : symbols)
    if (!s.gone) ids.push_back(s.id);
}

}  // namespace rushlight::generation
