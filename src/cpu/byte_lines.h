// Images of bytes that products read where they lie: a window's lines are pieces of a row, which overlap
// those of its neighbours. Nothing is gathered; only a margin, if there is one, takes a copy of the image.
#pragma once
#include <vector>

#include "cpu/byte_conv.h"

namespace rushlight::cpu {

class ByteLines {
 public:
  // Whether this processor's products can read a convolution so.
  static bool fit(const ByteConvShape& s);
  // Elements of a line of the window, filled up; filters have zeros behind its taps.
  static int64_t length(const ByteConvShape& s);

  // `padding`: what the margin holds. `s` and `image` stay with the caller.
  ByteLines(const ByteConvShape& s, const void* image, bool is_signed, uint8_t padding);
  ByteLines(const ByteLines&) = delete;
  ByteLines& operator=(const ByteLines&) = delete;
  const ByteRows& rows() const { return rows_; }

 private:
  struct Layout {
    std::array<int64_t, 3> margin, size;
    int64_t pitch;  // bytes of a line
    bool in_place;
    // Lines that one line of the window sees are neighbours: those between them lie in planes of their own.
    int64_t planes, plane_lines;
    int64_t line(int64_t z, int64_t y) const { return (z * planes + y % planes) * plane_lines + y / planes; }
    int64_t bytes(const ByteConvShape& s) const;  // of all images, and what may be read behind them
  };
  static Layout layout_of(const ByteConvShape& s, bool is_signed);
  void copy_lines(const ByteConvShape& s, const uint8_t* image, bool is_signed, uint8_t padding);
  std::vector<int64_t> piece_offsets(const ByteConvShape& s) const;
  void find_rows(const ByteConvShape& s);

  const Layout layout_;
  const Buffer copy_, offsets_;
  const std::vector<int64_t> pieces_;
  RowPieces in_pieces_;
  const ByteRows rows_;
};

}  // namespace rushlight::cpu
