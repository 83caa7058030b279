#include "cpu/byte_conv.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kBlock = 48;  // pixels whose patches are gathered together

int64_t pixels(const ByteConvShape& s) { return s.batch * s.out[0] * s.out[1] * s.out[2]; }

// Where the bytes of each tap lie for one pixel of the result; null: in the padding.
class Taps {
 public:
  Taps(const ByteConvShape& s, const void* image)
      : s_(s), image_(static_cast<const uint8_t*>(image)), lines_(static_cast<size_t>(s.taps())) {}
  void move_to(int64_t pixel) {
    const int64_t x = pixel % s_.out[2], y = pixel / s_.out[2] % s_.out[1],
                  z = pixel / (s_.out[2] * s_.out[1]) % s_.out[0],
                  sample = pixel / (s_.out[2] * s_.out[1] * s_.out[0]);
    const uint8_t* from = image_ + sample * s_.in[0] * s_.in[1] * s_.in[2] * s_.channels;
    size_t tap = 0;
    for (int64_t kz = 0; kz < s_.kernel[0]; ++kz)
      for (int64_t ky = 0; ky < s_.kernel[1]; ++ky)
        for (int64_t kx = 0; kx < s_.kernel[2]; ++kx) {
          const int64_t iz = at(0, z, kz), iy = at(1, y, ky), ix = at(2, x, kx);
          const bool inside =
              iz >= 0 && iz < s_.in[0] && iy >= 0 && iy < s_.in[1] && ix >= 0 && ix < s_.in[2];
          lines_[tap++] = inside ? from + ((iz * s_.in[1] + iy) * s_.in[2] + ix) * s_.channels : nullptr;
        }
  }
  const std::vector<const uint8_t*>& lines() const { return lines_; }

 private:
  int64_t at(size_t d, int64_t out, int64_t tap) const {
    return out * s_.stride[d] - s_.padding[d] + tap * s_.dilation[d];
  }
  const ByteConvShape& s_;
  const uint8_t* image_;
  std::vector<const uint8_t*> lines_;
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
    lines_.resize(static_cast<size_t>(taps * s.channels));
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t tap = 0; tap < taps; ++tap)
        lines_[static_cast<size_t>(tap * s.channels + c)] = filters[c * taps + tap];
    groups_.push_back(
        std::make_unique<PackedBytes>(taps, s.channels, MatrixView{lines_.data(), s.channels, 1}));
    return;
  }
  // Patches hold all channels of a tap together.
  std::vector<int8_t> ordered(static_cast<size_t>(each * channels * taps));
  for (int64_t g = 0; g < s.groups; ++g) {
    const int8_t* from = filters + g * each * channels * taps;
    for (int64_t f = 0; f < each; ++f)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t tap = 0; tap < taps; ++tap)
          ordered[static_cast<size_t>((f * taps + tap) * channels + c)] = *from++;
    groups_.push_back(
        std::make_unique<PackedBytes>(taps * channels, each, MatrixView{ordered.data(), 1, taps * channels}));
  }
}

size_t PackedFilters::nbytes() const {
  size_t sum = lines_.size();
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
  if (!filters.lines_.empty()) {
    all.b = filters.groups_[0].get();
    parallel_for(0, count, std::max<int64_t>(1, kGrainSize / (s.channels * s.taps())),
                 [&](int64_t begin, int64_t end) {
                   Taps taps(s, image);
                   for (int64_t pixel = begin; pixel < end; ++pixel) {
                     taps.move_to(pixel);
                     byte_kernels().depthwise(all, {taps.lines().data(), s.taps(), s.channels,
                                                    filters.lines_.data(), is_signed, padding, pixel});
                   }
                 });
    return;
  }
  const int64_t k = s.taps() * channels;
  parallel_for(0, (count + kBlock - 1) / kBlock, 1, [&](int64_t begin, int64_t end) {
    Taps taps(s, image);
    std::vector<uint8_t> patch(static_cast<size_t>(k));
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, rows_in_block = std::min(kBlock, count - first);
      for (int64_t g = 0; g < s.groups; ++g) {
        ByteRows rows(rows_in_block, k, is_signed);
        for (int64_t r = 0; r < rows_in_block; ++r) {
          taps.move_to(first + r);
          auto* to = static_cast<uint8_t*>(rows.bytes_of(r, patch.data()));
          const auto* start = to;
          for (const uint8_t* line : taps.lines()) {
            if (line)
              std::memcpy(to, line + g * channels, static_cast<size_t>(channels));
            else
              std::memset(to, padding, static_cast<size_t>(channels));
            to += channels;
          }
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
