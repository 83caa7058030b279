// Which kernel computes a formula.
#include <cstring>

#include "cuda/kernels.h"
#include "cuda/operands.h"
#include "dispatch/device_kernels.h"

namespace rushlight::cuda {
namespace {

// Where a compute type stands in FormulaKernels. Arithmetic of narrow integers is that of int32, cut when it
// is stored.
int column_of(DType compute) {
  switch (compute) {
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
      return 0;
    case DType::Int64:
      return 1;
    case DType::Float32:
      return 2;
    case DType::Float64:
      return 3;
    case DType::Bool:
      return 4;
    default:
      return -1;
  }
}

FormulaKernel find(Formula f, int column) {
  int rest = static_cast<int>(f);
#define RL_ONE(...) +1
#define RL_FAMILY(table, list)                    \
  {                                               \
    constexpr int count = 0 list(RL_ONE);         \
    if (rest < count) return table[rest][column]; \
    rest -= count;                                \
  }
  RL_FAMILY(arithmetic_kernels, RL_ARITHMETIC_FORMULAS)
  RL_FAMILY(comparison_kernels, RL_COMPARISON_FORMULAS)
  RL_FAMILY(transcendental_kernels, RL_TRANSCENDENTAL_FORMULAS)
  RL_FAMILY(special_kernels, RL_SPECIAL_FORMULAS)
  RL_FAMILY(activation_kernels, RL_ACTIVATION_FORMULAS)
#undef RL_FAMILY
#undef RL_ONE
  return nullptr;
}

}  // namespace

bool run_formula(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
                 std::span<const Scalar> parameters) {
  const int column = column_of(compute);
  const FormulaKernel kernel = column < 0 ? nullptr : find(f, column);
  if (!kernel || !loads(out.dtype())) return false;
  for (const Tensor* t : inputs)
    if (!loads(t->dtype())) return false;
  alignas(16) unsigned char packed[4 * 8] = {};
  for (size_t i = 0; i < parameters.size() && i < 4; ++i) {
    auto put = [&](auto value) { std::memcpy(packed + i * sizeof(value), &value, sizeof(value)); };
    column == 0   ? put(static_cast<int32_t>(parameters[i].to<int64_t>()))
    : column == 1 ? put(parameters[i].to<int64_t>())
    : column == 2 ? put(static_cast<float>(parameters[i].to_double()))
    : column == 3 ? put(parameters[i].to_double())
                  : put(parameters[i].to<bool>());
  }
  const int device = out.device().index();
  for_each_piece(out, inputs, [&](const Piece& piece) { kernel(piece, packed, device); });
  return true;
}

}  // namespace rushlight::cuda
