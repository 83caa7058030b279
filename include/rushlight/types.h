// The small types that the declarations of the C++ front end are made of, under PyTorch's names.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/device.h"
#include "core/dims.h"
#include "core/dtype.h"
#include "core/scalar.h"

namespace rushlight {

class Generator;
class Tensor;
class TensorIndex;
class TensorList;
class TensorStorage;
template <class T, size_t N>
class TensorAccessor;
namespace autograd {
class Node;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // lists borrow, for the length of a call
// A borrowed list. Lists of sizes are IntArrayRef.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using const_iterator = const T*;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t n) : data_(data), size_(n) {}
  constexpr ArrayRef(std::initializer_list<T> list) : data_(list.begin()), size_(list.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& a) : data_(a.data()), size_(N) {}
  template <class A>
  ArrayRef(const std::vector<T, A>& v) : data_(v.data()), size_(v.size()) {}
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr const T& at(size_t i) const {
    RL_CHECK_INDEX(i < size_, "ArrayRef: invalid index Index = ", i, "; Length = ", size_);
    return data_[i];
  }
  bool equals(ArrayRef other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  ArrayRef slice(size_t from, size_t n) const { return {data_ + from, n}; }
  ArrayRef slice(size_t from) const { return {data_ + from, size_ - from}; }
  std::vector<T> vec() const { return {begin(), end()}; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = IntList;
template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> list) {
  out << "[";
  for (size_t i = 0; i < list.size(); ++i) out << (i ? ", " : "") << list[i];
  return out << "]";
}

// int[]?: nothing, one number, or a list. Holds no copy.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  OptionalIntArrayRef(const int64_t& one) : list_(IntList(&one, 1)) {}
  OptionalIntArrayRef(IntArrayRef list) : list_(list) {}
  OptionalIntArrayRef(std::initializer_list<int64_t> list) : list_(IntList(list.begin(), list.size())) {}
  OptionalIntArrayRef(const std::vector<int64_t>& list) : list_(list) {}
  template <size_t N>
  OptionalIntArrayRef(const std::array<int64_t, N>& list) : list_(list) {}
  OptionalIntArrayRef(const std::optional<IntArrayRef>& list) : list_(list) {}
  bool has_value() const { return list_.has_value(); }
  IntArrayRef value() const { return list_.value(); }
  const std::optional<IntArrayRef>& list() const { return list_; }

 private:
  std::optional<IntArrayRef> list_;
};

#pragma GCC diagnostic pop

using ScalarType = DType;
using Dtype = DType;

constexpr ScalarType kBool = DType::Bool, kUInt8 = DType::UInt8, kByte = DType::UInt8, kInt8 = DType::Int8,
                     kChar = DType::Int8, kInt16 = DType::Int16, kShort = DType::Int16, kInt32 = DType::Int32,
                     kInt = DType::Int32, kInt64 = DType::Int64, kLong = DType::Int64,
                     kUInt16 = DType::UInt16, kUInt32 = DType::UInt32, kUInt64 = DType::UInt64,
                     kFloat16 = DType::Float16, kHalf = DType::Float16, kBFloat16 = DType::BFloat16,
                     kFloat32 = DType::Float32, kFloat = DType::Float32, kFloat64 = DType::Float64,
                     kDouble = DType::Float64, kComplexHalf = DType::Complex32, kComplex32 = DType::Complex32,
                     kComplexFloat = DType::Complex64, kComplex64 = DType::Complex64,
                     kComplexDouble = DType::Complex128, kComplex128 = DType::Complex128;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kMeta = DeviceType::Meta;
constexpr Layout kStrided = Layout::Strided, kSparse = Layout::SparseCoo, kSparseCsr = Layout::SparseCsr;

template <class T>
struct CppTypeToScalarType : dtype_of_t<T> {};
inline bool isFloatingType(ScalarType t) { return is_floating(t); }
inline bool isIntegralType(ScalarType t, bool include_bool) {
  return is_integral(t) || (include_bool && is_bool(t));
}
inline bool isComplexType(ScalarType t) { return is_complex(t); }
inline size_t elementSize(ScalarType t) { return element_size(t); }
const char* toString(ScalarType t);  // "Float"
std::ostream& operator<<(std::ostream& out, ScalarType t);
std::ostream& operator<<(std::ostream& out, DeviceType t);
std::ostream& operator<<(std::ostream& out, const Device& device);
std::ostream& operator<<(std::ostream& out, const Scalar& s);

// A type's name as programs write it.
std::string demangle(const char* name);

namespace reduction {
enum Number { None, Mean, Sum, END };
}

// How a new tensor shall be: torch::dtype(torch::kFloat32).device(torch::kCPU).requires_grad(true). What is
// not said follows the defaults of the function it is given to.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  TensorOptions(const Device& device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(Device(device)) {}
  TensorOptions(const std::string& device) : device_(Device(device)) {}
  TensorOptions(const char* device) : device_(Device(device)) {}
  TensorOptions(Layout layout) : layout_(layout) {}
  TensorOptions(MemoryFormat format) : memory_format_(format) {}

  TensorOptions dtype(std::optional<ScalarType> t) const { return with(&TensorOptions::dtype_, t); }
  TensorOptions device(std::optional<Device> d) const { return with(&TensorOptions::device_, d); }
  TensorOptions device(DeviceType type, int index = -1) const { return device(Device(type, index)); }
  TensorOptions device_index(int index) const { return device(Device(kCUDA, index)); }
  TensorOptions layout(std::optional<Layout> l) const { return with(&TensorOptions::layout_, l); }
  TensorOptions requires_grad(std::optional<bool> on) const {
    return with(&TensorOptions::requires_grad_, on);
  }
  TensorOptions pinned_memory(std::optional<bool> on) const { return with(&TensorOptions::pinned_, on); }
  TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    return with(&TensorOptions::memory_format_, f);
  }
  template <class T>
  TensorOptions dtype() const {
    return dtype(dtype_of<T>);
  }

  ScalarType dtype() const { return dtype_.value_or(get_default_dtype()); }
  Device device() const { return device_.value_or(Device()); }
  int32_t device_index() const { return device().index(); }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_.value_or(false); }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool has_layout() const { return layout_.has_value(); }
  bool has_requires_grad() const { return requires_grad_.has_value(); }
  const std::optional<ScalarType>& dtype_opt() const { return dtype_; }
  const std::optional<Device>& device_opt() const { return device_; }
  const std::optional<Layout>& layout_opt() const { return layout_; }
  const std::optional<bool>& pin_memory_opt() const { return pinned_; }
  const std::optional<bool>& requires_grad_opt() const { return requires_grad_; }
  const std::optional<MemoryFormat>& memory_format_opt() const { return memory_format_; }

 private:
  template <class T>
  TensorOptions with(std::optional<T> TensorOptions::* member, const std::optional<T>& value) const {
    TensorOptions changed = *this;
    changed.*member = value;
    return changed;
  }
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<bool> requires_grad_, pinned_;
  std::optional<MemoryFormat> memory_format_;
};
std::ostream& operator<<(std::ostream& out, const TensorOptions& options);

inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
template <class T>
TensorOptions dtype() {
  return TensorOptions(dtype_of<T>);
}
inline TensorOptions device(const Device& d) { return TensorOptions(d); }
inline TensorOptions device(DeviceType d) { return TensorOptions(d); }
inline TensorOptions device_index(int index) { return TensorOptions().device_index(index); }
inline TensorOptions layout(Layout l) { return TensorOptions(l); }
inline TensorOptions memory_format(MemoryFormat f) { return TensorOptions(f); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }

}  // namespace rushlight
