// Types as TorchScript writes them.
#include <algorithm>

#include "frontend/torchscript/syntax.h"

namespace rushlight::jit {

std::string to_string(const TypeName& type) {
  std::string out = type.name.empty() ? "()" : type.name;
  if (type.arguments.empty()) return out;
  out += "[";
  for (const TypeName& a : type.arguments) out += (&a == &type.arguments[0] ? "" : ", ") + to_string(a);
  return out + "]";
}

ivalue::Elements elements_of(const TypeName& list) {
  using ivalue::Elements;
  if (list.name != "List" || list.arguments.size() != 1) return Elements::Any;
  const std::string& name = list.arguments[0].name;
  return name == "Tensor"    ? Elements::Tensor
         : name == "int"     ? Elements::Int
         : name == "float"   ? Elements::Double
         : name == "bool"    ? Elements::Bool
         : name == "str"     ? Elements::String
         : name == "complex" ? Elements::ComplexDouble
                             : Elements::Any;
}

static bool is_of_class(const IValue& value, const std::string& path) {
  if (value.isObject()) {
    const ClassType& type = *value.toObject()->type;
    return type.path == path || type.kind == ClassType::Kind::Module;  // or what stands behind an interface
  }
  return value.isTuple() && value.toTupleRef().name == path;
}

bool is_of_type(const IValue& v, const TypeName& type) {
  const auto each = [](const auto& items, const auto& fits) { return std::ranges::all_of(items, fits); };
  const auto argument = [&](size_t i) -> const TypeName& { return type.arguments[i]; };
  const std::string& name = type.name;
  const size_t n = type.arguments.size();
  if (name == "Tensor") return v.isTensor();
  if (name == "int") return v.isInt();
  if (name == "float") return v.isDouble();
  if (name == "bool") return v.isBool();
  if (name == "str") return v.isString();
  if (name == "complex") return v.isComplexDouble();
  if (name == "number" || name == "Scalar") return v.isScalar();
  if (name == "NoneType") return v.isNone();
  if (name == "Device") return v.isDevice();
  if (name == "Any") return true;
  if (name == "Optional" && n == 1) return v.isNone() || is_of_type(v, argument(0));
  if (name == "Union")
    return std::ranges::any_of(type.arguments, [&](const TypeName& t) { return is_of_type(v, t); });
  if (name == "List" || name == "list")
    return v.isList() &&
           (n != 1 || each(v.toListRef(), [&](const IValue& item) { return is_of_type(item, argument(0)); }));
  if (name == "Dict" || name == "dict")
    return v.isGenericDict() && (n != 2 || each(v.toDictRef(), [&](const ivalue::DictItem& item) {
                                   return is_of_type(item.first, argument(0)) &&
                                          is_of_type(item.second, argument(1));
                                 }));
  if (name == "Tuple" || name == "tuple") {
    if (!v.isTuple()) return false;
    const auto& items = v.toTupleRef().items;
    if (n == 0) return true;
    if (items.size() != n) return n == 1 && argument(0).name.empty() && items.empty();
    for (size_t i = 0; i < n; ++i)
      if (!is_of_type(items[i], argument(i))) return false;
    return true;
  }
  if (name.starts_with("__torch__")) return is_of_class(v, name);
  return true;  // of kinds that only the compiler tells apart
}

}  // namespace rushlight::jit
