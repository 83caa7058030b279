#include "cuda/kernels.h"

#include <algorithm>
#include <vector>

#include "core/device_backend.h"
#include "core/generator.h"
#include "cpu/index.h"
#include "cpu/reduce.h"
#include "cuda/operands.h"
#include "device/kernels.h"
#include "device/moves.h"

namespace rushlight::cuda {
namespace {

bool where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  const bool moves = a.dtype() == out.dtype() && b.dtype() == out.dtype();
  for (const Tensor* t : {&out, &a, &b})
    if (!loads(t->dtype()) && !(moves && is_complex(out.dtype()))) return false;
  const Tensor* inputs[] = {&condition, &a, &b};
  for_each_piece(out, inputs, [&](const Piece& piece) { run_where(piece, out.device().index()); });
  return true;
}

bool copy(const Tensor& out, const Tensor& source) {
  const DType to = out.dtype(), from = source.dtype();
  auto known = [](DType t) { return loads(t) || t == DType::Complex64 || t == DType::Complex128; };
  auto real = [](DType t) { return loads(t) || is_float8(t); };
  if (to != from && !(known(to) && known(from)) && !(real(to) && real(from))) return false;
  const Tensor* inputs[] = {&source};
  for_each_piece(out, inputs, [&](const Piece& piece) { run_copy(piece, out.device().index()); });
  return true;
}

#define RL_SAME(name) \
  static_assert(static_cast<int>(Reduction::name) == static_cast<int>(cpu::ReduceOp::name));
RL_REDUCTIONS(RL_SAME)
#undef RL_SAME
static_assert(static_cast<int>(Writing::Min) == static_cast<int>(cpu::ScatterOp::Min));

// What kernels that walk a tensor their own way take.
bool walks(const Tensor& t) {
  constexpr int64_t kMost = int64_t{1} << 40;
  return loads(t.dtype()) && t.dtype() != DType::UInt64 && t.dim() <= kMaxRank && t.numel() < kMost;
}

// Complex numbers as pairs of real ones: what sums are taken of.
bool has_parts(const Tensor& in, const Tensor& out) {
  return in.dtype() == out.dtype() && (in.dtype() == DType::Complex64 || in.dtype() == DType::Complex128) &&
         in.dim() < kMaxRank;
}
View parts_of(const Tensor& t) {
  View view = view_of(t);
  view.dtype = real_dtype(view.dtype), view.numel *= 2;
  view.sizes[view.rank] = 2;
  view.strides[view.rank++] = static_cast<int64_t>(element_size(view.dtype));
  return view;
}

bool reduce(cpu::ReduceOp op, const Tensor& in, uint64_t dims, const Tensor& out,
            const cpu::ReduceParams& params) {
  if (op == cpu::ReduceOp::Sum && has_parts(in, out) && out.numel() < INT32_MAX / 2) {
    run_reduce(Reduction::Sum, parts_of(in), dims, parts_of(out), {params.divisor, nullptr});
    return true;
  }
  if (op == cpu::ReduceOp::Prod && has_parts(in, out) && out.numel() < INT32_MAX) {
    run_complex_product(view_of(in), dims, view_of(out));
    return true;
  }
  if (!walks(in) || !loads(out.dtype()) || out.numel() >= INT32_MAX) return false;
  run_reduce(static_cast<Reduction>(op), view_of(in), dims, view_of(out), {params.divisor, params.centre});
  return true;
}

bool reductions(std::span<const ReduceCall> calls) {
  const ReduceCall& first = calls[0];
  auto same = [&](const ReduceCall& c) {
    return walks(c.in) && c.in.dtype() == first.in.dtype() && c.out.dtype() == first.out.dtype();
  };
  if (!loads(first.out.dtype()) || !std::all_of(calls.begin(), calls.end(), same)) return false;
  std::vector<WholeReduction> tensors;
  for (const ReduceCall& c : calls) tensors.push_back({c.in.data_ptr(), c.out.data_ptr(), c.in.numel()});
  run_reductions(static_cast<Reduction>(first.op), first.in.device().index(), first.in.dtype(),
                 first.out.dtype(), tensors, first.divisor);
  return true;
}

bool arg_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values, const Tensor& indices) {
  if (!walks(in) || values.numel() >= INT32_MAX) return false;
  run_arg_extreme(view_of(in), dim, largest, view_of(values), view_of(indices));
  return true;
}

bool cumulate(bool product, const Tensor& in, int64_t dim, const Tensor& out) {
  if (has_parts(in, out)) {
    product ? run_cumulate(true, view_of(in), dim, view_of(out))
            : run_cumulate(false, parts_of(in), dim, parts_of(out));
    return true;
  }
  if (!walks(in)) return false;
  run_cumulate(product, view_of(in), dim, view_of(out));
  return true;
}

void add_positions(const Tensor& offsets, const Tensor& index, int64_t size, int64_t stride, bool wraps) {
  const Tensor* inputs[] = {&index};
  for_each_piece(offsets, inputs, [&](const Piece& piece) {
    run_add_positions(piece, size, stride, wraps, offsets.device().index());
  });
}

void take(const Tensor& out, const Tensor& base, const Tensor& offsets, const DeviceMoves::Indexing& by) {
  const Tensor* inputs[] = {&base, &offsets};
  for_each_piece(out, inputs, [&](const Piece& piece) {
    run_take(piece, {by.size, by.stride, by.wraps}, out.device().index());
  });
}

bool put(cpu::ScatterOp op, const Tensor& base, const Tensor& offsets, const DeviceMoves::Indexing& by,
         const Tensor& values) {
  const bool same = values.dtype() == base.dtype() && !values.is_cpu();
  const bool moves = same && (op == cpu::ScatterOp::Assign || op == cpu::ScatterOp::Add);
  if (is_complex(base.dtype()) ? !moves || base.dtype() == DType::Complex32
                               : !loads(base.dtype()) || !loads(values.dtype()))
    return false;
  const Tensor* inputs[] = {&offsets, &values};
  for_each_piece(base, inputs, [&](const Piece& piece) {
    run_put(static_cast<Writing>(op), piece, {by.size, by.stride, by.wraps}, base.device().index());
  });
  return true;
}

bool range(const Tensor& out, const Scalar& start, const Scalar& step) {
  if (!loads(out.dtype())) return false;
  const double real[] = {start.to_double(), step.to_double()};
  const bool whole = is_integral_or_bool(out.dtype());
  const int64_t numbers[] = {whole ? start.to_int() : 0, whole ? step.to_int() : 0};
  run_range(view_of(out), real, whole ? numbers : nullptr);
  return true;
}

void triangle(const Tensor& out, const Tensor& in, int64_t diagonal, bool upper) {
  run_triangle(view_of(out), view_of(in), diagonal, upper);
}

// PyTorch launches blocks of 256 threads, at most as many as the device holds at once; `width` numbers a
// turn.
RandomPlace place_of(const Tensor& out, Generator& g, int64_t width) {
  constexpr int64_t kBlock = 256;
  const DeviceProperties& p = device_backend(DeviceType::CUDA).properties(out.device().index());
  const int64_t n = out.numel();
  const int64_t most = p.multi_processor_count * (p.max_threads_per_multi_processor / kBlock);
  const int64_t threads = std::min(most, (n + kBlock - 1) / kBlock) * kBlock;
  const int64_t turns = (n - 1) / (threads * width) + 1;
  const Generator::Place place = g.take(static_cast<uint64_t>(turns) * 4);
  return {threads, place.seed, place.offset, place.base};
}

bool random(DeviceKernels::Random kind, const Tensor& out, double a, double b, uint64_t range, Generator& g) {
  const auto drawn = static_cast<RandomKind>(kind);
  const bool any = drawn == RandomKind::Bernoulli || drawn == RandomKind::Integers;
  if (!loads(out.dtype()) || (!any && !is_floating(out.dtype()))) return false;
  const bool dropout = drawn == RandomKind::Bernoulli && b > 0;  // in floats, whatever the dtype
  const int64_t width = dropout ? 4 : random_width(drawn, out.dtype(), range);
  run_random(drawn, view_of(out), a, b, range, place_of(out, g, width));
  return true;
}

void dropout(const Tensor& out, const Tensor& mask, const Tensor& in, double keep, int64_t at_once,
             Generator& g) {
  run_dropout(view_of(out), static_cast<char*>(mask.data_ptr()), static_cast<const char*>(in.data_ptr()),
              keep, at_once, place_of(out, g, 4));
}

// PyTorch's kernel for probabilities in memory: blocks of 512 threads, each of which takes four elements.
bool bernoulli(const Tensor& out, const Tensor& p, Generator& g) {
  if (!loads(out.dtype()) || !loads(p.dtype())) return false;
  constexpr int64_t kBlock = 512, kEach = 4;
  const int64_t threads = (out.numel() + kBlock * kEach - 1) / (kBlock * kEach) * kBlock;
  const Generator::Place place = g.take(12);
  run_bernoulli(view_of(out), view_of(p), {threads, place.seed, place.offset, place.base});
  return true;
}

}  // namespace

DeviceKernels kernels() {
  DeviceKernels all;
  all.where = where;
  all.copy = copy;
  all.reduce = reduce;
  all.reductions = reductions;
  all.arg_extreme = arg_extreme;
  all.cumulate = cumulate;
  all.add_positions = add_positions;
  all.take = [](const Tensor& out, const Tensor& base, const Tensor& offsets) {
    take(out, base, offsets, {});
  };
  all.put = [](cpu::ScatterOp op, const Tensor& base, const Tensor& offsets, const Tensor& values) {
    return put(op, base, offsets, {}, values);
  };
  all.random = random;
  all.range = range;
  all.triangle = [](const Tensor& out, int64_t diagonal, bool upper) {
    triangle(out, out, diagonal, upper);
    return true;
  };
  return all;
}

DeviceMoves moves() {
  DeviceMoves all;
  all.take = take;
  all.put = put;
  all.triangle = triangle;
  all.bernoulli = bernoulli;
  all.dropout = dropout;
  return all;
}

}  // namespace rushlight::cuda
