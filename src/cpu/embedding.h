// Rows of a table: reading, adding up gradients, bounding norms.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// out[i] = table[indices[i]]; rows of `row_bytes`. IndexError outside [0, rows).
void take_rows(const void* table, int64_t rows, int64_t row_bytes, const int64_t* indices, int64_t count,
               void* out);

// out[rows, width], zeros before: out[indices[i]] += grad[i], except where the index is `skipped`; divided by
// how often the index occurs when by_frequency. Every row is added up by one thread, in order.
void add_rows(DType dtype, const void* grad, int64_t width, const int64_t* indices, int64_t count,
              int64_t rows, int64_t skipped, bool by_frequency, void* out);

// Scales the rows named by `indices` whose p-norm exceeds `max_norm` down to it.
void bound_rows(DType dtype, void* table, int64_t rows, int64_t width, const int64_t* indices, int64_t count,
                double max_norm, double p);

}  // namespace rushlight::cpu
