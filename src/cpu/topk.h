// Passes over whole lines that make selections and sorts of them shorter.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// Adjacent elements from `begin` on, in blocks: where the first block begins in which an element may come
// before the one at `bound`, n where none does.
using SkipOrdered = int64_t (*)(const void* x, int64_t begin, int64_t n, int64_t bound);
SkipOrdered skip_ordered(DType dtype, bool largest);  // null for rare types

// Adjacent whole numbers of 64 bits as distances from the least, which is written to `least` with its bits;
// false where some take more than 32 bits.
bool count_from_least(const void* x, int64_t n, bool is_signed, uint32_t* to, uint64_t* least);

}  // namespace rushlight::cpu
