// Softmax over tiles of attention scores, for each instruction set.
#include "cpu/attention.h"

#include <algorithm>
#include <limits>

#include "cpu/isa/exp_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C, class M>
void add_mask_row(C* x, int64_t n, const void* data, int64_t start, int64_t step) {
  const M* mask = static_cast<const M*>(data) + start;
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (std::is_same_v<M, bool>)
      x[j] = mask[j * step] ? x[j] : -std::numeric_limits<C>::infinity();
    else
      x[j] += static_cast<C>(static_cast<compute_type<M>>(mask[j * step]));
  }
}

// Applies the mask; how many columns are left of the diagonal.
template <class C>
int64_t hide(const ScoreTile& t, int64_t i, C* x) {
  const int64_t n =
      t.causal ? std::clamp<int64_t>(t.first_row + i + 1 - t.first_column, 0, t.columns) : t.columns;
  if (!t.mask) return n;
  const int64_t start = t.mask_start + i * t.mask->row;
  visit_dtype(Concat<TypeList<bool>, FloatTypes>{}, t.mask->dtype, "scaled_dot_product_attention",
              [&](auto tag) {
                using M = decltype(tag);
                if (t.mask->column == 1)
                  add_mask_row<C, M>(x, n, t.mask->data, start, 1);
                else
                  add_mask_row<C, M>(x, n, t.mask->data, start, t.mask->column);
              });
  return n;
}

// scores become probabilities p, and grad, what flowed into them, p * (grad - delta) * scale.
template <class C>
void softmax_gradient(const ScoreTile& t, const C* logsumexp, const C* delta, C* grad, C scale) {
  for (int64_t i = 0; i < t.rows; ++i) {
    C *x = static_cast<C*>(t.scores) + i * t.stride, *g = grad + i * t.stride;
    const int64_t n = hide(t, i, x);
    const C shift = logsumexp[i], d = delta[i];
    for (int64_t j = 0; j < n; ++j) {
      const C p = exp_negative(x[j] - shift);
      x[j] = p;
      g[j] = p * (g[j] - d) * scale;
    }
    for (int64_t j = n; j < t.columns; ++j) x[j] = g[j] = 0;
  }
}

}  // namespace

void softmax_gradient_tile(DType compute, const ScoreTile& tile, const void* logsumexp, const void* delta,
                           void* grad, double scale) {
  if (compute == DType::Float32)
    softmax_gradient(tile, static_cast<const float*>(logsumexp), static_cast<const float*>(delta),
                     static_cast<float*>(grad), static_cast<float>(scale));
  else
    softmax_gradient(tile, static_cast<const double*>(logsumexp), static_cast<const double*>(delta),
                     static_cast<double*>(grad), scale);
}

}  // namespace rushlight::cpu::RL_ISA
