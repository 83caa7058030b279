#include "cpu/pad_modes.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/copy_run.h"
#include "cpu/width.h"

namespace rushlight::cpu {
namespace {

// Runs of some hundred bytes, as most rows are, by words that overlap at the end: without a call.
inline void copy_row(void* to, const void* from, size_t n) {
  constexpr size_t kWord = 16, kShort = 512;
  if (n < kWord || n > kShort) return copy_run(to, from, n);
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  for (size_t i = 0; i + kWord < n; i += kWord) std::memcpy(out + i, in + i, kWord);
  std::memcpy(out + n - kWord, in + n - kWord, kWord);
}

template <class T>
void pad_row(const PaddedAxis& axis, int64_t inner, const T* in, T* out) {
  const auto* source = axis.source.data();
  const int64_t n = axis.out, first = axis.first, last = axis.last;
  const auto positions = [&](int64_t i, int64_t end) {
    if (inner == 1)
      for (; i < end; ++i) out[i] = in[source[i]];
    else
      for (; i < end; ++i)
        copy_row(out + i * inner, in + source[i] * inner, static_cast<size_t>(inner) * sizeof(T));
  };
  positions(0, first);
  copy_row(out + first * inner, in + axis.start * inner,
           static_cast<size_t>((last - first) * inner) * sizeof(T));
  positions(last, n);
}

template <class T>
void add_run(int64_t n, const T* in, T* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(out[i] + in[i]);
}

template <class T>
void add_row(const PaddedAxis& axis, int64_t inner, const T* in, T* out) {
  const auto position = [&](int64_t i) {
    add_run(inner, in + i * inner, out + axis.source[static_cast<size_t>(i)] * inner);
  };
  for (int64_t i = 0; i < axis.first; ++i) position(i);
  add_run((axis.last - axis.first) * inner, in + axis.first * inner, out + axis.start * inner);
  for (int64_t i = axis.last; i < axis.out; ++i) position(i);
}

}  // namespace

void pad_with_mode(const PaddedImages& p, size_t itemsize, const void* in, void* out) {
  const auto& [depth, height, width] = p.axes;
  const int64_t rows = p.images * depth.out * height.out, length = width.out * p.inner;
  visit_width(itemsize, [&]<class T>(T) {
    parallel_for(0, rows, std::max<int64_t>(1, kGrainSize / length), [&](int64_t begin, int64_t end) {
      int64_t h = begin % height.out, d = begin / height.out % depth.out,
              image = begin / height.out / depth.out;
      for (int64_t row = begin; row < end; ++row) {
        const int64_t from = (image * depth.in + depth.source[static_cast<size_t>(d)]) * height.in +
                             height.source[static_cast<size_t>(h)];
        pad_row(width, p.inner, static_cast<const T*>(in) + from * width.in * p.inner,
                static_cast<T*>(out) + row * length);
        if (++h < height.out) continue;
        h = 0;
        if (++d == depth.out) d = 0, ++image;
      }
    });
  });
}

void pad_with_mode_backward(const PaddedImages& p, DType dtype, const void* grad, void* out) {
  const auto& [depth, height, width] = p.axes;
  const int64_t before = depth.out * height.out * width.out * p.inner,
                after = depth.in * height.in * width.in * p.inner;
  visit_dtype(Concat<FloatTypes, ComplexTypes>{}, dtype, "padding's gradient", [&]<class T>(T) {
    parallel_for(0, p.images, std::max<int64_t>(1, kGrainSize / before), [&](int64_t begin, int64_t end) {
      for (int64_t image = begin; image < end; ++image) {
        const T* from = static_cast<const T*>(grad) + image * before;
        T* to = static_cast<T*>(out) + image * after;
        std::fill_n(to, after, T(0));
        for (int64_t d : depth.source)
          for (int64_t h : height.source) {
            add_row(width, p.inner, from, to + (d * height.in + h) * width.in * p.inner);
            from += width.out * p.inner;
          }
      }
    });
  });
}

}  // namespace rushlight::cpu
