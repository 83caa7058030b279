// LoopRow: one formula's inner loops, by compute type.
#pragma once
#include <array>

#include "core/dtype.h"
#include "formulas/table.h"

namespace rushlight::cpu {

using rushlight::Formula;

// data[0] is the result, data[1...] the inputs, all contiguous in the compute type. Bit i of `scalars`: input
// i is one value for all elements (two-input formulas only, and not both). `parameters` are of the compute
// type.
using Loop = void (*)(char* const* data, unsigned scalars, int64_t n, const void* parameters);

struct LoopRow {
  std::array<Loop, kDTypeCount> loop{};  // null: not computed in this type
  std::array<DType, kDTypeCount>
      compute{};  // in which type elements of a dtype are computed; valid where supported
  std::array<bool, kDTypeCount> supported{};
};

// The loops for this processor; filled by choose_loops(), which registration calls.
extern LoopRow rows[kFormulaCount];
void choose_loops();
inline const LoopRow& row(Formula f) { return rows[static_cast<int>(f)]; }

// Converts n elements; strides in bytes. Types may be equal.
using CastLoop = void (*)(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n);
extern CastLoop cast_loops[kDTypeCount][kDTypeCount];  // [to][from]
inline CastLoop cast_loop(DType to, DType from) {
  return cast_loops[static_cast<int>(to)][static_cast<int>(from)];
}

// out = condition ? a : b on elements of 1, 2, 4, 8 or 16 bytes; indexed by log2 of the size. Strides in
// elements, 0 or 1.
using WhereLoop = void (*)(char* out, const bool* condition, const char* a, int64_t a_stride, const char* b,
                           int64_t b_stride, int64_t n);
extern WhereLoop where_loops[5];

}  // namespace rushlight::cpu
