// Products of matrices and vectors: chains, powers, exponentials, and small things made of them.
#include <bit>
#include <cstring>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/loops.h"
#include "dispatch/warning.h"
#include "formulas/math.h"
#include "ops/index.h"
#include "ops/linalg_common.h"
#include "ops/plain.h"
#include "ops/scan.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;

// --- chains

// The cheapest order of a chain: cut[i][j] says where matrices i to j are parted (Cormen et al.,
// "Introduction to Algorithms", chapter 15).
std::vector<std::vector<size_t>> cheapest_order(const std::vector<Tensor>& matrices) {
  const size_t n = matrices.size();
  std::vector<double> size{static_cast<double>(matrices[0].size(0))};
  for (const Tensor& m : matrices) size.push_back(static_cast<double>(m.size(1)));
  std::vector<std::vector<double>> cost(n, std::vector<double>(n));
  std::vector<std::vector<size_t>> cut(n, std::vector<size_t>(n));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double c = cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
        if (c < cost[i][j]) cost[i][j] = c, cut[i][j] = k;
      }
    }
  return cut;
}
Tensor product(const std::vector<Tensor>& m, const std::vector<std::vector<size_t>>& cut, size_t i,
               size_t j) {
  return i == j ? m[i] : mm(product(m, cut, i, cut[i][j]), product(m, cut, cut[i][j] + 1, j));
}

Tensor multi_dot_body(const Call&, TensorList tensors) {
  const size_t n = tensors.size();
  RL_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  std::vector<Tensor> m(tensors.begin(), tensors.end());
  const bool row = m[0].dim() == 1, column = m[n - 1].dim() == 1;
  RL_CHECK(row || m[0].dim() == 2, "multi_dot(): the first tensor must be 1D or 2D but got ", m[0].dim(),
           "D");
  RL_CHECK(column || m[n - 1].dim() == 2, "multi_dot(): the last tensor must be 1D or 2D but got ",
           m[n - 1].dim(), "D");
  if (row) m[0] = unsqueeze(m[0], 0);
  if (column) m[n - 1] = unsqueeze(m[n - 1], -1);
  for (size_t i = 0; i < n; ++i) {
    RL_CHECK(m[i].dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ", m[i].dim(), "D");
    RL_CHECK(m[i].dtype() == m[0].dtype(),
             "multi_dot(): all tensors must have be the same dtype but tensor 0 is ",
             legacy_name(m[0].dtype()), " and tensor ", i, " ", legacy_name(m[i].dtype()));
    RL_CHECK(i == 0 || m[i - 1].size(1) == m[i].size(0), "multi_dot(): tensors ", i - 1, " and ", i,
             " with shapes ", tensors[i ? i - 1 : 0].sizes(), " and ", tensors[i].sizes(),
             " cannot be multiplied");
  }
  Tensor result = product(m, cheapest_order(m), 0, n - 1);
  if (column) result = squeeze_dim(result, -1);
  return row ? squeeze_dim(result, 0) : result;
}
Tensor chain_matmul_body(const Call&, TensorList matrices) {
  static OnceWarning deprecated(
      "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
      "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than multiple "
      "parameters.");
  deprecated.show();
  RL_CHECK(!matrices.empty(), "chain_matmul(): Expected one or more matrices");
  for (const Tensor& m : matrices)
    RL_CHECK(m.dim() == 2, "Tensor dimension is ", m.dim(), ", expected 2 instead.");
  return matrices.size() == 1 ? clone(matrices[0], std::nullopt) : linalg_multi_dot(matrices);
}

// --- powers and exponentials

Tensor matrix_power_body(const Call&, const Tensor& a, int64_t n) {
  check_matrix("linalg.matrix_power", a);
  RL_CHECK(a.size(-1) == a.size(-2),
           "linalg.matrix_power: A must be batches of square matrices, but they are ", a.size(-2), " by ",
           a.size(-1), " matrices");
  if (n == 0)
    return copy_(clone(a, std::nullopt), expand(identity(a.size(-1), a.dtype(), a), a.sizes(), false), false);
  if (n == 1) return clone(a, std::nullopt);
  Tensor base = n < 0 ? linalg_inv(a) : a, result;
  uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  if (left == 1) return base;
  for (; left; left >>= 1) {
    if (left & 1) result = result.defined() ? matmul(result, base) : base;
    if (left > 1) base = matmul(base, base);
  }
  return result;
}

// Norms up to which Taylor's polynomials of degree 4, 9 and 16 are exact to rounding (Al-Mohy and Higham,
// "Computing the action of the matrix exponential", 2011); their square roots are the number of powers at
// hand.
struct Degree {
  int root;
  double single_norm, double_norm;
};
constexpr Degree kDegrees[] = {{2, 5.12e-2, 3.4e-4}, {3, 7.8e-1, 8.96e-2}, {4, 2.49, 7.81e-1}};

// The polynomial of degree root^2, by Paterson and Stockmeyer's scheme.
Tensor taylor(const Tensor& a, int root) {
  std::vector<Tensor> powers{expand(identity(a.size(-1), a.dtype(), a), a.sizes(), false), a};
  while (static_cast<int>(powers.size()) <= root) powers.push_back(matmul(powers.back(), a));
  std::vector<double> factor{1.0};
  for (int i = 1; i <= root * root; ++i) factor.push_back(factor.back() / i);
  Tensor result = powers[static_cast<size_t>(root)] * Scalar(factor.back());
  for (int block = root - 1; block >= 0; --block) {
    for (int i = root - 1; i >= 0; --i)
      result =
          result + powers[static_cast<size_t>(i)] * Scalar(factor[static_cast<size_t>(block * root + i)]);
    if (block > 0) result = matmul(result, powers[static_cast<size_t>(root)]);
  }
  return result;
}

Tensor matrix_exp_kernel(const Call&, const Tensor& a) {
  check_matrix("linalg.matrix_exp", a);
  check_floating("linalg.matrix_exp", a, true);
  RL_CHECK(a.size(-1) == a.size(-2), "linalg.matrix_exp: A must be batches of square matrices, but they are ",
           a.size(-2), " by ", a.size(-1), " matrices");
  if (!has_work(a)) return empty_like_tensor(a, a.dtype());
  if (is_reduced_float(a.dtype())) return to_dtype(linalg_matrix_exp(to_dtype(a, DType::Float32)), a.dtype());
  const bool wide = real_dtype(a.dtype()) == DType::Float64;
  const Tensor norms = amax(sum_dim(abs(a), IntList{-2}, false, std::nullopt), IntList{-1}, false);
  const double largest = read_scalar(max(norms)).to_double();
  auto limit = [&](const Degree& d) { return wide ? d.double_norm : d.single_norm; };
  for (const Degree& d : kDegrees)
    if (largest <= limit(d)) return taylor(a, d.root);
  // exp(A) = exp(A / 2^s)^(2^s), with an s for each matrix.
  const double most = limit(kDegrees[2]);
  const Tensor halvings = nan_to_num(clamp_min(ceil(log2(norms / Scalar(most))), Scalar(0.0)), 0.0, 0.0, 0.0);
  const int64_t steps = static_cast<int64_t>(read_scalar(max(halvings)).to_double());
  auto shaped = [](const Tensor& t) { return as_column(as_column(t)); };
  Tensor result = taylor(a * shaped(exp2(-halvings)), kDegrees[2].root);
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor squared = matmul(result, result);
    result = norms.dim() == 0 ? squared : rushlight::where(shaped(halvings > Scalar(i)), squared, result);
  }
  return result;
}
// exp of [A^H, G; 0, A^H] has the derivative in its corner.
Tensor matrix_exp_gradient(const Tensor& g, const Tensor& a) {
  const int64_t n = a.size(-1);
  const Tensor ah = adjoint_of(a), zero = ah * Scalar(0.0);
  const Tensor both = cat({cat({ah, g}, -1), cat({zero, ah}, -1)}, -2);
  return narrow(narrow(linalg_matrix_exp(both), -2, 0, n), -1, n, n);
}

// --- tensors as matrices

Tensor tensorinv_body(const Call&, const Tensor& a, int64_t ind) {
  RL_CHECK(ind > 0, "Expected a strictly positive integer for 'ind', but got ", ind);
  RL_CHECK(ind <= a.dim(), "tensorinv: expected at most ", a.dim(),
           " for 'ind', the dimensions of A, but got ", ind);
  const size_t at = static_cast<size_t>(ind);
  const IntList rows = a.sizes().slice(0, at), columns = a.sizes().slice(at);
  const int64_t m = checked_numel(rows), n = checked_numel(columns);
  RL_CHECK(
      m == n,
      "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ",
      n, " != ", m);
  Dims sizes = columns.dims();
  for (int64_t s : rows) sizes.push_back(s);
  const auto [inverse, info] = linalg_inv_ex(reshape(a, IntList{m, n}), false);
  check_info("inv", info);
  return reshape(inverse, sizes);
}
Tensor tensorsolve_body(const Call&, const Tensor& a, const Tensor& b, const OptIntList& dims) {
  Tensor moved = a;
  if (dims) {
    Dims last;
    for (size_t i = 0; i < dims->size(); ++i)
      last.push_back(a.dim() - static_cast<int64_t>(dims->size() - i));
    moved = movedim(a, *dims, last);
  }
  const IntList sizes = moved.sizes().slice(static_cast<size_t>(std::min(b.dim(), moved.dim())));
  const int64_t n = checked_numel(sizes);
  RL_CHECK(n == b.numel(),
           "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
           "prod(self.shape[:other.ndim]), but got ",
           n, " != ", b.numel());
  return reshape(linalg_solve(reshape(moved, IntList{n, n}), reshape(b, IntList{n}), true), sizes);
}

template <class T>
void repeat_each(const void* from, int64_t n, int64_t times, void* to) {
  for (int64_t i = 0; i < n; ++i)
    std::fill_n(static_cast<T*>(to) + i * times, times, static_cast<const T*>(from)[i]);
}
constexpr void (*kRepeatEach[])(const void*, int64_t, int64_t, void*) = {
    repeat_each<uint8_t>, repeat_each<uint16_t>, repeat_each<uint32_t>, repeat_each<uint64_t>};
// Matrices with short rows: as products of rows that are as long as the result's, of elements of `a` repeated
// one by one and of rows of `b` repeated whole. Broadcasting would multiply runs as short as a row of `b`.
bool has_short_rows(const Tensor& a, const Tensor& b) {
  return is_plain(a) && is_plain(b) && a.dtype() == b.dtype() && a.dim() == 2 && b.dim() == 2 &&
         a.size(0) > 1 && a.size(1) > 1 && b.size(1) <= 32 && a.numel() * b.numel() >= 256 &&
         a.is_contiguous() && b.is_contiguous() && element_size(a.dtype()) <= 8 &&
         cpu::row(cpu::Formula::Mul).loop[static_cast<size_t>(a.dtype())];
}
Tensor kron_of_matrices(const Tensor& a, const Tensor& b) {
  const int64_t m = a.size(0), n = a.size(1), p = b.size(0), q = b.size(1);
  const Tensor result = empty_tensor(IntList{m * p, n * q}, a.dtype());
  const cpu::Loop multiply = cpu::row(cpu::Formula::Mul).loop[static_cast<size_t>(a.dtype())];
  const auto item = static_cast<int64_t>(element_size(a.dtype())), line = n * q * item;
  const auto repeat = kRepeatEach[std::countr_zero(element_size(a.dtype()))];
  const cpu::Buffer rows(p * line);
  for (int64_t j = 0; j < p; ++j)
    for (int64_t k = 0; k < n; ++k)
      std::memcpy(rows.as<char>() + j * line + k * q * item, b.data<char>() + j * q * item,
                  static_cast<size_t>(q * item));
  parallel_for(0, m, std::max<int64_t>(1, kGrainSize / (p * n * q)), [&](int64_t begin, int64_t end) {
    const cpu::Buffer elements(line);
    for (int64_t i = begin; i < end; ++i) {
      repeat(a.data<char>() + i * n * item, n, q, elements.as<char>());
      for (int64_t j = 0; j < p; ++j) {
        char* const data[3] = {result.data<char>() + (i * p + j) * line, elements.as<char>(),
                               rows.as<char>() + j * line};
        multiply(data, 0, n * q, nullptr);
      }
    }
  });
  return result;
}

Tensor kron_body(const Call&, const Tensor& self, const Tensor& other) {
  if (has_short_rows(self, other)) return kron_of_matrices(self, other);
  const int64_t n = std::max(self.dim(), other.dim());
  Dims left, right, sizes;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t i = d - (n - self.dim()), j = d - (n - other.dim());
    const int64_t a = i < 0 ? 1 : self->sizes[i], b = j < 0 ? 1 : other->sizes[j];
    left.push_back(a), left.push_back(1), right.push_back(1), right.push_back(b), sizes.push_back(a * b);
  }
  return reshape(reshape(self, left) * reshape(other, right), sizes);
}

// --- vectors

Tensor linalg_vander_body(const Call&, const Tensor& x, OptInt columns) {
  const DType type = x.dtype();
  RL_CHECK(is_integral(type) || (is_differentiable(type) && !is_reduced_float(type)),
           "linalg.vander supports floating point, complex, and integer tensors, but got ",
           legacy_name(type));
  const int64_t n = columns ? *columns : x.size(-1);
  RL_CHECK(n > 1, "N must be greater than 1.");
  const Tensor points = x.dim() == 0 ? unsqueeze(x, 0) : x;
  return first_powers(is_integral(type) ? to_dtype(points, DType::Int64) : points, n);
}

Tensor vecdot_body(const Call&, const Tensor& x, const Tensor& y, int64_t dim) {
  check_floating("linalg.vecdot", x, true);
  RL_CHECK(x.dtype() == y.dtype(),
           "linalg.vecdot: Expected x and y to have the same dtype, but found x of type ",
           legacy_name(x.dtype()), " and y of type ", legacy_name(y.dtype()), " instead");
  if (x.dim() == 1 && y.dim() == 1) return vdot(x, y);
  return sum_dim(conj_of(x) * y, IntList{dim}, false, std::nullopt);
}

// Of vectors whose components lie `inner` apart.
template <class T>
void cross_lines(const T* a, const T* b, T* out, int64_t inner, int64_t count) {
  parallel_for(0, count, kGrainSize / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = inner == 1 ? 3 * i : (i / inner) * 3 * inner + i % inner;
      const T x[3] = {a[at], a[at + inner], a[at + 2 * inner]},
              y[3] = {b[at], b[at + inner], b[at + 2 * inner]};
      for (int k = 0; k < 3; ++k) {
        const int next = (k + 1) % 3, last = (k + 2) % 3;
        out[at + k * inner] = formulas::sub(formulas::mul(x[next], y[last]), formulas::mul(x[last], y[next]));
      }
    }
  });
}

Tensor cross_along(const Tensor& a, const Tensor& b, int64_t dim) {
  RL_CHECK(a.dim() == b.dim(), "linalg.cross: inputs must have the same number of dimensions.");
  if (is_bool(a.dtype())) RL_NOT_IMPLEMENTED("\"cross\" not implemented for 'Bool'");
  RL_CHECK(a.dtype() == b.dtype(), "expected scalar type ", legacy_name(a.dtype()), " but found ",
           legacy_name(b.dtype()), ": linalg.cross got ", describe(a), " and ", describe(b));
  const int64_t d = wrap_dim(dim, a.dim());
  RL_CHECK(a.dim() > 0 && a->sizes[d] == 3 && b->sizes[d] == 3, "linalg.cross: inputs dimension ", dim,
           " must have length 3. Got ", a.dim() ? a->sizes[d] : 1, " and ", b.dim() ? b->sizes[d] : 1);
  if (is_plain(a) && is_plain(b) && a.sizes() == b.sizes() && !is_reduced_float(a.dtype())) {
    const Tensor x = contiguous(a), y = contiguous(b),
                 result = empty_tensor(a.sizes(), a.dtype(), a.device());
    int64_t inner = 1;
    for (int64_t i = d + 1; i < a.dim(); ++i) inner *= a->sizes[i];
    visit_dtype(NumberTypes{}, a.dtype(), "cross", [&]<class T>(T) {
      if constexpr (!is_reduced_v<T>)
        cross_lines(x.data<T>(), y.data<T>(), result.data<T>(), inner, a.numel() / 3);
    });
    return result;
  }
  auto part = [&](const Tensor& t, int64_t i) { return select(t, d, i % 3); };
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < 3; ++i)
    parts.push_back(part(a, i + 1) * part(b, i + 2) - part(a, i + 2) * part(b, i + 1));
  return stack(parts, d);
}
Tensor linalg_cross_body(const Call&, const Tensor& a, const Tensor& b, int64_t dim) {
  return cross_along(a, b, dim);
}
// Without a dimension, the first one of size 3.
Tensor cross_body(const Call&, const Tensor& a, const Tensor& b, OptInt dim) {
  if (dim) return cross_along(a, b, *dim);
  static OnceWarning deprecated(
      "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim "
      "explicitly "
      "or simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of "
      "linalg.cross in a future release.");
  deprecated.show();
  for (int64_t d = 0; d < a.dim(); ++d)
    if (a->sizes[d] == 3) return cross_along(a, b, d);
  RL_FAIL("no dimension of size 3 in input");
}

Tensor linalg_diagonal_body(const Call&, const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) {
  return diagonal(a, offset, dim1, dim2);
}
Tensor linalg_matmul_body(const Call&, const Tensor& a, const Tensor& b) { return matmul(a, b); }
Tensor linalg_power_body(const Call&, const Tensor& a) { return linalg_matrix_exp(a); }

// --- observations

// Weights of the observations: how often each one counts (whole numbers), and how much.
Tensor check_weights(const char* name, const Tensor& w, int64_t observations, bool whole) {
  RL_CHECK(w.dim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ", name,
           " with ", w.dim(), " dimensions");
  RL_CHECK(whole ? is_integral(w.dtype()) : is_floating(w.dtype()), "cov(): expected ", name, " to have ",
           whole ? "integral" : "floating point", " dtype but got ", name, " with ", legacy_name(w.dtype()),
           " dtype");
  RL_CHECK(w.numel() == observations, "cov(): expected ", name,
           " to have the same numel as there are observations in the input but got ", w.numel(),
           " != ", observations);
  RL_CHECK(observations == 0 || !w.is_cpu() || read_scalar(min(detach(w))).to_double() >= 0, "cov(): ", name,
           " cannot be negative");
  return w;
}
Tensor cov_body(const Call&, const Tensor& self, int64_t correction, const Tensor& fweights,
                const Tensor& aweights) {
  RL_CHECK(self.dim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input with ",
           self.dim(), " dimensions");
  RL_CHECK(self.dtype() != DType::Bool, "cov(): bool dtype is not supported for input");
  const Tensor in = self.dim() < 2 ? reshape(self, IntList{1, -1}) : self;
  const int64_t n = in.size(1);
  Tensor w;
  if (fweights.defined()) w = check_weights("fweights", fweights, n, true);
  if (aweights.defined()) {
    check_weights("aweights", aweights, n, false);
    w = w.defined() ? w * aweights : aweights;
  }
  const Tensor total =
      w.defined() ? sum(w, std::nullopt) : scalar_tensor_of(Scalar(n), DType::Int64, self.device());
  RL_CHECK(!w.defined() || !total.is_cpu() || read_scalar(detach(total)).to_double() != 0,
           "cov(): weights sum to zero, can't be normalized");
  auto weighted = [&](const Tensor& t) { return w.defined() ? t * w : t; };
  const Tensor mean = sum_dim(weighted(in), IntList{1}, false, std::nullopt) / total;
  Tensor freedom = total - Scalar(correction);
  if (aweights.defined() && correction != 0)
    freedom = total - Scalar(correction) * sum(w * aweights, std::nullopt) / total;
  if (freedom.is_cpu() && read_scalar(detach(freedom)).to_double() <= 0) {
    show_warning(
        "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
        "observations.");
    freedom = freedom * Scalar(int64_t{0});
  }
  const Tensor centred = in - as_column(mean);
  return squeeze(mm(centred, ops::t(conj_of(weighted(centred)))) / freedom);
}
Tensor corrcoef_body(const Call& call, const Tensor& self) {
  RL_CHECK(self.dim() <= 2,
           "corrcoef(): expected input to have two or fewer dimensions but got an input with ", self.dim(),
           " dimensions");
  Tensor c = cov_body(call, self, 1, Tensor(), Tensor());
  if (c.dim() == 0) return c / c;
  const Tensor d = diagonal(c, 0, 0, 1), deviation = sqrt(is_complex(d.dtype()) ? real(d) : d);
  c = c / as_column(deviation) / as_row(deviation);
  auto clipped = [](const Tensor& t) { return clamp(t, Scalar(int64_t{-1}), Scalar(int64_t{1})); };
  return is_complex(c.dtype()) ? complex(clipped(real(c)), clipped(imag(c))) : clipped(c);
}

}  // namespace

void register_linalg_product_operators(Table& t) {
  t.composite(linalg_multi_dot, "linalg::multi_dot(Tensor[] tensors) -> Tensor", multi_dot_body)
      .out(OutRule::SameType)
      .doc("The product of a chain of matrices, in the cheapest order; the first and last may be vectors.")
      .autocast(Cast::None, Cast::Half);
  t.composite("chain_matmul(Tensor[] matrices) -> Tensor", chain_matmul_body)
      .out()
      .function_only()
      .doc("The product of a chain of matrices, in the cheapest order.")
      .autocast(Cast::None, Cast::Half);
  t.composite(linalg_matrix_power, "linalg::matrix_power(Tensor self, int n) -> Tensor", matrix_power_body)
      .out()
      .doc("A multiplied with itself n times; its inverse for negative n.");
  t.composite("matrix_power(Tensor self, int n) -> Tensor", matrix_power_body)
      .out()
      .doc("A multiplied with itself n times; its inverse for negative n.");
  t.op(linalg_matrix_exp, "linalg::matrix_exp(Tensor self) -> Tensor", matrix_exp_kernel)
      .doc("The exponential of a square matrix.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .batching(Batching::LeadingDims)
      .autocast(Cast::Widest, Cast::None)  // of one operand: as it is, and so are the products inside
      .derivative([](Grad g, In<0> a) { return matrix_exp_gradient(g, a); });
  t.composite("matrix_exp(Tensor self) -> Tensor", linalg_power_body)
      .doc("The exponential of a square matrix.");
  t.composite("linalg::tensorinv(Tensor self, int ind=2) -> Tensor", tensorinv_body)
      .out()
      .doc("The inverse of A as a map from its last dimensions to its first `ind`.")
      .autocast(Cast::Float, Cast::None);
  t.composite("linalg::tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", tensorsolve_body)
      .out()
      .doc("X with tensordot(A, X, X.dim()) == B.")
      .autocast(Cast::Float, Cast::None);
  t.composite(kron, "kron(Tensor self, Tensor other) -> Tensor", kron_body)
      .out()
      .doc("Kronecker product.")
      .out_apart(kAllOperands);
  t.composite("linalg::vander(Tensor x, *, int? N=None) -> Tensor", linalg_vander_body)
      .doc("Columns of powers of x, from 0 up to N - 1.");
  t.composite("linalg::vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", vecdot_body)
      .out(OutRule::SameType)
      .doc("sum(conj(x) * y) along dim.")
      .autocast(Cast::Half);
  t.composite("linalg::cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", linalg_cross_body)
      .out(OutRule::SameType)
      .doc("The vector product along dim, of size 3.")
      .out_strictly_apart(kAllOperands)
      .one_node()
      .node("LinalgCrossBackward0");
  t.composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", cross_body)
      .out(OutRule::SameType)
      .doc("The vector product along dim, of size 3.")
      .autocast(Cast::None, Cast::Widest)
      .out_strictly_apart(kAllOperands)
      .one_node()
      .node("LinalgCrossBackward0");
  t.composite("linalg::diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
              linalg_diagonal_body)
      .doc("The diagonal of the last two dimensions.");
  t.composite("linalg::matmul(Tensor self, Tensor other) -> Tensor", linalg_matmul_body)
      .out()
      .doc("The same as matmul.");
  t.composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
              cov_body)
      .doc("The covariances of variables, given by rows, over observations.");
  t.composite("corrcoef(Tensor self) -> Tensor", corrcoef_body)
      .doc("The correlation coefficients of variables, given by rows, over observations.");
}

}  // namespace rushlight
