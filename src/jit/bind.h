// What the text gives as arguments, checked against a schema.
#pragma once
#include "jit/graph.h"

namespace rushlight::jit {

struct Word {  // float32, cpu, channels_last
  std::string_view text;
};
using Literal = std::variant<std::monostate, Use, bool, int64_t, double, complex128, std::string, List, Word>;

// The arguments of one call. Errors are ValueErrors that say which argument is wrong.
class ArgumentBinder {
 public:
  ArgumentBinder(const Graph& graph, const Op& op);
  void positional(Literal literal);
  void named(std::string_view name, Literal literal);
  std::vector<Argument> finish();  // with defaults

 private:
  void put(size_t i, Literal literal);
  Argument bind(const Parameter& parameter, Literal literal) const;
  Argument bind_list(const Parameter& parameter, Literal literal) const;
  Argument bind_word(const Parameter& parameter, std::string_view word) const;
  bool fits(const Use& use, Tag tag) const;
  [[noreturn]] void refuse(const Parameter& parameter) const;

  const Graph& graph_;
  const Op& op_;
  std::vector<Argument> arguments_;
  std::vector<bool> given_;
  size_t next_ = 0;
};

}  // namespace rushlight::jit
