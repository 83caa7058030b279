// Functions of TorchScript programs as trees. Names of local variables are numbers of slots.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "frontend/torchscript/arguments.h"
#include "frontend/torchscript/instance.h"

namespace rushlight::jit {

// List[int], Optional[Tensor], __torch__.models.Pair
struct TypeName {
  std::string name;
  std::vector<TypeName> arguments;
};
std::string to_string(const TypeName& type);
// Whether a value is of a type. Of containers, the elements are looked at too.
bool is_of_type(const IValue& value, const TypeName& type);
ivalue::Elements elements_of(const TypeName& list);

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Target {
  int slot = -1;  // or
  std::vector<Target> items;
};

struct Expression {
  enum class Kind : uint8_t {
    Constant,     // value
    Local,        // slot; `last`: nothing reads it afterwards
    Attribute,    // items[0].name
    Subscript,    // items[0][items[1]]
    Places,       // items[0][items[1:]], of which some are slices
    Slice,        // items[0]:items[1]:items[2] in brackets
    Rest,         // ... in brackets
    Spread,       // *items[0] among arguments or items
    Collected,    // [items[1] for target in items[0]], or {items[1]: items[2] for ...}
    List,         // items, of type.arguments[0] where that is known
    Tuple,        // items
    Dict,         // items: keys and values in turn
    Operator,     // name and callee; items and named are its arguments
    Method,       // items[0].name(items[1:])
    CallPath,     // __torch__... as `name`: a function, or a class, which makes an object
    New,          // an object of the class `name`, empty
    EnumMember,   // __torch__...Color.RED
    Conditional,  // items[0] if items[1] else items[2]
    And,
    Or,
    Not,
    IsInstance,    // items[0], types
    Fork,          // runs a body of the function's own, number `slot`, and gives what it returns
    Uninitialized  // a value that nothing reads
  };
  Kind kind;
  bool last = false;
  int line = 0, slot = -1;
  std::string name;
  IValue value;
  std::vector<ExpressionPtr> items;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<TypeName> types;
  Target target;  // of what is collected
  Callee callee;
  mutable std::atomic<const void*> resolved{nullptr};  // of paths: the function or class
};

struct Statement {
  enum class Kind : uint8_t {
    Assign,
    SetAttribute,
    SetItem,
    Evaluate,
    Augment,  // object name= value
    Assert,   // value, or else the error `index`
    If,
    While,
    For,
    Return,
    Break,
    Continue,
    With
  };
  Kind kind;
  int line = 0;
  Target target;         // Assign, For
  std::string name;      // SetAttribute
  ExpressionPtr object;  // SetAttribute, SetItem: of what
  ExpressionPtr index;   // SetItem
  ExpressionPtr value;   // the condition, what is looped over, ...
  std::vector<Statement> body, otherwise;
};

struct FunctionParameter {
  std::string name;
  TypeName type;
  std::optional<IValue> otherwise;  // the default, if there is one
};

struct Function {
  std::string name, file;  // "forward", "code/__torch__/models.py"
  std::vector<FunctionParameter> parameters;
  TypeName returns;
  std::vector<Statement> body;
  std::vector<std::vector<Statement>> inner;  // of the functions inside it, which share its variables
  int slots = 0;
};

}  // namespace rushlight::jit
