// The families of operators, registered in this order.
#pragma once
#include <string>

#include "dispatch/table.h"

namespace rushlight {

// A schema that was put together: records keep pointers to theirs, which live as long as the table.
inline const char* kept_schema(std::string text) { return (new std::string(std::move(text)))->c_str(); }

// All of them, in the order in which overloads of one name are tried.
void register_all_operators(Table& t);
void register_view_operators(Table& t);
void register_view_backward_operators(Table& t);
void register_shape_operators(Table& t);
void register_view_copy_operators(Table& t);
void register_matmul_operators(Table& t);
void register_conv_operators(Table& t);
void register_conv_functions(Table& t);
void register_reduction_operators(Table& t);
void register_index_operators(Table& t);
void register_join_operators(Table& t);
void register_scan_operators(Table& t);
void register_sort_operators(Table& t);
void register_softmax_operators(Table& t);
void register_optimizer_operators(Table& t);
void register_random_operators(Table& t);
void register_random_sample_operators(Table& t);
void register_dropout_operators(Table& t);
void register_pool_operators(Table& t);
void register_norm_operators(Table& t);
void register_loss_operators(Table& t);
void register_embedding_operators(Table& t);
void register_pad_operators(Table& t);
void register_pad_mode_operators(Table& t);
void register_attention_operators(Table& t);
void register_rnn_operators(Table& t);
void register_einsum_operators(Table& t);
void register_linalg_operators(Table& t);

// Gives the autograd engine the operators it uses.
void install_gradient_ops();
void register_arithmetic_operators(Table& t);
void register_unary_operators(Table& t);
void register_comparison_operators(Table& t);
void register_activation_operators(Table& t);
void register_activation_functional_operators(Table& t);
void register_gated_operators(Table& t);
void register_special_operators(Table& t);
void register_bitwise_operators(Table& t);
void register_foreach_operators(Table& t);
void register_copy_operators(Table& t);
void register_factory_operators(Table& t);
void register_complex_operators(Table& t);

}  // namespace rushlight
