#include "rushlight/ivalue.h"

namespace rushlight {

IValue::IValue(const Scalar& s) {
  if (s.is_bool())
    value_ = s.to<bool>();
  else if (s.is_integral())
    value_ = s.to_int();
  else
    value_ = s.to_double();
}

Scalar IValue::toScalar() const {
  if (isBool()) return toBool();
  return isInt() ? Scalar(toInt()) : Scalar(toDouble());
}

template <class T, class F>
static std::vector<T> gathered(const IValue::List& list, F get) {
  std::vector<T> result;
  for (const IValue& v : list) result.push_back(get(v));
  return result;
}
std::vector<int64_t> IValue::toIntVector() const {
  return gathered<int64_t>(toListRef(), [](const IValue& v) { return v.toInt(); });
}
std::vector<double> IValue::toDoubleVector() const {
  return gathered<double>(toListRef(), [](const IValue& v) { return v.toDouble(); });
}
std::vector<Tensor> IValue::toTensorVector() const {
  return gathered<Tensor>(toListRef(), [](const IValue& v) { return v.toTensor(); });
}

const IValue* IValue::find(std::string_view key) const {
  for (const auto& [k, v] : toGenericDict())
    if (k.isString() && k.toStringRef() == key) return &v;
  return nullptr;
}

std::string_view IValue::kind() const {
  static constexpr std::string_view names[] = {"None", "Tensor", "bool", "int",  "float",
                                               "str",  "list",   "dict", "tuple"};
  return names[value_.index()];
}

static bool same_tensor(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.is_same(b) || (a.dtype() == b.dtype() && a.device() == b.device() && a.equal(b));
}
bool operator==(const IValue& a, const IValue& b) {
  if (a.kind() != b.kind()) return false;
  if (a.isTensor()) return same_tensor(a.toTensor(), b.toTensor());
  if (a.isList()) return a.toListRef() == b.toListRef();
  if (a.isTuple()) return a.toTupleRef() == b.toTupleRef();
  if (a.isGenericDict()) return a.toGenericDict() == b.toGenericDict();
  if (a.isString()) return a.toStringRef() == b.toStringRef();
  return a.isNone() || a.toScalar() == b.toScalar();
}

void IValue::fail(const char* wanted) const { RL_FAIL("IValue: expected ", wanted, ", but got ", kind()); }

}  // namespace rushlight
