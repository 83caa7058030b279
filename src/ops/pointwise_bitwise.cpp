// Bits and divisors of integers.
#include "ops/pointwise.h"
#include "ops/pointwise_family.h"
#include "ops/register.h"

namespace rushlight {
namespace {

using cpu::Formula;
constexpr const char* kInteger = "integer result";

Tensor bitwise_not_kernel(const Call& call, const Tensor& self) {
  if (is_bool(self.dtype())) return pointwise::compute(call, Formula::LogicalNot, DType::Bool, {&self});
  return pointwise::unary(call, self);
}

}  // namespace

void register_bitwise_operators(Table& t) {
  auto binary = [&](Fn<Tensor(const Tensor&, const Tensor&)>& handle, const char* schema, Formula f,
                    const char* doc) {
    return add_binary(t, handle, schema, f).not_differentiable(kInteger).doc(doc);
  };
  binary(ops::bitwise_and, "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", Formula::BitwiseAnd,
         "Bits set in both.")
      .numbers(Numbers::Mixed);
  binary(ops::bitwise_or, "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", Formula::BitwiseOr,
         "Bits set in one or both.")
      .numbers(Numbers::Mixed);
  binary(ops::bitwise_xor, "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", Formula::BitwiseXor,
         "Bits set in exactly one.")
      .numbers(Numbers::Mixed);
  binary(ops::bitwise_left_shift, "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
         Formula::ShiftLeft, "self * 2 ** other.")
      .numbers(Numbers::Mixed)
      .number_overload(kSecond, {"Tensor_Scalar"});
  binary(ops::bitwise_right_shift, "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
         Formula::ShiftRight, "self // 2 ** other.")
      .numbers(Numbers::Mixed)
      .number_overload(kSecond, {"Tensor_Scalar"});
  binary(ops::gcd, "gcd(Tensor self, Tensor other) -> Tensor", Formula::Gcd, "Greatest common divisor.")
      .inplace_function();
  binary(ops::lcm, "lcm(Tensor self, Tensor other) -> Tensor", Formula::Lcm, "Least common multiple.")
      .inplace_function();
  t.op(ops::bitwise_not, "bitwise_not(Tensor self) -> Tensor", bitwise_not_kernel)
      .family(Family::Pointwise)
      .data(pointwise::make_spec(Formula::BitwiseNot, Promote::Same))
      .inplace()
      .out()
      .not_differentiable(kInteger)
      .doc("All bits turned over; logical not of bool.");
}

}  // namespace rushlight
