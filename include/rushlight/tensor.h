// Tensors: how they are made, operators as functions and methods, indexing, printing.
#pragma once
#include "core/tensor.h"
#include "dispatch/value.h"
#include "ops/arithmetic.h"
#include "rushlight/accessor.h"
#include "rushlight/index.h"
#include "rushlight/printed/functions.h"
#include "rushlight/printed/nn_functional.h"

namespace rushlight {

using TensorRef = Tensor;
using Variable = Tensor;

namespace detail {

// Before main of a program that includes this, when the library's own variables are there already. Not in the
// library itself, whose variables come to life in any order.
void fill_operator_table();
#ifndef RUSHLIGHT_FRONTEND
inline const bool operators_loaded = (fill_operator_table(), true);
#endif

// The argument of torch::tensor: a number, or nested lists of them.
class TensorData {
 public:
  TensorData(std::initializer_list<TensorData> list);
  template <class T>
    requires std::is_arithmetic_v<T>
  TensorData(T number) : scalar_(number), dtype_(dtype_of_number<T>()) {}
  TensorData(Half number) : scalar_(static_cast<float>(number)), dtype_(get_default_dtype()) {}
  TensorData(BFloat16 number) : scalar_(static_cast<float>(number)), dtype_(get_default_dtype()) {}
  TensorData(complex64 number) : scalar_(number), dtype_(complex_dtype(get_default_dtype())) {}
  TensorData(complex128 number) : scalar_(number), dtype_(complex_dtype(get_default_dtype())) {}
  template <class T>
  TensorData(const std::vector<T>& list) : TensorData(list.begin(), list.end()) {}
  template <class T>
  TensorData(const ArrayRef<T>& list) : TensorData(list.begin(), list.end()) {}
  TensorData(IntArrayRef list) : TensorData(list.begin(), list.end()) {}
  template <class T, size_t N>
  TensorData(const std::array<T, N>& list) : TensorData(list.begin(), list.end()) {}

  Tensor make(const TensorOptions& options) const;
  const std::vector<int64_t>& sizes() const { return sizes_; }
  const Scalar& scalar() const { return scalar_; }
  const std::vector<TensorData>& items() const { return items_; }

 private:
  template <class It>
  TensorData(It first, It last) : is_list_(true), dtype_(get_default_dtype()) {
    for (; first != last; ++first) items_.emplace_back(static_cast<std::iter_value_t<It>>(*first));
    take_items();
  }
  template <class T>
  static ScalarType dtype_of_number() {
    if constexpr (std::is_same_v<T, bool>) return kBool;
    return std::is_integral_v<T> ? kLong : get_default_dtype();
  }
  void take_items();
  Scalar scalar_;
  std::vector<TensorData> items_;
  std::vector<int64_t> sizes_;
  bool is_list_ = false;
  ScalarType dtype_ = DType::Float32;
};

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
Tensor einsum(std::string_view equation, TensorList operands);
inline std::vector<Tensor> meshgrid(TensorList tensors) { return meshgrid(tensors, "ij"); }
Tensor tensordot(const Tensor& a, const Tensor& b, IntArrayRef dims_a, IntArrayRef dims_b);
Tensor chain_matmul(TensorList matrices);
Tensor hann_window(int64_t length, bool periodic = true, TensorOptions options = {});
Tensor hamming_window(int64_t length, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                      TensorOptions options = {});
std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted = true,
                                            bool return_inverse = false, bool return_counts = false);
Tensor where(const Tensor& condition);
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
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1, double eps = 1e-8);
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target,
                          const std::optional<Tensor>& weight = std::nullopt,
                          int64_t reduction = reduction::Mean, int64_t ignore_index = -100,
                          double label_smoothing = 0.0);
Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction = reduction::Mean);
Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = reduction::Mean);
Tensor nll_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt,
                int64_t reduction = reduction::Mean, int64_t ignore_index = -100);
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target,
                            const std::optional<Tensor>& weight = std::nullopt,
                            int64_t reduction = reduction::Mean);
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const std::optional<Tensor>& weight = std::nullopt,
                                        const std::optional<Tensor>& pos_weight = std::nullopt,
                                        int64_t reduction = reduction::Mean);

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

// Shows a warning: in Python through the module `warnings`, else on the standard error stream.
void warn(const std::string& message);

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
