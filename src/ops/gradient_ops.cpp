// What the autograd engine needs of the public operators (autograd/gradient_ops.h).
#include "autograd/gradient_ops.h"

#include "core/pending.h"
#include "core/sparse.h"
#include "ops/comparison.h"
#include "ops/complex.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

void install_gradient_ops() {
  gradient_ops.add = [](const Tensor& a, const Tensor& b) { return ops::add(a, b); };
  gradient_ops.add_into = [](const Tensor& target, const Tensor& value) { ops::add.inplace(target, value); };
  gradient_ops.sum_dims = [](const Tensor& t, IntList dims) { return ops::sum_dim(t, dims, true); };
  gradient_ops.reshape = [](const Tensor& t, IntList sizes) { return ops::reshape(t, sizes); };
  gradient_ops.cast = [](const Tensor& t, DType dtype) { return to_dtype(t, dtype); };
  gradient_ops.real = [](const Tensor& t) { return ops::real(t); };
  gradient_ops.view_as_real = [](const Tensor& t) { return ops::view_as_real(t); };
  gradient_ops.view_as_complex = [](const Tensor& t) { return ops::view_as_complex(t); };
  gradient_ops.turned = [](const Tensor& t, uint32_t pending) {
    const Tensor conjugated = pending & kPendingConj ? conj_of(t) : t;
    return pending & kPendingNeg ? ops::neg(conjugated) : conjugated;
  };
  gradient_ops.clone = [](const Tensor& t) { return ops::clone(t); };
  gradient_ops.clone_in_order = [](const Tensor& t) {
    return is_sparse(t) ? ops::clone(t) : ops::clone(t, MemoryFormat::Contiguous);
  };
  gradient_ops.detach = [](const Tensor& t) { return ops::detach(t); };
  gradient_ops.as_strided = [](const Tensor& t, IntList sizes, IntList strides, int64_t offset) {
    return ops::as_strided(t, sizes, strides, offset);
  };
  gradient_ops.new_empty_strided = [](const Tensor& like, IntList sizes, IntList strides) {
    return ops::new_empty_strided(like, sizes, strides, std::nullopt, std::nullopt, std::nullopt,
                                  std::nullopt);
  };
  gradient_ops.copy_into = [](const Tensor& target, const Tensor& source) {
    ops::copy_(target, source, false);
  };
  gradient_ops.ones_like = [](const Tensor& t) { return ops::ones_like(t); };
  gradient_ops.zeros = [](IntList sizes, DType dtype, Device device) {
    return ops::zeros(sizes, dtype, std::nullopt, device, std::nullopt);
  };
  gradient_ops.has_nan = [](const Tensor& t) { return read_scalar(ops::any(ops::isnan(t))).to<bool>(); };
}

}  // namespace rushlight
