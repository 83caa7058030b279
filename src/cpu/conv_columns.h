// Columns of a convolution: for each tap of a filter what all results read, so that it becomes a product.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "core/parallel.h"
#include "cpu/conv.h"

namespace rushlight::cpu {

inline int64_t volume(const std::array<int64_t, 3>& a) { return a[0] * a[1] * a[2]; }

// Visits every (channel, kernel position): f(column row, channel, kd, kh, kw).
template <class F>
void for_each_tap(const ConvShape& s, int64_t channels, F&& f) {
  const int64_t taps = volume(s.kernel);
  parallel_for(0, channels * taps, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, volume(s.output))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const int64_t tap = row % taps;
                   f(row, row / taps, tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                     tap % s.kernel[2]);
                 }
               });
}

// For one tap along one axis: which input position each output position reads, -1 outside.
inline int64_t source(const ConvShape& s, int axis, int64_t out, int64_t tap) {
  const int64_t at = out * s.stride[axis] - s.padding[axis] + tap * s.dilation[axis];
  return at >= 0 && at < s.input[axis] ? at : -1;
}

// One line, or plane of lines, of what a tap reads at stride 1 where results are as wide as the image: all of
// it lies in one piece `shift` elements apart, but for what lies outside.
template <class T>
void copy_shifted(const T* plane, int64_t height, int64_t width, int64_t down, int64_t right, int64_t lines,
                  T* to) {
  const int64_t shift = down * width + right;
  const int64_t top = std::clamp<int64_t>(-down, 0, lines),
                bottom = std::clamp<int64_t>(height - down, top, lines);
  const int64_t first = std::max(top * width, -shift),
                last = std::max(first, std::min(bottom * width, height * width - shift));
  std::fill(to, to + std::min(first, lines * width), T(0));
  if (last > first) std::copy(plane + first + shift, plane + last + shift, to + first);
  std::fill(to + std::min(last, lines * width), to + lines * width, T(0));
  const int64_t left = std::min(width, std::max<int64_t>(0, -right)),
                end = std::max<int64_t>(0, width - std::max<int64_t>(0, right));
  for (int64_t h = top; h < bottom; ++h) {
    for (int64_t w = 0; w < left; ++w) to[h * width + w] = T(0);
    for (int64_t w = end; w < width; ++w) to[h * width + w] = T(0);
  }
}

// Of a line the outputs [first, last) of a tap read inside the image: output w at w * stride + shift.
struct Inside {
  int64_t shift, first, last;
};
inline Inside inside_line(const ConvShape& s, int64_t tap) {
  const int64_t shift = tap * s.dilation[2] - s.padding[2], step = s.stride[2], width = s.output[2];
  const int64_t first = std::min(width, std::max<int64_t>(0, (step - 1 - shift) / step));
  return {shift, first, std::clamp<int64_t>((s.input[2] - shift + step - 1) / step, first, width)};
}

// columns[channel * taps + tap][output position] = image[channel][position the tap reads]
template <class T>
void fill_columns(const ConvShape& s, int64_t channels, const T* image, T* columns) {
  const int64_t area = volume(s.input), out_area = volume(s.output);
  const bool in_pieces = s.stride[1] == 1 && s.stride[2] == 1 && s.output[2] == s.input[2];
  for_each_tap(s, channels, [&](int64_t row, int64_t c, int64_t kd, int64_t kh, int64_t kw) {
    T* to = columns + row * out_area;
    const T* from = image + c * area;
    const int64_t step = s.stride[2], width = s.output[2];
    const auto [shift, first, last] = inside_line(s, kw);
    for (int64_t d = 0; d < s.output[0]; ++d) {
      const int64_t z = source(s, 0, d, kd);
      if (in_pieces && z >= 0) {
        copy_shifted(from + z * s.input[1] * width, s.input[1], width, kh * s.dilation[1] - s.padding[1],
                     shift, s.output[1], to);
        to += s.output[1] * width;
        continue;
      }
      for (int64_t h = 0; h < s.output[1]; ++h, to += width) {
        const int64_t y = source(s, 1, h, kh);
        if (z < 0 || y < 0) {
          std::fill_n(to, width, T(0));
          continue;
        }
        const T* line = from + (z * s.input[1] + y) * s.input[2] + shift;
        std::fill_n(to, first, T(0));
        for (int64_t w = first; w < last; ++w) to[w] = line[w * step];
        std::fill(to + last, to + width, T(0));
      }
    }
  });
}

template <class T>
void add_line(const T* from, int64_t n, int64_t step, T* to) {
  using C = compute_type<T>;
  const auto sum = [](T a, T b) { return static_cast<T>(static_cast<C>(a) + static_cast<C>(b)); };
  if (step == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = sum(to[i], from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i * step] = sum(to[i * step], from[i]);
}
// The adjoint: adds columns back into the image. Parallel over channels, whose images are disjoint.
template <class T>
void columns_to_image(const ConvShape& s, int64_t channels, const T* columns, T* image) {
  const int64_t area = volume(s.input), out_area = volume(s.output), taps = volume(s.kernel);
  parallel_for(0, channels, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, out_area * taps)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) {
                   T* to = image + c * area;
                   std::fill_n(to, area, T(0));
                   const T* from = columns + c * taps * out_area;
                   for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
                     for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
                       for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
                         const auto [shift, first, last] = inside_line(s, kw);
                         for (int64_t d = 0; d < s.output[0]; ++d)
                           for (int64_t h = 0; h < s.output[1]; ++h, from += s.output[2]) {
                             const int64_t z = source(s, 0, d, kd), y = source(s, 1, h, kh);
                             if (z < 0 || y < 0) continue;
                             add_line(from + first, last - first, s.stride[2],
                                      to + (z * s.input[1] + y) * s.input[2] + shift + first * s.stride[2]);
                           }
                       }
                 }
               });
}

}  // namespace rushlight::cpu
