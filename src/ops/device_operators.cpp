// Which operators run on devices besides those whose records say so.
#include <algorithm>
#include <string>
#include <string_view>

#include "ops/register.h"

namespace rushlight {
namespace {

// Kernels that touch data only through ops/device_loops.h, besides those of the pointwise family.
constexpr std::string_view kShared[] = {
    "sigmoid_backward",
    "tanh_backward",
    "log_sigmoid_backward",
    "silu_backward",
    "mish_backward",
    "gelu_backward",
    "softplus_backward",
    "threshold_backward",
    "leaky_relu_backward",
    "hardtanh_backward",
    "hardsigmoid_backward",
    "hardswish_backward",
    "softshrink_backward",
    "hardshrink_backward",
    "elu_backward",
    "positive",
    // reductions and running sums
    "sum",
    "mean",
    "nansum",
    "all",
    "any",
    "count_nonzero",
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "prod",
    "var",
    "std",
    "var_mean",
    "std_mean",
    "aminmax",
    "logsumexp",
    "vector_norm",
    "cumsum",
    "cumprod",
    // at computed positions
    "index",
    "index_put_",
    "index_select",
    "index_add",
    "gather",
    "scatter",
    "scatter_add",
    "embedding",
    "embedding_dense_backward",
    "cat",
    "stack",
    "repeat",
    "roll",
    "one_hot",
    "index_copy",
    "index_fill",
    "nonzero",
    "masked_select",
    "eye",
    "equal",
    "complex",
    "diag_embed",
    // matrix products
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "mv",
    "dot",
    "vdot",
    // layers (dispatch/device_layers.h)
    "_softmax",
    "_log_softmax",
    "_softmax_backward_data",
    "_log_softmax_backward_data",
    "native_layer_norm",
    "_fused_rms_norm",
    "_row_norm_gradients",
    "native_batch_norm",
    "_batch_norm_gradients",
    "native_group_norm",
    "_group_norm_gradients",
    // windows
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "_max_pool_backward",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "adaptive_avg_pool1d",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
    "_avg_pool_backward",
    "_adaptive_avg_pool_backward",
    "im2col",
    "col2im",
    "convolution",
    "_conv_input_gradient",
    "_conv_weight_gradient",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_bicubic2d",
    "upsample_trilinear3d",
    "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa",
    "_upsample_lanczos2d_aa",
    "_upsample",
    "_upsample_backward",
    // Fourier transforms
    "_fft_c2c",
    "_fft_r2c",
    "_fft_c2r",
    // steps of recurrent layers
    "_thnn_fused_lstm_cell",
    "_thnn_fused_lstm_cell_backward",
    "_thnn_fused_gru_cell",
    "_thnn_fused_gru_cell_backward",
    // views and their gradients
    "select_backward",
    "slice_backward",
    "diagonal_backward",
    "_split_backward",
    "_unbind_backward",
    "flip",
    "constant_pad_nd",
    // in order
    "sort",
    "argsort",
    "topk",
    // losses, most of them made of other operators
    "nll_loss",
    "nll_loss2d",
    "nll_loss_backward",
    "mse_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    // random numbers
    "uniform_",
    "normal_",
    "exponential_",
    "random_",
    "bernoulli_.float",
    "rand",
    "randn",
    "randint",
    "rand_like",
    "randn_like",
    "randint_like",
    "_dropout_noise",
    "multinomial",
    // by position
    "arange",
    "range",
    "tril",
    "triu",
};

bool is_shared(const Op& op) {
  if (op.family == Family::Pointwise) return true;
  const std::string full = str(op.name(), ".", op.schema.overload);
  return std::ranges::any_of(kShared,
                             [&](std::string_view name) { return name == op.name() || name == full; });
}

}  // namespace

void register_device_operators(Table& t) {
  for (Op& op : t.ops())
    if (is_shared(op)) op.kernel[static_cast<int>(DeviceType::CUDA)] = op.kernel[0];
}

}  // namespace rushlight
