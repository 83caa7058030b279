// IValue: a value of any of the types that saved contexts, archives and TorchScript programs hold. Containers
// are shared, as in Python: a copy of an IValue names the same list, dict or object.
#pragma once
#include <algorithm>
#include <complex>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "rushlight/tensor.h"

namespace rushlight {

class IValue;
template <class T>
class List;
template <class Key, class Value>
class Dict;

namespace jit {
class Module;
class Object;
struct Instance;
}  // namespace jit

namespace ivalue {

// What a list was made for, so that an empty one knows it too.
enum class Elements : uint8_t { Any, Tensor, Int, Double, Bool, String, ComplexDouble };

struct DictItem;
struct ListBody;
struct DictBody;

struct Tuple {
  std::vector<IValue> items;
  // Of a named tuple: its class and the names of its fields.
  std::string name;
  std::vector<std::string> fields;

  static std::shared_ptr<Tuple> create(std::vector<IValue> items);
  template <class... T>
  static std::shared_ptr<Tuple> create(T&&... items);
  const std::vector<IValue>& elements() const { return items; }
  // Below, where an element's size is known.
  size_t size() const;
  const IValue& operator[](size_t i) const;
  std::vector<IValue>::const_iterator begin() const;
  std::vector<IValue>::const_iterator end() const;
};

struct ConstantString {
  std::string text;
  const std::string& string() const { return text; }
};

}  // namespace ivalue

namespace detail {
// Programs convert IValues to and from these.
template <class T>
struct IValueTo;
}  // namespace detail

class IValue {
 public:
  using List = std::vector<IValue>;
  using Dict = std::vector<ivalue::DictItem>;  // in order of insertion
  using Tuple = ivalue::Tuple;

  IValue() = default;
  IValue(std::nullopt_t) {}
  IValue(Tensor t) : value_(std::move(t)) {}
  IValue(bool v) : value_(v) {}
  IValue(int v) : value_(static_cast<int64_t>(v)) {}
  IValue(int64_t v) : value_(v) {}
  IValue(double v) : value_(v) {}
  IValue(std::complex<double> v) : value_(v) {}
  IValue(std::string v) : value_(std::move(v)) {}
  IValue(const char* v) : value_(std::string(v)) {}
  IValue(const Device& v) : value_(v) {}
  IValue(const Scalar& s);
  IValue(List v, ivalue::Elements elements = ivalue::Elements::Any);
  IValue(Dict v);
  IValue(Tuple v) : value_(std::make_shared<Tuple>(std::move(v))) {}
  IValue(std::shared_ptr<Tuple> v) : value_(std::move(v)) {}
  IValue(std::shared_ptr<ivalue::ListBody> v) : value_(std::move(v)) {}
  IValue(std::shared_ptr<ivalue::DictBody> v) : value_(std::move(v)) {}
  IValue(std::shared_ptr<jit::Instance> v) : value_(std::move(v)) {}
  IValue(const jit::Module& module);
  IValue(IntArrayRef v);
  IValue(const std::vector<int64_t>& v) : IValue(IntArrayRef(v)) {}
  IValue(const std::vector<double>& v) : IValue(List(v.begin(), v.end()), ivalue::Elements::Double) {}
  IValue(const std::vector<bool>& v) : IValue(List(v.begin(), v.end()), ivalue::Elements::Bool) {}
  IValue(const std::vector<std::string>& v) : IValue(List(v.begin(), v.end()), ivalue::Elements::String) {}
  IValue(const std::vector<Tensor>& v) : IValue(List(v.begin(), v.end()), ivalue::Elements::Tensor) {}
  template <class T>
  IValue(const std::vector<std::vector<T>>& v) : IValue(List(v.begin(), v.end())) {}
  template <class T>
  IValue(const std::optional<T>& v) : IValue(v ? IValue(*v) : IValue()) {}
  template <class T>
  IValue(const rushlight::List<T>& v) : value_(v.body()) {}
  template <class K, class V>
  IValue(const rushlight::Dict<K, V>& v) : value_(v.body()) {}
  template <class K, class V>
  IValue(const std::unordered_map<K, V>& v) : IValue(dict_of(v)) {}
  template <class K, class V>
  IValue(const std::map<K, V>& v) : IValue(dict_of(v)) {}
  template <class... T>
  IValue(const std::tuple<T...>& v)
      : IValue(std::apply([](const T&... items) { return Tuple{{IValue(items)...}, {}, {}}; }, v)) {}
  template <class A, class B>
  IValue(const std::pair<A, B>& v) : IValue(Tuple{{IValue(v.first), IValue(v.second)}, {}, {}}) {}

  bool isNone() const { return holds<std::monostate>(); }
  bool isTensor() const { return holds<Tensor>(); }
  bool isBool() const { return holds<bool>(); }
  bool isInt() const { return holds<int64_t>(); }
  bool isDouble() const { return holds<double>(); }
  bool isComplexDouble() const { return holds<std::complex<double>>(); }
  bool isString() const { return holds<std::string>(); }
  bool isDevice() const { return holds<Device>(); }
  bool isList() const { return holds<std::shared_ptr<ivalue::ListBody>>(); }
  bool isTuple() const { return holds<std::shared_ptr<Tuple>>(); }
  bool isGenericDict() const { return holds<std::shared_ptr<ivalue::DictBody>>(); }
  bool isObject() const { return holds<std::shared_ptr<jit::Instance>>(); }
  bool isModule() const;
  bool isScalar() const { return isInt() || isDouble() || isBool() || isComplexDouble(); }
  bool isTensorList() const { return is_list_of(ivalue::Elements::Tensor); }
  bool isIntList() const { return is_list_of(ivalue::Elements::Int); }
  bool isDoubleList() const { return is_list_of(ivalue::Elements::Double); }
  bool isBoolList() const { return is_list_of(ivalue::Elements::Bool); }

  const Tensor& toTensor() const { return get<Tensor>("a tensor"); }
  bool toBool() const { return get<bool>("a bool"); }
  int64_t toInt() const { return get<int64_t>("an int"); }
  double toDouble() const { return isInt() ? static_cast<double>(toInt()) : get<double>("a float"); }
  std::complex<double> toComplexDouble() const { return get<std::complex<double>>("a complex"); }
  Scalar toScalar() const;
  Device toDevice() const { return get<Device>("a device"); }
  const std::string& toStringRef() const { return get<std::string>("a string"); }
  std::string_view toStringView() const { return toStringRef(); }
  std::shared_ptr<ivalue::ConstantString> toString() const {
    return std::make_shared<ivalue::ConstantString>(toStringRef());
  }
  const List& toListRef() const;
  rushlight::List<IValue> toList() const;
  rushlight::List<Tensor> toTensorList() const;
  rushlight::List<int64_t> toIntList() const;
  rushlight::List<double> toDoubleList() const;
  rushlight::List<bool> toBoolList() const;
  const Tuple& toTupleRef() const { return *get<std::shared_ptr<Tuple>>("a tuple"); }
  std::shared_ptr<Tuple> toTuple() const { return get<std::shared_ptr<Tuple>>("a tuple"); }
  const Dict& toDictRef() const;
  rushlight::Dict<IValue, IValue> toGenericDict() const;
  std::vector<int64_t> toIntVector() const;
  std::vector<double> toDoubleVector() const;
  std::vector<Tensor> toTensorVector() const;
  jit::Module toModule() const;
  const std::shared_ptr<jit::Instance>& toObject() const {
    return get<std::shared_ptr<jit::Instance>>("an object");
  }
  const std::shared_ptr<ivalue::ListBody>& list_body() const {
    return get<std::shared_ptr<ivalue::ListBody>>("a list");
  }
  const std::shared_ptr<ivalue::DictBody>& dict_body() const {
    return get<std::shared_ptr<ivalue::DictBody>>("a dict");
  }
  // to<torch::Tensor>(), to<int64_t>(), to<std::vector<double>>(), to<std::tuple<torch::Tensor, int64_t>>()
  template <class T>
  T to() const {
    return detail::IValueTo<T>::get(*this);
  }
  template <class T>
  std::optional<T> toOptional() const {
    return isNone() ? std::nullopt : std::optional<T>(to<T>());
  }

  // In a dict: the value at a key, or null.
  const IValue* find(std::string_view key) const;
  std::string_view kind() const;   // "Tensor", "int", ... for messages
  std::string tagKind() const;     // "Tensor", "Int", ... as libtorch calls them
  bool is(const IValue& o) const;  // Python's `is`
  IValue deepcopy() const;         // with what it holds; what was shared inside stays shared
  void dump() const;               // to standard output
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
  template <class Map>
  static Dict dict_of(const Map& map);
  bool is_list_of(ivalue::Elements kind) const;
  [[noreturn]] void fail(const char* wanted) const;
  std::variant<std::monostate, Tensor, bool, int64_t, double, std::string, std::shared_ptr<ivalue::ListBody>,
               std::shared_ptr<ivalue::DictBody>, std::shared_ptr<Tuple>, std::complex<double>, Device,
               std::shared_ptr<jit::Instance>>
      value_;
};
std::ostream& operator<<(std::ostream& out, const IValue& value);

namespace ivalue {

struct DictItem {
  IValue first, second;
  const IValue& key() const { return first; }
  const IValue& value() const { return second; }
  void setValue(IValue value) { second = std::move(value); }
};
struct ListBody {
  std::vector<IValue> items;
  Elements elements = Elements::Any;
};
// Small dicts are searched, larger ones have an index.
struct DictBody {
  std::vector<DictItem> items;

  DictItem* find(const IValue& key);
  void put(const IValue& key, IValue value);
  bool erase(const IValue& key);
  void clear() { items.clear(), index_.clear(), indexed_ = 0; }

 private:
  static constexpr size_t kSearched = 8;
  std::unordered_multimap<size_t, size_t> index_;  // hash of a key: position
  size_t indexed_ = 0;                             // how many items the index knows
};

inline size_t Tuple::size() const { return items.size(); }
inline const IValue& Tuple::operator[](size_t i) const { return items[i]; }
inline std::vector<IValue>::const_iterator Tuple::begin() const { return items.begin(); }
inline std::vector<IValue>::const_iterator Tuple::end() const { return items.end(); }
inline std::shared_ptr<Tuple> Tuple::create(std::vector<IValue> items) {
  return std::make_shared<Tuple>(Tuple{std::move(items), {}, {}});
}
template <class... T>
std::shared_ptr<Tuple> Tuple::create(T&&... items) {
  return create(std::vector<IValue>{IValue(std::forward<T>(items))...});
}

}  // namespace ivalue

template <class Map>
IValue::Dict IValue::dict_of(const Map& map) {
  Dict dict;
  for (const auto& [key, value] : map) dict.push_back({IValue(key), IValue(value)});
  return dict;
}

namespace detail {

template <class T>
constexpr ivalue::Elements kElementsOf = std::is_same_v<T, Tensor>        ? ivalue::Elements::Tensor
                                         : std::is_same_v<T, int64_t>     ? ivalue::Elements::Int
                                         : std::is_same_v<T, double>      ? ivalue::Elements::Double
                                         : std::is_same_v<T, bool>        ? ivalue::Elements::Bool
                                         : std::is_same_v<T, std::string> ? ivalue::Elements::String
                                                                          : ivalue::Elements::Any;

template <class T>
  requires std::is_integral_v<T> && (!std::is_same_v<T, bool>)
struct IValueTo<T> {
  static T get(const IValue& v) { return static_cast<T>(v.toInt()); }
};
template <class T>
  requires std::is_floating_point_v<T>
struct IValueTo<T> {
  static T get(const IValue& v) { return static_cast<T>(v.toDouble()); }
};
#define RL_IVALUE_TO(type, expression)                      \
  template <>                                               \
  struct IValueTo<type> {                                   \
    static type get(const IValue& v) { return expression; } \
  };
RL_IVALUE_TO(IValue, v)
RL_IVALUE_TO(Tensor, v.toTensor())
RL_IVALUE_TO(bool, v.toBool())
RL_IVALUE_TO(std::string, v.toStringRef())
RL_IVALUE_TO(std::complex<double>, v.toComplexDouble())
RL_IVALUE_TO(Device, v.toDevice())
RL_IVALUE_TO(Scalar, v.toScalar())
#undef RL_IVALUE_TO
template <class T>
struct IValueTo<std::optional<T>> {
  static std::optional<T> get(const IValue& v) { return v.toOptional<T>(); }
};
template <class T>
struct IValueTo<std::vector<T>> {
  static std::vector<T> get(const IValue& v) {
    std::vector<T> list;
    for (const IValue& item : v.toListRef()) list.push_back(item.template to<T>());
    return list;
  }
};
template <class T>
struct IValueTo<List<T>> {
  static List<T> get(const IValue& v) { return List<T>(v.list_body()); }
};
template <class K, class V>
struct IValueTo<Dict<K, V>> {
  static Dict<K, V> get(const IValue& v) { return Dict<K, V>(v.dict_body()); }
};
template <class K, class V>
struct IValueTo<std::unordered_map<K, V>> {
  static std::unordered_map<K, V> get(const IValue& v) {
    std::unordered_map<K, V> map;
    for (const ivalue::DictItem& item : v.toDictRef())
      map.emplace(item.first.template to<K>(), item.second.template to<V>());
    return map;
  }
};
template <class... T>
struct IValueTo<std::tuple<T...>> {
  static std::tuple<T...> get(const IValue& v) {
    const auto& items = v.toTupleRef();
    RL_CHECK(items.size() == sizeof...(T), "IValue: expected a tuple of ", sizeof...(T), ", but got one of ",
             items.size());
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>(items[I].template to<T>()...);
    }(std::index_sequence_for<T...>{});
  }
};

// An element of a list of T that is kept as an IValue.
template <class T>
class ListElement {
 public:
  explicit ListElement(IValue& at) : at_(at) {}
  operator T() const { return at_.to<T>(); }
  ListElement& operator=(const T& value) {
    at_ = IValue(value);
    return *this;
  }
  template <class U>
  friend bool operator==(const ListElement& a, const U& b) {
    return static_cast<T>(a) == b;
  }

 private:
  IValue& at_;
};
// Iterators give T by value, and IValue itself by reference.
template <class T, class Base>
class ListIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = std::conditional_t<std::is_same_v<T, IValue>, IValue&, T>;
  ListIterator() = default;
  explicit ListIterator(Base at) : at_(at) {}
  reference operator*() const {
    if constexpr (std::is_same_v<T, IValue>)
      return *at_;
    else
      return at_->template to<T>();
  }
  ListIterator& operator++() {
    ++at_;
    return *this;
  }
  ListIterator operator++(int) { return ListIterator(at_++); }
  friend bool operator==(const ListIterator&, const ListIterator&) = default;

 private:
  Base at_;
};

}  // namespace detail

// c10::List: a list that IValues share.
template <class T>
class List {
 public:
  using value_type = T;
  using iterator = detail::ListIterator<T, std::vector<IValue>::iterator>;
  List() : List(std::initializer_list<T>()) {}
  List(std::initializer_list<T> items) : body_(std::make_shared<ivalue::ListBody>()) {
    body_->elements = detail::kElementsOf<T>;
    for (const T& item : items) push_back(item);
  }
  explicit List(ArrayRef<T> items) : List() {
    for (const T& item : items) push_back(item);
  }
  explicit List(std::shared_ptr<ivalue::ListBody> body) : body_(std::move(body)) {}

  size_t size() const { return body_->items.size(); }
  bool empty() const { return body_->items.empty(); }
  T get(size_t i) const { return at(i).template to<T>(); }
  T extract(size_t i) const { return get(i); }
  void set(size_t i, T value) const { at(i) = IValue(std::move(value)); }
  decltype(auto) operator[](size_t i) const {
    if constexpr (std::is_same_v<T, IValue>)
      return at(i);
    else
      return detail::ListElement<T>(at(i));
  }
  void push_back(T value) const { body_->items.emplace_back(std::move(value)); }
  template <class... A>
  void emplace_back(A&&... arguments) const {
    push_back(T(std::forward<A>(arguments)...));
  }
  void append(const List& other) const {
    const std::vector<IValue> more = other.body_->items;
    body_->items.insert(body_->items.end(), more.begin(), more.end());
  }
  void pop_back() const { body_->items.pop_back(); }
  void clear() const { body_->items.clear(); }
  void reserve(size_t n) const { body_->items.reserve(n); }
  void resize(size_t n) const { resize(n, T()); }
  void resize(size_t n, const T& value) const { body_->items.resize(n, IValue(value)); }
  List copy() const { return List(std::make_shared<ivalue::ListBody>(*body_)); }
  std::vector<T> vec() const { return IValue(body_).template to<std::vector<T>>(); }
  bool is(const List& other) const { return body_ == other.body_; }
  iterator begin() const { return iterator(body_->items.begin()); }
  iterator end() const { return iterator(body_->items.end()); }
  friend bool operator==(const List& a, const List& b) { return a.body_->items == b.body_->items; }
  const std::shared_ptr<ivalue::ListBody>& body() const { return body_; }

 private:
  IValue& at(size_t i) const {
    RL_CHECK_INDEX(i < size(), "list index ", i, " out of range of ", size());
    return body_->items[i];
  }
  std::shared_ptr<ivalue::ListBody> body_;
};

namespace detail {
template <class K, class V>
class DictEntry {
 public:
  explicit DictEntry(ivalue::DictItem& item) : item_(&item) {}
  K key() const { return item_->first.template to<K>(); }
  V value() const { return item_->second.template to<V>(); }
  template <class T>
  void setValue(T&& value) const {
    item_->second = IValue(V(std::forward<T>(value)));
  }
  const DictEntry* operator->() const { return this; }

 private:
  ivalue::DictItem* item_;
};
template <class K, class V>
class DictIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = DictEntry<K, V>;
  using difference_type = std::ptrdiff_t;
  using pointer = DictEntry<K, V>;
  using reference = DictEntry<K, V>;
  DictIterator() = default;
  explicit DictIterator(ivalue::DictItem* at) : at_(at) {}
  DictEntry<K, V> operator*() const { return DictEntry<K, V>(*at_); }
  DictEntry<K, V> operator->() const { return DictEntry<K, V>(*at_); }
  DictIterator& operator++() {
    ++at_;
    return *this;
  }
  DictIterator operator++(int) { return DictIterator(at_++); }
  friend bool operator==(const DictIterator&, const DictIterator&) = default;

 private:
  ivalue::DictItem* at_ = nullptr;
};
}  // namespace detail

// c10::Dict: a dict that IValues share, in order of insertion.
template <class Key, class Value>
class Dict {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using iterator = detail::DictIterator<Key, Value>;
  Dict() : body_(std::make_shared<ivalue::DictBody>()) {}
  explicit Dict(std::shared_ptr<ivalue::DictBody> body) : body_(std::move(body)) {}

  size_t size() const { return body_->items.size(); }
  bool empty() const { return body_->items.empty(); }
  bool contains(const Key& key) const { return body_->find(IValue(key)); }
  Value at(const Key& key) const {
    const ivalue::DictItem* found = body_->find(IValue(key));
    RL_CHECK_INDEX(found, "Argument passed to at() was not in the map.");
    return found->second.template to<Value>();
  }
  iterator find(const Key& key) const {
    ivalue::DictItem* found = body_->find(IValue(key));
    return found ? iterator(found) : end();
  }
  std::pair<iterator, bool> insert(const Key& key, const Value& value) const {
    const bool fresh = !contains(key);
    if (fresh) body_->put(IValue(key), IValue(value));
    return {find(key), fresh};
  }
  std::pair<iterator, bool> insert_or_assign(const Key& key, const Value& value) const {
    const bool fresh = !contains(key);
    body_->put(IValue(key), IValue(value));
    return {find(key), fresh};
  }
  size_t erase(const Key& key) const { return body_->erase(IValue(key)); }
  void clear() const { body_->clear(); }
  Dict copy() const { return Dict(std::make_shared<ivalue::DictBody>(*body_)); }
  bool is(const Dict& other) const { return body_ == other.body_; }
  iterator begin() const { return iterator(body_->items.data()); }
  iterator end() const { return iterator(body_->items.data() + size()); }
  const std::shared_ptr<ivalue::DictBody>& body() const { return body_; }

 private:
  std::shared_ptr<ivalue::DictBody> body_;
};

namespace impl {
using GenericList = List<IValue>;
using GenericDict = Dict<IValue, IValue>;
}  // namespace impl

}  // namespace rushlight
