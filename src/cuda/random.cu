// Random fills, equal to PyTorch's: its kernels give element i to a thread and a turn of it by a grid whose
// size follows the device, each thread draws four numbers a turn from a Philox stream of its own.
#include <cmath>

#include "core/philox.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/uniform.h"

namespace rushlight::cuda {
namespace {

// Box and Muller's pairs, as cuRAND makes them.
RL_BOTH inline void normal_pair(uint32_t x, uint32_t y, float* out) {
  const float u = uniform(x), v = static_cast<float>(y) * 1.46291807e-09f + 7.31459036e-10f;
  const float s = sqrtf(-2.0f * logf(u));
#ifdef __CUDA_ARCH__
  __sincosf(v, &out[0], &out[1]);
  out[0] *= s, out[1] *= s;
#else
  out[0] = sinf(v) * s, out[1] = cosf(v) * s;
#endif
}
RL_BOTH inline void normal_pair(const uint32_t* x, double* out) {
  const double u = uniform(x[0], x[1]), v = uniform(x[2], x[3]) * 2.0;
  const double s = sqrt(-2.0 * log(u));
#ifdef __CUDA_ARCH__
  sincospi(v, &out[0], &out[1]);
  out[0] *= s, out[1] *= s;
#else
  const double angle = v * 3.14159265358979323846;
  out[0] = sin(angle) * s, out[1] = cos(angle) * s;
#endif
}
// PyTorch takes the quick logarithm on a GPU.
RL_BOTH inline double logarithm(double x) { return log(x); }
RL_BOTH inline float logarithm(float x) {
#ifdef __CUDA_ARCH__
  return __logf(x);
#else
  return logf(x);
#endif
}

// Threads of PyTorch's grid and the turns of each: one pair of them is one thread here.
struct Turns {
  int64_t threads;
  Divider fast;
  RL_BOTH void locate(int64_t i, int64_t* turn, int64_t* thread) const {
    *turn = (i | threads) >> 31 ? i / threads : fast.divide(static_cast<uint32_t>(i));
    *thread = i - *turn * threads;
  }
};

// Where a generator stands.
struct Stream {
  uint64_t seed, offset;
  const uint64_t* base;
  RL_BOTH uint64_t first_turn() const { return (base ? base[1] + offset : offset) / 4; }
  RL_BOTH void draw(int64_t thread, int64_t turn, uint32_t* x) const {
    const uint64_t key = base ? base[0] : seed;
    Philox(key, static_cast<uint64_t>(thread), first_turn() + static_cast<uint64_t>(turn)).draw(x);
  }
};

// Whether a value becomes `bound` in memory of type S.
template <class S, class T>
RL_BOTH bool rounds_to(T value, T bound) {
  if constexpr (is_stored_half<S>)
    return number<float>(number<S>(value)) == number<float>(number<S>(bound));
  else
    return value == bound;
}

// Bits to numbers of T: four of 32 bits, two of 64.
template <RandomKind kind, class S, class T>
RL_BOTH void shape_numbers(const uint32_t* x, T from, T to, T* out) {
  constexpr int kWidth = sizeof(T) == 8 ? 2 : 4;
  if constexpr (kind == RandomKind::Normal) {
    if constexpr (sizeof(T) == 8)
      normal_pair(x, out);
    else
      normal_pair(x[0], x[1], out), normal_pair(x[2], x[3], out + 2);
  }
  for (int slot = 0; slot < kWidth; ++slot) {
    if constexpr (kind == RandomKind::Normal) {
      out[slot] = out[slot] * to + from;
    } else {
      T u;
      if constexpr (sizeof(T) == 8)
        u = uniform(x[2 * slot], x[2 * slot + 1]);
      else
        u = uniform(x[slot]);
      if constexpr (kind == RandomKind::Uniform) {
        const T value = u * (to - from) + from;
        out[slot] = rounds_to<S>(value, to) ? from : value;  // (0, 1] becomes [0, 1)
      } else if constexpr (kind == RandomKind::Bernoulli) {
        out[slot] = u < from ? T(1) : T(0);
      } else {  // Exponential; the logarithm of 1 is not 0, for the result must be positive
        constexpr T half_step = sizeof(T) == 8 ? static_cast<T>(0x1p-53) : static_cast<T>(0x1p-24);
        out[slot] = T(-1) / from * (u >= T(1) - half_step ? -half_step : logarithm(u));
      }
    }
  }
}

// A thread of PyTorch's grid with all its turns: what depends on its stream alone is computed once.
template <RandomKind kind, class S, class T>
struct Fill {
  static constexpr int kWidth = sizeof(T) == 8 ? 2 : 4;
  S* out;
  int64_t n, threads;
  Stream stream;
  T a, b;
  RL_BOTH void operator()(int64_t thread) const {
    const uint64_t key = stream.base ? stream.base[0] : stream.seed;
    uint64_t turn = stream.first_turn();
    for (int64_t first = thread; first < n; first += threads * kWidth, ++turn) {
      uint32_t x[4];
      Philox(key, static_cast<uint64_t>(thread), turn).draw(x);
      T values[kWidth];
      shape_numbers<kind, S>(x, a, b, values);
      for (int slot = 0; slot < kWidth; ++slot)
        if (const int64_t at = first + slot * threads; at < n) out[at] = number<S>(values[slot]);
    }
  }
};

template <int width>
struct FillIntegers {
  char* out;
  DType dtype;
  int64_t n;
  Turns turns;
  Stream stream;
  int64_t from;
  uint64_t range;
  RL_BOTH void operator()(int64_t i) const {
    int64_t turn, thread;
    turns.locate(i, &turn, &thread);
    uint32_t x[4];
    stream.draw(thread, turn, x);
    const int64_t first = turn * turns.threads * width + thread, item = stored_size(dtype);
    for (int slot = 0; slot < width; ++slot) {
      const int64_t at = first + slot * turns.threads;
      if (at >= n) return;
      uint64_t value;
      if constexpr (width == 2) {
        value = uint64_t{x[2 * slot]} << 32 | x[2 * slot + 1];
        if (range) value %= range;
      } else {
        value = x[slot] % static_cast<uint32_t>(range);  // below 2^28
      }
      store(dtype, out + at * item, from + static_cast<int64_t>(value));
    }
  }
};

// A thread of PyTorch's kernels that read their input draws four floats for every four elements that it reads
// at once; f(element, number, how many it may still write).
template <int at_once, class F>
RL_BOTH void draw_beside(const Turns& turns, const Stream& stream, int64_t n, int64_t i, F&& f) {
  constexpr int kDraws = at_once > 4 ? at_once / 4 : 1;
  int64_t turn, thread;
  turns.locate(i, &turn, &thread);
  const int64_t first = (turn * turns.threads + thread) * at_once;
  if (first >= n) return;
  float u[kDraws * 4];
  for (int draw = 0; draw < kDraws; ++draw) {
    uint32_t x[4];
    stream.draw(thread, turn * kDraws + draw, x);
    for (int k = 0; k < 4; ++k) u[draw * 4 + k] = uniform(x[k]);
  }
  f(first, u, n - first);
}

// Dropout's mask, whose elements are kept where a number is below `keep`.
template <int at_once, class S>
struct Mask {
  struct alignas(sizeof(S) * at_once < 16 ? sizeof(S) * at_once : 16) All {
    S item[at_once];
  };
  S* out;
  int64_t n;
  Turns turns;
  Stream stream;
  float keep;
  RL_BOTH void operator()(int64_t i) const {
    draw_beside<at_once>(turns, stream, n, i, [&](int64_t first, const float* u, int64_t) {
      All all;
      for (int k = 0; k < at_once; ++k) all.item[k] = number<S>(u[k] < keep ? 1.0f : 0.0f);
      *reinterpret_cast<All*>(out + first) = all;
    });
  }
};

// The elements times such a mask and 1 / keep, and the mask.
template <int at_once, class S>
struct Dropout {
  using C = std::conditional_t<std::is_same_v<S, double>, double, float>;
  template <class T>
  struct alignas(sizeof(T) * at_once < 16 ? sizeof(T) * at_once : 16) All {
    T item[at_once];
  };
  S* out;
  bool* mask;
  const S* in;
  int64_t n;
  Turns turns;
  Stream stream;
  float keep;
  C scale;
  RL_BOTH S scaled(S value, bool kept) const {
    return number<S>(number<C>(value) * (kept ? C(1) : C(0)) * scale);
  }
  RL_BOTH void operator()(int64_t i) const {
    if constexpr (at_once == 1) {
      int64_t turn, thread;
      turns.locate(i, &turn, &thread);
      uint32_t x[4];
      stream.draw(thread, turn, x);
      for (int slot = 0; slot < 4; ++slot) {
        const int64_t at = (turn * 4 + slot) * turns.threads + thread;
        if (at >= n) return;
        mask[at] = uniform(x[slot]) < keep;
        out[at] = scaled(in[at], mask[at]);
      }
    } else {
      draw_beside<at_once>(turns, stream, n, i, [&](int64_t first, const float* u, int64_t) {
        All<S> all = *reinterpret_cast<const All<S>*>(in + first);
        All<bool> kept;
        for (int k = 0; k < at_once; ++k) {
          kept.item[k] = u[k] < keep;
          all.item[k] = scaled(all.item[k], kept.item[k]);
        }
        *reinterpret_cast<All<S>*>(out + first) = all;
        *reinterpret_cast<All<bool>*>(mask + first) = kept;
      });
    }
  }
};

// Ones with a probability for each element.
template <class P>
struct FillByProbability {
  char* out;
  DType dtype, p_dtype;
  const char* p;
  int64_t n;
  Turns turns;
  Stream stream;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t item = stored_size(dtype), p_item = stored_size(p_dtype);
    draw_beside<4>(turns, stream, n, i, [&](int64_t first, const float* u, int64_t rest) {
      for (int k = 0; k < 4; ++k) {
        if (k >= rest) return;
        const auto limit = load<P>(p_dtype, p + (first + k) * p_item);
        device_assert(limit >= P(0) && limit <= P(1), "a probability lies outside [0, 1]");
        store(dtype, out + (first + k) * item, static_cast<P>(u[k]) <= limit ? 1.0f : 0.0f);
      }
    });
  }
};

// Pairs of a thread and a turn that cover n elements, `width` a pair.
struct Cover {
  Turns turns;
  int64_t pairs;
  Cover(int64_t n, int64_t threads, int64_t width)
      : turns{threads, Divider(threads >> 31 ? 1 : static_cast<uint32_t>(threads))},
        pairs((n + threads * width - 1) / (threads * width) * threads) {}
};

template <RandomKind kind, class S, class T>
void fill_as(const Launch& launch, const View& out, double a, double b, const RandomPlace& at) {
  for_each_index(launch, at.threads < out.numel ? at.threads : out.numel,
                 Fill<kind, S, T>{reinterpret_cast<S*>(out.data),
                                  out.numel,
                                  at.threads,
                                  {at.seed, at.offset, at.base},
                                  static_cast<T>(a),
                                  static_cast<T>(b)});
}
template <RandomKind kind, bool always_floats = false>
void fill(const Launch& launch, const View& out, double a, double b, const RandomPlace& at) {
  visit_stored(out.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = std::conditional_t<std::is_same_v<S, double> && !always_floats, double, float>;
    if constexpr (kind == RandomKind::Bernoulli || is_stored_half<S> || std::is_floating_point_v<S>)
      fill_as<kind, S, T>(launch, out, a, b, at);
  });
}

template <int width>
void fill_integers(const Launch& launch, const View& out, double a, uint64_t range, const RandomPlace& at) {
  const Cover cover(out.numel, at.threads, width);
  for_each_index(launch, cover.pairs,
                 FillIntegers<width>{out.data,
                                     out.dtype,
                                     out.numel,
                                     cover.turns,
                                     {at.seed, at.offset, at.base},
                                     static_cast<int64_t>(a),
                                     range});
}

template <int at_once, class S>
void mask_as(const Launch& launch, const View& out, double keep, const RandomPlace& at) {
  const Cover cover(out.numel, at.threads, at_once);
  for_each_index(launch, cover.pairs,
                 Mask<at_once, S>{reinterpret_cast<S*>(out.data),
                                  out.numel,
                                  cover.turns,
                                  {at.seed, at.offset, at.base},
                                  static_cast<float>(keep)});
}
template <int at_once>
void mask(const Launch& launch, const View& out, double keep, const RandomPlace& at) {
  visit_stored(out.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if constexpr (is_stored_half<S> || std::is_floating_point_v<S>)
      mask_as<at_once, S>(launch, out, keep, at);
  });
}

template <int at_once, class S>
void dropout_as(const Launch& launch, const View& out, char* mask, const char* in, double keep,
                const RandomPlace& at) {
  using Kernel = Dropout<at_once, S>;
  const Cover cover(out.numel, at.threads, at_once == 1 ? 4 : at_once);
  for_each_index(launch, cover.pairs,
                 Kernel{reinterpret_cast<S*>(out.data),
                        reinterpret_cast<bool*>(mask),
                        reinterpret_cast<const S*>(in),
                        out.numel,
                        cover.turns,
                        {at.seed, at.offset, at.base},
                        static_cast<float>(keep),
                        static_cast<typename Kernel::C>(1 / keep)});
}

}  // namespace

void run_dropout(const View& out, char* mask, const char* in, double keep, int64_t at_once,
                 const RandomPlace& at) {
  const Launch launch{out.device, "dropout"};
  visit_stored(out.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if constexpr (is_stored_half<S> || std::is_floating_point_v<S>) {
      if (at_once >= 8)
        dropout_as<8, S>(launch, out, mask, in, keep, at);
      else if (at_once >= 4)
        dropout_as<4, S>(launch, out, mask, in, keep, at);
      else if (at_once >= 2)
        dropout_as<2, S>(launch, out, mask, in, keep, at);
      else
        dropout_as<1, S>(launch, out, mask, in, keep, at);
    }
  });
}

void run_random(RandomKind kind, const View& out, double a, double b, uint64_t range, const RandomPlace& at) {
  const Launch launch{out.device, "random"};
  switch (kind) {
    case RandomKind::Uniform:
      return fill<RandomKind::Uniform>(launch, out, a, b, at);
    case RandomKind::Normal:
      return fill<RandomKind::Normal>(launch, out, a, b, at);
    case RandomKind::Exponential:
      return fill<RandomKind::Exponential>(launch, out, a, b, at);
    case RandomKind::Integers:
      return random_width(kind, out.dtype, range) == 2 ? fill_integers<2>(launch, out, a, range, at)
                                                       : fill_integers<4>(launch, out, a, range, at);
    case RandomKind::Bernoulli:
      if (b >= 8) return mask<8>(launch, out, a, at);
      if (b >= 4) return mask<4>(launch, out, a, at);
      if (b >= 2) return mask<2>(launch, out, a, at);
      if (b > 0) return fill<RandomKind::Bernoulli, true>(launch, out, a, b, at);
      return fill<RandomKind::Bernoulli>(launch, out, a, b, at);
  }
}

void run_bernoulli(const View& out, const View& p, const RandomPlace& at) {
  const Cover cover(out.numel, at.threads, 4);
  const Launch launch{out.device, "random"};
  const Stream stream{at.seed, at.offset, at.base};
  if (p.dtype == DType::Float64)
    for_each_index(
        launch, cover.pairs,
        FillByProbability<double>{out.data, out.dtype, p.dtype, p.data, out.numel, cover.turns, stream});
  else
    for_each_index(
        launch, cover.pairs,
        FillByProbability<float>{out.data, out.dtype, p.dtype, p.data, out.numel, cover.turns, stream});
}

}  // namespace rushlight::cuda
