// Schema: an operator's signature in PyTorch's grammar, parsed.
//   add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
// A prefix names the Python namespace: nn::relu(...), linalg::svd(...), special::erf(...). Without one: torch
// and Tensor.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/value.h"

namespace rushlight {

struct Parameter {
  std::string_view name;
  Tag type = Tag::Tensor;          // of the value, or of the list
  bool optional = false;           // "?": accepts None
  bool elements_optional = false;  // "Tensor?[]"
  bool mutated = false;            // "(a!)": written in place
  bool keyword_only = false;
  bool has_default = false;
  int list_length = 0;  // int[2]: a bare int stands for two of them; 0: any length, no bare int
  Value default_value;  // borrows from the schema
};

struct Return {
  Tag type = Tag::Tensor;
  std::string_view name;  // of a named tuple's field; may be empty
  bool mutated = false;
};

class Schema {
 public:
  // `text` must outlive the schema (a string literal). Internal error on bad grammar.
  static Schema parse(std::string_view text);

  std::string_view text;
  std::string_view space;     // "", "nn", "linalg", ...
  std::string_view name;      // "add", "add_"
  std::string_view overload;  // "Tensor"; may be empty
  std::vector<Parameter> parameters;
  std::vector<Return> returns;

  int positional_count() const;
  int index_of(std::string_view parameter) const;  // -1 when there is none

 private:
  friend class SchemaParser;
  std::vector<std::unique_ptr<std::vector<int64_t>>> int_lists_;  // what defaults borrow
  std::vector<std::unique_ptr<std::vector<double>>> float_lists_;
};

}  // namespace rushlight
