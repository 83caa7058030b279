#include <algorithm>

#include "core/tensor.h"

namespace rushlight {
namespace {

// The distance between an element of one tensor and an element of another: base + sum of coefficient * step,
// each coefficient from a range of its own.
struct Term {
  int64_t step, low, high;
};
using Terms = std::vector<Term>;

void add_term(Terms& terms, int64_t step, int64_t low, int64_t high) {
  if (step == 0 || low == high) return;
  if (step < 0) step = -step, std::swap(low, high), low = -low, high = -high;
  for (Term& t : terms)
    if (t.step == step) {
      t.low += low, t.high += high;
      return;
    }
  terms.push_back({step, low, high});
}

void add_dimensions(Terms& terms, const Tensor& t, int sign) {
  const auto item = static_cast<int64_t>(t.itemsize());
  for (int64_t d = 0; d < t.dim(); ++d) add_term(terms, sign * t->strides[d] * item, 0, t->sizes[d] - 1);
}

int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// Whether some choice of coefficients lands in [low, high]. With the longest step first the others reach no
// further than a step or two of ordinary tensors, so few coefficients are tried; `budget` bounds the rest.
bool reaches(const Term* term, const Term* end, int64_t low, int64_t high, int64_t& budget) {
  if (term == end) return low <= 0 && 0 <= high;
  if (--budget < 0) return true;
  int64_t rest_low = 0, rest_high = 0;
  for (const Term* t = term + 1; t != end; ++t) rest_low += t->step * t->low, rest_high += t->step * t->high;
  const int64_t first = std::max(term->low, -divide_down(rest_high - low, term->step));
  const int64_t last = std::min(term->high, divide_down(high - rest_low, term->step));
  for (int64_t c = first; c <= last; ++c)
    if (reaches(term + 1, end, low - c * term->step, high - c * term->step, budget)) return true;
  return false;
}

}  // namespace

Overlap memory_overlap(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return Overlap::Full;
  if (a.numel() == 0 || b.numel() == 0 || a->storage != b->storage) return Overlap::No;
  if (a.storage_offset() == b.storage_offset() && a.numel() == b.numel() && a.strides() == b.strides() &&
      a.dtype() == b.dtype())
    return Overlap::Full;
  Terms terms;
  add_dimensions(terms, a, 1);
  add_dimensions(terms, b, -1);
  std::sort(terms.begin(), terms.end(), [](const Term& x, const Term& y) { return x.step > y.step; });
  const int64_t a_item = static_cast<int64_t>(a.itemsize()), b_item = static_cast<int64_t>(b.itemsize());
  const int64_t base = a.storage_offset() * a_item - b.storage_offset() * b_item;
  int64_t budget = 4096;
  const bool meet =
      reaches(terms.data(), terms.data() + terms.size(), 1 - a_item - base, b_item - 1 - base, budget);
  return meet ? Overlap::Partial : Overlap::No;
}

}  // namespace rushlight
