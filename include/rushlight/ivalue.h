// IValue: a value of any of the types that saved contexts and archives hold.
#pragma once
#include <string>
#include <utility>
#include <variant>

#include "rushlight/tensor.h"

namespace rushlight {

class IValue {
 public:
  using List = std::vector<IValue>;
  using Dict = std::vector<std::pair<IValue, IValue>>;  // in order of insertion
  struct Tuple {
    List items;
  };

  IValue() = default;
  IValue(std::nullopt_t) {}
  IValue(Tensor t) : value_(std::move(t)) {}
  IValue(bool v) : value_(v) {}
  IValue(int v) : value_(static_cast<int64_t>(v)) {}
  IValue(int64_t v) : value_(v) {}
  IValue(double v) : value_(v) {}
  IValue(std::string v) : value_(std::move(v)) {}
  IValue(const char* v) : value_(std::string(v)) {}
  IValue(const Scalar& s);
  IValue(List v) : value_(std::make_shared<List>(std::move(v))) {}
  IValue(Dict v) : value_(std::make_shared<Dict>(std::move(v))) {}
  IValue(Tuple v) : value_(std::make_shared<Tuple>(std::move(v))) {}
  IValue(IntArrayRef v) : IValue(List(v.begin(), v.end())) {}
  IValue(const std::vector<int64_t>& v) : IValue(List(v.begin(), v.end())) {}
  IValue(const std::vector<double>& v) : IValue(List(v.begin(), v.end())) {}
  IValue(const std::vector<Tensor>& v) : IValue(List(v.begin(), v.end())) {}
  template <class T>
  IValue(const std::optional<T>& v) : IValue(v ? IValue(*v) : IValue()) {}

  bool isNone() const { return holds<std::monostate>(); }
  bool isTensor() const { return holds<Tensor>(); }
  bool isBool() const { return holds<bool>(); }
  bool isInt() const { return holds<int64_t>(); }
  bool isDouble() const { return holds<double>(); }
  bool isString() const { return holds<std::string>(); }
  bool isList() const { return holds<std::shared_ptr<List>>(); }
  bool isTuple() const { return holds<std::shared_ptr<Tuple>>(); }
  bool isGenericDict() const { return holds<std::shared_ptr<Dict>>(); }
  bool isScalar() const { return isInt() || isDouble() || isBool(); }

  const Tensor& toTensor() const { return get<Tensor>("a tensor"); }
  bool toBool() const { return get<bool>("a bool"); }
  int64_t toInt() const { return get<int64_t>("an int"); }
  double toDouble() const { return isInt() ? static_cast<double>(toInt()) : get<double>("a float"); }
  Scalar toScalar() const;
  const std::string& toStringRef() const { return get<std::string>("a string"); }
  const List& toListRef() const { return *get<std::shared_ptr<List>>("a list"); }
  List& toList() const { return *get<std::shared_ptr<List>>("a list"); }
  const List& toTupleRef() const { return get<std::shared_ptr<Tuple>>("a tuple")->items; }
  Dict& toGenericDict() const { return *get<std::shared_ptr<Dict>>("a dict"); }
  std::vector<int64_t> toIntVector() const;
  std::vector<double> toDoubleVector() const;
  std::vector<Tensor> toTensorVector() const;
  // In a dict: the value at a key, or null.
  const IValue* find(std::string_view key) const;
  std::string_view kind() const;  // "Tensor", "int", ... for messages
  // Of the same kind with equal values; tensors of equal dtype, shape and elements.
  friend bool operator==(const IValue& a, const IValue& b);

 private:
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  const T& get(const char* wanted) const {
    if (const T* v = std::get_if<T>(&value_)) return *v;
    fail(wanted);
  }
  [[noreturn]] void fail(const char* wanted) const;
  std::variant<std::monostate, Tensor, bool, int64_t, double, std::string, std::shared_ptr<List>,
               std::shared_ptr<Dict>, std::shared_ptr<Tuple>>
      value_;
};

}  // namespace rushlight
