#include "ops/matmul.h"

#include "core/prepared_weight.h"
#include "cpu/gemm.h"
#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/complex.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dtype() == b.dtype(), op,
           ": expected both operands to have the same dtype, but got: ", legacy_name(a.dtype()), " and ",
           legacy_name(b.dtype()), " (", describe(a), " and ", describe(b), "); convert one with .to()");
}

// The operand as gemm reads it: itself, or a contiguous copy.
Tensor readable(const Tensor& t) {
  const int64_t r = t.dim() - 2, c = t.dim() - 1;
  return cpu::gemm_readable(t->sizes[r], t->sizes[c], t->strides[r], t->strides[c]) ? t : contiguous(t);
}
cpu::MatrixView matrix(const Tensor& t) {
  return {t.data_ptr(), t->strides[t.dim() - 2], t->strides[t.dim() - 1]};
}

// Meta tensors have no products, only shapes.
Tensor product_on_device(const Tensor& result, const Tensor& a, const Tensor& b, const Scalar& alpha,
                         const Scalar& beta) {
  if (result.device().is_cuda()) loops::product(result, readable(a), readable(b), alpha, beta);
  return result;
}

void check_mm(const char* op, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dim() == 2, op == std::string_view("mm") ? "self must be a matrix" : "mat1 must be a matrix",
           ", got ", a.dim(), "-D tensor");
  RL_CHECK(b.dim() == 2, "mat2 must be a matrix, got ", b.dim(), "-D tensor");
  RL_CHECK(a->sizes[1] == b->sizes[0], "mat1 and mat2 shapes cannot be multiplied (", a->sizes[0], "x",
           a->sizes[1], " and ", b->sizes[0], "x", b->sizes[1], ")");
  RL_CHECK(a.dtype() == b.dtype(), "mat1 and mat2 must have the same dtype, but got ", legacy_name(a.dtype()),
           " and ", legacy_name(b.dtype()));
}

// Products of float8 are those of float32, rounded once.
Tensor widened(const Tensor& t) { return to_dtype(t, DType::Float32); }

Tensor mm_kernel(const Call&, const Tensor& self, const Tensor& mat2) {
  check_mm("mm", self, mat2);
  if (self.is_cpu() && is_float8(self.dtype()))
    return to_dtype(mm(widened(self), widened(mat2)), self.dtype());
  const int64_t m = self->sizes[0], k = self->sizes[1], n = mat2->sizes[1];
  Tensor result = empty_tensor(IntList{m, n}, self.dtype(), self.device());
  if (!result.is_cpu()) return product_on_device(result, self, mat2, 1, 0);
  const Tensor a = readable(self), b = readable(mat2);
  const PreparedWeight prepared(b);
  cpu::gemm(self.dtype(), m, n, k, 1, matrix(a), matrix(b), 0, result.data_ptr(), n);
  return result;
}

// `bias` laid out as the result, which the product is then added to; untouched memory when beta is 0.
Tensor started_with(const Tensor& bias, IntList sizes, const Scalar& beta, DType dtype) {
  Tensor result = empty_tensor(sizes, dtype, bias.device());
  if (!(beta == Scalar(0))) copy_result(result, expand(bias, sizes), false);
  return result;
}

// A bias as linear layers have it.
bool is_row(const Tensor& t, int64_t n) { return t.dim() == 1 && t->sizes[0] == n && t.is_contiguous(); }

Tensor addmm_kernel(const Call&, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                    const Scalar& beta, const Scalar& alpha) {
  check_mm("addmm", mat1, mat2);
  RL_CHECK(self.dtype() == mat1.dtype(), "self and mat2 must have the same dtype, but got ",
           legacy_name(self.dtype()), " and ", legacy_name(mat2.dtype()));
  if (mat1.is_cpu() && is_float8(mat1.dtype()))
    return to_dtype(addmm(widened(self), widened(mat1), widened(mat2), beta, alpha), mat1.dtype());
  const int64_t m = mat1->sizes[0], k = mat1->sizes[1], n = mat2->sizes[1];
  if (mat1.is_cpu() && is_row(self, n) && alpha == Scalar(1) && beta == Scalar(1)) {
    const Tensor result = empty_tensor(IntList{m, n}, mat1.dtype()), a = readable(mat1), b = readable(mat2);
    const PreparedWeight prepared(b);
    cpu::gemm_bias(mat1.dtype(), m, n, k, matrix(a), matrix(b), self.data_ptr(), result.data_ptr(), n);
    return result;
  }
  if (mat1.device().is_cuda() && self.device() == mat1.device() && is_row(self, n) && alpha == Scalar(1) &&
      beta == Scalar(1)) {
    const Tensor result = empty_tensor(IntList{m, n}, mat1.dtype(), mat1.device());
    if (loops::product_bias(result, readable(mat1), readable(mat2), self, DeviceKernels::Activation::None))
      return result;
  }
  Tensor result = started_with(self, IntList{m, n}, beta, mat1.dtype());
  if (!result.is_cpu()) return product_on_device(result, mat1, mat2, alpha, beta);
  const Tensor a = readable(mat1), b = readable(mat2);
  const PreparedWeight prepared(b);
  cpu::gemm(mat1.dtype(), m, n, k, alpha, matrix(a), matrix(b), beta, result.data_ptr(), n);
  return result;
}

// What a library does in one pass where nothing is recorded. GELU is the erf's on the CPU and by tanh on
// CUDA, as in PyTorch.
Tensor addmm_activation_body(const Call&, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                             const Scalar& beta, const Scalar& alpha, bool use_gelu) {
  using Activation = DeviceKernels::Activation;
  constexpr uint32_t kSeen = kAutograd | kPythonDispatch | kWrapped | kForwardGrad;
  const uint32_t flags = (self->flags | mat1->flags | mat2->flags) & dispatch_state.consider;
  if (mat1.device().is_cuda() && !(flags & kSeen) && !dispatch_state.always) {
    check_mm("addmm", mat1, mat2);
    const int64_t m = mat1->sizes[0], n = mat2->sizes[1];
    if (is_row(self, n) && self.device() == mat1.device() && self.dtype() == mat1.dtype() &&
        alpha == Scalar(1) && beta == Scalar(1)) {
      const Tensor result = empty_tensor(IntList{m, n}, mat1.dtype(), mat1.device());
      if (loops::product_bias(result, readable(mat1), readable(mat2), self,
                              use_gelu ? Activation::Gelu : Activation::Relu))
        return result;
    }
  }
  const Tensor sum = addmm(self, mat1, mat2, beta, alpha);
  return use_gelu ? gelu(sum, mat1.device().is_cuda() ? "tanh" : "none") : relu(sum);
}

void check_bmm(const char* op, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dim() == 3, "batch1 must be a 3D tensor (", op, " got ", describe(a), ")");
  RL_CHECK(b.dim() == 3, "batch2 must be a 3D tensor (", op, " got ", describe(b), ")");
  RL_CHECK(a->sizes[0] == b->sizes[0] && a->sizes[2] == b->sizes[1],
           "Expected size for first two dimensions of batch2 tensor to be: [", a->sizes[0], ", ", a->sizes[2],
           "] but got: [", b->sizes[0], ", ", b->sizes[1], "].");
}
// Different dtypes are told first.
void check_bmm_dtypes(const char* op, const Tensor& a, const Tensor& b) {
  check_same_dtype(op, a, b);
  if (is_bool(a.dtype())) RL_NOT_IMPLEMENTED("\"", op, "\" not implemented for 'Bool'");
}

void batched_product(const Tensor& lhs, const Tensor& rhs, const Scalar& alpha, const Scalar& beta,
                     const Tensor& result) {
  if (!result.is_cpu()) return (void)product_on_device(result, lhs, rhs, alpha, beta);
  const Tensor a = readable(lhs), b = readable(rhs);
  const int64_t m = a->sizes[1], k = a->sizes[2], n = b->sizes[2];
  cpu::gemm_batch(a.dtype(), a->sizes[0], m, n, k, alpha, matrix(a), a->strides[0], matrix(b), b->strides[0],
                  beta, result.data_ptr(), n, m * n);
}

Tensor bmm_kernel(const Call&, const Tensor& self, const Tensor& mat2) {
  check_bmm("bmm", self, mat2);
  if (is_bool(self.dtype())) RL_NOT_IMPLEMENTED("\"bmm\" not implemented for 'Bool'");
  check_same_dtype("bmm", self, mat2);
  Tensor result =
      empty_tensor(IntList{self->sizes[0], self->sizes[1], mat2->sizes[2]}, self.dtype(), self.device());
  batched_product(self, mat2, 1, 0, result);
  return result;
}

Tensor baddbmm_kernel(const Call&, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                      const Scalar& beta, const Scalar& alpha) {
  check_bmm("baddbmm", batch1, batch2);
  check_same_dtype("baddbmm", self, batch1);
  check_bmm_dtypes("baddbmm", batch1, batch2);
  Tensor result =
      started_with(self, IntList{batch1->sizes[0], batch1->sizes[1], batch2->sizes[2]}, beta, batch1.dtype());
  batched_product(batch1, batch2, alpha, beta, result);
  return result;
}

Tensor mv_kernel(const Call&, const Tensor& self, const Tensor& vec) {
  RL_CHECK(self.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got ", vec.dim(), ", ",
           self.dim(), ", ", vec.dim());
  RL_CHECK(self->sizes[1] == vec->sizes[0], "size mismatch, got input (", self->sizes[0], "), mat (",
           self->sizes[0], "x", self->sizes[1], "), vec (", vec->sizes[0], ")");
  check_same_dtype("mv", self, vec);
  Tensor result = empty_tensor(IntList{self->sizes[0]}, self.dtype(), self.device());
  if (!result.is_cpu()) {
    const Tensor column = make_view(result, {result.numel(), 1}, {1, 1}, 0, false);
    product_on_device(column, self, unsqueeze(contiguous(vec), 1), 1, 0);
    return result;
  }
  const Tensor a = readable(self), x = contiguous(vec);
  cpu::gemm(self.dtype(), a->sizes[0], 1, a->sizes[1], 1, matrix(a), {x.data_ptr(), 1, 1}, 0,
            result.data_ptr(), 1);
  return result;
}

Tensor inner_product(const char* op, const Tensor& a, const Tensor& b, bool conjugate) {
  RL_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(),
           "D tensors");
  RL_CHECK(a.dtype() == b.dtype(), op, " : expected both vectors to have same dtype, but found ",
           legacy_name(a.dtype()), " and ", legacy_name(b.dtype()));
  RL_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(), "] and src [",
           b.numel(), "] to have the same number of elements, but got ", a.numel(), " and ", b.numel(),
           " elements respectively");
  Tensor result = empty_tensor(IntList{}, a.dtype(), a.device());
  if (result.device().is_cuda()) {
    const Tensor whole = make_view(result, {1, 1}, {1, 1}, 0, false), left = conjugate ? conj_of(a) : a;
    product_on_device(whole, unsqueeze(contiguous(left), 0), unsqueeze(contiguous(b), 1), 1, 0);
  }
  if (result.is_cpu())
    cpu::dot(a.dtype(), a.numel(), a.data_ptr(), a->strides[0], b.data_ptr(), b->strides[0], conjugate,
             result.data_ptr());
  return result;
}
Tensor dot_kernel(const Call&, const Tensor& a, const Tensor& b) { return inner_product("dot", a, b, false); }
Tensor vdot_kernel(const Call&, const Tensor& a, const Tensor& b) {
  return inner_product("vdot", a, b, true);
}

// Integer products take the integer part of a factor, as the fused kernels do.
Scalar conj_of(const Scalar& s) { return s.is_complex() ? Scalar(std::conj(s.to<complex128>())) : s; }

Tensor scaled(const Tensor& t, const Scalar& by) {
  if (by == Scalar(1)) return t;
  return is_integral(t.dtype()) && by.is_floating() ? t * Scalar(by.to_int()) : t * by;
}

bool is_special(const Tensor& t) { return t.defined() && t->flags & kSpecialElements; }

// Gradients keep the layout of their operand: a transposed weight gets a transposed gradient, which t() turns
// back for free. Of a dense factor that the other's gradient does not need, its order alone was saved.
Tensor left_gradient(const Tensor& g, const Tensor& mat1, const Tensor& mat2, bool by_columns) {
  const Tensor b = conj_of(mat2);
  if (is_special(mat1)) return sparse_as(mm(g, ops::t(b)), mat1);
  return by_columns && !is_special(b) ? ops::t(mm(b, ops::t(g))) : mm(g, ops::t(b));
}
Tensor right_gradient(const Tensor& g, const Tensor& mat1, const Tensor& mat2, bool by_columns) {
  const Tensor a = conj_of(mat1);
  if (is_special(mat2)) return sparse_as(mm(ops::t(a), g), mat2);
  return by_columns && !is_special(a) ? ops::t(mm(ops::t(g), a)) : mm(ops::t(a), g);
}
Tensor adjoint_of(const Tensor& t) { return transpose(conj_of(t), -2, -1); }

// --- composites

Tensor outer_body(const Call&, const Tensor& self, const Tensor& vec2) {
  RL_CHECK(self.dim() == 1, "outer: Expected 1-D argument self, but got ", self.dim(), "-D");
  RL_CHECK(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return unsqueeze(self, 1) * vec2;
}

void check_factor(const char* name, const Scalar& factor, DType type) {
  RL_CHECK(!factor.is_bool() || is_bool(type), "Boolean ", name, " only supported for Boolean results.");
  RL_CHECK(is_floating(type) || is_complex(type) || factor.is_integral() || factor.is_bool(),
           "For integral input tensors, argument ", name, " must not be a floating point number.");
  RL_CHECK(is_complex(type) || !factor.is_complex(), "For non-complex input tensors, argument ", name,
           " must not be a complex number.");
}

Tensor addr_body(const Call&, const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                 const Scalar& alpha) {
  RL_CHECK(vec1.dim() == 1 && vec2.dim() == 1, "addr: Expected 1-D arguments vec1 and vec2, but got ",
           vec1.dim(), "-D and ", vec2.dim(), "-D");
  RL_CHECK(self.dim() <= 2, "addr: self must expand to ", IntList{vec1->sizes[0], vec2->sizes[0]},
           ", but got ", describe(self));
  // The dtypes of tensors without dimensions count in full: PyTorch expands them first.
  const DType type = promote_types(self.dtype(), promote_types(vec1.dtype(), vec2.dtype()));
  check_factor("beta", beta, type), check_factor("alpha", alpha, type);
  const Tensor column = unsqueeze(to_dtype(vec1, type), 1), row = to_dtype(vec2, type);
  if (!is_bool(type) && beta != Scalar(0))  // one pass over the result; what is scaled is seldom as large
    return addcmul(scaled(to_dtype(self, type), beta), scaled(column, alpha), row, Scalar(1));
  const Tensor outer = column * row;
  if (is_bool(type)) {  // sums and products of truth values
    const Tensor product = alpha == Scalar(0) ? outer ^ outer : outer;
    return beta == Scalar(0) ? product : product | self;
  }
  return scaled(outer, alpha);
}

Tensor addmv_body(const Call&, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                  const Scalar& alpha) {
  RL_CHECK(self.dtype() == mat.dtype() && mat.dtype() == vec.dtype(),
           "addmv input tensors must have the same dtype, but got ", legacy_name(self.dtype()), ", ",
           legacy_name(mat.dtype()), ", and ", legacy_name(vec.dtype()));
  const Tensor product = scaled(mv(mat, vec), alpha);
  if (beta == Scalar(0)) return product;
  RL_CHECK(self.dim() == 0 || self.dim() == 1, "vector + matrix @ vector expected, got ", self.dim(), ", ",
           mat.dim(), ", ", vec.dim());
  return scaled(self, beta) + product;
}

Tensor addbmm_body(const Call&, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                   const Scalar& beta, const Scalar& alpha) {
  check_bmm("addbmm", batch1, batch2);
  check_same_dtype("addbmm", self, batch1);
  check_bmm_dtypes("addbmm", batch1, batch2);
  // The sum over the batch is one product of long matrices.
  const int64_t b = batch1->sizes[0], n = batch1->sizes[1], m = batch1->sizes[2], p = batch2->sizes[2];
  const Tensor left = reshape(permute(batch1, IntList{1, 0, 2}), IntList{n, b * m}),
               right = reshape(batch2, IntList{b * m, p});
  return addmm(self, left, right, beta, alpha);
}

// [..., n, k] @ [..., k, m] with broadcast batches, as one bmm.
Tensor broadcast_bmm(const Tensor& a, const Tensor& b) {
  const Dims batch = broadcast_shapes(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  auto stretch = [&](const Tensor& t) {
    Dims sizes = batch;
    sizes.push_back(t->sizes[t.dim() - 2]);
    sizes.push_back(t->sizes[t.dim() - 1]);
    const Tensor wide = t.sizes() == IntList(sizes) ? t : expand(t, sizes);
    return reshape(wide, IntList{checked_numel(batch), sizes[sizes.size() - 2], sizes.back()});
  };
  const Tensor product = bmm(stretch(a), stretch(b));
  Dims sizes = batch;
  sizes.push_back(a->sizes[a.dim() - 2]);
  sizes.push_back(b->sizes[b.dim() - 1]);
  return unsafe_view(product, sizes);
}

Tensor matmul_body(const Call&, const Tensor& self, const Tensor& other) {
  const int64_t d1 = self.dim(), d2 = other.dim();
  RL_CHECK(d1 > 0 && d2 > 0, "both arguments to matmul need to be at least 1D, but they are ", d1, "D and ",
           d2, "D");
  if (d1 == 1 && d2 == 1) return dot(self, other);
  if (d1 == 2 && d2 == 1) return mv(self, other);
  if (d1 == 1 && d2 == 2) return squeeze_dim(mm(unsqueeze(self, 0), other), 0);
  if (d1 == 2 && d2 == 2) return mm(self, other);
  if (d1 >= 3 && d2 <= 2) {  // fold the batch into the rows
    const int64_t k = self->sizes[d1 - 1];
    Dims sizes = self.sizes().slice(0, d1 - 1).dims();
    const int64_t rows = checked_numel(sizes);
    const Tensor folded = reshape(self, IntList{rows, k});
    if (d2 == 1) return reshape(mv(folded, other), sizes);
    sizes.push_back(other->sizes[1]);
    return unsafe_view(mm(folded, other), sizes);
  }
  if (d1 == 1) return squeeze_dim(matmul(unsqueeze(self, 0), other), -2);
  RL_CHECK(self->sizes[d1 - 1] == other->sizes[d2 - 2],
           "Expected size for first two dimensions of batch2 tensor to be: [", self->sizes[d1 - 1],
           "] but got: [", other->sizes[d2 - 2], "]. (matmul of ", describe(self), " and ", describe(other),
           ")");
  return broadcast_bmm(self, other);
}

Tensor inner_body(const Call&, const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self * other;
  RL_CHECK(self->sizes.back() == other->sizes.back(),
           "inner() the last dimension must match on both input tensors but got shapes ", self.sizes(),
           " and ", other.sizes());
  return tensordot(self, other, IntList{-1}, IntList{-1});
}

Tensor tensordot_body(const Call&, const Tensor& given, const Tensor& given_other, IntList dims1,
                      IntList dims2) {
  RL_CHECK(dims1.size() == dims2.size(), "both dimension lists should have same length, got ", dims1, " and ",
           dims2);
  auto split_dims = [](const Tensor& t, IntList contracted) {
    Dims wrapped, kept;
    for (int64_t d : contracted) wrapped.push_back(wrap_dim(d, t.dim()));
    for (int64_t d = 0; d < t.dim(); ++d)
      if (std::find(wrapped.begin(), wrapped.end(), d) == wrapped.end()) kept.push_back(d);
    return std::pair(wrapped, kept);
  };
  const auto [c1, k1] = split_dims(given, dims1);
  const auto [c2, k2] = split_dims(given_other, dims2);
  Tensor self = given, other = given_other;
  for (size_t i = 0; i < c1.size(); ++i) {
    if (self->sizes[c1[i]] == 1 && other->sizes[c2[i]] != 1)
      other = sum_dim(other, IntList{c2[i]}, true, other.dtype());
    else if (other->sizes[c2[i]] == 1 && self->sizes[c1[i]] != 1)
      self = sum_dim(self, IntList{c1[i]}, true, self.dtype());
  }
  int64_t contracted = 1;
  Dims order1 = k1, order2 = c2, sizes;
  int64_t rows = 1, columns = 1;
  for (size_t i = 0; i < c1.size(); ++i) {
    // A dimension of size 1 is contracted with any other by summing that one first.
    RL_CHECK(self->sizes[c1[i]] == other->sizes[c2[i]] || self->sizes[c1[i]] == 1 || other->sizes[c2[i]] == 1,
             "contracted dimensions need to match, but first has size ", self->sizes[c1[i]], " in dim ",
             dims1[i], " and second has size ", other->sizes[c2[i]], " in dim ", dims2[i]);
    contracted *= self->sizes[c1[i]];
    order1.push_back(c1[i]);
  }
  for (int64_t d : k1) sizes.push_back(self->sizes[d]), rows *= self->sizes[d];
  for (int64_t d : k2) sizes.push_back(other->sizes[d]), columns *= other->sizes[d], order2.push_back(d);
  if (rows == 1 && columns == 1)  // which autocasting leaves as it is
    return reshape(
        dot(reshape(permute(self, order1), IntList{-1}), reshape(permute(other, order2), IntList{-1})),
        sizes);
  const Tensor a = reshape(permute(self, order1), IntList{rows, contracted}),
               b = reshape(permute(other, order2), IntList{contracted, columns});
  return reshape(mm(a, b), sizes);
}

// As PyTorch: a matrix with a bias is one addmm; more dimensions are folded into rows first.
Tensor linear_body(const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  RL_CHECK(weight.dim() == 2 || weight.dim() == 1, "linear: weight must be 1-D or 2-D, got ",
           describe(weight));
  RL_CHECK(input.dim() > 0, "both arguments to linear need to be at least 1D, but they are ", input.dim(),
           "D and ", weight.dim(), "D");
  if (weight.dim() == 1) {
    const Tensor product = matmul(input, weight);
    return bias.defined() ? product + bias : product;
  }
  if (!bias.defined()) return matmul(input, ops::t(weight));
  RL_CHECK(bias.dtype() == weight.dtype() || (input.dim() > 2 && !input.is_contiguous()),
           "self and mat2 must have the same dtype, but got ", legacy_name(bias.dtype()), " and ",
           legacy_name(weight.dtype()), " (linear got bias ", describe(bias), " and weight ",
           describe(weight), ")");
  if (input.dim() == 2 && bias.dim() <= 2) return addmm(bias, input, ops::t(weight));
  if (input.dim() >= 3 && bias.dim() == 1 && input.is_contiguous()) {
    Dims sizes = input->sizes;
    const int64_t k = sizes.back();
    sizes.back() = weight->sizes[0];
    const int64_t rows = k ? input.numel() / k : checked_numel(input.sizes().slice(0, input.dim() - 1));
    return view(addmm(bias, view(input, IntList{rows, k}), ops::t(weight)), sizes);
  }
  return matmul(input, ops::t(weight)) + bias;
}

}  // namespace

void register_matmul_operators(Table& t) {
  t.op(mm, "mm(Tensor self, Tensor mat2) -> Tensor", mm_kernel)
      .family(Family::Matmul)
      .out(OutRule::SameType)
      .doc("Matrix product [n, k] @ [k, m].")
      .layer({.weight = 1, .turned = true})
      .on_devices()
      .tangent(Tangent::Product)
      .autocast(Cast::Half)
      .derivative(
          [](Grad g, In<0, 1> a, In<1, 0> b, ColumnMajor<0> a_turned, ColumnMajor<1> b_turned, Needs need) {
            return Grads{need[0] ? left_gradient(g, a, b, a_turned) : Tensor(),
                         need[1] ? right_gradient(g, a, b, b_turned) : Tensor()};
          });
  t.op(addmm, "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       addmm_kernel)
      .family(Family::Matmul)
      .inplace()
      .out(OutRule::SameType)
      .doc("beta * self + alpha * (mat1 @ mat2); self is broadcast.")
      .layer({.weight = 2, .bias = 0, .turned = true})
      .on_devices()
      .autocast(Cast::Half)
      .out_apart(kFirst)
      .derivative([](Grad g, In<1, 2> a, In<2, 1> b, ColumnMajor<1> a_turned, ColumnMajor<2> b_turned,
                     Attr<3, Scalar> beta, Attr<4, Scalar> alpha, Needs need) {
        return Grads{need[0] ? scaled(g, conj_of(beta)) : Tensor(),
                     need[1] ? scaled(left_gradient(g, a, b, a_turned), conj_of(alpha)) : Tensor(),
                     need[2] ? scaled(right_gradient(g, a, b, b_turned), conj_of(alpha)) : Tensor()};
      });
  t.op(bmm, "bmm(Tensor self, Tensor mat2) -> Tensor", bmm_kernel)
      .family(Family::Matmul)
      .out(OutRule::SameType)
      .doc("Batched matrix product [b, n, k] @ [b, k, m].")
      .on_devices()
      .tangent(Tangent::Product)
      .autocast(Cast::Half)
      .derivative([](Grad g, In<0, 1> a, In<1, 0> b, Needs need) {
        return Grads{need[0] ? bmm(g, adjoint_of(b)) : Tensor(), need[1] ? bmm(adjoint_of(a), g) : Tensor()};
      });
  t.op(baddbmm,
       "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       baddbmm_kernel)
      .doc("beta * self + alpha * (batch1 @ batch2) for batches of matrices; self is broadcast.")
      .family(Family::Matmul)
      .inplace()
      .out(OutRule::SameType)
      .on_devices()
      .autocast(Cast::Half)
      .out_apart(kFirst)
      .derivative(
          [](Grad g, In<1, 2> a, In<2, 1> b, Attr<3, Scalar> beta, Attr<4, Scalar> alpha, Needs need) {
            return Grads{need[0] ? scaled(g, conj_of(beta)) : Tensor(),
                         need[1] ? scaled(bmm(g, adjoint_of(b)), conj_of(alpha)) : Tensor(),
                         need[2] ? scaled(bmm(adjoint_of(a), g), conj_of(alpha)) : Tensor()};
          });
  t.op(mv, "mv(Tensor self, Tensor vec) -> Tensor", mv_kernel)
      .doc("Matrix times vector.")
      .family(Family::Matmul)
      .out(OutRule::SameType)
      .on_devices()
      .tangent(Tangent::Product)
      .autocast(Cast::None, Cast::Half)
      .derivative([](Grad g, In<0, 1> a, In<1, 0> x, Needs need) {
        return Grads{need[0] ? unsqueeze(g, 1) * conj_of(x) : Tensor(),
                     need[1] ? mv(ops::t(conj_of(a)), g) : Tensor()};
      });
  t.op(dot, "dot(Tensor self, Tensor tensor) -> Tensor", dot_kernel)
      .doc("Sum of the products of two vectors, without conjugation.")
      .family(Family::Matmul)
      .out(OutRule::SameType)
      .on_devices()
      .tangent(Tangent::Product)
      .autocast(Cast::None, Cast::Widest)
      .derivative([](Grad g, In<0, 1> a, In<1, 0> b, Needs need) {
        return Grads{need[0] ? g * conj_of(b) : Tensor(), need[1] ? g * conj_of(a) : Tensor()};
      });
  t.op(vdot, "vdot(Tensor self, Tensor other) -> Tensor", vdot_kernel)
      .doc("Sum of the products of two vectors, the first one conjugated.")
      .family(Family::Matmul)
      .out(OutRule::SameType)
      .on_devices()
      .tangent(Tangent::Product)
      .autocast(Cast::None, Cast::Widest)
      .derivative([](Grad g, In<0, 1> a, In<1, 0> b, Needs need) {
        return Grads{need[0] ? conj_of(g) * b : Tensor(), need[1] ? g * a : Tensor()};
      });
  t.composite(outer, "outer(Tensor self, Tensor vec2) -> Tensor", outer_body)
      .doc("All products of an element of one vector with one of another: [n, m].")
      .out()
      .out_apart(kAllOperands);
  t.composite(ger, "ger(Tensor self, Tensor vec2) -> Tensor", outer_body).doc("Another name of outer.").out();
  t.composite(addr, "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
              addr_body)
      .doc("beta * self + alpha * outer(vec1, vec2).")
      .inplace()
      .out()
      .autocast(Cast::None, Cast::Half)
      .out_apart(kAllOperands)
      .one_node();
  t.composite(addmv, "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
              addmv_body)
      .doc("beta * self + alpha * (mat @ vec).")
      .inplace()
      .out(OutRule::SameType)
      .autocast(Cast::None, Cast::Half)
      .inplace_function()
      .out_apart(kFirst)
      .one_node();
  t.composite(addbmm,
              "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
              addbmm_body)
      .doc("beta * self + alpha * the sum of the products of two batches of matrices.")
      .inplace()
      .out(OutRule::SameType)
      .autocast(Cast::Half)
      .out_apart(kFirst)
      .one_node();
  t.composite(matmul, "matmul(Tensor self, Tensor other) -> Tensor", matmul_body)
      .out(OutRule::SameType)
      .doc("Matrix product with PyTorch's rules for vectors and broadcast batches.")
      .autocast(Cast::Half);
  t.composite(inner, "inner(Tensor self, Tensor other) -> Tensor", inner_body)
      .doc("Sums of products over the last dimensions of both: [..., n] and [..., n].")
      .out(OutRule::SameType);
  t.composite(tensordot, "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
              tensordot_body)
      .out(OutRule::SameType)
      .doc("Sums of products over dims_self of one and dims_other of the other.")
      .function_only()
      .autocast(Cast::None, Cast::Widest);
  t.composite(addmm_activation,
              "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
              "bool use_gelu=False) -> Tensor",
              addmm_activation_body)
      .doc("relu or gelu of addmm; on CUDA in one pass where no gradient is recorded.")
      .out(OutRule::SameType);
  t.composite(linear, "nn::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", linear_body)
      .layer({.weight = 1, .bias = 2})
      .kept_whole()
      .out(OutRule::SameType)
      .doc("input @ weight.T + bias. Shapes: [..., in], [out, in] and [out] give [..., out].")
      .autocast(Cast::Half);
}

}  // namespace rushlight
