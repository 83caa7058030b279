#include "cpu/cat.h"

#include <vector>

#include "core/parallel.h"
#include "cpu/copy_run.h"
#include "cpu/transpose.h"

namespace rushlight::cpu {

namespace {

template <class Word>
void interleave(std::span<const CatPiece> pieces, int64_t rows, std::byte* out) {
  constexpr int64_t kBlock = 512;
  const auto count = static_cast<int64_t>(pieces.size()), item = static_cast<int64_t>(sizeof(Word));
  const Weave weave = weave_kernel(sizeof(Word), pieces.size());
  std::vector<const char*> sources;
  for (const CatPiece& p : pieces) sources.push_back(reinterpret_cast<const char*>(p.data));
  parallel_for(0, rows, std::max<int64_t>(1, kGrainSize / count), [&](int64_t begin, int64_t end) {
    if (weave) return weave(sources.data(), begin, end, reinterpret_cast<char*>(out));
    if (count == 2)
      return transpose_tile(sizeof(Word))(reinterpret_cast<char*>(out) + 2 * begin * item, 2 * item,
                                          reinterpret_cast<const char*>(pieces[0].data) + begin * item,
                                          pieces[1].data - pieces[0].data, end - begin, 2);
    for (int64_t first = begin; first < end; first += kBlock)
      for (int64_t k = 0; k < count; ++k) {
        const auto* from = reinterpret_cast<const Word*>(pieces[k].data);
        auto* to = reinterpret_cast<Word*>(out) + k;
        for (int64_t i = first; i < std::min(first + kBlock, end); ++i) to[i * count] = from[i];
      }
  });
}

// Pieces of one small element a row: false for others.
bool cat_elements(std::span<const CatPiece> pieces, int64_t rows, std::byte* out) {
  const int64_t width = pieces.empty() ? 0 : pieces[0].bytes_per_row;
  for (const CatPiece& p : pieces)
    if (p.bytes_per_row != width) return false;
  switch (width) {
    case 1:
      interleave<uint8_t>(pieces, rows, out);
      return true;
    case 2:
      interleave<uint16_t>(pieces, rows, out);
      return true;
    case 4:
      interleave<uint32_t>(pieces, rows, out);
      return true;
    case 8:
      interleave<uint64_t>(pieces, rows, out);
      return true;
    default:
      return false;
  }
}

}  // namespace

void cat(std::span<const CatPiece> pieces, int64_t rows, std::byte* out) {
  constexpr int64_t kBytesPerTask = int64_t{1} << 18;
  if (rows == 1) {
    for (const CatPiece& p : pieces) {
      parallel_for(0, p.bytes_per_row, kBytesPerTask,
                   [&](int64_t b, int64_t e) { copy_run(out + b, p.data + b, static_cast<size_t>(e - b)); });
      out += p.bytes_per_row;
    }
    return;
  }
  if (pieces.size() > 1 && cat_elements(pieces, rows, out)) return;
  int64_t row_bytes = 0;
  for (const CatPiece& p : pieces) row_bytes += p.bytes_per_row;
  if (row_bytes == 0) return;
  parallel_for(0, rows, std::max<int64_t>(1, kBytesPerTask / row_bytes), [&](int64_t begin, int64_t end) {
    std::byte* to = out + begin * row_bytes;
    for (int64_t r = begin; r < end; ++r) {
      for (const CatPiece& p : pieces) {
        copy_run(to, p.data + r * p.bytes_per_row, static_cast<size_t>(p.bytes_per_row));
        to += p.bytes_per_row;
      }
    }
  });
}

}  // namespace rushlight::cpu
