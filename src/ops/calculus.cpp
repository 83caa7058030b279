// Integrals and derivatives of sampled functions.
#include <algorithm>

#include "dispatch/table.h"
#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/scan.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// --- integrals, by the trapezoidal rule

Tensor all_but_last(const Tensor& t, int64_t dim) { return slice(t, dim, std::nullopt, -1, 1); }
Tensor all_but_first(const Tensor& t, int64_t dim) { return slice(t, dim, 1, std::nullopt, 1); }
Tensor neighbours(const Tensor& y, int64_t dim) { return all_but_last(y, dim) + all_but_first(y, dim); }

void check_number(const Call& call, const Tensor& y, const Scalar& dx) {
  RL_CHECK(y.dtype() != DType::Bool, call.op.name(),
           ": received a bool input for `y`, but bool is not supported");
  RL_CHECK(!dx.is_complex() && !dx.is_bool(), call.op.name(),
           ": Currently, we only support dx as a real number.");
}

// The distances of the points x of y's samples along `dim`: one point for each, or as many dimensions as y.
Tensor distances(const Call& call, const Tensor& y, const Tensor& x, int64_t dim) {
  RL_CHECK(y.dtype() != DType::Bool && x.dtype() != DType::Bool, call.op.name(),
           ": received a bool input for `x` or `y`, but bool is not supported");
  if (x.dim() > 1 && x.dim() >= y.dim()) return all_but_first(x, dim) - all_but_last(x, dim);
  Dims sizes(static_cast<size_t>(y.dim()), 1);
  if (x.dim() == 1) {
    RL_CHECK(x.size(0) == y.size(dim), call.op.name(),
             ": There must be one `x` value for each sample point, got ", x.size(0), " for ", y.size(dim));
    sizes[dim] = x.size(0);
  } else {
    std::ranges::copy(x.sizes(), sizes.end() - x.dim());
  }
  const Tensor points = view(x, sizes);
  return all_but_first(points, dim) - all_but_last(points, dim);
}

// The integral over no samples is 0, as in NumPy.
Tensor nothing(const Tensor& y, int64_t dim) {
  Dims sizes = y.sizes().dims();
  sizes.erase(static_cast<size_t>(dim));
  return new_zeros(y, sizes);
}

Tensor trapezoid_of_points(const Call& call, const Tensor& y, const Tensor& x, int64_t given_dim) {
  const int64_t dim = wrap_dim(given_dim, y.dim());
  if (y.size(dim) == 0) return nothing(y, dim);
  return sum_dim(neighbours(y, dim) * distances(call, y, x, dim), IntList{dim}, false, std::nullopt) /
         Scalar(2.0);
}
Tensor trapezoid(const Call& call, const Tensor& y, const Scalar& dx, int64_t given_dim) {
  const int64_t dim = wrap_dim(given_dim, y.dim());
  if (y.size(dim) == 0) return nothing(y, dim);
  check_number(call, y, dx);
  const Tensor ends = select(y, dim, 0) + select(y, dim, -1);
  return (sum_dim(y, IntList{dim}, false, std::nullopt) - ends * Scalar(0.5)) * Scalar(dx.to_double());
}
Tensor trapz_of_distance(const Call& call, const Tensor& y, double dx, int64_t dim) {
  return trapezoid(call, y, Scalar(dx), dim);
}

Tensor cumulative_of_points(const Call& call, const Tensor& y, const Tensor& x, int64_t given_dim) {
  const int64_t dim = wrap_dim(given_dim, y.dim());
  return cumsum(neighbours(y, dim) * distances(call, y, x, dim), dim, std::nullopt) / Scalar(2.0);
}
Tensor cumulative(const Call& call, const Tensor& y, const Scalar& dx, int64_t given_dim) {
  const int64_t dim = wrap_dim(given_dim, y.dim());
  check_number(call, y, dx);
  return cumsum(neighbours(y, dim) * Scalar(dx.to_double() / 2), dim, std::nullopt);
}

// --- derivatives, by differences of second order inside

void check_function(const Tensor& self, const Dims& dims, int64_t edge_order) {
  RL_CHECK(self.dtype() != DType::UInt8 && self.dtype() != DType::Bool, "torch.gradient does not support ",
           dtype_name(self.dtype()), " input.");
  RL_CHECK(edge_order == 1 || edge_order == 2, "torch.gradient only supports edge_order=1 and edge_order=2.");
  uint64_t seen = 0;
  for (const int64_t dim : dims) {
    RL_CHECK(!(seen >> dim & 1), "dim ", dim, " appears multiple times in the list of dims");
    seen |= uint64_t{1} << dim;
    RL_CHECK(self.size(dim) >= edge_order + 1,
             "torch.gradient expected each dimension size to be at least edge_order+1");
  }
}
void check_count(size_t spacings, size_t dims, const OptIntList& given, int64_t ndim) {
  if (given)
    RL_CHECK(
        spacings == dims,
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to "
        "have the same length, but got a spacing argument of length ",
        spacings, " and a dim argument of length ", dims, ".");
  else
    RL_CHECK(spacings == dims,
             "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
             "'self.dim() = ",
             ndim, "', since dim argument was not given, but got a list of length ", spacings);
}
Dims chosen_dims(const Tensor& self, const OptIntList& given) {
  Dims dims;
  if (given)
    for (const int64_t dim : *given) dims.push_back(wrap_dim(dim, self.dim()));
  else
    for (int64_t dim = 0; dim < self.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// Samples of a function along one dimension.
class Line {
 public:
  Line(const Tensor& t, int64_t dim) : t_(t), dim_(dim), n_(t.size(dim)) {}
  int64_t size() const { return n_; }
  int64_t dim() const { return dim_; }
  Tensor part(int64_t start, int64_t stop) const { return narrow(t_, dim_, start, stop - start); }
  Tensor at(int64_t i) const { return part(i, i + 1); }
  Tensor from_end(int64_t i) const { return at(n_ - i); }

 private:
  const Tensor& t_;
  int64_t dim_, n_;
};

Tensor derivative(const Tensor& self, int64_t dim, const Scalar& spacing, int64_t edge_order) {
  const Line f(self, dim);
  const int64_t n = f.size();
  const Scalar two(2), three(3), four(4);
  const Tensor inside = (f.part(2, n) - f.part(0, n - 2)) / two;
  const Tensor first =
      edge_order == 1 ? f.at(1) - f.at(0) : (f.at(1) * four - f.at(0) * three - f.at(2)) / two;
  const Tensor last = edge_order == 1 ? f.from_end(1) - f.from_end(2)
                                      : (f.from_end(1) * three - f.from_end(2) * four + f.from_end(3)) / two;
  return cat({first, inside, last}, dim) / spacing;
}

// The derivative at a distance `a` before the second of three points and `b` before the third of them.
Tensor one_sided(const Tensor& edge, const Tensor& next, const Tensor& after, const Tensor& a,
                 const Tensor& b) {
  const Tensor both = a + b;
  return edge * (-(a * Scalar(2) + b) / (a * both)) + next * (both / (a * b)) + after * (-a / (b * both));
}

Tensor derivative(const Tensor& self, int64_t dim, const Tensor& points, int64_t edge_order) {
  RL_CHECK(points.device() == self.device(),
           "torch.gradient expected each tensor to be on the same device, but got devices ", self.device(),
           " and ", points.device(), "!");
  RL_CHECK(points.dim() == 1,
           "torch.gradient expected each element of spacing to have one dimension, but got an element with ",
           points.dim(), " dimensions");
  RL_CHECK(points.numel() == self.size(dim),
           "torch.gradient expected each element of spacing to have the same length as the corresponding "
           "dimension of input, but got ",
           points.numel(), " and ", self.size(dim));
  const Line f(self, dim);
  const int64_t n = f.size();
  Dims sizes(static_cast<size_t>(self.dim()), 1);
  sizes[dim] = n - 1;
  const DType type = is_complex(self.dtype()) ? promote_types(self.dtype(), points.dtype()) : points.dtype();
  const Tensor steps = view(to_dtype(all_but_first(points, 0) - all_but_last(points, 0), type), sizes);
  const Line h(steps, dim);
  const Tensor a = h.part(0, n - 2), b = h.part(1, n - 1), both = a + b;
  const Tensor inside = f.part(0, n - 2) * (-b / (a * both)) + f.part(1, n - 1) * ((b - a) / (a * b)) +
                        f.part(2, n) * (a / (b * both));
  if (edge_order == 1)
    return cat({(f.at(1) - f.at(0)) / h.at(0), inside, (f.from_end(1) - f.from_end(2)) / h.from_end(1)}, dim);
  const Tensor first = one_sided(f.at(0), f.at(1), f.at(2), h.at(0), h.at(1));
  const Tensor last = -one_sided(f.from_end(1), f.from_end(2), f.from_end(3), h.from_end(1), h.from_end(2));
  return cat({first, inside, last}, dim);
}

template <class Spacing>
std::vector<Tensor> gradients(const Tensor& self, const OptIntList& given, int64_t edge_order, size_t count,
                              Spacing spacing) {
  const Dims dims = chosen_dims(self, given);
  check_count(count, dims.size(), given, self.dim());
  check_function(self, dims, edge_order);
  std::vector<Tensor> results;
  for (size_t i = 0; i < dims.size(); ++i)
    results.push_back(derivative(self, dims[i], spacing(i), edge_order));
  return results;
}

OptIntList listed(const OptInt& dim, const int64_t& storage) {
  return dim ? OptIntList(IntList(storage)) : std::nullopt;
}

std::vector<Tensor> gradient_of_distance(const Tensor& self, const Scalar& spacing, const OptIntList& dim,
                                         int64_t edge_order) {
  const size_t count = dim ? dim->size() : static_cast<size_t>(self.dim());
  return gradients(self, dim, edge_order, count, [&](size_t) -> const Scalar& { return spacing; });
}
std::vector<Tensor> gradient_body(const Call&, const Tensor& self, const OptScalar& spacing, OptInt dim,
                                  int64_t edge_order) {
  const int64_t storage = dim.value_or(0);
  return gradient_of_distance(self, spacing.value_or(Scalar(1)), listed(dim, storage), edge_order);
}
std::vector<Tensor> gradient_scalar_dims(const Call&, const Tensor& self, const Scalar& spacing, IntList dim,
                                         int64_t edge_order) {
  return gradient_of_distance(self, spacing, dim, edge_order);
}
std::vector<Tensor> gradient_dims(const Call&, const Tensor& self, IntList dim, int64_t edge_order) {
  return gradient_of_distance(self, Scalar(1), dim, edge_order);
}
template <class List>
std::vector<Tensor> gradient_list_dims(const Call&, const Tensor& self, List spacing, IntList dim,
                                       int64_t edge_order) {
  return gradients(self, dim, edge_order, spacing.size(), [&](size_t i) { return spacing[i]; });
}
template <class List>
std::vector<Tensor> gradient_list(const Call&, const Tensor& self, List spacing, OptInt dim,
                                  int64_t edge_order) {
  const int64_t storage = dim.value_or(0);
  return gradients(self, listed(dim, storage), edge_order, spacing.size(),
                   [&](size_t i) { return spacing[i]; });
}

}  // namespace

void register_calculus_operators(Table& t) {
  const auto add = [&](const char* doc, const char* schema, auto body) {
    t.composite(schema, body).function_only().doc(doc);
  };
  const char* doc = "The integral along `dim` by the trapezoidal rule, over points `x` or points `dx` apart.";
  add(doc, "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid_of_points);
  add(doc, "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid);
  add(doc, "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid_of_points);
  add(doc, "trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor", trapz_of_distance);
  doc = "Running integrals along `dim` by the trapezoidal rule; one element shorter than `y`.";
  add(doc, "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", cumulative_of_points);
  add(doc, "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", cumulative);
  doc =
      "Derivatives of a sampled function along `dim` by central differences, one tensor a dimension; "
      "`spacing` is the distance of samples, or their coordinates along each dimension.";
  add(doc,
      "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
      gradient_body);
  add(doc, "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
      gradient_scalar_dims);
  add(doc, "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]", gradient_dims);
  add(doc,
      "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
      gradient_list<ScalarList>);
  add(doc,
      "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
      gradient_list_dims<ScalarList>);
  add(doc,
      "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> "
      "Tensor[]",
      gradient_list<TensorList>);
  add(doc, "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
      gradient_list_dims<TensorList>);
}

}  // namespace rushlight
