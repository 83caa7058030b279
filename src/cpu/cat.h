// Concatenation of contiguous pieces.
#pragma once
#include <span>

#include "core/tensor.h"

namespace rushlight::cpu {

// `rows` times: piece 0's bytes, piece 1's bytes, ... one after the other.
struct CatPiece {
  const std::byte* data;
  int64_t bytes_per_row;
};
void cat(std::span<const CatPiece> pieces, int64_t rows, std::byte* out);

}  // namespace rushlight::cpu
