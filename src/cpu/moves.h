// Elements taken to other places, as they are.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rushlight::cpu {

// out[i] = source[positions[i]], elements of so many bytes.
void take(const void* source, const int64_t* positions, int64_t n, size_t itemsize, void* out);
// Each of `lines` lines of `length` bytes, turned so that it begins at byte `start` of the result.
void roll(const void* source, int64_t lines, int64_t length, int64_t start, void* out);

}  // namespace rushlight::cpu
