#include "transform/quantized.h"

#include "dispatch/operands.h"
#include "ops/copy.h"
#include "ops/quantized.h"
#include "ops/view.h"
#include "transform/replaced.h"

namespace rushlight {
namespace {

bool of_special_dtype(const Tensor& t) { return is_special(t.dtype()); }

void run(const Frame& frame, const Replaced& with, const Tensor* outs, bool inplace, Results& results) {
  Frame inner{frame.op, with.args(), outs, inplace, 0, results};
  inner.proceed();
}

Quantizer quantizer_for(const Op& op, const Tensor& operand, const Tensor& integers, const Tensor& result) {
  const Quantizer& q = quantizer_of(operand);
  if (!q.per_channel() || op.family == Family::Copy) return q;
  if (op.family == Family::View && result->storage == integers->storage)
    return quantizer_of_view(*operand.impl(), result.sizes(), result.strides(), result->offset);
  RL_FAIL(
      "Setting strides is possible only on uniformly quantized tensor: ", op.name(),
      "() takes tensors with one scale for all elements; this one has a scale for each index of dimension ",
      q.axis);
}

// Shapes that an operator set in place.
void take_geometry(const Tensor& target, const Tensor& alias) {
  if (target->storage == alias->storage && target->offset == alias->offset &&
      target.sizes() == alias.sizes() && target.strides() == alias.strides())
    return;
  if (target->quantizer)
    *target->quantizer = quantizer_of_view(*target.impl(), alias.sizes(), alias.strides(), alias->offset);
  target->storage = alias->storage;
  target->offset = alias->offset;
  target->set_layout(alias.sizes(), alias.strides());
}

// On integers that lie where the operands do.
void on_integers(Frame& frame, const Tensor& first) {
  const bool quantized = is_quantized(first);
  const bool packed = integers_per_byte(first.dtype()) > 1 && frame.op.family == Family::View;
  const auto plain = [&](const Tensor& t) {
    if (packed) return alias_as(t, DType::UInt8);  // of which no element is read
    return is_quantized(t) ? integers_of(t) : alias_as(t, t.itemsize() == 2 ? DType::UInt16 : DType::UInt8);
  };
  const Replaced with(frame, of_special_dtype, plain);
  const Tensor integers = with.pairs().front().second;
  for (const auto& [t, alias] : with.pairs())
    RL_CHECK(t.dtype() == first.dtype(), frame.op.name(), "(): expected operands of one dtype, but got ",
             describe(first), " and ", describe(t));
  run(frame, with, with.outs(), frame.inplace, frame.results);
  each_result(frame.results, [&](Tensor& result) {
    for (const auto& [t, alias] : with.pairs())
      if (result.is_same(alias)) {
        take_geometry(t, alias);
        result = t;
        return;
      }
    if (result.dtype() != integers.dtype()) return;  // positions, truth values
    if (packed && !(result->offset == 0 && result.numel() == first.numel() && result.is_contiguous()))
      RL_NOT_IMPLEMENTED(frame.op.name(), "(): views of a part of a torch.", dtype_name(first.dtype()),
                         " tensor are not supported: its bytes hold several integers; use .dequantize()");
    result = quantized
                 ? with_quantizer(result, first.dtype(), quantizer_for(frame.op, first, integers, result))
                 : alias_as(result, first.dtype());
  });
  for (const auto& [t, alias] : with.pairs()) take_geometry(t, alias);
}

void on_numbers(Frame& frame, const Tensor& first, bool requantize) {
  const Replaced with(frame, of_special_dtype, [](const Tensor& t) { return dequantize_from(t); });
  if (!requantize) {
    for (int i = 0; frame.out && i < target_count(frame); ++i)
      RL_CHECK(!is_quantized(frame.out[i]), "The 'out' tensor must have dtype 'torch.bool', but ",
               frame.op.name(), "() was given ", describe(frame.out[i]));
    return run(frame, with, frame.out, frame.inplace, frame.results);
  }
  RL_CHECK(!quantizer_of(first).per_channel(),
           "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false. (", frame.op.name(),
           "() takes tensors with one scale for all elements)");
  run(frame, with, nullptr, false, frame.results);
  each_result(frame.results, [&](Tensor& result) {
    if (result.dtype() == DType::Float32) result = quantize_as(result, first.dtype(), quantizer_of(first));
  });
}

// Results of a rule that made new tensors, into the targets of out= or of a call in place.
void store(Frame& frame) {
  for (int i = 0; frame.out && i < target_count(frame); ++i) {
    const Tensor& target = frame.out[i];
    Tensor& result = frame.results.tensors[i];
    if (result.is_same(target)) {
      target.bump_version(&frame.op.schema.name);
    } else {
      target.check_writable(frame.op.name());
      RL_CHECK(is_quantized(target) == is_quantized(result) || is_quantized(target), frame.op.name(),
               "(): the result is ", describe(result), " and can't be written to ", describe(target));
      if (target.sizes() != result.sizes()) {
        RL_CHECK(!frame.inplace, "output with shape ", target.sizes(), " doesn't match the broadcast shape ",
                 result.sizes());
        ops::resize_(target, result.sizes(), std::nullopt);
      }
      ops::copy_(target, result, false);
      result = target;
    }
  }
}

[[noreturn, gnu::cold]] void refuse(const Op& op, const Tensor& first) {
  if (!is_quantized(first)) refuse_dtype(op.name(), first.dtype());
  RL_NOT_IMPLEMENTED("Could not run 'aten::", op.name(), "' with arguments from the 'QuantizedCPU' backend. ",
                     "This could be because the operator doesn't exist for this backend: it computes with "
                     "numbers, not with integers that stand for them; use .dequantize() before it");
}

}  // namespace

bool has_special_dtype(const Frame& frame) {
  bool special = false;
  each_operand(frame, [&](const Tensor& t) { special |= is_special(t.dtype()); });
  return special;
}

void special_dtype_call(Frame& frame) {
  const Op& op = frame.op;
  Tensor first;  // among the quantised operands, if there is one
  each_operand(frame, [&](const Tensor& t) {
    if (is_special(t.dtype()) && (!first.defined() || (is_quantized(t) && !is_quantized(first)))) first = t;
  });
  // An operator whose own kernel is its rule takes operands of all types.
  if (op.quantized_kernel && (is_quantized(first) || op.quantized_kernel == op.kernel[0])) {
    op.trampoline(op.quantized_kernel, Call{op, frame.out, frame.inplace}, frame.args, frame.results);
    return store(frame);  // writes through public operators count themselves
  }
  if (op.family == Family::Composite) return frame.proceed();
  switch (op.traits.on_quantized) {
    case OnQuantized::Integers:
      return on_integers(frame, first);
    case OnQuantized::Numbers:
    case OnQuantized::Requantized:
      if (!is_quantized(first)) refuse(op, first);
      on_numbers(frame, first, op.traits.on_quantized == OnQuantized::Requantized);
      if (op.traits.on_quantized == OnQuantized::Requantized) store(frame);
      return;
    default:
      refuse(op, first);
  }
}

}  // namespace rushlight
