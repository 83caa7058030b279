#include "generation/pattern.h"

#include <algorithm>

#include "core/error.h"
#include "generation/unicode.h"

namespace rushlight::generation {

struct CharacterSet {
  struct Item {
    enum class Kind : uint8_t { Range, Categories, Space, Word } kind;
    char32_t first = 0, last = 0;  // or the categories in `first`
    bool negated = false;
  };
  std::vector<Item> items;
  bool negated = false, any_case = false;

  bool has(char32_t c) const {
    bool found = in(c);
    if (!found && any_case) {
      if ((c | 32) >= 'a' && (c | 32) <= 'z') found = in(c ^ 32);
      if (c == 0x17f) found = in('s') || in('S');  // what folds to a letter of ASCII
      if (c == 0x212a) found = in('k') || in('K');
    }
    return found != negated;
  }

 private:
  bool in(char32_t c) const {
    return std::ranges::any_of(items, [&](const Item& item) {
      bool hit = false;
      switch (item.kind) {
        case Item::Kind::Range:
          hit = c >= item.first && c <= item.last;
          break;
        case Item::Kind::Categories:
          hit = item.first >> unicode::category(c) & 1;
          break;
        case Item::Kind::Space:
          hit = unicode::is_space(c);
          break;
        case Item::Kind::Word:
          hit = unicode::is_word(c);
      }
      return hit != item.negated;
    });
  }
};

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

// --- compiling

class PatternCompiler {
 public:
  PatternCompiler(std::string_view text, Pattern& out) : source_(text), out_(out) {
    for (size_t at = 0; at < text.size();) {
      const size_t length = unicode::sequence_length(text.substr(at));
      if (!length) fail("is not text");
      text_ += unicode::code_point(text.substr(at, length));
      at += length;
    }
  }

  void run() {
    alternatives(0);
    if (at_ != text_.size()) fail("has a ')' too many");
    add({Pattern::Step::Kind::End});
  }

 private:
  using Step = Pattern::Step;
  using Kind = Step::Kind;
  using Item = CharacterSet::Item;
  static constexpr size_t kMostSteps = 20000;

  [[noreturn]] void fail(std::string_view what) const { RL_FAIL("the pattern '", source_, "' ", what); }
  bool more() const { return at_ < text_.size(); }
  bool accept(std::u32string_view word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    return at_ += word.size(), true;
  }
  size_t add(Step step) {
    if (out_.steps_.size() >= kMostSteps) fail("is too long");
    out_.steps_.push_back(step);
    return out_.steps_.size() - 1;
  }
  uint32_t here() const { return static_cast<uint32_t>(out_.steps_.size()); }

  // Moves what was compiled since `start` by one step to make room for one before it.
  void insert(size_t start, Step step) {
    auto& steps = out_.steps_;
    if (steps.size() >= kMostSteps) fail("is too long");
    steps.insert(steps.begin() + static_cast<ptrdiff_t>(start), step);
    for (size_t i = start + 1; i < steps.size(); ++i) {
      if (steps[i].kind == Kind::Set || steps[i].kind == Kind::End) continue;
      if (steps[i].a >= start) ++steps[i].a;
      if (steps[i].kind == Kind::Split && steps[i].b >= start) ++steps[i].b;
    }
  }

  void alternatives(int depth) {
    if (depth > 50) fail("is nested too deep");
    const size_t start = here();
    sequence(depth);
    if (!accept(U"|")) return;
    insert(start, {Kind::Split, static_cast<uint32_t>(start + 1)});
    const size_t jump = add({Kind::Jump});
    out_.steps_[start].b = here();
    alternatives(depth);
    out_.steps_[jump].a = here();
  }
  void sequence(int depth) {
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      const size_t start = here();
      atom(depth);
      repeat(start);
    }
  }

  void atom(int depth) {
    if (accept(U"(")) return group(depth);
    CharacterSet set;
    set.any_case = any_case_;
    if (accept(U"[")) {
      set.negated = accept(U"^");
      members(set);
    } else if (accept(U".")) {
      set.negated = true;
      set.items.push_back({Item::Kind::Range, '\n', '\n'});
    } else if (accept(U"\\")) {
      set.items.push_back(escape());
    } else {
      const char32_t c = text_[at_++];
      if (c == '*' || c == '+' || c == '?' || c == '^' || c == '$') fail("has a sign that is not covered");
      set.items.push_back({Item::Kind::Range, c, c});
    }
    out_.sets_.push_back(std::move(set));
    add({Kind::Set, static_cast<uint32_t>(out_.sets_.size() - 1)});
  }

  void group(int depth) {
    const bool before = any_case_;
    Kind kind = Kind::Jump;  // a group and no more
    if (accept(U"?i:"))
      any_case_ = true;
    else if (accept(U"?="))
      kind = Kind::Ahead;
    else if (accept(U"?!"))
      kind = Kind::NotAhead;
    else if (accept(U"?>"))
      kind = Kind::Atomic;
    else if (!accept(U"?:") && more() && text_[at_] == '?')
      fail("has a group that is not covered");
    const size_t start = kind == Kind::Jump ? 0 : add({kind});
    alternatives(depth + 1);
    if (!accept(U")")) fail("has a '(' too many");
    any_case_ = before;
    if (kind == Kind::Jump) return;
    add({Kind::End});
    out_.steps_[start].a = here();
  }

  void members(CharacterSet& set) {
    for (bool first = true; first || !accept(U"]"); first = false) {
      if (!more()) fail("has a '[' too many");
      Item item{Item::Kind::Range, text_[at_], text_[at_]};
      if (text_[at_] == '[') fail("has a set in a set, which is not covered");
      ++at_;
      if (item.first == '\\') item = escape();
      const bool range = item.kind == Item::Kind::Range && at_ + 1 < text_.size() && text_[at_] == '-' &&
                         text_[at_ + 1] != ']';
      if (range) {
        ++at_;
        item.last = text_[at_++];
        if (item.last == '\\') {
          const Item last = escape();
          if (last.kind != Item::Kind::Range) fail("has a range without an end");
          item.last = last.first;
        }
      }
      set.items.push_back(item);
    }
  }

  Item escape() {
    if (!more()) fail("ends in a '\\'");
    const char32_t c = text_[at_++];
    auto one = [](char32_t x) { return Item{Item::Kind::Range, x, x}; };
    switch (c) {
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 's':
      case 'S':
        return {Item::Kind::Space, 0, 0, c == 'S'};
      case 'w':
      case 'W':
        return {Item::Kind::Word, 0, 0, c == 'W'};
      case 'd':
      case 'D':
        return {Item::Kind::Categories, 1u << unicode::Nd, 0, c == 'D'};
      case 'p':
      case 'P':
        return property(c == 'P');
      default:
        if ((c | 32) >= 'a' && (c | 32) <= 'z') fail("has an escape that is not covered");
        if (c >= '0' && c <= '9') fail("refers to a group, which is not covered");
        return one(c);
    }
  }
  Item property(bool negated) {
    if (!accept(U"{")) fail("has a '\\p' without a name");
    if (accept(U"^")) negated = !negated;
    std::string name;
    while (more() && text_[at_] != '}' && name.size() < 3) name += static_cast<char>(text_[at_++]);
    const uint32_t found = unicode::categories_named(name);
    if (!accept(U"}") || !found) fail("has a category that is not covered");
    return {Item::Kind::Categories, found, 0, negated};
  }

  // --- repeats
  void repeat(size_t start) {
    uint32_t low = 1, high = 1;
    bool counted = false;
    if (accept(U"*"))
      low = 0, high = UINT32_MAX;
    else if (accept(U"+"))
      high = UINT32_MAX;
    else if (accept(U"?"))
      low = 0;
    else if (accept(U"{"))
      count(low, high), counted = true;
    else
      return;
    const bool lazy = accept(U"?");
    const bool possessive = !lazy && !counted && accept(U"+");
    const std::vector<Step> unit(out_.steps_.begin() + static_cast<ptrdiff_t>(start), out_.steps_.end());
    out_.steps_.resize(start);
    for (uint32_t i = 0; i < low; ++i) copy(unit, start);
    if (high == UINT32_MAX) {
      const size_t split = add({Kind::Split});
      copy(unit, start);
      add({Kind::Jump, static_cast<uint32_t>(split)});
      branch(split, lazy);
    } else {
      std::vector<size_t> splits;
      for (uint32_t i = low; i < high; ++i) {
        splits.push_back(add({Kind::Split}));
        copy(unit, start);
      }
      for (const size_t split : splits) branch(split, lazy);
    }
    if (!possessive) return;
    insert(start, {Kind::Atomic});
    add({Kind::End});
    out_.steps_[start].a = here();
  }
  void branch(size_t split, bool lazy) {
    Step& s = out_.steps_[split];
    s.a = static_cast<uint32_t>(split + 1), s.b = here();
    if (lazy) std::swap(s.a, s.b);
  }
  // The unit again, which was compiled at `start`.
  void copy(const std::vector<Step>& unit, size_t start) {
    const auto moved = static_cast<uint32_t>(here() - start);
    for (Step s : unit) {
      if (s.kind != Kind::Set && s.kind != Kind::End) s.a += moved;
      if (s.kind == Kind::Split) s.b += moved;
      add(s);
    }
  }
  void count(uint32_t& low, uint32_t& high) {
    auto number = [&](uint32_t& n) {
      if (!more() || text_[at_] < '0' || text_[at_] > '9') return false;
      for (n = 0; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        n = 10 * n + static_cast<uint32_t>(text_[at_] - '0');
        if (n > 1000) fail("repeats too often");
      }
      return true;
    };
    if (!number(low)) low = 0;
    high = low;
    if (accept(U",") && !number(high)) high = UINT32_MAX;
    if (!accept(U"}") || high < low) fail("has a '{' that is not covered");
  }

  std::string_view source_;
  std::u32string text_;
  size_t at_ = 0;
  bool any_case_ = false;
  Pattern& out_;
};

Pattern::Pattern(std::string_view text) { PatternCompiler(text, *this).run(); }

// --- matching

size_t Pattern::match(std::u32string_view text, size_t at) const {
  size_t left = 1000000 + 100 * text.size();
  return run(text, at, 0, left);
}

size_t Pattern::run(std::u32string_view text, size_t at, size_t step, size_t& left) const {
  struct Choice {
    size_t at, step;
  };
  std::vector<Choice> choices;
  for (;;) {
    RL_CHECK(left-- > 0, "a pattern of the tokenizer takes too long on this text");
    const Step& s = steps_[step];
    bool good = true;
    switch (s.kind) {
      case Step::Kind::End:
        return at;
      case Step::Kind::Set:
        good = at < text.size() && sets_[s.a].has(text[at]);
        ++at, ++step;
        break;
      case Step::Kind::Split:
        choices.push_back({at, s.b});
        step = s.a;
        break;
      case Step::Kind::Jump:
        // A round that took nothing ends the loop.
        step = s.a;
        break;
      case Step::Kind::Ahead:
      case Step::Kind::NotAhead:
        good = (run(text, at, step + 1, left) != SIZE_MAX) == (s.kind == Step::Kind::Ahead);
        step = s.a;
        break;
      case Step::Kind::Atomic:
        at = run(text, at, step + 1, left);
        good = at != SIZE_MAX;
        step = s.a;
    }
    if (good) continue;
    if (choices.empty()) return SIZE_MAX;
    at = choices.back().at, step = choices.back().step;
    choices.pop_back();
  }
}

}  // namespace rushlight::generation
