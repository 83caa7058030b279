// Text as code points: UTF-8, categories, and Unicode's normal form NFC.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/utf8.h"

namespace rushlight::generation::unicode {

using io::append_code_point, io::code_point, io::sequence_length;

// Printed by tools/print_unicode.py. The first code point << 5 | category, wherever that changes; << 8 |
// combining class; (composed << 1 | whether NFC composes it, first, second or 0).
extern const std::span<const uint32_t> kCategoryRuns, kCombiningRuns, kDecompositions;

enum Category : uint8_t {
  Cn,
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co
};

Category category(char32_t code);
// A bit for each category of a name such as "L" or "Nd"; 0 if there is none.
uint32_t categories_named(std::string_view name);
bool is_space(char32_t code);
bool is_word(char32_t code);  // letters, marks, decimal digits, connectors

// Valid UTF-8: each longest beginning of a sequence that is not one becomes U+FFFD.
std::string lossy(std::string_view bytes);

std::string nfc(std::string_view text);

}  // namespace rushlight::generation::unicode
