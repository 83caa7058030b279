#include "ops/copy.h"

#include <atomic>
#include <cstring>

#include "core/answered.h"
#include "core/deferred_layout.h"
#include "core/lazy_clone.h"
#include "core/parallel.h"
#include "core/pending.h"
#include "core/quantizer.h"
#include "core/sparse.h"
#include "cpu/copy.h"
#include "cpu/pointwise.h"
#include "dispatch/target_copy.h"
#include "dispatch/warning.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/plain.h"
#include "ops/pointwise_family.h"
#include "ops/register.h"
#include "ops/view.h"
#include "ops/zeros_like.h"

namespace rushlight {
namespace {

// --- copy_, fill_, zero_

void check_copy(const Tensor& self, const Tensor& source) {
  RL_CHECK(self.sizes() == source.sizes() || broadcast_shapes(self.sizes(), source.sizes()) == self->sizes,
           "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
           broadcast_shapes(self.sizes(), source.sizes()));
}

// Both share memory without being the same elements: reads must not see what was written.
bool needs_detour(const Tensor& self, const Tensor& source) {
  if (!self->storage || self->storage.get() != source->storage.get()) return false;
  return memory_overlap(self, source) != Overlap::Full;
}

// Copies between parts of one piece of memory that overlap are refused; with gaps between the elements they
// are made by way of memory apart.
void check_not_shifted(const Tensor& self, const Tensor& source) {
  if (!self->storage || self->storage.get() != source->storage.get()) return;
  RL_CHECK(memory_overlap(self, source) != Overlap::Partial || !is_non_overlapping_and_dense(self) ||
               !is_non_overlapping_and_dense(source),
           "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
           "single memory location. Please clone() the tensor before performing the operation.");
}

void copy_elements(const Tensor& self, const Tensor& source, bool non_blocking = false) {
  if (self.is_same(source) || self.numel() == 0 || self.device().is_meta()) return;
  RL_CHECK_AS(NotImplemented, !source.device().is_meta(), "Cannot copy out of meta tensor; no data!");
  RL_CHECK(!has_internal_overlap(self),
           "unsupported operation: more than one element of the written-to tensor refers to a single memory "
           "location. "
           "Please clone() the tensor before performing the operation.");
  if (!needs_detour(self, source)) return loops::copy(self, source, non_blocking);
  const Tensor between = empty_tensor(source.sizes(), source.dtype(), source.device());
  loops::copy(between, source);
  loops::copy(self, between);
}

// As in PyTorch, once a process.
void tell_of_lost_parts(DType from, DType to) {
  static OnceWarning lost("Casting complex values to real discards the imaginary part");
  if (!is_complex(from) || is_complex(to) || to == DType::Bool) [[likely]]
    return;
  lost.show();
}

Tensor copy_kernel(const Call&, const Tensor& self, const Tensor& source, bool non_blocking) {
  check_copy(self, source);
  tell_of_lost_parts(source.dtype(), self.dtype());
  check_not_shifted(self, source);
  copy_elements(self, source, non_blocking);
  return self;
}

void copy_result_body(const Tensor& target, const Tensor& source, bool recorded) {
  const bool requantized = is_quantized(target) && target.dtype() != source.dtype();
  if (recorded || requantized || is_sparse(target) || is_pending(target) || is_pending(source)) {
    if (target.sizes() != source.sizes()) ops::resize_(target, source.sizes(), std::nullopt);
    ops::copy_(target, source, false);
  } else {
    check_copy(target, source);
    copy_elements(target, source);
  }
}

// One value for all, so it does not matter whether elements share memory.
void fill_elements(const Tensor& self, const Tensor& value) {
  const bool plain = self.numel() > 0 && !self.device().is_meta() && !value.device().is_meta();
  if (plain && !needs_detour(self, value))
    loops::copy(self, value);
  else
    copy_elements(self, value);
}

Tensor fill_kernel(const Call&, const Tensor& self, const Tensor& value) {
  RL_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
           " dimensions.");
  if (value.is_wrapped_number() && value.is_cpu()) read_scalar(value).check_fits(self.dtype());
  fill_elements(self, value);
  return self;
}

Tensor fill_body(const Call&, const Tensor& self, const Tensor& value) {
  const bool plain = ops::is_plain(self) && ops::is_plain(value);  // then nothing has to lead back to self
  return ops::fill_(plain ? ops::empty_like(self) : ops::clone(self), value);
}

// Writes along the diagonal; a tall matrix starts anew after each square when `wrap` is set.
Tensor fill_diagonal(const Call&, const Tensor& self, const Scalar& value, bool wrap) {
  RL_CHECK(self.dim() >= 2, "dimensions must larger than 1");
  for (int64_t s : self.sizes())
    RL_CHECK(self.dim() == 2 || s == self.size(0), "all dimensions of input must be of equal length");
  if (self.numel() == 0) return self;
  int64_t step = 0, shortest = self.size(0);
  for (int64_t d = 0; d < self.dim(); ++d)
    step += self.stride(d), shortest = std::min(shortest, self.size(d));
  ops::fill_(ops::as_strided(self, {shortest}, {step}, self.storage_offset()), wrapped_number(value));
  const int64_t width = self.dim() == 2 ? self.size(1) : 0;
  for (int64_t row = width + 1; wrap && self.dim() == 2 && row < self.size(0); row += width + 1) {
    const int64_t n = std::min(width, self.size(0) - row);
    ops::fill_(ops::as_strided(self, {n}, {step}, self.storage_offset() + row * self.stride(0)),
               wrapped_number(value));
  }
  return self;
}

Tensor zero_kernel(const Call&, const Tensor& self) {
  if (self.device().is_meta()) return self;
  if (self.is_cpu() && self.is_contiguous())
    cpu::clear(self.data_ptr(), self.nbytes());
  else
    fill_elements(self, scalar_tensor_of(0, self.dtype()));
  return self;
}

// --- clone, contiguous, to

Tensor empty_in_format(const Tensor& like, DType dtype, Device device, MemoryFormat format) {
  if (format != MemoryFormat::Preserve) return empty_tensor(like.sizes(), dtype, device, format);
  if (device == like.device()) return empty_like_tensor(like, dtype);
  if (!is_non_overlapping_and_dense(like) || like.is_contiguous())
    return empty_tensor(like.sizes(), dtype, device);
  Dims strides = like->strides;
  for (int64_t& s : strides) s = std::abs(s);
  return empty_strided_tensor(like.sizes(), strides, dtype, device);
}

// A copy of the image behind self, its layout deferred in turn. Note [Deferred layout conversion]
Tensor copy_of_image(const Tensor& self, DType dtype) {
  const Tensor copy = empty_tensor(self.sizes(), dtype, self.device(), MemoryFormat::ChannelsLast);
  cpu::copy(copy, image_of(self));
  return defer_layout(copy);
}
bool copies_image(const Tensor& self, std::optional<MemoryFormat> format) {
  return !self.has_data() && format.value_or(MemoryFormat::Preserve) == MemoryFormat::Preserve &&
         has_deferred_layout(self);
}

// What to(non_blocking=) hands to the copy below it: an operator without that argument, which graphs record.
thread_local bool non_blocking_copies = false;
struct NonBlockingCopies {
  explicit NonBlockingCopies(bool wanted) : before(std::exchange(non_blocking_copies, wanted)) {}
  ~NonBlockingCopies() { non_blocking_copies = before; }
  NonBlockingCopies(const NonBlockingCopies&) = delete;
  bool before;
};

Tensor to_copy_kernel(const Call&, const Tensor& self, OptDType dtype, OptDevice device,
                      std::optional<MemoryFormat> format) {
  const Device target = device.value_or(self.device());
  if (target.is_cpu() && copies_image(self, format)) [[unlikely]]
    return copy_of_image(self, dtype.value_or(self.dtype()));
  const Tensor out =
      empty_in_format(self, dtype.value_or(self.dtype()), target, format.value_or(MemoryFormat::Preserve));
  if (!out.device().is_meta()) {
    if (self.device().is_meta()) RL_NOT_IMPLEMENTED("Cannot copy out of meta tensor; no data!");
    tell_of_lost_parts(self.dtype(), out.dtype());
    loops::copy(out, self, non_blocking_copies);
  }
  return out;
}

Tensor clone_kernel(const Call&, const Tensor& self, std::optional<MemoryFormat> format) {
  if (copies_image(self, format)) [[unlikely]]
    return copy_of_image(self, self.dtype());
  const Tensor out =
      empty_in_format(self, self.dtype(), self.device(), format.value_or(MemoryFormat::Preserve));
  loops::copy(out, self);
  return out;
}

// What can't be shared is copied at once.
Tensor lazy_clone_kernel(const Call&, const Tensor& self) {
  const bool plain = self.is_cpu() && self.numel() && self->storage && self.data_ptr();
  Storage shared = plain ? rushlight::lazy_clone(*self->storage) : Storage();
  if (!shared) return ops::clone(self, std::nullopt);
  const Tensor out(
      make_ref<TensorImpl>(std::move(shared), self.storage_offset(), self.dtype(), self.device()));
  out->set_layout(self.sizes(), self.strides());
  return out;
}

Fn<Tensor(const Tensor& self)> lazy_clone;

Tensor contiguous_body(const Call&, const Tensor& self, MemoryFormat format) {
  RL_CHECK(format != MemoryFormat::Preserve,
           "preserve memory format is unsupported by the contiguous operator");
  const bool lies_so =
      self->flags & kAnswersStrides ? answered_contiguous(self, format) : self.is_contiguous(format);
  return lies_so ? self : ops::clone(self, format);
}

Tensor to_body(const Call&, const Tensor& self, OptDType dtype, OptDevice device, bool non_blocking,
               bool copy, std::optional<MemoryFormat> format) {
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  const bool same = (!dtype || *dtype == self.dtype()) && (!device || *device == self.device()) &&
                    (wanted == MemoryFormat::Preserve || self.is_contiguous(wanted) ||
                     (wanted == MemoryFormat::Contiguous && !is_channels_last(self)));  // gaps may stay
  if (same && !copy) return self;
  const NonBlockingCopies scope(non_blocking);
  return ops::to_copy(self, dtype, device, wanted);
}

template <DType T>
Tensor cast_body(const Call&, const Tensor& self, std::optional<MemoryFormat> format) {
  return ops::to(self, T, std::nullopt, false, false, format);
}

Tensor type_as_body(const Call&, const Tensor& self, const Tensor& other) {
  const Device device = other->flags & kAnswersDevice ? answered_device(other) : other.device();
  return ops::to(self, other.dtype(), device, false, false, std::nullopt);
}

// In its own dtype: the gradient of a conversion converts back. Of a real operand's only the real part is
// meant.
Tensor convert_back(const Tensor& g, const InputMeta& meta) {
  const Tensor part = is_complex(g.dtype()) && !is_complex(meta.dtype) ? ops::real(g) : g;
  return ops::to(part, meta.dtype, meta.device, false, false, std::nullopt);
}

void register_conversions(Table& t) {
  t.op(ops::clone, "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", clone_kernel)
      .elementwise()
      .on_devices()
      .doc("A copy with its own memory.")
      .family(Family::Copy)
      .same_elements()
      .linear()
      .derivative([](Grad g) { return g; });
  t.op(lazy_clone, "_lazy_clone(Tensor self) -> Tensor", lazy_clone_kernel)
      .doc("A clone that shares the tensor's memory until one of the two is written to.")
      .family(Family::Copy)
      .same_elements()
      .linear()
      .derivative([](Grad g) { return g; });
  t.op(ops::to_copy,
       "_to_copy(Tensor self, *, ScalarType? dtype=None, Device? device=None, MemoryFormat? "
       "memory_format=None) -> Tensor",
       to_copy_kernel)
      .elementwise()
      .on_devices()
      .internal()
      .doc("A copy in another dtype, device or layout.")
      .family(Family::Copy)
      .linear()
      .derivative([](Grad g, Shape<0> self) { return convert_back(g, self.meta); });
  t.composite(ops::contiguous,
              "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
              contiguous_body)
      .method_only()
      .same_elements()
      .doc("The tensor itself if it is laid out so, else a copy.");
  t.composite(ops::to,
              "_to(Tensor(a) self, *, ScalarType? dtype=None, Device? device=None, bool non_blocking=False, "
              "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
              to_body)
      .internal()
      .doc("The tensor in another dtype or on another device; itself when nothing changes.");
  t.composite("type_as(Tensor self, Tensor other) -> Tensor", type_as_body)
      .method_only()
      .doc("self in other's dtype, on its device.");
  auto cast = [&](const char* schema,
                  Tensor (*body)(const Call&, const Tensor&, std::optional<MemoryFormat>)) {
    return t.composite(schema, body)
        .method_only()
        .elementwise()
        .doc("The elements in the dtype that the method is named after.");
  };
  cast("float(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Float32>);
  cast("double(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Float64>);
  cast("half(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Float16>);
  cast("bfloat16(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::BFloat16>);
  cast("int(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Int32>);
  cast("long(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Int64>);
  cast("short(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Int16>);
  cast("char(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Int8>);
  cast("byte(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::UInt8>);
  cast("bool(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Bool>)
      .gives_bool();
  cast("chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Complex32>);
  cast("cfloat(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Complex64>);
  cast("cdouble(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cast_body<DType::Complex128>);
}

// What item() asks of a tensor whose class computes elsewhere.
Fn<Scalar(const Tensor& self)> local_scalar;
Scalar local_scalar_kernel(const Call&, const Tensor& self) {
  RL_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  if (!self.has_data()) (void)self.data_ptr();  // says why
  return read_scalar(self);
}

Fn<Tensor(const Tensor& self)> lift_fresh;
Tensor lift_fresh_kernel(const Call&, const Tensor& self) { return self; }

}  // namespace

void register_copy_operators(Table& t) {
  copy_result = copy_result_body;
  copy_of_target = [](const Tensor& target) { return ops::clone(target, std::nullopt); };
  t.op(local_scalar, "_local_scalar_dense(Tensor self) -> Scalar", local_scalar_kernel)
      .on_devices()
      .internal()
      .family(Family::Value)
      .reads_values()
      .not_differentiable("a Python number has no gradient")
      .no_meta("the value of a tensor without data cannot be read")
      .doc("The only element as a number.");
  t.composite(
       "_cast_Long(Tensor self, bool non_blocking=False) -> Tensor",
       +[](const Call&, const Tensor& self, bool non_blocking) {
         return ops::to(self, DType::Int64, std::nullopt, non_blocking, false, std::nullopt);
       })
      .function_only()
      .doc("The tensor in int64.");
  t.op(ops::copy_, "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", copy_kernel)
      .elementwise()
      .on_devices()
      .doc("Writes src, broadcast and converted, into self.")
      .family(Family::Copy)
      .linear()
      .numbers(Numbers::All)
      .node("CopyBackwards")
      .any_device(kAllOperands)
      .derivative([](Grad g, Shape<1> source, Needs need) {
        return Grads{need[0] ? zeros_like(g) : Tensor(), need[1] ? convert_back(g, source.meta) : Tensor()};
      });
  t.op(lift_fresh, "lift_fresh(Tensor(a) self) -> Tensor(a)", lift_fresh_kernel)
      .elementwise()
      .on_devices()
      .internal()
      .family(Family::Copy)
      .same_elements()
      .may_return_input()
      .not_differentiable("the tensor is a constant, just made")
      .doc("A tensor just made from Python data; dispatch modes see it enter here.");
  t.composite("fill.Tensor(Tensor self, Tensor value) -> Tensor", fill_body)
      .function_only()
      .doc("A copy of self with every element set to value.")
      .elementwise()
      .numbers(Numbers::Mixed)
      .one_node()
      .node_of_number(1, "FillBackward0")
      .node("FillBackward1");
  t.composite("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
              fill_diagonal)
      .doc("Sets the diagonal.");
  t.op(ops::fill_, "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", fill_kernel)
      .elementwise()
      .on_devices()
      .doc("Sets every element to value.")
      .family(Family::Copy)
      .linear()
      .numbers(Numbers::Mixed)
      .node_of_number(1, "FillBackward2")
      .node("FillBackward3")
      .derivative([](Grad g, Needs need) {
        return Grads{need[0] ? zeros_like(g) : Tensor(), need[1] ? g : Tensor()};
      })
      .op()
      .is_function = true;
  t.op(ops::zero_, "zero_(Tensor(a!) self) -> Tensor(a!)", zero_kernel)
      .elementwise()
      .on_devices()
      .doc("Sets every element to zero.")
      .family(Family::Copy)
      .linear()
      .derivative([](Grad g) { return zeros_like(g); })
      .op()
      .is_function = true;
  register_conversions(t);
}

}  // namespace rushlight
