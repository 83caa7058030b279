// Products by weights in bytes and halves of bytes, for each instruction set.
#include "cpu/weight_product.h"

#include <algorithm>
#include <utility>

#include "cpu/isa/tile_inl.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

using Floats = Lanes<float>::type;
constexpr int64_t kLanes = Lanes<float>::count;
typedef int8_t Bytes __attribute__((vector_size(kLanes)));
typedef int32_t Ints __attribute__((vector_size(kRegisterBytes)));
constexpr int kWeightRows = WeightKernels::kRows;
constexpr int kRows = kRegisters == 32 ? 4 : 2;  // of x: sums, weights and a row of x fill the registers
constexpr int64_t kBlock = 32;                   // numbers in a block of four bits

[[gnu::always_inline]] inline Floats widened(const int8_t* from) {
#if defined(__AVX512F__)
  return Floats(_mm512_maskz_cvtepi32_ps(
      0xffff, _mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))));
#elif defined(__AVX2__)
  return Floats(
      _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))));
#else
  Bytes bytes;
  __builtin_memcpy(&bytes, from, sizeof(bytes));
  return __builtin_convertvector(bytes, Floats);
#endif
}

// The low and high halves of kLanes bytes. AVX-512 looks the numbers up, less 8; others take that off with
// the zero point.
#if defined(__AVX512F__)
constexpr float kCentre = 0;
#else
constexpr float kCentre = 8;
#endif
struct Halves {
  Floats low, high;
};
[[gnu::always_inline]] inline Halves halves(const uint8_t* from) {
#if defined(__AVX512F__)
  const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  const __m512i bytes =
      _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  return {Floats(_mm512_maskz_permutexvar_ps(0xffff, bytes, table)),
          Floats(_mm512_maskz_permutexvar_ps(0xffff, _mm512_maskz_srli_epi32(0xffff, bytes, 4), table))};
#elif defined(__AVX2__)
  const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  return {Floats(_mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15)))),
          Floats(_mm256_cvtepi32_ps(_mm256_srli_epi32(bytes, 4)))};
#else
  typedef uint8_t Packed __attribute__((vector_size(kLanes)));
  Packed packed;
  __builtin_memcpy(&packed, from, sizeof(packed));
  const Ints bytes = __builtin_convertvector(packed, Ints);
  return {__builtin_convertvector(bytes & 15, Floats), __builtin_convertvector(bytes >> 4, Floats)};
#endif
}

// The same for one row of x. AVX2 saves a shift: the high halves keep a sixteenth of the low ones, which
// unmix() takes off what those are multiplied by.
constexpr bool kMixed =
#if defined(__AVX2__) && !defined(__AVX512F__)
    true;
#else
    false;
#endif
#if defined(__AVX2__) && !defined(__AVX512F__)
[[gnu::always_inline]] inline Halves mixed_halves(const uint8_t* from) {
  const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  return {Floats(_mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15)))),
          Floats(_mm256_cvtepi32_ps(bytes))};
}
#else
[[gnu::always_inline]] inline Halves mixed_halves(const uint8_t* from) { return halves(from); }
#endif
[[gnu::always_inline]] inline void unmix(Floats& low, Floats& high) {
  if constexpr (kMixed) {
    high *= 1.0f / 16;
    low -= high;
  }
}

template <size_t... I>
[[gnu::always_inline]] inline float sum_of(Floats v, std::index_sequence<I...>) {
#define ADD_FAR(distance) \
  if constexpr (kLanes > (distance)) v += __builtin_shufflevector(v, v, static_cast<int>(I ^ (distance))...);
  ADD_FAR(8)
  ADD_FAR(4)
  ADD_FAR(2)
  ADD_FAR(1)
#undef ADD_FAR
  return v[0];
}
[[gnu::always_inline]] inline float sum_of(Floats v) { return sum_of(v, std::make_index_sequence<kLanes>()); }

// A number for each of a few rows of the weight.
template <int W>
struct FewOf {
  typedef float type __attribute__((vector_size(sizeof(float) * W)));
};
template <int W>
using Few = typename FewOf<W>::type;

// What the next rows read: processors foresee long lines alone. Behind the end nothing happens.
[[gnu::always_inline]] inline void prefetch(const void* at) { __builtin_prefetch(at); }

// R rows of x by W of the weight, with the settings of those W.
template <int R, int W>
void byte_products(const WeightProduct& p, const float* settings, int64_t i, int64_t j) {
  const int8_t* weight = static_cast<const int8_t*>(p.weight) + j * p.k;
  const float* x = p.x + i * p.k;
  Floats sums[R][W] = {};
  int64_t c = 0;
  for (; c + kLanes <= p.k; c += kLanes) {
    Floats factors[R];
    prefetch(weight + W * (p.k + c));
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) load(factors[r], x + r * p.k + c);
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      const Floats row = widened(weight + w * p.k + c);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[r][w] += row * factors[r];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      float sum = sum_of(sums[r][w]);
      for (int64_t t = c; t < p.k; ++t) sum += x[r * p.k + t] * static_cast<float>(weight[w * p.k + t]);
      p.y[(i + r) * p.n + j + w] = sum * settings[w];
    }
}

// With few rows of x the groups' sums are scaled, with more the weights: both fill the registers no further.
template <int R, int W>
void half_products(const WeightProduct& p, const float* settings, const float* group_sums, int64_t i,
                   int64_t j) {
  constexpr bool kScaleSums = R == 1;
  const int64_t row_bytes = p.k / 2, groups = (p.k + p.group - 1) / p.group;
  const uint8_t* weight = static_cast<const uint8_t*>(p.weight) + j * row_bytes;
  const float* x = p.x + i * p.k;
  Floats sums[R][W] = {};
  Few<W> rest[R] = {};
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t begin = g * p.group, end = std::min(p.k, begin + p.group);
    const float* scales = settings + 2 * W * g;
    Few<W> zeros;
    __builtin_memcpy(&zeros, scales + W, sizeof(zeros));
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) rest[r] += zeros * group_sums[(i + r) * groups + g];
    Floats part[kScaleSums ? W : 1] = {};
    int64_t c = begin;
    for (; c + kBlock <= end; c += kBlock)
#pragma GCC unroll 4
      for (int64_t b = 0; b < kBlock / 2; b += kLanes) {
        Floats low[R], high[R];
        prefetch(weight + W * (row_bytes + c / 2 + b));
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          load(low[r], x + r * p.k + c + b);
          load(high[r], x + r * p.k + c + kBlock / 2 + b);
        }
#pragma GCC unroll 4
        for (int w = 0; w < W; ++w) {
          Halves row = halves(weight + w * row_bytes + c / 2 + b);
          if constexpr (kScaleSums) {
            part[w] += row.low * low[0];
            part[w] += row.high * high[0];
          } else {
            row.low *= scales[w];
            row.high *= scales[w];
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) {
              sums[r][w] += row.low * low[r];
              sums[r][w] += row.high * high[r];
            }
          }
        }
      }
    for (int64_t t = 0, half = (end - c) / 2; t < half; ++t)
      for (int w = 0; w < W; ++w) {
        const int byte = weight[w * row_bytes + c / 2 + t];
        const float low = static_cast<float>(byte & 15) - 8 + kCentre,
                    high = static_cast<float>(byte >> 4) - 8 + kCentre;
        for (int r = 0; r < R; ++r)
          rest[r][w] += scales[w] * (x[r * p.k + c + t] * low + x[r * p.k + c + half + t] * high);
      }
    if constexpr (kScaleSums)
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) sums[0][w] += part[w] * scales[w];
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) p.y[(i + r) * p.n + j + w] = sum_of(sums[r][w]) + rest[r][w];
}

// A token, which reads most of a model: one row of x by kWeightRows of the weight, without zero points, in
// groups of whole blocks.
bool is_token(const WeightProduct& p) {
  return p.m == 1 && p.bits == 4 && !p.zeros && p.settings_dtype == DType::BFloat16 && p.k % kBlock == 0 &&
         p.group % kBlock == 0;
}
constexpr int64_t kScalesAtOnce = 8;
typedef uint16_t HalfScales __attribute__((vector_size(2 * kScalesAtOnce)));
typedef uint32_t WholeScales __attribute__((vector_size(4 * kScalesAtOnce)));

// kScalesAtOnce scales of a row, of which `count` there are.
[[gnu::always_inline]] inline void read_scales(const BFloat16* from, int64_t count, float* to) {
  if (count < kScalesAtOnce) {
    for (int64_t g = 0; g < count; ++g) to[g] = static_cast<float>(from[g]);
    return;
  }
  HalfScales halves;
  __builtin_memcpy(&halves, from, sizeof(halves));
  const WholeScales whole = __builtin_convertvector(halves, WholeScales) << 16;
  __builtin_memcpy(to, &whole, sizeof(whole));
}

[[gnu::noinline]] void token_products(const WeightProduct& p, const float* group_sums, int64_t j) {
  const int64_t row_bytes = p.k / 2, groups = (p.k + p.group - 1) / p.group;
  const auto* settings = static_cast<const BFloat16*>(p.settings) + j * groups;
  const uint8_t* weight = static_cast<const uint8_t*>(p.weight) + j * row_bytes;
  const uint8_t* next = weight + kWeightRows * row_bytes;
  const float* x = p.x;
  Floats sums[kWeightRows] = {};
  for (int64_t first = 0; first < groups; first += kScalesAtOnce) {
    const int64_t last = std::min(groups, first + kScalesAtOnce);
    float scales[kWeightRows][kScalesAtOnce];
    for (int w = 0; w < kWeightRows; ++w) read_scales(settings + w * groups + first, last - first, scales[w]);
    for (int64_t g = first; g < last; ++g) {
      Floats start = {}, part[kWeightRows];
      if constexpr (kCentre != 0) start[0] = -kCentre * group_sums[g];
#pragma GCC unroll 4
      for (int w = 0; w < kWeightRows; ++w) part[w] = start;
      for (int64_t left = std::min(p.group, p.k - g * p.group); left > 0; left -= kBlock, x += kBlock)
#pragma GCC unroll 4
        for (int64_t b = 0; b < kBlock / 2; b += kLanes, weight += kLanes, next += kWeightRows * kLanes) {
          Floats low, high;
          load(low, x + b);
          load(high, x + kBlock / 2 + b);
          unmix(low, high);
          prefetch(next);
#pragma GCC unroll 4
          for (int w = 0; w < kWeightRows; ++w) {
            const Halves row = mixed_halves(weight + w * row_bytes);
            part[w] += row.low * low;
            part[w] += row.high * high;
          }
        }
#pragma GCC unroll 4
      for (int w = 0; w < kWeightRows; ++w) sums[w] += part[w] * scales[w][g - first];
    }
  }
  for (int w = 0; w < kWeightRows; ++w) p.y[j + w] = sum_of(sums[w]);
}

// Four scales and their zero points, which lie in pairs, each together.
bool pairs_apart(const float* pairs, float* out) {
  static_assert(kWeightRows == 4);
  Few<4> left, right;
  __builtin_memcpy(&left, pairs, sizeof(left));
  __builtin_memcpy(&right, pairs + 4, sizeof(right));
  const Few<4> scales = __builtin_shufflevector(left, right, 0, 2, 4, 6),
               zeros = __builtin_shufflevector(left, right, 1, 3, 5, 7) - kCentre * scales;
  __builtin_memcpy(out, &scales, sizeof(scales));
  __builtin_memcpy(out + 4, &zeros, sizeof(zeros));
  return true;
}
bool pairs_apart(const BFloat16* pairs, float* out) {
  typedef uint32_t Bits __attribute__((vector_size(16)));
  Bits both;  // the scale in the low half of each
  __builtin_memcpy(&both, pairs, sizeof(both));
  const Bits low = both << 16, high = both & 0xffff0000u;
  const Few<4> scales = Few<4>(low), zeros = Few<4>(high) - kCentre * scales;
  __builtin_memcpy(out, &scales, sizeof(scales));
  __builtin_memcpy(out + 4, &zeros, sizeof(zeros));
  return true;
}
bool pairs_apart(const Half*, float*) { return false; }

// Scales, and for four bits zero points, group by group.
template <class T>
void read_settings(const WeightProduct& p, int64_t j, int count, float* out) {
  constexpr int64_t kAhead = 256 / sizeof(T);  // settings of a group lie rows apart from those of the next
  const T* from = static_cast<const T*>(p.settings);
  if (p.bits == 8) {
    for (int w = 0; w < count; ++w) out[w] = static_cast<float>(from[j + w]);
    return;
  }
  if (!p.zeros) {
    const int64_t groups = (p.k + p.group - 1) / p.group;
    for (int64_t g = 0; g < groups; ++g, out += 2 * count)
      for (int w = 0; w < count; ++w) {
        out[w] = static_cast<float>(from[(j + w) * groups + g]);
        out[count + w] = -kCentre * out[w];
      }
    return;
  }
  for (int64_t g = 0; g < (p.k + p.group - 1) / p.group; ++g, out += 2 * count) {
    const T* setting = from + (g * p.n + j) * 2;
    prefetch(setting + kAhead);
    if (count == kWeightRows && pairs_apart(setting, out)) continue;
    for (int w = 0; w < count; ++w) {
      out[w] = static_cast<float>(setting[2 * w]);
      out[count + w] = static_cast<float>(setting[2 * w + 1]) - kCentre * out[w];
    }
  }
}

// W rows of the weight, which stay in cache, by all of x.
template <int W>
[[gnu::noinline]] void weight_rows(const WeightProduct& p, const float* sums, float* scratch, int64_t j) {
  p.settings_dtype == DType::BFloat16  ? read_settings<BFloat16>(p, j, W, scratch)
  : p.settings_dtype == DType::Float16 ? read_settings<Half>(p, j, W, scratch)
                                       : read_settings<float>(p, j, W, scratch);
  int64_t i = 0;
  for (; i + kRows <= p.m; i += kRows)
    p.bits == 8 ? byte_products<kRows, W>(p, scratch, i, j) : half_products<kRows, W>(p, scratch, sums, i, j);
  for (; i < p.m; ++i)
    p.bits == 8 ? byte_products<1, W>(p, scratch, i, j) : half_products<1, W>(p, scratch, sums, i, j);
}

void products(const WeightProduct& p, const float* sums, float* scratch, int64_t begin, int64_t end) {
  int64_t j = begin;
  const bool token = is_token(p);
  for (; j + kWeightRows <= end; j += kWeightRows)
    token ? token_products(p, sums, j) : weight_rows<kWeightRows>(p, sums, scratch, j);
  for (; j < end; ++j) weight_rows<1>(p, sums, scratch, j);
}

template <class T>
void unpack_typed(const WeightProduct& p, int64_t row, float* out) {
  const T* settings = static_cast<const T*>(p.settings);
  if (p.bits == 8) {
    const int8_t* weight = static_cast<const int8_t*>(p.weight) + row * p.k;
    const auto scale = static_cast<float>(settings[row]);
    for (int64_t c = 0; c < p.k; ++c) out[c] = scale * static_cast<float>(weight[c]);
    return;
  }
  const uint8_t* weight = static_cast<const uint8_t*>(p.weight) + row * (p.k / 2);
  for (int64_t c = 0; c < p.k; c += kBlock) {
    const int64_t g = c / p.group;
    const T* setting = settings + (p.zeros ? (g * p.n + row) * 2 : row * ((p.k + p.group - 1) / p.group) + g);
    const auto scale = static_cast<float>(setting[0]), zero = p.zeros ? static_cast<float>(setting[1]) : 0;
    const int64_t half = std::min(kBlock, p.k - c) / 2;
    for (int64_t t = 0; t < half; ++t) {
      out[c + t] = static_cast<float>((weight[c / 2 + t] & 15) - 8) * scale + zero;
      out[c + half + t] = static_cast<float>((weight[c / 2 + t] >> 4) - 8) * scale + zero;
    }
  }
}

void unpack(const WeightProduct& p, int64_t row, float* out) {
  switch (p.settings_dtype) {
    case DType::BFloat16:
      return unpack_typed<BFloat16>(p, row, out);
    case DType::Float16:
      return unpack_typed<Half>(p, row, out);
    default:
      return unpack_typed<float>(p, row, out);
  }
}

}  // namespace

WeightKernels weight_kernels() { return {products, unpack}; }

}  // namespace rushlight::cpu::RL_ISA
