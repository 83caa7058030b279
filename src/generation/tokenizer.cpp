#include <algorithm>
#include <optional>

#include "core/error.h"
#include "generation/added_tokens.h"
#include "generation/byte_pairs.h"
#include "generation/unicode.h"
#include "rushlight/generation.h"

namespace rushlight::generation {
namespace {

using io::Json;

// What stands before and after a text: {"SpecialToken": ...}, {"Sequence": ...}.
struct Template {
  std::vector<int64_t> before, after;

  void read(const Json& described) {
    const std::string* type = described["type"].string();
    if (described.is_null() || (type && *type == "ByteLevel")) return;
    if (type && *type == "Sequence" && described["processors"].list()) {
      for (const Json& item : *described["processors"].list()) read(item);
      return;
    }
    RL_CHECK(type && *type == "TemplateProcessing" && described["single"].list(),
             "the tokenizer's post-processor '", type ? *type : "?", "' is not covered, or damaged");
    bool behind = false;
    for (const Json& item : *described["single"].list()) {
      if (!item["Sequence"].is_null()) {
        behind = true;
        continue;
      }
      const std::string* name = item["SpecialToken"]["id"].string();
      const Json::List* ids = name ? described["special_tokens"][*name]["ids"].list() : nullptr;
      RL_CHECK(ids, "the tokenizer's post-processor is damaged");
      for (const Json& id : *ids) {
        RL_CHECK(id.integer(), "the tokenizer's post-processor is damaged");
        (behind ? after : before).push_back(*id.integer());
      }
    }
  }
};

}  // namespace

struct Tokenizer::Data {
  explicit Data(const Json& json)
      : normalizer(make_normalizer(json["normalizer"])),
        splitter(make_splitter(json["pre_tokenizer"])),
        decoder(make_decoder(json["decoder"])),
        pairs(json["model"]),
        added(json["added_tokens"], normalizer),
        joins_bytes(generation::joins_bytes(json["decoder"])),
        byte_letters(has_byte_letters(json["decoder"])) {
    around.read(json["post_processor"]);
  }

  Normalizer normalizer;
  Splitter splitter;
  Decoder decoder;
  BytePairs pairs;
  AddedTokens added;
  bool joins_bytes, byte_letters;
  Template around;
};

Tokenizer Tokenizer::parse(std::string_view json) {
  return Tokenizer(std::make_shared<const Data>(Json::parse(json, "the tokenizer")));
}

std::vector<int64_t> Tokenizer::encode(std::string_view text, bool special) const {
  for (size_t at = 0; at < text.size();) {
    const size_t length = unicode::sequence_length(text.substr(at));
    RL_CHECK_VALUE(length, "the text is not UTF-8 at byte ", at);
    at += length;
  }
  std::vector<int64_t> ids;
  if (special) ids = data_->around.before;
  for (AddedTokens::Part& part : data_->added.split(text, data_->normalizer)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    for (const Piece& piece : data_->splitter({{std::move(part.text), part.first}}))
      data_->pairs.encode(piece.text, ids);
  }
  if (special) ids.insert(ids.end(), data_->around.after.begin(), data_->around.after.end());
  return ids;
}

std::string Tokenizer::decode(const std::vector<int64_t>& ids, bool skip_special) const {
  std::vector<std::string> tokens;
  for (const int64_t id : ids) {
    const std::string* token = data_->added.token_of(id);
    if (!token) token = data_->pairs.token_of(id);
    if (token && !(skip_special && data_->added.is_special(id))) tokens.push_back(*token);
  }
  std::string text;
  for (const std::string& part : data_->decoder(std::move(tokens))) text += part;
  return text;
}

int64_t Tokenizer::id_of(std::string_view token) const {
  const int64_t added = data_->added.id_of(token);
  return added >= 0 ? added : data_->pairs.id_of(token);
}

bool Tokenizer::is_byte(int64_t id) const {
  const std::string* token = data_->joins_bytes ? data_->pairs.token_of(id) : nullptr;
  return token && byte_of(*token) >= 0;
}

bool Tokenizer::is_silent(int64_t id) const {
  return data_->added.is_special(id) || (!data_->added.token_of(id) && !data_->pairs.token_of(id));
}

std::string Tokenizer::bytes(int64_t id) const {
  if (const std::string* added = data_->added.token_of(id)) return *added;
  const std::string* token = data_->pairs.token_of(id);
  if (!token) return {};
  if (data_->byte_letters) return from_byte_letters(*token);
  if (is_byte(id)) return {static_cast<char>(byte_of(*token))};
  static const std::string kBefore = "a";  // decoders treat the beginning of a text apart
  std::string text;
  for (const std::string& part : data_->decoder({kBefore, *token})) text += part;
  return text.starts_with(kBefore) ? text.substr(kBefore.size()) : text;
}

size_t Tokenizer::size() const {
  size_t count = data_->pairs.size();
  for (const auto& [id, token] : data_->added.all()) count += data_->pairs.id_of(token) < 0;
  return count;
}

}  // namespace rushlight::generation
