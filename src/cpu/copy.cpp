#include "cpu/copy.h"

#include <algorithm>
#include <cstring>

#include "core/deferred_layout.h"
#include "core/parallel.h"
#include "cpu/copy_run.h"
#include "cpu/iterator.h"
#include "cpu/loops.h"
#include "cpu/transpose.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kByteGrain = kGrainSize * 8;

void copy_bytes(char* to, const char* from, int64_t nbytes) {
  parallel_for(0, nbytes, kByteGrain,
               [&](int64_t b, int64_t e) { copy_run(to + b, from + b, static_cast<size_t>(e - b)); });
}

// A matrix whose source runs down the columns: squares that fit the cache keep both sides in whole lines of
// it. The two innermost dimensions of every slab, in strips of as many rows, or of more where these are
// short. Rows shorter than a line of the cache share it with those of the next slab, which then comes before
// the next strip.
void copy_transposed(const Iteration& it, size_t itemsize) {
  const auto item = static_cast<int64_t>(itemsize);
  const int64_t side = std::max<int64_t>(32, 64 / item), columns = it.sizes()[0], rows = it.sizes()[1];
  const bool by_strip = columns * item < 64 && it.sizes().size() > 2 && it.strides(0)[2] == columns * item;
  const int64_t strip = by_strip ? side : std::max(side, side * side / columns),
                strips = (rows + strip - 1) / strip;
  const int64_t to_row = it.strides(0)[1], from_column = it.strides(1)[0];
  const TransposeTile tile = transpose_tile(itemsize);
  const int64_t slabs = it.numel() / (rows * columns), together = by_strip ? it.sizes()[2] : 1;
  parallel_for(0, slabs * strips, std::max<int64_t>(1, kGrainSize / (strip * columns)),
               [&](int64_t b, int64_t e) {
                 for (int64_t s = b; s < e; ++s) {
                   const int64_t first = s / together % strips * strip,
                                 slab = s / (together * strips) * together + s % together;
                   const int64_t origin = slab * rows * columns;
                   char* to = it.address(0, origin) + first * to_row;
                   const char* from = it.address(1, origin) + first * item;
                   for (int64_t c = 0; c < columns; c += side)
                     tile(to + c * item, to_row, from + c * from_column, from_column,
                          std::min(strip, rows - first), std::min(side, columns - c));
                 }
               });
}

// Whether the target runs along the innermost dimension and the source along another one, which then comes
// next to it.
bool turn_into_transposition(Iteration& it, int64_t item) {
  if (it.strides(0)[0] != item || it.strides(1)[0] == item || it.strides(1)[0] == 0 || it.row() < 2)
    return false;
  const IntList strides = it.strides(1);
  const auto d = static_cast<size_t>(std::find(strides.begin(), strides.end(), item) - strides.begin());
  if (d == strides.size() || it.sizes()[d] < 8 || (d > 1 && it.row() < 8)) return false;
  it.bring_inwards(d);
  return true;
}

// f(target, origin, rows) for runs of rows [first, last) along the second dimension: one address a run.
template <class F>
void for_each_run(const Iteration& it, int64_t first, int64_t last, F&& f) {
  const int64_t row = it.row(), length = it.sizes()[1];
  while (first < last) {
    const int64_t rows = std::min(length - first % length, last - first);
    f(it.address(0, first * row), it.address(1, first * row), rows);
    first += rows;
  }
}

// The type as wide as a short row that lies without gaps, and aligned, on both sides; otherwise `type`.
DType row_as_element(const Iteration& it, DType type, DType from) {
  const auto item = static_cast<int64_t>(element_size(type));
  if (type != from || it.sizes().size() < 2 || it.strides(0)[0] != item || it.strides(1)[0] != item)
    return type;
  const int64_t row = it.row() * item;
  uint64_t places = 0;
  for (int k = 0; k < 2; ++k) {
    places |= reinterpret_cast<uintptr_t>(it.data(k));
    for (size_t d = 1; d < it.sizes().size(); ++d) places |= static_cast<uint64_t>(it.strides(k)[d]);
  }
  if (places % static_cast<uint64_t>(std::min<int64_t>(row, 8)) != 0) return type;
  switch (row) {
    case 2:
      return DType::UInt16;
    case 4:
      return DType::UInt32;
    case 8:
      return DType::UInt64;
    case 16:
      return DType::Complex128;
    default:
      return type;
  }
}

}  // namespace

void clear(void* data, size_t nbytes) {
  parallel_for(0, static_cast<int64_t>(nbytes), kByteGrain, [&](int64_t b, int64_t e) {
    std::memset(static_cast<char*>(data) + b, 0, static_cast<size_t>(e - b));
  });
}

namespace {
// Note [Deferred layout conversion]
[[maybe_unused]] const bool orders_images =
    (copy_to_plain_layout = [](const Tensor& image, const Tensor& plain) { copy(plain, image); }, true);
}  // namespace

void copy(const Tensor& out, const Tensor& source) {
  if (!source.has_data() && has_deferred_layout(source)) [[unlikely]]
    return copy(out, image_of(source));
  if (out.dtype() == source.dtype() && out->sizes == source->sizes && out->strides == source->strides &&
      is_dense_from_data(out))
    return copy_bytes(out.data<char>(), source.data<char>(), static_cast<int64_t>(out.nbytes()));
  Iteration it(out.sizes());
  it.add(out);
  it.add(source);
  it.finish();
  if (it.numel() == 0) return;
  CastLoop cast = cast_loop(out.dtype(), source.dtype());
  auto item = static_cast<int64_t>(source.itemsize());
  if (const DType wide = row_as_element(it, out.dtype(), source.dtype()); wide != out.dtype()) {
    it.fuse_row();
    cast = cast_loop(wide, wide);
    item = static_cast<int64_t>(element_size(wide));
  }
  const size_t dims = it.sizes().size();
  if (dims <= 1) {
    const int64_t to = dims ? it.strides(0)[0] : 0, from = dims ? it.strides(1)[0] : 0;
    parallel_for(0, it.numel(), kGrainSize, [&](int64_t b, int64_t e) {
      cast(it.data(0) + b * to, to, it.data(1) + b * from, from, e - b);
    });
    return;
  }
  it.turn_forwards(1);
  if (out.dtype() == source.dtype() && turn_into_transposition(it, item))
    return copy_transposed(it, static_cast<size_t>(item));
  it.lengthen_rows();
  const int64_t row = it.row();
  const int64_t to = it.strides(0)[0], from = it.strides(1)[0];
  const bool plain = out.dtype() == source.dtype() && to == item && from == item;
  const auto row_bytes = static_cast<size_t>(row * item);
  parallel_for(0, it.numel() / row, std::max<int64_t>(1, kGrainSize / row), [&](int64_t b, int64_t e) {
    for_each_run(it, b, e, [&](char* target, const char* origin, int64_t rows) {
      const int64_t target_step = it.strides(0)[1], origin_step = it.strides(1)[1];
      for (int64_t r = 0; r < rows; ++r, target += target_step, origin += origin_step) {
        if (plain)
          copy_run(target, origin, row_bytes);
        else
          cast(target, to, origin, from, row);
      }
    });
  });
}

}  // namespace rushlight::cpu
