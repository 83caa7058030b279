// Functions of one real or complex number, powers, and rounding.
#include <cmath>
#include <numbers>

#include "cpu/copy.h"
#include "cpu/pointwise.h"
#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/pointwise_family.h"
#include "ops/register.h"
#include "ops/register_alias.h"
#include "ops/sparse.h"
#include "ops/zeros_like.h"

namespace rushlight {
namespace {

using cpu::Formula;
using Kernel = Tensor (*)(const Call&, const Tensor&);

Tensor copied(const Call& call, const Tensor& self) {
  pointwise::check_same_out(call, self);
  const Tensor out = pointwise::result(call, self.sizes(), self.dtype(), {&self});
  if (!out.is_same(self)) loops::copy(out, self);
  return out;
}

// --- sign and size

Tensor neg_kernel(const Call& call, const Tensor& self) {
  RL_CHECK(!is_bool(self.dtype()),
           "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
           "mask, use the `~` or "
           "`logical_not()` operator instead.");
  return pointwise::unary(call, self);
}
Tensor positive_kernel(const Call&, const Tensor& self) {
  RL_CHECK(!is_bool(self.dtype()), "The `+` operator, on a bool tensor is not supported.");
  return self;
}

Tensor abs_kernel(const Call& call, const Tensor& self) {
  if (!is_complex(self.dtype())) return pointwise::unary(call, self);
  RL_CHECK(!call.inplace, "In-place abs is not supported for complex tensors.");
  return pointwise::compute(call, Formula::AbsComplex, self.dtype(), {&self});
}
Tensor sign_kernel(const Call& call, const Tensor& self) {
  if (is_complex(self.dtype()))
    RL_NOT_IMPLEMENTED(
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.");
  return pointwise::unary(call, self);
}

// d|z| lies along z; for real numbers sgn is the sign.
Tensor abs_grad(const Tensor& g, const Tensor& self) { return g * ops::sgn(self); }

// The gradient of z/|z| is what is left of g after its part along z/|z|.
Tensor sgn_grad(const Tensor& g, const Tensor& z, const Tensor& s) {
  if (!is_complex(z.dtype())) return zeros_like(g);
  const Tensor size = ops::abs(z), along = ops::real(g * conj_of(s)), none = eq(size, 0);
  return where(none, 0, (g - s * along) / where(none, 1, size));  // at 0 its own derivatives are 0, too
}

// --- rounding

Tensor whole_kernel(const Call& call, const Tensor& self) {  // floor, ceil, trunc: integers are whole already
  return is_integral(self.dtype()) ? copied(call, self) : pointwise::unary(call, self);
}

Tensor round_kernel(const Call& call, const Tensor& self, int64_t decimals) {
  pointwise::check_same_out(call, self);
  if (is_integral(self.dtype())) return copied(call, self);
  if (decimals == 0) return pointwise::compute(call, Formula::Round, self.dtype(), {&self});
  const Scalar scale(std::pow(10.0, static_cast<double>(std::abs(decimals))));
  return pointwise::compute(call, decimals > 0 ? Formula::RoundUp : Formula::RoundDown, self.dtype(), {&self},
                            {&scale, 1});
}

// --- powers

// Exponents that have a cheaper and more exact formula.
constexpr std::pair<double, Formula> kSpecialPowers[] = {{2, Formula::Square},
                                                         {3, Formula::Cube},
                                                         {0.5, Formula::Sqrt},
                                                         {-0.5, Formula::Rsqrt},
                                                         {-1, Formula::Reciprocal}};

// A number that the caller wrote, and on other devices one that lies on the CPU. A tensor of no dimensions is
// an exponent like others.
bool is_number(const Tensor& exponent, const Tensor& self) {
  if (exponent.is_wrapped_number()) return true;
  return exponent.dim() == 0 && exponent.is_cpu() && !self.is_cpu() && !self.device().is_meta();
}

Tensor pow_kernel(const Call& call, const Tensor& self, const Tensor& exponent) {
  const DType type = result_type(self, exponent);
  if (is_bool(type) && exponent.is_wrapped_number())
    return read_scalar(exponent) == Scalar(true) ? copied(call, self) : ops::ones_like(self);
  if (is_bool(type)) RL_NOT_IMPLEMENTED("\"pow\" not implemented for 'Bool'");
  const auto filled_with_ones = [&](const Tensor& like) {
    const Tensor out = pointwise::result(call, like.sizes(), type, {&like});
    if (out.numel() > 0) loops::copy(out, wrapped_number(Scalar(int64_t{1})));
    return out;
  };
  if (is_number(exponent, self) && !self.device().is_meta()) {
    const Scalar number = read_scalar(exponent);
    const auto is = [&](double value) { return number == Scalar(value); };
    if (is_integral(type)) {
      RL_CHECK(number.to_double() >= 0 || !exponent.is_wrapped_number(),
               "Integers to negative integer powers are not allowed.");
      if (is(2)) return pointwise::compute(call, Formula::Square, type, {&self});
    } else if (is(0)) {
      return filled_with_ones(self);
    } else if (is(1)) {
      const Tensor out = pointwise::result(call, self.sizes(), type, {&self});
      if (!out.is_same(self)) loops::copy(out, self);
      return out;
    } else if (type != DType::Float16) {  // whose powers PyTorch takes all by one function
      for (const auto& [value, formula] : kSpecialPowers)
        if (is(value)) return pointwise::compute(call, formula, type, {&self});
    }
  } else if (self.is_wrapped_number() && read_scalar(self) == Scalar(1.0) && !is_bool(self.dtype()) &&
             !exponent.device().is_meta()) {
    return filled_with_ones(exponent);
  }
  return pointwise::compute(call, is_integral(type) ? Formula::PowInteger : Formula::Pow, type,
                            {&self, &exponent});
}

Tensor pow_self_grad(const Tensor& g, const Tensor& self, const Tensor& exponent) {
  if (exponent.is_wrapped_number()) {
    const Scalar e = read_scalar(exponent);
    if (e == Scalar(0)) return zeros_like(g);
    // What is recorded stays a function of self down to self ** 0, so that a program may ask for derivatives
    // of any polynomial to the order where they are zero.
    const bool recorded = derivatives_wanted();
    if (e == Scalar(1) && !recorded) return g;
    if (e == Scalar(2) && !recorded) return g * conj_of(self * Scalar(2));
    const Scalar less = e.is_complex()    ? Scalar(e.to<complex128>() - 1.0)
                        : e.is_floating() ? Scalar(e.to_double() - 1)
                                          : Scalar(e.to_int() - 1);
    return g * conj_of(e * pow(self, less));
  }
  return where(eq(exponent, 0), 0, g * conj_of(exponent * ops::pow(self, exponent - 1)));
}
// log 0 counts only where 0 ** exponent is not constant.
Tensor pow_exponent_grad(const Tensor& g, const Tensor& self, const Tensor& exponent, const Tensor& result) {
  const Tensor flat = is_complex(exponent.dtype()) ? ops::logical_and(eq(self, 0), ops::real(exponent) >= 0)
                                                   : ops::logical_and(eq(self, 0), exponent >= 0);
  // A negative real base has a complex logarithm.
  const Tensor base =
      is_complex(exponent.dtype()) && !is_complex(self.dtype()) ? to_dtype(self, result.dtype()) : self;
  return where(flat, 0, g * conj_of(result * ops::log(base)));
}

Tensor float_power_body(const Call& call, const Tensor& self, const Tensor& exponent) {
  const bool complex = is_complex(self.dtype()) || is_complex(exponent.dtype());
  const DType type = complex ? DType::Complex128 : DType::Float64;
  RL_CHECK(!call.inplace || self.dtype() == type, "the base given to float_power_ has dtype ",
           legacy_name(self.dtype()), " but the operation's result requires dtype ", legacy_name(type));
  auto widened = [&](const Tensor& t) { return t.is_wrapped_number() ? t : to_dtype(t, type); };
  if (call.inplace) return ops::pow.inplace(self, widened(exponent));
  return ops::pow(widened(self), widened(exponent));
}

Tensor square_body(const Call& call, const Tensor& self) {
  return call.inplace ? ops::pow.inplace(self, wrapped_number(2)) : pow(self, 2);
}
Tensor deg2rad_body(const Call&, const Tensor& self) {
  RL_CHECK(!is_complex(self.dtype()), "deg2rad is not supported for complex tensors.");
  return self * Scalar(std::numbers::pi / 180);
}
Tensor rad2deg_body(const Call&, const Tensor& self) {
  RL_CHECK(!is_complex(self.dtype()), "rad2deg is not supported for complex tensors.");
  return self * Scalar(180 / std::numbers::pi);
}

Tensor floating_only(const Call& call, const Tensor& self) {
  if (is_integral_or_bool(self.dtype()))
    RL_NOT_IMPLEMENTED("\"", call.op.name(), "_vml_cpu\" not implemented for '", legacy_name(self.dtype()),
                       "'");
  return pointwise::unary(call, self);
}

// Gradients through functions that keep zeros, whose slope counts only where a sparse operand lists
// something.
template <class F>
Tensor times(const Tensor& g, const Tensor& at, F slope) {
  return g * at_listed(at, [&](const Tensor& t) { return conj_of(slope(t)); });
}
template <class F>
Tensor over(const Tensor& g, const Tensor& at, F divisor) {
  if (!is_sparse(at)) return g / conj_of(divisor(at));
  return times(g, at, [&](const Tensor& t) { return ops::reciprocal(divisor(t)); });
}

// --- records

void register_exponentials(Table& t) {
  add_unary(t, ops::exp, "exp(Tensor self) -> Tensor", Formula::Exp)
      .doc("e to the power of self.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, Out<0> y) { return g * conj_of(y); });
  add_unary(t, ops::exp2, "exp2(Tensor self) -> Tensor", Formula::Exp2)
      .doc("2 to the power of self.")
      .derivative([](Grad g, Out<0> y) { return g * conj_of(y * Scalar(std::numbers::ln2)); });
  add_unary(t, ops::expm1, "expm1(Tensor self) -> Tensor", Formula::Expm1)
      .doc("exp(self) - 1, exact near zero.")
      .autocast(Cast::None, Cast::Float)
      .derivative(
          [](Grad g, Out<0> y) { return times(g, y, [](const Tensor& t) { return t + Scalar(1); }); });
  add_unary(t, ops::log, "log(Tensor self) -> Tensor", Formula::Log)
      .doc("Natural logarithm.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x) { return g / conj_of(x); });
  add_unary(t, ops::log2, "log2(Tensor self) -> Tensor", Formula::Log2)
      .doc("Logarithm to base 2.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x) { return g / (conj_of(x) * Scalar(std::numbers::ln2)); });
  add_unary(t, ops::log10, "log10(Tensor self) -> Tensor", Formula::Log10)
      .doc("Logarithm to base 10.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x) { return g / (conj_of(x) * Scalar(std::numbers::ln10)); });
  add_unary(t, ops::log1p, "log1p(Tensor self) -> Tensor", Formula::Log1p)
      .doc("log(1 + self), exact near zero.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x) { return over(g, x, [](const Tensor& t) { return t + Scalar(1); }); });
  add_unary(t, ops::sqrt, "sqrt(Tensor self) -> Tensor", Formula::Sqrt)
      .doc("Square root.")
      .derivative([](Grad g, Out<0> y) { return over(g, y, [](const Tensor& t) { return t * Scalar(2); }); });
  add_unary(t, ops::rsqrt, "rsqrt(Tensor self) -> Tensor", Formula::Rsqrt)
      .doc("1 / sqrt(self).")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, Out<0> y) { return Scalar(-0.5) * g * conj_of(pow(y, 3)); });
  add_unary(t, ops::reciprocal, "reciprocal(Tensor self) -> Tensor", Formula::Reciprocal)
      .doc("1 / self.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, Out<0> y) { return -g * conj_of(y * y); });
  t.composite(ops::square, "square(Tensor self) -> Tensor", square_body)
      .inplace()
      .out()
      .doc("self * self.")
      .out_apart(kFirst)
      .elementwise();
  t.op(ops::pow, "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", pow_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self to the power of exponent.")
      .autocast(Cast::None, Cast::Float)
      .numbers(Numbers::Mixed)
      .node_of_number(1, "PowBackward0")
      .node_of_number(0, "PowBackward2")
      .inplace_overload("Tensor")
      .number_overload(kSecond, {"Tensor_Scalar", "Scalar"})
      .number_overload(kFirst, {"Scalar"})
      .node("PowBackward1")
      // The result is not saved, because programs write on to it: x.pow_(2).mul_(3).
      .derivative([](Grad g, In<0> x, In<1> e, Needs need) {
        return Grads{need[0] ? pow_self_grad(g, x, e) : Tensor(),
                     need[1] ? pow_exponent_grad(g, x, e, ops::pow(x, e)) : Tensor()};
      });
  t.composite(ops::float_power, "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
              float_power_body)
      .inplace()
      .out(OutRule::SameType)
      .doc("self to the power of exponent, in double precision.")
      .inplace_overload("Tensor")
      .number_overload(kSecond, {"Tensor_Scalar", "Scalar"})
      .number_overload(kFirst, {"Scalar"})
      .numbers(Numbers::Mixed)
      .elementwise();
}

void register_trigonometry(Table& t) {
  add_unary(t, ops::sin, "sin(Tensor self) -> Tensor", Formula::Sin)
      .doc("Sine.")
      .derivative([](Grad g, In<0> x) { return times(g, x, [](const Tensor& t) { return ops::cos(t); }); });
  add_unary(t, ops::cos, "cos(Tensor self) -> Tensor", Formula::Cos)
      .doc("Cosine.")
      .derivative([](Grad g, In<0> x) { return g * -conj_of(ops::sin(x)); });
  add_unary(t, ops::tan, "tan(Tensor self) -> Tensor", Formula::Tan)
      .doc("Tangent.")
      .autocast(Cast::None, Cast::Float)
      .derivative(
          [](Grad g, Out<0> y) { return times(g, y, [](const Tensor& t) { return t * t + Scalar(1); }); });
  add_unary(t, ops::asin, "asin(Tensor self) -> Tensor", Formula::Asin)
      .doc("Inverse sine.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x) {
        return times(g, x, [](const Tensor& t) { return ops::rsqrt(Scalar(1) - t * t); });
      });
  add_unary(t, ops::acos, "acos(Tensor self) -> Tensor", Formula::Acos)
      .doc("Inverse cosine.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x) { return g * -conj_of(ops::rsqrt(Scalar(1) - x * x)); });
  add_unary(t, ops::atan, "atan(Tensor self) -> Tensor", Formula::Atan)
      .doc("Inverse tangent.")
      .derivative(
          [](Grad g, In<0> x) { return over(g, x, [](const Tensor& t) { return t * t + Scalar(1); }); });
  add_unary(t, ops::sinh, "sinh(Tensor self) -> Tensor", Formula::Sinh)
      .doc("Hyperbolic sine.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x) { return times(g, x, [](const Tensor& t) { return ops::cosh(t); }); });
  add_unary(t, ops::cosh, "cosh(Tensor self) -> Tensor", Formula::Cosh)
      .doc("Hyperbolic cosine.")
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x) { return g * conj_of(ops::sinh(x)); });
  add_unary(t, ops::tanh, "tanh(Tensor self) -> Tensor", Formula::Tanh)
      .doc("Hyperbolic tangent.")
      .derivative([](Grad g, Out<0> y) {
        if (!is_sparse(y)) return ops::tanh_backward(g, y);
        return times(g, y, [](const Tensor& t) { return Scalar(1) - t * t; });
      });
  add_unary(t, ops::asinh, "asinh(Tensor self) -> Tensor", Formula::Asinh)
      .doc("Inverse hyperbolic sine.")
      .derivative([](Grad g, In<0> x) {
        return times(g, x, [](const Tensor& t) { return ops::rsqrt(t * t + Scalar(1)); });
      });
  add_unary(t, ops::acosh, "acosh(Tensor self) -> Tensor", Formula::Acosh)
      .doc("Inverse hyperbolic cosine.")
      .derivative([](Grad g, In<0> x) {
        const Tensor below = x - Scalar(1), above = x + Scalar(1);
        if (!is_complex(x.dtype())) return g * ops::rsqrt(below * above);
        return g * conj_of(ops::rsqrt(below) * ops::rsqrt(above));
      });
  add_unary(t, ops::atanh, "atanh(Tensor self) -> Tensor", Formula::Atanh)
      .doc("Inverse hyperbolic tangent.")
      .derivative(
          [](Grad g, In<0> x) { return over(g, x, [](const Tensor& t) { return Scalar(1) - t * t; }); });
  t.composite(ops::deg2rad, "deg2rad(Tensor self) -> Tensor", deg2rad_body)
      .inplace()
      .out()
      .doc("Degrees to radians.")
      .out_apart(kFirst)
      .one_node()
      .elementwise();
  t.composite(ops::rad2deg, "rad2deg(Tensor self) -> Tensor", rad2deg_body)
      .inplace()
      .out()
      .doc("Radians to degrees.")
      .out_apart(kFirst)
      .one_node()
      .elementwise();
  add_alias<ops::asin>(t, "arcsin(Tensor self) -> Tensor");
  add_alias<ops::acos>(t, "arccos(Tensor self) -> Tensor");
  add_alias<ops::atan>(t, "arctan(Tensor self) -> Tensor");
  add_alias<ops::asinh>(t, "arcsinh(Tensor self) -> Tensor");
  add_alias<ops::acosh>(t, "arccosh(Tensor self) -> Tensor");
  add_alias<ops::atanh>(t, "arctanh(Tensor self) -> Tensor");
}

void register_signs(Table& t) {
  const auto data = [](Formula f, Promote p = Promote::Same) { return pointwise::make_spec(f, p); };
  auto record = [&](Fn<Tensor(const Tensor&)>& handle, const char* schema, Kernel kernel, Formula f,
                    Promote p = Promote::Same) {
    return t.op(handle, schema, kernel).family(Family::Pointwise).data(data(f, p)).inplace().out();
  };
  record(ops::neg, "neg(Tensor self) -> Tensor", neg_kernel, Formula::Neg)
      .doc("-self.")
      .linear()
      .derivative([](Grad g) { return -g; });
  add_alias<ops::neg>(t, "negative(Tensor self) -> Tensor");
  t.op(ops::positive, "positive(Tensor(a) self) -> Tensor(a)", positive_kernel)
      .doc("self, refusing bool.")
      .on_devices()
      .linear()
      .batching(Batching::Pointwise)
      .may_return_input()
      .same_elements()
      .derivative([](Grad g) { return g; });
  record(ops::abs, "abs(Tensor self) -> Tensor", abs_kernel, Formula::Abs)
      .doc("Absolute value.")
      .derivative([](Grad g, In<0> x) { return abs_grad(g, x); });
  add_alias<ops::abs>(t, "absolute(Tensor self) -> Tensor");
  record(ops::sign, "sign(Tensor self) -> Tensor", sign_kernel, Formula::Sign)
      .doc("-1, 0 or 1.")
      .derivative([](Grad g) { return zeros_like(g); });
  add_unary(t, ops::sgn, "sgn(Tensor self) -> Tensor", Formula::Sign, Promote::Same)
      .doc("self / |self|, 0 at 0.")
      .derivative([](Grad g, In<0> z, Out<0> s) { return sgn_grad(g, z, s); });
  auto step = [](Grad g) { return zeros_like(g); };
  record(ops::floor, "floor(Tensor self) -> Tensor", whole_kernel, Formula::Floor)
      .doc("Largest integer not above self.")
      .derivative(step);
  record(ops::ceil, "ceil(Tensor self) -> Tensor", whole_kernel, Formula::Ceil)
      .doc("Smallest integer not below self.")
      .derivative(step);
  record(ops::trunc, "trunc(Tensor self) -> Tensor", whole_kernel, Formula::Trunc)
      .doc("self without its fraction.")
      .derivative(step);
  add_alias<ops::trunc>(t, "fix(Tensor self) -> Tensor");
  record(ops::frac, "frac(Tensor self) -> Tensor", floating_only, Formula::Frac)
      .doc("The fraction of self, with its sign.")
      .derivative([](Grad g) { return g; });
  t.op(ops::round, "round.decimals(Tensor self, *, int decimals=0) -> Tensor", round_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("To the nearest integer, or to so many decimals; halves go to the even neighbour.")
      .derivative(step);
}

}  // namespace

void register_unary_operators(Table& t) {
  register_signs(t);
  register_exponentials(t);
  register_trigonometry(t);
}

}  // namespace rushlight
