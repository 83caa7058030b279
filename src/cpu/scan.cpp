#include "cpu/scan.h"

#include <bit>
#include <cmath>
#include <complex>

#include "cpu/arg_extreme.h"
#include "cpu/copy.h"
#include "cpu/lines.h"
#include "cpu/order_key.h"
#include "cpu/reduce.h"
#include "cpu/repeated_lines.h"
#include "cpu/width.h"

namespace rushlight::cpu {
namespace {

// Sums of floats run in double, as PyTorch's do on the CPU.
template <class T>
using RunningType = std::conditional_t<std::is_same_v<T, float>, double, compute_type<T>>;

// Adjacent lines run together, one row of elements at a time.
template <class T, class Step>
void scan_columns(const T* in, T* out, int64_t n, int64_t width, RunningType<T> start, Step step) {
  constexpr int64_t kBlock = 128;
  for (int64_t first = 0; first < width; first += kBlock) {
    const int64_t columns = std::min(kBlock, width - first);
    RunningType<T> running[kBlock];
    std::fill_n(running, columns, start);
    for (int64_t i = 0; i < n; ++i) {
      const T* from = in + i * width + first;
      T* to = out + i * width + first;
      for (int64_t j = 0; j < columns; ++j)
        to[j] = static_cast<T>(running[j] = step(running[j], static_cast<RunningType<T>>(from[j])));
    }
  }
}

// Lines that follow each other, several at a time: the steps of one line wait for each other.
template <int64_t kLines, class T, class Step>
void scan_lines(const T* in, T* out, int64_t n, RunningType<T> start, Step step) {
  RunningType<T> running[kLines];
  std::fill_n(running, kLines, start);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
    for (int64_t l = 0; l < kLines; ++l)
      out[l * n + i] =
          static_cast<T>(running[l] = step(running[l], static_cast<RunningType<T>>(in[l * n + i])));
}

// One of few lines, whose running type is wider than its elements: four steps are combined before they meet
// what came before, so that a sum waits for the one four elements back. `step` is associative but for
// rounding, which the wider type takes.
template <class T, class Step>
void scan_ahead(const T* in, T* out, int64_t n, RunningType<T> start, Step step) {
  using A = RunningType<T>;
  A running = start;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const A a = in[i], b = step(a, static_cast<A>(in[i + 1])), c = static_cast<A>(in[i + 2]),
            d = step(c, static_cast<A>(in[i + 3]));
    out[i] = static_cast<T>(step(running, a));
    out[i + 1] = static_cast<T>(step(running, b));
    out[i + 2] = static_cast<T>(step(running, step(b, c)));
    running = step(running, step(b, d));
    out[i + 3] = static_cast<T>(running);
  }
  for (; i < n; ++i) out[i] = static_cast<T>(running = step(running, static_cast<A>(in[i])));
}

template <bool kAssociative, class T, class Step>
void scan(const Tensor& in, int64_t dim, const Tensor& out, RunningType<T> start, Step step) {
  const int64_t n = line_length(in, dim);
  if (in.device().is_meta()) return;
  int64_t width = 1;
  for (int64_t d = dim + 1; d < in.dim() && in.is_contiguous(); ++d) width *= in->sizes[d];
  if (width > 1) {
    const int64_t block = n * width;
    return parallel_for(
        0, in.numel() / block, std::max<int64_t>(1, kGrainSize / block), [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b)
            scan_columns(in.data<T>() + b * block, out.data<T>() + b * block, n, width, start, step);
        });
  }
  // Lines that follow each other are found by a multiplication, which short ones notice.
  if (in.is_contiguous() && out.is_contiguous() && n > 0)
    return parallel_for(0, in.numel() / n, std::max<int64_t>(1, kGrainSize / n),
                        [&](int64_t begin, int64_t end) {
                          constexpr int64_t kTogether = std::is_integral_v<T> ? 1 : 4;
                          const T* from = in.data<T>();
                          T* to = out.data<T>();
                          int64_t l = begin;
                          if constexpr (kAssociative && std::is_same_v<T, float>)
                            for (; in.numel() < kTogether * n && l < end; ++l)
                              scan_ahead(from + l * n, to + l * n, n, start, step);
                          for (; l + kTogether <= end; l += kTogether)
                            scan_lines<kTogether>(from + l * n, to + l * n, n, start, step);
                          for (; l < end; ++l) scan_lines<1>(from + l * n, to + l * n, n, start, step);
                        });
  for_each_line<2>({&in, &out}, dim, [&](const auto& at) {
    const auto from = line_of<const T>(in, dim, at[0]);
    const auto to = line_of<T>(out, dim, at[1]);
    auto running = start;
    for (int64_t i = 0; i < n; ++i)
      to[i] = static_cast<T>(running = step(running, static_cast<RunningType<T>>(from[i])));
  });
}

using ScanTypes = Concat<TypeList<int64_t, int32_t, int16_t, int8_t, uint8_t>, FloatTypes, ComplexTypes>;

template <class A>
A log_add_exp(A a, A b) {
  if (a == b && std::isinf(a)) return a;
  const A top = a > b || a != a ? a : b;
  return a != a || b != b ? a + b : top + std::log1p(std::exp(-std::abs(a - b)));
}
template <class R>
std::complex<R> log_add_exp(std::complex<R> a, std::complex<R> b) {
  const auto no_number = [](std::complex<R> z) { return std::isnan(z.real()) || std::isnan(z.imag()); };
  if (no_number(a) || no_number(b))
    return {std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::quiet_NaN()};
  const bool falls = b.real() < a.real();
  const std::complex<R> low = falls ? b : a, top = falls ? a : b;
  if (low.real() == top.real() && std::isinf(low.real()))  // of exp(-inf) the angle does not matter
    return low.real() < 0 ? a : std::log(std::exp(a) + std::exp(b));
  const std::complex<R> step = low - top;
  const R size = std::exp(step.real());
  if (size == 0) return top;
  const R x = size * std::cos(step.imag()), y = size * std::sin(step.imag());
  // log(1 + x + iy); |1 + z|^2 - 1 = x (2 + x) + y^2 keeps the digits of small numbers.
  return top + std::complex<R>(std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x));
}

// Halves as floats, whose conversions of many are vectors; false for other types.
bool by_float(const Tensor& in, int64_t dim, const Tensor& out,
              void (*scan)(const Tensor& in, int64_t dim, const Tensor& out)) {
  if (in.dtype() != DType::Float16 || in.device().is_meta()) return false;
  const Tensor wide = empty_tensor(in.sizes(), DType::Float32),
               sums = empty_tensor(in.sizes(), DType::Float32);
  copy(wide, in);
  scan(wide, dim, sums);
  copy(out, sums);
  return true;
}

}  // namespace

void cumsum(const Tensor& in, int64_t dim, const Tensor& out) {
  if (by_float(in, dim, out, cumsum)) return;
  visit_dtype(ScanTypes{}, in.dtype(), "cumsum_out_cpu", [&]<class T>(T) {
    scan<true, T>(in, dim, out, RunningType<T>(0),
                  [](auto a, auto x) { return static_cast<decltype(a)>(a + x); });
  });
}

void cumprod(const Tensor& in, int64_t dim, const Tensor& out) {
  if (by_float(in, dim, out, cumprod)) return;
  visit_dtype(ScanTypes{}, in.dtype(), "cumprod_out_cpu", [&]<class T>(T) {
    scan<true, T>(in, dim, out, RunningType<T>(1),
                  [](auto a, auto x) { return static_cast<decltype(a)>(a * x); });
  });
}

void logcumsumexp(const Tensor& in, int64_t dim, const Tensor& out) {
  if (by_float(in, dim, out, logcumsumexp)) return;
  visit_dtype(Concat<FloatTypes, ComplexTypes>{}, in.dtype(), "logcumsumexp_out_cpu", [&]<class T>(T) {
    using A = RunningType<T>;
    using R = decltype(std::real(A()));
    scan<false, T>(in, dim, out, A(-std::numeric_limits<R>::infinity()),
                   [](A a, A x) { return log_add_exp(a, x); });
  });
}

namespace {

// Whether x takes the place of the extreme so far: later ones of equal value do, and the first NaN stays
// until another comes.
template <class T, bool kLargest>
bool takes_over(T x, T extreme) {
  const auto a = static_cast<compute_type<T>>(x), b = static_cast<compute_type<T>>(extreme);
  if constexpr (is_floating_v<T>)
    return (a != a) | ((b == b) & (kLargest ? a >= b : a <= b));
  else
    return kLargest ? a >= b : a <= b;
}

// Extremes change seldom in most lines: a block in which none does is looked at, and filled, as a whole.
template <class T, bool kLargest>
void extremes_of_line(const T* x, int64_t n, T* values, int64_t* indices) {
  constexpr int64_t kBlock = 16;
  T best = x[0];
  int64_t position = 0;
  const auto changes = [&](const T* block) {
    int over = 0;
    // As takes_over() but where the extreme is NaN, of which one comparison fails whatever it meets.
    for (int64_t j = 0; j < kBlock; ++j) over |= !(kLargest ? block[j] < best : block[j] > best);
    return over != 0;
  };
  for (int64_t first = 0; first < n; first += kBlock) {
    if (first + kBlock <= n && !changes(x + first)) {
      std::fill_n(values + first, kBlock, best);
      std::fill_n(indices + first, kBlock, position);
      continue;
    }
    for (int64_t i = first; i < std::min(n, first + kBlock); ++i) {
      const bool over = takes_over<T, kLargest>(x[i], best);  // by bits: a branch would go wrong among equals
      best = over ? x[i] : best, position ^= (position ^ i) & -static_cast<int64_t>(over);
      values[i] = best, indices[i] = position;
    }
  }
}

// What takes_over() asks of halves, in one comparison: whole numbers of which the greatest is the extreme.
// NaN is greater than any, and zeros are equal.
template <bool kLargest, class T>
int key_of_half(T x) {
  constexpr int kInfinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
  const int magnitude = x.bits & 0x7fff;
  const int number = (x.bits >> 15) != !kLargest ? -magnitude : magnitude;
  return magnitude > kInfinity ? 0x7fff : number;
}
template <class T, bool kLargest>
void extremes_of_halves(const T* x, int64_t n, T* values, int64_t* indices) {
  constexpr int64_t kBlock = 16;
  T best = x[0];
  int best_key = key_of_half<kLargest>(best), keys[kBlock];
  int64_t position = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    if (count == kBlock) {  // of known length, by vectors
      int any = 0;
      for (int64_t j = 0; j < kBlock; ++j) keys[j] = key_of_half<kLargest>(x[first + j]);
      for (int64_t j = 0; j < kBlock; ++j) any |= keys[j] >= best_key;
      if (!any) {
        std::fill_n(values + first, kBlock, best);
        std::fill_n(indices + first, kBlock, position);
        continue;
      }
    } else {
      for (int64_t j = 0; j < count; ++j) keys[j] = key_of_half<kLargest>(x[first + j]);
    }
    for (int64_t j = 0; j < count; ++j) {
      const bool over = keys[j] >= best_key;
      best_key = over ? keys[j] : best_key, best = over ? x[first + j] : best;
      position ^= (position ^ (first + j)) & -static_cast<int64_t>(over);
      values[first + j] = best, indices[first + j] = position;
    }
  }
}

// Lines of whole numbers, which often repeat the extreme: several at a time, for the steps of one wait for
// each other.
template <int64_t kLines, class T, bool kLargest>
void extremes_of_lines(const T* x, int64_t n, T* values, int64_t* indices) {
  T best[kLines];
  int64_t position[kLines] = {};
  for (int64_t l = 0; l < kLines; ++l) best[l] = x[l * n];
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
    for (int64_t l = 0; l < kLines; ++l) {
      const T value = x[l * n + i];
      const bool over = takes_over<T, kLargest>(value, best[l]);
      best[l] = over ? value : best[l];
      position[l] ^= (position[l] ^ i) & -static_cast<int64_t>(over);
      values[l * n + i] = best[l], indices[l * n + i] = position[l];
    }
}

// What takes_over() asks of floats: whole numbers of which the greatest is the extreme, as key_of_half().
template <bool kLargest, class T>
auto key_of_float(T x) {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  constexpr Bits kAll = std::numeric_limits<Bits>::max();
  const Bits bits = std::bit_cast<Bits>(x), magnitude = bits & kAll;
  const Bits number = (bits < 0) != !kLargest ? -magnitude : magnitude;
  return magnitude > std::bit_cast<Bits>(std::numeric_limits<T>::infinity()) ? kAll : number;
}

// Short lines of floats, in which the extreme is often young: four at a time, by keys and bits.
constexpr int64_t kFloatLines = 4;
template <class T, bool kLargest>
void extremes_of_short_lines(const T* x, int64_t n, T* values, int64_t* indices) {
  using Bits = decltype(key_of_float<kLargest>(T{}));
  Bits best[kFloatLines], key[kFloatLines];
  int64_t position[kFloatLines] = {};
  for (int64_t l = 0; l < kFloatLines; ++l)
    best[l] = std::bit_cast<Bits>(x[l * n]), key[l] = key_of_float<kLargest>(x[l * n]);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
    for (int64_t l = 0; l < kFloatLines; ++l) {
      const T value = x[l * n + i];
      const Bits now = key_of_float<kLargest>(value);
      const bool over = now >= key[l];
      key[l] = over ? now : key[l], best[l] = over ? std::bit_cast<Bits>(value) : best[l];
      position[l] ^= (position[l] ^ i) & -static_cast<int64_t>(over);
      values[l * n + i] = std::bit_cast<T>(best[l]), indices[l * n + i] = position[l];
    }
}

// Adjacent lines together, a row of elements at a time.
template <class T, bool kLargest>
void extremes_of_columns(const T* x, int64_t n, int64_t width, T* values, int64_t* indices) {
  constexpr int64_t kBlock = 128;
  for (int64_t first = 0; first < width; first += kBlock) {
    const int64_t columns = std::min(kBlock, width - first);
    int64_t position[kBlock] = {};
    for (int64_t i = 0; i < n; ++i) {
      const T* from = x + i * width + first;
      T* to = values + i * width + first;
      int64_t* where = indices + i * width + first;
      for (int64_t j = 0; j < columns; ++j) {
        const T before = i ? to[j - width] : from[j];
        const bool over = takes_over<T, kLargest>(from[j], before);
        to[j] = over ? from[j] : before;
        where[j] = position[j] = over ? i : position[j];
      }
    }
  }
}

// Contiguous tensors, in slabs of lines that lie side by side.
template <class T, bool kLargest>
void extremes_of_slabs(const Tensor& in, int64_t n, int64_t width, const Tensor& values,
                       const Tensor& indices) {
  const int64_t slab = n * width;
  parallel_for(0, in.numel() / slab, std::max<int64_t>(1, kGrainSize / slab),
               [&](int64_t begin, int64_t end) {
                 for (int64_t s = begin; s < end; ++s) {
                   const T* x = in.data<T>() + s * slab;
                   T* v = values.data<T>() + s * slab;
                   int64_t* where = indices.data<int64_t>() + s * slab;
                   if constexpr (std::is_integral_v<T>) {
                     constexpr int64_t kLines = 2;
                     if (width == 1 && s + kLines <= end) {
                       extremes_of_lines<kLines, T, kLargest>(x, n, v, where);
                       s += kLines - 1;
                       continue;
                     }
                   }
                   if constexpr (std::is_floating_point_v<T>) {
                     constexpr int64_t kShort = 128;
                     if (width == 1 && n <= kShort && s + kFloatLines <= end) {
                       extremes_of_short_lines<T, kLargest>(x, n, v, where);
                       s += kFloatLines - 1;
                       continue;
                     }
                   }
                   if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>)
                     if (width == 1) {
                       extremes_of_halves<T, kLargest>(x, n, v, where);
                       continue;
                     }
                   if (width == 1)
                     extremes_of_line<T, kLargest>(x, n, v, where);
                   else
                     extremes_of_columns<T, kLargest>(x, n, width, v, where);
                 }
               });
}

}  // namespace

void cumulative_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                        const Tensor& indices) {
  if (run_without_repeats(in, dim, values, indices,
                          [&](const Tensor& once, const Tensor& v, const Tensor& i) {
                            cumulative_extreme(once, dim, largest, v, i);
                          }))
    return;
  const int64_t n = line_length(in, dim);
  const bool slabs = in.is_contiguous() && values.is_contiguous() && indices.is_contiguous() &&
                     !in.device().is_meta() && in.numel() > 0;
  int64_t width = 1;
  for (int64_t d = dim + 1; d < in.dim(); ++d) width *= in->sizes[d];
  visit_dtype(Concat<TypeList<bool>, RealTypes>{}, in.dtype(), largest ? "cummax_cpu" : "cummin_cpu",
              [&]<class T>(T) {
                if (slabs && largest) return extremes_of_slabs<T, true>(in, n, width, values, indices);
                if (slabs) return extremes_of_slabs<T, false>(in, n, width, values, indices);
                for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
                  const auto x = line_of<const T>(in, dim, at[0]);
                  const auto v = line_of<T>(values, dim, at[1]);
                  const auto where = line_of<int64_t>(indices, dim, at[2]);
                  T best = x[0];
                  int64_t position = 0;
                  for (int64_t i = 0; i < n; ++i) {
                    const auto a = static_cast<compute_type<T>>(x[i]), b = static_cast<compute_type<T>>(best);
                    if (is_nan(a) || (!is_nan(b) && (largest ? a >= b : a <= b))) best = x[i], position = i;
                    v[i] = best, where[i] = position;
                  }
                });
              });
}

namespace {

template <class T>
int64_t find_extreme(Line<const T> x, int64_t n, bool largest) {
  using A = compute_type<T>;
  int64_t position = 0;
  A best = static_cast<A>(x[0]);
  for (int64_t i = 1; i < n && !is_nan(best); ++i) {
    const A a = static_cast<A>(x[i]);
    if (is_nan(a) || (largest ? a > best : a < best)) best = a, position = i;
  }
  return position;
}

// Contiguous lines: the vectorised extreme, then the first element that equals it.
template <class T>
int64_t find_extreme_fast(const T* x, int64_t n, const ReduceKernel& kernel) {
  using A = compute_type<T>;
  T found;
  kernel.flat(x, n, &found, {});
  const A best = static_cast<A>(found);
  int64_t i = 0;
  if (is_nan(best))
    while (!is_nan(static_cast<A>(x[i]))) ++i;
  else
    while (static_cast<A>(x[i]) != best) ++i;
  return i;
}

}  // namespace

namespace {

// All lines at once where they lie side by side; false elsewhere.
bool arg_extreme_by_columns(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                            const Tensor& indices) {
  const int64_t n = line_length(in, dim);
  const ArgExtremeColumns columns = arg_extreme_columns(in.dtype(), largest);
  if (!columns || in.dim() < 2 || !in.is_contiguous() || !values.is_contiguous() ||
      !indices.is_contiguous() || in.device().is_meta() || n >= (int64_t{1} << 31))
    return false;
  int64_t width = 1;  // not the stride, which means nothing where the dimension has one element
  for (int64_t d = dim + 1; d < in.dim(); ++d) width *= in->sizes[d];
  const int64_t item = static_cast<int64_t>(in.itemsize());
  if (width < 4 || in.numel() == 0) return false;
  constexpr int64_t kBlock = 128;
  const int64_t blocks = (width + kBlock - 1) / kBlock, outer = in.numel() / (n * width);
  parallel_for(0, outer * blocks, std::max<int64_t>(1, kGrainSize / (n * kBlock)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t first = i % blocks * kBlock, slab = i / blocks, at = slab * width + first;
                   columns(in.data<char>() + (slab * n * width + first) * item, n, width,
                           std::min(kBlock, width - first), values.data<char>() + at * item,
                           indices.data<int64_t>() + at);
                 }
               });
  return true;
}

// Short lines one after the other: turned by blocks, so that they lie side by side.
bool arg_extreme_of_short_lines(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                                const Tensor& indices) {
  constexpr int64_t kShort = 16, kBlock = 128;
  const int64_t n = line_length(in, dim), lines = in.numel() / n;
  const ArgExtremeColumns columns = arg_extreme_columns(in.dtype(), largest);
  if (!columns || n > kShort || lines < kBlock / 4 || in.dim() == 0 || in->strides[dim] != 1 ||
      !in.is_contiguous() || !values.is_contiguous() || !indices.is_contiguous() || in.device().is_meta())
    return false;
  visit_width(in.itemsize(), [&]<class T>(T) {
    const auto* from = static_cast<const T*>(in.data_ptr());
    auto* to = static_cast<T*>(values.data_ptr());
    parallel_for(0, lines, std::max<int64_t>(1, kGrainSize / n), [&](int64_t begin, int64_t end) {
      T turned[kShort * kBlock];
      for (int64_t first = begin; first < end; first += kBlock) {
        const int64_t count = std::min(kBlock, end - first);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < count; ++j) turned[i * kBlock + j] = from[(first + j) * n + i];
        columns(turned, n, kBlock, count, to + first, indices.data<int64_t>() + first);
      }
    });
  });
  return true;
}

}  // namespace

bool take_lines_of_one(const Tensor& in, int64_t dim, const Tensor& values, const Tensor& indices) {
  if (in.dim() == 0 || in->sizes[dim] != 1 || values.sizes() != in.sizes() ||
      !is_non_overlapping_and_dense(indices) || in.device().is_meta())
    return false;
  copy(values, in);
  clear(indices.data_ptr(), static_cast<size_t>(indices.numel()) * sizeof(int64_t));
  return true;
}

void arg_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values, const Tensor& indices) {
  if (take_lines_of_one(in, dim, values, indices)) return;
  if (arg_extreme_by_columns(in, dim, largest, values, indices)) return;
  if (arg_extreme_of_short_lines(in, dim, largest, values, indices)) return;
  const int64_t n = line_length(in, dim);
  const char* name = largest ? "max" : "min";
  visit_dtype(Concat<TypeList<bool>, RealTypes>{}, in.dtype(), name, [&]<class T>(T) {
    const ReduceKernel& kernel = reduce_kernel(largest ? ReduceOp::Max : ReduceOp::Min, in.dtype(), name);
    const ArgExtremeLine fast = arg_extreme_line(in.dtype(), largest);
    for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
      const auto x = line_of<const T>(in, dim, at[0]);
      const int64_t found = x.stride != 1 || (n < 32 && !fast) ? find_extreme<T>(x, n, largest)
                            : fast                             ? fast(x.data, n)
                                                               : find_extreme_fast(x.data, n, kernel);
      static_cast<T*>(values.data_ptr())[at[1]] = x[found];
      indices.data<int64_t>()[at[2]] = found;
    });
  });
}

}  // namespace rushlight::cpu
