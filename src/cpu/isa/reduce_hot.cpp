// The reductions worth compiling for each instruction set; reduce_rest.cpp has the others.
#include "cpu/reduce_formulas.h"

namespace rushlight::cpu::RL_ISA {

ReduceKernel hot_reduce_kernel(ReduceOp op, DType in) {
  using Ordered = Concat<FloatTypes, TypeList<int64_t>>;
  using Extremes = Concat<Ordered, TypeList<uint8_t, int8_t, int16_t, int32_t>>;
  switch (op) {
    case ReduceOp::Sum:
      return pick_kernel<Sum>(Concat<Ordered, TypeList<bool, complex64, complex128>>{}, in);
    case ReduceOp::NanSum:
      return pick_kernel<NanSum>(FloatTypes{}, in);
    case ReduceOp::Deviation:
      return pick_kernel<Deviation>(FloatTypes{}, in);
    case ReduceOp::Prod:
      return pick_kernel<Product>(Concat<Ordered, TypeList<complex64, complex128>>{}, in);
    case ReduceOp::Max:
      return pick_kernel<Max>(Extremes{}, in);
    case ReduceOp::Min:
      return pick_kernel<Min>(Extremes{}, in);
    case ReduceOp::Norm1:
      return pick_kernel<Norm1>(FloatTypes{}, in);
    case ReduceOp::Norm2:
      return pick_kernel<Norm2>(FloatTypes{}, in);
    case ReduceOp::MaxAbs:
      return pick_kernel<MaxAbs>(FloatTypes{}, in);
    default:
      break;
  }
  if (in != DType::Bool && in != DType::UInt8) return {};
  if (op == ReduceOp::All) return reduce_kernel_of<Logic<true>>();
  if (op == ReduceOp::Any) return reduce_kernel_of<Logic<false>>();
  return {};
}

}  // namespace rushlight::cpu::RL_ISA
