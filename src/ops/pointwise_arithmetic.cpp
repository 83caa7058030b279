// + - * / and their relatives, minimum and maximum, clamping, interpolation.
#include "core/parallel.h"
#include "cpu/pointwise.h"
#include "ops/copy.h"
#include "ops/epilogue.h"
#include "ops/factory.h"
#include "ops/pointwise_family.h"
#include "ops/register.h"
#include "ops/register_alias.h"
#include "ops/view.h"
#include "ops/zeros_like.h"

namespace rushlight {
namespace {

using cpu::Formula;
using pointwise::make_spec;

Tensor scaled(const Tensor& g, const Scalar& factor) {
  if (factor == Scalar(1)) return g;
  return g * (factor.is_complex() ? Scalar(std::conj(factor.to<complex128>())) : factor);
}

void check_alpha(DType type, const Scalar& alpha) {
  RL_CHECK(!alpha.is_bool() || is_bool(type), "Boolean alpha only supported for Boolean results.");
  RL_CHECK(is_floating(type) || is_complex(type) || alpha.is_integral() || alpha.is_bool(),
           "For integral input tensors, argument alpha must not be a floating point number.");
  RL_CHECK(is_complex(type) || !alpha.is_complex(),
           "For non-complex input tensors, argument alpha must not be a complex number.");
}

Tensor scaled_binary(const Call& call, const PointwiseSpec* plain, const PointwiseSpec* with_alpha,
                     const Tensor& a, const Tensor& b, const Scalar& alpha) {
  if (alpha.kind() == Scalar::Kind::Int && alpha.to_int() == 1) [[likely]]
    return pointwise::binary_with(call, *plain, a, b);
  check_alpha(result_type(a, b), alpha);
  return pointwise::binary_with(call, *with_alpha, a, b, {&alpha, 1});
}

Tensor add_kernel(const Call& call, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  static const PointwiseSpec *plain = make_spec(Formula::Add, Promote::Same),
                             *full = make_spec(Formula::AddScaled, Promote::Same);
  if (!self.has_data() && !other.has_data() && alpha.kind() == Scalar::Kind::Int && alpha.to_int() == 1)
    if (const Tensor deferred = defer_add(call, self, other); deferred.defined()) return deferred;
  return scaled_binary(call, plain, full, self, other, alpha);
}

void check_no_bool(const Tensor& a, const Tensor& b) {
  RL_CHECK(!is_bool(a.dtype()) || !is_bool(b.dtype()),
           "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
           "`logical_xor()` operator "
           "instead.");
  RL_CHECK(!is_bool(a.dtype()) && !is_bool(b.dtype()),
           "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert "
           "a mask, use the "
           "`~` or `logical_not()` operator instead.");
}

Tensor sub_kernel(const Call& call, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  static const PointwiseSpec *plain = make_spec(Formula::Sub, Promote::Same),
                             *full = make_spec(Formula::SubScaled, Promote::Same);
  if (is_bool(self.dtype()) || is_bool(other.dtype())) check_no_bool(self, other);
  return scaled_binary(call, plain, full, self, other, alpha);
}

Tensor rsub_body(const Call&, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return ops::sub(other, self, alpha);
}

// --- division

// Integer division by zero is an error before any element is written.
void check_divisor(const Tensor& a, const Tensor& b, DType common) {
  if (is_integral_or_bool(common) && b.is_cpu() && a.numel() && cpu::contains_zero(b))
    RL_FAIL("ZeroDivisionError");
}

bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

// An operand of a division whose quotient is made whole. What is not of a half type is rounded to it first,
// as in PyTorch: the result jumps where the quotient is whole.
Tensor rounded_operand(const Tensor& t, DType common) {
  return is_half(common) && t.dtype() != common ? to_dtype(t, common) : t;
}
// The same for a divisor that stays in float where it is a number.
Tensor rounded_divisor(const Tensor& t, DType common) {
  return t.dim() == 0 ? t : rounded_operand(t, common);
}

Tensor rounded_division(const Call& call, Formula floating, Formula integer, const Tensor& a, const Tensor& b,
                        Tensor (*divisor)(const Tensor&, DType) = rounded_operand) {
  const DType common = pointwise::common_type(Promote::Same, {&a, &b});
  check_divisor(a, b, common);
  const Tensor dividend = rounded_operand(a, common), by = divisor(b, common);
  return pointwise::compute(call, is_integral_or_bool(common) ? integer : floating, common, {&dividend, &by});
}

Tensor floor_divide_kernel(const Call& call, const Tensor& self, const Tensor& other) {
  return rounded_division(call, Formula::FloorDivide, Formula::FloorDivideInteger, self, other,
                          rounded_divisor);
}
Tensor remainder_kernel(const Call& call, const Tensor& self, const Tensor& other) {
  return rounded_division(call, Formula::Remainder, Formula::RemainderInteger, self, other);
}
Tensor fmod_kernel(const Call& call, const Tensor& self, const Tensor& other) {
  return rounded_division(call, Formula::Fmod, Formula::FmodInteger, self, other);
}

Tensor div_mode_kernel(const Call& call, const Tensor& self, const Tensor& other,
                       std::optional<std::string_view> mode) {
  static const PointwiseSpec* exact = make_spec(Formula::Div, Promote::Float);
  if (!mode) return pointwise::binary_with(call, *exact, self, other);
  if (*mode == "floor") return floor_divide_kernel(call, self, other);
  RL_CHECK(*mode == "trunc", "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
           *mode, "'");
  const DType common = pointwise::common_type(Promote::Same, {&self, &other});
  check_divisor(self, other, common);
  if (is_integral_or_bool(common))
    return pointwise::compute(call, Formula::TruncDivideInteger, common, {&self, &other});
  // Quotients of half types are rounded to that type before they are cut, but for those by a number.
  const Scalar spacing[] = {other.dim() == 0 ? 0.0 : pointwise::spacing_kind(common)};
  const Tensor dividend = rounded_operand(self, common), by = rounded_divisor(other, common);
  return pointwise::compute(call, Formula::TruncDivide, common, {&dividend, &by}, spacing);
}

Tensor div_self_grad(const Tensor& g, const Tensor& b) { return g / conj_of(b); }
Tensor div_other_grad(const Tensor& g, const Tensor& a, const Tensor& b) { return -g * conj_of((a / b) / b); }

// --- minimum, maximum, clamp

// Where both operands are equal each gets half of the gradient, beside NaN all of it. `beats` orders them.
Grads extremum_grads(const Tensor& g, const Tensor& a, const Tensor& b,
                     const Fn<Tensor(const Tensor&, const Tensor&)>& beats, Needs need) {
  Grads grads{Tensor(), Tensor()};
  const Tensor half = where(ops::eq(a, b), g / 2, g);
  if (need[0]) grads[0] = masked_fill(half, beats(b, a), 0);
  if (need[1]) grads[1] = masked_fill(half, beats(a, b), 0);
  return grads;
}

void check_clamped_type(DType type) {
  if (is_complex(type)) RL_NOT_IMPLEMENTED("clamp is not supported for complex types");
}

DType clamp_type(const Tensor& self, std::initializer_list<OptScalar> bounds) {
  check_clamped_type(self.dtype());
  Promotion promotion;
  promotion.add(self);
  for (const OptScalar& b : bounds) {
    if (!b) continue;
    RL_CHECK(!b->is_complex(), "clamp is not supported for complex types");
    promotion.add(*b);
  }
  return promotion.result();
}

// A bound in the dtype that is clamped; wide unsigned numbers have no room for negative ones.
Scalar bound_in(DType type, const Scalar& bound) {
  const bool wide = type == DType::UInt16 || type == DType::UInt32 || type == DType::UInt64;
  if (wide && !bound.is_complex() && bound.to_double() < 0) return Scalar(0);
  bound.check_fits(type);
  return bound;
}

Tensor clamp_kernel(const Call& call, const Tensor& self, const OptScalar& low, const OptScalar& high) {
  RL_CHECK(low || high, "torch.clamp: At least one of 'min' or 'max' must not be None");
  const DType type = clamp_type(self, {low, high});
  if (is_bool(type)) RL_NOT_IMPLEMENTED("\"clamp_scalar_cpu\" not implemented for 'Bool'");
  const Scalar both[] = {bound_in(type, low ? *low : *high), bound_in(type, high ? *high : *low)};
  if (low && high) return pointwise::compute(call, Formula::Clamp, type, {&self}, both);
  return pointwise::compute(call, low ? Formula::ClampMin : Formula::ClampMax, type, {&self}, {both, 1});
}
// A single bound alone is refused as a type without a kernel.
void check_bound(const Scalar& bound) {
  if (bound.is_complex()) check_clamped_type(DType::Complex64);
}
Tensor clamp_min_kernel(const Call& call, const Tensor& self, const Scalar& low) {
  check_bound(low);
  return clamp_kernel(call, self, low, std::nullopt);
}
Tensor clamp_max_kernel(const Call& call, const Tensor& self, const Scalar& high) {
  check_bound(high);
  return clamp_kernel(call, self, std::nullopt, high);
}

// Bounds that lie in memory as what they bound: tile by tile, so that the second formula finds in the cache
// what the first one left. Undefined where that does not serve.
Tensor clamp_by_tiles(const Tensor& self, const Tensor& low, const Tensor& high) {
  const auto type = static_cast<size_t>(self.dtype());
  const cpu::Loop raise = cpu::row(Formula::Maximum).loop[type],
                  lower = cpu::row(Formula::Minimum).loop[type];
  const auto serves = [&](const Tensor& t) { return t.is_contiguous() && t.sizes() == self.sizes(); };
  if (!raise || !lower || !serves(self) || !serves(low) || !serves(high)) return {};
  const Tensor result = empty_tensor(self.sizes(), self.dtype());
  const auto item = static_cast<int64_t>(element_size(self.dtype()));
  parallel_for(0, self.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
    constexpr int64_t kTile = 2048;
    for (int64_t i = begin; i < end; i += kTile) {
      const auto at = [&](const Tensor& t) { return t.data<char>() + i * item; };
      char* const raised[] = {at(result), at(self), at(low)};
      char* const lowered[] = {at(result), at(result), at(high)};
      raise(raised, 0, std::min(kTile, end - i), nullptr);
      lower(lowered, 0, std::min(kTile, end - i), nullptr);
    }
  });
  return result;
}
Tensor clamp_tensor_kernel(const Call& call, const Tensor& self, const Tensor& low, const Tensor& high) {
  RL_CHECK(low.defined() || high.defined(), "torch.clamp: At least one of 'min' or 'max' must not be None");
  Promotion promotion;
  for (const Tensor* t : {&self, &low, &high}) promotion.add(*t);
  const DType type = promotion.result();
  if (call.out) prepare_output(call.op, *call.out, call.out->sizes(), type, call.inplace);
  check_clamped_type(type);
  if (!high.defined()) return pointwise::compute(call, Formula::Maximum, type, {&self, &low});
  if (!low.defined()) return pointwise::compute(call, Formula::Minimum, type, {&self, &high});
  const bool alike = is_floating(type) && self.dtype() == type && low.dtype() == type && high.dtype() == type;
  if (alike && !call.out && self.is_cpu()) {
    if (const Tensor result = clamp_by_tiles(self, low, high); result.defined()) return result;
    // Two passes of vectors, where compilers make none of one.
    const Tensor raised = pointwise::compute(call, Formula::Maximum, type, {&self, &low});
    return pointwise::compute(call, Formula::Minimum, type, {&raised, &high});
  }
  return pointwise::compute(call, Formula::ClampTensor, type, {&self, &low, &high});
}
// In place, that the result does not fit is told first.
void check_clamped_in_place(const Call& call, const Tensor& self, const Tensor& bound) {
  if (call.inplace) prepare_output(call.op, self, self.sizes(), result_type(self, bound), true);
}
Tensor clamp_min_tensor_body(const Call& call, const Tensor& self, const Tensor& low) {
  check_clamped_in_place(call, self, low);
  return ops::clamp_tensor(self, low, Tensor());
}
Tensor clamp_max_tensor_body(const Call& call, const Tensor& self, const Tensor& high) {
  check_clamped_in_place(call, self, high);
  return ops::clamp_tensor(self, Tensor(), high);
}

// The gradient of self passes where it lies within the bounds, those of the bounds where they took its place.
Grads clamp_tensor_grads(const Tensor& g, const Tensor& x, const Tensor& low, const Tensor& high,
                         Needs need) {
  Grads grads{Tensor(), Tensor(), Tensor()};
  const Tensor zero = wrapped_number(0);
  if (need[0]) {
    grads[0] = g;
    if (low.defined()) grads[0] = where(x >= low, grads[0], 0);
    if (high.defined()) grads[0] = where(x <= high, grads[0], 0);
  }
  if (low.defined() && need[1]) {
    Tensor took = x < low;
    if (high.defined()) took = ops::logical_and(took, low < high);
    grads[1] = where(took, g, 0);
  }
  if (high.defined() && need[2]) {
    Tensor took = x > high;
    if (low.defined()) took = ops::logical_or(took, high < low);
    grads[2] = where(took, g, 0);
  }
  return grads;
}

Tensor clamp_grad(const Tensor& g, const Tensor& x, const OptScalar& low, const OptScalar& high) {
  if (low && high) return where(ops::logical_and(x >= *low, x <= *high), g, 0);
  return where(low ? x >= *low : x <= *high, g, 0);
}

// --- three operands

Tensor lerp_kernel(const Call& call, const Tensor& self, const Tensor& end, const Tensor& weight) {
  RL_CHECK(self.dtype() == end.dtype(), "expected dtype ", dtype_name(self.dtype()),
           " for `end` but got dtype ", dtype_name(end.dtype()));
  RL_CHECK(weight.is_wrapped_number() || weight.dtype() == self.dtype() || weight.dim() == 0,
           "expected dtype ", dtype_name(self.dtype()), " for `weight` but got dtype ",
           dtype_name(weight.dtype()));
  if (weight.dim() == 0 && weight.is_cpu()) {
    const Scalar w = read_scalar(weight);
    const bool widens =
        !weight.is_wrapped_number() &&
        (is_complex(weight.dtype()) || (is_integral_or_bool(self.dtype()) && is_floating(weight.dtype())));
    if (weight.is_wrapped_number() && is_floating(self.dtype())) w.check_fits(self.dtype());
    const DType type = widens ? pointwise::common_type(Promote::Same, {&self, &end, &weight}) : self.dtype();
    return pointwise::compute(call, Formula::LerpScalar, type, {&self, &end}, {&w, 1});
  }
  return pointwise::compute(call, Formula::Lerp, self.dtype(), {&self, &end, &weight});
}

// self + value * (a op b) in the common dtype, which must hold the value.
Tensor add_scaled(const Call& call, Formula formula, const Tensor& self, const Tensor& a, const Tensor& b,
                  const Scalar& value) {
  const DType type = pointwise::common_type(Promote::Same, {&self, &a, &b});
  if (is_bool(type)) RL_NOT_IMPLEMENTED("\"", call.op.name(), "_cpu_out\" not implemented for 'Bool'");
  value.check_fits(type);
  return pointwise::compute(call, formula, type, {&self, &a, &b}, {&value, 1});
}

Tensor addcmul_kernel(const Call& call, const Tensor& self, const Tensor& a, const Tensor& b,
                      const Scalar& value) {
  return add_scaled(call, Formula::Addcmul, self, a, b, value);
}
Tensor addcdiv_kernel(const Call& call, const Tensor& self, const Tensor& a, const Tensor& b,
                      const Scalar& value) {
  RL_CHECK(
      !is_integral_or_bool(a.dtype()) || !is_integral_or_bool(b.dtype()),
      "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
      "true "
      "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
      "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
      "tensor2) for "
      "float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 "
      "/ tensor2), "
      "for all dtypes.");
  return add_scaled(call, Formula::Addcdiv, self, a, b, value);
}

void register_sums(Table& t) {
  auto sum = [](Grad g, Attr<2, Scalar> alpha) { return Grads{g, scaled(g, alpha)}; };
  auto difference = [](Grad g, Attr<2, Scalar> alpha) { return Grads{g, -scaled(g, alpha)}; };
  t.op(ops::add, "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", add_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .linear()
      .numbers(Numbers::All)
      .derivative(sum)
      .doc("self + alpha * other, broadcast and promoted.");
  t.op(ops::sub, "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", sub_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .linear()
      .numbers(Numbers::All)
      .derivative(difference)
      .doc("self - alpha * other, broadcast and promoted.");
  t.composite(ops::rsub, "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", rsub_body)
      .doc("other - alpha * self.")
      .numbers(Numbers::Later)
      .one_node()
      .node_of_number(1, "RsubBackward1")
      .elementwise();
  add_alias<ops::sub>(t, "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .numbers(Numbers::All);
}

void register_products(Table& t) {
  add_binary(t, ops::mul, "mul.Tensor(Tensor self, Tensor other) -> Tensor", Formula::Mul)
      .doc("Product, broadcast and promoted.")
      .tangent(Tangent::Product)
      .numbers(Numbers::All)
      .derivative([](Grad g, In<0, 1> a, In<1, 0> b, Needs need) {
        return Grads{need[0] ? g * conj_of(b) : Tensor(), need[1] ? g * conj_of(a) : Tensor()};
      });
  add_alias<ops::mul>(t, "multiply.Tensor(Tensor self, Tensor other) -> Tensor").numbers(Numbers::All);
  add_binary(t, ops::div, "div.Tensor(Tensor self, Tensor other) -> Tensor", Formula::Div, Promote::Float)
      .doc("True division: integers give the default floating type.")
      .numbers(Numbers::All)
      .derivative([](Grad g, In<0, 1> a, In<1> b, Needs need) {
        return Grads{need[0] ? div_self_grad(g, b) : Tensor(), need[1] ? div_other_grad(g, a, b) : Tensor()};
      });
  t.op(ops::div_mode, "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
       div_mode_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .out_overload("out_mode")
      .doc("Division rounded to nowhere (None), towards zero ('trunc') or down ('floor').")
      .numbers(Numbers::All)
      .node("DivBackward2")
      .derivative([](Grad g, In<0, 1> a, In<1> b, Attr<2, std::optional<std::string_view>> mode, Needs need) {
        if (*mode) return Grads{need[0] ? zeros_like(g) : Tensor(), need[1] ? zeros_like(g) : Tensor()};
        return Grads{need[0] ? div_self_grad(g, b) : Tensor(), need[1] ? div_other_grad(g, a, b) : Tensor()};
      });
  add_alias<ops::div>(t, "divide.Tensor(Tensor self, Tensor other) -> Tensor").numbers(Numbers::All);
  add_alias<ops::div_mode>(t,
                           "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
      .out_overload("out_mode")
      .numbers(Numbers::All);
  add_alias<ops::div>(t, "true_divide.Tensor(Tensor self, Tensor other) -> Tensor")
      .numbers(Numbers::All)
      .out_apart(kAllOperands);
  t.op(ops::floor_divide, "floor_divide(Tensor self, Tensor other) -> Tensor", floor_divide_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .inplace_overload("Tensor")
      .numbers(Numbers::All)
      .node("NotImplemented")
      .refused_derivative<"derivative for aten::floor_divide is not implemented">()
      .doc("Division rounded down, as Python's //.");
  t.op(ops::remainder, "remainder.Tensor(Tensor self, Tensor other) -> Tensor", remainder_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("Python's modulo: the result has the sign of other.")
      .numbers(Numbers::Mixed)
      .node_of_number(1, "RemainderBackward0")
      .node("RemainderBackward1")
      .derivative([](Grad g, In<0, 1> a, In<1, 1> b, Needs need) {
        return Grads{g, need[1] ? -g * ops::div_mode(a, b, "floor") : Tensor()};
      });
  t.op(ops::fmod, "fmod.Tensor(Tensor self, Tensor other) -> Tensor", fmod_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("C's fmod: the result has the sign of self.")
      .numbers(Numbers::Later)
      .node_of_number(1, "FmodBackward0")
      .node("FmodBackward1")
      .derivative([](Grad g, In<0, 1> a, In<1, 1> b, Needs need) {
        return Grads{g, need[1] ? -g * ops::div_mode(a, b, "trunc") : Tensor()};
      });
}

void register_extrema(Table& t) {
  add_binary(t, ops::maximum, "maximum(Tensor self, Tensor other) -> Tensor", Formula::Maximum)
      .doc("The larger of two, NaN if either is.")
      .derivative(
          [](Grad g, In<0> a, In<1> b, Needs need) { return extremum_grads(g, a, b, ops::gt, need); });
  add_binary(t, ops::minimum, "minimum(Tensor self, Tensor other) -> Tensor", Formula::Minimum)
      .doc("The smaller of two, NaN if either is.")
      .derivative(
          [](Grad g, In<0> a, In<1> b, Needs need) { return extremum_grads(g, a, b, ops::lt, need); });
  auto fmax_rule = [](Grad g, In<0> a, In<1> b, Needs need) {
    const Tensor first = ops::logical_or(a >= b, ops::isnan(b));
    return Grads{need[0] ? where(first, g, 0) : Tensor(), need[1] ? where(first, 0, g) : Tensor()};
  };
  auto fmin_rule = [](Grad g, In<0> a, In<1> b, Needs need) {
    const Tensor first = ops::logical_or(a <= b, ops::isnan(b));
    return Grads{need[0] ? where(first, g, 0) : Tensor(), need[1] ? where(first, 0, g) : Tensor()};
  };
  t.op(ops::fmax, "fmax(Tensor self, Tensor other) -> Tensor",
       [](const Call& call, const Tensor& a, const Tensor& b) {
         const DType common = pointwise::common_type(Promote::Same, {&a, &b});
         return pointwise::compute(call, is_floating(common) ? Formula::Fmax : Formula::Maximum, common,
                                   {&a, &b});
       })
      .family(Family::Pointwise)
      .out()
      .doc("The larger of two, a number rather than NaN.")
      .derivative(fmax_rule);
  t.op(ops::fmin, "fmin(Tensor self, Tensor other) -> Tensor",
       [](const Call& call, const Tensor& a, const Tensor& b) {
         const DType common = pointwise::common_type(Promote::Same, {&a, &b});
         return pointwise::compute(call, is_floating(common) ? Formula::Fmin : Formula::Minimum, common,
                                   {&a, &b});
       })
      .family(Family::Pointwise)
      .out()
      .doc("The smaller of two, a number rather than NaN.")
      .derivative(fmin_rule);
}

void register_clamps(Table& t) {
  // A bound of no dimension is a tensor still: it promotes, and may need a gradient.
  t.op(ops::clamp_tensor, "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
       clamp_tensor_kernel)
      .family(Family::Pointwise)
      .inplace()
      .inplace_function()
      .out()
      .doc("self limited to [min, max], element by element.")
      .derivative([](Grad g, In<0> x, In<1> low, In<2> high, Needs need) {
        return clamp_tensor_grads(g, x, low, high, need);
      });
  t.op(ops::clamp, "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp_kernel)
      .limits()
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self limited to [min, max].")
      .node("ClampBackward1")
      .derivative([](Grad g, In<0> x, Attr<1, OptScalar> low, Attr<2, OptScalar> high) {
        return clamp_grad(g, x, *low, *high);
      });
  t.composite(ops::clamp_min_tensor, "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
              clamp_min_tensor_body)
      .doc("self, but not below the elements of min, broadcast.")
      .inplace()
      .out()
      .inplace_function()
      .out_apart(kAllOperands)
      .one_node()
      .node("ClampMinBackward1")
      .elementwise();
  t.composite(ops::clamp_max_tensor, "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
              clamp_max_tensor_body)
      .doc("self, but not above the elements of max, broadcast.")
      .inplace()
      .out()
      .inplace_function()
      .out_apart(kAllOperands)
      .one_node()
      .node("ClampMaxBackward1")
      .elementwise();
  t.op(ops::clamp_min, "clamp_min(Tensor self, Scalar min) -> Tensor", clamp_min_kernel)
      .limits()
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self, but not below min.")
      .inplace_function()
      .out_apart(kAllOperands)
      .derivative([](Grad g, In<0> x, Attr<1, Scalar> low) { return clamp_grad(g, x, *low, std::nullopt); });
  t.op(ops::clamp_max, "clamp_max(Tensor self, Scalar max) -> Tensor", clamp_max_kernel)
      .limits()
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self, but not above max.")
      .inplace_function()
      .out_apart(kAllOperands)
      .derivative(
          [](Grad g, In<0> x, Attr<1, Scalar> high) { return clamp_grad(g, x, std::nullopt, *high); });
  add_alias<ops::clamp_tensor>(t, "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
      .inplace_function();
  add_alias<ops::clamp>(t, "clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor");
}

void register_ternaries(Table& t) {
  t.op(ops::lerp, "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", lerp_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self + weight * (end - self).")
      .numbers(Numbers::Mixed)
      .node_of_number(2, "LerpBackward0")
      .node("LerpBackward1")
      .derivative([](Grad g, In<0, 2> a, In<1, 2> b, In<2> weight, Needs need) {
        const Tensor w = is_bool(weight.dtype()) ? to_dtype(weight, g.dtype()) : Tensor(weight);
        const auto rest = [&] {  // 1 - number has the default dtype: too few digits for doubles
          const bool coarse = w.is_wrapped_number() && real_dtype(g.dtype()) == DType::Float64;
          return coarse ? g - g * conj_of(w) : g * conj_of(Scalar(1) - w);
        };
        return Grads{need[0] ? rest() : Tensor(), need[1] ? g * conj_of(w) : Tensor(),
                     need[2] ? g * conj_of(b - a) : Tensor()};
      });
  t.op(ops::addcmul, "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
       addcmul_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self + value * tensor1 * tensor2.")
      .autocast(Cast::None, Cast::Widest)
      .derivative([](Grad g, In<1, 2> a, In<2, 1> b, Attr<3, Scalar> value, Needs need) {
        return Grads{g, need[1] ? scaled(g * conj_of(b), value) : Tensor(),
                     need[2] ? scaled(g * conj_of(a), value) : Tensor()};
      });
  t.op(ops::addcdiv, "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
       addcdiv_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self + value * tensor1 / tensor2.")
      .autocast(Cast::None, Cast::Widest)
      .derivative([](Grad g, In<1, 2> a, In<2, 1, 2> b, Attr<3, Scalar> value, Needs need) {
        return Grads{g, need[1] ? scaled(g / conj_of(b), value) : Tensor(),
                     need[2] ? -scaled(g * conj_of(a / (b * b)), value) : Tensor()};
      });
}

}  // namespace

void register_arithmetic_operators(Table& t) {
  register_sums(t);
  register_products(t);
  register_extrema(t);
  register_clamps(t);
  register_ternaries(t);
}

}  // namespace rushlight
