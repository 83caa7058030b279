#include "cpu/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/host/processor.h"
#include "cpu/random_blocks.h"
#include "cpu/random_draws.h"

namespace rushlight::cpu {

namespace {

using RandomTypes = Concat<TypeList<bool>, RealTypes>;

const RandomBlocks& blocks_for_this_processor() {
  static const RandomBlocks& chosen = []() -> const RandomBlocks& {
    switch (host::isa()) {
#if defined(RUSHLIGHT_WITH_AVX512)
      case host::Isa::kAvx512:
        return avx512::random_blocks;
#endif
#if defined(RUSHLIGHT_WITH_AVX2)
      case host::Isa::kAvx2:
        return avx2::random_blocks;
#endif
#if defined(RUSHLIGHT_WITH_NEON)
      case host::Isa::kNeon:
        return neon::random_blocks;
#endif
      default:
        return baseline::random_blocks;
    }
  }();
  return chosen;
}

constexpr int64_t kChunk = 1024;

// Calls f(offset, words, count) for pieces of n elements that take `words_each` random words each.
template <class F>
void in_chunks(int64_t n, int words_each, Generator& g, F f) {
  uint32_t words[kChunk];
  const int64_t most = kChunk / words_each;
  for (int64_t i = 0; i < n; i += most) {
    const int64_t count = std::min(most, n - i);
    g.fill({words, static_cast<size_t>(count * words_each)});
    f(i, words, count);
  }
}

// Unlocked: normals use it too.
void uniform_floats(float* out, int64_t n, float from, float to, Generator& g) {
  in_chunks(n, 1, g, [&](int64_t i, const uint32_t* words, int64_t count) {
    blocks_for_this_processor().uniform_float(words, out + i, count, from, to);
  });
}

void uniform_doubles(double* out, int64_t n, double from, double to, Generator& g) {
  in_chunks(n, 2, g, [&](int64_t i, const uint32_t* words, int64_t count) {
    blocks_for_this_processor().uniform_double(words, out + i, count, from, to);
  });
}

template <class T>
void uniform_reduced(T* out, int64_t n, double from, double to, Generator& g) {
  const T low(static_cast<float>(from)), high(static_cast<float>(to));
  float values[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    uniform_floats(values, count, static_cast<float>(from), static_cast<float>(to), g);
    for (int64_t j = 0; j < count; j++) {
      const T value(values[j]);
      out[i + j] = value.bits == high.bits ? low : value;
    }
  }
}

// The last 16 values of a tensor whose size is no multiple of 16 are drawn again, over the end of the last
// block.
template <class T, class Uniform, class Transform>
void normal_in_blocks(T* data, int64_t n, Uniform uniform, Transform transform) {
  uniform(data, n);
  transform(data, n / 16);
  if (n % 16 == 0) return;
  uniform(data + n - 16, 16);
  transform(data + n - 16, 1);
}

void normal_blocks(float* data, int64_t n, double mean, double std, Generator& g) {
  normal_in_blocks(
      data, n, [&](float* p, int64_t count) { uniform_floats(p, count, 0, 1, g); },
      [&](float* p, int64_t count) {
        blocks_for_this_processor().normal_float(p, count, static_cast<float>(mean), static_cast<float>(std));
      });
}

void normal_blocks(double* data, int64_t n, double mean, double std, Generator& g) {
  normal_in_blocks(
      data, n, [&](double* p, int64_t count) { uniform_doubles(p, count, 0, 1, g); },
      [&](double* p, int64_t count) { blocks_for_this_processor().normal_double(p, count, mean, std); });
}

// Block by block: unlike above nothing is drawn for the part of the last block that is made again.
template <class T>
void normal_blocks(T* data, int64_t n, double mean, double std, Generator& g) {
  float values[kChunk];
  auto piece = [&](T* out, int64_t count) {
    normal_blocks(values, count, mean, std, g);
    std::transform(values, values + count, out, [](float v) { return T(v); });
  };
  const int64_t whole = n / 16 * 16;
  for (int64_t i = 0; i < whole; i += kChunk) piece(data + i, std::min(kChunk, whole - i));
  if (n != whole) piece(data + n - 16, 16);
}

}  // namespace

void fill_uniform(RandomOut out, double from, double to, Generator& g) {
  std::lock_guard guard(g.mutex());
  visit_dtype(FloatTypes{}, out.dtype, "uniform_kernel_cpu", [&](auto tag) {
    using T = decltype(tag);
    T* data = static_cast<T*>(out.data);
    if constexpr (std::is_same_v<T, float>) {
      uniform_floats(data, out.n, static_cast<float>(from), static_cast<float>(to), g);
    } else if constexpr (std::is_same_v<T, double>) {
      uniform_doubles(data, out.n, from, to, g);
    } else {
      uniform_reduced(data, out.n, from, to, g);
    }
  });
}

void fill_normal(RandomOut out, double mean, double std, bool blocks, Generator& g) {
  if (!blocks || out.n < 16) {
    Draws draws(g);
    auto scale = blocks_for_this_processor().multiply_add;
    return fill_each(out, FloatTypes{}, "normal_kernel_cpu",
                     [&] { return scale(draws.normal(), std, mean); });
  }
  std::lock_guard guard(g.mutex());
  visit_dtype(FloatTypes{}, out.dtype, "normal_kernel_cpu",
              [&](auto tag) { normal_blocks(static_cast<decltype(tag)*>(out.data), out.n, mean, std, g); });
}

void fill_integers(RandomOut out, int64_t base, uint64_t range, Generator& g) {
  std::lock_guard guard(g.mutex());
  const auto ubase = static_cast<uint64_t>(base);  // wraps where signed addition would overflow
  visit_dtype(RandomTypes{}, out.dtype, "random_from_to_kernel_cpu", [&](auto tag) {
    using T = decltype(tag);
    T* data = static_cast<T*>(out.data);
    auto value = [&](uint64_t draw) { return convert<T>(static_cast<int64_t>(draw + ubase)); };
    // A remainder of 32 random bits is uneven by at most a sixteenth below this range.
    if (range < uint64_t{1} << 28) {
      in_chunks(out.n, 1, g,
                [&, r = static_cast<uint32_t>(range)](int64_t i, const uint32_t* words, int64_t count) {
                  for (int64_t j = 0; j < count; j++) data[i + j] = value(words[j] % r);
                });
    } else {
      for (int64_t i = 0; i < out.n; i++) data[i] = value(g.random64() % range);
    }
  });
}

void fill_integers(RandomOut out, Generator& g) {
  std::lock_guard guard(g.mutex());
  using Types = Concat<TypeList<bool, uint8_t, int8_t, int16_t, int32_t, int64_t>, FloatTypes>;
  auto below = [&](uint64_t limit, bool wide) {
    return [&g, limit, wide] { return static_cast<int64_t>((wide ? g.random64() : g.random()) % limit); };
  };
  visit_dtype(Types{}, out.dtype, "random_kernel_cpu", [&](auto tag) {
    using T = decltype(tag);
    constexpr bool kWide = std::is_same_v<T, int64_t> || std::is_same_v<T, double>;
    uint64_t limit = 2;
    if constexpr (std::is_same_v<T, Half>) {
      limit = (1 << 11) + 1;
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      limit = (1 << 8) + 1;
    } else if constexpr (std::is_floating_point_v<T>) {
      limit = (uint64_t{1} << std::numeric_limits<T>::digits) + 1;
    } else if constexpr (!std::is_same_v<T, bool>) {
      limit = static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
    }
    fill_each(out, TypeList<T>{}, "random_kernel_cpu", below(limit, kWide));
  });
}

void fill_integers64(RandomOut out, Generator& g) {
  RL_CHECK(out.dtype == DType::Int64 || (is_floating(out.dtype) && out.dtype != DType::Float16),
           "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
  std::lock_guard guard(g.mutex());
  fill_each(out, TypeList<int64_t, double, float, BFloat16>{}, "random_full_64_bits_range_kernel_cpu",
            [&] { return static_cast<int64_t>(g.random64()); });
}

void fill_bernoulli(RandomOut out, double p, Generator& g) {
  std::lock_guard guard(g.mutex());
  const auto limit = static_cast<uint64_t>(std::ceil(p * 0x1p53));  // draw * 2^-53 < p, in integers
  visit_dtype(RandomTypes{}, out.dtype, "bernoulli_scalar_cpu_", [&](auto tag) {
    using T = decltype(tag);
    T* data = static_cast<T*>(out.data);
    in_chunks(out.n, 2, g, [&](int64_t i, const uint32_t* words, int64_t count) {
      for (int64_t j = 0; j < count; j++) {
        const uint64_t draw = (static_cast<uint64_t>(words[2 * j]) << 32 | words[2 * j + 1]) & kDoubleBits;
        data[i + j] = convert<T>(draw < limit);
      }
    });
  });
}

void fill_bernoulli(RandomOut out, DType p_dtype, const void* p, Generator& g) {
  std::lock_guard guard(g.mutex());
  visit_dtype(TypeList<float, double>{}, p_dtype, "bernoulli_tensor_cpu_p_", [&]<class P>(P) {
    visit_dtype(RandomTypes{}, out.dtype, "bernoulli_tensor_cpu_self_", [&]<class T>(T) {
      constexpr bool kLong = std::is_same_v<P, double>;
      const T values[] = {convert<T>(false), convert<T>(true)};  // a branch would go wrong half of the time
      T* data = static_cast<T*>(out.data);
      in_chunks(out.n, kLong ? 2 : 1, g, [&](int64_t i, const uint32_t* words, int64_t count) {
        const P* limits = static_cast<const P*>(p) + i;
        for (int64_t j = 0; j < count; ++j) {
          RL_CHECK(limits[j] >= 0 && limits[j] <= 1,
                   "bernoulli: expected every p to be in [0, 1], but got p=", limits[j]);
          P draw;
          if constexpr (kLong)
            draw = unit_double(static_cast<uint64_t>(words[2 * j]) << 32 | words[2 * j + 1]);
          else
            draw = static_cast<float>(words[j] & 0xffffff) * 0x1p-24f;
          data[i + j] = values[draw < limits[j]];
        }
      });
    });
  });
}

void fill_exponential(RandomOut out, double lambda, Generator& g) {
  Draws draws(g);
  fill_each(out, FloatTypes{}, "exponential_cpu",
            [&] { return -1.0 / lambda * std::log1p(-draws.uniform()); });
}

void fill_cauchy(RandomOut out, double median, double sigma, Generator& g) {
  Draws draws(g);
  auto scale = blocks_for_this_processor().multiply_add;
  fill_each(out, FloatTypes{}, "cauchy_cpu",
            [&] { return scale(sigma, std::tan(std::numbers::pi * (draws.uniform() - 0.5)), median); });
}

void fill_log_normal(RandomOut out, double mean, double std, Generator& g) {
  Draws draws(g);
  auto scale = blocks_for_this_processor().multiply_add;
  fill_each(out, FloatTypes{}, "log_normal_cpu", [&] { return std::exp(scale(draws.normal(), std, mean)); });
}

void fill_geometric(RandomOut out, double p, Generator& g) {
  Draws draws(g);
  const double log_failure = std::log1p(-p);
  fill_each(out, RealTypes{}, "geometric_cpu",
            [&] { return std::ceil(std::log(draws.uniform()) / log_failure); });
}

void fill_permutation(RandomOut out, Generator& g) {
  using Types = Concat<TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>, FloatTypes>;
  std::lock_guard guard(g.mutex());
  visit_dtype(Types{}, out.dtype, "randperm", [&](auto tag) {
    using T = decltype(tag);
    T* data = static_cast<T*>(out.data);
    for (int64_t i = 0; i < out.n; i++) data[i] = convert<T>(i);
    const bool wide =
        out.n >= static_cast<int64_t>(UINT32_MAX / 20);  // where 32 bits would favour low indices
    for (int64_t i = 0; i < out.n - 1; i++) {
      const auto rest = static_cast<uint64_t>(out.n - i);
      std::swap(data[i], data[i + static_cast<int64_t>((wide ? g.random64() : g.random()) % rest)]);
    }
  });
}

}  // namespace rushlight::cpu
