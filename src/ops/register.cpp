#include "ops/register.h"

#include "ops/inference_operators.h"

namespace rushlight {

void register_older_forms(Table& t);
void register_device_attention_operators(Table& t);
void register_private_operators(Table& t);
void register_private_layers(Table& t);
void register_private_pending_operators(Table& t);
void register_quantized_choice_operators(Table& t);
void register_paged_operators(Table& t);
void register_quantized_conv_operators(Table& t);
void register_quantized_decomposed_operators(Table& t);
void register_quantized_dynamic_operators(Table& t);
void register_quantized_embedding_operators(Table& t);
void register_quantized_linear_operators(Table& t);
void register_quantized_product_operators(Table& t);
void register_quantized_file_operators(Table& t);
void register_fake_quantize_operators(Table& t);
void register_quantized_arithmetic_operators(Table& t);
void register_quantized_function_operators(Table& t);
void register_quantized_operators(Table& t);
void register_quantized_rules(Table& t);

void register_sparse_operators(Table& t);
void register_sparse_broadcast_operators(Table& t);
void register_sparse_math_operators(Table& t);
void register_sparse_product_operators(Table& t);
void register_sparse_reduce_operators(Table& t);
void register_sparse_validation(Table& t);
void register_random_gradient_operators(Table& t);
void register_grid_sample_backward_operators(Table& t);

void register_all_operators(Table& t) {
  register_pointwise_families(t);
  register_foreach_operators(t);
  register_older_forms(t);  // they are tried first
  register_other_families(t);
  register_view_backward_operators(t);
  register_optimizer_operators(t);
  register_random_gradient_operators(t);
  register_grid_sample_backward_operators(t);
  register_private_operators(t);
  register_private_layers(t);
  register_private_pending_operators(t);
  register_paged_operators(t);
  register_quantized_product_operators(t);
  register_fake_quantize_operators(t);
  register_quantized_linear_operators(t);
  register_quantized_dynamic_operators(t);
  register_quantized_embedding_operators(t);
  register_quantized_conv_operators(t);
  register_quantized_decomposed_operators(t);
  register_quantized_choice_operators(t);
  register_quantized_file_operators(t);
  register_quantized_operators(t);
  register_quantized_arithmetic_operators(t);
  register_quantized_function_operators(t);
  register_device_attention_operators(t);
  register_sparse_operators(t);
  register_sparse_broadcast_operators(t);
  register_sparse_math_operators(t);
  register_sparse_product_operators(t);
  register_sparse_reduce_operators(t);
  register_sparse_validation(t);
  register_quantized_rules(t);
}

}  // namespace rushlight
