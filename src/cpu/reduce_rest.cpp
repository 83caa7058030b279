// The reductions that isa/reduce_hot.cpp and isa/reduce_integers.cpp leave out, compiled once.
#define RL_ISA plain
#include "cpu/reduce_formulas.h"

namespace rushlight::cpu::plain {

ReduceKernel rest_reduce_kernel(ReduceOp op, DType in) {
  using Small = TypeList<uint8_t, int8_t, int16_t, int32_t, uint16_t, uint32_t, uint64_t>;
  switch (op) {
    case ReduceOp::Sum:
      return pick_kernel<Sum>(Concat<TypeList<uint16_t, uint32_t, uint64_t>, ComplexTypes>{}, in);
    case ReduceOp::NanSum:
      return pick_kernel<NanSum>(ComplexTypes{}, in);
    case ReduceOp::Prod:
      return pick_kernel<Product>(AllTypes{}, in);
    case ReduceOp::Max:  // bools are the bytes 0 and 1
      return pick_kernel<Max>(Small{}, in == DType::Bool ? DType::UInt8 : in);
    case ReduceOp::Min:
      return pick_kernel<Min>(Small{}, in == DType::Bool ? DType::UInt8 : in);
    case ReduceOp::Norm0:
      return pick_kernel<Norm0>(FloatTypes{}, in);
    case ReduceOp::MinAbs:
      return pick_kernel<MinAbs>(FloatTypes{}, in);
    default:
      return {};
  }
}

}  // namespace rushlight::cpu::plain
