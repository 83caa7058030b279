#include "ops/comparison.h"

#include <bit>

#include "core/parallel.h"
#include "cpu/copy.h"
#include "cpu/pointwise.h"
#include "dispatch/warning.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index_common.h"
#include "ops/pointwise_family.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/register_alias.h"
#include "ops/view.h"
#include "ops/zeros_like.h"

namespace rushlight {
namespace {

using cpu::Formula;

constexpr const char* kBoolResult = "the result is bool";

// x > y is y < x: two formulas give four operators.
template <Formula F>
Tensor swapped(const Call& call, const Tensor& self, const Tensor& other) {
  static const PointwiseSpec* spec = pointwise::make_spec(F, Promote::Same);
  return pointwise::binary_with(call, *spec, other, self);
}

// Class tests: integers are always finite numbers.
template <Formula F, bool Integers>
Tensor classify(const Call& call, const Tensor& self) {
  if (self.dtype() == DType::Float8_e5m2)  // the one of 8 bits that has infinities
    return classify<F, Integers>(call, to_dtype(self, DType::Float32));
  if (!is_integral_or_bool(self.dtype())) return pointwise::compute(call, F, self.dtype(), {&self});
  const Tensor out = pointwise::result(call, self.sizes(), DType::Bool, {&self});
  loops::copy(out, scalar_tensor_of(Integers, DType::Bool));
  return out;
}

void check_bool_out(const Call& call) {
  RL_CHECK(!call.out || is_bool(call.out->dtype()), call.op.name(), " does not support non-boolean outputs.");
}

Tensor isposinf_kernel(const Call& call, const Tensor& self) {
  RL_CHECK(!is_complex(self.dtype()), "isposinf does not support complex inputs.");
  check_bool_out(call);
  return classify<Formula::IsPosInf, false>(call, self);
}
Tensor isneginf_kernel(const Call& call, const Tensor& self) {
  RL_CHECK(!is_complex(self.dtype()), "isneginf does not support complex inputs.");
  check_bool_out(call);
  return classify<Formula::IsNegInf, false>(call, self);
}

Tensor signbit_kernel(const Call& call, const Tensor& self) {
  if (is_complex(self.dtype())) RL_NOT_IMPLEMENTED("signbit is not implemented for complex tensors.");
  check_bool_out(call);
  if (self.dtype() == DType::Bool) return classify<Formula::IsNegInf, false>(call, self);
  if (is_integral(self.dtype()) && !call.out) return ops::lt(self, wrapped_number(Scalar(0)));
  return pointwise::compute(call, is_integral(self.dtype()) ? Formula::IsNegative : Formula::SignBit,
                            self.dtype(), {&self});
}

Tensor isreal_body(const Call&, const Tensor& self) {
  if (is_complex(self.dtype())) return eq(ops::imag(self), 0);
  return ops::full_like(self, Scalar(true), DType::Bool, {}, {}, {}, {});
}

Tensor isclose_body(const Call&, const Tensor& self, const Tensor& other, double rtol, double atol,
                    bool equal_nan) {
  RL_CHECK(self.dtype() == other.dtype(), legacy_name(self.dtype()), " did not match ",
           legacy_name(other.dtype()));
  RL_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  RL_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor close = ops::eq(self, other);
  const bool exact = is_integral_or_bool(self.dtype());
  if (equal_nan && !exact)
    close = ops::logical_or(close, ops::logical_and(ops::isnan(self), ops::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  const Tensor a = exact ? to_dtype(self, get_default_dtype()) : self,
               b = exact ? to_dtype(other, get_default_dtype()) : other;
  const Tensor error = ops::abs(a - b), allowed = Scalar(atol) + ops::abs(b * rtol);
  return ops::logical_or(close, ops::logical_and(ops::isfinite(error), error <= allowed));
}

bool all_true(const Tensor& t) { return t.is_cpu() ? cpu::all_true(t) : read_scalar(ops::all(t)).to<bool>(); }

bool allclose_body(const Call&, const Tensor& self, const Tensor& other, double rtol, double atol,
                   bool equal_nan) {
  const Tensor close = ops::isclose(self, other, rtol, atol, equal_nan);
  if ((close->flags | dispatch_state.always) & kPythonDispatch)
    return read_dispatched_scalar(ops::all(close)).to_int() != 0;
  return all_true(close);
}

// In pieces that grow, because tensors that differ mostly do so early on.
// All elements of dense memory in one dimension.
Tensor in_memory_order(const Tensor& t) {
  const int64_t size = t.numel(), step = 1;
  return make_view(t, IntList(&size, 1), IntList(&step, 1), t.storage_offset(), false);
}

bool equal_kernel(const Call&, const Tensor& self, const Tensor& other) {
  constexpr int64_t kFirst = 1 << 10, kMost = 1 << 16;
  if (self.sizes() != other.sizes()) return false;
  if (!self.is_cpu() || self.numel() <= kFirst) return all_true(ops::eq(self, other));
  const bool alike = self->strides == other->strides && is_non_overlapping_and_dense(self);
  const Tensor a = alike ? in_memory_order(self) : self, b = alike ? in_memory_order(other) : other;
  const int64_t rows = a.size(0), row = a.numel() / rows;
  for (int64_t begin = 0, elements = kFirst; begin < rows; elements = std::min(8 * elements, kMost)) {
    const int64_t count = std::min(rows - begin, std::max<int64_t>(1, elements / row));
    if (!all_true(ops::eq(ops::narrow(a, 0, begin, count), ops::narrow(b, 0, begin, count)))) return false;
    begin += count;
  }
  return true;
}

// --- choosing

void check_condition(const Tensor& condition) {
  RL_CHECK(is_bool(condition.dtype()) || condition.dtype() == DType::UInt8,
           "where expected condition to be a boolean tensor, but got a tensor with dtype ",
           legacy_name(condition.dtype()));
}

// Small contiguous memory of the condition's shape, or one number, needs no iteration.
bool is_straight(const Tensor& condition, const Tensor& t, DType type) {
  if (!t.is_cpu()) return false;
  return t.dim() == 0 || (t.dtype() == type && t.is_contiguous() && t->sizes == condition->sizes);
}

Tensor straight_where(const Tensor& condition, const Tensor& self, const Tensor& other, DType type) {
  const Tensor out = empty_tensor(condition.sizes(), type);
  alignas(16) char values[2][16];
  const char* data[2];
  int64_t strides[2];
  int i = 0;
  for (const Tensor* t : {&self, &other}) {
    const bool whole = t->dtype() == type && t->sizes() == condition.sizes();
    if (!whole) cpu::cast_loop(type, t->dtype())(values[i], 16, t->data<char>(), 0, 1);
    data[i] = whole ? t->data<char>() : values[i];
    strides[i++] = whole;
  }
  const cpu::WhereLoop loop = cpu::where_loops[std::countr_zero(out.itemsize())];
  loop(out.data<char>(), condition.data<bool>(), data[0], strides[0], data[1], strides[1], out.numel());
  return out;
}

Tensor where_kernel(const Call& call, const Tensor& condition, const Tensor& self, const Tensor& other) {
  check_condition(condition);
  if (condition.dtype() == DType::UInt8) [[unlikely]] {
    static OnceWarning deprecated(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
        "future "
        "version of PyTorch. Use a boolean condition instead.");
    deprecated.show();
  }
  const DType type = result_type(self, other);
  RL_CHECK(!call.out || call.out->dtype() == type, "Expected out type to be ", legacy_name(type), " but got ",
           legacy_name(call.out->dtype()));
  const bool half =
      type == DType::Float16 || type == DType::BFloat16;  // they take what overflows as infinity
  for (const Tensor* t : {&self, &other})
    if (t->is_wrapped_number() && t->is_cpu()) read_scalar(*t).check_fits(half ? DType::Float32 : type);
  if (!call.out && condition.is_cpu() && is_bool(condition.dtype()) && condition.is_contiguous() &&
      condition.numel() <= kGrainSize && is_straight(condition, self, type) &&
      is_straight(condition, other, type))
    return straight_where(condition, self, other, type);
  const Dims shape = broadcast_shapes(condition.sizes(), broadcast_shapes(self.sizes(), other.sizes()));
  const Tensor out = pointwise::result(call, shape, type, {&condition, &self, &other});
  loops::where(out, condition, self, other);
  return out;
}

Tensor where_method(const Call&, const Tensor& self, const Tensor& condition, const Tensor& other) {
  return ops::where(condition, self, other);
}

// An expanded target is filled where the mask holds for any of the elements that share a place.
void fill_expanded(Tensor target, Tensor mask, const Tensor& value) {
  warn_of_expanded(target, "masked_fill_", "tensor[mask] = scalar");
  mask = ops::expand(mask, target.sizes(), false);
  for (int64_t d = 0; d < target.dim(); ++d) {
    if (target->strides[d] != 0 || target->sizes[d] <= 1) continue;
    target = ops::narrow(target, d, 0, 1);
    mask = ops::any_dim(mask, d, true);
  }
  ops::masked_fill.inplace(target, mask, value);
}

Tensor masked_fill_kernel(const Call& call, const Tensor& self, const Tensor& mask, const Tensor& value) {
  RL_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
           value.dim(), " dimension(s).");
  RL_CHECK(is_bool(mask.dtype()), "masked_fill_ only supports boolean masks, but got mask with dtype ",
           dtype_name(mask.dtype()));
  Tensor filling = value;
  if (value.is_cpu() && value.dtype() != self.dtype()) {
    const Scalar number = read_scalar(value);
    number.check_fits(self.dtype());
    filling = scalar_tensor_of(number, self.dtype());
  }
  const Dims shape = broadcast_shapes(self.sizes(), mask.sizes());
  if (call.inplace && shape == self->sizes && has_internal_overlap(self)) {
    fill_expanded(self, mask, filling);
    return self;
  }
  // A new result is contiguous whatever the operands' order: programs call view() on it.
  const Tensor out = call.out ? pointwise::result(call, shape, self.dtype(), {&self, &mask})
                              : empty_tensor(shape, self.dtype(), (self.is_cpu() ? mask : self).device());
  loops::where(out, mask, filling, self);
  return out;
}

void register_choices(Table& t) {
  t.op(ops::where, "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", where_kernel)
      .family(Family::Pointwise)
      .on_devices()
      .out()
      .doc("self where condition holds, else other.")
      .linear()
      .numbers(Numbers::Mixed)
      .number_overload(kSecond, {"ScalarSelf"})
      .number_overload(kThird, {"ScalarOther"})
      .derivative([](Grad g, In<0> c, Needs need) {
        return Grads{Tensor(), need[1] ? where(c, g, 0) : Tensor(), need[2] ? where(c, 0, g) : Tensor()};
      });
  t.composite("where.method(Tensor self, Tensor condition, Tensor other) -> Tensor", where_method)
      .method_only()
      .spelling(Spelling::Python)
      .doc("self where condition holds, else other.")
      .numbers(Numbers::Mixed)
      .elementwise();
  t.op(ops::masked_fill, "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
       masked_fill_kernel)
      .family(Family::Pointwise)
      .on_devices()
      .inplace()
      .doc("value where mask holds, else self.")
      .linear()
      .numbers(Numbers::Mixed)
      .node_of_number(2, "MaskedFillBackward0")
      .node("MaskedFillBackward1")
      .derivative([](Grad g, In<1> mask, Needs need) {
        return Grads{need[0] ? masked_fill(g, mask, 0) : Tensor(), Tensor(),
                     need[2] ? where(mask, g, 0) : Tensor()};
      });
}

void register_classes(Table& t) {
  auto test = [&](Fn<Tensor(const Tensor&)>& handle, const char* schema,
                  Tensor (*kernel)(const Call&, const Tensor&), const char* doc) {
    return t.op(handle, schema, kernel)
        .family(Family::Pointwise)
        .gives_bool()
        .not_differentiable(kBoolResult)
        .doc(doc);
  };
  test(ops::isnan, "isnan(Tensor self) -> Tensor", classify<Formula::IsNan, false>,
       "Whether an element is not a number.");
  test(ops::isinf, "isinf(Tensor self) -> Tensor", classify<Formula::IsInf, false>,
       "Whether an element is infinite.");
  test(ops::isfinite, "isfinite(Tensor self) -> Tensor", classify<Formula::IsFinite, true>,
       "Whether an element is a finite number.");
  test(ops::isposinf, "isposinf(Tensor self) -> Tensor", isposinf_kernel, "Whether an element is +inf.")
      .out();
  test(ops::isneginf, "isneginf(Tensor self) -> Tensor", isneginf_kernel, "Whether an element is -inf.")
      .out();
  test(ops::signbit, "signbit(Tensor self) -> Tensor", signbit_kernel,
       "Whether the sign bit is set, also for -0.0.")
      .out();
  t.composite(ops::isreal, "isreal(Tensor self) -> Tensor", isreal_body)
      .doc("Whether the imaginary part is zero.")
      .gives_bool()
      .elementwise();
  t.composite(ops::isclose,
              "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) "
              "-> Tensor",
              isclose_body)
      .gives_bool()
      .doc("|self - other| <= atol + rtol * |other|, element by element.");
  t.composite(ops::allclose,
              "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) "
              "-> bool",
              allclose_body)
      .no_meta("the answer depends on the values")
      .reads_values()
      .doc("Whether isclose holds for all elements.");
  t.op(ops::equal, "equal(Tensor self, Tensor other) -> bool", equal_kernel)
      .no_meta("the answer depends on the values")
      .reads_values()
      .family(Family::Value)
      .on_devices()
      .not_differentiable(kBoolResult)
      .doc("Whether shapes and all elements agree.");
}

void assert_body(const Call&, const Tensor& self, std::string_view message) {
  RL_CHECK(self.numel() == 1, "Boolean value of Tensor with ",
           self.numel() ? "more than one value" : "no values", " is ambiguous");
  RL_CHECK(read_scalar(self).to<bool>(), message);
}
void plain_assert_body(const Call& call, const Tensor& self) {
  assert_body(call, self, "Expected Tensor with single nonzero value, but got zero");
}

void register_assertions(Table& t) {
  const char* doc = "Raises RuntimeError unless the tensor's only element is true.";
  t.composite("_assert_async(Tensor self) -> ()", plain_assert_body)
      .function_only()
      .example_by_example()
      .doc(doc);
  t.composite("_assert_async.msg(Tensor self, str assert_msg) -> ()", assert_body)
      .function_only()
      .example_by_example()
      .doc(doc);
}

}  // namespace

void register_comparison_operators(Table& t) {
  register_assertions(t);
  auto compare = [&](Fn<Tensor(const Tensor&, const Tensor&)>& handle, const char* schema, Formula f,
                     const char* doc, Promote promote = Promote::Same) {
    return add_binary(t, handle, schema, f, promote).gives_bool().not_differentiable(kBoolResult).doc(doc);
  };
  auto reversed = [&](Fn<Tensor(const Tensor&, const Tensor&)>& handle, const char* schema,
                      Tensor (*kernel)(const Call&, const Tensor&, const Tensor&), const char* doc) {
    return t.op(handle, schema, kernel)
        .family(Family::Pointwise)
        .inplace()
        .out()
        .gives_bool()
        .not_differentiable(kBoolResult)
        .doc(doc);
  };
  compare(ops::eq, "eq.Tensor(Tensor self, Tensor other) -> Tensor", Formula::Eq, "self == other.")
      .numbers(Numbers::Later);
  compare(ops::ne, "ne.Tensor(Tensor self, Tensor other) -> Tensor", Formula::Ne, "self != other.")
      .numbers(Numbers::Later);
  compare(ops::lt, "lt.Tensor(Tensor self, Tensor other) -> Tensor", Formula::Lt, "self < other.")
      .numbers(Numbers::Later);
  compare(ops::le, "le.Tensor(Tensor self, Tensor other) -> Tensor", Formula::Le, "self <= other.")
      .numbers(Numbers::Later);
  reversed(ops::gt, "gt.Tensor(Tensor self, Tensor other) -> Tensor", swapped<Formula::Lt>, "self > other.")
      .numbers(Numbers::Later);
  reversed(ops::ge, "ge.Tensor(Tensor self, Tensor other) -> Tensor", swapped<Formula::Le>, "self >= other.")
      .numbers(Numbers::Later);
  add_alias<ops::ne>(t, "not_equal.Tensor(Tensor self, Tensor other) -> Tensor").numbers(Numbers::Later);
  add_alias<ops::lt>(t, "less.Tensor(Tensor self, Tensor other) -> Tensor").numbers(Numbers::Later);
  add_alias<ops::le>(t, "less_equal.Tensor(Tensor self, Tensor other) -> Tensor").numbers(Numbers::Later);
  add_alias<ops::gt>(t, "greater.Tensor(Tensor self, Tensor other) -> Tensor").numbers(Numbers::Later);
  add_alias<ops::ge>(t, "greater_equal.Tensor(Tensor self, Tensor other) -> Tensor").numbers(Numbers::Later);
  const auto logical = Promote::Logical;
  compare(ops::logical_and, "logical_and(Tensor self, Tensor other) -> Tensor", Formula::LogicalAnd,
          "Whether both are nonzero.", logical);
  compare(ops::logical_or, "logical_or(Tensor self, Tensor other) -> Tensor", Formula::LogicalOr,
          "Whether one is nonzero.", logical);
  compare(ops::logical_xor, "logical_xor(Tensor self, Tensor other) -> Tensor", Formula::LogicalXor,
          "Whether exactly one is nonzero.", logical);
  add_unary(t, ops::logical_not, "logical_not(Tensor self) -> Tensor", Formula::LogicalNot, Promote::Same)
      .gives_bool()
      .not_differentiable(kBoolResult)
      .doc("Whether an element is zero.");
  register_classes(t);
  register_choices(t);
}

}  // namespace rushlight
