// Special functions and functions of two real numbers.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "core/parallel.h"
#include "cpu/copy.h"
#include "cpu/fused.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/plain.h"
#include "ops/pointwise_family.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/register_alias.h"
#include "ops/scan.h"
#include "ops/sparse.h"
#include "ops/view.h"
#include "ops/zeros_like.h"

namespace rushlight {
namespace {

[[noreturn]] void refuse_first_derivative(const char* what) {
  RL_NOT_IMPLEMENTED("the derivative for '", what, "' is not implemented.");
}

using cpu::Formula;

Fn<Tensor(const Tensor& exponents)> power_of_two;
constexpr double kSqrtPi = 1.77245385090551602730;

// Chains of formulas in one pass over memory, for tensors whose results would not stay in a cache.
bool limits_in_one_pass(const Tensor& x) {
  return x.is_cpu() && (x.dtype() == DType::Float32 || x.dtype() == DType::Float64) && x.is_contiguous() &&
         x.numel() >= kGrainSize / 8;
}
cpu::FusedProgram program_for(std::initializer_list<const Tensor*> inputs) {
  const Tensor& first = **inputs.begin();
  cpu::FusedProgram program;
  program.type = first.dtype();
  program.shape = first.sizes().dims();
  program.input_by_row.resize(inputs.size()), program.input_bool.resize(inputs.size());
  return program;
}
Tensor run_program(cpu::FusedProgram& program, int output, std::initializer_list<const Tensor*> inputs) {
  program.outputs = {output};
  std::vector<Tensor> given;
  for (const Tensor* t : inputs) given.push_back(*t);
  const Tensor result = empty_tensor(program.shape, program.type);
  cpu::run_fused(program, given, {&result, 1});
  return result;
}

Tensor logit_kernel(const Call& call, const Tensor& self, std::optional<double> eps) {
  const DType type = pointwise::float_type(self.dtype());
  if (!eps) return pointwise::compute(call, Formula::Logit, type, {&self});
  if (limits_in_one_pass(self) && type == DType::Float32 && *eps >= 0 && *eps <= 0.5) {
    cpu::FusedProgram program = program_for({&self});
    const auto low = static_cast<float>(*eps);
    const int limited = program.append(Formula::Clamp, {0}, {Scalar(*eps), Scalar(double{1.0f - low})});
    return run_program(program, program.append(Formula::Logit, {limited}), {&self});
  }
  const Scalar bound(*eps);
  return pointwise::compute(call, Formula::LogitClamped, type, {&self}, {&bound, 1});
}
Tensor logit_grad(const Tensor& g, const Tensor& x, std::optional<double> eps) {
  const double low = eps.value_or(0), high = 1 - low;
  const bool again = derivatives_wanted() || dispatch_state.level;
  if (!again && ops::is_plain(x) && ops::is_plain(g) && limits_in_one_pass(x) && g.dtype() == x.dtype() &&
      g.sizes() == x.sizes()) {
    cpu::FusedProgram program = program_for({&g, &x});
    program.numbers = {1, low, high, eps ? 0.0 : std::nan("")};
    const int one = program.number_register(0), outside = program.number_register(3);
    const int spread = program.append(Formula::Mul, {1, program.append(Formula::Sub, {one, 1})});
    const int slope = program.append(Formula::Div, {0, spread});
    const int above = program.append(Formula::Le, {program.number_register(1), 1});
    const int some = program.append_choice(above, slope, outside);
    const int below = program.append(Formula::Le, {1, program.number_register(2)});
    return run_program(program, program.append_choice(below, some, outside), {&g, &x});
  }
  const Tensor inside = ops::logical_and(x >= low, x <= high);
  return where(inside, g / (x * (Scalar(1) - x)), Scalar(eps ? 0.0 : std::nan("")));
}

Tensor polygamma_kernel(const Call& call, int64_t n, const Tensor& self) {
  RL_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
  const DType type = pointwise::float_type(self.dtype());
  if (n == 0) return pointwise::compute(call, Formula::Digamma, type, {&self});
  if (n == 1) return pointwise::compute(call, Formula::Trigamma, type, {&self});
  const Tensor order = wrapped_number(static_cast<double>(n + 1));
  const Tensor z = pointwise::compute(call, Formula::Zeta, type, {&order, &self});
  const Tensor factor =
      wrapped_number((n % 2 ? 1.0 : -1.0) * std::exp(std::lgamma(static_cast<double>(n) + 1)));
  return pointwise::compute(call, Formula::Mul, type, {&z, &factor});
}

Tensor polygamma_method(const Call&, const Tensor& self, int64_t n) { return ops::polygamma(n, self); }

// Columns are powers of x, the highest first unless `increasing`.
Tensor vander_body(const Call&, const Tensor& x, OptInt columns, bool increasing) {
  RL_CHECK(x.dim() == 1, "x must be a one-dimensional tensor.");
  const int64_t n = columns.value_or(x.size(0));
  RL_CHECK(n >= 0, "N must be non-negative.");
  const Tensor powers = first_powers(is_integral_or_bool(x.dtype()) ? to_dtype(x, DType::Int64) : x, n);
  return increasing ? powers : ops::flip(powers, IntList{1});
}

Tensor mvlgamma_body(const Call&, const Tensor& self, int64_t p) {
  RL_CHECK(p >= 1, "p has to be greater than or equal to 1");
  constexpr int64_t kFew = 64;  // more terms are computed as one tensor, for which there may be no memory
  const DType type = pointwise::float_type(self.dtype());
  const Tensor x = to_dtype(self, type);
  Tensor sum;
  if (p <= kFew) {
    sum = ops::lgamma(x);
    for (int64_t i = 1; i < p; ++i) sum = sum + ops::lgamma(x - Scalar(0.5 * static_cast<double>(i)));
  } else {
    const Tensor steps = ops::arange(Scalar(0.0), Scalar(-0.5 * static_cast<double>(p)), Scalar(-0.5), type,
                                     std::nullopt, self.device(), std::nullopt);
    sum = ops::sum_dim(ops::lgamma(ops::unsqueeze(x, -1) + steps), IntList{-1}, false, std::nullopt);
  }
  return sum + Scalar(static_cast<double>(p) * (static_cast<double>(p) - 1) / 4 * std::log(std::numbers::pi));
}

double largest(DType t) {
  return t == DType::Float64    ? std::numeric_limits<double>::max()
         : t == DType::Float16  ? 65504.0
         : t == DType::BFloat16 ? 3.3895313892515355e38
                                : std::numeric_limits<float>::max();
}
Tensor nan_to_num_kernel(const Call& call, const Tensor& self, std::optional<double> nan,
                         std::optional<double> high, std::optional<double> low) {
  RL_CHECK(!call.out || call.out->dtype() == self.dtype(),
           "nan_to_num: dtype of out: ", legacy_name(call.out->dtype()),
           " should be same as input: ", legacy_name(self.dtype()));
  if (is_integral_or_bool(self.dtype())) {
    const Tensor out = pointwise::result(call, self.sizes(), self.dtype(), {&self});
    if (!out.is_same(self)) loops::copy(out, self);
    return out;
  }
  const double limit = largest(self.dtype());
  const Scalar values[] = {nan.value_or(0), high.value_or(limit), low.value_or(-limit)};
  if (is_complex(self.dtype())) {
    const Tensor parts = ops::view_as_real(self);
    return ops::view_as_complex(
        pointwise::compute(Call{call.op}, Formula::NanToNum, parts.dtype(), {&parts}, values));
  }
  return pointwise::compute(call, Formula::NanToNum, self.dtype(), {&self}, values);
}

#if defined(__GNUC__) && !defined(__clang__) && !defined(RUSHLIGHT_INFERENCE)
#pragma GCC push_options
#pragma GCC optimize("O3")  // by vectors
#endif
// x = mantissa * 2^exponent with a mantissa of at least a half, by the bits of x and without branches.
template <class T>
T split_exponent(T x, int32_t& exponent) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int kDigits = std::numeric_limits<T>::digits - 1,
                kHalf = std::numeric_limits<T>::max_exponent - 2;
  constexpr U kField = (U{1} << (sizeof(T) * 8 - 1 - kDigits)) - 1;
  const bool tiny = std::fabs(x) < std::numeric_limits<T>::min();
  const T normal = tiny ? x * (T(2) / std::numeric_limits<T>::epsilon()) : x;
  const U bits = std::bit_cast<U>(normal), field = bits >> kDigits & kField;
  const bool keeps = x == 0 || field == kField;  // zeros, infinities, NaN
  const auto power = static_cast<int32_t>(field) - kHalf - (tiny ? kDigits + 1 : 0);
  exponent = keeps ? 0 : power;
  const U half = (bits & ~(kField << kDigits)) | static_cast<U>(kHalf) << kDigits;
  return std::bit_cast<T>(keeps ? std::bit_cast<U>(x) : half);
}

// Of whole blocks: loops whose length is known, and that write to a place of their own, become vectors.
constexpr int64_t kSplit = 64;
template <class T>
void split_exponents(const T* from, T* to, int32_t* powers, int64_t count) {
  using C = compute_type<T>;
  C x[kSplit] = {};
  int32_t exponents[kSplit];
  const auto convert = [&]<class To, class From>(To* out, const From* in) {
    cpu::cast_loop(dtype_of<To>, dtype_of<From>)(reinterpret_cast<char*>(out), sizeof(To),
                                                 reinterpret_cast<const char*>(in), sizeof(From), count);
  };
  convert(x, from);
  for (int64_t i = 0; i < kSplit; ++i) x[i] = split_exponent(x[i], exponents[i]);
  convert(to, x);
  std::memcpy(powers, exponents, static_cast<size_t>(count) * sizeof(int32_t));
}
#if defined(__GNUC__) && !defined(__clang__) && !defined(RUSHLIGHT_INFERENCE)
#pragma GCC pop_options
#endif

std::tuple<Tensor, Tensor> frexp_kernel(const Call&, const Tensor& self) {
  RL_CHECK(is_floating(self.dtype()), "torch.frexp() only supports floating-point dtypes, but got ",
           describe(self));
  const Tensor source = self.is_contiguous() ? self : ops::clone(self, MemoryFormat::Contiguous);
  const Tensor mantissa = empty_tensor(self.sizes(), self.dtype(), self.device()),
               exponent = empty_tensor(self.sizes(), DType::Int32, self.device());
  if (source.is_cpu())
    visit_dtype(FloatTypes{}, self.dtype(), "frexp", [&](auto tag) {
      using T = decltype(tag);
      const T* from = source.data<T>();
      T* to = mantissa.data<T>();
      auto* powers = exponent.data<int32_t>();
      parallel_for(0, source.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
        for (int64_t first = begin; first < end; first += kSplit)
          split_exponents(from + first, to + first, powers + first, std::min(kSplit, end - first));
      });
    });
  return {mantissa, exponent};
}

Tensor nextafter_kernel(const Call& call, const Tensor& self, const Tensor& other) {
  const DType common = pointwise::common_type(Promote::Same, {&self, &other});
  const Scalar kind[] = {pointwise::spacing_kind(common)};
  return pointwise::compute(call, Formula::Nextafter, common, {&self, &other}, kind);
}

Tensor heaviside_kernel(const Call& call, const Tensor& self, const Tensor& values) {
  RL_CHECK(!is_complex(self.dtype()) && !is_complex(values.dtype()),
           "heaviside is not yet implemented for complex tensors.");
  RL_CHECK(self.dtype() == values.dtype(),
           "heaviside is not yet implemented for tensors with different dtypes.");
  RL_CHECK(!call.out || call.inplace || call.out->dtype() == self.dtype(),
           "heaviside is not yet implemented for tensors with different dtypes.");
  return pointwise::binary(call, self, values);
}

// Of complex numbers the one with the larger real part is taken out of the logarithm.
void refuse_integers(const char* name, const Tensor& self, const Tensor& other) {
  const DType type = promote_types(self.dtype(), other.dtype());
  if (is_integral_or_bool(type))
    RL_NOT_IMPLEMENTED("\"", name, "_cpu\" not implemented for '", legacy_name(type), "'");
}
Tensor logaddexp2_kernel(const Call& call, const Tensor& self, const Tensor& other) {
  refuse_integers("logaddexp2", self, other);
  return pointwise::binary(call, self, other);
}
Tensor logaddexp_kernel(const Call& call, const Tensor& self, const Tensor& other) {
  refuse_integers("logaddexp", self, other);
  if (!is_complex(self.dtype()) && !is_complex(other.dtype())) return pointwise::binary(call, self, other);
  const Tensor less = ops::real(self) < ops::real(other);
  const Tensor high = where(less, other, self), low = where(less, self, other);
  const Tensor sum = high + ops::log(ops::exp(low - high) + 1);
  return where(ops::isinf(ops::real(high)), high, sum);
}

// 2^n as float64 by its bits, for n from -1022 to 1023.
Tensor power_of_two_kernel(const Call&, const Tensor& exponents) {
  const Tensor n = ops::contiguous(exponents), result = empty_tensor(n.sizes(), DType::Float64, n.device());
  if (!n.is_cpu()) return result;
  visit_dtype(Concat<TypeList<bool>, IntegralTypes>{}, n.dtype(), "ldexp", [&]<class T>(T) {
    constexpr int64_t kBias = 1023, kMantissaBits = 52;
    const T* from = n.data<T>();
    auto* to = result.data<double>();
    parallel_for(0, n.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = std::bit_cast<double>((static_cast<uint64_t>(from[i]) + kBias) << kMantissaBits);
    });
  });
  return result;
}

// 2^n itself may lie outside of the numbers of x where x 2^n does not. For integers n all but float64 are
// computed in float64, which holds every power that leaves something of theirs; float64 itself by thirds of
// n.
Tensor ldexp_body(const Call&, const Tensor& self, const Tensor& other) {
  const DType common = pointwise::common_type(Promote::Float, {&self, &other});
  const auto power = [](const Tensor& n) { return ops::pow(wrapped_number(2.0), n); };
  if (is_complex(common)) return to_dtype(self * power(to_dtype(other, common)), common);
  if (!is_integral(other.dtype()))
    return to_dtype(self * power(other.dim() == 0 ? to_dtype(other, common) : other), common);
  const auto exact_power = [&](const Tensor& n) {
    return n.is_cpu() ? power_of_two(n) : power(to_dtype(n, DType::Float64));
  };
  const Tensor exact = to_dtype(self, DType::Float64), n = to_dtype(other, DType::Int64);
  if (common != DType::Float64)
    return to_dtype(exact * exact_power(ops::clamp(n, Scalar(-1000), Scalar(1000))), common);
  const Tensor bounded = ops::clamp(n, Scalar(-2200), Scalar(2200));
  const Tensor third = ops::div_mode(bounded, wrapped_number(Scalar(3)), "trunc"), step = exact_power(third);
  return exact * step * step * exact_power(bounded - third * Scalar(2));
}
Tensor ndtr_body(const Call&, const Tensor& self) {
  return ops::erfc(self * Scalar(-std::numbers::sqrt2 / 2)) * Scalar(0.5);
}

Tensor copysign_grad(const Tensor& g, const Tensor& x, const Tensor& y) {
  return g * masked_fill(y / x, eq(x, 0), 0);
}

void register_pairs(Table& t) {
  add_binary(t, ops::atan2, "atan2(Tensor self, Tensor other) -> Tensor", Formula::Atan2, Promote::Float)
      .doc("Angle of the point (other, self).")
      .autocast(Cast::None, Cast::Widest)
      .derivative([](Grad g, In<0> y, In<1> x, Needs need) {
        const Tensor square = y * y + x * x;
        const Tensor scaled = masked_fill(g / square, eq(square, 0), 0);  // no slope at the origin
        return Grads{need[0] ? scaled * x : Tensor(), need[1] ? -scaled * y : Tensor()};
      });
  add_alias<ops::atan2>(t, "arctan2(Tensor self, Tensor other) -> Tensor");
  add_binary(t, ops::hypot, "hypot(Tensor self, Tensor other) -> Tensor", Formula::Hypot)
      .doc("sqrt(self^2 + other^2) without overflow.")
      .derivative([](Grad g, In<0, 0> x, In<1, 1> y, Out<0> r, Needs need) {
        return Grads{need[0] ? g * (x / r) : Tensor(), need[1] ? g * (y / r) : Tensor()};
      });
  t.op(ops::logaddexp, "logaddexp(Tensor self, Tensor other) -> Tensor", logaddexp_kernel)
      .family(Family::Pointwise)
      .data(pointwise::make_spec(Formula::Logaddexp, Promote::Float))
      .inplace()
      .out()
      .doc("log(exp(self) + exp(other)) without overflow.")
      .derivative([](Grad g, In<0> a, In<1> b) {
        return Grads{g / conj_of(ops::exp(b - a) + 1), g / conj_of(ops::exp(a - b) + 1)};
      });
  t.op(ops::logaddexp2, "logaddexp2(Tensor self, Tensor other) -> Tensor", logaddexp2_kernel)
      .family(Family::Pointwise)
      .data(pointwise::make_spec(Formula::Logaddexp2, Promote::Float))
      .on_devices()
      .inplace()
      .out()
      .doc("log2(2^self + 2^other) without overflow.")
      .derivative([](Grad g, In<0> a, In<1> b) {
        return Grads{g / (ops::exp2(b - a) + 1), g / (ops::exp2(a - b) + 1)};
      });
  add_binary(t, ops::xlogy, "xlogy.Tensor(Tensor self, Tensor other) -> Tensor", Formula::Xlogy,
             Promote::Float)
      .out_overload("OutTensor")
      .doc("self * log(other), 0 where self is.")
      .numbers(Numbers::Mixed)
      .inplace_function()
      .node_of_number(1, "XlogyBackward2")
      .node_of_number(0, "XlogyBackward1")
      .number_overload(kSecond, {"Scalar_Other", nullptr, "OutScalar_Other"})
      .number_overload(kFirst, {"Scalar_Self", nullptr, "OutScalar_Self"})
      .derivative([](Grad g, In<0> x, In<1> y, Needs need) {
        const Tensor flat = ops::logical_and(eq(x, 0), y <= 0);
        return Grads{need[0] ? masked_fill(ops::xlogy(g, y), flat, 0) : Tensor(),
                     need[1] ? g * x / y : Tensor()};
      });
  add_binary(t, ops::xlog1py, "special::xlog1py(Tensor self, Tensor other) -> Tensor", Formula::Xlog1py,
             Promote::Float)
      .doc("self * log1p(other), 0 where self is.")
      .numbers(Numbers::Mixed)
      .derivative([](Grad g, In<0> x, In<1> y, Needs need) {
        const Tensor flat = ops::logical_and(eq(x, 0), y <= -1);
        return Grads{need[0] ? masked_fill(ops::xlog1py(g, y), flat, 0) : Tensor(),
                     need[1] ? g * x / (y + 1) : Tensor()};
      });
  add_binary(t, ops::copysign, "copysign.Tensor(Tensor self, Tensor other) -> Tensor", Formula::Copysign,
             Promote::Float)
      .out_overload("out")
      .doc("Size of self, sign of other.")
      .numbers(Numbers::Later)
      .node_of_number(1, "CopysignBackward1")
      .derivative([](Grad g, In<0, 0> x, Out<0> y, Needs need) {
        return Grads{need[0] ? copysign_grad(g, x, y) : Tensor(), need[1] ? zeros_like(g) : Tensor()};
      });
  t.op(ops::nextafter, "nextafter(Tensor self, Tensor other) -> Tensor", nextafter_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("The next number after self towards other.")
      // A step of one unit, save where there is nowhere to go.
      .derivative([](Grad g, In<0, 0> x, In<1, 0> y, Needs need) {
        return Grads{need[0] ? masked_fill(g, ops::eq(x, y), 0) : Tensor(), zeros_like(g)};
      });
  t.op(ops::heaviside, "heaviside(Tensor self, Tensor values) -> Tensor", heaviside_kernel)
      .family(Family::Pointwise)
      .data(pointwise::make_spec(Formula::Heaviside, Promote::Same))
      .inplace()
      .out()
      .refused_derivative<"derivative for aten::heaviside is not implemented">()
      .doc("0, values or 1 by the sign of self. It has no gradient: the backward pass refuses it.");
  t.op(power_of_two, "_power_of_two(Tensor exponents) -> Tensor", power_of_two_kernel)
      .absent_in_pytorch()
      .internal()
      .family(Family::Pointwise)
      .doc("2 ** exponents as float64, of integers within its range.")
      .not_differentiable("of integers");
  t.composite(ops::ldexp, "ldexp.Tensor(Tensor self, Tensor other) -> Tensor", ldexp_body)
      .inplace()
      .out()
      .out_overload("out")
      .inplace_overload("")
      .doc("self * 2 ** other.")
      .inplace_function()
      .out_apart(kFirst)
      .one_node()
      .elementwise();
}

void register_gammas(Table& t) {
  add_unary(t, ops::lgamma, "lgamma(Tensor self) -> Tensor", Formula::Lgamma)
      .doc("Logarithm of |gamma function|.")
      .derivative([](Grad g, In<0> x) { return g * ops::digamma(x); });
  add_unary(t, ops::digamma, "digamma(Tensor self) -> Tensor", Formula::Digamma)
      .doc("Derivative of lgamma.")
      .derivative([](Grad g, In<0> x) { return g * ops::polygamma(1, x); });
  t.op(ops::polygamma, "polygamma(int n, Tensor self) -> Tensor", polygamma_kernel)
      .family(Family::Pointwise)
      .out()
      .doc("n-th derivative of digamma.")
      .derivative([](Grad g, Attr<0, int64_t> n, In<1> x) { return g * ops::polygamma(*n + 1, x); });
  t.composite("polygamma(Tensor self, int n) -> Tensor", polygamma_method)
      .method_only()
      .inplace()
      .doc("n-th derivative of digamma.");
  t.composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", vander_body)
      .function_only()
      .doc("Vandermonde's matrix.");
  t.composite(ops::mvlgamma, "mvlgamma(Tensor self, int p) -> Tensor", mvlgamma_body)
      .inplace()
      .out()
      .doc("Logarithm of the multivariate gamma function.")
      .one_node()
      .elementwise();
  add_binary(t, ops::igamma, "special::gammainc(Tensor self, Tensor other) -> Tensor", Formula::Igamma,
             Promote::Float)
      .doc("Regularised lower incomplete gamma function.")
      .derivative([](Grad g, In<0> a, In<1> x, Needs need) {
        if (need[0]) refuse_first_derivative("igamma: input");
        return Grads{Tensor(), g * ops::exp((a - 1) * ops::log(x) - x - ops::lgamma(a))};
      });
  add_binary(t, ops::igammac, "special::gammaincc(Tensor self, Tensor other) -> Tensor", Formula::Igammac,
             Promote::Float)
      .doc("Regularised upper incomplete gamma function.")
      .derivative([](Grad g, In<0> a, In<1> x, Needs need) {
        if (need[0]) refuse_first_derivative("igammac: input");
        return Grads{Tensor(), -g * ops::exp((a - 1) * ops::log(x) - x - ops::lgamma(a))};
      });
  add_alias<ops::igamma>(t, "igamma(Tensor self, Tensor other) -> Tensor").out_apart(kAllOperands);
  add_alias<ops::igammac>(t, "igammac(Tensor self, Tensor other) -> Tensor").out_apart(kAllOperands);
  add_binary(t, ops::zeta, "special::zeta(Tensor self, Tensor other) -> Tensor", Formula::Zeta,
             Promote::Float)
      .doc("Hurwitz's zeta function.")
      .numbers(Numbers::Mixed)
      .derivative([](Grad g, In<0> s, In<1> q, Needs need) {
        if (need[0]) refuse_first_derivative("zeta");
        return Grads{Tensor(), g * -s * ops::zeta(s + 1, q)};
      });
}

void register_errors(Table& t) {
  add_unary(t, ops::erf, "erf(Tensor self) -> Tensor", Formula::Erf)
      .doc("Error function.")
      .derivative([](Grad g, In<0> x) {
        return g * at_listed(x, [](const Tensor& t) { return ops::exp(-(t * t)); }) * Scalar(2 / kSqrtPi);
      });
  add_unary(t, ops::erfc, "erfc(Tensor self) -> Tensor", Formula::Erfc)
      .doc("1 - erf(self).")
      .derivative([](Grad g, In<0> x) { return g * ops::exp(-(x * x)) * Scalar(-2 / kSqrtPi); });
  add_unary(t, ops::erfinv, "erfinv(Tensor self) -> Tensor", Formula::Erfinv)
      .doc("Inverse of erf.")
      .autocast(Cast::None, Cast::Float)
      // The result is not saved, because programs write on to it: x.erfinv_().mul_(2 ** 0.5).
      .derivative([](Grad g, In<0> x) {
        return g * at_listed(ops::erfinv(x), [](const Tensor& t) { return ops::exp(t * t); }) *
               Scalar(kSqrtPi / 2);
      });
  add_unary(t, ops::erfcx, "special::erfcx(Tensor self) -> Tensor", Formula::Erfcx)
      .doc("exp(self^2) * erfc(self).")
      .derivative([](Grad g, In<0> x, Out<0> y) { return g * (x * y * 2 - Scalar(2 / kSqrtPi)); });
  add_unary(t, ops::ndtri, "special::ndtri(Tensor self) -> Tensor", Formula::Ndtri)
      .doc("Inverse of the normal distribution function.")
      .derivative(
          [](Grad g, Out<0> y) { return g * ops::exp(y * y / 2) * Scalar(std::sqrt(2 * std::numbers::pi)); });
  static Fn<Tensor(const Tensor&)> log_ndtr;
  add_unary(t, log_ndtr, "special::log_ndtr(Tensor self) -> Tensor", Formula::LogNdtr)
      .doc("Logarithm of the normal distribution function.")
      .derivative([](Grad g, In<0> x) {
        return g / ops::erfcx(x * Scalar(-std::numbers::sqrt2 / 2)) * Scalar(std::sqrt(2 / std::numbers::pi));
      });
  t.composite("special::ndtr(Tensor self) -> Tensor", ndtr_body)
      .out()
      .doc("The normal distribution function.");
}

// i0 - i1 / x, which tends to 1/2 at 0; the division there is kept out of second derivatives too.
Tensor i1_slope(const Tensor& x, const Tensor& i0, const Tensor& i1) {
  const Tensor zero = eq(x, 0);
  return where(zero, 0.5, i0 - i1 / masked_fill(x, zero, 1));
}

void register_bessels(Table& t) {
  add_unary(t, ops::i0, "i0(Tensor self) -> Tensor", Formula::I0)
      .doc("Modified Bessel function of order 0.")
      .derivative([](Grad g, In<0> x) { return g * ops::i1(x); });
  add_unary(t, ops::i0e, "special::i0e(Tensor self) -> Tensor", Formula::I0e)
      .doc("exp(-|self|) * i0(self).")
      .derivative([](Grad g, In<0> x, Out<0> y) { return g * (ops::i1e(x) - ops::sgn(x) * y); });
  add_unary(t, ops::i1, "special::i1(Tensor self) -> Tensor", Formula::I1)
      .doc("Modified Bessel function of order 1.")
      .derivative([](Grad g, In<0> x, Out<0> y) { return g * i1_slope(x, ops::i0(x), y); });
  add_unary(t, ops::i1e, "special::i1e(Tensor self) -> Tensor", Formula::I1e)
      .doc("exp(-|self|) * i1(self).")
      .derivative(
          [](Grad g, In<0> x, Out<0> y) { return g * (i1_slope(x, ops::i0e(x), y) - y * ops::sgn(x)); });
}

void register_singles(Table& t) {
  add_unary(t, ops::sinc, "sinc(Tensor self) -> Tensor", Formula::Sinc)
      .doc("sin(pi x) / (pi x).")
      .derivative([](Grad g, In<0> x) {
        const Tensor a = x * Scalar(std::numbers::pi);
        return g * conj_of(where(eq(a, 0), 0, (ops::cos(a) * a - ops::sin(a)) / (a * x)));
      });
  t.op(ops::logit, "logit(Tensor self, float? eps=None) -> Tensor", logit_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("log(self / (1 - self)), self limited to [eps, 1 - eps].")
      .derivative([](Grad g, In<0> x, Attr<1, std::optional<double>> eps) { return logit_grad(g, x, *eps); });
  add_unary(t, ops::entr, "special::entr(Tensor self) -> Tensor", Formula::Entr)
      .doc("-self * log(self).")
      .derivative([](Grad g, In<0> x) { return g * (-ops::log(x) - 1); });
  t.op(ops::nan_to_num,
       "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
       nan_to_num_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("NaN and infinities replaced by numbers.")
      .inplace_function()
      .derivative([](Grad g, In<0> x) { return g * ops::isfinite(x); });
  t.op(ops::frexp, "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", frexp_kernel)
      .out(OutRule::SameType)
      .doc("Mantissa in [0.5, 1) and exponent of 2.")
      .batching(Batching::Pointwise)
      .derivative([](Grad g, Shape<0> self, Out<1> exponent) {
        return g * ops::pow(wrapped_number(2.0), -to_dtype(exponent, self.dtype()));
      });
}

void register_special_names(Table& t) {
  auto names = [&]<auto & H>(const char* schema) {
    return t.composite(schema, &detail::Alias<H>::body).out().doc(H.op().doc).elementwise();
  };
  names.operator()<ops::exp2>("special::exp2(Tensor self) -> Tensor");
  names.operator()<ops::expm1>("special::expm1(Tensor self) -> Tensor");
  names.operator()<ops::log1p>("special::log1p(Tensor self) -> Tensor");
  names.operator()<ops::erf>("special::erf(Tensor self) -> Tensor");
  names.operator()<ops::erfc>("special::erfc(Tensor self) -> Tensor");
  names.operator()<ops::erfinv>("special::erfinv(Tensor self) -> Tensor");
  names.operator()<ops::lgamma>("special::gammaln(Tensor self) -> Tensor");
  names.operator()<ops::digamma>("special::digamma(Tensor self) -> Tensor");
  names.operator()<ops::digamma>("special::psi(Tensor self) -> Tensor");
  names.operator()<ops::polygamma>("special::polygamma(int n, Tensor self) -> Tensor");
  names.operator()<ops::mvlgamma>("special::multigammaln(Tensor self, int p) -> Tensor");
  names.operator()<ops::i0>("special::i0(Tensor self) -> Tensor");
  names.operator()<ops::sinc>("special::sinc(Tensor self) -> Tensor");
  names.operator()<ops::logit>("special::logit(Tensor self, float? eps=None) -> Tensor");
  names.operator()<ops::xlogy>("special::xlogy(Tensor self, Tensor other) -> Tensor").numbers(Numbers::Mixed);
  names.operator()<ops::round>("special::round(Tensor self, *, int decimals=0) -> Tensor");
}

}  // namespace

void register_special_operators(Table& t) {
  register_pairs(t);
  register_gammas(t);
  register_errors(t);
  register_bessels(t);
  register_singles(t);
  register_special_names(t);
}

}  // namespace rushlight
