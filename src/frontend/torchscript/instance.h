// Objects of TorchScript programs: a class of a program, and what an object of it holds.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rushlight/ivalue.h"
#include "rushlight/ordered_dict.h"

namespace rushlight::jit {

class Program;
struct Function;

struct ClassType {
  enum class Kind : uint8_t { Module, Object, NamedTuple, Enum };
  std::string path;  // "__torch__.models.Net"
  std::string name;  // "Net"
  Kind kind = Kind::Object;
  bool is_module = false;
  std::vector<std::string> parameters, buffers;               // names of a module's
  std::vector<std::string> forward_pre_hooks, forward_hooks;  // of its methods
  std::vector<std::string> fields;             // what is declared, in order; of named tuples the fields
  std::vector<std::string> types;              // of each field, as it is written
  OrderedDict<std::string, IValue> constants;  // values of the class; of enumerations the members
  OrderedDict<std::string, std::unique_ptr<Function>> methods;
  Program* program = nullptr;

  const Function* method(const std::string& wanted) const;
  const std::string& declared_type(const std::string& field) const;  // "" where it is not declared
};

struct Instance {
  std::shared_ptr<const ClassType> type;  // which keeps its program
  OrderedDict<std::string, IValue> attributes;
};

// Attributes as programs see them: the object's own, then the constants of its class.
const IValue& attribute(const Instance& object, const std::string& name);
const IValue* find_attribute(const Instance& object, const std::string& name);
void set_attribute(Instance& object, const std::string& name, IValue value);

}  // namespace rushlight::jit
