#include "cpu/cat.h"

#include <cstring>

#include "core/parallel.h"

namespace rushlight::cpu {

void cat(std::span<const CatPiece> pieces, int64_t rows, std::byte* out) {
  constexpr int64_t kBytesPerTask = int64_t{1} << 18;
  if (rows == 1) {
    for (const CatPiece& p : pieces) {
      parallel_for(0, p.bytes_per_row, kBytesPerTask,
                   [&](int64_t b, int64_t e) { std::memcpy(out + b, p.data + b, e - b); });
      out += p.bytes_per_row;
    }
    return;
  }
  int64_t row_bytes = 0;
  for (const CatPiece& p : pieces) row_bytes += p.bytes_per_row;
  if (row_bytes == 0) return;
  parallel_for(0, rows, std::max<int64_t>(1, kBytesPerTask / row_bytes), [&](int64_t begin, int64_t end) {
    std::byte* to = out + begin * row_bytes;
    for (int64_t r = begin; r < end; ++r) {
      for (const CatPiece& p : pieces) {
        std::memcpy(to, p.data + r * p.bytes_per_row, p.bytes_per_row);
        to += p.bytes_per_row;
      }
    }
  });
}

}  // namespace rushlight::cpu
