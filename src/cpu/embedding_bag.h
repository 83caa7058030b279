// Sums, means and maxima over bags of rows of a table.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

enum class BagMode : uint8_t { Sum, Mean, Max };

// Bag b holds indices[starts[b]] up to, but not including, indices[starts[b + 1]]; `skipped` counts as
// absent.
struct BagPlan {
  DType dtype = DType::Float32;
  BagMode mode = BagMode::Mean;
  int64_t bags = 0, rows = 0, width = 0, skipped = -1;
  const int64_t *indices = nullptr, *starts = nullptr;
  const void* factors = nullptr;  // one per index, or null
};

// counts[bags]: indices that are not skipped. largest[bags, width] (for Max): whose value it is; -1:
// nobody's.
void embedding_bag(const BagPlan& plan, const void* table, void* out, int64_t* counts, int64_t* largest);
// grad_table starts as zeros. inverse_frequency: per row of the table, or null.
void embedding_bag_backward(const BagPlan& plan, const void* grad, const int64_t* counts,
                            const int64_t* largest, const double* inverse_frequency, void* grad_table);
// The gradient of each index' factor.
void embedding_bag_factors(const BagPlan& plan, const void* grad, const void* table, void* grad_factors);

}  // namespace rushlight::cpu
