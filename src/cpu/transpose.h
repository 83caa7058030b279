// Transposition of blocks of a matrix by registers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rushlight::cpu {

// out[i][j] = in[j][i] for i < rows, j < columns; distances between lines in bytes, elements adjacent.
using TransposeTile = void (*)(char* out, int64_t out_line, const char* in, int64_t in_line, int64_t rows,
                               int64_t columns);
TransposeTile transpose_tile(size_t itemsize);

// Elements begin to end of `count` sources, of which each result element takes one from each; null where
// there is no such loop.
using Weave = void (*)(const char* const* sources, int64_t begin, int64_t end, char* to);
Weave weave_kernel(size_t itemsize, size_t count);

}  // namespace rushlight::cpu
