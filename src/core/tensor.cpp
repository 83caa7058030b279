#include "core/tensor.h"

#include <algorithm>
#include <cstring>

#include "core/deferred_layout.h"
#include "core/device_backend.h"
#include "core/history_flags.h"
#include "core/lazy_clone.h"
#include "core/pending.h"
#include "core/quantizer.h"
#include "core/sparse.h"
#include "core/write_watch.h"

namespace rushlight {

__attribute__((tls_model("initial-exec"))) thread_local uint32_t view_flags = 0;
__attribute__((tls_model("initial-exec"))) thread_local uint32_t new_tensor_flags = 0;
void (*free_autograd_meta)(AutogradMeta*) = nullptr;
bool (*release_pyobj)(TensorImpl*) = nullptr;
void (*note_version)(const Tensor&) = nullptr;
WrappingHooks wrapping_hooks;
Scalar (*read_dispatched_scalar)(const Tensor&) = nullptr;

TensorImpl::~TensorImpl() {
  if (AutogradMeta* meta = autograd) free_autograd_meta(meta);
  if (wrapping) [[unlikely]]
    wrapping_hooks.free(wrapping);
  if (flags & kSpecialElements) [[unlikely]] {
    delete sparse;
    delete quantizer;
  }
}

void TensorImpl::destroy(TensorImpl* t) {
  if (t->owns_pyobj.load(std::memory_order_relaxed) && !release_pyobj(t)) [[unlikely]]
    return;
  delete t;
}

void* TensorImpl::no_data() const {
  if (numel == 0) return nullptr;
  RL_CHECK(storage || !wrapping,
           "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow: a "
           "program that reads its elements can't run for all examples at once");
  if (!storage) return nullptr;
  RL_CHECK(!sparse,
           "Cannot access data pointer of Tensor that doesn't have storage: its elements are listed in ",
           "sparse parts; use .values(), or .to_dense()");
  RL_CHECK(storage->nbytes() > 0 || device.is_meta(),
           "The tensor has a non-zero number of elements, but its data is not allocated yet: its storage was "
           "resized to 0 bytes. Resize the storage and write to the tensor before it is read.");
  materialize_layout(*storage);
  if (std::byte* start = storage->data()) return start + offset * static_cast<int64_t>(element_size(dtype));
  throw NoData(device.is_meta() ? "Cannot read a meta tensor: it has no data"
                                : "Cannot access data pointer of Tensor that doesn't have storage");
}

void TensorImpl::set_contiguous(IntList new_sizes) {
  // One pass does what checked_numel does; that names what is wrong.
  const size_t n = new_sizes.size();
  sizes.resize(n);
  strides.resize(n);
  int64_t step = 1;
  bool zero = false, wrong = false;
  int64_t *to_size = sizes.data(), *to_stride = strides.data();
  for (size_t i = n; i-- > 0;) {
    const int64_t size = new_sizes[i];
    to_size[i] = size;
    to_stride[i] = step;
    zero |= size == 0;
    wrong |= (size < 0) | __builtin_mul_overflow(step, size ? size : 1, &step);
  }
  numel = zero ? 0 : step;
  if (wrong) [[unlikely]] {
    numel = checked_numel(new_sizes);
    step = 1;  // without elements: strides alone overflow
    for (size_t i = n; i-- > 1;)
      RL_CHECK(!__builtin_mul_overflow(step, std::max<int64_t>(new_sizes[i], 1), &step),
               "Stride calculation overflowed");
  }
  flags |= kContiguous;
}

void TensorImpl::set_layout(IntList new_sizes, IntList new_strides) {
  numel = checked_numel(new_sizes);
  sizes.assign(new_sizes.data(), new_sizes.size());
  strides.assign(new_strides.data(), new_strides.size());
  bool contiguous = true;
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0 && contiguous && numel;) {
    if (sizes[i] == 1) continue;
    contiguous = strides[i] == step;
    step *= sizes[i];
  }
  flags = contiguous ? flags | kContiguous : flags & ~kContiguous;
}

namespace {

// Bytes of so many elements, if memory could hold them: an address may have 32 bits.
bool count_bytes(int64_t numel, size_t itemsize, size_t& bytes) {
  uint64_t wide = 0;  // of unsigned factors, which take one instruction
  const bool fits = !__builtin_mul_overflow(static_cast<uint64_t>(numel), uint64_t{itemsize}, &wide);
  bytes = static_cast<size_t>(wide);
  return fits && wide <= uint64_t{PTRDIFF_MAX};
}

// Bytes that a layout spans from its first element; strides must not be negative.
size_t span_bytes(IntList sizes, IntList strides, size_t itemsize) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    int64_t reach = 0;
    RL_CHECK(!__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
                 !__builtin_add_overflow(last, reach, &last),
             "Storage size calculation overflowed with sizes=", sizes, " and strides=", strides);
  }
  size_t bytes = 0;
  RL_CHECK(last < INT64_MAX && count_bytes(last + 1, itemsize, bytes),
           "Storage size calculation overflowed with sizes=", sizes, " and strides=", strides);
  return bytes;
}

Tensor dense_tensor(IntList sizes, IntList strides, DType dtype, Device device) {
  device = numbered(device);
  auto impl = Ref<TensorImpl>::adopt(new TensorImpl(nullptr, 0, dtype, device));
  impl->set_layout(sizes, strides);
  impl->storage = StorageImpl::allocate(span_bytes(sizes, strides, element_size(dtype)), device);
  return Tensor(std::move(impl));
}

}  // namespace

Tensor empty_tensor(IntList sizes, DType dtype, Device device) {
  device = numbered(device);
  auto impl = Ref<TensorImpl>::adopt(new TensorImpl(nullptr, 0, dtype, device));
  impl->set_contiguous(sizes);
  size_t bytes = 0;
  RL_CHECK(count_bytes(impl->numel, element_size(dtype), bytes),
           "Storage size calculation overflowed with sizes=", sizes);
  impl->storage = StorageImpl::allocate(bytes, device);
  return Tensor(std::move(impl));
}

Tensor empty_strided_tensor(IntList sizes, IntList strides, DType dtype, Device device) {
  RL_CHECK(sizes.size() == strides.size(), "empty_strided: dimensionality of sizes (", sizes.size(),
           ") must match dimensionality of strides (", strides.size(), ")");
  for (int64_t s : strides) RL_CHECK(s >= 0, "empty_strided: strides must not be negative, got ", strides);
  checked_numel(sizes);
  return dense_tensor(sizes, strides, dtype, device);
}

Tensor empty_tensor(IntList sizes, DType dtype, Device device, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve)
    return empty_tensor(sizes, dtype, device);
  const size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  RL_CHECK(sizes.size() == rank, "required rank ", rank, " tensor to use ",
           memory_format_name(format).substr(6), " format");
  checked_numel(sizes);
  return dense_tensor(sizes, channels_last_strides(sizes), dtype, device);
}

Tensor empty_like_tensor(const Tensor& like, DType dtype) {
  if (like.is_contiguous()) return empty_tensor(like.sizes(), dtype, like.device());
  if (is_non_overlapping_and_dense(like)) {
    Dims strides = like->strides;
    for (int64_t& s : strides) s = std::abs(s);
    return dense_tensor(like.sizes(), strides, dtype, like.device());
  }
  // Not dense: a dense layout whose dimensions are ordered as the strides are.
  const int64_t n = like.dim();
  Dims order(n), strides(n);
  for (int64_t i = 0; i < n; ++i) order[i] = n - 1 - i;
  auto key = [&](int64_t d) { return std::abs(like->strides[d]); };
  for (int64_t i = 1; i < n;
       ++i)  // insertion sort keeps the order of equal and expanded (stride 0) dimensions
    for (int64_t j = i; j > 0 && key(order[j]) && key(order[j - 1]) && key(order[j]) < key(order[j - 1]); --j)
      std::swap(order[j], order[j - 1]);
  int64_t step = 1;
  for (int64_t d : order) {
    strides[d] = step;
    step *= std::max<int64_t>(like->sizes[d], 1);
  }
  return dense_tensor(like.sizes(), strides, dtype, like.device());
}

Tensor scalar_tensor_of(const Scalar& value, DType dtype, Device device) {
  Tensor t = empty_tensor(IntList{}, dtype, device);
  if (device.is_cpu()) {
    visit_dtype(StorageTypes{}, dtype, "scalar_tensor",
                [&](auto tag) { *t.data<decltype(tag)>() = value.to<decltype(tag)>(); });
  } else if (!device.is_meta()) {
    const Tensor here = scalar_tensor_of(value, dtype);
    device_backend(device.type())
        .copy(t.data_ptr(), t.device(), here.data_ptr(), Device{}, t.nbytes(), false);
  }
  return t;
}

Tensor wrapped_number(const Scalar& value) {
  const DType dtype = value.is_floating()  ? DType::Float64
                      : value.is_complex() ? DType::Complex128
                                           : value.dtype();
  Tensor t = scalar_tensor_of(value, dtype);
  t->flags |= kWrappedNumber;
  return t;
}

// How a view of a tensor with these flags came about.
static uint32_t view_origin(uint32_t source) {
  uint32_t origin = source & (kNoGradView | kMultiView | kViewOrigin | kOriginInherited);
  if (origin && !view_flags) origin |= kOriginInherited;
  if (view_flags && (new_tensor_flags & kInference)) origin |= kInferenceView;
  return origin;
}

Tensor make_view(const Tensor& base, IntList sizes, IntList strides, int64_t offset, bool differentiable) {
  TensorImpl* source = base.impl();
  if (source->wrapping) [[unlikely]]
    return wrapping_hooks.view(base, sizes, strides, offset, differentiable);
  if (source->sparse) [[unlikely]]
    return sparse_alias(base);
  auto impl = Ref<TensorImpl>::adopt(new TensorImpl(source->storage, offset, source->dtype, source->device));
  impl->set_layout(sizes, strides);
  impl->version = source->version;
  constexpr uint32_t kPassedOn = kInference | kSpecialElements | kPending;
  impl->flags = (impl->flags & ~kPassedOn) | (source->flags & kPassedOn);
  if (source->quantizer) [[unlikely]]
    impl->quantizer = new Quantizer(quantizer_of_view(*source, sizes, strides, offset));
  const bool recorded = differentiable && !(source->flags & kInference);
  if (recorded) {
    impl->view_base = source->view_base ? source->view_base : Ref<TensorImpl>::share(source);
    impl->flags |= view_flags | view_origin(source->flags);
  }
  Tensor view(std::move(impl));
  if (recorded && view_flags && (view->view_base->flags & kAutograd)) [[unlikely]]
    note_version(view);
  return view;
}

// What a sparse tensor of one element holds; its parts list the element once, or never when it is zero.
static Scalar zero_of(DType dtype) {
  return is_bool(dtype)       ? Scalar(false)
         : is_complex(dtype)  ? Scalar(complex128(0))
         : is_floating(dtype) ? Scalar(0.0)
                              : Scalar(int64_t{0});
}
static Scalar read_sparse_scalar(const Tensor& t) {
  const Tensor& values = sparse_parts(t).values;
  RL_CHECK(values.numel() <= 1, "a sparse tensor that lists its element ", values.numel(),
           " times can't be read as a number; use .coalesce()");
  return values.numel() == 1 ? read_scalar(values, 0) : zero_of(t.dtype());
}

Scalar read_scalar(const Tensor& t, int64_t element_offset) {
  if (t->sparse) [[unlikely]]
    return read_sparse_scalar(t);
  if (t->quantizer) [[unlikely]]
    return read_quantized_scalar(t, element_offset);
  if (!t.has_data()) [[unlikely]] {
    RL_ASSERT(element_offset == 0 || !(t->flags & kPythonDispatch),
              "read_element says which element is meant");
    if (t->flags & kPythonDispatch) return read_dispatched_scalar(t);
    RL_CHECK(!t.device().is_meta(), "Tensor.item() cannot be called on meta tensors");
  }
  RL_CHECK(!t->wrapping || t->storage,
           "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
           ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error is "
           "occurring somewhere inside PyTorch internals, please file a bug report.");
  RL_CHECK(t.numel() > 0, "a Tensor with 0 elements cannot be converted to Scalar");
  Scalar result;
  alignas(16) std::byte fetched[16];
  const auto itemsize = static_cast<int64_t>(element_size(t.dtype()));
  const void* element = t.data<std::byte>() + element_offset * itemsize;
  if (!t.is_cpu()) {
    device_backend(t.device().type()).copy(fetched, Device{}, element, t.device(), t.itemsize(), false);
    element = fetched;
  }
  visit_dtype(StorageTypes{}, t.dtype(), "item", [&](auto tag) {
    using T = decltype(tag);
    const T value = *static_cast<const T*>(element);
    if constexpr (is_complex_v<T>)
      result = Scalar(convert<complex128>(value));
    else if constexpr (is_floating_v<T>)
      result = Scalar(static_cast<double>(value));
    else if constexpr (std::is_same_v<T, bool>)
      result = Scalar(value);
    else if constexpr (std::is_same_v<T, uint64_t>)
      result = Scalar(value);
    else
      result = Scalar(static_cast<int64_t>(value));
  });
  if (t->flags & kPending) [[unlikely]] {
    if (t->flags & kPendingConj) result = Scalar(std::conj(result.to<complex128>()));
    if (t->flags & kPendingNeg) result = -result;
  }
  return result;
}

void resize_tensor(const Tensor& t, IntList sizes) {
  const int64_t numel = checked_numel(sizes);
  if (t.sizes() == sizes) return;
  size_t end = 0;
  RL_CHECK(count_bytes(t.storage_offset() + numel, t.itemsize(), end),
           "Storage size calculation overflowed with sizes=", sizes);
  if (numel && t->storage->nbytes() < end) {
    materialize_layout(*t->storage);
    t->storage->resize(end);
  }
  t->set_contiguous(sizes);
}

static uint32_t counted_version(const TensorImpl& t) {
  return t.version ? t.version->value.load(std::memory_order_relaxed)
                   : t.storage->version.load(std::memory_order_relaxed);
}

uint32_t Tensor::version() const {
  RL_CHECK(!(impl_->flags & kInference), "Inference tensors do not track version counter.");
  if (impl_->wrapping) [[unlikely]] {
    // What stands for a tensor of inference mode inside a function transform is an ordinary tensor there.
    const Tensor inner = wrapping_hooks.inner(*impl_);
    return inner->flags & kInference ? counted_version(*inner.impl()) : inner.version();
  }
  return counted_version(*impl_);
}

void Tensor::bump_version(const std::string_view* writer) const {
  if (impl_->wrapping) [[unlikely]]
    return wrapping_hooks.inner(*impl_).bump_version(writer);
  if (writer && impl_->storage) impl_->storage->last_writer.store(writer, std::memory_order_relaxed);
  if (impl_->version) {
    impl_->version->value.fetch_add(1, std::memory_order_relaxed);
    if (impl_->storage) note_write(*impl_->storage);
  } else if (impl_->storage)
    impl_->storage->version.fetch_add(1, std::memory_order_relaxed);
}

void Tensor::check_writable(std::string_view op) const {
  if (!impl_->storage || !impl_->storage->read_only()) [[likely]]
    return;
  own_contents(*impl_->storage);
  RL_CHECK(!impl_->storage->read_only(), op,
           ": the tensor's memory is read-only (it came from a read-only NumPy array or file mapping); call "
           ".clone() first");
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return is_contiguous();
  if (dim() != (format == MemoryFormat::ChannelsLast ? 4 : 5)) return false;
  const Dims expected = channels_last_strides(sizes());
  for (int64_t i = 0; i < dim(); ++i)
    if (impl_->sizes[i] != 1 && impl_->strides[i] != expected[i] && numel() != 0) return false;
  return true;
}

bool is_column_major(const Tensor& t) {
  return !(t->flags & kSpecialElements) && t.dim() == 2 && t->strides[0] == 1 &&
         t->strides[1] >= std::max<int64_t>(1, t->sizes[0]) && t->strides[1] != 1;
}

bool is_channels_last(const Tensor& t) {
  if ((t.dim() != 4 && t.dim() != 5) || t.is_contiguous() || t->strides[1] == 0) return false;
  Dims order{1};
  for (int64_t d = t.dim() - 1; d > 1; --d) order.push_back(d);
  order.push_back(0);
  int64_t least = 0;  // the tensor may have gaps, as a part of an image has
  for (int64_t d : order) {
    if (t->sizes[d] == 0 || t->strides[d] < least) return false;
    if (d == 0 && least == t->strides[1]) return false;  // sizes of 1 leave the order open: the plain one
    least = t->strides[d] * t->sizes[d];
  }
  return true;
}

bool is_non_overlapping_and_dense(const Tensor& t) {
  if (t.is_contiguous()) return true;
  Dims order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t->sizes[d] != 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return std::abs(t->strides[a]) < std::abs(t->strides[b]); });
  int64_t step = 1;
  for (int64_t d : order) {
    if (std::abs(t->strides[d]) != step) return false;
    step *= t->sizes[d];
  }
  return true;
}

bool is_dense_from_data(const Tensor& t) {
  return t.is_contiguous() || (std::ranges::all_of(t.strides(), [](int64_t s) { return s >= 0; }) &&
                               is_non_overlapping_and_dense(t));
}

bool has_internal_overlap(const Tensor& t) {
  if (t.is_contiguous() || t.numel() <= 1) return false;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t->sizes[d] > 1 && t->strides[d] == 0) return true;
  return false;
}

void Promotion::add(DType dtype, int priority) {
  best_[priority] = seen_[priority] ? promote_types(best_[priority], dtype) : dtype;
  seen_[priority] = true;
}
void Promotion::add(const Tensor& t) {
  if (!t.defined()) return;
  DType dtype = t.dtype();
  // A Python number counts as the default type of its category.
  if (t.is_wrapped_number() && is_floating(dtype)) dtype = get_default_dtype();
  if (t.is_wrapped_number() && is_complex(dtype)) dtype = complex_dtype(get_default_dtype());
  add(dtype, t.is_wrapped_number() ? 2 : t.dim() == 0 ? 1 : 0);
}
void Promotion::add(const Scalar& s) { add(s.dtype(), 2); }

namespace {
// The stronger operand's type, unless the weaker one is of a higher category.
DType combine(DType strong, DType weak) {
  if (category_of(weak) <= category_of(strong)) return strong;
  // A complex number with floating tensors keeps their precision.
  if (is_complex(weak) && is_floating(strong)) return complex_dtype(strong);
  return weak;
}
}  // namespace

DType Promotion::result() const {
  bool any = false;
  DType type = DType::Bool;
  for (int p = 0; p < 3; ++p) {
    if (!seen_[p]) continue;
    type = any ? combine(type, best_[p]) : best_[p];
    any = true;
  }
  RL_CHECK(any, "result_type: at least one operand is needed");
  return type;
}

DType result_type(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype() && !a.is_wrapped_number() && !b.is_wrapped_number()) return a.dtype();
  Promotion p;
  p.add(a);
  p.add(b);
  return p.result();
}

std::string describe(const Tensor& t) {
  return t.defined() ? str(dtype_name(t.dtype()), t.sizes(), " on ", t.device()) : "undefined tensor";
}

}  // namespace rushlight
