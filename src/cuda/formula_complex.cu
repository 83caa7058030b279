// Kernels of the formulas that compute in complex numbers, all of them by strides.
#include "cuda/complex.h"
// Then what uses complex numbers.
#include "cuda/check.h"
#include "cuda/formula_struct.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "formulas/activation_math.h"
#include "formulas/math.h"
#include "formulas/table.h"

namespace rushlight::cuda {
namespace {

// The lists of src/formulas/arithmetic.h: whether they have complex numbers.
using Numbers = std::true_type;
using Products = Numbers;
using Fields = Numbers;
using Quotients = Numbers;
using FieldsV = Numbers;
using FieldsH = Numbers;
using ComplexV = Numbers;
using Comparable = Numbers;
using Real = std::false_type;
using Ordered = Real;
using RealB = Real;
using Integers = Real;
using Shiftable = Real;
using Wide = Real;
using Divisible = Real;
using Boolean = Real;
using Floating = Real;
using FloatingV = Real;
using FloatingH = Real;
using SingleH = Real;

constexpr uint32_t kThreads = 256, kPerThread = 4;

// A real number in memory is one without an imaginary part.
template <class T>
__device__ T load_complex(DType dtype, const char* address) {
  using P = typename T::value_type;
  auto part = [&](DType of, int i) { return load<P>(of, address + i * stored_size(of)); };
  switch (dtype) {
    case DType::Complex32:
      return T(part(DType::Float16, 0), part(DType::Float16, 1));
    case DType::Complex64:
      return T(part(DType::Float32, 0), part(DType::Float32, 1));
    case DType::Complex128:
      return T(part(DType::Float64, 0), part(DType::Float64, 1));
    default:
      return T(load<P>(dtype, address));
  }
}
template <class T>
__device__ void store_complex(DType dtype, char* address, T value) {
  auto put = [&](DType of) {
    store(of, address, value.real());
    store(of, address + stored_size(of), value.imag());
  };
  if (dtype == DType::Complex32) return put(DType::Float16);
  if (dtype == DType::Complex64) return put(DType::Float32);
  if (dtype == DType::Complex128) return put(DType::Float64);
  store(dtype, address, value.real());
}

template <class T>
struct Input {
  const char* data = nullptr;
  DType dtype = DType::Float32;
  T value{};
  __device__ T operator()(int64_t offset) const {
    return data ? load_complex<T>(dtype, data + offset) : value;
  }
};
template <class T>
Input<T> input_of(const Operand& operand) {
  using P = typename T::value_type;
  Input<T> input{operand.data, operand.dtype};
  if (!operand.is_value) return input;
  auto given = [&]<class S>(const S*) {
    S parts[2];
    std::memcpy(parts, operand.value, sizeof(parts));
    input.value = T(static_cast<P>(parts[0]), static_cast<P>(parts[1]));
  };
  if (operand.dtype == DType::Complex64)
    given(static_cast<float*>(nullptr));
  else if (operand.dtype == DType::Complex128)
    given(static_cast<double*>(nullptr));
  else
    input.value = T(source_of<P>(operand).value);
  return input;
}

template <class T>
struct Parameters {
  T p[4];
};

template <class F, class T>
__global__ void complex_kernel(Geometry g, char* out, DType out_dtype, Input<T> x, Input<T> y, Input<T> z,
                               Parameters<T> parameters) {
  uint32_t i = blockIdx.x * (kThreads * kPerThread) + threadIdx.x;
  for (uint32_t k = 0; k < kPerThread && i < g.numel; ++k, i += kThreads) {
    int32_t at[kMaxOperands];
    g.locate(i, at);
    const T a = x(at[1]), b = F::kInputs > 1 ? y(at[2]) : T{}, c = F::kInputs > 2 ? z(at[3]) : T{};
    const auto result = F::template apply<T>(a, b, c, parameters.p);
    if constexpr (is_complex_v<std::remove_const_t<decltype(result)>>)
      store_complex(out_dtype, out + at[0], result);
    else
      store(out_dtype, out + at[0], result);
  }
}

template <class F, class P>
void run(const Piece& piece, const void* packed, int device) {
  using T = DeviceComplex<P>;
  Parameters<T> parameters{};
  std::memcpy(static_cast<void*>(parameters.p), packed, sizeof(T) * F::kParameters);
  on_stream({device, F::kName}, [&](cudaStream_t stream) {
    const Operand* operands = piece.operands;
    const uint32_t per_block = kThreads * kPerThread;
    complex_kernel<F, T><<<(piece.geometry.numel + per_block - 1) / per_block, kThreads, 0, stream>>>(
        piece.geometry, operands[0].data, operands[0].dtype, input_of<T>(operands[1]),
        input_of<T>(operands[2]), input_of<T>(operands[3]), parameters);
  });
}

template <class F, class P>
constexpr FormulaKernel kernel_if() {
  if constexpr (F::Types::value)
    return {run<F, P>};
  else
    return {};
}

}  // namespace

// Not without a name: most of them have no kernel here, of which compilers would tell.
namespace complex_formulas {
#define RL_FORMULA(...) RL_FORMULA_AS_STRUCT(__VA_ARGS__);
RL_ARITHMETIC_FORMULAS(RL_FORMULA)
RL_COMPARISON_FORMULAS(RL_FORMULA)
RL_TRANSCENDENTAL_FORMULAS(RL_FORMULA)
RL_FORMULA(Angle, 1, 0, Fields, Part, angle(x))
RL_FORMULA(Conj, 1, 0, ComplexV, Same, conj(x))
RL_ACTIVATION_FORMULAS(RL_FORMULA)
#undef RL_FORMULA
}  // namespace complex_formulas

FormulaKernel complex_kernel_of(Formula f, bool wide) {
  switch (f) {
#define RL_CASE(name, ...) \
  case Formula::name:      \
    return wide ? kernel_if<complex_formulas::name, double>() : kernel_if<complex_formulas::name, float>();
    RL_ARITHMETIC_FORMULAS(RL_CASE)
    RL_COMPARISON_FORMULAS(RL_CASE)
    RL_TRANSCENDENTAL_FORMULAS(RL_CASE)
    RL_CASE(Angle)
    RL_CASE(Conj)
    RL_ACTIVATION_FORMULAS(RL_CASE)
#undef RL_CASE
    default:
      return {};
  }
}

}  // namespace rushlight::cuda
