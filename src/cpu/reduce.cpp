#include "cpu/reduce.h"

#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "core/parallel.h"
#include "cpu/chain_product.h"
#include "cpu/copy.h"
#include "cpu/isa_variant.h"
#include "cpu/pointwise.h"

namespace rushlight::cpu {

namespace plain {
ReduceKernel rest_reduce_kernel(ReduceOp op, DType in);
}
RL_DECLARE_VARIANTS(ReduceKernel hot_reduce_kernel(ReduceOp op, DType in);
                    ReduceKernel integer_sum_kernel(DType in);)

namespace {

using KernelTable = std::array<std::array<ReduceKernel, kDTypeCount>, kReduceOpCount>;

ReduceKernel hot_kernel(ReduceOp op, DType in) {
  const ReduceKernel kernel = RL_ISA_VARIANT(hot_reduce_kernel(op, in));
  return kernel.run || op != ReduceOp::Sum ? kernel : RL_ISA_VARIANT(integer_sum_kernel(in));
}

const KernelTable& kernel_table() {
  static const KernelTable table = [] {
    KernelTable t;
    for (int o = 0; o < kReduceOpCount; ++o) {
      for (int d = 0; d < kDTypeCount; ++d) {
        const auto op = static_cast<ReduceOp>(o);
        const auto dtype = static_cast<DType>(d);
        t[o][d] = hot_kernel(op, dtype);
        if (!t[o][d].run) t[o][d] = plain::rest_reduce_kernel(op, dtype);
      }
    }
    return t;
  }();
  return table;
}

// Loops over one set of dimensions; `strides` has one entry per array.
struct Loop {
  int64_t size, in, out;
};

// Outermost first by the input's stride, neighbours fused where both arrays allow it. What repeats the same
// elements comes before all else, so that the innermost loop still walks along memory.
void coalesce(std::vector<Loop>& loops) {
  const auto step = [](const Loop& loop) {
    return loop.in == 0 ? std::numeric_limits<int64_t>::max() : std::abs(loop.in);
  };
  std::stable_sort(loops.begin(), loops.end(),
                   [&](const Loop& a, const Loop& b) { return step(a) > step(b); });
  size_t kept = 0;
  for (size_t i = 1; i < loops.size(); ++i) {
    Loop& outer = loops[kept];
    const Loop& inner = loops[i];
    if (outer.in == inner.size * inner.in && outer.out == inner.size * inner.out)
      outer = {outer.size * inner.size, inner.in, inner.out};
    else
      loops[++kept] = inner;
  }
  if (!loops.empty()) loops.resize(kept + 1);
}

// Whether an element that comes again changes nothing.
bool takes_once(ReduceOp op) {
  return op == ReduceOp::Max || op == ReduceOp::Min || op == ReduceOp::All || op == ReduceOp::Any ||
         op == ReduceOp::MaxAbs || op == ReduceOp::MinAbs;
}

ReduceNest make_nest(const Tensor& in, uint64_t dims, const Tensor& out, bool once) {
  ReduceNest nest;
  std::vector<Loop> kept, reduced;
  int64_t offset = 0, out_stride = out.numel();
  for (int64_t d = 0; d < in.dim(); ++d) {
    const int64_t size = in->sizes[d];
    int64_t stride = in->strides[d];
    if (dims >> d & 1) {
      if (once && stride == 0 && size > 0) continue;
      nest.inputs_per_output *= size;
      if (stride < 0) offset += (size - 1) * stride, stride = -stride;  // order does not matter
      if (size != 1) reduced.push_back({size, stride, 0});
    } else {
      out_stride /= std::max<int64_t>(size, 1);
      nest.outputs *= size;
      if (size != 1) kept.push_back({size, stride, out_stride});
    }
  }
  coalesce(kept);
  coalesce(reduced);
  if (nest.inputs_per_output == 0) reduced = {{0, 1, 0}};  // loops meet no empty dimension inside of another
  if (reduced.empty()) reduced.push_back({1, 1, 0});
  for (const Loop& l : kept)
    nest.kept.push_back(l.size), nest.kept_in.push_back(l.in), nest.kept_out.push_back(l.out);
  for (const Loop& l : reduced) nest.reduced.push_back(l.size), nest.reduced_in.push_back(l.in);
  nest.in = static_cast<const std::byte*>(in.data_ptr()) + offset * static_cast<int64_t>(in.itemsize());
  nest.out = out.data_ptr();
  return nest;
}

// The reduced dimension to cut: the outermost that makes enough pieces, which are whole stretches of memory
// then, or else the longest.
size_t dimension_to_cut(const Dims& reduced) {
  constexpr int64_t kEnough = 16;
  const auto longest = std::max_element(reduced.begin(), reduced.end());
  const auto enough = std::find_if(reduced.begin(), longest, [](int64_t n) { return n >= kEnough; });
  return static_cast<size_t>(enough - reduced.begin());
}

// Few outputs, much input: a reduced dimension is cut into pieces that depend on the sizes only. `outputs`:
// how many count for that.
void reduce_in_pieces(const ReduceKernel& kernel, const ReduceNest& nest, int64_t outputs, size_t itemsize,
                      const ReduceParams& params) {
  const size_t cut = dimension_to_cut(nest.reduced);
  const int64_t length = nest.reduced[cut];
  const int64_t cost = std::max<int64_t>(1, outputs * nest.inputs_per_output / length);
  const int64_t piece = detail::reduction_piece(length, std::max<int64_t>(1, kGrainSize / cost));
  const int64_t pieces = (length + piece - 1) / piece;
  if (pieces == 1) return kernel.run(nest, 0, nest.outputs, params, nullptr);
  const size_t row = static_cast<size_t>(nest.outputs) * kernel.accumulator_size;
  std::vector<std::byte> partial(static_cast<size_t>(pieces) * row);
  detail::parallel_tasks(pieces, [&](int64_t i) {
    ReduceNest part = nest;
    part.reduced[cut] = std::min(piece, length - i * piece);
    part.in = static_cast<const std::byte*>(nest.in) +
              i * piece * nest.reduced_in[cut] * static_cast<int64_t>(itemsize);
    kernel.run(part, 0, part.outputs, params, partial.data() + static_cast<size_t>(i) * row);
  });
  kernel.finish(nest, partial.data(), pieces, params);
}

// Few adjacent columns of many rows: as many rows side by side as fill registers, whose sums are then
// combined as those of pieces are. What is added to what depends on the sizes only.
bool reduce_narrow(ReduceOp op, const ReduceKernel& kernel, const ReduceNest& nest, size_t itemsize,
                   const ReduceParams& params) {
  constexpr int64_t kNarrow = 16, kGroup = 16, kRowsAtLeast = 1024;
  if (op == ReduceOp::Deviation || batch_invariant() || nest.kept.size() != 1 || nest.reduced.size() != 1)
    return false;
  const int64_t width = nest.kept[0], rows = nest.reduced[0];
  if (width > kNarrow || rows < kRowsAtLeast || nest.kept_in[0] != 1 || nest.reduced_in[0] != width)
    return false;
  const int64_t piece = (detail::reduction_piece(rows, kGrainSize / width) + kGroup - 1) / kGroup * kGroup;
  const int64_t pieces = rows / piece + (rows % piece >= kGroup), rest = rows % kGroup;
  const size_t row = static_cast<size_t>(width) * kernel.accumulator_size;
  std::vector<std::byte> partial((static_cast<size_t>(pieces * kGroup) + (rest > 0)) * row);
  const auto run = [&](int64_t first, int64_t count, int64_t side_by_side, std::byte* to) {
    ReduceNest part = nest;
    part.kept[0] = part.outputs = part.reduced_in[0] = width * side_by_side;
    part.reduced[0] = part.inputs_per_output = count / side_by_side;
    part.in = static_cast<const std::byte*>(nest.in) + first * width * static_cast<int64_t>(itemsize);
    kernel.run(part, 0, part.outputs, params, to);
  };
  detail::parallel_tasks(pieces, [&](int64_t i) {
    run(i * piece, std::min(piece, rows - rest - i * piece), kGroup,
        partial.data() + static_cast<size_t>(i * kGroup) * row);
  });
  if (rest) run(rows - rest, rest, 1, partial.data() + static_cast<size_t>(pieces * kGroup) * row);
  kernel.finish(nest, partial.data(), pieces * kGroup + (rest > 0), params);
  return true;
}

// Reductions of single elements that are other operators.
bool reduce_single(ReduceOp op, const Tensor& in, const Tensor& out) {
  if (in.numel() != out.numel() || in.numel() == 0) return false;
  const Dims strides = contiguous_strides(in.sizes());
  const Tensor whole = make_view(out, in.sizes(), strides, out.storage_offset(), false);
  if (op == ReduceOp::All || op == ReduceOp::Any) {
    copy(whole, in);
    return true;
  }
  const bool norm =
      op == ReduceOp::Norm1 || op == ReduceOp::Norm2 || op == ReduceOp::MaxAbs || op == ReduceOp::MinAbs;
  if (!norm || !is_floating(in.dtype()) || in.dtype() != out.dtype()) return false;
  const Tensor* const operand = &in;
  run_formula(Formula::Abs, in.dtype(), whole, {&operand, 1});
  return true;
}

}  // namespace

DType reduced_dtype(ReduceOp op, DType in) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod:
      return is_integral_or_bool(in) ? DType::Int64 : in;
    case ReduceOp::All:
    case ReduceOp::Any:
      return in == DType::UInt8 ? in : DType::Bool;
    default:
      return in;
  }
}

const ReduceKernel& reduce_kernel(ReduceOp op, DType in, const char* who) {
  static const KernelTable& table = kernel_table();
  const ReduceKernel& kernel = table[static_cast<int>(op)][static_cast<int>(in)];
  if (!kernel.run) RL_NOT_IMPLEMENTED("\"", who, "\" not implemented for '", legacy_name(in), "'");
  return kernel;
}

void reduce(ReduceOp op, const Tensor& in, uint64_t dims, const Tensor& out, const ReduceParams& params,
            const char* who) {
  const ReduceKernel& kernel = reduce_kernel(op, in.dtype(), who);
  if (out.device().is_meta()) return;
  const ReduceNest nest = make_nest(in, dims, out, takes_once(op));
  if (nest.outputs == 0 || reduce_single(op, in, out) ||
      reduce_narrow(op, kernel, nest, in.itemsize(), params))
    return;
  int64_t grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, nest.inputs_per_output));
  // Side by side columns are read a row at a time: long pieces of rows, as memory likes them.
  if (!nest.kept_in.empty() && nest.kept_in.back() == 1)
    grain = std::max(grain, std::min<int64_t>(1024, nest.outputs / get_num_threads()));
  // In batch-invariant mode an output is cut as if it were alone.
  const bool alone = batch_invariant();
  const int64_t outputs = alone ? 1 : nest.outputs;
  if (outputs < 32 && outputs * nest.inputs_per_output > 4 * kGrainSize)
    return reduce_in_pieces(kernel, nest, outputs, in.itemsize(), params);
  parallel_for(0, nest.outputs, grain,
               [&](int64_t begin, int64_t end) { kernel.run(nest, begin, end, params, nullptr); });
}

}  // namespace rushlight::cpu
