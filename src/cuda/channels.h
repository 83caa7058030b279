// Sums over all elements of each channel, in parts that a second pass joins in order.
#pragma once
#include <algorithm>

#include "cpu/norm.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/reduce_lines.h"

namespace rushlight::cuda {

// What elements of type S compute in.
template <class S>
using ComputeOf = std::conditional_t<std::is_same_v<S, double>, double, float>;

// Calls f(Tag<S>{}) for the stored type of a floating dtype.
template <class F>
void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float16:
      return f(Tag<StoredHalf>{});
    case DType::BFloat16:
      return f(Tag<StoredBFloat16>{});
    case DType::Float64:
      return f(Tag<double>{});
    default:
      return f(Tag<float>{});
  }
}

// Two sums of one pass.
template <class C>
struct Two {
  C first, second;
};
struct AddTwo {
  template <class C>
  RL_BOTH Two<C> operator()(const Two<C>& a, const Two<C>& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

// What an operation has in common that has one stored type and sums T.
template <class Self, class Sum, class Joined>
struct ChannelOperation {
  using Acc = Sum;
  using T = Sum;
  using Join = Joined;
  static constexpr int kResident = 2;
  Join join;
  template <class G>
  RL_BOTH void visit(G&& g) const {
    g(static_cast<const Self&>(*this));
  }
  RL_BOTH Sum begin() const { return Sum{}; }
  RL_BOTH Sum total(const Sum& acc) const { return acc; }
};

// Reduces every channel of [outer, channels, inner] by an operation of cuda/reduce_lines.h. `aligned`: its
// operands begin where a pack may.
template <class Op>
void reduce_channels(const Launch& at, cpu::ChannelShape s, bool aligned, const Op& op) {
  if (s.channels == 0) return;
  Lines lines;
  lines.outputs = s.channels;
  if (s.inner == 1) {
    lines.columns = lines.step = s.channels;
    lines.length = s.outer;
    lines.packed = aligned && s.channels % kPack == 0;
    return reduce_lines(at, lines, op);
  }
  lines.length = s.inner;
  lines.packed = aligned && s.inner % kPack == 0;
  lines.outer.rank = lines.runs.rank = 1;
  lines.outer.sizes[0] = s.channels, lines.outer.strides[0][0] = s.inner;
  lines.runs.sizes[0] = lines.run_count = s.outer, lines.runs.strides[0][0] = s.channels * s.inner;
  reduce_lines(at, lines, op);
}

}  // namespace rushlight::cuda
