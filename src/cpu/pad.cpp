#include "cpu/pad.h"

#include <algorithm>
#include <optional>

#include "core/parallel.h"
#include "cpu/copy_run.h"
#include "cpu/width.h"

namespace rushlight::cpu {
namespace {

// Innermost dimensions that the block fills without gaps become part of the one around them.
void join_full_dimensions(FramedBlock& f) {
  while (f.sizes.size() > 1) {
    const size_t last = f.sizes.size() - 1;
    const int64_t size = f.sizes[last];
    if (f.block[last] != size || f.strides[last] != 1 || f.strides[last - 1] != size) return;
    for (Dims* d : {&f.sizes, &f.start, &f.block}) {
      (*d)[last - 1] *= size;
      d->pop_back();
    }
    f.strides.pop_back();
    f.strides.back() = 1;
  }
}

// Where row `index` of the result comes from in the source, unless it lies outside of the block.
std::optional<int64_t> source_row(const FramedBlock& f, int64_t index) {
  int64_t offset = 0;
  for (size_t d = f.sizes.size() - 1; d-- > 0; index /= f.sizes[d]) {
    const int64_t at = index % f.sizes[d] - f.start[d];
    if (at < 0 || at >= f.block[d]) return std::nullopt;
    offset += at * f.strides[d];
  }
  return offset;
}

template <class T>
void fill_rows(const FramedBlock& f, int64_t begin, int64_t end, const T* source, T value, T* out) {
  const int64_t length = f.sizes.back(), before = f.start.back(), inside = f.block.back(),
                after = length - before - inside, step = f.strides.back();
  out += begin * length;
  for (int64_t row = begin; row < end; ++row, out += length) {
    const std::optional<int64_t> offset = source_row(f, row);
    if (!offset) {
      std::fill_n(out, length, value);
      continue;
    }
    std::fill_n(out, before, value);
    if (step == 1)
      copy_run(out + before, source + *offset, static_cast<size_t>(inside) * sizeof(T));
    else
      for (int64_t i = 0; i < inside; ++i) out[before + i] = source[*offset + i * step];
    std::fill_n(out + before + inside, after, value);
  }
}

}  // namespace

void fill_around(FramedBlock f, const void* source, const void* value, size_t itemsize, void* out) {
  join_full_dimensions(f);
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < f.sizes.size(); ++d) rows *= f.sizes[d];
  visit_width(itemsize, [&]<class T>(T) {
    T constant;
    std::memcpy(&constant, value, sizeof(T));
    parallel_for(0, rows, std::max<int64_t>(1, kGrainSize / f.sizes.back()), [&](int64_t begin, int64_t end) {
      fill_rows(f, begin, end, static_cast<const T*>(source), constant, static_cast<T*>(out));
    });
  });
}

}  // namespace rushlight::cpu
