// Convolutions of bytes as products of bytes whose rows are gathered block by block: no matrix of patches
// exists as a whole. Images lie channels last.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "cpu/byte_product.h"

namespace rushlight::cpu {

struct ByteConvShape {
  int64_t batch, channels, filters, groups;
  std::array<int64_t, 3> in, out, kernel, stride, padding, dilation;  // depth, height, width
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  bool depthwise() const { return groups > 1 && groups == channels && filters == channels; }
  // Whether the image is the matrix of patches.
  bool plain() const;
  // Whether `rest` may have a sum.
  bool takes_sum() const { return !depthwise() && taps() * (channels / groups) <= kLongestByteRow / 2; }
};

constexpr int64_t kByteDepthwiseChannels = 32;  // of a panel
constexpr int64_t kByteDepthwiseBytes = 128;    // of a panel's taps that lie side by side
// The last panel takes channels of the one before it rather than none.
inline int64_t first_of_byte_panel(int64_t panel, int64_t channels) {
  const int64_t first = panel * kByteDepthwiseChannels;
  return first + kByteDepthwiseChannels <= channels ? first
         : channels < kByteDepthwiseChannels        ? 0
                                                    : channels - kByteDepthwiseChannels;
}

struct ByteDepthwiseTap {
  int64_t line, shift;  // of the window's lines, or -1 for none; columns to the right
};

// A line of a depthwise convolution's result. Taps are multiplied in groups, which slide along the line: a
// step is one position of one group.
struct ByteDepthwiseLine {
  const ByteProduct* rest;
  char* to;
  const uint8_t* const* lines;   // of the window; null: padding
  const ByteDepthwiseTap* taps;  // of each group
  const int64_t* offsets;        // of each step in the memory
  const int8_t* filters;         // of each panel and step
  const int32_t* settings;       // of each panel: what sums begin with, scales, bias
  char* memory;                  // for `columns` pixels of each group
  int64_t groups, steps, columns, span, channels, width, count, stride, margin;
  uint8_t padding;
  bool is_signed;
};
struct ByteDepthwiseKernels {
  int64_t taps, element;                  // of a group; bytes of a factor
  uint8_t order[kByteDepthwiseChannels];  // the channel at each place of a panel
  void (*line)(const ByteDepthwiseLine& line);
};

// Filters of one channel each.
class ByteDepthwiseFilters {
 public:
  ByteDepthwiseFilters(const ByteConvShape& s, const int8_t* filters);
  size_t nbytes() const { return panels_.size() + sums_.size() * sizeof(int32_t); }
  void convolve(const ByteConvShape& s, const void* image, bool is_signed, const ByteProduct& rest) const;

 private:
  std::vector<ByteDepthwiseTap> taps_;   // of each group
  std::vector<ByteDepthwiseTap> steps_;  // the group, and how far it moved
  std::vector<int8_t> panels_;
  std::vector<int32_t> sums_;  // of each filter
};

// Filters [filters, channels / groups, taps] of int8, as the convolution reads them.
class PackedFilters {
 public:
  // `zeros`: they have zero points.
  PackedFilters(const ByteConvShape& s, const int8_t* filters, bool zeros);
  size_t nbytes() const;

 private:
  friend void byte_conv(const ByteConvShape& s, const PackedFilters& filters, const void* image,
                        bool is_signed, const ByteProduct& rest);
  std::vector<std::unique_ptr<PackedBytes>> groups_;
  std::unique_ptr<ByteDepthwiseFilters> depthwise_;  // in their place
  bool in_lines_ = false;                            // for byte_lines.h
};

// `rest` says what follows the sums: its a, b, and ldc are set here, and its settings are one a filter.
void byte_conv(const ByteConvShape& s, const PackedFilters& filters, const void* image, bool is_signed,
               const ByteProduct& rest);

}  // namespace rushlight::cpu
