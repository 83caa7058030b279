#include "ops/pointwise_family.h"

#include "cpu/iterator.h"
#include "cpu/pointwise.h"

namespace rushlight::pointwise {

using cpu::Formula;
using Inputs = std::initializer_list<const Tensor*>;

namespace {

std::span<const Tensor* const> span_of(Inputs inputs) { return {inputs.begin(), inputs.size()}; }

Dims common_shape(Inputs inputs) {
  Dims shape;
  bool first = true;
  for (const Tensor* t : inputs) {
    if (first) shape = t->sizes().dims();
    else if (t->sizes() != IntList(shape)) shape = broadcast_shapes(shape, t->sizes());
    first = false;
  }
  return shape;
}

Device common_device(Inputs inputs) {
  for (const Tensor* t : inputs)
    if (!t->is_cpu()) return t->device();
  return {};
}

DType compute_type(const Op& op, Formula f, DType common) {
  const cpu::LoopRow& row = cpu::row(f);
  if (!row.supported[static_cast<int>(common)])
    RL_NOT_IMPLEMENTED("\"", op.name(), "_cpu\" not implemented for '", legacy_name(common), "'");
  return row.compute[static_cast<int>(common)];
}

// Where the straight path may write: nowhere yet, or over the first operand.
bool straight_target(const Call& call, const Tensor& self) {
  return !call.out || (call.inplace && call.out->is_same(self));
}

constexpr uint32_t kUnusual = kNotCpu | kWrappedNumber;

const PointwiseSpec& spec_of(const Call& call) { return *static_cast<const PointwiseSpec*>(call.op.family_data); }

}  // namespace

const PointwiseSpec* make_spec(Formula formula, Promote promote) {
  auto* spec = new PointwiseSpec{formula, promote};
  const cpu::LoopRow& row = cpu::row(formula);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    spec->result[i] = cpu::result_type_of(formula, t);
    const bool keeps = promote == Promote::Same || (promote == Promote::NotBool && !is_bool(t)) || !is_integral_or_bool(t);
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

void check_overlap(const Tensor& out, Inputs inputs) {
  RL_CHECK(!has_internal_overlap(out),
           "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
           "Please clone() the tensor before performing the operation.");
  for (const Tensor* t : inputs)
    RL_CHECK((*t)->storage.get() != out->storage.get() || memory_overlap(out, *t) != Overlap::Partial,
             "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
             "location. Please clone() the tensor before performing the operation.");
}

Tensor result(const Call& call, IntList shape, DType dtype, Inputs inputs) {
  if (call.out) {
    const Tensor& out = *call.out;
    prepare_output(call.op, out, shape, dtype, call.inplace);
    check_overlap(out, inputs);
    return out;
  }
  const Device device = common_device(inputs);
  const Dims strides = cpu::pointwise_strides(shape, span_of(inputs));
  return strides.empty() ? empty_tensor(shape, dtype, device) : empty_strided_tensor(shape, strides, dtype, device);
}

Tensor compute(const Call& call, Formula formula, DType common, Inputs inputs, std::span<const Scalar> parameters) {
  const DType type = compute_type(call.op, formula, common);
  const Tensor out = result(call, common_shape(inputs), cpu::result_type_of(formula, common), inputs);
  if (out.is_cpu()) cpu::run_formula(formula, type, out, span_of(inputs), parameters);
  return out;
}

Tensor promoted(const Call& call, const PointwiseSpec& spec, Inputs inputs, std::span<const Scalar> parameters) {
  return compute(call, spec.formula, common_type(spec.promote, inputs), inputs, parameters);
}

Tensor unary_with(const Call& call, const PointwiseSpec& spec, const Tensor& self, std::span<const Scalar> parameters) {
  const int type = static_cast<int>(self.dtype());
  if (spec.direct[type] && self.is_contiguous() && !(self->flags & kNotCpu) && straight_target(call, self)) {
    const Tensor out = call.out && spec.result[type] == self.dtype() ? self : empty_tensor(self.sizes(), spec.result[type]);
    char* data[] = {out.data<char>(), self.data<char>()};
    const cpu::PackedParameters packed(parameters, self.dtype());
    cpu::run_linear(spec.formula, self.dtype(), data, 0, out.numel(), packed.data());
    return out;
  }
  return promoted(call, spec, {&self}, parameters);
}

Tensor binary_with(const Call& call, const PointwiseSpec& spec, const Tensor& a, const Tensor& b,
                   std::span<const Scalar> parameters) {
  const DType dtype = a.dtype();
  const int type = static_cast<int>(dtype);
  if (spec.direct[type] && a.is_contiguous() && !(a->flags & kUnusual) && straight_target(call, a)) {
    const bool alike = b.dtype() == dtype && b.is_contiguous() && !(b->flags & kUnusual) && a->sizes == b->sizes;
    const bool number = !alike && b.dim() == 0 && a.dim() > 0 && !(b->flags & kNotCpu) && result_type(a, b) == dtype;
    if (alike || number) {
      const Tensor out = call.out && spec.result[type] == dtype ? a : empty_tensor(a.sizes(), spec.result[type]);
      alignas(16) char value[16];
      if (number) cpu::cast_loop(dtype, b.dtype())(value, 16, b.data<char>(), 0, 1);
      char* data[] = {out.data<char>(), a.data<char>(), number ? value : b.data<char>()};
      const cpu::PackedParameters packed(parameters, dtype);
      cpu::run_linear(spec.formula, dtype, data, number ? 2 : 0, out.numel(), packed.data());
      return out;
    }
  }
  return promoted(call, spec, {&a, &b}, parameters);
}

Tensor unary(const Call& call, const Tensor& self) { return unary_with(call, spec_of(call), self, {}); }

Tensor binary(const Call& call, const Tensor& self, const Tensor& other) {
  return binary_with(call, spec_of(call), self, other);
}

}  // namespace rushlight::pointwise
