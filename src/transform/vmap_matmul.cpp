// vmap of products and factorisations of matrices: their kernels already take leading dimensions.
#include "ops/complex.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"
#include "transform/vmap.h"

namespace rushlight {
namespace {

void check_ranks(const BatchCall& c, int first, int64_t a, int64_t b) {
  RL_CHECK(c.rank(first) == a && c.rank(first + 1) == b, c.op().name(), "(): expected operands of ", a,
           " and ", b, " dimensions, but got ", c.logical(first).sizes(), " and ",
           c.logical(first + 1).sizes());
}

Tensor product(const BatchCall& c, int first) {
  if (c.rank(first) == 3) return ops::matmul(c.examples(first), c.examples(first + 1));
  return ops::matmul(c.front(first), c.front(first + 1));
}

void mm_rule(BatchCall& c) {
  check_ranks(c, 0, 2, 2);
  c.result(product(c, 0));
}
void bmm_rule(BatchCall& c) {
  check_ranks(c, 0, 3, 3);
  RL_CHECK(c.logical(0)->sizes[0] == c.logical(1)->sizes[0],
           "bmm: the numbers of matrices differ: ", c.logical(0).sizes(), " and ", c.logical(1).sizes());
  c.result(product(c, 0));
}

Tensor matrix_times_vector(const BatchCall& c, int first) {
  const Tensor m = c.front(first), v = c.front(first + 1);
  if (!c.batched(first)) return ops::matmul(v, ops::transpose(m, 0, 1));
  if (!c.batched(first + 1)) return ops::matmul(m, v);
  return ops::squeeze_dim(ops::matmul(m, ops::unsqueeze(v, -1)), -1);
}
void mv_rule(BatchCall& c) {
  check_ranks(c, 0, 2, 1);
  c.result(matrix_times_vector(c, 0));
}

void sum_of_products(BatchCall& c, const Tensor& a) {
  check_ranks(c, 0, 1, 1);
  RL_CHECK(c.logical(0).sizes() == c.logical(1).sizes(), "inconsistent tensor size, expected tensor ",
           c.logical(0).sizes(), " and src ", c.logical(1).sizes(), " to have the same number of elements");
  // Sums of integers are int64 by themselves; products keep their dtype.
  c.result(ops::sum_dim(a * c.front(1), OptIntList(IntList{-1}), false, a.dtype()));
}
void dot_rule(BatchCall& c) { sum_of_products(c, c.front(0)); }
void vdot_rule(BatchCall& c) { sum_of_products(c, conj_of(c.front(0))); }

// beta * self + alpha * product
template <BatchRule Product>
void add_product(BatchCall& c, int64_t rank) {
  check_ranks(c, 1, rank, rank);
  const Scalar beta = c.arg(3).scalar(), alpha = c.arg(4).scalar();
  Tensor p = product(c, 1);
  if (!(alpha == Scalar(int64_t{1}))) p = p * alpha;
  if (beta == Scalar(int64_t{0})) return c.result(std::move(p));
  const Tensor self = c.batched(0) ? c.aligned(c.logical(0), rank) : c.logical(0);
  c.result(beta == Scalar(int64_t{1}) ? self + p : self * beta + p);
}
void addmm_rule(BatchCall& c) { add_product<mm_rule>(c, 2); }
void baddbmm_rule(BatchCall& c) { add_product<bmm_rule>(c, 3); }

}  // namespace

// Operands that are matrices or vectors: the examples become their leading dimension. With leading dimensions
// of their own, operands of different ranks would no longer line up; and examples of the first operand that
// are no matrices would be taken for one together, so each of them says what is wrong.
void lead_dims(BatchCall& c) {
  int64_t low = -1, high = 0;
  if (c.logical(0).dim() < 2) return loop_over_examples(c);
  each_operand(c.frame(), [&](const Tensor& t) {
    low = low < 0 ? t.dim() : std::min(low, t.dim());
    high = std::max(high, t.dim());
  });
  if (high > 2 && low != high) return loop_over_examples(c);
  const Operands all(c.frame(), [&](const Tensor& t, int) { return c.examples(t); });
  c.call(all.args());
}

void add_matmul_rules(BatchTable& t) {
  t.set(ops::mm, mm_rule, "matmul");
  t.set(ops::bmm, bmm_rule, "matmul");
  t.set(ops::mv, mv_rule, "matmul");
  t.set(ops::dot, dot_rule, "matmul");
  t.set(ops::vdot, vdot_rule, "matmul");
  t.set(ops::addmm, addmm_rule, "matmul");
  t.set(ops::baddbmm, baddbmm_rule, "matmul");
}

}  // namespace rushlight
