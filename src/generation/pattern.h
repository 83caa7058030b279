// Regular expressions as tokenizers have them: categories of Unicode, groups, look-ahead, lazy and possessive
// repeats. A pattern that backtracks without end is an error.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

namespace rushlight::generation {

struct CharacterSet;

class Pattern {
 public:
  explicit Pattern(std::string_view text);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  // Where a match that begins here ends; SIZE_MAX if there is none.
  size_t match(std::u32string_view text, size_t at) const;

 private:
  friend class PatternCompiler;
  struct Step {
    enum class Kind : uint8_t { Set, Split, Jump, Ahead, NotAhead, Atomic, End } kind;
    uint32_t a = 0, b = 0;  // a set; where to go on, first and else; where the group's end is
  };
  size_t run(std::u32string_view text, size_t at, size_t step, size_t& left) const;

  std::vector<CharacterSet> sets_;
  std::vector<Step> steps_;
};

}  // namespace rushlight::generation
