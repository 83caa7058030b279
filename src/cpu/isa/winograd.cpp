#include "cpu/winograd.h"

#include "cpu/isa/register_inl.h"
#include "cpu/isa/winograd_schemes_inl.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

void epilogue_rows(const EpilogueArguments& a, int64_t begin, int64_t end);

namespace {

// All that takes vectors is inlined, so that their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"
typedef float Vector __attribute__((vector_size(kRegisterBytes)));
constexpr int64_t kLanes = kRegisterBytes / static_cast<int64_t>(sizeof(float)), kTaps = 9;

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

// f(V, first) for the elements of [0, n), a vector or one of them at a time.
template <class F>
[[gnu::always_inline]] inline void for_lanes(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(Vector{}, i);
  for (; i < n; ++i) f(0.0f, i);
}

// Stores the points [row][column] of a tile `step` elements apart.
template <int P, class V>
[[gnu::always_inline]] inline void store_row(const V* row, int i, float* to, int64_t step) {
  for (int j = 0; j < P; ++j) store(to + (P * i + j) * step, row[j]);
}

// G g G' of filters whose nine taps are in g.
template <class S, class V>
[[gnu::always_inline]] inline void transform_filter(const V* g, bool turned, float* to, int64_t step) {
  constexpr int P = S::kPoints;
  V half[P * 3], row[P];
  for (int c = 0; c < 3; ++c)
    turned ? S::filter(g[8 - c], g[5 - c], g[2 - c], half + c, 3)
           : S::filter(g[c], g[3 + c], g[6 + c], half + c, 3);
  for (int i = 0; i < P; ++i) {
    S::filter(half[3 * i], half[3 * i + 1], half[3 * i + 2], row, 1);
    store_row<P>(row, i, to, step);
  }
}

template <class S>
void filters(const float* weight, int64_t rows, int64_t columns, bool turned, int64_t begin, int64_t end,
             float* result) {
  // Many at once, so that what is written element by element has reached memory before it is read in vectors.
  constexpr int64_t kMany = 64;
  alignas(64) float taps[kTaps][kMany];
  for (int64_t r = begin; r < end; ++r)
    for (int64_t first = 0; first < columns; first += kMany) {
      const int64_t count = columns - first < kMany ? columns - first : kMany;
      const float* from = weight + (r * columns + first) * kTaps;
      for (int64_t i = 0; i < count; ++i)
        for (int64_t tap = 0; tap < kTaps; ++tap) taps[tap][i] = from[i * kTaps + tap];
      for_lanes(count, [&]<class V>(V, int64_t i) __attribute__((always_inline)) {
        V g[kTaps];
        for (int64_t tap = 0; tap < kTaps; ++tap) g[tap] = load<V>(taps[tap] + i);
        transform_filter<S>(g, turned, result + r * columns + first + i, rows * columns);
      });
    }
}

// G' m G of the filters [begin, end). False when some number is not finite.
template <class S>
bool collect(const float* points, int64_t out, int64_t in, int64_t begin, int64_t end, float* weight) {
  constexpr int P = S::kPoints;
  const int64_t step = out * in;
  alignas(64) float taps[kTaps][kLanes];
  float check = 0;
  for (int64_t o = begin; o < end; ++o)
    for_lanes(in, [&]<class V>(V, int64_t i) __attribute__((always_inline)) {
      const float* from = points + o * in + i;
      V half[3 * P], g[kTaps], column[P];
      for (int j = 0; j < P; ++j) {
        for (int k = 0; k < P; ++k) column[k] = load<V>(from + (P * k + j) * step);
        S::collect(column, 1, half + j, P);
      }
      for (int k = 0; k < 3; ++k) S::collect(half + P * k, 1, g + 3 * k, 1);
      for (int64_t tap = 0; tap < kTaps; ++tap) store(taps[tap], g[tap]);
      constexpr auto lanes = static_cast<int64_t>(sizeof(V) / sizeof(float));
      float* to = weight + (o * in + i) * kTaps;
      for (int64_t lane = 0; lane < lanes; ++lane)
        for (int64_t tap = 0; tap < kTaps; ++tap) {
          to[lane * kTaps + tap] = taps[tap][lane];
          check += taps[tap][lane] * 0.0f;
        }
    });
  return check == 0;
}

// The pixels of a square of N x N at (y, x) of image n; those outside read `nothing`.
template <int N, class Pixel>
[[gnu::always_inline]] inline void square(int64_t n, int64_t y, int64_t x, int64_t height, int64_t width,
                                          int64_t channels, Pixel* image, Pixel* nothing, Pixel** pixels) {
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = 0; j < N; ++j) {
      const bool inside = y + i >= 0 && y + i < height && x + j >= 0 && x + j < width;
      pixels[N * i + j] = inside ? image + ((n * height + y + i) * width + x + j) * channels : nothing;
    }
}

class Zeros {
 public:
  explicit Zeros(int64_t n) {
    const int64_t bytes = n * static_cast<int64_t>(sizeof(float));
    data = static_cast<float*>(take_scratch(bytes));
    __builtin_memset(data, 0, static_cast<size_t>(bytes));
  }
  ~Zeros() { give_scratch(data); }
  Zeros(const Zeros&) = delete;
  float* data;
};

// B' d B.
template <class S>
void image_tiles(const WinogradTiles& t, const float* image, int64_t begin, int64_t end, int64_t line,
                 int64_t lines, float* result) {
  constexpr int P = S::kPoints;
  const int64_t each = t.rows * t.columns, step = lines * t.channels;
  const Zeros nothing(t.channels);
  for (int64_t k = begin; k < end; ++k, ++line) {
    const float* pixels[P * P];
    square<P>(k / each, k % each / t.columns * S::kResults - t.top, k % t.columns * S::kResults - t.left,
              t.height, t.width, t.channels, image, const_cast<const float*>(nothing.data), pixels);
    float* to = result + line * t.channels;
    for_lanes(t.channels, [&]<class V>(V, int64_t c) __attribute__((always_inline)) {
      V half[P * P], column[P], row[P];
      for (int j = 0; j < P; ++j) {
        for (int i = 0; i < P; ++i) column[i] = load<V>(pixels[P * i + j] + c);
        S::image(column, 1, half + j, P);
      }
      for (int i = 0; i < P; ++i) {
        S::image(half + P * i, 1, row, 1);
        store_row<P>(row, i, to + c, step);
      }
    });
  }
}

// A y A', of gradients of results.
template <class S>
void gradient_tiles(const WinogradTiles& t, const float* gradient, int64_t begin, int64_t end, int64_t line,
                    int64_t lines, float* result) {
  constexpr int P = S::kPoints, M = S::kResults;
  const int64_t each = t.rows * t.columns, step = lines * t.out_channels;
  const Zeros nothing(t.out_channels);
  for (int64_t k = begin; k < end; ++k, ++line) {
    const float* pixels[M * M];
    square<M>(k / each, k % each / t.columns * M, k % t.columns * M, t.out_height, t.out_width,
              t.out_channels, gradient, const_cast<const float*>(nothing.data), pixels);
    float* to = result + line * t.out_channels;
    for_lanes(t.out_channels, [&]<class V>(V, int64_t c) __attribute__((always_inline)) {
      V half[P * M], column[M], row[P];
      for (int j = 0; j < M; ++j) {
        for (int i = 0; i < M; ++i) column[i] = load<V>(pixels[M * i + j] + c);
        S::spread(column, 1, half + j, M);
      }
      for (int i = 0; i < P; ++i) {
        S::spread(half + M * i, 1, row, 1);
        store_row<P>(row, i, to + c, step);
      }
    });
  }
}

// A' m A of one tile. What is returned stays 0 as long as all results are finite.
template <class S>
float finish_tile(const float* from, int64_t step, const float* bias, int64_t channels,
                  float* const* results) {
  constexpr int P = S::kPoints, M = S::kResults;
  Vector checks = {};
  float check = 0;
  for_lanes(channels, [&]<class V>(V, int64_t c) __attribute__((always_inline)) {
    V half[M * P], column[P], row[M], sum = {};
    for (int j = 0; j < P; ++j) {
      for (int i = 0; i < P; ++i) column[i] = load<V>(from + (P * i + j) * step + c);
      S::results(column, 1, half + j, P);
    }
    const V add = bias ? load<V>(bias + c) : V{};
    for (int i = 0; i < M; ++i) {
      S::results(half + P * i, 1, row, 1);
      for (int j = 0; j < M; ++j) {
        const V r = row[j] + add;
        store(results[M * i + j] + c, r);
        sum += r * 0.0f;
      }
    }
    if constexpr (sizeof(V) == sizeof(float))
      check += sum;
    else
      checks += sum;
  });
  for (int64_t lane = 0; lane < kLanes; ++lane) check += checks[lane];
  return check;
}

template <class S>
bool result_tiles(const WinogradTiles& t, const float* products, int64_t begin, int64_t end, int64_t line,
                  int64_t lines, const float* bias, float* image, const EpilogueArguments* after) {
  constexpr int M = S::kResults;
  const int64_t each = t.rows * t.columns;
  const Zeros nowhere(t.out_channels);
  float check = 0;
  for (int64_t k = begin; k < end; ++k, ++line) {
    const int64_t n = k / each, y = k % each / t.columns * M, x = k % t.columns * M;
    float* results[M * M];
    square<M>(n, y, x, t.out_height, t.out_width, t.out_channels, image, nowhere.data, results);
    check += finish_tile<S>(products + line * t.out_channels, lines * t.out_channels, bias, t.out_channels,
                            results);
    const int64_t wide = t.out_width - x < M ? t.out_width - x : M;
    for (int64_t i = 0; after && i < M && y + i < t.out_height; ++i) {
      const int64_t pixel = (n * t.out_height + y + i) * t.out_width + x;
      epilogue_rows(*after, pixel, pixel + wide);
    }
  }
  return check == 0;
}

template <int Results>
WinogradKernels kernels_of() {
  using S = Scheme<Results>;
  return {filters<S>, collect<S>, image_tiles<S>, gradient_tiles<S>, result_tiles<S>};
}

}  // namespace

WinogradKernels winograd_kernels(int results) { return results == 2 ? kernels_of<2>() : kernels_of<4>(); }

}  // namespace rushlight::cpu::RL_ISA
