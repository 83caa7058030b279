#include "ops/inference_operators.h"

#include "cpu/loops.h"
#include "ops/register.h"

namespace rushlight {

void register_margin_loss_operators(Table& t);
void register_random_pool_operators(Table& t);
void register_rearranging_operators(Table& t);
void register_fft_operators(Table& t);
void register_stft_operators(Table& t);
void register_special_function_operators(Table& t);
void register_interpolate_operators(Table& t);
void register_grid_sample_operators(Table& t);
void register_embedding_bag_operators(Table& t);
void register_ctc_operators(Table& t);
void register_fold_operators(Table& t);
void register_batch_norm_constants(Table& t);
void register_fused_operators(Table& t);
void register_packed_product_operators(Table& t);
void register_layer_operators(Table& t);
void register_power_pool_operators(Table& t);
void register_window_operators(Table& t);
void register_calculus_operators(Table& t);
void register_hash_operators(Table& t);
void register_graph_function_operators(Table& t);
void register_box_operators(Table& t);
void register_matmul_dtype_operators(Table& t);

void register_pointwise_families(Table& t) {
  cpu::choose_loops();
  register_copy_operators(t);
  register_factory_operators(t);
  register_arithmetic_operators(t);
  register_unary_operators(t);
  register_bitwise_operators(t);
  register_special_operators(t);
  register_special_function_operators(t);
  register_comparison_operators(t);
  register_activation_operators(t);
  register_gated_operators(t);
  register_activation_functional_operators(t);
}

void register_other_families(Table& t) {
  register_complex_operators(t);
  register_view_operators(t);
  register_shape_operators(t);
  register_rearranging_operators(t);
  register_view_copy_operators(t);
  register_matmul_operators(t);
  register_matmul_dtype_operators(t);
  register_conv_operators(t);
  register_conv_functions(t);
  register_reduction_operators(t);
  register_index_operators(t);
  register_join_operators(t);
  register_scan_operators(t);
  register_sort_operators(t);
  register_softmax_operators(t);
  register_random_operators(t);
  register_random_sample_operators(t);
  register_dropout_operators(t);
  register_pool_operators(t);
  register_random_pool_operators(t);
  register_norm_operators(t);
  register_loss_operators(t);
  register_margin_loss_operators(t);
  register_embedding_operators(t);
  register_pad_operators(t);
  register_pad_mode_operators(t);
  register_attention_operators(t);
  register_interpolate_operators(t);
  register_grid_sample_operators(t);
  register_embedding_bag_operators(t);
  register_ctc_operators(t);
  register_fold_operators(t);
  register_rnn_operators(t);
  register_einsum_operators(t);
  register_linalg_operators(t);
  register_fft_operators(t);
  register_stft_operators(t);
  register_batch_norm_constants(t);
  register_fused_operators(t);
  register_packed_product_operators(t);
  register_layer_operators(t);
  register_power_pool_operators(t);
  register_window_operators(t);
  register_calculus_operators(t);
  register_hash_operators(t);
  register_graph_function_operators(t);
  register_box_operators(t);
}

}  // namespace rushlight
