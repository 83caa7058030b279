// Tensors: how they are made, operators as functions and methods, indexing, printing.
#pragma once
#include "core/tensor.h"
#include "dispatch/value.h"
#include "ops/arithmetic.h"
#include "rushlight/accessor.h"
#include "rushlight/index.h"
#include "rushlight/printed/functions.h"
#include "rushlight/printed/nn_functional.h"
#include "rushlight/warning.h"

namespace rushlight {

using TensorBase = Tensor;
using TensorRef = Tensor;
using Variable = Tensor;

// x.storage(): the block of bytes that x and its views look into.
class TensorStorage {
 public:
  struct Pointer {
    void* get() const { return data; }
    explicit operator bool() const { return data != nullptr; }
    void* data;
  };
  explicit TensorStorage(rushlight::Storage storage) : storage_(std::move(storage)) {}
  explicit operator bool() const { return static_cast<bool>(storage_); }
  const void* data() const { return storage_ ? storage_->data() : nullptr; }
  void* mutable_data() const { return storage_ ? storage_->data() : nullptr; }
  Pointer data_ptr() const { return {mutable_data()}; }
  size_t nbytes() const { return storage_ ? storage_->nbytes() : 0; }
  Device device() const { return storage_ ? storage_->device() : Device(); }
  bool is_alias_of(const TensorStorage& other) const { return storage_ == other.storage_; }
  size_t use_count() const { return storage_ ? storage_->use_count() - 1 : 0; }  // but for this object
  StorageImpl* unsafeGetStorageImpl() const { return storage_.get(); }

 private:
  rushlight::Storage storage_;
};
inline TensorStorage Tensor::storage() const { return TensorStorage(impl_->storage); }

namespace detail {

// Before main of a program that includes this, when the library's own variables are there already. Not in the
// library itself, whose variables come to life in any order.
void fill_operator_table();
#ifndef RUSHLIGHT_FRONTEND
inline const bool operators_loaded = (fill_operator_table(), true);
#endif

// What torch::tensor makes of numbers of type t: int64 of int and of longer or unsigned integers, the default
// dtype of float and double, all others as they are.
ScalarType wanted_dtype(ScalarType t);

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
                 std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;
// The type's dtype; of the types that are none, that of the same size (`long long` is int64).
template <Number T>
constexpr ScalarType dtype_of_number() {
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (std::is_same_v<T, bool>)
    return kBool;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
    return is_signed ? kLong : kUInt64;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
    return is_signed ? kInt : kUInt32;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
    return is_signed ? kShort : kUInt16;
  else if constexpr (std::is_integral_v<T>)
    return is_signed ? kChar : kByte;
  else if constexpr (std::is_same_v<T, long double>)
    return kDouble;
  else
    return dtype_of<T>;
}

// The argument of torch::tensor: a number, a list of numbers in memory, or braces around more of these.
class TensorData {
 public:
  TensorData(std::initializer_list<TensorData> list);
  template <Number T>
  TensorData(T number) : kind_(Kind::Scalar), scalar_(as_scalar(number)), dtype_(dtype_of_number<T>()) {}
  template <class T>
  TensorData(const std::vector<T>& list) : TensorData(list.begin(), list.end()) {}
  template <class T>
  TensorData(const ArrayRef<T>& list) : TensorData(list.begin(), list.end()) {}
  TensorData(IntArrayRef list) : TensorData(list.begin(), list.end()) {}
  template <class T, size_t N>
  TensorData(const std::array<T, N>& list) : TensorData(list.begin(), list.end()) {}

  Tensor make(const TensorOptions& options) const;
  bool is_scalar() const { return kind_ == Kind::Scalar; }
  bool is_init_list() const { return kind_ == Kind::List; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  ScalarType scalar_type() const { return dtype_; }
  const Scalar& scalar() const;
  const std::vector<TensorData>& init_list() const;
  const Tensor& tensor() const;
  friend std::ostream& operator<<(std::ostream& out, const TensorData& data);

 private:
  enum class Kind : uint8_t { Scalar, List, Tensor };
  template <class It>
  TensorData(It first, It last) {
    using T = std::iter_value_t<It>;
    if constexpr (Number<T>) {
      kind_ = Kind::Tensor;
      dtype_ = dtype_of_number<T>();
      sizes_ = {static_cast<int64_t>(last - first)};
      tensor_ = empty_tensor(sizes_, dtype_);
      std::copy(first, last, static_cast<Stored<T>*>(tensor_.data_ptr()));
    } else {
      kind_ = Kind::List;
      for (; first != last; ++first) items_.emplace_back(static_cast<T>(*first));
      take_items();
    }
  }
  template <class T>
  using Stored = std::conditional_t<std::is_same_v<T, long double>, double, T>;
  template <class T>
  static Scalar as_scalar(T number) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return static_cast<float>(number);
    else if constexpr (std::is_same_v<T, long double>)
      return static_cast<double>(number);
    else
      return number;
  }
  void take_items();
  Kind kind_ = Kind::Scalar;
  Scalar scalar_;
  std::vector<TensorData> items_;
  Tensor tensor_;
  std::vector<int64_t> sizes_;
  ScalarType dtype_ = DType::Float32;
};
using TensorDataContainer = TensorData;

}  // namespace detail

// torch::tensor({{1, 2}, {3, 4}}), torch::tensor(0.5), torch::tensor(vector, torch::kFloat64)
Tensor tensor(detail::TensorData data, const TensorOptions& options = {});
// A tensor on memory of the caller's, who keeps it alive, or whose deleter is called with the pointer.
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                 const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                 const std::function<void(void*)>& deleter, const TensorOptions& options = {});

// As PyTorch's C++ library prints: numbers in columns, then [ CPUFloatType{2,3} ].
std::ostream& operator<<(std::ostream& out, const Tensor& t);
std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_size = 80);
void print(const Tensor& t, int64_t line_size = 80);
std::ostream& operator<<(std::ostream& out, TensorList list);

// Functions whose Python form is written in Python.
inline std::vector<Tensor> meshgrid(TensorList tensors) { return meshgrid(tensors, "ij"); }
std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted = true,
                                            bool return_inverse = false, bool return_counts = false);
Tensor where(const Tensor& condition);
// A dimension, where a lone number would be taken for `unbiased`.
#define RL_ONE_DIMENSION(Result, name)                                                         \
  inline Result name(const Tensor& self, int64_t dim) { return name(self, IntArrayRef(dim)); } \
  inline Result name(const Tensor& self, int dim) { return name(self, static_cast<int64_t>(dim)); }
using TwoTensors = std::tuple<Tensor, Tensor>;
RL_ONE_DIMENSION(Tensor, var)
RL_ONE_DIMENSION(Tensor, std)
RL_ONE_DIMENSION(TwoTensors, var_mean)
RL_ONE_DIMENSION(TwoTensors, std_mean)
#undef RL_ONE_DIMENSION
inline bool is_tensor(const Tensor&) { return true; }
inline bool is_floating_point(const Tensor& t) { return t.is_floating_point(); }
inline bool is_complex(const Tensor& t) { return t.is_complex(); }
inline bool is_nonzero(const Tensor& t) { return t.item<bool>(); }
inline int64_t numel(const Tensor& t) { return t.numel(); }

// Under the names without nn::functional too.
using nn::functional::avg_pool2d;
using nn::functional::avg_pool3d;
using nn::functional::col2im;
using nn::functional::conv1d;
using nn::functional::conv2d;
using nn::functional::conv3d;
using nn::functional::conv_transpose1d;
using nn::functional::conv_transpose2d;
using nn::functional::conv_transpose3d;
using nn::functional::im2col;
using nn::functional::linear;
using nn::functional::linear_out;
using nn::functional::one_hot;
using nn::functional::relu6;
Tensor adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size);
Tensor adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size);
Tensor upsample_nearest2d(const Tensor& self, IntArrayRef output_size);
inline Tensor nll_loss(const Tensor& self, const Tensor& target,
                       const std::optional<Tensor>& weight = std::nullopt,
                       int64_t reduction = reduction::Mean, int64_t ignore_index = -100) {
  return nll_loss_nd(self, target, weight, reduction, ignore_index);
}

// Random numbers: as in Python, value for value.
void manual_seed(uint64_t seed);
uint64_t initial_seed();
Tensor get_rng_state();
void set_rng_state(const Tensor& state);

// Threads of one operation.
void set_num_threads(int n);
int get_num_threads();
// Operations do not run beside each other here: kept for programs that set it, whatever it is.
inline void set_num_interop_threads(int) {}
inline int get_num_interop_threads() { return 1; }
inline void init_num_threads() {}

inline void set_default_dtype_(ScalarType t) { set_default_dtype(t); }

namespace cuda {
bool is_available();
size_t device_count();
void manual_seed(uint64_t seed);
void manual_seed_all(uint64_t seed);
void synchronize(int64_t device = -1);
}  // namespace cuda
inline bool hasCUDA() { return cuda::is_available(); }

}  // namespace rushlight
