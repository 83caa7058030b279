// Value: one boxed operator argument, borrowed for the length of a call. OwnedValue: the same, kept.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace rushlight {

class Generator;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
// A borrowed list of tensors. The elements may be undefined (index lists, optional tensors).
class TensorList {
 public:
  TensorList() = default;
  TensorList(const Tensor* data, size_t n) : data_(data), size_(n) {}
  TensorList(const std::vector<Tensor>& v) : data_(v.data()), size_(v.size()) {}
  TensorList(std::initializer_list<Tensor> l) : data_(l.begin()), size_(l.size()) {}
  template <size_t N>
  TensorList(const std::array<Tensor, N>& a) : data_(a.data()), size_(N) {}
  std::vector<Tensor> vec() const { return {begin(), end()}; }
  const Tensor& front() const { return data_[0]; }
  const Tensor& back() const { return data_[size_ - 1]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Tensor* data() const { return data_; }
  const Tensor* begin() const { return data_; }
  const Tensor* end() const { return data_ + size_; }
  const Tensor& operator[](size_t i) const { return data_[i]; }

 private:
  const Tensor* data_ = nullptr;
  size_t size_ = 0;
};
#pragma GCC diagnostic pop

using FloatList = std::span<const double>;
using ScalarList = std::span<const Scalar>;  // numbers of mixed kinds: factors of a list of tensors
using OptInt = std::optional<int64_t>;
using OptIntList = std::optional<IntList>;
using OptDType = std::optional<DType>;
using OptScalar = std::optional<Scalar>;
using OptDevice = std::optional<Device>;
using OptGenerator = Generator*;  // null: the default generator of the device

enum class Tag : uint8_t {
  None,
  Tensor,
  TensorList,
  Scalar,
  Int,
  Float,
  Bool,
  IntList,
  FloatList,
  BoolList,
  String,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  ScalarList
};

class Value {
 public:
  Value() : Value(Tag::None, 0) {}
  Value(const Tensor& t) : tag_(Tag::Tensor), tensor_(t.impl()) {}
  Value(TensorImpl* t) : tag_(Tag::Tensor), tensor_(t) {}
  Value(TensorList l) : tag_(Tag::TensorList), size_(static_cast<uint32_t>(l.size())), pointer_(l.data()) {}
  Value(const Scalar& s) : tag_(Tag::Scalar), scalar_(s) {}
  Value(int64_t i) : tag_(Tag::Int), int_(i) {}
  Value(double d) : tag_(Tag::Float), float_(d) {}
  Value(bool b) : tag_(Tag::Bool), int_(b) {}
  Value(IntList l) : tag_(Tag::IntList), size_(static_cast<uint32_t>(l.size())), pointer_(l.data()) {}
  Value(FloatList l) : tag_(Tag::FloatList), size_(static_cast<uint32_t>(l.size())), pointer_(l.data()) {}
  Value(ScalarList l) : tag_(Tag::ScalarList), size_(static_cast<uint32_t>(l.size())), pointer_(l.data()) {}
  Value(std::span<const bool> l)
      : tag_(Tag::BoolList), size_(static_cast<uint32_t>(l.size())), pointer_(l.data()) {}
  Value(std::string_view s) : tag_(Tag::String), size_(static_cast<uint32_t>(s.size())), pointer_(s.data()) {}
  Value(DType t) : Value(Tag::DType, static_cast<int64_t>(t)) {}
  Value(Device d) : tag_(Tag::Device), device_(d) {}
  Value(Layout l) : Value(Tag::Layout, static_cast<int64_t>(l)) {}
  Value(MemoryFormat f) : Value(Tag::MemoryFormat, static_cast<int64_t>(f)) {}
  Value(Generator* g) : tag_(g ? Tag::Generator : Tag::None), pointer_(g) {}
  template <class T>
  Value(const std::optional<T>& o) : Value(o ? Value(*o) : Value()) {}

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::None || (tag_ == Tag::Tensor && tensor_ == nullptr); }

  // None reads as an undefined tensor.
  const Tensor& tensor() const {
    return reinterpret_cast<const Tensor&>(tag_ == Tag::Tensor ? tensor_ : null_impl);
  }
  TensorList tensors() const { return {static_cast<const Tensor*>(pointer_), size_}; }
  Scalar scalar() const;  // Scalar, Int, Float and Bool read as a Scalar
  int64_t integer() const { return int_; }
  double floating() const {
    return tag_ == Tag::Int || tag_ == Tag::Bool ? static_cast<double>(int_)
           : tag_ == Tag::Scalar                 ? scalar_.to_double()
                                                 : float_;
  }
  bool boolean() const { return int_ != 0; }
  IntList ints() const { return {static_cast<const int64_t*>(pointer_), size_}; }
  FloatList floats() const { return {static_cast<const double*>(pointer_), size_}; }
  ScalarList scalars() const { return {static_cast<const Scalar*>(pointer_), size_}; }
  std::span<const bool> bools() const { return {static_cast<const bool*>(pointer_), size_}; }
  std::string_view string() const { return {static_cast<const char*>(pointer_), size_}; }
  DType dtype() const { return static_cast<DType>(int_); }
  Device device() const { return device_; }
  Layout layout() const { return static_cast<Layout>(int_); }
  MemoryFormat memory_format() const { return static_cast<MemoryFormat>(int_); }
  Generator* generator() const {
    return tag_ == Tag::Generator ? static_cast<Generator*>(const_cast<void*>(pointer_)) : nullptr;
  }

  // Reads the value as a kernel parameter of type T (const Tensor&, IntList, OptIntList, double, ...).
  template <class T>
  decltype(auto) as() const;

 private:
  Value(Tag tag, int64_t i) : tag_(tag), int_(i) {}
  static inline TensorImpl* null_impl = nullptr;
  Tag tag_;
  uint32_t size_ = 0;
  union {
    TensorImpl* tensor_;
    const void* pointer_;
    int64_t int_;
    double float_;
    Device device_;
    Scalar scalar_;
  };
};

// A Value that owns its contents: attributes and saved lists of a recorded operation.
class OwnedValue {
 public:
  OwnedValue() = default;
  explicit OwnedValue(const Value& borrowed);
  Value get() const;

 private:
  Value plain_;
  std::vector<Tensor> tensors_;   // TensorList, or the one Tensor
  std::vector<std::byte> bytes_;  // lists of numbers and strings
};

template <class T>
struct Unbox;
#define RL_UNBOX(type, expression)                                   \
  template <>                                                        \
  struct Unbox<type> {                                               \
    static decltype(auto) get(const Value& v) { return expression; } \
  };
RL_UNBOX(Tensor, v.tensor())
RL_UNBOX(TensorList, v.tensors())
RL_UNBOX(Scalar, v.scalar())
RL_UNBOX(int64_t, v.integer())
RL_UNBOX(double, v.floating())
RL_UNBOX(bool, v.boolean())
RL_UNBOX(IntList, v.ints())
RL_UNBOX(FloatList, v.floats())
RL_UNBOX(ScalarList, v.scalars())
RL_UNBOX(std::string_view, v.string())
RL_UNBOX(DType, v.dtype())
RL_UNBOX(Device, v.device())
RL_UNBOX(Layout, v.layout())
RL_UNBOX(MemoryFormat, v.memory_format())
RL_UNBOX(Generator*, v.generator())
#undef RL_UNBOX
template <>
struct Unbox<std::span<const bool>> {
  static std::span<const bool> get(const Value& v) { return v.bools(); }
};
template <class T>
struct Unbox<std::optional<T>> {
  static std::optional<T> get(const Value& v) {
    return v.is_none() ? std::nullopt : std::optional<T>(Unbox<T>::get(v));
  }
};
template <class T>
decltype(auto) Value::as() const {
  return Unbox<std::remove_cvref_t<T>>::get(*this);
}

}  // namespace rushlight
