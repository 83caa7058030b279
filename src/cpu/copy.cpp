#include "cpu/copy.h"

#include <cstring>

#include "core/parallel.h"
#include "cpu/iterator.h"
#include "cpu/loops.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kByteGrain = kGrainSize * 8;

void copy_bytes(char* to, const char* from, int64_t nbytes) {
  parallel_for(0, nbytes, kByteGrain, [&](int64_t b, int64_t e) { std::memcpy(to + b, from + b, static_cast<size_t>(e - b)); });
}

// Rows of a matrix whose source runs down the columns: squares that fit the cache keep both sides in whole lines.
void copy_transposed(const Iteration& it, CastLoop cast, int64_t first, int64_t second) {
  constexpr int64_t kTile = 32;
  const int64_t to0 = it.strides(0)[0], from0 = it.strides(1)[0], to1 = it.strides(0)[1], from1 = it.strides(1)[1];
  const int64_t rows = it.sizes()[1], columns = it.sizes()[0];
  char* to = it.address(0, first * second);
  const char* from = it.address(1, first * second);
  for (int64_t r = 0; r < rows; r += kTile)
    for (int64_t c = 0; c < columns; c += kTile)
      for (int64_t i = r; i < std::min(r + kTile, rows); ++i)
        cast(to + i * to1 + c * to0, to0, from + i * from1 + c * from0, from0, std::min(kTile, columns - c));
}

}  // namespace

void clear(void* data, size_t nbytes) {
  parallel_for(0, static_cast<int64_t>(nbytes), kByteGrain,
               [&](int64_t b, int64_t e) { std::memset(static_cast<char*>(data) + b, 0, static_cast<size_t>(e - b)); });
}

void copy(const Tensor& out, const Tensor& source) {
  if (out.dtype() == source.dtype() && out->sizes == source->sizes && out->strides == source->strides &&
      is_non_overlapping_and_dense(out)) {
    bool forward = true;
    for (int64_t s : out.strides()) forward &= s >= 0;
    if (forward) return copy_bytes(out.data<char>(), source.data<char>(), static_cast<int64_t>(out.nbytes()));
  }
  Iteration it(out.sizes());
  it.add(out);
  it.add(source);
  it.finish();
  if (it.numel() == 0) return;
  const CastLoop cast = cast_loop(out.dtype(), source.dtype());
  const size_t dims = it.sizes().size();
  if (dims <= 1) {
    const int64_t to = dims ? it.strides(0)[0] : 0, from = dims ? it.strides(1)[0] : 0;
    parallel_for(0, it.numel(), kGrainSize,
                 [&](int64_t b, int64_t e) { cast(it.data(0) + b * to, to, it.data(1) + b * from, from, e - b); });
    return;
  }
  const int64_t row = it.row(), rows = it.sizes()[1], slab = row * rows;
  const auto item = static_cast<int64_t>(source.itemsize());
  if (std::abs(it.strides(1)[1]) == item && std::abs(it.strides(1)[0]) > item && row >= 32 && rows >= 32) {
    parallel_for(0, it.numel() / slab, std::max<int64_t>(1, kGrainSize / slab), [&](int64_t b, int64_t e) {
      for (int64_t s = b; s < e; ++s) copy_transposed(it, cast, s, slab);
    });
    return;
  }
  const int64_t to = it.strides(0)[0], from = it.strides(1)[0];
  parallel_for(0, it.numel() / row, std::max<int64_t>(1, kGrainSize / row), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) cast(it.address(0, r * row), to, it.address(1, r * row), from, row);
  });
}

}  // namespace rushlight::cpu
