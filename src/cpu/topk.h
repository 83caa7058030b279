// What lets topk pass over most of a long line.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// Adjacent elements from `begin` on, in blocks: where the first block begins in which an element may come
// before the one at `bound`, n where none does.
using SkipOrdered = int64_t (*)(const void* x, int64_t begin, int64_t n, int64_t bound);
SkipOrdered skip_ordered(DType dtype, bool largest);  // null for rare types

}  // namespace rushlight::cpu
