// How code of TorchScript programs reaches operators: those of the table, and those that only TorchScript
// has.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rushlight/ivalue.h"

namespace rushlight::jit {

struct Arguments {
  std::vector<IValue> values;
  std::vector<std::pair<std::string_view, IValue>> named;

  size_t size() const { return values.size(); }
  const IValue& operator[](size_t i) const {
    RL_CHECK_TYPE(i < values.size(), "an argument is missing");
    return values[i];
  }
  // By position, or by name, or null.
  const IValue* find(size_t position, std::string_view name) const;
  bool has_tensors() const;
};

using Builtin = IValue (*)(Arguments&);
struct NamedBuiltin {
  std::string_view name;  // "aten::len"
  Builtin run;
  bool plain_only = false;  // with a tensor among the arguments, the table's operator is meant
};

// What an operator's name means; found once, when code is read.
struct Callee {
  const NamedBuiltin* builtin = nullptr;
  std::string name;  // "aten::add"
};
Callee find_callee(std::string_view space, std::string_view name);
// What did under that name what the operator does in archives of a version; the name itself in most cases.
std::string_view name_then(std::string_view name, int64_t version);
IValue call(const Callee& callee, Arguments& arguments);
// The table's operator of that name whose parameters fit best.
IValue call_table(std::string_view name, Arguments& arguments);
template <class... T>
IValue call_table(std::string_view name, const T&... values) {
  Arguments arguments{{IValue(values)...}, {}};
  return call_table(name, arguments);
}

// The tables of builtins by what they work on.
std::vector<NamedBuiltin> number_builtins();
std::vector<NamedBuiltin> text_builtins();
std::vector<NamedBuiltin> container_builtins();
std::vector<NamedBuiltin> sequence_builtins();
std::vector<NamedBuiltin> tensor_builtins();
std::vector<NamedBuiltin> layer_builtins();
std::vector<NamedBuiltin> builtins_then();

// Element types, layouts and memory formats are numbers in TorchScript.
DType dtype_of_number(int64_t number);
int64_t number_of_dtype(DType dtype);
bool truth(const IValue& value);          // of a condition
int64_t to_integer(const IValue& value);  // of a number, or a tensor with one element
double to_real(const IValue& value);
int compare(const IValue& a, const IValue& b);  // -1, 0, 1; 2 where numbers have no order
std::string to_text(const IValue& value);       // what print and str say

}  // namespace rushlight::jit
