// Graph: a program as a list of operator calls in static single assignment. Its text (jit/text.h) is what
// Python writes, files hold and people read.
#pragma once
#include <complex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "dispatch/table.h"

namespace rushlight::jit {

// A size that callers choose: the same number wherever its name stands.
struct Symbol {
  std::string name;
  int64_t example = 1, lower = 0, upper = INT64_MAX;  // inclusive
};

// One size of a tensor's type: factor * symbol + offset, or unknown.
struct Size {
  int32_t symbol = -1;  // index into Graph::symbols; -1: the number `offset`
  bool known = true;
  int64_t factor = 0, offset = 0;

  static Size unknown() { return {-1, false, 0, 0}; }
  static Size number(int64_t n) { return {-1, true, 0, n}; }
  bool is_number() const { return known && symbol < 0; }
  bool operator==(const Size&) const = default;
};

// What is known of a value before it is computed.
struct Type {
  enum class Kind : uint8_t { Unknown, Tensor, Int, Float, Bool };
  Kind kind = Kind::Unknown;
  DType dtype = DType::Float32;  // of a tensor
  bool has_sizes = false;
  std::vector<Size> sizes;

  bool is_tensor() const { return kind == Kind::Tensor; }
};

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = UINT32_MAX;

struct ValueInfo {
  std::string name;  // without the percent sign
  Type type;
};

// A use of a value. As an element of a Tensor?[] it may be kNoValue, which is None.
struct Use {
  ValueId id = kNoValue;
  bool operator==(const Use&) const = default;
};
// What a list may hold besides uses.
using Element = std::variant<Use, bool, int64_t, double>;
// A type of its own: of a variant whose alternatives are the standard library's and plain ones alone, GCC 12
// thinks that it always holds something, and destroys what a copy that fails for want of memory has not made.
struct List : std::vector<Element> {
  using vector::vector;
};

// An argument as the parameter of the schema wants it; monostate is None.
struct Argument {
  std::variant<std::monostate, Use, bool, int64_t, double, complex128, std::string, DType, Device, Layout,
               MemoryFormat, List>
      content;

  bool is_none() const { return content.index() == 0; }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&content);
  }
  bool operator==(const Argument&) const = default;
};

// Calls f(Use&) for each value an argument uses.
template <class Arg, class F>
void each_use(Arg& argument, F&& f) {
  if (auto* use = std::get_if<Use>(&argument.content)) f(*use);
  if (auto* list = std::get_if<List>(&argument.content))
    for (auto& element : *list)
      if (auto* use = std::get_if<Use>(&element); use && use->id != kNoValue) f(*use);
}

// What a node does if it calls no record of the operator table.
enum class Builtin : uint8_t { None, Constant, Size, Add, Sub, Mul, FloorDiv, Max, Min, State };

struct Node {
  const Op* op = nullptr;
  bool inplace = false;  // the form `name_`
  Builtin builtin = Builtin::None;
  std::string constant;             // of Builtin::Constant and Builtin::State: its name
  std::vector<Argument> arguments;  // one per parameter of the schema, defaults filled in
  std::vector<ValueId> results;     // kNoValue: not kept
  std::string source;               // where in the user's program, for errors; may be empty

  bool is_constant() const { return builtin == Builtin::Constant; }
  // A tensor of the session that runs the graph: it may be written to, and later runs see that.
  bool is_state() const { return builtin == Builtin::State; }
  // "add.Tensor", "nn::gelu", "relu_", "sym::mul"
  std::string name() const;
};

struct Output {
  std::string name;  // may be empty
  ValueId value = kNoValue;
};

class Graph {
 public:
  std::vector<Symbol> symbols;
  std::vector<ValueInfo> values;
  std::vector<ValueId> inputs;
  std::vector<Output> outputs;
  std::vector<Node> nodes;  // each after those whose results it uses

  ValueId add_value(std::string name, Type type = {});
  // A name for a new value that no value has: `stem`, stem_1, ...
  std::string fresh_name(std::string_view stem) const;
  // Names of the constants that nodes read, in the order of the nodes, each once.
  std::vector<std::string> constants() const;
  std::vector<std::string> states() const;        // the same of the state
  std::string type_text(const Type& type) const;  // "float32[2*N+1, ?]"
  std::string size_text(const Size& size) const;
};

// Constants of a graph, by name.
using Constants = std::unordered_map<std::string, Tensor>;

// A plain value of a schema, such as a default, as an argument.
Argument argument_of(const Value& value);

// "nn::gelu" or "add.Tensor" in the operator table; null where there is none.
const Op* find_operator(std::string_view full_name);

}  // namespace rushlight::jit
