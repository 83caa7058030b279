#include "generation/unicode.h"

#include <algorithm>
#include <unordered_map>

namespace rushlight::generation::unicode {
namespace {

constexpr std::string_view kNames = "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";

// The value of the last run that begins at or before the code point; 0 before the first.
uint32_t run_value(std::span<const uint32_t> runs, int bits, char32_t code) {
  const uint64_t key = (uint64_t{code} + 1) << bits;
  const auto after =
      std::lower_bound(runs.begin(), runs.end(), key, [](uint32_t a, uint64_t b) { return a < b; });
  return after == runs.begin() ? 0 : *(after - 1) & ((1u << bits) - 1);
}

uint8_t combining(char32_t code) { return static_cast<uint8_t>(run_value(kCombiningRuns, 8, code)); }

constexpr char32_t kSyllables = 0xac00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11a7;
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;

struct Tables {
  std::unordered_map<char32_t, std::pair<char32_t, char32_t>> parts;
  std::unordered_map<uint64_t, char32_t> composed;

  Tables() {
    for (size_t i = 0; i + 2 < kDecompositions.size(); i += 3) {
      const char32_t code = kDecompositions[i] >> 1, a = kDecompositions[i + 1], b = kDecompositions[i + 2];
      parts.emplace(code, std::pair(a, b));
      if (kDecompositions[i] & 1) composed.emplace(uint64_t{a} << 32 | b, code);
    }
  }
};
const Tables& tables() {
  static const Tables& t = *new Tables;
  return t;
}

void decompose(char32_t code, std::u32string& out) {
  const uint32_t syllable = code - kSyllables;
  if (code >= kSyllables && syllable < kLeadCount * kVowelCount * kTailCount) {
    out += static_cast<char32_t>(kLeads + syllable / (kVowelCount * kTailCount));
    out += static_cast<char32_t>(kVowels + syllable % (kVowelCount * kTailCount) / kTailCount);
    if (syllable % kTailCount) out += static_cast<char32_t>(kTails + syllable % kTailCount);
    return;
  }
  const auto found = tables().parts.find(code);
  if (found == tables().parts.end()) {
    out += code;
    return;
  }
  decompose(found->second.first, out);
  if (found->second.second) decompose(found->second.second, out);
}

char32_t compose(char32_t a, char32_t b) {
  if (a >= kLeads && a < kLeads + kLeadCount && b >= kVowels && b < kVowels + kVowelCount)
    return kSyllables + ((a - kLeads) * kVowelCount + (b - kVowels)) * kTailCount;
  if (a >= kSyllables && a < kSyllables + kLeadCount * kVowelCount * kTailCount &&
      (a - kSyllables) % kTailCount == 0 && b > kTails && b < kTails + kTailCount)
    return a + (b - kTails);
  const auto found = tables().composed.find(uint64_t{a} << 32 | b);
  return found == tables().composed.end() ? 0 : found->second;
}

}  // namespace

Category category(char32_t code) { return static_cast<Category>(run_value(kCategoryRuns, 5, code)); }

uint32_t categories_named(std::string_view name) {
  uint32_t found = 0;
  for (size_t i = 0; i < kNames.size() / 2; ++i)
    if (!name.empty() && name.size() <= 2 && kNames.substr(2 * i, 2).starts_with(name)) found |= 1u << i;
  return found;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x85 || (1u << category(c) & (1u << Zs | 1u << Zl | 1u << Zp));
}
bool is_word(char32_t c) {
  constexpr uint32_t kWord = 1u << Lu | 1u << Ll | 1u << Lt | 1u << Lm | 1u << Lo | 1u << Mn | 1u << Mc |
                             1u << Me | 1u << Nd | 1u << Pc;
  return kWord >> category(c) & 1;
}

std::string lossy(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const std::string_view rest = bytes.substr(at);
    if (const size_t length = sequence_length(rest)) {
      out += rest.substr(0, length);
      at += length;
      continue;
    }
    // What would have been a sequence as far as it goes is one replacement.
    size_t length = 1;
    for (size_t n = 2; n <= std::min<size_t>(3, rest.size()); ++n) {
      std::string whole(rest.substr(0, n));
      bool begins = false;
      for (const char fill : {'\x80', '\x90', '\xa0', '\xbf'}) {  // some continuation makes it valid
        std::string tried = whole;
        while (tried.size() < 4 && !sequence_length(tried)) tried += fill;
        begins |= sequence_length(tried) > n;
      }
      if (!begins) break;
      length = n;
    }
    out += "\xef\xbf\xbd";
    at += length;
  }
  return out;
}

std::string nfc(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; }))
    return std::string(text);
  std::u32string codes;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(sequence_length(text.substr(at)), 1);
    decompose(code_point(text.substr(at, length)), codes);
    at += length;
  }
  for (size_t i = 0; i < codes.size();) {  // marks in their order
    size_t end = i;
    while (end < codes.size() && combining(codes[end])) ++end;
    if (end > i + 1)
      std::stable_sort(codes.begin() + static_cast<ptrdiff_t>(i), codes.begin() + static_cast<ptrdiff_t>(end),
                       [](char32_t a, char32_t b) { return combining(a) < combining(b); });
    i = std::max(end, i + 1);
  }
  std::u32string out;
  size_t starter = SIZE_MAX;
  int last = -1;  // the class of what stands between the starter and here; -1: nothing
  for (const char32_t code : codes) {
    const int own = combining(code);
    if (starter != SIZE_MAX && (last < own || last == -1)) {
      if (const char32_t both = compose(out[starter], code)) {
        out[starter] = both;
        continue;
      }
    }
    if (own == 0) {
      starter = out.size();
      last = -1;
    } else {
      last = own;
    }
    out += code;
  }
  std::string result;
  for (const char32_t code : out) append_code_point(result, code);
  return result;
}

}  // namespace rushlight::generation::unicode
