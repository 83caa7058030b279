#include "ops/embedding.h"

#include <cstring>

#include "cpu/embedding.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/operators.h"
#include "ops/register.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor positions(const char* who, const Tensor& indices) {
  RL_CHECK(indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32,
           "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
           "but got ",
           legacy_name(indices.dtype()), " instead (while checking arguments for ", who, ")");
  return as_contiguous(to_dtype(indices, DType::Int64));
}

Tensor embedding_kernel(const Call&, const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  RL_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  const Tensor where = positions("embedding", indices);
  Dims sizes = indices->sizes;
  sizes.push_back(weight->sizes[1]);
  Tensor result = empty_tensor(sizes, weight.dtype(), weight.device());
  if (result.device().is_cuda()) return reshape(index_select(weight, 0, reshape(where, IntList{-1})), sizes);
  if (!result.is_cpu()) return result;
  const Tensor table = as_contiguous(weight);
  cpu::take_rows(table.data_ptr(), weight->sizes[0],
                 weight->sizes[1] * static_cast<int64_t>(weight.itemsize()), where.data<int64_t>(),
                 where.numel(), result.data_ptr());
  return result;
}

Tensor embedding_dense_backward_kernel(const Call&, const Tensor& grad, const Tensor& indices, int64_t rows,
                                       int64_t padding_idx, bool by_frequency) {
  RL_CHECK(grad.dim() >= 1 && rows >= 0,
           "embedding_dense_backward: expected a gradient of [..., width], got ", describe(grad));
  const int64_t width = grad->sizes[grad.dim() - 1];
  RL_CHECK(grad.numel() == indices.numel() * width, "embedding_dense_backward: gradient of shape ",
           grad.sizes(), " does not match indices of shape ", indices.sizes());
  Tensor result = empty_tensor(IntList{rows, width}, grad.dtype(), grad.device());
  if (result.device().is_cuda()) {
    const Tensor where = reshape(positions("embedding_backward", indices), IntList{-1});
    Tensor g = reshape(grad, IntList{where.numel(), width});
    if (by_frequency) {
      const Tensor one = ones(where.sizes(), g.dtype(), std::nullopt, g.device());
      const Tensor times =
          index_add(zeros(IntList{rows}, g.dtype(), std::nullopt, g.device()), 0, where, one);
      g = g / unsqueeze(index_select(times, 0, where), 1);
    }
    if (padding_idx >= 0)
      g = rushlight::masked_fill(g, unsqueeze(rushlight::eq(where, Scalar(padding_idx)), 1), Scalar(0));
    return index_add.inplace(zero_(result), 0, where, g);
  }
  if (!result.is_cpu()) return result;
  if (result.nbytes()) std::memset(result.data_ptr(), 0, result.nbytes());
  const Tensor g = as_contiguous(grad), where = positions("embedding_backward", indices);
  cpu::add_rows(grad.dtype(), g.data_ptr(), width, where.data<int64_t>(), where.numel(), rows, padding_idx,
                by_frequency, result.data_ptr());
  return result;
}

// One listed row of the gradient for each index, in their order; none for padding.
Tensor sparse_gradient(const Tensor& g, const Tensor& indices, int64_t rows, int64_t padding_idx,
                       bool by_frequency) {
  RL_CHECK(!by_frequency, "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
  Tensor flat = reshape(to_dtype(indices, DType::Int64), IntList{-1});
  Tensor values = reshape(g, IntList{flat.numel(), g->sizes.back()});
  if (padding_idx >= 0) {
    const Tensor kept = reshape(nonzero(rushlight::ne(flat, Scalar(padding_idx))), IntList{-1});
    flat = index_select(flat, 0, kept), values = index_select(values, 0, kept);
  }
  return sparse_coo(unsqueeze(flat, 0), values, IntList{rows, g->sizes.back()}, std::nullopt);
}

// The adjoint of the sums above: rows of g, none for padding, divided by how often their index occurs.
Tensor rows_of(const Tensor& g, const Tensor& indices, int64_t padding_idx, bool by_frequency) {
  Tensor rows = embedding(g, indices, -1, false, false);
  if (by_frequency) {
    const Tensor flat = flatten(indices, 0, -1);
    const Tensor zeros = new_zeros(g, IntList{g->sizes[0]}), ones = new_ones(g, IntList{flat.numel()});
    const Tensor counts = index_add(zeros, 0, flat, ones, 1);
    rows = rows / unsqueeze(reshape(index_select(counts, 0, flat), indices.sizes()), -1);
  }
  return padding_idx >= 0 ? rushlight::masked_fill(
                                rows, unsqueeze(rushlight::eq(indices, Scalar(padding_idx)), -1), Scalar(0))
                          : rows;
}

Tensor embedding_renorm_kernel(const Call&, const Tensor& self, const Tensor& indices, double max_norm,
                               double norm_type) {
  RL_CHECK(self.dim() == 2, "embedding_renorm_: 'self' must be 2-D, got ", describe(self));
  const Tensor where = positions("embedding_renorm_", indices), table = as_contiguous(self);
  if (!self.is_cpu()) return self;
  cpu::bound_rows(self.dtype(), table.data_ptr(), self->sizes[0], self->sizes[1], where.data<int64_t>(),
                  where.numel(), max_norm, norm_type);
  if (!table.is_same(self)) copy_result(self, table, false);
  return self;
}

Tensor nn_embedding_body(const Call&, const Tensor& input, const Tensor& weight, OptInt padding_idx,
                         std::optional<double> max_norm, double norm_type, bool by_frequency, bool sparse) {
  RL_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  int64_t padding = -1;
  if (padding_idx) {
    padding = *padding_idx < 0 ? *padding_idx + weight->sizes[0] : *padding_idx;
    RL_CHECK(padding >= 0 && padding < weight->sizes[0], "Padding_idx must be within num_embeddings");
  }
  if (max_norm) {
    GradMode off(false);
    embedding_renorm_(detach(weight), input, *max_norm, norm_type);  // a change of values, not of tangents
  }
  return embedding(weight, input, padding, by_frequency, sparse);
}

}  // namespace

void register_embedding_operators(Table& t) {
  t.op(embedding,
       "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
       "sparse=False) -> Tensor",
       embedding_kernel)
      .function_only()
      .doc("The rows of weight that indices name.")
      .family(Family::Embedding)
      .on_devices()
      .linear()
      .derivative([](Grad g, Shape<0> w, In<1> indices, Attr<2, int64_t> padding, Attr<3, bool> by_frequency,
                     Attr<4, bool> sparse) {
        if (sparse) return sparse_gradient(g, indices, w.size(0), padding, by_frequency);
        return embedding_dense_backward(g, indices, w.size(0), padding, by_frequency);
      });
  t.op(embedding_dense_backward,
       "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool "
       "scale_grad_by_freq) -> Tensor",
       embedding_dense_backward_kernel)
      .doc("Gradient of embedding: adds rows of the gradient at their indices; padding_idx gets none.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .derivative([](Grad g, In<1> indices, Attr<3, int64_t> padding, Attr<4, bool> by_frequency) {
        return Grads{rows_of(g, indices, padding, by_frequency), Tensor()};
      });
  t.op(embedding_renorm_,
       "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
       embedding_renorm_kernel)
      .doc("Scales the rows that indices name, so that their norms are at most max_norm.")
      .function_only()
      .family(Family::Embedding)
      .not_differentiable("bounds the table itself")
      .op()
      .is_function = true;  // as in PyTorch, although the name ends in an underscore
  t.composite(nn_embedding,
              "nn::embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float "
              "norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
              nn_embedding_body)
      .doc(
          "The rows of weight that input names; padding_idx gets no gradient, rows longer than max_norm are "
          "shortened first.");
}

}  // namespace rushlight
