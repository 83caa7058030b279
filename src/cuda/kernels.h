// The loops of this library.
#pragma once
#include <span>

#include "cuda/piece.h"
#include "formulas/table.h"

namespace rushlight {
struct DeviceKernels;
struct DeviceMoves;
struct FormulaCall;
struct ReduceCall;
class Scalar;
class Tensor;  // nvcc does not read its header
namespace cpu {
struct FusedProgram;
}
}  // namespace rushlight

namespace rushlight::cuda {

// All of them but the formulas, as the operators find them.
DeviceKernels kernels();
DeviceMoves moves();
bool run_formula(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
                 std::span<const Scalar> parameters);
bool run_formulas(std::span<const FormulaCall> calls);
bool run_fused(const cpu::FusedProgram& program, std::span<const Tensor> inputs,
               std::span<const Tensor> outputs);

// Dtypes that kernels read and write one by one.
inline bool loads(DType t) { return !is_complex(t) && t <= DType::Float64; }

// A formula in one compute type. Null: not here.
struct FormulaMultiTensor;
struct FormulaKernel {
  // One piece. `parameters`: of the compute type.
  void (*one)(const Piece& piece, const void* parameters, int device) = nullptr;
  void (*many)(const FormulaMultiTensor& many, int device) = nullptr;
};
// By formula of the family in order, then by compute type: int32, int64, float, double, bool.
using FormulaKernels = FormulaKernel[5];
extern const FormulaKernels arithmetic_kernels[], comparison_kernels[], transcendental_kernels[],
    special_kernels[], activation_kernels[];

// In complex64, or complex128 where it is wide.
FormulaKernel complex_kernel_of(Formula f, bool wide);

void run_copy(const Piece& piece, int device);
void run_where(const Piece& piece, int device);

// Those of cpu/reduce.h and cpu/index.h, in their order (kernels.cpp checks), which nvcc does not read
// either.
#define RL_REDUCTIONS(_) \
  _(Sum)                 \
  _(NanSum) _(Prod) _(Max) _(Min) _(All) _(Any) _(Norm0) _(Norm1) _(Norm2) _(MaxAbs) _(MinAbs) _(Deviation)
enum class Reduction : uint8_t {
#define RL_NAME(name) name,
  RL_REDUCTIONS(RL_NAME)
#undef RL_NAME
};
enum class Writing : uint8_t { Assign, Add, Multiply, Max, Min };

struct ReduceOptions {
  double divisor = 1;
  const void* centre = nullptr;  // of `in`'s dtype, one for each output
};
// The dimensions of `in` whose bit is set, into contiguous `out`.
void run_reduce(Reduction op, const View& in, uint64_t dims, const View& out, const ReduceOptions& params);
void run_complex_product(const View& in, uint64_t dims, const View& out);
// All of each tensor, which has no gaps, to one element. The outputs are of one dtype, the inputs too.
struct WholeReduction {
  const void* in;
  void* out;
  int64_t numel;
};
void run_reductions(Reduction op, int device, DType in, DType out, std::span<const WholeReduction> tensors,
                    double divisor);
void run_arg_extreme(const View& in, int64_t dim, bool largest, const View& values, const View& indices);
// Of complex numbers products alone.
void run_cumulate(bool product, const View& in, int64_t dim, const View& out);

// offsets += index * stride, in elements. Operands: offsets, index.
void run_add_positions(const Piece& piece, int64_t size, int64_t stride, bool wraps, int device);
// As DeviceMoves::Indexing.
struct Indexing {
  int64_t size, stride;
  bool wraps;
};
// Operands: out, base, offsets.
void run_take(const Piece& piece, const Indexing& by, int device);
// Operands: base, offsets, values.
void run_put(Writing op, const Piece& piece, const Indexing& by, int device);

// Random fills of contiguous memory.
enum class RandomKind : uint8_t { Uniform, Normal, Bernoulli, Exponential, Integers };
struct RandomPlace {
  int64_t threads;  // of the grid that PyTorch would launch, which decides who draws what
  uint64_t seed, offset;
  const uint64_t* base;
};
// Numbers that a thread gets from one turn of its generator: four of 32 bits or two of 64.
RL_BOTH inline int random_width(RandomKind kind, DType dtype, uint64_t range) {
  const bool wide = kind == RandomKind::Integers ? range == 0 || range >> 28 : dtype == DType::Float64;
  return wide ? 2 : 4;
}
void run_random(RandomKind kind, const View& out, double a, double b, uint64_t range, const RandomPlace& at);
// Ones with the probabilities p, as contiguous as out.
void run_bernoulli(const View& out, const View& p, const RandomPlace& at);
// Memory of out.dtype without gaps, and a mask of bools.
void run_dropout(const View& out, char* mask, const char* in, double keep, int64_t at_once,
                 const RandomPlace& at);

// out = alpha * a @ b + beta * out: matrices or batches of them, of which one stride is an element.
struct GemmSwitches;
bool run_product(const View& out, const View& a, const View& b, double alpha, double beta,
                 const GemmSwitches& allowed);
// out = activation(a @ b + bias), for a bias of one element a column. False: not here.
enum class Epilogue : uint8_t { None, Relu, Gelu };
bool run_product_bias(const View& out, const View& a, const View& b, const void* bias, Epilogue epilogue,
                      const GemmSwitches& allowed);

// out[i] = start + i * step, contiguous.
void run_range(const View& out, const double* real, const int64_t* whole);
// Contiguous matrices with zeros outside the triangle; `in` may be `out`.
void run_triangle(const View& out, const View& in, int64_t diagonal, bool upper);

}  // namespace rushlight::cuda
