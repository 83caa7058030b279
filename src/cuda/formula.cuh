// Kernels of a list of formulas; included by one .cu file per family.
#pragma once
#include <cstring>

#include "cuda/check.h"
#include "cuda/elements.h"
#include "cuda/formula_multi_tensor.h"
#include "cuda/formula_struct.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "formulas/activation_math.h"
#include "formulas/bessel_math.h"
#include "formulas/incomplete_gamma.h"
#include "formulas/math.h"
#include "formulas/polynomial_math.h"
#include "formulas/special_float.h"
#include "formulas/special_math.h"
#include "formulas/table.h"

namespace rushlight::cuda {
namespace {

// The lists of src/formulas/arithmetic.h, as far as a GPU computes in them. Complex numbers are not among
// them yet: their functions are the host's.
using Whole = TypeList<int32_t, int64_t>;
using Numbers = TypeList<int32_t, int64_t, float, double, bool>;
using Products = Numbers;
using Real = Numbers;
using Comparable = TypeList<int32_t, int64_t, float, double>;
using Ordered = Comparable;
using Integers = TypeList<int32_t, int64_t, bool>;
using Shiftable = Whole;
using Wide = TypeList<int64_t>;
using Divisible = Wide;
using WideDivisible = Wide;
using Boolean = TypeList<bool>;
using Floating = TypeList<float, double>;
using RealB = Real;
using FloatingB = Floating;
using Fields = Floating;
using Quotients = Floating;
using Guessed = Floating;
using GuessedV = Floating;
using SingleV = Floating;
using FloatingV = Floating;
using FieldsV = Floating;
using FieldsH = Floating;
using FloatingH = Floating;
using FloatingP = Floating;
using SingleH = TypeList<float>;
using FloatingParts = Floating;
using GuessedInside = Floating;
using FieldsS = Floating;
using ComplexV = TypeList<>;

#pragma nv_diag_suppress 177  // of formulas that some kernels, or all, leave out, parts are not referenced

// Formulas that memory does not bound, and that lists of tensors seldom go through, are compiled with the
// strided kernel alone.
#ifdef RL_STRIDED_KERNELS_ALONE
constexpr bool kWithLinear = false, kForMany = false;
#else
constexpr bool kWithLinear = true, kForMany = true;
#endif

#ifdef RL_CHANNEL_KERNELS
constexpr bool kWithChannels = true;
#else
constexpr bool kWithChannels = false;
#endif

constexpr uint32_t kThreads = 256, kPerThread = 4;
inline unsigned blocks_for(uint32_t n, uint32_t per_thread = kPerThread) {
  return (n + kThreads * per_thread - 1) / (kThreads * per_thread);
}

template <class T>
struct Parameters {
  T p[4];
};

template <class F, class T>
__device__ inline auto apply(T x, T y, T z, const T* p) {
  return F::template apply<T>(x, y, z, p);
}

// Any strides and dtypes: a thread takes elements a block apart, so that neighbours read neighbours.
template <class F, class T>
__global__ void strided_kernel(Geometry g, char* out, DType out_dtype, Source<T> x, Source<T> y, Source<T> z,
                               Parameters<T> parameters) {
  uint32_t i = blockIdx.x * (kThreads * kPerThread) + threadIdx.x;
  for (uint32_t k = 0; k < kPerThread && i < g.numel; ++k, i += kThreads) {
    int32_t at[kMaxOperands];
    g.locate(i, at);
    const T a = x(at[1]), b = F::kInputs > 1 ? y(at[2]) : T{}, c = F::kInputs > 2 ? z(at[3]) : T{};
    store(out_dtype, out + at[0], apply<F, T>(a, b, c, parameters.p));
  }
}

// The same where rows lie well: four neighbours of a row for a thread. Inputs may repeat along it, or along
// other dimensions.
template <class F, class T>
__global__ void neighbours_kernel(NeighbourPlan plan, char* out, DType out_dtype, Source<T> x, Source<T> y,
                                  Source<T> z, Parameters<T> parameters) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= plan.g.numel) return;
  int32_t at[F::kInputs + 1];
  plan.g.locate_few(i, at);
  T a[kAtOnce], b[kAtOnce] = {}, c[kAtOnce] = {};
  read_neighbours(x, at[1], plan.step[1], plan.together[1], a);
  if constexpr (F::kInputs > 1) read_neighbours(y, at[2], plan.step[2], plan.together[2], b);
  if constexpr (F::kInputs > 2) read_neighbours(z, at[3], plan.step[3], plan.together[3], c);
  using R = decltype(apply<F, T>(a[0], b[0], c[0], parameters.p));
  R results[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) results[k] = apply<F, T>(a[k], b[k], c[k], parameters.p);
  write_neighbours(out_dtype, out + at[0], results);
}

// Contiguous memory of one stored type S: 16 bytes of each operand at a time.
template <class F, class T, class S, class R>
__global__ void linear_kernel(uint32_t n, R* out, const S* x, const S* y, const S* z, T xv, T yv, T zv,
                              Parameters<T> parameters) {
  constexpr int kWidth = 16 / sizeof(S);
  struct alignas(16) In {
    S item[kWidth];
  };
  struct alignas(kWidth * sizeof(R)) Out {
    R item[kWidth];
  };
  const uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * kWidth;
  if (first >= n) return;
  if (first + kWidth <= n) {
    In a, b, c;
    if (x) a = *reinterpret_cast<const In*>(x + first);
    if (F::kInputs > 1 && y) b = *reinterpret_cast<const In*>(y + first);
    if (F::kInputs > 2 && z) c = *reinterpret_cast<const In*>(z + first);
    Out result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k)
      result.item[k] = number<R>(apply<F, T>(x ? number<T>(a.item[k]) : xv, y ? number<T>(b.item[k]) : yv,
                                             z ? number<T>(c.item[k]) : zv, parameters.p));
    *reinterpret_cast<Out*>(out + first) = result;
    return;
  }
  for (uint32_t i = first; i < n; ++i)
    out[i] = number<R>(apply<F, T>(x ? number<T>(x[i]) : xv, y ? number<T>(y[i]) : yv,
                                   z ? number<T>(z[i]) : zv, parameters.p));
}

// Contiguous memory as rows, all of whose elements take the same number: of channel (row modulo channels).
// A thread has 16 bytes, in which rows may end anywhere.
struct ChannelPlan {
  Divider length, channels;  // of a row; rows until the numbers begin again
  int32_t step = 0;          // between the numbers, in bytes
};
template <class F, class T, class S>
__global__ void channels_kernel(uint32_t n, ChannelPlan plan, S* out, const S* x, const char* numbers,
                                Parameters<T> parameters) {
  constexpr int kWidth = 16 / sizeof(S);
  struct alignas(16) Items {
    S item[kWidth];
  };
  const uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * kWidth;
  if (first >= n) return;
  const uint32_t row = plan.length.divide(first);
  uint32_t left = (row + 1) * plan.length.divisor - first;  // of the row
  uint32_t channel = row - plan.channels.divide(row) * plan.channels.divisor;
  auto number_of_channel = [&] {
    return number<T>(*reinterpret_cast<const S*>(numbers + int64_t{channel} * plan.step));
  };
  T b = number_of_channel();
  auto next = [&](S item) {
    if (left == 0) {
      channel = channel + 1 == plan.channels.divisor ? 0 : channel + 1;
      left = plan.length.divisor, b = number_of_channel();
    }
    --left;
    return number<S>(apply<F, T>(number<T>(item), b, T{}, parameters.p));
  };
  if (first + kWidth <= n) {
    Items a = *reinterpret_cast<const Items*>(x + first);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) a.item[k] = next(a.item[k]);
    *reinterpret_cast<Items*>(out + first) = a;
  } else {
    for (uint32_t i = first; i < n; ++i) out[i] = next(x[i]);
  }
}

inline bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

template <class F, class T, class S>
bool run_linear(const Piece& piece, const Parameters<T>& parameters, cudaStream_t stream) {
  constexpr bool same = F::kResult == FormulaResult::Same;
  using R = std::conditional_t<same, S, bool>;
  const Operand& out = piece.operands[0];
  if (!piece.linear || !is_aligned(out.data)) return false;
  const S* data[3] = {};
  T values[3] = {};
  for (int i = 0; i < F::kInputs; ++i) {
    const Operand& in = piece.operands[i + 1];
    if (!in.is_value && !is_aligned(in.data)) return false;
    data[i] = reinterpret_cast<const S*>(in.data);
    if (in.is_value) values[i] = source_of<T>(in).value;
  }
  const uint32_t n = piece.geometry.numel;
  linear_kernel<F, T, S, R><<<blocks_for(n, 16 / sizeof(S)), kThreads, 0, stream>>>(
      n, reinterpret_cast<R*>(out.data), data[0], data[1], data[2], values[0], values[1], values[2],
      parameters);
  return true;
}

// Whether the result and the first input are contiguous, and the second one repeats along their rows.
inline bool plan_channels(const Piece& piece, ChannelPlan* plan) {
  const Geometry& g = piece.geometry;
  const Operand *out = piece.operands, *x = out + 1, *numbers = out + 2;
  if (x->is_value || numbers->is_value || g.rank < 2 || g.rank > 3) return false;
  if (!is_aligned(out->data) || !is_aligned(x->data)) return false;
  auto step = static_cast<int64_t>(element_size(out->dtype));
  for (int d = 0; d < g.rank; step *= g.sizes[d++].divisor)
    if (g.strides[d][0] != step || g.strides[d][1] != step) return false;
  if (g.strides[0][2] != 0 || (g.rank == 3 && g.strides[2][2] != 0)) return false;
  *plan = {g.sizes[0], g.sizes[1], g.strides[1][2]};
  return true;
}

template <class F, class T, class S>
bool run_channels(const Piece& piece, const Parameters<T>& parameters, cudaStream_t stream) {
  ChannelPlan plan;
  if (!plan_channels(piece, &plan)) return false;
  const Operand* operands = piece.operands;
  const uint32_t n = piece.geometry.numel;
  channels_kernel<F, T, S><<<blocks_for(n, 16 / sizeof(S)), kThreads, 0, stream>>>(
      n, plan, reinterpret_cast<S*>(operands[0].data), reinterpret_cast<const S*>(operands[1].data),
      operands[2].data, parameters);
  return true;
}

template <class F>
bool all_are(const Piece& piece, DType dtype) {
  const DType result = F::kResult == FormulaResult::Same ? dtype : DType::Bool;
  if (piece.operands[0].dtype != result) return false;
  bool any = false;
  for (int i = 1; i <= F::kInputs; ++i) {
    const Operand& in = piece.operands[i];
    if (!in.is_value && in.dtype != dtype) return false;
    any |= !in.is_value;
  }
  return any;
}

template <class F, class T>
void run(const Piece& piece, const void* packed, int device) {
  Parameters<T> parameters{};
  std::memcpy(parameters.p, packed, sizeof(T) * F::kParameters);
  on_stream({device, F::kName}, [&](cudaStream_t stream) {
    if constexpr (kWithLinear)
      if (all_are<F>(piece, dtype_of<T>) && run_linear<F, T, T>(piece, parameters, stream)) return;
    if constexpr (kWithLinear && std::is_same_v<T, float>) {
      if (all_are<F>(piece, DType::Float16) && run_linear<F, T, __half>(piece, parameters, stream)) return;
      if (all_are<F>(piece, DType::BFloat16) && run_linear<F, T, __nv_bfloat16>(piece, parameters, stream))
        return;
    }
    if constexpr (kWithChannels && std::is_same_v<T, float> && F::kInputs == 2 &&
                  F::kResult == FormulaResult::Same) {
      if (all_are<F>(piece, DType::Float32) && run_channels<F, T, float>(piece, parameters, stream)) return;
      if (all_are<F>(piece, DType::Float16) && run_channels<F, T, __half>(piece, parameters, stream)) return;
      if (all_are<F>(piece, DType::BFloat16) && run_channels<F, T, __nv_bfloat16>(piece, parameters, stream))
        return;
    }
    const Operand* operands = piece.operands;
    if constexpr (kWithLinear && F::kInputs > 1)
      if (NeighbourPlan plan; plan_neighbours(piece, &plan)) {
        neighbours_kernel<F, T><<<blocks_for(plan.g.numel, 1), kThreads, 0, stream>>>(
            plan, operands[0].data, operands[0].dtype, source_of<T>(operands[1]), source_of<T>(operands[2]),
            source_of<T>(operands[3]), parameters);
        return;
      }
    strided_kernel<F, T><<<blocks_for(piece.geometry.numel), kThreads, 0, stream>>>(
        piece.geometry, operands[0].data, operands[0].dtype, source_of<T>(operands[1]),
        source_of<T>(operands[2]), source_of<T>(operands[3]), parameters);
  });
}

// A block takes 1024 elements of one of many tensors.
template <class F, class T>
__global__ void many_kernel(FormulaMultiTensor many) {
  const int k = many.tensor_blocks.owner(blockIdx.x);
  const FormulaMultiTensor::Entry& entry = many.entries[k];
  const T parameters[] = {FormulaMultiTensor::number_of<T>(entry.parameters[0]),
                          FormulaMultiTensor::number_of<T>(entry.parameters[1])};
  const auto size = static_cast<uint32_t>(stored_size(many.dtypes[0]));
  uint32_t i = (blockIdx.x - many.tensor_blocks.first_block[k]) * FormulaMultiTensor::kPerBlock + threadIdx.x;
  for (uint32_t n = 0; n < FormulaMultiTensor::kPerBlock / kThreads && i < entry.numel; ++n, i += kThreads) {
    const T a = many.input<T>(entry, 0, i), b = F::kInputs > 1 ? many.input<T>(entry, 1, i) : T{},
            c = F::kInputs > 2 ? many.input<T>(entry, 2, i) : T{};
    store(many.dtypes[0], entry.out + uint64_t{i} * size, apply<F, T>(a, b, c, parameters));
  }
}

template <class F, class T>
void run_many(const FormulaMultiTensor& many, int device) {
  on_stream({device, F::kName}, [&](cudaStream_t stream) {
    many_kernel<F, T><<<many.tensor_blocks.blocks(), kThreads, 0, stream>>>(many);
  });
}

template <class F, class T, class... List>
constexpr FormulaKernel kernel_if(TypeList<List...>) {
  if constexpr (!(std::is_same_v<T, List> || ...))
    return {};
  else if constexpr (kForMany && F::kParameters <= FormulaMultiTensor::kMostParameters)
    return {run<F, T>, run_many<F, T>};
  else
    return {run<F, T>};
}

}  // namespace

#define RL_FORMULA(...)              \
  namespace {                        \
  RL_FORMULA_AS_STRUCT(__VA_ARGS__); \
  }
#define RL_FORMULA_ROW(name, ...)                                                    \
  {kernel_if<name, int32_t>(name::Types{}), kernel_if<name, int64_t>(name::Types{}), \
   kernel_if<name, float>(name::Types{}), kernel_if<name, double>(name::Types{}),    \
   kernel_if<name, bool>(name::Types{})},

// Defines `table`, the kernels of the formulas in `list`.
#define RL_DEFINE_KERNELS(table, list) list(RL_FORMULA) const FormulaKernels table[] = {list(RL_FORMULA_ROW)};

}  // namespace rushlight::cuda
