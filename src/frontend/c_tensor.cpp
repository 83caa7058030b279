// The C interface to tensors: handles, their memory, errors. It needs the core alone, and is part of the
// small runtime.
#include <memory>

#include "core/lazy_clone.h"
#include "frontend/c_common.h"

namespace rushlight::c {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

int error_number(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Runtime:
      return RL_ERROR_RUNTIME;
    case ErrorKind::Value:
      return RL_ERROR_VALUE;
    case ErrorKind::Type:
      return RL_ERROR_TYPE;
    case ErrorKind::Index:
      return RL_ERROR_INDEX;
    case ErrorKind::NotImplemented:
      return RL_ERROR_NOT_IMPLEMENTED;
    case ErrorKind::OutOfMemory:
      return RL_ERROR_OUT_OF_MEMORY;
    default:
      return RL_ERROR_OTHER;
  }
}

Tensor tensor_at(rl_tensor t) {
  RL_CHECK_VALUE(t, "the tensor is NULL");
  return Tensor(Ref<TensorImpl>::share(reinterpret_cast<TensorImpl*>(t)));
}
DType dtype_at(int dtype) {
  RL_CHECK_VALUE(dtype >= 0 && dtype <= RL_COMPLEX128, "there is no dtype number ", dtype);
  return static_cast<DType>(dtype);
}
// The numbers of rl_dtype are those of the core, whose list only grows.
static_assert(RL_BOOL == static_cast<int>(DType::Bool) && RL_INT64 == static_cast<int>(DType::Int64) &&
              RL_FLOAT16 == static_cast<int>(DType::Float16) &&
              RL_COMPLEX128 == static_cast<int>(DType::Complex128));
IntList list_at(const int64_t* data, size_t n) {
  RL_CHECK_VALUE(data || n == 0, "the list is NULL");
  RL_CHECK_VALUE(n <= 64, "at most 64 dimensions are possible, but got ", n);
  return {data, n};
}

}  // namespace rushlight::c

using namespace rushlight;
using namespace rushlight::c;

namespace {

// Bytes from the first element to the end of the last.
size_t bytes_spanned(IntList sizes, IntList strides, DType dtype) {
  int64_t last = 0;
  if (checked_numel(sizes) == 0) return 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step = 0;
    RL_CHECK_VALUE(strides[i] >= 0, "strides must not be negative, but got ", to_string(strides));
    const bool overflow =
        __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last);
    RL_CHECK_VALUE(!overflow && last < INT64_MAX / 16, "strides ", to_string(strides), " are too large");
  }
  return static_cast<size_t>(last + 1) * element_size(dtype);
}

struct Release {
  void (*function)(void*);
  void* context;
};

Tensor on_memory(void* data, IntList sizes, IntList strides, DType dtype, Release release) {
  const size_t bytes = bytes_spanned(sizes, strides, dtype);
  auto owner = std::make_unique<Release>(release);
  const auto free = [](void* context, void*, size_t) {
    const std::unique_ptr<Release> owned(static_cast<Release*>(context));
    if (owned->function) owned->function(owned->context);
  };
  Storage storage = StorageImpl::wrap(data, bytes, {}, free, owner.release());
  Tensor t(Ref<TensorImpl>::adopt(new TensorImpl(std::move(storage), 0, dtype, {})));
  t->set_layout(sizes, strides);
  return t;
}

}  // namespace

extern "C" {

int rl_c_version(void) { return RL_C_VERSION; }
const char* rl_last_error(void) { return last_error().c_str(); }

void rl_tensor_release(rl_tensor t) {
  if (t) Tensor(Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(t))).reset();
}
int rl_tensor_retain(rl_tensor t, rl_tensor* copy) {
  return guarded([&] { *checked(copy, "copy") = given(tensor_at(t)); });
}
int rl_tensor_empty(const int64_t* sizes, size_t dim, int dtype, rl_tensor* result) {
  return guarded([&] {
    checked(result, "result");
    *result = given(empty_tensor(list_at(sizes, dim), dtype_at(dtype)));
  });
}
int rl_tensor_from_memory(void* data, const int64_t* sizes, const int64_t* strides, size_t dim, int dtype,
                          void (*release)(void*), void* context, rl_tensor* result) {
  return guarded([&] {
    checked(result, "result");
    const IntList shape = list_at(sizes, dim);
    RL_CHECK_VALUE(data || checked_numel(shape) == 0, "data is NULL");
    const Dims layout = strides ? Dims(strides, dim) : contiguous_strides(shape);
    *result = given(on_memory(data, shape, layout, dtype_at(dtype), {release, context}));
  });
}
int rl_tensor_dim(rl_tensor t, size_t* dim) {
  return guarded([&] { *checked(dim, "dim") = static_cast<size_t>(tensor_at(t).dim()); });
}
int rl_tensor_sizes(rl_tensor t, const int64_t** sizes) {
  return guarded([&] { *checked(sizes, "sizes") = tensor_at(t)->sizes.data(); });
}
int rl_tensor_strides(rl_tensor t, const int64_t** strides) {
  return guarded([&] { *checked(strides, "strides") = tensor_at(t)->strides.data(); });
}
int rl_tensor_numel(rl_tensor t, int64_t* numel) {
  return guarded([&] { *checked(numel, "numel") = tensor_at(t).numel(); });
}
int rl_tensor_dtype(rl_tensor t, int* dtype) {
  return guarded([&] { *checked(dtype, "dtype") = static_cast<int>(tensor_at(t).dtype()); });
}
int rl_tensor_data(rl_tensor t, void** data) {
  return guarded([&] {
    const Tensor& tensor = tensor_at(t);
    if (tensor->storage) expose_contents(*tensor->storage);  // the caller may write
    *checked(data, "data") = tensor.data_ptr();
  });
}
int rl_tensor_item(rl_tensor t, double* value) {
  return guarded([&] {
    const Tensor one = tensor_at(t);
    RL_CHECK(one.numel() == 1, "a Tensor with ", one.numel(), " elements cannot be converted to Scalar");
    *checked(value, "value") = read_scalar(one).to_double();
  });
}

}  // extern "C"
