#include "generation/normalize.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "core/error.h"
#include "generation/pattern.h"
#include "generation/unicode.h"

namespace rushlight::generation {
namespace {

using io::Json;

[[noreturn]] void refuse(const char* what, const Json& described) {
  const std::string* type = described["type"].string();
  RL_FAIL("the tokenizer's ", what, " '", type ? *type : "?", "' is not covered, or damaged");
}
std::string type_of(const Json& described) {
  const std::string* type = described["type"].string();
  return type ? *type : "";
}
bool flag(const Json& described, const char* name, bool otherwise) {
  const bool* value = described[name].boolean();
  return value ? *value : otherwise;
}
const std::string& text_of(const char* what, const Json& described, const char* name) {
  const std::string* text = described[name].string();
  if (!text) refuse(what, described);
  return *text;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  size_t at = 0;
  for (size_t found; (found = text.find(from, at)) != std::string::npos; at = found + from.size())
    out.append(text, at, found - at).append(to);
  return out.append(text, at, std::string::npos);
}

// Replace has {"pattern": {"String": "a"}, "content": "b"}.
std::pair<std::string, std::string> replacement(const char* what, const Json& described) {
  const std::string* from = described["pattern"]["String"].string();
  if (!from || from->empty()) refuse(what, described);
  return {*from, text_of(what, described, "content")};
}

// --- bytes as letters

// The letters that stand for bytes: those that can be printed for themselves, the rest behind U+0100.
struct ByteLetters {
  std::array<std::string, 256> letters;
  std::unordered_map<char32_t, char> bytes;

  ByteLetters() {
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printed = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      const char32_t letter = printed ? static_cast<char32_t>(b) : next++;
      unicode::append_code_point(letters[static_cast<size_t>(b)], letter);
      bytes.emplace(letter, static_cast<char>(b));
    }
  }
};
const ByteLetters& byte_letters() {
  static const ByteLetters& made = *new ByteLetters;
  return made;
}

// --- splits

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Matches and what is between them, as pieces of their own.
void isolate(const Pattern& pattern, const Piece& piece, std::vector<Piece>& out) {
  std::u32string codes;
  std::vector<size_t> places;
  for (size_t at = 0; at < piece.text.size();) {
    places.push_back(at);
    const size_t length =
        std::max<size_t>(unicode::sequence_length(std::string_view(piece.text).substr(at)), 1);
    codes += unicode::code_point(std::string_view(piece.text).substr(at, length));
    at += length;
  }
  places.push_back(piece.text.size());
  size_t start = 0;  // of what no match has taken
  auto add = [&](size_t begin, size_t end) {
    if (begin < end)
      out.push_back(
          {piece.text.substr(places[begin], places[end] - places[begin]), piece.first && begin == 0});
  };
  for (size_t at = 0; at < codes.size();) {
    const size_t end = pattern.match(codes, at);
    if (end == SIZE_MAX || end == at) {
      ++at;
      continue;
    }
    add(start, at);
    add(at, end);
    start = at = end;
  }
  add(start, codes.size());
}

Splitter by_pattern(std::string_view text) {
  auto pattern = std::make_shared<Pattern>(text);
  return [pattern](std::vector<Piece> pieces) {
    std::vector<Piece> out;
    for (const Piece& piece : pieces) isolate(*pattern, piece, out);
    return out;
  };
}

Splitter byte_level(const Json& described) {
  const bool prefix = flag(described, "add_prefix_space", true), split = flag(described, "use_regex", true);
  const Splitter words = split ? by_pattern(kGpt2Pattern) : Splitter();
  return [=](std::vector<Piece> pieces) {
    for (Piece& piece : pieces)
      if (prefix && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
    if (words) pieces = words(std::move(pieces));
    for (Piece& piece : pieces) {
      std::string letters;
      for (const char b : piece.text) letters += byte_letters().letters[static_cast<uint8_t>(b)];
      piece.text = std::move(letters);
    }
    return pieces;
  };
}

enum class Scheme { Always, First, Never };
Scheme scheme_of(const Json& described) {
  const std::string* text = described["prepend_scheme"].string();
  if (!text) return flag(described, "add_prefix_space", true) ? Scheme::Always : Scheme::Never;
  return *text == "never" ? Scheme::Never : *text == "first" ? Scheme::First : Scheme::Always;
}

Splitter metaspace(const Json& described) {
  const std::string sign = text_of("pre-tokenizer", described, "replacement");
  if (sign.empty()) refuse("pre-tokenizer", described);
  const Scheme scheme = scheme_of(described);
  const bool split = flag(described, "split", true);
  return [=](std::vector<Piece> pieces) {
    std::vector<Piece> out;
    for (Piece& piece : pieces) {
      std::string text = replaced(piece.text, " ", sign);
      const bool prefix = scheme == Scheme::Always || (scheme == Scheme::First && piece.first);
      if (prefix && !text.starts_with(sign)) text.insert(0, sign);
      for (size_t at = 0; split && at < text.size();) {  // each sign begins a piece
        const size_t end = std::min(text.find(sign, at + sign.size()), text.size());
        const size_t begin =
            at == 0 && !text.starts_with(sign) ? std::min(text.find(sign), text.size()) : end;
        out.push_back({text.substr(at, begin - at), piece.first && at == 0});
        at = begin;
      }
      if (!split) out.push_back({std::move(text), piece.first});
    }
    return out;
  };
}

// --- decoders

std::vector<std::string> join_bytes(std::vector<std::string> tokens) {
  std::vector<std::string> out;
  std::string bytes;
  auto flush = [&] {
    bool valid = true;
    for (size_t at = 0; at < bytes.size() && valid;) {
      const size_t length = unicode::sequence_length(std::string_view(bytes).substr(at));
      valid = length != 0;
      at += length;
    }
    if (!bytes.empty() && valid) out.push_back(bytes);
    for (size_t i = 0; !valid && i < bytes.size(); ++i) out.emplace_back("\xef\xbf\xbd");
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of(token); byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  return out;
}

std::vector<std::string> join_letters(std::vector<std::string> tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += from_byte_letters(token);
  return {unicode::lossy(bytes)};
}

Decoder strip(const Json& described) {
  const std::string sign = text_of("decoder", described, "content");
  const int64_t *start = described["start"].integer(), *stop = described["stop"].integer();
  if (sign.empty() || !start || !stop) refuse("decoder", described);
  return [sign, most = *start, last = *stop](std::vector<std::string> tokens) {
    for (std::string& token : tokens) {
      for (int64_t i = 0; i < most && token.starts_with(sign); ++i) token.erase(0, sign.size());
      for (int64_t i = 0; i < last && token.ends_with(sign); ++i) token.resize(token.size() - sign.size());
    }
    return tokens;
  };
}

Decoder from_metaspace(const Json& described) {
  const std::string sign = text_of("decoder", described, "replacement");
  if (sign.empty()) refuse("decoder", described);
  const bool drop = scheme_of(described) != Scheme::Never;
  return [=](std::vector<std::string> tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], sign, i == 0 && drop ? "" : " ");
    return tokens;
  };
}

// Steps one after the other.
template <class Step, class Make>
Step sequence(const char* what, const Json& described, const char* member, Make&& make) {
  const Json::List* list = described[member].list();
  if (!list) refuse(what, described);
  std::vector<Step> steps;
  for (const Json& item : *list) {
    RL_CHECK(type_of(item) != "Sequence", "the tokenizer has a sequence in a sequence, which is not covered");
    steps.push_back(make(item));
  }
  return [steps](auto value) {
    for (const Step& step : steps) value = step(std::move(value));
    return value;
  };
}

// Whether it is a step of this type, or has one.
bool has_step(const Json& decoder, std::string_view type) {
  const Json::List* steps = decoder["decoders"].list();
  const auto has = [&](const Json& step) { return has_step(step, type); };
  return type_of(decoder) == type || (steps && std::ranges::any_of(*steps, has));
}

}  // namespace

bool joins_bytes(const Json& decoder) { return has_step(decoder, "ByteFallback"); }
bool has_byte_letters(const Json& decoder) { return has_step(decoder, "ByteLevel"); }

std::string from_byte_letters(const std::string& token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const size_t length = std::max<size_t>(unicode::sequence_length(std::string_view(token).substr(at)), 1);
    const auto found =
        byte_letters().bytes.find(unicode::code_point(std::string_view(token).substr(at, length)));
    if (found == byte_letters().bytes.end()) return token;
    bytes += found->second;
    at += length;
  }
  return bytes;
}

int byte_of(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : {token[3], token[4]}) {
    const int digit = c >= '0' && c <= '9'                 ? c - '0'
                      : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                           : -1;
    if (digit < 0) return -1;
    value = 16 * value + digit;
  }
  return value;
}

Normalizer make_normalizer(const Json& described) {
  const std::string type = type_of(described);
  if (described.is_null()) return [](std::string text) { return text; };
  if (type == "Sequence")
    return sequence<Normalizer>("normalizer", described, "normalizers", make_normalizer);
  if (type == "NFC") return [](std::string text) { return unicode::nfc(text); };
  if (type == "Prepend")
    return [prefix = text_of("normalizer", described, "prepend")](std::string text) {
      return text.empty() ? text : prefix + text;
    };
  if (type == "Replace") {
    const auto [from, to] = replacement("normalizer", described);
    return [from, to](std::string text) { return replaced(text, from, to); };
  }
  refuse("normalizer", described);
}

Splitter make_splitter(const Json& described) {
  const std::string type = type_of(described);
  if (described.is_null()) return [](std::vector<Piece> pieces) { return pieces; };
  if (type == "Sequence")
    return sequence<Splitter>("pre-tokenizer", described, "pretokenizers", make_splitter);
  if (type == "ByteLevel") return byte_level(described);
  if (type == "Metaspace") return metaspace(described);
  const std::string* pattern = described["pattern"]["Regex"].string();
  const std::string* behavior = described["behavior"].string();
  if (type != "Split" || !pattern || !behavior || *behavior != "Isolated" || flag(described, "invert", false))
    refuse("pre-tokenizer", described);
  return by_pattern(*pattern);
}

Decoder make_decoder(const Json& described) {
  const std::string type = type_of(described);
  if (described.is_null())
    return [](std::vector<std::string> tokens) {
      for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
      return tokens;
    };
  if (type == "Sequence") return sequence<Decoder>("decoder", described, "decoders", make_decoder);
  if (type == "ByteLevel") return join_letters;
  if (type == "ByteFallback") return join_bytes;
  if (type == "Metaspace") return from_metaspace(described);
  if (type == "Strip") return strip(described);
  if (type == "Fuse")
    return [](std::vector<std::string> tokens) {
      std::string all;
      for (const std::string& token : tokens) all += token;
      return std::vector<std::string>{all};
    };
  if (type == "Replace") {
    const auto [from, to] = replacement("decoder", described);
    return [from, to](std::vector<std::string> tokens) {
      for (std::string& token : tokens) token = replaced(token, from, to);
      return tokens;
    };
  }
  refuse("decoder", described);
}

}  // namespace rushlight::generation
