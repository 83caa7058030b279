#include "cpu/embedding_bag.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(
    void embedding_bag(const BagPlan& plan, const void* table, void* out, int64_t* counts, int64_t* largest);
    void embedding_bag_backward(const BagPlan& plan, const void* grad, const int64_t* counts,
                                const int64_t* largest, const double* inverse_frequency, void* grad_table);
    void embedding_bag_factors(const BagPlan& plan, const void* grad, const void* table, void* grad_factors);)

void embedding_bag(const BagPlan& plan, const void* table, void* out, int64_t* counts, int64_t* largest) {
  RL_ISA_VARIANT(embedding_bag(plan, table, out, counts, largest));
}
void embedding_bag_backward(const BagPlan& plan, const void* grad, const int64_t* counts,
                            const int64_t* largest, const double* inverse_frequency, void* grad_table) {
  RL_ISA_VARIANT(embedding_bag_backward(plan, grad, counts, largest, inverse_frequency, grad_table));
}
void embedding_bag_factors(const BagPlan& plan, const void* grad, const void* table, void* grad_factors) {
  RL_ISA_VARIANT(embedding_bag_factors(plan, grad, table, grad_factors));
}

}  // namespace rushlight::cpu
