// The small runtime's table: operators that a model for inference may hold. Derivatives are compiled away
// (RUSHLIGHT_INFERENCE), and neither autograd nor any other interceptor is installed.
#include "ops/inference_operators.h"

namespace rushlight {

// What files hold of quantised models once they are written.
void register_quantized_conv_operators(Table& t);
void register_quantized_decomposed_operators(Table& t);
void register_quantized_file_operators(Table& t);
void register_quantized_linear_operators(Table& t);

Table& mutable_operator_table() {
  static Table* table = [] {
    auto* t = new Table;  // lives as long as the process: handles point into it
    register_pointwise_families(*t);
    register_other_families(*t);
    register_quantized_linear_operators(*t);
    register_quantized_conv_operators(*t);
    register_quantized_decomposed_operators(*t);
    register_quantized_file_operators(*t);
    for (Op& op : t->ops()) resolve_traits(op);
    return t;
  }();
  return *table;
}

const Table& operator_table() { return mutable_operator_table(); }

}  // namespace rushlight
