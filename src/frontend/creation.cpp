// torch::tensor, from_blob, random state, and functions whose Python form is written in Python.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>

#include "core/device_backend.h"
#include "core/generator.h"
#include "core/parallel.h"
#include "frontend/call.h"
#include "rushlight/autograd.h"

namespace rushlight {

using frontend::call;
using frontend::find_operator;

// --- torch::tensor
namespace detail {

ScalarType wanted_dtype(ScalarType t) {
  if (t == kInt || t == kLong || t == kUInt16 || t == kUInt32 || t == kUInt64) return kLong;
  return t == kFloat || t == kDouble ? get_default_dtype() : t;
}

TensorData::TensorData(std::initializer_list<TensorData> list)
    : kind_(Kind::List), items_(list), dtype_(get_default_dtype()) {
  take_items();
}

// "2", "2, 3"
static std::string listed(const std::vector<int64_t>& sizes) {
  const std::string text = to_string(IntList(sizes));
  return text.substr(1, text.size() - 2);
}
static std::string text_of(const TensorData& data) {
  std::ostringstream out;
  out << data;
  return out.str();
}
void TensorData::take_items() {
  sizes_ = {static_cast<int64_t>(items_.size())};
  if (items_.empty()) return;
  const TensorData& first = items_[0];
  dtype_ = first.dtype_;
  for (const TensorData& item : items_) {
    RL_CHECK(item.sizes_ == first.sizes_, "Expected all sub-lists to have sizes: ", listed(first.sizes_),
             " (e.g. ", text_of(first), "), but got sub-list ", text_of(item),
             " with sizes: ", listed(item.sizes_));
    RL_CHECK(wanted_dtype(item.dtype_) == wanted_dtype(dtype_),
             "Expected all elements of the tensor to have the same scalar type: ", legacy_name(dtype_),
             ", but got element of scalar type: ", legacy_name(item.dtype_));
  }
  sizes_.insert(sizes_.end(), first.sizes_.begin(), first.sizes_.end());
}

const Scalar& TensorData::scalar() const {
  RL_CHECK(is_scalar(), "Can only call `scalar()` on a TensorDataContainer that has `is_scalar() == true`");
  return scalar_;
}
const std::vector<TensorData>& TensorData::init_list() const {
  RL_CHECK(is_init_list(),
           "Can only call `init_list()` on a TensorDataContainer that has `is_init_list() == true`");
  return items_;
}
const Tensor& TensorData::tensor() const {
  RL_CHECK(is_tensor(), "Can only call `tensor()` on a TensorDataContainer that has `is_tensor() == true`");
  return tensor_;
}

std::ostream& operator<<(std::ostream& out, const TensorData& data) {
  if (data.is_scalar()) return out << data.scalar_;
  const char* separator = "";
  out << "{";
  if (data.is_init_list())
    for (const TensorData& item : data.items_) out << std::exchange(separator, ", ") << item;
  else
    for (int64_t i = 0; i < data.tensor_.numel(); ++i)
      out << std::exchange(separator, ", ") << read_scalar(data.tensor_, i);
  return out << "}";
}

namespace {

template <class T>
T number_as(const Scalar& value) {
  value.check_fits(dtype_of<T>);
  return value.to<T>();
}

template <class T>
void fill(const TensorData& data, T*& to) {
  if (data.is_scalar()) {
    *to++ = number_as<T>(data.scalar());
  } else if (data.is_init_list()) {
    for (const TensorData& item : data.init_list()) fill(item, to);
  } else {
    if (data.tensor().is_complex())
      for (int64_t i = 0; i < data.tensor().numel(); ++i) number_as<T>(read_scalar(data.tensor(), i));
    const Tensor converted = data.tensor().to(dtype_of<T>);
    to = std::copy_n(static_cast<const T*>(converted.data_ptr()), converted.numel(), to);
  }
}

}  // namespace

Tensor TensorData::make(const TensorOptions& options) const {
  const Tensor t = empty_tensor(sizes_, options.has_dtype() ? options.dtype() : wanted_dtype(dtype_));
  visit_dtype(AllTypes{}, t.dtype(), "tensor", [&](auto tag) {
    auto* to = t.data<decltype(tag)>();
    if (t.numel()) fill(*this, to);
  });
  return frontend::made(options.has_device() ? t.to(options.device()) : t, options);
}

}  // namespace detail

Tensor tensor(detail::TensorData data, const TensorOptions& options) { return data.make(options); }

// --- memory of the caller's
namespace {

using BlobDeleter = std::function<void(void*)>;

Tensor on_memory(void* data, IntArrayRef sizes, IntArrayRef strides, const BlobDeleter& deleter,
                 const TensorOptions& options) {
  RL_CHECK(sizes.size() == strides.size(), "from_blob: sizes ", to_string(sizes), " and strides ",
           to_string(strides), " differ in length");
  int64_t last = 0;
  const bool none = checked_numel(sizes) == 0;
  for (size_t i = 0; i < sizes.size() && !none; ++i) {
    RL_CHECK(strides[i] >= 0, "from_blob: strides must not be negative, but got ", to_string(strides));
    last += (sizes[i] - 1) * strides[i];
  }
  const size_t bytes = none ? 0 : static_cast<size_t>(last + 1) * element_size(options.dtype());
  auto* const owner = deleter ? new BlobDeleter(deleter) : nullptr;
  Storage storage = StorageImpl::wrap(
      data, bytes, options.device(),
      [](void* context, void* memory, size_t) {
        std::unique_ptr<BlobDeleter> owned(static_cast<BlobDeleter*>(context));
        if (owned) (*owned)(memory);
      },
      owner);
  Ref<TensorImpl> impl =
      Ref<TensorImpl>::adopt(new TensorImpl(std::move(storage), 0, options.dtype(), options.device()));
  impl->set_layout(sizes, strides);
  return frontend::made(Tensor(std::move(impl)), options);
}

}  // namespace

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const BlobDeleter& deleter,
                 const TensorOptions& options) {
  return on_memory(data, sizes, strides, deleter, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, const BlobDeleter& deleter, const TensorOptions& options) {
  return on_memory(data, sizes, contiguous_strides(sizes), deleter, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return on_memory(data, sizes, strides, {}, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return on_memory(data, sizes, contiguous_strides(sizes), {}, options);
}

// --- functions
std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted, bool return_inverse,
                                            bool return_counts) {
  static const Op& op = find_operator("_unique2");
  const Value boxed[] = {Value(self), Value(sorted), Value(return_inverse), Value(return_counts)};
  return call<std::tuple<Tensor, Tensor, Tensor>>(op, boxed);
}
Tensor where(const Tensor& condition) { return condition.nonzero(); }

Tensor adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  static const Op& op = find_operator("nn::_adaptive_avg_pool2d");
  const frontend::ListOf list(output_size, 2);
  const Value boxed[] = {Value(self), list.value()};
  return call<Tensor>(op, boxed);
}
Tensor adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  static const Op& op = find_operator("nn::_adaptive_avg_pool3d");
  const frontend::ListOf list(output_size, 3);
  const Value boxed[] = {Value(self), list.value()};
  return call<Tensor>(op, boxed);
}
Tensor upsample_nearest2d(const Tensor& self, IntArrayRef output_size) {
  return nn::functional::upsample_nearest2d(self, output_size, std::optional<double>());
}

// --- random numbers, threads, devices
void manual_seed(uint64_t seed) {
  default_generator().manual_seed(seed);
  seed_device_generators(seed);
}
uint64_t initial_seed() { return default_generator().initial_seed(); }
Tensor get_rng_state() {
  const Tensor state = empty_tensor({static_cast<int64_t>(Generator::kStateBytes)}, DType::UInt8);
  default_generator().get_state(
      std::span<std::byte, Generator::kStateBytes>(state.data<std::byte>(), Generator::kStateBytes));
  return state;
}
void set_rng_state(const Tensor& state) {
  RL_CHECK(state.dtype() == DType::UInt8 && state.is_contiguous(), "RNG state must be a torch.ByteTensor");
  default_generator().set_state({state.data<std::byte>(), static_cast<size_t>(state.numel())});
}

namespace cuda {
size_t device_count() {
  DeviceBackend* const backend = find_device_backend(DeviceType::CUDA);
  return backend ? static_cast<size_t>(std::max(0, backend->device_count())) : 0;
}
bool is_available() { return device_count() > 0; }
void manual_seed(uint64_t seed) {
  if (is_available()) device_generator(device_backend(DeviceType::CUDA).current_device()).manual_seed(seed);
}
void manual_seed_all(uint64_t seed) { seed_device_generators(seed); }
void synchronize(int64_t device) {
  if (is_available())
    device_backend(DeviceType::CUDA).synchronize(static_cast<int>(std::max<int64_t>(0, device)));
}
}  // namespace cuda

}  // namespace rushlight
