#include "autograd/node_names.h"

#include <cctype>

#include "dispatch/table.h"

namespace rushlight {
namespace {

std::string in_camel_case(std::string_view name) {
  std::string text;
  bool upper = true;
  for (char c : name) {
    if (c != '_') text += static_cast<char>(upper ? std::toupper(c) : c);
    upper = !std::isalpha(static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace

std::string backward_name(const Op& op, uint32_t numbers) {
  for (const NumberNode& n : op.traits.number_nodes)
    if (numbers >> n.parameter & 1) return n.name;
  if (op.traits.node) return op.traits.node;
  const Schema& s = op.schema;
  const char* space = s.space == "linalg" ? "Linalg" : s.space == "special" ? "Special" : "";
  return space + in_camel_case(s.name) + "Backward0";
}

std::string name_of_composite(const Node& node) {
  return backward_name(operator_table().ops()[node.end_of - 1], node.numbers);
}

}  // namespace rushlight
