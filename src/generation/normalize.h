// What a tokenizer.json does to a text before and after its model: normalizers, splits, decoders.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace rushlight::generation {

// A piece of a text that becomes tokens by itself.
struct Piece {
  std::string text;
  bool first = false;  // it begins the whole text
};

using Normalizer = std::function<std::string(std::string)>;
using Splitter = std::function<std::vector<Piece>(std::vector<Piece>)>;
using Decoder = std::function<std::vector<std::string>(std::vector<std::string>)>;

// Steps that are not covered are one error that names them.
Normalizer make_normalizer(const io::Json& described);
Splitter make_splitter(const io::Json& described);
// "<0x41>" is a byte; -1 for other tokens.
int byte_of(const std::string& token);
bool joins_bytes(const io::Json& decoder);
bool has_byte_letters(const io::Json& decoder);
// The bytes that a token's letters stand for; the token itself if they are others.
std::string from_byte_letters(const std::string& token);
// From tokens to texts, which are then joined.
Decoder make_decoder(const io::Json& described);

}  // namespace rushlight::generation
