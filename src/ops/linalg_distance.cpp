// Distances between tensors, and between all rows of two matrices.
#include "cpu/linalg_distance.h"

#include "ops/linalg_common.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;

Tensor dist_body(const Call&, const Tensor& self, const Tensor& other, const Scalar& p) {
  return vector_norm(self - other, p, std::nullopt, false, std::nullopt);
}

inline Fn<Tensor(const Tensor& x1, const Tensor& x2, double p, bool by_product)> cdist_forward;

// |x|^2 - 2 x y + |y|^2 as one product of widened matrices.
Tensor euclidean_by_product(const Tensor& x1, const Tensor& x2) {
  auto squares = [](const Tensor& x) { return sum_dim(x * x, IntList{-1}, true, std::nullopt); };
  const Tensor s1 = squares(x1), s2 = squares(x2);
  const Tensor left = cat({x1 * Scalar(-2.0), s1, ones_like(s1)}, -1),
               right = cat({x2, ones_like(s2), s2}, -1);
  return sqrt(clamp_min(matmul(left, transposed(right)), Scalar(0.0)));
}

Tensor cdist_kernel(const Call&, const Tensor& x1, const Tensor& x2, double p, bool by_product) {
  const Dims batch = common_batch(x1, x2);
  const int64_t n = x1.size(-2), m = x2.size(-2), columns = x1.size(-1);
  if (is_reduced_float(x1.dtype()))
    return to_dtype(cdist_forward(to_dtype(x1, DType::Float32), to_dtype(x2, DType::Float32), p, by_product),
                    x1.dtype());
  Tensor result = uninitialized(with(batch, {n, m}), x1.dtype(), x1);
  if (!has_work(result)) return result;
  if (by_product && columns > 0) return euclidean_by_product(x1, x2);
  const Tensor a = contiguous(stretched(x1, batch)), b = contiguous(stretched(x2, batch));
  const int64_t size = static_cast<int64_t>(result.itemsize());
  for (int64_t i = 0; i < checked_numel(batch); ++i)
    cpu::row_distances(x1.dtype(), n, m, columns, p, a.data<char>() + i * n * columns * size,
                       b.data<char>() + i * m * columns * size, result.data<char>() + i * n * m * size);
  return result;
}

Tensor or_zero(const Tensor& t, const Tensor& where_zero) {
  return rushlight::masked_fill(t, rushlight::eq(where_zero, Scalar(int64_t{0})), Scalar(int64_t{0}));
}

Grads cdist_gradient(const Tensor& g, const Tensor& x1, const Tensor& x2, const Tensor& y, double p) {
  if (p == 2) {
    const Tensor ratio = or_zero(g / y, y);
    auto total = [&](int64_t dim) { return sum_dim(ratio, IntList{dim}, false, std::nullopt); };
    return {as_column(total(-1)) * x1 - matmul(ratio, x2),
            as_column(total(-2)) * x2 - matmul(transposed(ratio), x1)};
  }
  const Tensor gap = unsqueeze(x1, -2) - unsqueeze(x2, -3), size = abs(gap), g1 = as_column(g),
               y1 = as_column(y);
  Tensor part;
  if (p == 0)
    part = gap * Scalar(0.0);
  else if (p == 1)
    part = sgn(gap) * g1;
  else if (std::isinf(p))
    part = sgn(gap) * to_dtype(ops::eq(size, y1), gap.dtype()) * g1;
  else
    part = or_zero(sgn(gap) * rushlight::pow(size, Scalar(p - 1)), size) *
           or_zero(g1 / rushlight::pow(y1, Scalar(p - 1)), y1);
  return {sum_dim(part, IntList{-2}, false, std::nullopt), -sum_dim(part, IntList{-3}, false, std::nullopt)};
}

// Modes: 0 products for many rows, 1 always products, 2 never.
Tensor cdist_body(const Call&, const Tensor& x1, const Tensor& x2, double p, OptInt mode) {
  RL_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  RL_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  RL_CHECK(is_floating(x1.dtype()),
           "cdist only supports floating-point dtypes, X1 got: ", legacy_name(x1.dtype()));
  RL_CHECK(is_floating(x2.dtype()),
           "cdist only supports floating-point dtypes, X2 got: ", legacy_name(x2.dtype()));
  RL_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
           " X2: ", x2.size(-1));
  RL_CHECK(!mode || (*mode >= 0 && *mode <= 2), "possible modes: 0, 1, 2, but was: ", mode.value_or(0));
  RL_CHECK(p >= 0, "cdist only supports non-negative p values");
  const DType type = promote_types(x1.dtype(), x2.dtype());
  const bool many = x1.size(-2) > 25 || x2.size(-2) > 25;
  const int64_t chosen = mode.value_or(0);
  return cdist_forward(to_dtype(x1, type), to_dtype(x2, type), p,
                       p == 2 && (chosen == 1 || (chosen == 0 && many)));
}

}  // namespace

void register_linalg_distance_operators(Table& t) {
  t.composite("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", dist_body)
      .out()
      .doc("The norm of the difference.");
  t.op(cdist_forward, "_cdist_forward(Tensor x1, Tensor x2, float p, bool by_product) -> Tensor",
       cdist_kernel)
      .internal()
      .doc("Distances between rows; for p = 2, from inner products if that is asked for.")
      .derivative([](Grad g, In<0> x1, In<1> x2, Out<0> y, Attr<2, double> p) {
        return cdist_gradient(g, x1, x2, y, p);
      });
  t.composite("cdist(Tensor x1, Tensor x2, float p=2.0, int? compute_mode=None) -> Tensor", cdist_body)
      .function_only()
      .doc("The distances between all rows of x1 and all rows of x2.");
}

}  // namespace rushlight
