// Operators that only exported programs, packages and PyTorch's own layers name: composites of public ones.
#include <algorithm>

#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/norm.h"
#include "ops/operators.h"
#include "ops/pad.h"
#include "ops/reduction.h"
#include "ops/softmax.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// --- softmax

Tensor safe_softmax_body(const Call&, const Tensor& self, int64_t dim, OptDType dtype) {
  const Tensor result = softmax(self, dim, dtype);
  return rushlight::masked_fill(result, all_dim(isneginf(self), dim, true), Scalar(0));
}

// --- batch norm

ThreeTensors batch_norm_legit_body(const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias,
                                   const Tensor& running_mean, const Tensor& running_var, bool training,
                                   double momentum, double eps) {
  return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
ThreeTensors batch_norm_no_stats_body(const Call&, const Tensor& input, const Tensor& weight,
                                      const Tensor& bias, bool training, double momentum, double eps) {
  return native_batch_norm(input, weight, bias, Tensor(), Tensor(), training, momentum, eps);
}
ThreeTensors batch_norm_no_training_body(const Call&, const Tensor& input, const Tensor& weight,
                                         const Tensor& bias, const Tensor& running_mean,
                                         const Tensor& running_var, double momentum, double eps) {
  return native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps);
}
std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_with_update_body(
    const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  auto [out, mean, rstd] =
      native_batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {out, mean, rstd,
          new_empty(input, IntList{0}, DType::UInt8, std::nullopt, std::nullopt, std::nullopt)};
}

// --- weight norm

std::tuple<Tensor, Tensor> weight_norm_interface_body(const Call&, const Tensor& v, const Tensor& g,
                                                      int64_t dim) {
  const bool narrow = v.dtype() == DType::Float16 || v.dtype() == DType::BFloat16;
  if (!narrow) {
    const Tensor norm = norm_except_dim(v, 2, dim);
    return {v * (g / norm), norm};
  }
  const Tensor wide = to_dtype(v, DType::Float32), norm = norm_except_dim(wide, 2, dim);
  return {to_dtype(wide * (to_dtype(g, DType::Float32) / norm), v.dtype()), norm};
}
Tensor weight_norm_body(const Call& call, const Tensor& v, const Tensor& g, int64_t dim) {
  return std::get<0>(weight_norm_interface_body(call, v, g, dim));
}

// --- reading and writing where a mask says that an index is valid

std::vector<Tensor> within(const Tensor& self, TensorList indices) {
  std::vector<Tensor> at;
  for (size_t dim = 0; dim < indices.size(); ++dim) {
    const int64_t size = self.size(static_cast<int64_t>(dim));
    at.push_back(indices[dim].defined()
                     ? clamp(indices[dim], OptScalar(Scalar(-size)), OptScalar(Scalar(size - 1)))
                     : Tensor());
  }
  return at;
}

Tensor masked_index_body(const Call&, const Tensor& self, const Tensor& mask, TensorList indices,
                         const Scalar& fill) {
  if (self.numel() == 0) {
    Dims sizes = mask.sizes().dims();
    for (const Tensor& i : indices)
      if (i.defined()) sizes = broadcast_shapes(sizes, i.sizes());
    return new_full(self, sizes, fill, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  }
  const std::vector<Tensor> at = within(self, indices);
  return rushlight::masked_fill(index(self, at), logical_not(mask), fill);
}

Tensor masked_index_put_body(const Call&, const Tensor& self, const Tensor& mask, TensorList indices,
                             const Tensor& values) {
  if (self.numel() == 0) return clone(self, std::nullopt);
  const std::vector<Tensor> at = within(self, indices);
  return index_put(self, at, rushlight::masked_fill(values, logical_not(mask), Scalar(0)), true);
}

// --- joining

void check_chunks(TensorList tensors, int64_t dim, int64_t chunks) {
  RL_CHECK(tensors.size() > 0, "_chunk_cat expects a non-empty input tensor list");
  RL_CHECK(chunks >= 1, "_chunk_cat expects positive num_chunks");
  const Tensor& first = tensors[0];
  bool same_rank = true;
  for (const Tensor& t : tensors) {
    RL_CHECK(t.numel() > 0, "_chunk_cat expects non-empty tensor");
    RL_CHECK(t.dtype() == first.dtype(), "_chunk_cat expects all input tensors with the same dtype");
    RL_CHECK(t.device() == first.device(), "_chunk_cat expects all input tensors on the same device");
    same_rank &= t.dim() == first.dim();
  }
  RL_CHECK(same_rank || dim >= 0,
           "_chunk_cat expects non-negative dim when input tensors have different ndims");
  const int64_t at = wrap_dim(dim, same_rank ? first.dim() : std::max<int64_t>(first.dim(), dim + 1));
  for (const Tensor& t : tensors) {
    RL_CHECK(at < t.dim(), "_chunk_cat expects dim < ndim for all input tensors");
    for (int64_t d = 0; d < at; ++d)
      RL_CHECK(t.size(d) == first.size(d),
               "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
  }
}

// Each tensor is cut along `dim` into equal chunks, the last ones filled up with zeros; what lies in one
// chunk stands in a row.
Tensor chunk_cat_body(const Call&, TensorList tensors, int64_t given_dim, int64_t chunks) {
  check_chunks(tensors, given_dim, chunks);
  const int64_t dim = wrap_dim(given_dim, tensors[0].dim());
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    const int64_t missing = (chunks - t.size(dim) % chunks) % chunks;
    Dims pad(static_cast<size_t>(2 * (t.dim() - dim)), 0);
    pad.back() = missing;
    Dims sizes = t.sizes().slice(0, static_cast<size_t>(dim)).dims();
    sizes.push_back(chunks);
    sizes.push_back(-1);
    rows.push_back(reshape(missing ? constant_pad_nd(t, pad, Scalar(0)) : t, sizes));
  }
  return cat(rows, dim + 1);
}

// --- parts of others

Tensor dropout_backward_body(const Call&, const Tensor& grad, const Tensor& mask, double scale) {
  return mul(grad, mask) * Scalar(scale);
}

Tensor efficient_zero_body(const Call&, IntList size, OptDType dtype, std::optional<Layout> layout,
                           OptDevice device, std::optional<bool> pin_memory) {
  return zeros(size, dtype, layout, device, pin_memory);
}

Tensor saturate_body(const Call&, const Tensor& weight) {
  constexpr double kLargestHalf = 65504;
  return clamp(weight, OptScalar(Scalar(-kLargestHalf)), OptScalar(Scalar(kLargestHalf)));
}

Tensor add_relu_body(const Call&, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return relu(add(self, other, alpha));
}

}  // namespace

void register_private_operators(Table& t) {
  t.composite("_saturate_weight_to_fp16(Tensor weight) -> Tensor", saturate_body)
      .function_only()
      .doc("The weight within what float16 holds, -65504 to 65504.");
  t.composite("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", safe_softmax_body)
      .function_only()
      .doc("softmax, and 0 where all along `dim` is -inf.");
  t.composite(
       "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
       "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       batch_norm_legit_body)
      .function_only()
      .out(OutRule::SameType)
      .out_overload("out(out, save_mean, save_invstd)")
      .doc("native_batch_norm with running statistics.");
  t.composite(
       "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float "
       "momentum, float eps) -> (Tensor, Tensor, Tensor)",
       batch_norm_no_stats_body)
      .function_only()
      .out(OutRule::SameType)
      .out_overload("no_stats_out(out, save_mean, save_invstd)")
      .doc("native_batch_norm without running statistics.");
  t.composite(
       "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
       "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       batch_norm_no_training_body)
      .function_only()
      .out(OutRule::SameType)
      .doc("native_batch_norm by the running statistics.");
  t.composite(
       "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
       "Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
       batch_norm_with_update_body)
      .internal()
      .doc("native_batch_norm in training; the last result is what other processors' libraries reserve.");
  t.composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", weight_norm_body)
      .function_only()
      .doc("v by its norm over all dimensions but `dim`, times g.");
  t.composite("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
              weight_norm_interface_body)
      .function_only()
      .doc("_weight_norm, and the norm.");
  t.composite("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
              masked_index_body)
      .function_only()
      .doc("self[indices] where the mask is True, and `fill` elsewhere, where indices may be out of bounds.");
  t.composite(
       "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> "
       "Tensor",
       masked_index_put_body)
      .function_only()
      .doc("`values` added at the indices where the mask is True.");
  t.composite("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", chunk_cat_body)
      .function_only()
      .out()
      .doc("Tensors, each cut along `dim` into chunks that are filled up with zeros, chunk beside chunk.");
  t.composite("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
              dropout_backward_body)
      .internal()
      .doc("The gradient of native_dropout.");
  t.composite(
       "_efficientzerotensor(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       efficient_zero_body)
      .function_only()
      .doc("zeros.");
  t.composite("_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", add_relu_body)
      .inplace()
      .inplace_function()
      .function_only()
      .out()
      .out_overload("out")
      .numbers(Numbers::Later)
      .doc("relu of the sum of self and alpha times other.");
}

}  // namespace rushlight
