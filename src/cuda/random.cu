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

struct Fill {
  char* out;
  DType dtype;
  int64_t threads;  // of PyTorch's grid
  uint64_t seed, offset;
  const uint64_t* base;
  RandomKind kind;
  double a, b;
  uint64_t range;

  // Numbers a turn gives: four of 32 bits, two of 64.
  RL_BOTH int width() const { return random_width(kind, dtype, range); }

  // Dropout's mask: a thread of PyTorch's fused kernel reads b elements at once and draws four floats for
  // each four of them; by ones it goes through memory as the other kernels do.
  RL_BOTH bool kept(int64_t i, uint64_t key, uint64_t start) const {
    const auto at_once = static_cast<int64_t>(b), turn_size = threads * (at_once > 1 ? at_once : 4);
    const int64_t turn = i / turn_size, rest = i % turn_size;
    const int64_t thread = at_once > 1 ? rest / at_once : rest % threads;
    const int64_t slot = at_once > 1 ? rest % at_once : rest / threads, draws = at_once > 4 ? at_once / 4 : 1;
    uint32_t x[4];
    Philox(key, static_cast<uint64_t>(thread), start + static_cast<uint64_t>(turn * draws + slot / 4))
        .draw(x);
    return uniform(x[slot % 4]) < static_cast<float>(a);
  }

  RL_BOTH void operator()(int64_t i) const {
    if (kind == RandomKind::Bernoulli && b > 0) {
      const uint64_t key = base ? base[0] : seed, start = (base ? base[1] + offset : offset) / 4;
      return store(dtype, out + i * stored_size(dtype), kept(i, key, start) ? 1.0f : 0.0f);
    }
    const int64_t turn_size = threads * width(), turn = i / turn_size, rest = i % turn_size;
    const int64_t slot = rest / threads, thread = rest % threads;
    const uint64_t key = base ? base[0] : seed, start = (base ? base[1] + offset : offset) / 4;
    uint32_t x[4];
    Philox(key, static_cast<uint64_t>(thread), start + static_cast<uint64_t>(turn)).draw(x);
    char* address = out + i * stored_size(dtype);
    if (kind == RandomKind::Integers) {
      const uint64_t drawn = width() == 2 ? uint64_t{x[2 * slot]} << 32 | x[2 * slot + 1] : x[slot];
      const uint64_t value = range ? drawn % range : drawn;
      return store(dtype, address, static_cast<int64_t>(a) + static_cast<int64_t>(value));
    }
    if (dtype == DType::Float64) return store(dtype, address, shaped<double>(x, slot));
    store(dtype, address, shaped<float>(x, slot));
  }

  template <class T>
  RL_BOTH T shaped(const uint32_t* x, int64_t slot) const {
    T u, pair[2];
    if constexpr (sizeof(T) == 8) {
      u = uniform(x[2 * slot], x[2 * slot + 1]);
      if (kind == RandomKind::Normal) normal_pair(x, pair);
    } else {
      u = uniform(x[slot]);
      if (kind == RandomKind::Normal) normal_pair(x[slot & 2], x[(slot & 2) + 1], pair);
    }
    const T from = static_cast<T>(a), to = static_cast<T>(b);
    switch (kind) {
      case RandomKind::Uniform: {
        const T value = u * (to - from) + from;
        return rounds_to(value, to) ? from : value;  // (0, 1] becomes [0, 1)
      }
      case RandomKind::Normal:
        return pair[slot & 1] * to + from;
      case RandomKind::Bernoulli:
        return u < from ? T(1) : T(0);
      default: {  // Exponential; the logarithm of 1 is not 0, for the result must be positive
        constexpr T half_step = sizeof(T) == 8 ? static_cast<T>(0x1p-53) : static_cast<T>(0x1p-24);
        return T(-1) / from * (u >= T(1) - half_step ? -half_step : logarithm(u));
      }
    }
  }
  // Whether a value becomes `bound` in memory.
  template <class T>
  RL_BOTH bool rounds_to(T value, T bound) const {
    if (dtype == DType::Float16)
      return number<float>(number<StoredHalf>(value)) == number<float>(number<StoredHalf>(bound));
    if (dtype == DType::BFloat16)
      return number<float>(number<StoredBFloat16>(value)) == number<float>(number<StoredBFloat16>(bound));
    return value == bound;
  }
};

}  // namespace

void run_random(RandomKind kind, const View& out, double a, double b, uint64_t range, const RandomPlace& at) {
  for_each_index({out.device, "random"}, out.numel,
                 Fill{out.data, out.dtype, at.threads, at.seed, at.offset, at.base, kind, a, b, range});
}

}  // namespace rushlight::cuda
