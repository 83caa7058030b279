// prod and its derivative.
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/reduction_common.h"
#include "ops/scan.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using cpu::ReduceOp;

Tensor prod_kernel(const Call&, const Tensor& self, OptDType dtype) {
  return accumulate(ReduceOp::Prod, self, std::nullopt, false, dtype, "prod_cpu");
}
Tensor prod_dim_kernel(const Call&, const Tensor& self, int64_t dim, bool keepdim, OptDType dtype) {
  return accumulate(ReduceOp::Prod, self, dim_mask(IntList(&dim, 1), self.dim()), keepdim, dtype, "prod_cpu");
}

// The product of all other elements, by products from both ends, so that zeros need no case of their own.
Tensor products_of_others(const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  const Tensor one = ones_like(narrow(x, dim, 0, 1));
  const Tensor before = cat({one, cumprod(narrow(x, dim, 0, n - 1), dim)}, dim);
  const Tensor after = flip(cat({one, cumprod(flip(narrow(x, dim, 1, n - 1), {dim}), dim)}, dim), {dim});
  return before * after;
}

Tensor prod_backward(const Tensor& grad, const Tensor& x, const Tensor& result, int64_t dim) {
  if (x.numel() == 0) return zeros_like(x);
  if (x.size(dim) == 1) return expand_as(grad, x);
  if (!may_have_zeros(x)) return grad * conj_of(result / x);
  return grad * conj_of(products_of_others(x, dim));
}

}  // namespace

void register_product_operators(Table& t) {
  t.op(prod, "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", prod_kernel)
      .doc("Product of all elements. Integers are multiplied in int64.")
      .family(Family::Reduction)
      .out()
      .on_devices()
      .autocast(Cast::Float)
      .derivative([](Grad g, In<0> x, Out<0> y) {
        return reshape(prod_backward(reshape(g, {1}), reshape(x, {-1}), reshape(y, {1}), 0), x.sizes());
      });
  t.op(prod_dim,
       "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       prod_dim_kernel)
      .doc("Product over one dimension.")
      .family(Family::Reduction)
      .out()
      .out_overload("int_out")
      .on_devices()
      .batching(Batching::Dims)
      .autocast(Cast::Float)
      .node("ProdBackward1")
      .derivative([](Grad g, In<0> x, Attr<1, int64_t> dim, Attr<2, bool> keepdim, Out<0> y) {
        if (x.dim() == 0)
          return reshape(prod_backward(reshape(g, {1}), reshape(x, {1}), reshape(y, {1}), 0), x.sizes());
        const uint64_t dims = dim_mask(IntList(&*dim, 1), x.dim());
        return prod_backward(restore_dims(g, dims, x.dim(), keepdim), x,
                             restore_dims(y, dims, x.dim(), keepdim), wrap_dim(dim, x.dim()));
      });
}

}  // namespace rushlight
