#include "cpu/byte_lines.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"

namespace rushlight::cpu {
namespace {

int64_t filled_up(int64_t n) {
  const int64_t depth = byte_kernels().depth;
  return (n + depth - 1) / depth * depth;
}
int64_t element() { return byte_kernels().rows.element; }
int64_t step(const ByteConvShape& s) { return s.stride[2] * s.channels * element(); }
int64_t pixels(const ByteConvShape& s) { return s.batch * s.out[0] * s.out[1] * s.out[2]; }

}  // namespace

bool ByteLines::fit(const ByteConvShape& s) {
  return byte_kernels().rows.in_pieces && s.groups == 1 && !s.plain() &&
         (s.dilation[2] == 1 || s.kernel[2] == 1) && s.kernel[0] * s.kernel[1] * length(s) <= kLongestByteRow;
}

int64_t ByteLines::length(const ByteConvShape& s) { return filled_up(s.kernel[2] * s.channels); }

ByteLines::Layout ByteLines::layout_of(const ByteConvShape& s, bool is_signed) {
  Layout l{.margin = s.padding,
           .size = s.in,
           .pitch = s.in[2] * s.channels,
           .in_place = false,
           .planes = 1,
           .plane_lines = s.in[1]};
  l.in_place = s.padding == std::array<int64_t, 3>{} && element() == 1 && !is_signed &&
               length(s) == s.kernel[2] * s.channels;
  if (l.in_place) return l;
  for (size_t d = 0; d < 3; ++d) l.size[d] += 2 * s.padding[d];
  // Lines end with room for what fills up the last piece, and for what fills up the copied elements.
  l.pitch = (filled_up(l.size[2] * s.channels) + byte_kernels().depth) * element();
  l.pitch = (l.pitch + step(s) - 1) / step(s) * step(s);
  l.planes = s.stride[1];
  l.plane_lines = (l.size[1] + l.planes - 1) / l.planes;
  return l;
}

int64_t ByteLines::Layout::bytes(const ByteConvShape& s) const {
  return s.batch * size[0] * planes * plane_lines * pitch + kPlacesBehind * step(s);
}

ByteLines::ByteLines(const ByteConvShape& s, const void* image, bool is_signed, uint8_t padding)
    : layout_(layout_of(s, is_signed)),
      copy_(layout_.in_place ? 0 : layout_.bytes(s)),
      offsets_(pixels(s) * static_cast<int64_t>(sizeof(int64_t))),
      pieces_(piece_offsets(s)),
      in_pieces_{offsets_.as<int64_t>(), pieces_.data(), std::ssize(pieces_), length(s)},
      rows_(pixels(s), is_signed, layout_.in_place ? image : copy_.as<void>(), in_pieces_) {
  if (!layout_.in_place) {
    copy_lines(s, static_cast<const uint8_t*>(image), is_signed, padding);
    in_pieces_.step = step(s), in_pieces_.places = layout_.pitch / in_pieces_.step;
    in_pieces_.width = s.out[2], in_pieces_.lines = s.out[1];
  }
  find_rows(s);
}

void ByteLines::copy_lines(const ByteConvShape& s, const uint8_t* image, bool is_signed, uint8_t padding) {
  const int64_t pitch = layout_.pitch, from_bytes = s.in[2] * s.channels, to_bytes = from_bytes * element(),
                left = s.padding[2] * s.channels * element(), right = pitch - left - to_bytes;
  // A line of the margin.
  const std::vector<uint8_t> bytes(static_cast<size_t>(pitch / element()), padding);
  std::vector<char> line(static_cast<size_t>(pitch));
  byte_kernels().rows.fill(bytes.data(), is_signed, pitch / element(), line.data());
  const int64_t depth = layout_.size[0], height = layout_.size[1];
  parallel_for(0, s.batch * depth * height, std::max<int64_t>(1, kGrainSize / pitch),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   char* to = copy_.as<char>() + layout_.line(i / height, i % height) * pitch;
                   const int64_t y = i % height - s.padding[1], z = i / height % depth - s.padding[0];
                   if (y < 0 || y >= s.in[1] || z < 0 || z >= s.in[0]) {
                     std::memcpy(to, line.data(), line.size());
                     continue;
                   }
                   const int64_t at = (i / (height * depth) * s.in[0] + z) * s.in[1] + y;
                   std::memcpy(to, line.data(), static_cast<size_t>(left));
                   byte_kernels().rows.fill(image + at * from_bytes, is_signed, from_bytes, to + left);
                   std::memcpy(to + left + to_bytes, line.data(), static_cast<size_t>(right));
                 }
               });
}

std::vector<int64_t> ByteLines::piece_offsets(const ByteConvShape& s) const {
  std::vector<int64_t> offsets;
  for (int64_t z = 0; z < s.kernel[0]; ++z)
    for (int64_t y = 0; y < s.kernel[1]; ++y)
      offsets.push_back(layout_.line(z * s.dilation[0], y * s.dilation[1]) * layout_.pitch);
  return offsets;
}

void ByteLines::find_rows(const ByteConvShape& s) {
  auto* to = offsets_.as<int64_t>();
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t z = 0; z < s.out[0]; ++z)
      for (int64_t y = 0; y < s.out[1]; ++y) {
        const int64_t line =
            layout_.line(b * layout_.size[0] + z * s.stride[0], y * s.stride[1]) * layout_.pitch;
        for (int64_t x = 0; x < s.out[2]; ++x) *to++ = line + x * step(s);
      }
}

}  // namespace rushlight::cpu
