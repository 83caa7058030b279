// Softmax and its gradient: a pass that finds the largest element and the sum at once, and one that writes.
#include <cmath>
#include <initializer_list>

#include "cuda/channels.h"
#include "cuda/held_row.h"
#include "cuda/layers.h"

namespace rushlight::cuda {
namespace {

// The largest element so far, and the sum of exponentials relative to it.
template <class A>
struct Mass {
  A largest, sum;
};
struct JoinMass {
  template <class A>
  RL_BOTH Mass<A> operator()(const Mass<A>& a, const Mass<A>& b) const {
    const bool first = a.largest >= b.largest;
    const Mass<A>&high = first ? a : b, &low = first ? b : a;
    if (low.sum == A(0)) return high;
    return {high.largest, high.sum + low.sum * std::exp(low.largest - high.largest)};
  }
};
template <class A>
RL_BOTH Mass<A> with(const Mass<A>& m, A x) {
  if (x != x) return {m.largest, x};  // NaN makes all of the line NaN
  if (x == -static_cast<A>(INFINITY)) return m;
  if (x <= m.largest) return {m.largest, m.sum + std::exp(x - m.largest)};
  return {x, (m.sum == A(0) ? A(0) : m.sum * std::exp(m.largest - x)) + (A(1) + (x - x))};
}

template <class S, class A>
struct Softmax {
  const S* in;
  S* out;
  int64_t n, inner;
  bool logarithm;
  RL_BOTH void operator()(const Block& block) const {
    const int64_t outer = block.index / inner, start = outer * n * inner + (block.index - outer * inner);
    Mass<A> mass{-static_cast<A>(INFINITY), A(0)};
    for (int64_t i = block.thread; i < n; i += block.threads)
      mass = with(mass, number<A>(in[start + i * inner]));
    mass = block_reduce(block, mass, JoinMass{});
    const A shift = logarithm ? std::log(mass.sum) : A(1) / mass.sum;
    for (int64_t i = block.thread; i < n; i += block.threads) {
      const A x = number<A>(in[start + i * inner]) - mass.largest;
      out[start + i * inner] = number<S>(logarithm ? x - shift : std::exp(x) * shift);
    }
  }
};

// Of packed rows.
template <class S, class A, int held>
struct RowSoftmax {
  const S* in;
  S* out;
  int64_t packs;
  bool logarithm;
  RL_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * packs * kPack;
    HeldRow<S, A, held> row(in + start, packs, block);
    A largest = -static_cast<A>(INFINITY), sum = 0;
    row.each([&](int64_t, const A(&x)[kPack]) {
      for (int k = 0; k < kPack; ++k) largest = x[k] > largest ? x[k] : largest;
    });
    largest = block_reduce(block, largest, [](A a, A b) { return a > b ? a : b; });
    row.each([&](int64_t, const A(&x)[kPack]) {  // NaN makes all of the row NaN
      for (int k = 0; k < kPack; ++k) sum += std::exp(x[k] - largest);
    });
    sum = block_reduce(block, sum, [](A a, A b) { return a + b; });
    const A shift = logarithm ? std::log(sum) : A(1) / sum;
    row.each([&](int64_t i, const A(&x)[kPack]) {
      A y[kPack];
      for (int k = 0; k < kPack; ++k)
        y[k] = logarithm ? x[k] - largest - shift : std::exp(x[k] - largest) * shift;
      write_pack(out + start, i, y);
    });
  }
};

template <class S, class A>
struct SoftmaxBackward {
  const S *grad, *out;
  S* result;
  int64_t n, inner;
  bool logarithm;
  RL_BOTH void operator()(const Block& block) const {
    const int64_t outer = block.index / inner, start = outer * n * inner + (block.index - outer * inner);
    A sum = 0;
    for (int64_t i = block.thread; i < n; i += block.threads) {
      const A g = number<A>(grad[start + i * inner]);
      sum += logarithm ? g : g * number<A>(out[start + i * inner]);
    }
    sum = block_reduce(block, sum, [](A a, A b) { return a + b; });
    for (int64_t i = block.thread; i < n; i += block.threads) {
      const A g = number<A>(grad[start + i * inner]), y = number<A>(out[start + i * inner]);
      result[start + i * inner] = number<S>(logarithm ? g - std::exp(y) * sum : y * (g - sum));
    }
  }
};

template <class S, class A, int held>
struct RowSoftmaxBackward {
  const S *grad, *out;
  S* result;
  int64_t packs;
  bool logarithm;
  RL_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * packs * kPack;
    HeldRow<S, A, held> grads(grad + start, packs, block), outs(out + start, packs, block);
    A sum = 0;
    grads.each_with(outs, [&](int64_t, const A(&g)[kPack], const A(&y)[kPack]) {
      for (int k = 0; k < kPack; ++k) sum += logarithm ? g[k] : g[k] * y[k];
    });
    sum = block_reduce(block, sum, [](A a, A b) { return a + b; });
    grads.each_with(outs, [&](int64_t i, const A(&g)[kPack], const A(&y)[kPack]) {
      A x[kPack];
      for (int k = 0; k < kPack; ++k) x[k] = logarithm ? g[k] - std::exp(y[k]) * sum : y[k] * (g[k] - sum);
      write_pack(result + start, i, x);
    });
  }
};

bool in_packs(cpu::SoftmaxShape shape, size_t item, std::initializer_list<const void*> operands) {
  return shape.inner == 1 && shape.n > 16 && shape.n % kPack == 0 &&
         std::all_of(operands.begin(), operands.end(), [item](const void* p) { return packs(p, item); });
}

template <class F>
void for_each_line(const Launch& at, cpu::SoftmaxShape shape, const F& f) {
  const int64_t lines = shape.outer * shape.inner;
  // Neighbouring threads read neighbouring elements: across lines, or along one.
  if ((shape.inner > 1 && lines >= 1024) || shape.n <= 16)
    return for_each_index(at, lines, AloneInBlock<F>{f});
  for_each_block(at, lines, f);
}

}  // namespace

void softmax(int device, const void* in, void* out, cpu::SoftmaxShape shape, bool logarithm, DType dtype) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if (in_packs(shape, sizeof(S), {in, out}))
      return for_each_held_row<sizeof(ComputeOf<S>) == 4 ? 8 : 4>(
          {device, "softmax"}, shape.outer, shape.n / kPack, [&](auto held) {
            return RowSoftmax<S, ComputeOf<S>, decltype(held)::value>{
                static_cast<const S*>(in), static_cast<S*>(out), shape.n / kPack, logarithm};
          });
    for_each_line({device, "softmax"}, shape,
                  Softmax<S, ComputeOf<S>>{static_cast<const S*>(in), static_cast<S*>(out), shape.n,
                                           shape.inner, logarithm});
  });
}

void softmax_backward(int device, const void* grad, const void* out, void* result, cpu::SoftmaxShape shape,
                      bool logarithm, DType dtype) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if (in_packs(shape, sizeof(S), {grad, out, result}))
      return for_each_held_row<4>({device, "softmax_backward"}, shape.outer, shape.n / kPack, [&](auto held) {
        return RowSoftmaxBackward<S, ComputeOf<S>, decltype(held)::value>{
            static_cast<const S*>(grad), static_cast<const S*>(out), static_cast<S*>(result), shape.n / kPack,
            logarithm};
      });
    for_each_line({device, "softmax_backward"}, shape,
                  SoftmaxBackward<S, ComputeOf<S>>{static_cast<const S*>(grad), static_cast<const S*>(out),
                                                   static_cast<S*>(result), shape.n, shape.inner, logarithm});
  });
}

}  // namespace rushlight::cuda
