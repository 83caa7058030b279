// Templates as trees.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/template_values.h"

namespace rushlight::serve::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    Constant,
    Name,
    List,
    Dict,
    Item,
    Slice,
    Call,
    Filter,
    Test,
    Not,
    And,
    Or,
    Binary,
    Choice
  };
  Kind kind = Kind::Constant;
  Value constant;
  std::string name;  // of a name, filter, test, method, sign
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> keywords;  // of the last parts of a call
};

struct Statement {
  enum class Kind { Text, Write, For, If, Set, Break, Continue };
  Kind kind = Kind::Text;
  std::string text;                // of a text
  std::vector<std::string> names;  // that a loop or an assignment sets; two for the member of a namespace
  ExpressionPtr value, filter;     // what is written, looped over, asked or set; which items a loop takes
  std::vector<Statement> body, otherwise;
};

// One ValueError that names what is not covered.
std::vector<Statement> parse(std::string_view text);

}  // namespace rushlight::serve::jinja
