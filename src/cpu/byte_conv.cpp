#include "cpu/byte_conv.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "cpu/byte_lines.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kBlock = 48;  // pixels whose patches are gathered together

int64_t pixels(const ByteConvShape& s) { return s.batch * s.out[0] * s.out[1] * s.out[2]; }

// Of few bytes a call would take longer.
inline void copy_bytes(uint8_t* to, const uint8_t* from, int64_t n) {
  if (n >= 128) {
    std::memcpy(to, from, static_cast<size_t>(n));
  } else if (n >= 16) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) std::memcpy(to + i, from + i, 16);
    if (i < n) std::memcpy(to + n - 16, from + n - 16, 16);
  } else if (n >= 8) {
    std::memcpy(to, from, 8);
    std::memcpy(to + n - 8, from + n - 8, 8);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

// Finds the bytes that a pixel of the result is made of.
class Window {
 public:
  Window(const ByteConvShape& s, const void* image) : s_(s), image_(static_cast<const uint8_t*>(image)) {}
  void move_to(int64_t pixel) {
    left_ = s_.out[2] - pixel % s_.out[2];
    pixel_ = pixel;
    x_ = pixel % s_.out[2] * s_.stride[2] - s_.padding[2];
    y_ = pixel / s_.out[2] % s_.out[1] * s_.stride[1] - s_.padding[1];
    z_ = pixel / (s_.out[2] * s_.out[1]) % s_.out[0] * s_.stride[0] - s_.padding[0];
    from_ =
        image_ + pixel / (s_.out[2] * s_.out[1] * s_.out[0]) * s_.in[0] * s_.in[1] * s_.in[2] * s_.channels;
  }
  void move_on() {  // to the next pixel: mostly of the same line, which needs no division
    ++pixel_, x_ += s_.stride[2];
    if (--left_ == 0) move_to(pixel_);
  }
  // f(the line of the image, or null in the padding) for each line of the window.
  template <class F>
  void for_lines(F f) const {
    for (int64_t kz = 0; kz < s_.kernel[0]; ++kz)
      for (int64_t ky = 0; ky < s_.kernel[1]; ++ky) {
        const int64_t z = z_ + kz * s_.dilation[0], y = y_ + ky * s_.dilation[1];
        const bool inside = z >= 0 && z < s_.in[0] && y >= 0 && y < s_.in[1];
        f(inside ? from_ + (z * s_.in[1] + y) * s_.in[2] * s_.channels : nullptr);
      }
  }
  // The channels [first, first + count) of all taps.
  void copy(int64_t first, int64_t count, uint8_t padding, uint8_t* to) const {
    const bool together = s_.dilation[2] == 1 && count == s_.channels;  // neighbours in memory
    for_lines([&](const uint8_t* line) {
      const int64_t width = s_.kernel[2] * count;
      if (!line) {
        std::memset(to, padding, static_cast<size_t>(width));
      } else if (together) {
        const int64_t begin = std::clamp<int64_t>(-x_, 0, s_.kernel[2]),
                      end = std::clamp<int64_t>(s_.in[2] - x_, begin, s_.kernel[2]);
        if (begin > 0) std::memset(to, padding, static_cast<size_t>(begin * count));
        copy_bytes(to + begin * count, line + (x_ + begin) * count, (end - begin) * count);
        if (end < s_.kernel[2])
          std::memset(to + end * count, padding, static_cast<size_t>(width - end * count));
      } else {
        for (int64_t kx = 0; kx < s_.kernel[2]; ++kx) {
          const int64_t x = x_ + kx * s_.dilation[2];
          if (x >= 0 && x < s_.in[2])
            copy_bytes(to + kx * count, line + x * s_.channels + first, count);
          else
            std::memset(to + kx * count, padding, static_cast<size_t>(count));
        }
      }
      to += width;
    });
  }

 private:
  const ByteConvShape& s_;
  const uint8_t *image_, *from_ = nullptr;
  int64_t x_ = 0, y_ = 0, z_ = 0, pixel_ = 0, left_ = 0;  // left: pixels of the line
};

// What is one a filter, for the filters of a group.
ByteProduct of_group(const ByteProduct& all, int64_t first, int64_t element) {
  ByteProduct p = all;
  if (p.b_zeros) p.b_zeros += first;
  if (p.scales) p.scales += first;
  if (p.bias) p.bias += first;
  p.c = static_cast<char*>(p.c) + first * element;
  return p;
}

}  // namespace

bool ByteConvShape::plain() const {
  return groups == 1 && taps() == 1 && padding == std::array<int64_t, 3>{} && in == out;
}

PackedFilters::PackedFilters(const ByteConvShape& s, const int8_t* filters, bool zeros) {
  const int64_t taps = s.taps(), channels = s.channels / s.groups, each = s.filters / s.groups;
  if (s.depthwise() && !zeros) {  // the sums of each channel's patch would be wanted
    depthwise_ = std::make_unique<ByteDepthwiseFilters>(s, filters);
    return;
  }
  in_lines_ = !zeros && ByteLines::fit(s);
  // All channels of a tap lie together, and the taps of a line.
  const int64_t width = s.kernel[2], line = in_lines_ ? ByteLines::length(s) : width * channels,
                k = taps / width * line;
  std::vector<int8_t> ordered(static_cast<size_t>(each * k));
  for (int64_t g = 0; g < s.groups; ++g) {
    const int8_t* from = filters + g * each * channels * taps;
    for (int64_t f = 0; f < each; ++f)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t tap = 0; tap < taps; ++tap)
          ordered[static_cast<size_t>(f * k + tap / width * line + tap % width * channels + c)] = *from++;
    groups_.push_back(std::make_unique<PackedBytes>(k, each, MatrixView{ordered.data(), 1, k}));
  }
}

size_t PackedFilters::nbytes() const {
  size_t sum = depthwise_ ? depthwise_->nbytes() : 0;
  for (const auto& group : groups_) sum += group->nbytes();
  return sum;
}

void byte_conv(const ByteConvShape& s, const PackedFilters& filters, const void* image, bool is_signed,
               const ByteProduct& rest) {
  const int64_t count = pixels(s), channels = s.channels / s.groups, each = s.filters / s.groups;
  const int64_t element = rest.result == ByteResult::kInt32 || rest.result == ByteResult::kFloat ? 4 : 1;
  const auto padding = static_cast<uint8_t>(rest.a_zero);
  ByteProduct all = rest;
  all.ldc = s.filters;
  if (s.plain()) {
    const ByteRows rows(count, s.channels, image, is_signed, s.channels, 1);
    all.a = &rows, all.b = filters.groups_[0].get();
    return byte_product(all);
  }
  if (filters.depthwise_) return filters.depthwise_->convolve(s, image, is_signed, all);
  if (filters.in_lines_) {
    const ByteLines lines(s, image, is_signed, padding);
    all.a = &lines.rows(), all.b = filters.groups_[0].get();
    return byte_product(all);
  }
  const int64_t k = s.taps() * channels;
  parallel_for(0, (count + kBlock - 1) / kBlock, 1, [&](int64_t begin, int64_t end) {
    Window window(s, image);
    std::vector<uint8_t> patch(static_cast<size_t>(k));
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, rows_in_block = std::min(kBlock, count - first);
      for (int64_t g = 0; g < s.groups; ++g) {
        ByteRows rows(rows_in_block, k, is_signed);
        window.move_to(first);
        for (int64_t r = 0; r < rows_in_block; ++r, window.move_on()) {
          auto* start = static_cast<uint8_t*>(rows.bytes_of(r, patch.data()));
          window.copy(g * channels, channels, padding, start);
          if (is_signed || start == patch.data() || k % byte_kernels().depth) rows.fill(r, start);
        }
        ByteProduct p = of_group(all, g * each, element);
        p.a = &rows, p.b = filters.groups_[static_cast<size_t>(g)].get();
        p.c = static_cast<char*>(p.c) + first * s.filters * element;
        byte_product(p);
      }
    }
  });
}

}  // namespace rushlight::cpu
