// Tensor: a typed, strided window on a storage. Tensor is one pointer to a shared TensorImpl.
#pragma once
#include "core/dims.h"
#include "core/dtype.h"
#include "core/scalar.h"
#include "core/storage.h"
#ifndef RUSHLIGHT_CORE
#include "rushlight/types.h"
#endif

namespace rushlight {

class Tensor;
class TensorImpl;

// Flags that make_view adds: kNoGradView while the user has switched grad mode off.
extern thread_local uint32_t view_flags __attribute__((tls_model("initial-exec")));
// Flags of all new tensors: kInference under inference mode.
extern thread_local uint32_t new_tensor_flags __attribute__((tls_model("initial-exec")));

// Bits of TensorImpl::flags. The low byte is what the gate looks at (dispatch/call.h): one bit per reason to
// leave the straight path. The others are plain facts.
enum TensorFlag : uint32_t {
  kAutograd = 1u << 0,        // requires grad: a leaf that asks for it, or a result of one
  kPythonDispatch = 1u << 1,  // a subclass with __torch_dispatch__
  kWrapped = 1u << 2,         // stands for a tensor inside a function transform. Note [Levels]
  kForwardGrad = 1u << 3,     // carries a tangent
  kAutocast = 1u << 4,        // no tensor's: this thread is in a region of autocasting
  kLowered = 1u << 5,         // no tensor's: a call recorded at one level and now to be computed at the next
  // Its elements are no plain numbers: listed in sparse parts (Note [Sparse tensors] in core/sparse.h),
  // quantised (Note [Quantised tensors] in core/quantizer.h), or of another type that no kernel knows.
  kSpecialElements = 1u << 6,
  kNotCpu = 1u << 7,
  kWrappedNumber = 1u << 8,  // stands for a Python number: weakest in type promotion
  kInference = 1u << 9,      // made under inference_mode: no version, no autograd
  kContiguous = 1u << 10,
  kNoGradView = 1u << 11,  // a view taken under no_grad of a tensor that requires grad
  kMultiView = 1u
      << 12,  // one of several views made by one operator (split, unbind): no in-place under autograd
  kPythonSubclass = 1u
      << 14,  // its Python type is not exactly Tensor or Parameter (__torch_function__ may apply)
  kParameter = 1u << 15,
};
constexpr uint32_t kDispatchBits = 0xff;

// What autograd knows of a tensor; defined in autograd/meta.h. Tensors outside any graph have none.
struct AutogradMeta;
// What a tensor of a function transform stands for; defined in transform/level.h.
struct Wrapping;
// What a sparse tensor is made of; defined in core/sparse.h.
struct SparseParts;
// What the integers of a quantised tensor mean; defined in core/quantizer.h.
struct Quantizer;

class TensorImpl final : public RefCounted {
 public:
  TensorImpl(Storage storage, int64_t offset, DType dtype, Device device)
      : storage(std::move(storage)),
        offset(offset),
        dtype(dtype),
        device(device),
        flags((device.is_cpu() ? kContiguous : kContiguous | kNotCpu) | new_tensor_flags |
              (is_special(dtype) ? kSpecialElements : 0u)) {}
  ~TensorImpl();
  static void destroy(TensorImpl* t);

  // Sets sizes and strides (in elements, may be negative) and what follows from them.
  void set_layout(IntList new_sizes, IntList new_strides);
  void set_contiguous(IntList new_sizes);
  // Note [Tensors without data]
  // Meta tensors, and tensors of Python classes that compute elsewhere, have shapes and strides and a storage
  // without memory. Asking for their elements raises NoData, so that a kernel that forgets about them fails
  // with an error that the gate words; a kernel that gives shapes alone returns before it asks.
  void* data() const {
    std::byte* start = storage ? storage->data() : nullptr;
    if (!start) [[unlikely]]
      return no_data();
    return start + offset * static_cast<int64_t>(element_size(dtype));
  }

  Storage storage;
  int64_t offset = 0;  // in elements
  int64_t numel = 1;
  Dims sizes, strides;
  DType dtype;
  Device device;
  std::atomic<bool> owns_pyobj{false};  // of `pyobj` below; here, it takes no room
  SharedBits flags;
  Published<AutogradMeta> autograd;  // owned; freed through free_autograd_meta
  SparseParts* sparse = nullptr;     // owned, rarely present, with kSpecialElements
  Quantizer* quantizer = nullptr;    // likewise
  Wrapping* wrapping = nullptr;      // owned, rarely present; see wrapping_hooks
  Ref<TensorImpl> view_base;         // the tensor this is a differentiable view of, if any
  Ref<VersionCounter> version;       // own counter; null: the storage's. See Note [Version counters]
  // The Python wrapper. Note [Python identity] in python/tensor_type.cpp says who owns whom.
  Published<void> pyobj;

  static void* operator new(size_t) { return Pool::take(); }
  static void operator delete(void* memory) { Pool::give(memory); }

 private:
  void* no_data() const;  // null when there is nothing to read
  using Pool = FreeList<256, 64>;
};

// Somebody read a tensor that has no data; the gate says of which operator.
struct NoData : Error {
  explicit NoData(std::string message) : Error(ErrorKind::NotImplemented, std::move(message)) {}
};

// Hooks filled in by the layers above; core only calls them.
extern void (*free_autograd_meta)(AutogradMeta*);
// Lets go of the wrapper that a dying tensor owns. False: somebody found the tensor through the wrapper and
// owns it now, so that it lives on.
extern bool (*release_pyobj)(TensorImpl*);
// Filled by src/transform: what the few functions below do when a tensor wraps another one.
struct WrappingHooks {
  void (*free)(Wrapping*) = nullptr;
  const Tensor& (*inner)(const TensorImpl&) = nullptr;
  Tensor (*view)(const Tensor& base, IntList sizes, IntList strides, int64_t offset,
                 bool differentiable) = nullptr;
};
extern WrappingHooks wrapping_hooks;

// Note [Methods]
// The public operators are methods too, x.exp(), printed from the records into the class below. Files of the
// core (RUSHLIGHT_CORE) write ops::exp(x) and don't see them: a new operator then compiles few files again.
// Member functions that are not virtual are no part of an object, so both see the same class.
class Tensor {
 public:
  Tensor() noexcept = default;
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const = delete;  // ask defined() or item()
  TensorImpl* impl() const { return impl_.get(); }
  TensorImpl* operator->() const { return impl_.get(); }
  TensorImpl* detach_impl() { return impl_.detach(); }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }
  void reset() { impl_.reset(); }

  IntList sizes() const { return impl_->sizes; }
  IntList strides() const { return impl_->strides; }
  int64_t size(int64_t dim) const { return impl_->sizes[wrap_dim(dim, this->dim(), false)]; }
  int64_t stride(int64_t dim) const { return impl_->strides[wrap_dim(dim, this->dim(), false)]; }
  int64_t dim() const { return static_cast<int64_t>(impl_->sizes.size()); }
  int64_t numel() const { return impl_->numel; }
  int64_t storage_offset() const { return impl_->offset; }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->device; }
  size_t itemsize() const { return rushlight::element_size(impl_->dtype); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
  bool is_contiguous() const { return impl_->flags & kContiguous; }
  bool is_contiguous(MemoryFormat format) const;
  bool is_wrapped_number() const { return impl_->flags & kWrappedNumber; }
  bool is_cpu() const { return impl_->device.is_cpu(); }
  bool has_data() const { return impl_->storage && impl_->storage->data(); }
  bool requires_grad_flag() const { return impl_->flags & kAutograd; }

  template <class T>
  T* data() const {
    return static_cast<T*>(impl_->data());
  }
  void* data_ptr() const { return impl_->data(); }

  uint32_t version() const;
  // `writer`: the name of the operator that wrote; it must live as long as the process.
  void bump_version(const std::string_view* writer = nullptr) const;
  // Refuses writes to read-only memory, naming the operator.
  void check_writable(std::string_view op) const;

#ifndef RUSHLIGHT_CORE
#include "rushlight/printed/tensor_methods.h"
#include "rushlight/tensor_extra.h"
#endif

 private:
  Ref<TensorImpl> impl_;
};
static_assert(sizeof(Tensor) == sizeof(void*));  // boxed calls pass TensorImpl* where Tensor is expected

// Uninitialised tensors.
Tensor empty_tensor(IntList sizes, DType dtype, Device device = {});
Tensor empty_strided_tensor(IntList sizes, IntList strides, DType dtype, Device device = {});
Tensor empty_tensor(IntList sizes, DType dtype, Device device, MemoryFormat format);
// Same shape, dtype and device; keeps a dense layout (channels-last, transposed), as MemoryFormat::Preserve
// says.
Tensor empty_like_tensor(const Tensor& like, DType dtype);
// A 0-dim tensor holding `value`.
Tensor scalar_tensor_of(const Scalar& value, DType dtype, Device device = {});
// As above, marked as a Python number for type promotion.
Tensor wrapped_number(const Scalar& value);
// A tensor on the same storage. `differentiable` records it as a view for autograd (Note [Views] in
// autograd/view.h).
Tensor make_view(const Tensor& base, IntList sizes, IntList strides, int64_t offset,
                 bool differentiable = true);
// The value of a one-element tensor, without autograd.
Scalar read_scalar(const Tensor& t, int64_t element_offset = 0);
// Filled in above: how to ask a tensor whose Python class computes elsewhere.
extern Scalar (*read_dispatched_scalar)(const Tensor& t);
// Changes shape in place, growing the storage when needed; contiguous afterwards. Used by out= and resize_.
void resize_tensor(const Tensor& t, IntList sizes);

bool is_column_major(const Tensor& t);               // a dense matrix whose columns follow each other
bool is_channels_last(const Tensor& t);              // strides as NHWC / NDHWC and not plain contiguous
bool is_non_overlapping_and_dense(const Tensor& t);  // strides may be negative
bool is_dense_from_data(const Tensor& t);            // and none is: all its elements follow data_ptr()
enum class Overlap : uint8_t { No, Full, Partial };
Overlap memory_overlap(const Tensor& a, const Tensor& b);  // conservative: Partial when unsure
bool has_internal_overlap(const Tensor& t);                // two elements at one address (expanded)

// What type promotion sees of one operand, and the promoted result of several; PyTorch's rules
// (dimensioned tensors before 0-dim tensors before Python numbers, within a category).
class Promotion {
 public:
  void add(const Tensor& t);
  void add(const Scalar& s);
  DType result() const;

 private:
  void add(DType dtype, int priority);
  DType best_[3] = {};
  bool seen_[3] = {};
};
DType result_type(const Tensor& a, const Tensor& b);

std::string describe(const Tensor& t);  // "float32[2, 3] on cpu" for error messages

}  // namespace rushlight
