#include "cpu/winograd.h"

#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

void epilogue_rows(const EpilogueArguments& a, int64_t begin, int64_t end);

namespace {

constexpr int64_t kPoints = 16, kLanes = 16;

// 64 bytes; the compiler splits them where registers are shorter. All that takes them is inlined, so that
// their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"
typedef float Vector __attribute__((vector_size(64)));

template <class V>
[[gnu::always_inline]] inline V load(const float* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class V>
[[gnu::always_inline]] inline void store(float* to, const V& v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

// One row or column of G g: (a, (a + b + c) / 2, (a - b + c) / 2, c).
template <class V>
[[gnu::always_inline]] inline void spread(const V& a, const V& b, const V& c, V* to, int64_t step) {
  const V ends = (a + c) * 0.5f, middle = b * 0.5f;
  to[0] = a;
  to[step] = ends + middle;
  to[2 * step] = ends - middle;
  to[3 * step] = c;
}

// G g G' of filters whose nine taps are in g; `step` elements lie between the points of the result.
template <class V>
[[gnu::always_inline]] inline void transform_filter(const V* g, bool turned, float* to, int64_t step) {
  V half[12], whole[4];  // 4 x 3, one row of 4 x 4
  for (int64_t c = 0; c < 3; ++c)
    turned ? spread(g[8 - c], g[5 - c], g[2 - c], half + c, 3)
           : spread(g[c], g[3 + c], g[6 + c], half + c, 3);
  for (int64_t r = 0; r < 4; ++r) {
    spread(half[3 * r], half[3 * r + 1], half[3 * r + 2], whole, 1);
    for (int64_t j = 0; j < 4; ++j) store(to + (4 * r + j) * step, whole[j]);
  }
}

void filters(const float* weight, int64_t out, int64_t in, bool turned, int64_t begin, int64_t end,
             float* result) {
  constexpr int64_t kTaps = 9;
  const int64_t o_step = turned ? kTaps : in * kTaps, i_step = turned ? out * kTaps : kTaps;
  for (int64_t o = begin; o < end; ++o) {
    int64_t i = 0;
    for (; i + kLanes <= in; i += kLanes) {
      alignas(64) float taps[kTaps][kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane)
        for (int64_t tap = 0; tap < kTaps; ++tap)
          taps[tap][lane] = weight[o * o_step + (i + lane) * i_step + tap];
      Vector g[kTaps];
      for (int64_t tap = 0; tap < kTaps; ++tap) g[tap] = load<Vector>(taps[tap]);
      transform_filter(g, turned, result + o * in + i, out * in);
    }
    for (; i < in; ++i)
      transform_filter(weight + o * o_step + i * i_step, turned, result + o * in + i, out * in);
  }
}

// B' d B of the channels at c, one or a vector of them; `step` elements lie between the points of the result.
template <class V>
[[gnu::always_inline]] inline void transform(const float* const* pixels, int64_t c, float* to, int64_t step) {
  V rows[kPoints];
  for (int64_t j = 0; j < 4; ++j) {
    const V a = load<V>(pixels[j] + c), b = load<V>(pixels[4 + j] + c), d = load<V>(pixels[8 + j] + c),
            e = load<V>(pixels[12 + j] + c);
    rows[j] = a - d;
    rows[4 + j] = b + d;
    rows[8 + j] = d - b;
    rows[12 + j] = b - e;
  }
  for (int64_t i = 0; i < 4; ++i) {
    const V a = rows[4 * i], b = rows[4 * i + 1], d = rows[4 * i + 2], e = rows[4 * i + 3];
    store(to + 4 * i * step + c, a - d);
    store(to + (4 * i + 1) * step + c, b + d);
    store(to + (4 * i + 2) * step + c, d - b);
    store(to + (4 * i + 3) * step + c, b - e);
  }
}

void transform_tile(const float* const* pixels, int64_t channels, float* to, int64_t step) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) transform<Vector>(pixels, c, to, step);
  for (; c < channels; ++c) transform<float>(pixels, c, to, step);
}

void image_tiles(const WinogradTiles& t, const float* image, int64_t begin, int64_t end, int64_t line,
                 int64_t lines, float* result) {
  const int64_t each = t.rows * t.columns, bytes = t.channels * static_cast<int64_t>(sizeof(float));
  auto* nothing = static_cast<float*>(take_scratch(bytes));
  __builtin_memset(nothing, 0, static_cast<size_t>(bytes));
  for (int64_t k = begin; k < end; ++k, ++line) {
    const int64_t n = k / each, y = k % each / t.columns * 2 - t.top, x = k % t.columns * 2 - t.left;
    const float* pixels[kPoints];
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 4; ++j) {
        const bool inside = y + i >= 0 && y + i < t.height && x + j >= 0 && x + j < t.width;
        pixels[4 * i + j] =
            inside ? image + ((n * t.height + y + i) * t.width + x + j) * t.channels : nothing;
      }
    transform_tile(pixels, t.channels, result + line * t.channels, lines * t.channels);
  }
  give_scratch(nothing);
}

// A' m A of the channels at c. `check` stays 0 as long as all results are finite.
template <class V>
[[gnu::always_inline]] inline void finish(const float* from, int64_t step, const float* bias, int64_t c,
                                          float* const* results, V& check) {
  V top[4], bottom[4];
  for (int64_t j = 0; j < 4; ++j) {
    const V a = load<V>(from + j * step + c), b = load<V>(from + (4 + j) * step + c),
            d = load<V>(from + (8 + j) * step + c), e = load<V>(from + (12 + j) * step + c);
    top[j] = a + b + d;
    bottom[j] = b - d - e;
  }
  const V add = bias ? load<V>(bias + c) : V{};
  const V r[4] = {top[0] + top[1] + top[2] + add, top[1] - top[2] - top[3] + add,
                  bottom[0] + bottom[1] + bottom[2] + add, bottom[1] - bottom[2] - bottom[3] + add};
  for (int64_t i = 0; i < 4; ++i) {
    store(results[i] + c, r[i]);
    check += r[i] * 0.0f;
  }
}

float finish_tile(const float* from, int64_t step, const float* bias, int64_t channels,
                  float* const* results) {
  Vector checks = {};
  float check = 0;
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) finish<Vector>(from, step, bias, c, results, checks);
  for (; c < channels; ++c) finish<float>(from, step, bias, c, results, check);
  for (int64_t lane = 0; lane < kLanes; ++lane) check += checks[lane];
  return check;
}

bool result_tiles(const WinogradTiles& t, const float* products, int64_t begin, int64_t end, int64_t line,
                  int64_t lines, const float* bias, float* image, const EpilogueArguments* after) {
  const int64_t each = t.rows * t.columns;
  auto* nowhere = static_cast<float*>(take_scratch(t.out_channels * static_cast<int64_t>(sizeof(float))));
  float check = 0;
  for (int64_t k = begin; k < end; ++k, ++line) {
    const int64_t n = k / each, y = k % each / t.columns * 2, x = k % t.columns * 2;
    float* results[4];
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 2; ++j)
        results[2 * i + j] = y + i < t.out_height && x + j < t.out_width
                                 ? image + ((n * t.out_height + y + i) * t.out_width + x + j) * t.out_channels
                                 : nowhere;
    check +=
        finish_tile(products + line * t.out_channels, lines * t.out_channels, bias, t.out_channels, results);
    for (int64_t i = 0; after && i < 2 && y + i < t.out_height; ++i) {
      const int64_t pixel = (n * t.out_height + y + i) * t.out_width + x;
      epilogue_rows(*after, pixel, pixel + (x + 1 < t.out_width ? 2 : 1));
    }
  }
  give_scratch(nowhere);
  return check == 0;
}

}  // namespace

WinogradKernels winograd_kernels() { return {filters, image_tiles, result_tiles}; }

}  // namespace rushlight::cpu::RL_ISA
