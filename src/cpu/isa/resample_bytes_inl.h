// Resizing images of bytes. Lines of bytes are added by pairs, in fixed point: rows one below the other as
// they are, and columns of some rows at a time, which are transposed for it and back.
#pragma once
#include <algorithm>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "core/parallel.h"
#include "cpu/isa/resample_axis_inl.h"
#include "cpu/transpose.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kByteLanes = 32;  // bytes of a line that are added at once, and rows that are transposed

// The taps of each output by pairs, without those that weigh nothing; a last one without a partner repeats.
class BytePairs {
 public:
  explicit BytePairs(Axis<Arithmetic<uint8_t>>& a)
      : stride_((a.axis.taps + 1) / 2),
        count_(a.axis.out),
        index_(2 * stride_ * a.axis.out),
        weights_(stride_ * a.axis.out) {
    const ResampleAxis& axis = a.axis;
    precision = a.precision;
    same = axis.in == axis.out;
    for (int64_t o = 0; o < axis.out; ++o) {
      int32_t* const index = index_.at(2 * stride_ * o);
      uint32_t* const weights = weights_.at(stride_ * o);
      int64_t n = 0;
      index[0] = axis.index[static_cast<size_t>(o)];
      for (int64_t k = 0; k < a.used[o]; ++k) {
        const int32_t w = a.weight[k * axis.out + o];
        if (w == 0) continue;
        fits = fits && w == static_cast<int16_t>(w);
        index[n] = axis.index[static_cast<size_t>(k * axis.out + o)];
        const uint32_t bits = static_cast<uint16_t>(w);
        weights[n / 2] = n % 2 ? weights[n / 2] | bits << 16 : bits;
        ++n;
      }
      if (n % 2) index[n] = index[n - 1];
      count_[o] = (n + 1) / 2;
      same = same && n == 1 && index[0] == o && weights[0] == 1u << precision;
    }
  }
  // Bytes [0, n) of output `o`: its lines are `stride` apart, and may be read on to whole steps.
  void blend(int64_t o, const uint8_t* lines, int64_t stride, int64_t n, uint8_t* out) const {
    const int32_t* const index = index_.at(2 * stride_ * o);
    const uint32_t* const weights = weights_.at(stride_ * o);
    for (int64_t x = 0; x < n; x += kByteLanes) {
      if (n - x >= kByteLanes) {
        step(lines + x, stride, index, weights, count_[o], out + x);
      } else {
        uint8_t rest[kByteLanes];
        step(lines + x, stride, index, weights, count_[o], rest);
        std::memcpy(out + x, rest, static_cast<size_t>(n - x));
      }
    }
  }
  // The first and last line of outputs [begin, end).
  int64_t first(int64_t begin, int64_t end) const {
    int32_t least = index_[2 * stride_ * begin];
    each(begin, end, [&](int32_t i) { least = std::min(least, i); });
    return least;
  }
  int64_t last(int64_t begin, int64_t end) const {
    int32_t most = 0;
    each(begin, end, [&](int32_t i) { most = std::max(most, i); });
    return most;
  }
  int precision = 0;
  bool fits = true;   // in words
  bool same = false;  // each output is the element at its place

 private:
  template <class F>
  void each(int64_t begin, int64_t end, F&& f) const {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t k = 0; k < 2 * count_[o]; ++k) f(index_[2 * stride_ * o + k]);
  }

#ifdef __AVX2__
  [[gnu::always_inline]] void step(const uint8_t* lines, int64_t stride, const int32_t* index,
                                   const uint32_t* weights, int64_t pairs, uint8_t* to) const {
    const auto load = [&](int64_t k) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lines + index[k] * stride));
    };
    const __m256i zero = _mm256_setzero_si256(), start = _mm256_set1_epi32(1 << precision >> 1);
    __m256i a = start, b = start, c = start, d = start;
    for (int64_t k = 0; k < pairs; ++k) {
      const __m256i x = load(2 * k), y = load(2 * k + 1), w = _mm256_set1_epi32(static_cast<int>(weights[k]));
      const __m256i low = _mm256_unpacklo_epi8(x, y), high = _mm256_unpackhi_epi8(x, y);
      a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), w));
      b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), w));
      c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), w));
      d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), w));
    }
    const __m128i p = _mm_cvtsi32_si128(precision);
    const __m256i left = _mm256_packs_epi32(_mm256_sra_epi32(a, p), _mm256_sra_epi32(b, p));
    const __m256i right = _mm256_packs_epi32(_mm256_sra_epi32(c, p), _mm256_sra_epi32(d, p));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_packus_epi16(left, right));
  }
#else
  void step(const uint8_t* lines, int64_t stride, const int32_t* index, const uint32_t* weights,
            int64_t pairs, uint8_t* to) const {
    int32_t sum[kByteLanes];
    for (int l = 0; l < kByteLanes; ++l) sum[l] = 1 << precision >> 1;
    for (int64_t k = 0; k < pairs; ++k) {
      const uint8_t *x = lines + index[2 * k] * stride, *y = lines + index[2 * k + 1] * stride;
      const int32_t w = static_cast<int16_t>(weights[k]), v = static_cast<int16_t>(weights[k] >> 16);
      for (int l = 0; l < kByteLanes; ++l) sum[l] += w * x[l] + v * y[l];
    }
    for (int l = 0; l < kByteLanes; ++l)
      to[l] = static_cast<uint8_t>(std::min(std::max(sum[l] >> precision, 0), 255));
  }
#endif

  int64_t stride_;  // pairs that an output may have
  Scratch<int64_t> count_;
  Scratch<int32_t> index_;
  Scratch<uint32_t> weights_;
};

class ByteResampler {
 public:
  ByteResampler(const ResamplePlan& plan, Axis<Arithmetic<uint8_t>>& height, Axis<Arithmetic<uint8_t>>& width)
      : plan_(plan), height_(height), width_(width), transpose_(transpose_tile(1)) {}

  // Columns of few rows would be mostly padding.
  bool fits() const {
    const auto& [d, h, w] = plan_.axis;
    return d.in == 1 && d.out == 1 && height_.fits && width_.fits && h.in >= kByteLanes / 4;
  }

  void run(const uint8_t* in, uint8_t* out) const {
    const auto& [d, h, w] = plan_.axis;
    const int64_t in_plane = h.in * in_row(), cost = out_row() * (w.taps + h.taps) / 8;
    const int64_t grain = std::max<int64_t>(kByteLanes, kGrainSize / std::max<int64_t>(cost, 1));
    parallel_for(0, plan_.batch * h.out, grain, [&, h_out = h.out](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t n = begin / h_out, stop = std::min(end, (n + 1) * h_out);
        resize(in + n * in_plane, begin - n * h_out, stop - n * h_out, out + begin * out_row());
        begin = stop;
      }
    });
  }

 private:
  int64_t in_row() const { return plan_.axis[2].in * plan_.inner; }
  int64_t out_row() const { return plan_.axis[2].out * plan_.inner; }
  static int64_t padded(int64_t n) { return (n + kByteLanes - 1) / kByteLanes * kByteLanes; }

  // Rows [begin, end) of a plane.
  void resize(const uint8_t* in, int64_t begin, int64_t end, uint8_t* out) const {
    const int64_t first = height_.first(begin, end), rows = height_.last(begin, end) - first + 1;
    const int64_t line = padded(out_row()), groups = padded(rows);
    Scratch<uint8_t> middle(groups * line);
    resize_rows(in + first * in_row(), rows, middle.at(0), line);
    for (int64_t y = begin; y < end; ++y, out += out_row())
      height_.blend(y, middle.at(0) - first * line, line, out_row(), out);
  }

  void resize_rows(const uint8_t* in, int64_t rows, uint8_t* to, int64_t line) const {
    if (width_.same) {
      for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * line, in + i * in_row(), size(out_row()));
      return;
    }
    Scratch<uint8_t> padding(rows % kByteLanes ? kByteLanes * in_row() : 0);
    Scratch<uint8_t> columns(kByteLanes * in_row()), resized(kByteLanes * line);
    for (int64_t i = 0; i < rows; i += kByteLanes) {
      const uint8_t* from = in + i * in_row();
      if (rows - i < kByteLanes) {
        std::memcpy(padding.at(0), from, size((rows - i) * in_row()));
        from = padding.at(0);
      }
      take_columns(from, columns.at(0));
      for (int64_t x = 0; x < width_out(); ++x)
        for (int64_t c = 0; c < plan_.inner; ++c)
          width_.blend(x, columns.at(c * kByteLanes), plan_.inner * kByteLanes, kByteLanes,
                       resized.at((x * plan_.inner + c) * kByteLanes));
      transpose(to + i * line, line, resized.at(0), kByteLanes, kByteLanes, line);
    }
  }
  // The last columns with those before them, since whole squares are transposed.
  void take_columns(const uint8_t* rows, uint8_t* columns) const {
    constexpr int64_t kSquare = 16;
    const int64_t n = in_row(), whole = n < kSquare ? n : n / kSquare * kSquare;
    transpose(columns, kByteLanes, rows, n, whole, kByteLanes);
    if (whole < n)
      transpose(columns + (n - kSquare) * kByteLanes, kByteLanes, rows + n - kSquare, n, kSquare, kByteLanes);
  }
  void transpose(uint8_t* out, int64_t out_line, const uint8_t* in, int64_t in_line, int64_t rows,
                 int64_t columns) const {
    transpose_(reinterpret_cast<char*>(out), out_line, reinterpret_cast<const char*>(in), in_line, rows,
               columns);
  }
  int64_t width_out() const { return plan_.axis[2].out; }
  static size_t size(int64_t n) { return static_cast<size_t>(n); }

  const ResamplePlan& plan_;
  BytePairs height_, width_;
  TransposeTile transpose_;
};

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
