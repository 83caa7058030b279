#include "ops/pointwise_family.h"

#include <optional>
#include <vector>

#include "core/deferred_layout.h"
#include "cpu/copy.h"
#include "cpu/iterator.h"
#include "cpu/pointwise.h"
#include "ops/copy.h"
#include "ops/device_loops.h"

namespace rushlight::pointwise {

using cpu::Formula;
using Inputs = std::initializer_list<const Tensor*>;

namespace {

std::span<const Tensor* const> span_of(Inputs inputs) { return {inputs.begin(), inputs.size()}; }

Dims common_shape(Inputs inputs) {
  Dims shape;
  bool first = true;
  for (const Tensor* t : inputs) {
    if (first)
      shape = t->sizes().dims();
    else if (t->sizes() != IntList(shape))
      shape = broadcast_shapes(shape, t->sizes());
    first = false;
  }
  return shape;
}

Device common_device(Inputs inputs) {
  for (const Tensor* t : inputs)
    if (!t->is_cpu()) return t->device();
  return {};
}

// Complex numbers have no order: that is the program's mistake, not a kernel that lacks.
bool is_ordering(Formula f) {
  return f == Formula::Maximum || f == Formula::Minimum || f == Formula::Fmax || f == Formula::Fmin;
}

// Whether elements of `out` are other elements of an input, so that reads would see what was written. PyTorch
// refuses that where the memory has no gaps; elsewhere it is computed apart.
bool must_compute_apart(const Tensor& out, Inputs inputs) {
  RL_CHECK(!has_internal_overlap(out),
           "unsupported operation: more than one element of the written-to tensor refers to a single memory "
           "location. "
           "Please clone() the tensor before performing the operation.");
  bool apart = false;
  for (const Tensor* t : inputs) {
    if ((*t)->storage.get() != out->storage.get() || memory_overlap(out, *t) != Overlap::Partial) continue;
    RL_CHECK(!is_non_overlapping_and_dense(out) || !is_non_overlapping_and_dense(*t),
             "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
             "single memory "
             "location. Please clone() the tensor before performing the operation.");
    apart = true;
  }
  return apart;
}

DType compute_type(const Call& call, Formula f, DType common, Inputs inputs) {
  const cpu::LoopRow& row = cpu::row(f);
  if (!row.supported[static_cast<int>(common)]) common_shape(inputs);  // shapes that don't fit are told first
  RL_CHECK(!is_complex(common) || !is_ordering(f), call.op.name(), " not implemented for complex tensors.");
  if (!row.supported[static_cast<int>(common)]) {
    // PyTorch finds first that the result does not fit where it shall go.
    if (call.out) {
      prepare_output(call.op, *call.out, call.inplace ? common_shape(inputs) : Dims((*call.out)->sizes),
                     result_type_of(f, common), call.inplace);
      must_compute_apart(*call.out, inputs);
    }
    RL_NOT_IMPLEMENTED("\"", call.op.name(), "_cpu\" not implemented for '", legacy_name(common), "'");
  }
  return row.compute[static_cast<int>(common)];
}

// Where the straight path may write: nowhere yet, or over the first operand.
bool straight_target(const Call& call, const Tensor& self) {
  return !call.out || (call.inplace && call.out->is_same(self));
}

constexpr uint32_t kUnusual = kNotCpu | kWrappedNumber;

const PointwiseSpec& spec_of(const Call& call) {
  return *static_cast<const PointwiseSpec*>(call.op.family_data);
}

// Whether an operand may have a deferred layout: none with memory has.
bool maybe_deferred(const Tensor& t) { return !t.has_data(); }
bool maybe_deferred(Inputs inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Tensor* t) { return maybe_deferred(*t); });
}

Tensor with_channels_last(const Tensor& t) {
  const Tensor image = empty_tensor(t.sizes(), t.dtype(), t.device(), MemoryFormat::ChannelsLast);
  cpu::copy(image, t);
  return image;
}

// What the kernel sees instead of operands with deferred layouts; nothing where it must compute in plain
// layout.
struct ImageOperands {
  std::vector<Tensor> tensors;
  Tensor out;
};
std::optional<ImageOperands> image_operands(const Call& call, Inputs inputs) {
  const auto deferred =
      std::find_if(inputs.begin(), inputs.end(), [](const Tensor* t) { return has_deferred_layout(*t); });
  if (deferred == inputs.end() || common_shape(inputs) != (**deferred)->sizes) return std::nullopt;
  const IntList sizes = (*deferred)->sizes();
  ImageOperands found;
  if (call.out) {
    if (!has_deferred_layout(*call.out) || call.out->sizes() != sizes) return std::nullopt;
    found.out = writable_image_of(*call.out);
  }
  for (const Tensor* t : inputs) {
    const bool whole = t->sizes() == sizes && !has_internal_overlap(*t);  // not expanded
    if (whole && has_deferred_layout(*t))
      found.tensors.push_back(image_of(*t));
    else if (!t->has_data() || (whole && !t->is_contiguous()))
      return std::nullopt;  // a part of a deferred image, or strides that the user chose
    else
      found.tensors.push_back(whole ? with_channels_last(*t) : *t);
  }
  return found;
}

// f(call, operands) on images, the layout of whose result is deferred in turn. Note [Deferred layout
// conversion]
template <class F>
std::optional<Tensor> compute_on_images(const Call& call, Inputs inputs, F&& f) {
  const auto operands = image_operands(call, inputs);
  if (!operands) return std::nullopt;
  const Call inner{call.op, call.out ? &operands->out : nullptr, call.inplace};
  const Tensor result = f(inner, operands->tensors);
  if (call.out) return result.is_same(operands->out) ? *call.out : result;
  return defer_layout(result.is_contiguous(MemoryFormat::ChannelsLast) ? result : with_channels_last(result));
}

}  // namespace

const PointwiseSpec* make_spec(Formula formula, Promote promote) {
  auto* spec = new PointwiseSpec{formula, promote};
  const cpu::LoopRow& row = cpu::row(formula);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    spec->result[i] = result_type_of(formula, t);
    const bool keeps =
        promote == Promote::Same || (promote == Promote::NotBool && !is_bool(t)) || !is_integral_or_bool(t);
    if (promote != Promote::Logical && keeps) spec->direct[i] = row.loop[i];
  }
  return spec;
}

DType float_type(DType t) { return is_integral_or_bool(t) ? get_default_dtype() : t; }

DType common_type(Promote promote, Inputs inputs) {
  if (promote == Promote::Logical) return DType::Bool;
  Promotion promotion;
  for (const Tensor* t : inputs) promotion.add(*t);
  const DType type = promotion.result();
  return promote == Promote::Float ? float_type(type) : type;
}

Tensor result(const Call& call, IntList shape, DType dtype, Inputs inputs) {
  if (call.out) {
    const Tensor& out = *call.out;
    const bool resized = out.sizes() != shape;
    prepare_output(call.op, out, shape, dtype, call.inplace);
    if (resized)  // as a new result would lie in memory
      if (const Dims strides = cpu::pointwise_strides(shape, span_of(inputs)); !strides.empty())
        out->set_layout(shape, strides);
    if (!must_compute_apart(out, inputs)) return out;
  }
  const Device device = common_device(inputs);
  const Dims strides = cpu::pointwise_strides(shape, span_of(inputs));
  return strides.empty() ? empty_tensor(shape, dtype, device)
                         : empty_strided_tensor(shape, strides, dtype, device);
}

Tensor compute(const Call& call, Formula formula, DType common, Inputs inputs,
               std::span<const Scalar> parameters) {
  if (maybe_deferred(inputs)) [[unlikely]]
    if (auto on_images =
            compute_on_images(call, inputs, [&](const Call& inner, const std::vector<Tensor>& t) {
              return inputs.size() == 1 ? compute(inner, formula, common, {&t[0]}, parameters)
                     : inputs.size() == 2
                         ? compute(inner, formula, common, {&t[0], &t[1]}, parameters)
                         : compute(inner, formula, common, {&t[0], &t[1], &t[2]}, parameters);
            }))
      return *on_images;
  const DType type = compute_type(call, formula, common, inputs);
  const Tensor out = result(call, common_shape(inputs), result_type_of(formula, common), inputs);
  loops::formula(formula, type, out, span_of(inputs), parameters);
  return out;
}

Tensor promoted(const Call& call, const PointwiseSpec& spec, Inputs inputs,
                std::span<const Scalar> parameters) {
  return compute(call, spec.formula, common_type(spec.promote, inputs), inputs, parameters);
}

Tensor unary_with(const Call& call, const PointwiseSpec& spec, const Tensor& self,
                  std::span<const Scalar> parameters) {
  if (maybe_deferred(self)) [[unlikely]]
    if (auto on_images =
            compute_on_images(call, {&self}, [&](const Call& inner, const std::vector<Tensor>& t) {
              return unary_with(inner, spec, t[0], parameters);
            }))
      return *on_images;
  const int type = static_cast<int>(self.dtype());
  if (spec.direct[type] && self.is_contiguous() && !(self->flags & kNotCpu) && straight_target(call, self)) {
    const Tensor out =
        call.out && spec.result[type] == self.dtype() ? self : empty_tensor(self.sizes(), spec.result[type]);
    char* data[] = {out.data<char>(), self.data<char>()};
    const cpu::PackedParameters packed(parameters, self.dtype());
    cpu::run_linear(spec.formula, self.dtype(), data, 0, out.numel(), packed.data());
    return out;
  }
  return promoted(call, spec, {&self}, parameters);
}

namespace {

// Whether `number` is one value that leaves the type and shape of the result to `t`.
bool is_number_beside(const Tensor& number, const Tensor& t) {
  return number.dim() == 0 && (t.dim() > 0 || number.is_wrapped_number()) && !(number->flags & kNotCpu) &&
         result_type(t, number) == t.dtype();
}

// PyTorch multiplies and divides halves by a number in float; before all else it rounds the number.
bool takes_wide_number(const PointwiseSpec& spec) {
  return spec.formula == Formula::Mul || spec.formula == Formula::Div;
}
bool is_half(const Tensor& t) { return t.dtype() == DType::Float16 || t.dtype() == DType::BFloat16; }

// Contiguous memory of one dtype, or such memory and a number on the left (scalars 1) or right (2).
Tensor straight_binary(const Call& call, const PointwiseSpec& spec, const Tensor& t, const Tensor& other,
                       unsigned scalars, std::span<const Scalar> parameters) {
  const DType dtype = t.dtype(), result = spec.result[static_cast<int>(dtype)];
  const Tensor out = call.out && result == dtype ? t : empty_tensor(t.sizes(), result);
  alignas(16) char value[16];
  char* data[] = {out.data<char>(), t.data<char>(), other.data<char>()};
  if (scalars) {
    cpu::cast_loop(dtype, other.dtype())(value, 16, other.data<char>(), 0, 1);
    data[2] = value;
    if (scalars == 1) std::swap(data[1], data[2]);
  }
  if (parameters.empty()) {
    cpu::run_linear(spec.formula, dtype, data, scalars, out.numel(), nullptr);
  } else {
    const cpu::PackedParameters packed(parameters, dtype);
    cpu::run_linear(spec.formula, dtype, data, scalars, out.numel(), packed.data());
  }
  return out;
}

}  // namespace

Tensor binary_with(const Call& call, const PointwiseSpec& spec, const Tensor& a, const Tensor& b,
                   std::span<const Scalar> parameters) {
  if (maybe_deferred(a) || maybe_deferred(b)) [[unlikely]]
    if (auto on_images =
            compute_on_images(call, {&a, &b}, [&](const Call& inner, const std::vector<Tensor>& t) {
              return binary_with(inner, spec, t[0], t[1], parameters);
            }))
      return *on_images;
  auto plain = [&](const Tensor& t) {
    return (t->flags & (kContiguous | kUnusual)) == kContiguous && spec.direct[static_cast<int>(t.dtype())];
  };
  if (plain(a) && straight_target(call, a) &&
      (!call.out || a->storage.get() != b->storage.get() || a.is_same(b))) {
    if (a.dtype() == b.dtype() && plain(b) && a->sizes == b->sizes)
      return straight_binary(call, spec, a, b, 0, parameters);
    if (is_number_beside(b, a) && !(is_half(a) && takes_wide_number(spec)))
      return straight_binary(call, spec, a, b, 2, parameters);
  }
  if (!call.out && plain(b) && is_number_beside(a, b) && !(is_half(b) && takes_wide_number(spec)))
    return straight_binary(call, spec, b, a, 1, parameters);
  if ((is_half(a) || is_half(b)) && a.dtype() != b.dtype() && !takes_wide_number(spec)) {
    const Tensor right = is_number_beside(b, a) ? to_dtype(b, a.dtype()) : b;
    const Tensor left = is_number_beside(a, b) ? to_dtype(a, b.dtype()) : a;
    return promoted(call, spec, {&left, &right}, parameters);
  }
  return promoted(call, spec, {&a, &b}, parameters);
}

void check_same_out(const Call& call, const Tensor& self) {
  RL_CHECK(!call.out || call.inplace || call.out->dtype() == self.dtype(), "Found dtype ",
           legacy_name(call.out->dtype()), " but expected ", legacy_name(self.dtype()), " (", call.op.name(),
           ")");
}

Tensor unary(const Call& call, const Tensor& self) {
  const PointwiseSpec& spec = spec_of(call);
  if (spec.promote == Promote::Same && spec.result[static_cast<int>(self.dtype())] == self.dtype())
    check_same_out(call, self);
  return unary_with(call, spec, self, {});
}

Tensor binary(const Call& call, const Tensor& self, const Tensor& other) {
  return binary_with(call, spec_of(call), self, other);
}

}  // namespace rushlight::pointwise
