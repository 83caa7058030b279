// Part of an image whose channels come last, copied with zeros where it reaches beyond the image.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/transpose.h"

namespace rushlight::cpu {

// Pixels of some planes, `area` apart, to pixels of neighbouring channels, `pitch` apart.
inline void turn_planes(const float* planes, int64_t area, int64_t channels, int64_t pixels, float* to,
                        int64_t pitch) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(float));
  transpose_tile(sizeof(float))(reinterpret_cast<char*>(to), pitch * kItem,
                                reinterpret_cast<const char*>(planes), area * kItem, pixels, channels);
}

struct ImageWindow {
  int64_t height, width, channels;  // of the image
  int64_t down, across, pitch;      // lines and pixels of the window, and how far apart pixels lie in it

  int64_t line() const { return across * pitch; }
  int64_t elements() const { return down * line(); }
  // The window whose first pixel is that in line `top` at `left`.
  void copy(const float* image, int64_t top, int64_t left, float* to) const {
    const int64_t before = std::clamp<int64_t>(-left, 0, across),
                  last = std::clamp<int64_t>(width - left, before, across);
    for (int64_t y = top; y < top + down; ++y, to += line()) {
      if (y < 0 || y >= height) {
        std::fill_n(to, line(), 0.0f);
        continue;
      }
      const float* from = image + (y * width + left + before) * channels;
      std::fill_n(to, before * pitch, 0.0f);
      if (pitch == channels)
        std::copy_n(from, (last - before) * channels, to + before * pitch);
      else
        for (int64_t x = before; x < last; ++x, from += channels) std::copy_n(from, channels, to + x * pitch);
      std::fill(to + last * pitch, to + line(), 0.0f);
    }
  }
  // The same of an image in planes.
  void copy_planes(const float* image, int64_t top, int64_t left, float* to) const {
    const int64_t before = std::clamp<int64_t>(-left, 0, across),
                  last = std::clamp<int64_t>(width - left, before, across);
    for (int64_t y = top; y < top + down; ++y, to += line()) {
      if (y < 0 || y >= height || last == before) {
        std::fill_n(to, line(), 0.0f);
        continue;
      }
      std::fill_n(to, before * pitch, 0.0f);
      turn_planes(image + y * width + left + before, height * width, channels, last - before,
                  to + before * pitch, pitch);
      std::fill(to + last * pitch, to + line(), 0.0f);
    }
  }
};

}  // namespace rushlight::cpu
