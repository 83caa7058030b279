#include "rushlight/ivalue.h"

#include <cmath>
#include <cstdio>
#include <iostream>

#include "frontend/torchscript/instance.h"
#include "rushlight/script.h"

namespace rushlight {

using ivalue::DictBody;
using ivalue::DictItem;
using ivalue::Elements;
using ivalue::ListBody;

IValue::IValue(const Scalar& s) {
  if (s.is_bool())
    value_ = s.to<bool>();
  else if (s.is_integral())
    value_ = s.to_int();
  else if (s.is_complex())
    value_ = s.to<std::complex<double>>();
  else
    value_ = s.to_double();
}
IValue::IValue(List v, Elements elements)
    : value_(std::make_shared<ListBody>(ListBody{std::move(v), elements})) {}
IValue::IValue(Dict v) {
  auto body = std::make_shared<DictBody>();
  body->items = std::move(v);
  value_ = std::move(body);
}
IValue::IValue(IntArrayRef v) : IValue(List(v.begin(), v.end()), Elements::Int) {}
IValue::IValue(const jit::Module& module) : value_(module.instance()) {}

bool IValue::isModule() const { return isObject() && toObject()->type->is_module; }
jit::Module IValue::toModule() const {
  RL_CHECK(isModule(), "IValue: expected a module, but got ", kind());
  return jit::Module(toObject());
}

Scalar IValue::toScalar() const {
  if (isBool()) return toBool();
  if (isComplexDouble()) return toComplexDouble();
  return isInt() ? Scalar(toInt()) : Scalar(toDouble());
}

const IValue::List& IValue::toListRef() const { return list_body()->items; }
rushlight::List<IValue> IValue::toList() const { return rushlight::List<IValue>(list_body()); }
rushlight::List<Tensor> IValue::toTensorList() const { return rushlight::List<Tensor>(list_body()); }
rushlight::List<int64_t> IValue::toIntList() const { return rushlight::List<int64_t>(list_body()); }
rushlight::List<double> IValue::toDoubleList() const { return rushlight::List<double>(list_body()); }
rushlight::List<bool> IValue::toBoolList() const { return rushlight::List<bool>(list_body()); }
const IValue::Dict& IValue::toDictRef() const { return dict_body()->items; }
rushlight::Dict<IValue, IValue> IValue::toGenericDict() const {
  return rushlight::Dict<IValue, IValue>(dict_body());
}
std::vector<int64_t> IValue::toIntVector() const { return to<std::vector<int64_t>>(); }
std::vector<double> IValue::toDoubleVector() const { return to<std::vector<double>>(); }
std::vector<Tensor> IValue::toTensorVector() const { return to<std::vector<Tensor>>(); }

static Elements element_kind(const IValue& v) {
  return v.isTensor()          ? Elements::Tensor
         : v.isInt()           ? Elements::Int
         : v.isDouble()        ? Elements::Double
         : v.isBool()          ? Elements::Bool
         : v.isString()        ? Elements::String
         : v.isComplexDouble() ? Elements::ComplexDouble
                               : Elements::Any;
}
bool IValue::is_list_of(Elements wanted) const {
  if (!isList()) return false;
  const ListBody& body = *list_body();
  if (body.items.empty()) return body.elements == wanted;
  return std::ranges::all_of(body.items, [&](const IValue& v) { return element_kind(v) == wanted; });
}

const IValue* IValue::find(std::string_view key) const {
  const DictItem* found = dict_body()->find(IValue(std::string(key)));
  return found ? &found->second : nullptr;
}

std::string_view IValue::kind() const {
  static constexpr std::string_view names[] = {"None", "Tensor", "bool",  "int",     "float",  "str",
                                               "list", "dict",   "tuple", "complex", "Device", "object"};
  return names[value_.index()];
}
std::string IValue::tagKind() const {
  static constexpr const char* names[] = {"None",   "Tensor",        "Bool",        "Int",
                                          "Double", "String",        "GenericList", "GenericDict",
                                          "Tuple",  "ComplexDouble", "Device",      "Object"};
  return names[value_.index()];
}

static bool same_tensor(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.is_same(b) || (a.dtype() == b.dtype() && a.device() == b.device() && a.equal(b));
}
static bool same_dict(DictBody& a, DictBody& b) {
  return a.items.size() == b.items.size() && std::ranges::all_of(a.items, [&](const DictItem& item) {
           const DictItem* other = b.find(item.first);
           return other && item.second == other->second;
         });
}
bool operator==(const IValue& a, const IValue& b) {
  if (a.kind() != b.kind()) return a.isScalar() && b.isScalar() && a.toScalar() == b.toScalar();
  if (a.isTensor()) return same_tensor(a.toTensor(), b.toTensor());
  if (a.isList()) return a.toListRef() == b.toListRef();
  if (a.isTuple()) return a.toTupleRef().items == b.toTupleRef().items;
  if (a.isGenericDict()) return same_dict(*a.dict_body(), *b.dict_body());
  if (a.isString()) return a.toStringRef() == b.toStringRef();
  if (a.isDevice()) return a.toDevice() == b.toDevice();
  if (a.isObject()) return a.toObject() == b.toObject();
  return a.isNone() || a.toScalar() == b.toScalar();
}
bool IValue::is(const IValue& o) const {
  if (kind() != o.kind()) return false;
  if (isTensor()) return toTensor().is_same(o.toTensor());
  if (isList()) return list_body() == o.list_body();
  if (isGenericDict()) return dict_body() == o.dict_body();
  if (isTuple()) return toTuple() == o.toTuple();
  return *this == o;
}

void IValue::fail(const char* wanted) const { RL_FAIL("IValue: expected ", wanted, ", but got ", kind()); }

// --- copies

namespace {
class Copier {
 public:
  IValue copy(const IValue& v) {
    if (v.isTensor()) return made(v.toTensor().impl(), [&] { return IValue(copied(v.toTensor())); });
    if (v.isList())
      return made(v.list_body().get(), [&] {
        auto body = std::make_shared<ListBody>(*v.list_body());
        for (IValue& item : body->items) item = copy(item);
        return IValue(body);
      });
    if (v.isTuple())
      return made(v.toTuple().get(), [&] {
        auto tuple = std::make_shared<IValue::Tuple>(v.toTupleRef());
        for (IValue& item : tuple->items) item = copy(item);
        return IValue(tuple);
      });
    if (v.isGenericDict())
      return made(v.dict_body().get(), [&] {
        IValue::Dict items;
        for (const auto& [key, value] : v.toDictRef()) items.push_back({copy(key), copy(value)});
        return IValue(std::move(items));
      });
    if (v.isObject())
      return made(v.toObject().get(), [&] {
        auto instance = std::make_shared<jit::Instance>(*v.toObject());
        for (auto& item : instance->attributes) item.value() = copy(item.value());
        return IValue(instance);
      });
    return v;
  }

 private:
  static Tensor copied(const Tensor& t) {
    if (!t.defined()) return t;
    const Tensor fresh = t.detach().clone();
    return t.requires_grad() ? fresh.set_requires_grad(true) : fresh;
  }
  template <class Make>
  IValue made(const void* key, Make make) {
    const auto found = done_.find(key);
    if (found != done_.end()) return found->second;
    return done_[key] = make();
  }
  std::unordered_map<const void*, IValue> done_;
};
}  // namespace

IValue IValue::deepcopy() const { return Copier().copy(*this); }

// --- dicts

namespace ivalue {

static size_t hash_of(const IValue& key) {
  if (key.isString()) return std::hash<std::string>()(key.toStringRef());
  if (key.isTensor()) return std::hash<const void*>()(key.toTensor().impl());
  if (key.isScalar() && !key.isComplexDouble()) return std::hash<double>()(key.toScalar().to_double());
  return 0;
}

DictItem* DictBody::find(const IValue& key) {
  const auto fits = [&](const IValue& k) { return key.isTensor() ? key.is(k) : key == k; };
  if (items.size() <= kSearched) {
    for (DictItem& item : items)
      if (fits(item.first)) return &item;
    return nullptr;
  }
  if (indexed_ > items.size()) index_.clear(), indexed_ = 0;
  for (; indexed_ < items.size(); ++indexed_) index_.emplace(hash_of(items[indexed_].first), indexed_);
  const auto [begin, end] = index_.equal_range(hash_of(key));
  for (auto at = begin; at != end; ++at)
    if (fits(items[at->second].first)) return &items[at->second];
  return nullptr;
}
void DictBody::put(const IValue& key, IValue value) {
  if (DictItem* found = find(key))
    found->second = std::move(value);
  else
    items.push_back({key, std::move(value)});
}
bool DictBody::erase(const IValue& key) {
  const DictItem* found = find(key);
  if (!found) return false;
  items.erase(items.begin() + (found - items.data()));
  index_.clear(), indexed_ = 0;
  return true;
}

}  // namespace ivalue

// --- text

// As TorchScript prints it: 2., 0.10000000000000001, 1e+20
static std::string real_text(double v) {
  char text[40];
  const bool whole = std::abs(v) < 9e18 && v == static_cast<double>(static_cast<int64_t>(v));
  if (whole)
    std::snprintf(text, sizeof text, "%s%lld.", std::signbit(v) && v == 0 ? "-" : "",
                  static_cast<long long>(v));
  else
    std::snprintf(text, sizeof text, "%.17g", v);
  return text;
}
static std::ostream& print_items(std::ostream& out, const IValue::List& items) {
  for (size_t i = 0; i < items.size(); ++i) out << (i ? ", " : "") << items[i];
  return out;
}
std::ostream& operator<<(std::ostream& out, const IValue& v) {
  if (v.isTensor()) return out << v.toTensor();
  if (v.isNone()) return out << "None";
  if (v.isBool()) return out << (v.toBool() ? "True" : "False");
  if (v.isDouble()) return out << real_text(v.toDouble());
  if (v.isComplexDouble()) {
    const std::complex<double> z = v.toComplexDouble();
    return out << real_text(z.real()) << (z.imag() < 0 ? "-" : "+") << real_text(std::abs(z.imag())) << 'j';
  }
  if (v.isScalar()) return out << to_string(v.toScalar());
  if (v.isString()) return out << v.toStringRef();
  if (v.isDevice()) return out << v.toDevice();
  if (v.isList()) return print_items(out << '[', v.toListRef()) << ']';
  if (v.isTuple())
    return print_items(out << '(', v.toTupleRef().items) << (v.toTupleRef().size() == 1 ? ",)" : ")");
  if (v.isGenericDict()) {
    out << '{';
    const char* between = "";
    for (const auto& [key, value] : v.toDictRef())
      out << std::exchange(between, ", ") << key << ": " << value;
    return out << '}';
  }
  return out << "<" << v.toObject()->type->name << " object at " << v.toObject().get() << ">";
}
void IValue::dump() const { std::cout << *this << "\n"; }

}  // namespace rushlight
