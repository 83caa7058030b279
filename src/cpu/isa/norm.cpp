// Normalisation loops, compiled for each instruction set.
#include "cpu/norm.h"

#include <cmath>
#include <memory>

#include "core/parallel.h"
#include "cpu/isa/norm_halves_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Sum of f(0) ... f(n - 1): lanes of C in blocks, blocks in double.
template <class C, class F>
inline double sum_of(int64_t n, F&& f) {
  constexpr int64_t kLanes = 16, kBlock = 2048;
  double total = 0;
  int64_t i = 0;
  while (n - i >= kLanes) {
    const int64_t stop = i + std::min(kBlock, (n - i) / kLanes * kLanes);
    C lane[kLanes] = {};
    for (; i < stop; i += kLanes)
      for (int64_t j = 0; j < kLanes; ++j) lane[j] += f(i + j);
    C block = 0;
    for (C v : lane) block += v;
    total += block;
  }
  for (; i < n; ++i) total += f(i);
  return total;
}

template <class C>
C at_or(const C* p, int64_t i, C otherwise) {
  return p ? p[i] : otherwise;
}

template <class C, class T>
std::pair<C, C> row_moments(const T* x, int64_t n, double eps, bool rms) {
  const C mean = rms ? C(0)
                     : static_cast<C>(sum_of<C>(n, [&](int64_t i) { return static_cast<C>(x[i]); }) /
                                      static_cast<double>(n));
  const double squares = sum_of<C>(n, [&](int64_t i) {
    const C d = static_cast<C>(x[i]) - mean;
    return d * d;
  });
  return {mean, static_cast<C>(1 / std::sqrt(squares / static_cast<double>(n) + eps))};
}

template <class T>
void rows(int64_t count, int64_t n, const NormArguments& a, bool rms) {
  if constexpr (std::is_same_v<T, Half>)
    return by_pieces(count, n, [&](int64_t first, int64_t some, const Room& room) {
      room.with_floats(a, first * n, some * n, [&](NormArguments wide) {
        wide.mean = after(a.mean, first), wide.rstd = after(a.rstd, first);
        rows<float>(some, n, wide, rms);
      });
    });
  using C = compute_type<T>;
  const auto *weight = static_cast<const C*>(a.weight), *bias = static_cast<const C*>(a.bias);
  auto *means = static_cast<C*>(a.mean), *rstds = static_cast<C*>(a.rstd);
  parallel_for(0, count, row_grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = static_cast<const T*>(a.x) + r * n;
      T* y = static_cast<T*>(a.y) + r * n;
      const auto [mean, rstd] = row_moments<C>(x, n, a.eps, rms);
      if (means) means[r] = mean;
      if (rstds) rstds[r] = rstd;
      const C m = mean, s = rstd;
      if (weight && bias)
        for (int64_t i = 0; i < n; ++i) y[i] = T((static_cast<C>(x[i]) - m) * s * weight[i] + bias[i]);
      else
        for (int64_t i = 0; i < n; ++i)
          y[i] = T((static_cast<C>(x[i]) - m) * s * at_or(weight, i, C(1)) + at_or(bias, i, C(0)));
    }
  });
}

// The gradient of a row: what normalisation leaves of it, given the factor of each element.
template <class T, class C, class Weight>
[[gnu::always_inline]] inline void row_gradient(const T* g, const T* x, int64_t n, C mean, C rstd, bool rms,
                                                Weight weight, T* out) {
  auto scaled = [&](int64_t i) { return static_cast<C>(g[i]) * weight(i); };
  auto centred = [&](int64_t i) { return (static_cast<C>(x[i]) - mean) * rstd; };
  const auto width = static_cast<double>(n);
  const C sum = rms ? C(0) : static_cast<C>(sum_of<C>(n, scaled) / width);
  const C product = static_cast<C>(sum_of<C>(n, [&](int64_t i) { return scaled(i) * centred(i); }) / width);
  for (int64_t i = 0; i < n; ++i) out[i] = T(rstd * (scaled(i) - sum - centred(i) * product));
}

// Gradients of `kBlock` weights and biases from `from` on: a few rows in C, all of them in double.
template <class T, int64_t kBlock>
void parameter_gradients(int64_t count, int64_t n, int64_t from, const NormGradients& a, bool rms) {
  using C = compute_type<T>;
  constexpr int64_t kRows = 32;
  const int64_t width = std::min(kBlock, n - from), some = std::max<int64_t>(1, kBlock / width);
  const auto *grad = static_cast<const T*>(a.grad) + from, *input = static_cast<const T*>(a.x) + from;
  double weights[kBlock] = {}, biases[kBlock] = {};
  const Lines<T> grads(some * width), inputs(some * width);
  for (int64_t first = 0; first < count; first += kRows) {
    C some_weights[kBlock] = {}, some_biases[kBlock] = {};
    const int64_t last = std::min(first + kRows, count);
    Rows<typename Lines<T>::Element> some_g{}, some_x{};
    for (int64_t r = first, place = some; r < last; ++r, ++place) {
      if (place == some) {
        place = 0;
        some_g = grads.read_rows(grad + r * n, std::min(some, last - r), n, width);
        some_x = inputs.read_rows(input + r * n, std::min(some, last - r), n, width);
      }
      const auto *g = some_g.at(place), *x = some_x.at(place);
      const C mean = rms ? C(0) : static_cast<const C*>(a.mean)[r], rstd = static_cast<const C*>(a.rstd)[r];
      for (int64_t i = 0; i < width; ++i) {
        const C value = static_cast<C>(g[i]);
        some_weights[i] += value * ((static_cast<C>(x[i]) - mean) * rstd);
        some_biases[i] += value;
      }
    }
    for (int64_t i = 0; i < width; ++i) weights[i] += some_weights[i], biases[i] += some_biases[i];
  }
  auto *grad_weight = static_cast<C*>(a.grad_weight), *grad_bias = static_cast<C*>(a.grad_bias);
  for (int64_t i = 0; i < width; ++i) {
    if (grad_weight) grad_weight[from + i] = static_cast<C>(weights[i]);
    if (grad_bias) grad_bias[from + i] = static_cast<C>(biases[i]);
  }
}

template <class T>
void rows_backward(int64_t count, int64_t n, const NormGradients& a, bool rms) {
  using C = compute_type<T>;
  const auto *grad = static_cast<const T*>(a.grad), *input = static_cast<const T*>(a.x);
  const auto *weight = static_cast<const C*>(a.weight), *means = static_cast<const C*>(a.mean),
             *rstds = static_cast<const C*>(a.rstd);
  auto mean_of = [&](int64_t r) { return rms ? C(0) : means[r]; };
  if constexpr (std::is_same_v<T, Half>) {
    if (a.grad_x)
      by_pieces(count, n, [&](int64_t first, int64_t some, const Room& room) {
        room.with_floats(a, first * n, some * n, [&](NormGradients wide) {
          wide.mean = after(a.mean, first), wide.rstd = after(a.rstd, first);
          wide.grad_weight = wide.grad_bias = nullptr;
          rows_backward<float>(some, n, wide, rms);
        });
      });
  } else if (a.grad_x) {
    parallel_for(0, count, row_grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *g = grad + r * n, *x = input + r * n;
        T* out = static_cast<T*>(a.grad_x) + r * n;
        if (weight)
          row_gradient(g, x, n, mean_of(r), rstds[r], rms, [=](int64_t i) { return weight[i]; }, out);
        else
          row_gradient(g, x, n, mean_of(r), rstds[r], rms, [](int64_t) { return C(1); }, out);
      }
    });
  }
  if (!a.grad_weight && !a.grad_bias) return;
  constexpr int64_t kBlock = 256;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  parallel_for(0, blocks, std::max<int64_t>(1, kGrainSize / (kBlock * std::max<int64_t>(count, 1))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block)
                   parameter_gradients<T, kBlock>(count, n, block * kBlock, a, rms);
               });
}

// Two sums over each channel: f(x index, channel, first, second) gives the terms of one element. inner == 1:
// channels last.
template <class C, class F, class Done>
void channel_sums(ChannelShape s, F&& terms, Done&& done) {
  if (s.inner > 1) {
    parallel_for(0, s.channels, row_grain(s.outer * s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double first = 0, second = 0;
        for (int64_t o = 0; o < s.outer; ++o) {
          const int64_t base = (o * s.channels + c) * s.inner;
          constexpr int64_t kLanes = 16, kBlock = 2048;
          int64_t i = 0;
          while (s.inner - i >= kLanes) {
            const int64_t stop = i + std::min(kBlock, (s.inner - i) / kLanes * kLanes);
            C a[kLanes] = {}, b[kLanes] = {};
            for (; i < stop; i += kLanes)
              for (int64_t j = 0; j < kLanes; ++j) terms(base + i + j, c, a[j], b[j]);
            C block_a = 0, block_b = 0;
            for (int64_t j = 0; j < kLanes; ++j) block_a += a[j], block_b += b[j];
            first += block_a, second += block_b;
          }
          C a = 0, b = 0;
          for (; i < s.inner; ++i) terms(base + i, c, a, b);
          first += a, second += b;
        }
        done(c, first, second);
      }
    });
    return;
  }
  // Pieces of rows, the same for any number of threads, so that few channels occupy all of them.
  constexpr int64_t kBlock = 64, kRows = 32, kPiece = 2048;
  const int64_t blocks = (s.channels + kBlock - 1) / kBlock, pieces = (s.outer + kPiece - 1) / kPiece;
  const std::unique_ptr<double[]> sums(new double[static_cast<size_t>(2 * pieces * s.channels)]());
  parallel_for(0, blocks * pieces, row_grain(std::min(s.outer, kPiece) * kBlock),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t from = k % blocks * kBlock, width = std::min(kBlock, s.channels - from);
                   const int64_t piece = k / blocks, stop = std::min(s.outer, (piece + 1) * kPiece);
                   double *first = sums.get() + 2 * piece * s.channels + from, *second = first + s.channels;
                   for (int64_t o = piece * kPiece; o < stop; o += kRows) {
                     C a[kBlock] = {}, b[kBlock] = {};
                     for (int64_t r = o; r < std::min(o + kRows, stop); ++r)
                       for (int64_t i = 0; i < width; ++i)
                         terms(r * s.channels + from + i, from + i, a[i], b[i]);
                     for (int64_t i = 0; i < width; ++i) first[i] += a[i], second[i] += b[i];
                   }
                 }
               });
  for (int64_t c = 0; c < s.channels; ++c) {
    double first = 0, second = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      first += sums[2 * piece * s.channels + c];
      second += sums[(2 * piece + 1) * s.channels + c];
    }
    done(c, first, second);
  }
}

template <class T>
void channel_statistics(ChannelShape s, const void* data, void* mean_data, void* variance_data) {
  if constexpr (std::is_same_v<T, Half>) {
    const Half* halves = static_cast<const Half*>(data);
    if (has_long_channels(s))
      return parallel_for(0, s.channels, row_grain(s.outer * s.inner), [&](int64_t begin, int64_t end) {
        const Widened wide(s.outer * s.inner);
        for (int64_t c = begin; c < end; ++c) {
          widen_channel(s, halves, c, wide.data());
          channel_statistics<float>({1, 1, s.outer * s.inner}, wide.data(), after(mean_data, c),
                                    after(variance_data, c));
        }
      });
    const Widened wide(data, s.outer * s.channels * s.inner);
    return channel_statistics<float>(s, wide.data(), mean_data, variance_data);
  }
  using C = compute_type<T>;
  const T* x = static_cast<const T*>(data);
  auto *mean = static_cast<C*>(mean_data), *variance = static_cast<C*>(variance_data);
  const auto count = static_cast<double>(s.outer * s.inner);
  channel_sums<C>(
      s, [&](int64_t i, int64_t, C& a, C&) { a += static_cast<C>(x[i]); },
      [&](int64_t c, double sum, double) { mean[c] = static_cast<C>(sum / count); });
  // The rounded mean's own error is taken out again: var = E[d^2] - E[d]^2.
  channel_sums<C>(
      s,
      [&](int64_t i, int64_t c, C& a, C& b) {
        const C d = static_cast<C>(x[i]) - mean[c];
        a += d * d;
        b += d;
      },
      [&](int64_t c, double squares, double rest) {
        const double value = squares / count - rest / count * (rest / count);
        variance[c] = static_cast<C>(value < 0 ? 0 : value);  // NaN stays
      });
}

// Calls f(x, g, out, count, channel) for runs of one channel, or f(x, g, out, channels, -1) for whole rows of
// channels; without gradients g is x.
template <class T, class F>
void for_channel_runs(ChannelShape s, const T* x, const T* g, T* out, F&& f) {
  const bool by_rows = s.inner <= 1;
  const int64_t n = by_rows ? s.channels : s.inner, runs = by_rows ? s.outer : s.outer * s.channels;
  // Halves are widened in pieces that stay in the first-level cache.
  const int64_t most = std::is_same_v<T, Half> && !by_rows ? std::min<int64_t>(n, 2048) : n;
  parallel_for(0, runs, row_grain(n), [&](int64_t begin, int64_t end) {
    const Lines<T> inputs(most), grads(most), outputs(most);
    for (int64_t i = begin; i < end; ++i)
      for (int64_t at = i * n; at < (i + 1) * n; at += most) {
        const int64_t count = std::min(most, (i + 1) * n - at);
        const auto* xs = inputs.read(x + at, count);
        const auto* gs = g == x ? xs : grads.read(g + at, count);
        outputs.fill(out + at, count,
                     [&](auto* to) { f(xs, gs, to, count, by_rows ? int64_t{-1} : i % s.channels); });
      }
  });
}

template <class T>
void channel_affine(ChannelShape s, const void* data, const void* scale_data, const void* shift_data,
                    void* result) {
  if (const int64_t n = s.outer * s.channels * s.inner; widens<T>(n) && !has_long_channels(s)) {
    const Widened wide(data, n);
    channel_affine<float>(s, wide.data(), scale_data, shift_data, wide.data());
    return wide.store(result);
  }
  using C = compute_type<T>;
  const auto *scale = static_cast<const C*>(scale_data), *shift = static_cast<const C*>(shift_data);
  const T* from = static_cast<const T*>(data);
  using E = typename Lines<T>::Element;
  for_channel_runs(s, from, from, static_cast<T*>(result),
                   [&](const E* x, const E*, E* y, int64_t count, int64_t channel) {
                     if (channel < 0) {
                       for (int64_t c = 0; c < count; ++c)
                         y[c] = E(static_cast<C>(x[c]) * scale[c] + shift[c]);
                       return;
                     }
                     const C a = scale[channel], b = shift[channel];
                     for (int64_t i = 0; i < count; ++i) y[i] = E(static_cast<C>(x[i]) * a + b);
                   });
}

template <class T>
void channel_backward(ChannelShape s, const NormGradients& a, bool training);
void channels_backward_as_floats(ChannelShape s, const NormGradients& a, bool training) {
  const int64_t n = s.outer * s.inner;
  parallel_for(0, s.channels, row_grain(n), [&](int64_t begin, int64_t end) {
    const Widened x(n), grad(n), grad_x(a.grad_x ? n : 0);
    for (int64_t c = begin; c < end; ++c) {
      widen_channel(s, static_cast<const Half*>(a.x), c, x.data());
      widen_channel(s, static_cast<const Half*>(a.grad), c, grad.data());
      channel_backward<float>(
          {1, 1, n},
          {grad.data(), x.data(), after(a.weight, c), after(a.mean, c), after(a.rstd, c),
           a.grad_x ? grad_x.data() : nullptr, after(a.grad_weight, c), after(a.grad_bias, c)},
          training);
      if (a.grad_x) store_channel(s, grad_x.data(), c, static_cast<Half*>(a.grad_x));
    }
  });
}

template <class T>
void channel_backward(ChannelShape s, const NormGradients& a, bool training) {
  if constexpr (std::is_same_v<T, Half>) {
    if (has_long_channels(s)) return channels_backward_as_floats(s, a, training);
    if (const int64_t n = s.outer * s.channels * s.inner; widens<T>(n))
      return with_floats(a, n,
                         [&](const NormGradients& wide) { channel_backward<float>(s, wide, training); });
  }
  using C = compute_type<T>;
  const auto *g = static_cast<const T*>(a.grad), *x = static_cast<const T*>(a.x);
  const auto *weight = static_cast<const C*>(a.weight), *mean = static_cast<const C*>(a.mean),
             *rstd = static_cast<const C*>(a.rstd);
  auto *grad_weight = static_cast<C*>(a.grad_weight), *grad_bias = static_cast<C*>(a.grad_bias);
  const auto count = static_cast<double>(s.outer * s.inner);
  // grad_x = g * scale + x * slope + shift, by channel.
  const auto parts = std::make_unique<C[]>(static_cast<size_t>(3 * s.channels));
  C *scale = parts.get(), *slope = scale + s.channels, *shift = slope + s.channels;
  const auto sum_up = [&](const auto* xs, const auto* gs) {
    channel_sums<C>(
        s,
        [&, xs, gs](int64_t i, int64_t c, C& sum, C& product) {
          const C value = static_cast<C>(gs[i]);
          sum += value;
          product += value * (static_cast<C>(xs[i]) - mean[c]);
        },
        [&](int64_t c, double sum, double product) {
          if (grad_weight) grad_weight[c] = static_cast<C>(product * rstd[c]);
          if (grad_bias) grad_bias[c] = static_cast<C>(sum);
          scale[c] = at_or(weight, c, C(1)) * rstd[c];
          slope[c] = training ? static_cast<C>(-scale[c] * (product / count) * rstd[c] * rstd[c]) : C(0);
          shift[c] = training ? static_cast<C>(-scale[c] * (sum / count)) : C(0);
        });
  };
  if constexpr (std::is_same_v<T, Half>) {
    const int64_t n = s.outer * s.channels * s.inner;
    const Widened inputs(x, n), grads(g, n);
    sum_up(static_cast<const float*>(inputs.data()), static_cast<const float*>(grads.data()));
  } else {
    sum_up(x, g);
  }
  if (!a.grad_x) return;
  using E = typename Lines<T>::Element;
  for_channel_runs(s, x, g, static_cast<T*>(a.grad_x),
                   [&](const E* xr, const E* gr, E* out, int64_t length, int64_t channel) {
                     if (channel < 0) {
                       for (int64_t c = 0; c < length; ++c)
                         out[c] = E(static_cast<C>(gr[c]) * scale[c] +
                                    (static_cast<C>(xr[c]) - mean[c]) * slope[c] + shift[c]);
                       return;
                     }
                     const C p = scale[channel], q = slope[channel], r = shift[channel], m = mean[channel];
                     for (int64_t i = 0; i < length; ++i)
                       out[i] = E(static_cast<C>(gr[i]) * p + (static_cast<C>(xr[i]) - m) * q + r);
                   });
}

template <class T>
void groups(ChannelShape s, int64_t count, const NormArguments& a) {
  const int64_t width = s.channels / count, n = width * s.inner;
  if constexpr (std::is_same_v<T, Half>) {
    if (count * n <= kWidened / 8)  // several groups, or all of some examples
      return by_pieces(s.outer, count * n, [&](int64_t first, int64_t some, const Room& room) {
        room.with_floats(a, first * count * n, some * count * n, [&](NormArguments wide) {
          wide.mean = after(a.mean, first * count), wide.rstd = after(a.rstd, first * count);
          groups<float>({some, s.channels, s.inner}, count, wide);
        });
      });
    return parallel_for(0, s.outer * count, row_grain(n), [&](int64_t begin, int64_t end) {
      const Room room(n);
      for (int64_t r = begin; r < end; ++r)
        room.with_floats(a, r * n, n, [&](NormArguments wide) {
          wide.mean = after(a.mean, r), wide.rstd = after(a.rstd, r);
          wide.weight = after(a.weight, r % count * width), wide.bias = after(a.bias, r % count * width);
          groups<float>({1, width, s.inner}, 1, wide);
        });
    });
  }
  using C = compute_type<T>;
  const auto *weight = static_cast<const C*>(a.weight), *bias = static_cast<const C*>(a.bias);
  parallel_for(0, s.outer * count, row_grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = static_cast<const T*>(a.x) + r * n;
      T* y = static_cast<T*>(a.y) + r * n;
      const auto [mean, rstd] = row_moments<C>(x, n, a.eps, false);
      static_cast<C*>(a.mean)[r] = mean;
      static_cast<C*>(a.rstd)[r] = rstd;
      const int64_t first = r % count * width;
      if (s.inner == 1) {
        for (int64_t k = 0; k < width; ++k) {
          const C scale = at_or(weight, first + k, C(1)) * rstd;
          y[k] = T(static_cast<C>(x[k]) * scale + (at_or(bias, first + k, C(0)) - mean * scale));
        }
        continue;
      }
      for (int64_t k = 0; k < width; ++k) {
        const int64_t c = first + k;
        const C scale = at_or(weight, c, C(1)) * rstd, shift = at_or(bias, c, C(0)) - mean * scale;
        for (int64_t i = k * s.inner; i < (k + 1) * s.inner; ++i)
          y[i] = T(static_cast<C>(x[i]) * scale + shift);
      }
    }
  });
}

template <class T>
void groups_backward(ChannelShape s, int64_t count, const NormGradients& a) {
  if (const int64_t all = s.outer * s.channels * s.inner; widens<T>(all))
    return with_floats(a, all, [&](const NormGradients& wide) { groups_backward<float>(s, count, wide); });
  using C = compute_type<T>;
  const auto *g = static_cast<const T*>(a.grad), *x = static_cast<const T*>(a.x);
  const auto *weight = static_cast<const C*>(a.weight), *means = static_cast<const C*>(a.mean),
             *rstds = static_cast<const C*>(a.rstd);
  const int64_t width = s.channels / count, rows = s.outer * s.channels;
  // Sums of g and g * (x - mean) * rstd over each [outer, channel] row.
  const auto sums = std::make_unique<double[]>(static_cast<size_t>(2 * rows));
  double *plain = sums.get(), *centred = plain + rows;
  parallel_for(0, rows, row_grain(s.inner), [&](int64_t begin, int64_t end) {
    const Lines<T> grads(s.inner), inputs(s.inner);
    for (int64_t r = begin; r < end; ++r) {
      const auto *gr = grads.read(g + r * s.inner, s.inner), *xr = inputs.read(x + r * s.inner, s.inner);
      const C mean = means[r / width], rstd = rstds[r / width];
      plain[r] = sum_of<C>(s.inner, [&](int64_t i) { return static_cast<C>(gr[i]); });
      centred[r] = sum_of<C>(
          s.inner, [&](int64_t i) { return static_cast<C>(gr[i]) * (static_cast<C>(xr[i]) - mean) * rstd; });
    }
  });
  auto *grad_weight = static_cast<C*>(a.grad_weight), *grad_bias = static_cast<C*>(a.grad_bias);
  for (int64_t c = 0; c < s.channels && (grad_weight || grad_bias); ++c) {
    double w = 0, b = 0;
    for (int64_t o = 0; o < s.outer; ++o) w += centred[o * s.channels + c], b += plain[o * s.channels + c];
    if (grad_weight) grad_weight[c] = static_cast<C>(w);
    if (grad_bias) grad_bias[c] = static_cast<C>(b);
  }
  if (!a.grad_x) return;
  const auto n = static_cast<double>(width * s.inner);
  using E = typename Lines<T>::Element;
  parallel_for(0, s.outer * count, row_grain(width * s.inner), [&](int64_t begin, int64_t end) {
    const Lines<T> grads(s.inner), inputs(s.inner), outputs(s.inner);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group % count * width;
      double sum = 0, product = 0;
      for (int64_t k = 0; k < width; ++k) {
        const C w = at_or(weight, first + k, C(1));
        sum += w * plain[group * width + k];
        product += w * centred[group * width + k];
      }
      const C mean = means[group], rstd = rstds[group], shift = static_cast<C>(sum / n),
              slope = static_cast<C>(product / n);
      for (int64_t k = 0; k < width; ++k) {
        const int64_t base = (group * width + k) * s.inner;
        const C w = at_or(weight, first + k, C(1));
        const E *gr = grads.read(g + base, s.inner), *xr = inputs.read(x + base, s.inner);
        outputs.fill(static_cast<T*>(a.grad_x) + base, s.inner, [&](E* out) {
          for (int64_t i = 0; i < s.inner; ++i)
            out[i] =
                E(rstd * (static_cast<C>(gr[i]) * w - shift - (static_cast<C>(xr[i]) - mean) * rstd * slope));
        });
      }
    }
  });
}

template <class T>
constexpr NormKernels kKernels{rows<T>,           rows_backward<T>,    channel_statistics<T>,
                               channel_affine<T>, channel_backward<T>, groups<T>,
                               groups_backward<T>};

}  // namespace

const NormKernels* find_norm_kernels(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return &kKernels<float>;
    case DType::Float64:
      return &kKernels<double>;
    case DType::Float16:
      return &kKernels<Half>;
    case DType::BFloat16:
      return &kKernels<BFloat16>;
    default:
      return nullptr;
  }
}

}  // namespace rushlight::cpu::RL_ISA
