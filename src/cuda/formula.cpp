// Which kernel computes a formula.
#include <algorithm>
#include <cstring>

#include "cuda/formula_multi_tensor.h"
#include "cuda/kernels.h"
#include "cuda/operands.h"
#include "device/kernels.h"

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
    case DType::Complex64:
      return 5;
    case DType::Complex128:
      return 6;
    default:
      return -1;
  }
}

// Calls f(Tag<T>{}) for the compute type T of a column.
template <class F>
void visit_column(int column, F&& f) {
  switch (column) {
    case 0:
      return f(Tag<int32_t>{});
    case 1:
      return f(Tag<int64_t>{});
    case 2:
      return f(Tag<float>{});
    case 3:
      return f(Tag<double>{});
    case 4:
      return f(Tag<bool>{});
    case 5:
      return f(Tag<complex64>{});
    default:
      return f(Tag<complex128>{});
  }
}

constexpr int kFirstComplex = 5;

FormulaKernel find(Formula f, int column) {
  if (column >= kFirstComplex) return complex_kernel_of(f, column > kFirstComplex);
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
  return {};
}

// The parameters of a formula as its kernel takes them.
struct PackedParameters {
  alignas(16) unsigned char bytes[4 * 16] = {};
  PackedParameters(int column, DType compute, std::span<const Scalar> parameters) {
    visit_column(column, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < parameters.size() && i < 4; ++i) {
        const T value = number_from<T>(parameters[i], compute);
        std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
      }
    });
  }
};

using Inputs = std::span<const Tensor* const>;

bool loads_all(int column, const Tensor& out, Inputs inputs) {
  auto fits = [&](DType t) { return loads(t) || (column >= kFirstComplex && is_complex(t)); };
  return fits(out.dtype()) &&
         std::all_of(inputs.begin(), inputs.end(), [&](const Tensor* t) { return fits(t->dtype()); });
}
bool loads_all(int column, const FormulaCall& call) {
  return call.with_inputs([&](Inputs inputs) { return loads_all(column, call.out, inputs); });
}

}  // namespace

bool run_formula(Formula f, DType compute, const Tensor& out, Inputs inputs,
                 std::span<const Scalar> parameters) {
  const int column = column_of(compute);
  const FormulaKernel kernel = column < 0 ? FormulaKernel{} : find(f, column);
  if (!kernel.one || !loads_all(column, out, inputs)) return false;
  const PackedParameters packed(column, compute, parameters);
  const int device = out.device().index();
  for_each_piece(out, inputs, [&](const Piece& piece) { kernel.one(piece, packed.bytes, device); });
  return true;
}

bool run_formulas(std::span<const FormulaCall> calls) {
  const int column = column_of(calls[0].compute), device = calls[0].out.device().index();
  const FormulaKernel kernel = column < 0 ? FormulaKernel{} : find(calls[0].formula, column);
  if (!kernel.one || column >= kFirstComplex) return false;
  if (!std::all_of(calls.begin(), calls.end(),
                   [&](const FormulaCall& call) { return loads_all(column, call); }))
    return false;
  FormulaMultiTensor many;
  auto launch = [&] {
    if (many.tensor_blocks.count > 0) kernel.many(many, device);
    many.tensor_blocks = {};
  };
  for (const FormulaCall& call : calls) {
    const PackedParameters packed(column, call.compute, call.parameters());
    auto run = [&](const Piece& piece) {
      if (!kernel.many || !FormulaMultiTensor::fits(piece)) return kernel.one(piece, packed.bytes, device);
      if (!many.goes_with(piece)) launch();
      visit_column(column, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (!is_complex_v<T>) many.add<T>(piece, call.compute, call.parameters());
      });
    };
    call.with_inputs([&](Inputs inputs) { for_each_piece(call.out, inputs, run); });
  }
  launch();
  return true;
}

}  // namespace rushlight::cuda
