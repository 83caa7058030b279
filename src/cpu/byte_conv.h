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
  std::vector<std::unique_ptr<PackedBytes>> groups_;  // depthwise: one, of [taps, channels]
  std::vector<int8_t> lines_;                         // depthwise: panels of [taps, columns]
};

// `rest` says what follows the sums: its a, b, and ldc are set here, and its settings are one a filter.
void byte_conv(const ByteConvShape& s, const PackedFilters& filters, const void* image, bool is_signed,
               const ByteProduct& rest);

// Neighbouring pixels of a depthwise convolution's result: `taps` lines of `channels` bytes for each, where
// they lie or null for padding.
struct DepthwisePixels {
  const uint8_t* const* lines;
  int64_t first, count, taps, channels;
  const int8_t* filters;  // panels of [taps, columns of a panel], filled up with zeros
  bool is_signed;
  uint8_t padding;
};

}  // namespace rushlight::cpu
