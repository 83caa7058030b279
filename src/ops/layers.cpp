// Layers made of products and convolutions of others.
#include "dispatch/table.h"
#include "ops/conv.h"
#include "ops/copy.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

void check_bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  const DType type = input1.dtype();
  RL_CHECK(input2.dtype() == type && weight.dtype() == type && (!bias.defined() || bias.dtype() == type),
           "All tensors must have the same dtype, got input1: ", dtype_name(type),
           ", input2: ", dtype_name(input2.dtype()), ", weight: ", dtype_name(weight.dtype()),
           bias.defined() ? str(", bias: ", dtype_name(bias.dtype())) : "");
  RL_CHECK(weight.dim() == 3, "bilinear(): weight must have 3 dimensions, but has shape ", weight.sizes());
  const auto batch = [](const Tensor& t) { return t.sizes().slice(0, static_cast<size_t>(t.dim() - 1)); };
  RL_CHECK(input1.dim() > 0 && input1.dim() == input2.dim() && batch(input1) == batch(input2),
           "bilinear(): input batch dimensions do not match: got ", input1.sizes(), " and ", input2.sizes());
  for (const auto& [x, i] : {std::pair(&input1, 1), std::pair(&input2, 2)})
    RL_CHECK(x->size(-1) == weight.size(i), "bilinear(): input", i, " size does not match weight size: got ",
             x->size(-1), " but expected ", weight.size(i));
  RL_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)),
           "bilinear(): bias size does not match weight size: got ",
           bias.defined() ? to_string(bias.sizes()) : "", " but expected [", weight.size(0), "]");
}

Tensor bilinear_body(const Call&, const Tensor& input1, const Tensor& input2, const Tensor& weight,
                     const Tensor& bias) {
  check_bilinear(input1, input2, weight, bias);
  const int64_t outputs = weight.size(0), n1 = weight.size(1), n2 = weight.size(2);
  const Tensor mapped = matmul(input1, reshape(transpose(weight, 0, 1), IntList{n1, outputs * n2}));
  Dims sizes = input1.sizes().dims();
  sizes.back() = outputs;
  sizes.push_back(n2);
  const Tensor out =
      sum_dim(reshape(mapped, sizes) * unsqueeze(input2, -2), IntList{-1}, false, weight.dtype());
  return bias.defined() ? out + bias : out;
}

Tensor conv_tbc_body(const Call&, const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  RL_CHECK(self.dim() == 3, "Input must have 3 dims: time, batch, in_channel, but conv_tbc got ",
           self.sizes());
  RL_CHECK(weight.dim() == 3,
           "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels, but conv_tbc got ",
           weight.sizes());
  RL_CHECK(bias.dim() == 1, "Bias must be 1-D, but conv_tbc got ", bias.sizes());
  RL_CHECK(self.size(2) == weight.size(1),
           "Input dim 2 (input channels) is not == dim 1 in the weight tensor: conv_tbc got ", self.sizes(),
           " and ", weight.sizes());
  RL_CHECK(weight.size(2) == bias.size(0),
           "Bias size must equal dim 2 in the weight tensor (output channels): conv_tbc got ", bias.sizes(),
           " and ", weight.sizes());
  const Tensor out = convolution(permute(self, IntList{1, 2, 0}), permute(weight, IntList{2, 1, 0}), bias,
                                 IntList{1}, IntList{pad}, IntList{1}, false, IntList{0}, 1);
  return as_contiguous(permute(out, IntList{2, 0, 1}));
}

}  // namespace

void register_layer_operators(Table& t) {
  t.composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
              bilinear_body)
      .function_only()
      .doc("input1 @ weight[k] @ input2 + bias[k] for each output k. All have one dtype.")
      .autocast(Cast::None, Cast::Widest);
  t.composite("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", conv_tbc_body)
      .function_only()
      .doc("Convolution over the first dimension of [time, batch, channels]; weight is [width, in, out].")
      .autocast(Cast::Half);
}

}  // namespace rushlight
