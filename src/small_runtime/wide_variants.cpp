// The small runtime on processors with 512-bit vectors. Loops that memory bounds gain nothing by them, small
// products and matrices little, and training is not its work: there the runtime keeps AVX2's alone.
// cmake/SmallRuntime.cmake leaves these files out of the avx512 set; what they define is defined here.
#include "cpu/accumulate.h"
#include "cpu/affine.h"
#include "cpu/arg_extreme.h"
#include "cpu/attention.h"
#include "cpu/byte_conv.h"
#include "cpu/chain_product.h"
#include "cpu/ctc.h"
#include "cpu/depthwise_lines.h"
#include "cpu/double_gemm.h"
#include "cpu/embedding_bag.h"
#include "cpu/filter_gradient.h"
#include "cpu/grid_sample.h"
#include "cpu/integer_gemm.h"
#include "cpu/isa/tables.h"
#include "cpu/isa_variant.h"
#include "cpu/linalg_distance.h"
#include "cpu/line_conv.h"
#include "cpu/matrix_vector.h"
#include "cpu/norm.h"
#include "cpu/packed_conv.h"
#include "cpu/pool.h"
#include "cpu/quantize.h"
#include "cpu/quantized_binary.h"
#include "cpu/reduce.h"
#include "cpu/resample.h"
#include "cpu/rnn.h"
#include "cpu/small_matrices.h"
#include "cpu/small_products.h"
#include "cpu/topk.h"
#include "cpu/weight_product.h"

namespace rushlight::cpu {

// NARROW(f(T x), (x)): avx512::f is avx2::f.
#define NARROW(declaration, name, arguments)   \
  namespace avx2 {                             \
  declaration;                                 \
  }                                            \
  namespace avx512 {                           \
  declaration { return avx2::name arguments; } \
  }

NARROW(ReduceKernel hot_reduce_kernel(ReduceOp op, DType in), hot_reduce_kernel, (op, in))
NARROW(ReduceKernel integer_sum_kernel(DType in), integer_sum_kernel, (in))
NARROW(void resample(DType dtype, const ResamplePlan& plan, const void* in, void* out), resample,
       (dtype, plan, in, out))
NARROW(void grid_sample(const SamplePlan& plan, const void* input, const void* grid, void* out), grid_sample,
       (plan, input, grid, out))
NARROW(void grid_sample_backward(const SamplePlan& plan, const void* grad, const void* input,
                                 const void* grid, void* grad_input, void* grad_grid),
       grid_sample_backward, (plan, grad, input, grid, grad_input, grad_grid))
NARROW(AffineKernels affine_kernels(), affine_kernels, ())
NARROW(WeightKernels weight_kernels(), weight_kernels, ())
NARROW(void quantize_range(const Quantization& q, const float* from, void* to, int64_t begin, int64_t end),
       quantize_range, (q, from, to, begin, end))
NARROW(void dequantize_range(const Quantization& q, const void* from, float* to, int64_t begin, int64_t end),
       dequantize_range, (q, from, to, begin, end))
NARROW(void quantized_binary_range(const QuantizedBinary& q, int64_t begin, int64_t end),
       quantized_binary_range, (q, begin, end))
NARROW(void map_bytes_range(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t n),
       map_bytes_range, (table, from, to, n))
NARROW(PoolKernels float_pool_kernels(DType dtype), float_pool_kernels, (dtype))
NARROW(MaxPool byte_max_pool(bool is_signed), byte_max_pool, (is_signed))
NARROW(void embedding_bag(const BagPlan& plan, const void* table, void* out, int64_t* counts,
                          int64_t* largest),
       embedding_bag, (plan, table, out, counts, largest))
NARROW(void embedding_bag_backward(const BagPlan& plan, const void* grad, const int64_t* counts,
                                   const int64_t* largest, const double* inverse_frequency, void* grad_table),
       embedding_bag_backward, (plan, grad, counts, largest, inverse_frequency, grad_table))
NARROW(void embedding_bag_factors(const BagPlan& plan, const void* grad, const void* table,
                                  void* grad_factors),
       embedding_bag_factors, (plan, grad, table, grad_factors))
NARROW(int64_t attention_backward_bytes(const AttentionHead& h), attention_backward_bytes, (h))
NARROW(void attention_backward_head(const AttentionHead& h, const AttentionHeadGradients& g, void* memory,
                                    bool first, bool last),
       attention_backward_head, (h, g, memory, first, last))
NARROW(double ctc_forward(DType dtype, const CtcSample& sample), ctc_forward, (dtype, sample))
NARROW(void ctc_backward(DType dtype, const CtcSample& sample, double loss, double grad_out, void* grad),
       ctc_backward, (dtype, sample, loss, grad_out, grad))
NARROW(ArgExtremeColumns arg_extreme_columns_variant(DType dtype, bool largest), arg_extreme_columns_variant,
       (dtype, largest))
NARROW(ArgExtremeLine arg_extreme_line_variant(DType dtype, bool largest), arg_extreme_line_variant,
       (dtype, largest))
NARROW(DepthwiseLineKernels depthwise_line_kernels(), depthwise_line_kernels, ())
NARROW(ByteDepthwiseKernels byte_depthwise_kernels_variant(), byte_depthwise_kernels_variant, ())
NARROW(DoubleTile double_tile(), double_tile, ())
NARROW(IntegerTile integer_tile_variant(size_t word, bool halves), integer_tile_variant, (word, halves))
NARROW(IntegerRow integer_row_variant(size_t size), integer_row_variant, (size))
NARROW(IntegerDot integer_dot_variant(size_t size), integer_dot_variant, (size))
NARROW(void row_dots(DType dtype, const void* rows, int64_t step, int64_t count, int64_t inner, const void* x,
                     void* y),
       row_dots, (dtype, rows, step, count, inner, x, y))
NARROW(void column_sums(DType dtype, const void* columns, int64_t step, int64_t count, int64_t inner,
                        const void* x, void* y),
       column_sums, (dtype, columns, step, count, inner, x, y))
NARROW(void complex_products(DType dtype, int64_t n, const void* x, const void* y, double* sums),
       complex_products, (dtype, n, x, y, sums))
NARROW(void small_products(const SmallProducts& p, int64_t begin, int64_t end), small_products,
       (p, begin, end))
NARROW(ChainKernels chain_kernels(), chain_kernels, ())
NARROW(SmallMatrices small_matrices_variant(DType dtype), small_matrices_variant, (dtype))
NARROW(const NormKernels* find_norm_kernels(DType dtype), find_norm_kernels, (dtype))
NARROW(void lstm_step(DType dtype, const LstmStep& s), lstm_step, (dtype, s))
NARROW(void lstm_step_backward(DType dtype, const LstmStepGradients& s), lstm_step_backward, (dtype, s))
NARROW(void gru_step(DType dtype, const GruStep& s), gru_step, (dtype, s))
NARROW(void gru_step_backward(DType dtype, const GruStepGradients& s), gru_step_backward, (dtype, s))
NARROW(AddRun add_run_variant(DType dtype), add_run_variant, (dtype))
NARROW(CombineRun combine_run_variant(RunOp op, DType dtype), combine_run_variant, (op, dtype))
NARROW(FilterGradientKernels filter_gradient_kernels(), filter_gradient_kernels, ())
NARROW(LineConvKernels line_conv_kernels(), line_conv_kernels, ())
NARROW(PackedConvKernels packed_conv_kernels(), packed_conv_kernels, ())
NARROW(SkipOrdered skip_ordered_variant(DType dtype, bool largest), skip_ordered_variant, (dtype, largest))
NARROW(bool count_from_least_variant(const void* x, int64_t n, bool is_signed, uint32_t* to, uint64_t* least),
       count_from_least_variant, (x, n, is_signed, to, least))
NARROW(const DistanceLoops& distance_loops(bool double_precision), distance_loops, (double_precision))
#undef NARROW

// Without a loop here the one of the set before stays (cpu/loops.cpp).
namespace avx512 {
#define COUNT(...) +1
const FormulaLoops arithmetic_loops[0 RL_ARITHMETIC_FORMULAS(COUNT)] = {};
const FormulaLoops comparison_loops[0 RL_COMPARISON_FORMULAS(COUNT)] = {};
const FormulaLoops transcendental_loops[0 RL_TRANSCENDENTAL_FORMULAS(COUNT)] = {};
const FormulaLoops division_loops[0 RL_DIVISION_FORMULAS(COUNT)] = {};
const FormulaLoops gamma_loops[0 RL_GAMMA_FORMULAS(COUNT)] = {};
const FormulaLoops bessel_loops[0 RL_BESSEL_FORMULAS(COUNT)] = {};
const FormulaLoops polynomial_loops[0 RL_POLYNOMIAL_FORMULAS(COUNT)] = {};
const FormulaLoops activation_loops[0 RL_ACTIVATION_FORMULAS(COUNT)] = {};
const std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount> cast_table = {};
const std::array<WhereLoop, 5> where_table = avx2::where_table;
const BitLoops bit_loops = baseline::bit_loops;
}  // namespace avx512

// Special functions, distances, places of extremes, sums of short integers and gradients are rare in models
// and long: one set of them will do.
#define NARROWEST(declaration, name, arguments)    \
  namespace baseline {                             \
  declaration;                                     \
  }                                                \
  namespace avx2 {                                 \
  declaration { return baseline::name arguments; } \
  }

NARROWEST(const DistanceLoops& distance_loops(bool double_precision), distance_loops, (double_precision))
NARROWEST(void grid_sample_backward(const SamplePlan& plan, const void* grad, const void* input,
                                    const void* grid, void* grad_input, void* grad_grid),
          grid_sample_backward, (plan, grad, input, grid, grad_input, grad_grid))
NARROWEST(int64_t attention_backward_bytes(const AttentionHead& h), attention_backward_bytes, (h))
NARROWEST(void attention_backward_head(const AttentionHead& h, const AttentionHeadGradients& g, void* memory,
                                       bool first, bool last),
          attention_backward_head, (h, g, memory, first, last))
NARROWEST(ArgExtremeColumns arg_extreme_columns_variant(DType dtype, bool largest),
          arg_extreme_columns_variant, (dtype, largest))
NARROWEST(ArgExtremeLine arg_extreme_line_variant(DType dtype, bool largest), arg_extreme_line_variant,
          (dtype, largest))
NARROWEST(ReduceKernel integer_sum_kernel(DType in), integer_sum_kernel, (in))
#undef NARROWEST

namespace avx2 {
const FormulaLoops division_loops[0 RL_DIVISION_FORMULAS(COUNT)] = {};
const FormulaLoops gamma_loops[0 RL_GAMMA_FORMULAS(COUNT)] = {};
const FormulaLoops bessel_loops[0 RL_BESSEL_FORMULAS(COUNT)] = {};
const FormulaLoops polynomial_loops[0 RL_POLYNOMIAL_FORMULAS(COUNT)] = {};
const BitLoops bit_loops = baseline::bit_loops;
}  // namespace avx2
#undef COUNT

}  // namespace rushlight::cpu
