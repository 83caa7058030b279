// Extremes with their positions.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// For `width` adjacent columns of n < 2^31 rows, `row` elements apart: the first extreme and its row.
using ArgExtremeColumns = void (*)(const void* in, int64_t n, int64_t row, int64_t width, void* values,
                                   int64_t* indices);
ArgExtremeColumns arg_extreme_columns(DType dtype, bool largest);  // null for rare types

// The position of the first extreme of n adjacent elements: of the first NaN, if there is one.
using ArgExtremeLine = int64_t (*)(const void* in, int64_t n);
ArgExtremeLine arg_extreme_line(DType dtype, bool largest);  // null for rare types

}  // namespace rushlight::cpu
