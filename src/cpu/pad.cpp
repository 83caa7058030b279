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

// Where the rows of the result come from in the source, one after the other.
class SourceRows {
 public:
  SourceRows(const FramedBlock& f, int64_t row) : f_(f), index_(f.sizes.size() - 1) {
    for (size_t d = index_.size(); d-- > 0; row /= f.sizes[d]) {
      index_[d] = row % f.sizes[d];
      offset_ += (index_[d] - f.start[d]) * f.strides[d];
      outside_ += is_outside(d);
    }
  }

  // Nothing if the row lies outside of the block.
  std::optional<int64_t> offset() const { return outside_ ? std::nullopt : std::optional(offset_); }

  void next() {
    for (size_t d = index_.size(); d-- > 0;) {
      outside_ -= is_outside(d);
      const bool carries = ++index_[d] == f_.sizes[d];
      offset_ += f_.strides[d];
      if (carries) offset_ -= index_[d] * f_.strides[d], index_[d] = 0;
      outside_ += is_outside(d);
      if (!carries) return;
    }
  }

 private:
  int is_outside(size_t d) const {
    const int64_t at = index_[d] - f_.start[d];
    return at < 0 || at >= f_.block[d];
  }

  const FramedBlock& f_;
  Dims index_;
  int64_t offset_ = 0;
  int outside_ = 0;  // dimensions
};

// Rows so short that a call for each part would cost more: all are filled, and those of the block written in
// runs along the dimension around them.
template <class T>
void fill_short_rows(const FramedBlock& f, int64_t begin, int64_t end, const T* source, T value, T* out) {
  const int64_t length = f.sizes.back(), before = f.start.back(), inside = f.block.back(),
                step = f.strides.back();
  std::fill_n(out + begin * length, (end - begin) * length, value);
  const size_t around = f.sizes.size() - 2;  // wraps where there is none
  const int64_t rows = f.sizes.size() > 1 ? f.sizes[around] : 1;
  for (int64_t row = begin; row < end;) {
    const SourceRows at(f, row);
    const int64_t place = row % rows, first = rows > 1 ? f.start[around] : 0;
    const bool in_block = at.offset().has_value();
    // As far as rows are alike: to the block's begin or end, or to the dimension's.
    const int64_t last = in_block && rows > 1 ? first + f.block[around] : place < first ? first : rows;
    const int64_t count = std::min(last - place, end - row), stride = rows > 1 ? f.strides[around] : 0;
    if (in_block) {
      const T* from = source + *at.offset();
      T* to = out + row * length + before;
      for (int64_t r = 0; r < count; ++r, from += stride, to += length)
        for (int64_t i = 0; i < inside; ++i) to[i] = from[i * step];
    }
    row += count;
  }
}

template <class T>
void fill_rows(const FramedBlock& f, int64_t begin, int64_t end, const T* source, T value, T* out) {
  const int64_t length = f.sizes.back(), before = f.start.back(), inside = f.block.back(),
                after = length - before - inside, step = f.strides.back();
  out += begin * length;
  SourceRows rows(f, begin);
  for (int64_t row = begin; row < end; ++row, rows.next(), out += length) {
    const std::optional<int64_t> offset = rows.offset();
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
    constexpr int64_t kShort = 16;
    const auto fill = f.sizes.back() <= kShort ? &fill_short_rows<T> : &fill_rows<T>;
    parallel_for(0, rows, std::max<int64_t>(1, kGrainSize / f.sizes.back()), [&](int64_t begin, int64_t end) {
      fill(f, begin, end, static_cast<const T*>(source), constant, static_cast<T*>(out));
    });
  });
}

}  // namespace rushlight::cpu
