// What products by matrices in panels tell those who make graphs of them.
#pragma once
#include <cstdint>

namespace rushlight {

// The most rows of a product by a matrix [k, n] that gains by panels; 0: none does.
int64_t most_packed_rows(int64_t k, int64_t n);

}  // namespace rushlight
