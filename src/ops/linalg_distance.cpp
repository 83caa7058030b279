// Distances between tensors, and between all rows of two matrices.
#include "cpu/linalg_distance.h"

#include "device/layers.h"
#include "ops/index.h"
#include "ops/linalg_common.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;

Tensor dist_body(const Call&, const Tensor& self, const Tensor& other, const Scalar& p) {
  return vector_norm(self - other, p, std::nullopt, false, std::nullopt);
}

Tensor pairwise_distance_body(const Call&, const Tensor& x1, const Tensor& x2, double p, double eps,
                              bool keepdim) {
  return vector_norm(x1 - x2 + Scalar(eps), Scalar(p), OptIntList(IntList{-1}), keepdim, std::nullopt);
}

// Dividing before multiplying keeps the result within [-1, 1].
Tensor cosine_similarity_body(const Call&, const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  RL_CHECK(eps >= 0, "cosine_similarity: eps must be non-negative, got: ", eps);
  const DType type = promote_types(x1.dtype(), x2.dtype());
  RL_CHECK(is_floating(type), "expected common dtype to be floating point, yet common dtype is ",
           legacy_name(type));
  const Dims sizes = broadcast_shapes(x1.sizes(), x2.sizes());
  const auto directions = [&](const Tensor& given) {
    const Tensor x = to_dtype(given.sizes() == sizes ? given : expand(given, sizes, false), type);
    return x /
           clamp_min(vector_norm(x, Scalar(2), OptIntList(IntList{dim}), true, std::nullopt), Scalar(eps));
  };
  return sum_dim(directions(x1) * directions(x2), IntList{dim}, false, std::nullopt);
}

inline Fn<Tensor(const Tensor& x1, const Tensor& x2, double p, bool by_product)> cdist_forward;
inline Fn<Tensor(const Tensor& self, double p)> pdist_forward;
inline Fn<Tensor(const Tensor& grad, const Tensor& self, double p, const Tensor& distances)> pdist_backward;

// |x|^2 - 2 x y + |y|^2 as one product of widened matrices.
Tensor euclidean_by_product(const Tensor& x1, const Tensor& x2) {
  auto squares = [](const Tensor& x) { return sum_dim(x * x, IntList{-1}, true, std::nullopt); };
  const Tensor s1 = squares(x1), s2 = squares(x2);
  const Tensor left = cat({x1 * Scalar(-2.0), s1, ones_like(s1)}, -1),
               right = cat({x2, ones_like(s2), s2}, -1);
  return sqrt(clamp_min(matmul(left, transposed(right)), Scalar(0.0)));
}

void check_computed(const char* who, const Tensor& t) {
  RL_CHECK_AS(NotImplemented, !is_float8(t.dtype()), "\"", who, "\" not implemented for '",
              legacy_name(t.dtype()), "'");
}

Tensor cdist_kernel(const Call&, const Tensor& x1, const Tensor& x2, double p, bool by_product) {
  check_computed("cdist", x1);
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
  if (const DeviceLayers* layers = device_layers(result)) {
    layers->row_distances(result.device().index(), x1.dtype(), checked_numel(batch), n, m, columns, p,
                          a.data_ptr(), b.data_ptr(), result.data_ptr());
    return result;
  }
  for (int64_t i = 0; i < checked_numel(batch); ++i)
    cpu::row_distances(x1.dtype(), n, m, columns, p, a.data<char>() + i * n * columns * size,
                       b.data<char>() + i * m * columns * size, result.data<char>() + i * n * m * size);
  return result;
}

Tensor or_zero(const Tensor& t, const Tensor& where_zero) {
  return rushlight::masked_fill(t, rushlight::eq(where_zero, Scalar(int64_t{0})), Scalar(int64_t{0}));
}

// What the coordinates' differences give to the gradient, from distances y and their gradients g.
Tensor slope(const Tensor& gap, const Tensor& g, const Tensor& y, double p) {
  const Tensor size = abs(gap);
  if (p == 0) return or_zero(gap, zeros_like(gap));
  if (p == 1) return sgn(gap) * g;
  if (p == 2) return gap * or_zero(g / y, y);
  if (std::isinf(p)) return sgn(gap) * to_dtype(ops::eq(size, y), gap.dtype()) * g;
  return or_zero(sgn(gap) * rushlight::pow(size, Scalar(p - 1)), size) *
         or_zero(g / rushlight::pow(y, Scalar(p - 1)), y);
}

Grads cdist_gradient(const Tensor& g, const Tensor& x1, const Tensor& x2, const Tensor& y, double p) {
  if (p == 2) {
    const Tensor ratio = or_zero(g / y, y);
    auto total = [&](int64_t dim) { return sum_dim(ratio, IntList{dim}, false, std::nullopt); };
    return {as_column(total(-1)) * x1 - matmul(ratio, x2),
            as_column(total(-2)) * x2 - matmul(transposed(ratio), x1)};
  }
  const Tensor part = slope(unsqueeze(x1, -2) - unsqueeze(x2, -3), as_column(g), as_column(y), p);
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
  RL_CHECK(x1.dtype() == x2.dtype() || x1.numel() == 0 || x2.numel() == 0, "expected scalar type ",
           legacy_name(x1.dtype()), " but found ", legacy_name(x2.dtype()), ": cdist got ", describe(x1),
           " and ", describe(x2));
  const DType type = x1.dtype();
  const bool many = x1.size(-2) > 25 || x2.size(-2) > 25;
  const int64_t chosen = mode.value_or(0);
  return cdist_forward(x1, to_dtype(x2, type), p, p == 2 && (chosen == 1 || (chosen == 0 && many)));
}

// --- all pairs of rows of one matrix

Tensor pdist_kernel(const Call&, const Tensor& self, double p) {
  check_computed("pdist", self);
  if (is_reduced_float(self.dtype()))
    return to_dtype(pdist_forward(to_dtype(self, DType::Float32), p), self.dtype());
  const int64_t rows = self.size(0);
  Tensor result = uninitialized({rows > 0 ? rows * (rows - 1) / 2 : 0}, self.dtype(), self);
  if (has_work(result))
    cpu::pair_distances(self.dtype(), rows, self.size(1), p, contiguous(self).data_ptr(), result.data_ptr());
  return result;
}

Tensor pdist_backward_kernel(const Call&, const Tensor& grad, const Tensor& self, double p,
                             const Tensor& distances) {
  if (is_reduced_float(self.dtype())) {
    auto single = [](const Tensor& t) { return to_dtype(t, DType::Float32); };
    return to_dtype(pdist_backward(single(grad), single(self), p, single(distances)), self.dtype());
  }
  Tensor result = uninitialized(self.sizes(), self.dtype(), self);
  if (!has_work(result)) return result;
  if (p == 0) return zero_(result);
  const Tensor x = contiguous(self), y = contiguous(distances), g = contiguous(grad);
  cpu::pair_distances_backward(self.dtype(), {self.size(0), self.size(1), p, x.data_ptr(), y.data_ptr(),
                                              g.data_ptr(), result.data_ptr()});
  return result;
}

// The same by operators that are recorded, for gradients of gradients.
Tensor pdist_gradient(const Tensor& g, const Tensor& x, const Tensor& y, double p) {
  const Tensor pairs =
      triu_indices(x.size(0), x.size(0), 1, std::nullopt, std::nullopt, x.device(), std::nullopt);
  const Tensor first = select(pairs, 0, 0), second = select(pairs, 0, 1);
  const Tensor part =
      slope(index_select(x, 0, first) - index_select(x, 0, second), as_column(g), as_column(y), p);
  const Tensor zeros = zero_(uninitialized(x.sizes(), x.dtype(), x));
  return index_add(zeros, 0, first, part, Scalar(1.0)) - index_add(zeros, 0, second, part, Scalar(1.0));
}

Tensor pdist_body(const Call&, const Tensor& self, double p) {
  RL_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  RL_CHECK(is_floating(self.dtype()), "pdist only supports floating-point dtypes");
  RL_CHECK(p >= 0, "pdist only supports non-negative p values");
  return pdist_forward(self, p);
}

}  // namespace

void register_linalg_distance_operators(Table& t) {
  t.composite("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", dist_body)
      .out()
      .doc("The norm of the difference.")
      .autocast(Cast::None, Cast::Float)
      .one_node();
  t.composite(
       pairwise_distance,
       "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
       pairwise_distance_body)
      .function_only()
      .doc("The p-norm of x1 - x2 + eps along the last dimension.");
  t.composite("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
              cosine_similarity_body)
      .function_only()
      .doc("Cosine of the angle between vectors along `dim`.")
      .autocast(Cast::None, Cast::Float);
  t.op(cdist_forward, "_cdist_forward(Tensor x1, Tensor x2, float p, bool by_product) -> Tensor",
       cdist_kernel)
      .internal()
      .doc("Distances between rows; for p = 2, from inner products if that is asked for.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .node("CdistBackward0")
      .derivative([](Grad g, In<0> x1, In<1> x2, Out<0> y, Attr<2, double> p) {
        return cdist_gradient(g, x1, x2, y, p);
      });
  t.composite("cdist(Tensor x1, Tensor x2, float p=2.0, int? compute_mode=None) -> Tensor", cdist_body)
      .function_only()
      .doc("The distances between all rows of x1 and all rows of x2.")
      .autocast(Cast::Float);
  t.op(pdist_forward, "_pdist_forward(Tensor self, float p=2) -> Tensor", pdist_kernel)
      .function_only()
      .doc("Distances of all pairs of rows, for pdist.")
      .family(Family::LinearAlgebra)
      .node("PdistBackward0")
      .derivative([](Grad g, In<0> x, Out<0> y, Attr<1, double> p) {
        return GradMode::enabled() ? pdist_gradient(g, x, y, p) : pdist_backward(g, x, p, y);
      });
  t.op(pdist_backward, "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
       pdist_backward_kernel)
      .function_only()
      .family(Family::Gradient)
      .not_differentiable("gradients of gradients are computed by other operators")
      .doc("The gradient of _pdist_forward.");
  t.composite("pdist(Tensor self, float p=2) -> Tensor", pdist_body)
      .function_only()
      .doc("The distances of all pairs of rows, in the order of the upper triangle.")
      .autocast(Cast::None, Cast::Float);
}

}  // namespace rushlight
