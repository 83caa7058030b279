// The machine that runs a pickle. It knows the instructions and trusts none of them; what they build, and
// what may be named and called, is the business of an object model:
//
//   Object                                      a handle that is copied at will
//   none() boolean(b) integer(i) real(d)        plain values
//   long_integer(little_endian)                 beyond 64 bits
//   text(utf8) bytes(b) old_string(b)           strings, bytes, and strings of Python 2
//   list(items) tuple(items) dict(pairs) set(items) frozen_set(items)
//   append(list, items) put(dict, pairs) add(set, items)
//   global(module, name) text_of(object)        what a file names
//   call(function, arguments) make(type, arguments) build(object, state) persistent(id)
//   ended() damaged(what) refused(what)         throw: cut short, not a pickle, not allowed
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"

namespace rushlight::io {

// The bytes of a pickle: in memory, or fetched bit by bit.
class PickleInput {
 public:
  explicit PickleInput(std::string_view bytes = {}) : left_(bytes) {}
  virtual ~PickleInput() = default;
  PickleInput(const PickleInput&) = delete;
  // The next bytes, valid until the next call; false where there are fewer.
  bool take(size_t n, std::string_view& bytes) {
    if (left_.size() < n && !fetch(n)) return false;
    bytes = left_.substr(0, n);
    left_.remove_prefix(n);
    return true;
  }
  // The same up to a line's end, which is passed over.
  bool line(std::string_view& bytes) {
    size_t end;
    while ((end = left_.find('\n')) == std::string_view::npos)
      if (!fetch(left_.size() + 1)) return false;
    bytes = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return true;
  }

 protected:
  // Has at least n bytes in left_; false where that cannot be.
  virtual bool fetch(size_t) { return false; }
  std::string_view left_;
};

template <class Model>
class PickleMachine {
 public:
  using Object = typename Model::Object;
  PickleMachine(PickleInput& input, Model& model) : input_(input), model_(model) {}

  Object run() {
    for (;;) {
      const char code = static_cast<char>(number<uint8_t>());
      if (code == '.') return pop();
      if (!value(code) && !container(code) && !stack_or_memo(code) && !object(code)) refuse(code);
    }
  }

 private:
  using Items = std::span<Object>;

  // --- input
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, bytes(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view bytes(uint64_t n) {
    std::string_view found;
    if (n > SIZE_MAX / 2 || !input_.take(n, found)) model_.ended();
    return found;
  }
  std::string_view line() {
    std::string_view found;
    if (!input_.line(found)) model_.ended();
    return found;
  }

  // --- stack
  void push(Object o) { stack_.push_back(std::move(o)); }
  // Where the part of the stack above the last mark begins.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void need(size_t n) {
    if (stack_.size() - floor() < n) model_.damaged("its stack is empty");
  }
  Object pop() {
    need(1);
    Object o = std::move(stack_.back());
    stack_.pop_back();
    return o;
  }
  Object& top() {
    need(1);
    return stack_.back();
  }
  // The last n objects, and all above the mark, which goes.
  Items last(size_t n) {
    need(n);
    return {stack_.data() + stack_.size() - n, n};
  }
  Items above_mark() {
    if (marks_.empty()) model_.damaged("a mark is missing");
    const size_t mark = marks_.back();
    marks_.pop_back();
    return {stack_.data() + mark, stack_.size() - mark};
  }
  void drop(Items items) {
    stack_.erase(stack_.end() - static_cast<std::ptrdiff_t>(items.size()), stack_.end());
  }
  void replace(Items items, Object made) {
    drop(items);
    push(std::move(made));
  }
  Items pairs(Items items) {
    if (items.size() % 2) model_.damaged("a key has no value");
    return items;
  }
  // Changes the object below the items with them.
  template <class F>
  void change(Items items, F&& f) {
    const size_t rest = stack_.size() - items.size();
    if (rest <= floor()) model_.damaged("its stack is empty");
    f(stack_[rest - 1], items);
    drop(items);
  }

  // --- instructions: each function says whether the code is one of its own
  bool value(char code) {
    switch (code) {
      case 'N':
        return push(model_.none()), true;
      case '\x88':
        return push(model_.boolean(true)), true;
      case '\x89':
        return push(model_.boolean(false)), true;
      case 'J':
        return push(model_.integer(number<int32_t>())), true;
      case 'K':
        return push(model_.integer(number<uint8_t>())), true;
      case 'M':
        return push(model_.integer(number<uint16_t>())), true;
      case '\x8a':
        return push(long_integer(number<uint8_t>())), true;
      case '\x8b':
        return push(long_integer(number<uint32_t>())), true;
      case 'G':
        return push(model_.real(big_endian_double())), true;
      case 'X':
        return push(model_.text(bytes(number<uint32_t>()))), true;
      case '\x8c':
        return push(model_.text(bytes(number<uint8_t>()))), true;
      case '\x8d':
        return push(model_.text(bytes(number<uint64_t>()))), true;
      case 'B':
        return push(model_.bytes(bytes(number<uint32_t>()))), true;
      case 'C':
        return push(model_.bytes(bytes(number<uint8_t>()))), true;
      case '\x8e':
        return push(model_.bytes(bytes(number<uint64_t>()))), true;
      case 'T':
        return push(model_.old_string(bytes(number<uint32_t>()))), true;
      case 'U':
        return push(model_.old_string(bytes(number<uint8_t>()))), true;
      default:
        return false;
    }
  }

  bool container(char code) {
    const auto append = [&](Object& to, Items items) { model_.append(to, items); };
    const auto put = [&](Object& to, Items items) { model_.put(to, pairs(items)); };
    switch (code) {
      case ')':
        return push(model_.tuple({})), true;
      case ']':
        return push(model_.list({})), true;
      case '}':
        return push(model_.dict({})), true;
      case '\x8f':
        return push(model_.set({})), true;
      case '\x85':
      case '\x86':
      case '\x87': {
        const Items items = last(static_cast<size_t>(code - '\x84'));
        return replace(items, model_.tuple(items)), true;
      }
      case 't': {
        const Items items = above_mark();
        return replace(items, model_.tuple(items)), true;
      }
      case 'l': {
        const Items items = above_mark();
        return replace(items, model_.list(items)), true;
      }
      case 'd': {
        const Items items = pairs(above_mark());
        return replace(items, model_.dict(items)), true;
      }
      case '\x91': {
        const Items items = above_mark();
        return replace(items, model_.frozen_set(items)), true;
      }
      case 'a':
        return change(last(1), append), true;
      case 'e':
        return change(above_mark(), append), true;
      case 's':
        return change(last(2), put), true;
      case 'u':
        return change(above_mark(), put), true;
      case '\x90':
        return change(above_mark(), [&](Object& to, Items items) { model_.add(to, items); }), true;
      default:
        return false;
    }
  }

  bool stack_or_memo(char code) {
    switch (code) {
      case '(':
        return marks_.push_back(stack_.size()), true;
      case '0':
        return marks_.empty() || stack_.size() > floor() ? void(pop()) : drop(above_mark()), true;
      case '1':
        return drop(above_mark()), true;
      case '2':
        return push(Object(top())), true;
      case 'q':
        return remember(number<uint8_t>()), true;
      case 'r':
        return remember(number<uint32_t>()), true;
      case '\x94':
        return remember(memo_.size()), true;
      case 'h':
        return recall(number<uint8_t>()), true;
      case 'j':
        return recall(number<uint32_t>()), true;
      case '\x80':
        if (const int version = number<uint8_t>(); version > 5)
          model_.damaged(str("unsupported pickle protocol: ", version));
        return true;
      case '\x95':  // the length of a frame; all lengths are checked where they are used
        return number<uint64_t>(), true;
      default:
        return false;
    }
  }

  bool object(char code) {
    switch (code) {
      case 'c': {
        const std::string module(line()), name(line());
        return push(model_.global(module, name)), true;
      }
      case '\x93': {
        const Items names = last(2);
        const std::string module = model_.text_of(names[0]), name = model_.text_of(names[1]);
        return replace(names, model_.global(module, name)), true;
      }
      case 'R': {
        const Items parts = last(2);
        return replace(parts, model_.call(parts[0], parts[1])), true;
      }
      case '\x81': {
        const Items parts = last(2);
        return replace(parts, model_.make(parts[0], parts[1])), true;
      }
      case 'b':
        return change(last(1), [&](Object& to, Items state) { model_.build(to, state[0]); }), true;
      case 'Q': {
        const Items id = last(1);
        return replace(id, model_.persistent(id[0])), true;
      }
      default:
        return false;
    }
  }
  // Instructions that build objects by other routes, or reach beyond the file, are left out on purpose; so
  // are the lines of text of protocols 0 and 1, as in PyTorch.
  [[noreturn]] void refuse(char code) {
    model_.refused(str("Unsupported operand ", static_cast<int>(static_cast<uint8_t>(code))));
  }

  // --- numbers and memo
  Object long_integer(uint64_t n) {
    const std::string_view digits = bytes(n);
    if (n > 8) return model_.long_integer(digits);
    int64_t v = n && (digits[n - 1] & 0x80) ? -1 : 0;
    std::memcpy(&v, digits.data(), n);
    return model_.integer(v);
  }
  double big_endian_double() {
    const uint64_t bits = __builtin_bswap64(number<uint64_t>());
    double v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  void remember(uint64_t i) { memo_.insert_or_assign(i, top()); }
  void recall(uint64_t i) {
    const auto found = memo_.find(i);
    if (found == memo_.end()) model_.damaged(str("it recalls number ", i, ", which it never stored"));
    push(found->second);
  }

  PickleInput& input_;
  Model& model_;
  std::vector<Object> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Object> memo_;
};

}  // namespace rushlight::io
