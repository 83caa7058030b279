// The pointwise family: promotion, broadcasting, result layout, in-place and out= for every formula.
#pragma once
#include "cpu/loops.h"
#include "dispatch/table.h"

namespace rushlight {

// How the computing type follows from the promoted type of the operands.
enum class Promote : uint8_t {
  Same,     // it is that type
  Float,    // integers and bool become the default floating type
  Logical,  // every operand reads as bool, whatever its type
  NotBool,  // as Same; bool operands are refused
};

struct PointwiseSpec {
  cpu::Formula formula;
  Promote promote;
  // Where operands of one dtype can be computed as they lie: the loop, and the result's dtype.
  std::array<cpu::Loop, kDTypeCount> direct{};
  std::array<DType, kDTypeCount> result{};
};

namespace pointwise {

// Results of type `common` (bool for comparisons), with `formula` computed over the inputs broadcast
// together.
Tensor compute(const Call& call, cpu::Formula formula, DType common,
               std::initializer_list<const Tensor*> inputs, std::span<const Scalar> parameters = {});
// As above with the promotion of the record's spec; `parameters` take no part in it.
Tensor promoted(const Call& call, const PointwiseSpec& spec, std::initializer_list<const Tensor*> inputs,
                std::span<const Scalar> parameters = {});
// The promoted type of several operands under a rule.
DType common_type(Promote promote, std::initializer_list<const Tensor*> inputs);
DType float_type(DType t);  // the default dtype for integers and bool
// What formulas that depend on the spacing of a dtype's numbers are told: see formulas/special_math.h.
inline double spacing_kind(DType t) { return t == DType::Float16 ? 1 : t == DType::BFloat16 ? 2 : 0; }

// A fresh result in the layout that pointwise work on `inputs` gives, or the checked target of out= and
// in-place calls.
Tensor result(const Call& call, IntList shape, DType dtype, std::initializer_list<const Tensor*> inputs);
// Refuses an out= of another dtype than the operand's.
void check_same_out(const Call& call, const Tensor& self);

// Kernels of records whose data is a PointwiseSpec.
Tensor unary(const Call& call, const Tensor& self);
Tensor binary(const Call& call, const Tensor& self, const Tensor& other);
Tensor unary_with(const Call& call, const PointwiseSpec& spec, const Tensor& self,
                  std::span<const Scalar> parameters);
Tensor binary_with(const Call& call, const PointwiseSpec& spec, const Tensor& self, const Tensor& other,
                   std::span<const Scalar> parameters = {});

// Lives as long as the process.
const PointwiseSpec* make_spec(cpu::Formula formula, Promote promote);

}  // namespace pointwise

// Records with in-place and out= forms.
inline OpBuilder add_unary(Table& t, Fn<Tensor(const Tensor&)>& handle, const char* schema,
                           cpu::Formula formula, Promote promote = Promote::Float) {
  return t.op(handle, schema, pointwise::unary)
      .family(Family::Pointwise)
      .data(pointwise::make_spec(formula, promote))
      .on_devices()
      .inplace()
      .out();
}
inline OpBuilder add_binary(Table& t, Fn<Tensor(const Tensor&, const Tensor&)>& handle, const char* schema,
                            cpu::Formula formula, Promote promote = Promote::Same) {
  return t.op(handle, schema, pointwise::binary)
      .family(Family::Pointwise)
      .data(pointwise::make_spec(formula, promote))
      .on_devices()
      .inplace()
      .out();
}

}  // namespace rushlight
