// All steps of a narrow LSTM layer: a team keeps the recurrent weights on the chip, in registers and in the
// memory that it shares, and takes one row of the batch from step to step. Sums are of float.
#include <cmath>

#include "cuda/channels.h"
#include "cuda/layers.h"
#include "cuda/lstm_steps.h"
#include "cuda/team.h"
#include "device/lstm.h"

namespace rushlight::cuda {
namespace {

struct alignas(16) Four {
  float v[4];
};

// How the weights of `width` units lie: each thread has as many numbers, of `rows` sums.
template <int width, int rows>
struct Held {
  static constexpr int kAll = 4 * width * width / static_cast<int>(kTeamThreads), kEach = kAll / rows,
                       kOwn = (kAll > 128 ? 128 : kAll) / rows,  // of a sum, in registers
      kShared = kEach - kOwn;
  static constexpr size_t kBytes = size_t{kShared} * rows * kTeamThreads * sizeof(float);
  struct Own {
    float w[rows][kOwn];
  };
  // weight(sum, k)
  template <class F>
  RL_BOTH static void read(uint32_t t, Own& own, Four* shared, F&& weight) {
    RL_UNROLL for (int r = 0; r < rows; ++r) {
      RL_UNROLL for (int k = 0; k < kOwn; ++k) own.w[r][k] = weight(r, k);
      for (int k = 0; k < kShared; ++k)
        shared[static_cast<uint32_t>(k / 4 * rows + r) * kTeamThreads + t].v[k % 4] = weight(r, kOwn + k);
    }
  }
  RL_BOTH static void add(float (&chain)[4], const float* left, const Four& right) {
    RL_UNROLL for (int i = 0; i < 4; ++i) chain[i] += left[i] * right.v[i];
  }
  // sums[r] += weights of it by `x`
  RL_BOTH static void multiply(uint32_t t, const Own& own, const Four* shared, const Four* x,
                               float (&sums)[rows]) {
    float chain[rows][4] = {};
    RL_UNROLL for (int k = 0; k < kOwn / 4; ++k) {
      const Four right = x[k];
      RL_UNROLL for (int r = 0; r < rows; ++r) { add(chain[r], &own.w[r][4 * k], right); }
    }
#ifdef __CUDA_ARCH__
#pragma unroll 4  // more would keep too much on its way
#endif
    for (int k = 0; k < kShared / 4; ++k) {
      const Four right = x[kOwn / 4 + k];
      RL_UNROLL for (int r = 0; r < rows; ++r) {
        const Four left = shared[static_cast<uint32_t>(k * rows + r) * kTeamThreads + t];
        add(chain[r], left.v, right);
      }
    }
    RL_UNROLL for (int r = 0; r < rows; ++r) {
      const float* c = chain[r];
      sums[r] += (c[0] + c[1]) + (c[2] + c[3]);
    }
  }
};

template <class S>
RL_BOTH float rounded(float x) {
  return number<float>(number<S>(x));
}
template <class S>
RL_BOTH float at(const void* data, int64_t i) {
  return number<float>(static_cast<const S*>(data)[i]);
}
template <class S>
RL_BOTH void put(void* data, int64_t i, float value) {
  static_cast<S*>(data)[i] = number<S>(value);
}

// A thread has the sums of gates t, t + 256, ...; then one unit.
template <class S, int width>
struct SequenceForward {
  static constexpr int kSums = 4 * width / static_cast<int>(kTeamThreads);
  using Weights = Held<width, kSums>;
  static constexpr size_t kBytes = Weights::kBytes + (width + 4 * width) * sizeof(float);
  struct State {
    typename Weights::Own own;
    float cell;
  };
  DeviceLstmSequence s;

  RL_BOTH void operator()(const Team& team) const {
    const int64_t h = s.hidden, row = team.index;
    Four* shared = reinterpret_cast<Four*>(team.memory);
    float *state = reinterpret_cast<float*>(team.memory + Weights::kBytes), *sums = state + width;
    PerThread<State> all;
    team.each(all, [&](uint32_t t, State& mine) {
      Weights::read(t, mine.own, shared, [&](int r, int k) {
        const int64_t q = r * int64_t{kTeamThreads} + t, gate = q / width, unit = q % width;
        return unit < h && k < h ? at<S>(s.weight, (gate * h + unit) * h + k) : 0.0f;
      });
      mine.cell = t < h ? at<S>(s.first_cell, row * h + t) : 0.0f;
      if (t < width) state[t] = t < h ? at<S>(s.first_hidden, row * h + t) : 0.0f;
    });
    RL_NO_UNROLL for (int64_t k = 0; k < s.steps; ++k) {
      const int64_t n = (s.reverse ? s.steps - 1 - k : k) * s.batch + row;
      team.each(all, [&](uint32_t t, State& mine) {
        float x[kSums];
        RL_UNROLL for (int r = 0; r < kSums; ++r) {
          const int64_t q = r * int64_t{kTeamThreads} + t, unit = q % width;
          x[r] = unit < h ? at<S>(s.projected, n * 4 * h + q / width * h + unit) : 0.0f;
        }
        Weights::multiply(t, mine.own, shared, reinterpret_cast<const Four*>(state), x);
        RL_UNROLL for (int r = 0; r < kSums; ++r) sums[r * static_cast<int>(kTeamThreads) + t] = x[r];
      });
      team.each(all, [&](uint32_t t, State& mine) {
        if (t >= h) return;
        float gates[4];
        RL_UNROLL for (int j = 0; j < 4; ++j) {
          const float x = sums[j * width + t];
          gates[j] = rounded<S>(j == 2 ? std::tanh(x) : 1 / (1 + std::exp(-x)));
          if (s.gates) put<S>(s.gates, (n * 4 + j) * h + t, gates[j]);
        }
        const float cell = gates[1] * mine.cell + gates[0] * gates[2];
        mine.cell = rounded<S>(cell);
        state[t] = rounded<S>(gates[3] * std::tanh(cell));
        put<S>(s.output, n * h + t, state[t]);
        if (s.cells) put<S>(s.cells, n * h + t, mine.cell);
      });
    }
    team.each(all, [&](uint32_t t, State& mine) {
      if (t < h) put<S>(s.last_cell, row * h + t, mine.cell);
    });
  }
};

// A thread has a share of what reaches a unit from the gates of the step that follows.
template <class S, int width>
struct SequenceBackward {
  static constexpr int kShares = static_cast<int>(kTeamThreads) / width, kGates = 4 * width / kShares;
  using Weights = Held<width, 1>;
  static constexpr size_t kBytes = Weights::kBytes + (4 * width + kTeamThreads) * sizeof(float);
  struct State {
    typename Weights::Own own;
    float grad_cell;
    float gates[4], before, after, flow;  // of the step, on their way meanwhile
  };
  DeviceLstmSequenceGradients s;

  RL_BOTH void operator()(const Team& team) const {
    const int64_t h = s.hidden, row = team.index;
    Four* shared = reinterpret_cast<Four*>(team.memory);
    float *later = reinterpret_cast<float*>(team.memory + Weights::kBytes), *sums = later + 4 * width;
    PerThread<State> all;
    team.each(all, [&](uint32_t t, State& mine) {
      const int64_t unit = t % width;
      Weights::read(t, mine.own, shared, [&](int, int k) {
        const int64_t q = t / width * kGates + k, gate = q / width, other = q % width;
        return unit < h && other < h ? at<S>(s.weight, (gate * h + other) * h + unit) : 0.0f;
      });
      mine.grad_cell = t < h ? at<S>(s.grad_cell, row * h + t) : 0.0f;
      for (uint32_t q = t; q < 4 * width; q += kTeamThreads) later[q] = 0;
    });
    RL_NO_UNROLL for (int64_t k = s.steps - 1; k >= 0; --k) {
      const int64_t time = s.reverse ? s.steps - 1 - k : k, n = time * s.batch + row,
                    previous = (s.reverse ? time + 1 : time - 1) * s.batch + row;
      team.each(all, [&](uint32_t t, State& mine) {
        if (t < h) {
          RL_UNROLL for (int j = 0; j < 4; ++j) mine.gates[j] = at<S>(s.gates, (n * 4 + j) * h + t);
          mine.before = k ? at<S>(s.cells, previous * h + t) : at<S>(s.first_cell, row * h + t);
          mine.after = at<S>(s.cells, n * h + t);
          mine.flow = at<S>(s.flow, n * h + t);
        }
        float sum[1] = {};
        Weights::multiply(t, mine.own, shared, reinterpret_cast<const Four*>(later) + t / width * kGates / 4,
                          sum);
        sums[t] = sum[0];
      });
      team.each(all, [&](uint32_t t, State& mine) {
        if (t >= h) return;
        float dh = mine.flow;
        RL_UNROLL for (int i = 0; i < kShares; ++i) dh += sums[i * width + t];
        const float in = mine.gates[0], forget = mine.gates[1], fresh = mine.gates[2], out = mine.gates[3],
                    bent = std::tanh(mine.after), dc = mine.grad_cell + dh * out * (1 - bent * bent);
        const float d[4] = {dc * fresh * in * (1 - in), dc * mine.before * forget * (1 - forget),
                            dc * in * (1 - fresh * fresh), dh * bent * out * (1 - out)};
        RL_UNROLL for (int j = 0; j < 4; ++j) {
          later[j * width + t] = rounded<S>(d[j]);
          put<S>(s.grad_gates, (n * 4 + j) * h + t, d[j]);
        }
        mine.grad_cell = rounded<S>(dc * forget);
      });
    }
    team.each(all, [&](uint32_t t, State& mine) {
      if (t < h) put<S>(s.grad_cell, row * h + t, mine.grad_cell);
    });
  }
};

constexpr int64_t kWidest = 128, kMostRows = 256;

template <template <class, int> class Kernel, class Sequence>
bool run(const Launch& launch, DType dtype, const Sequence& s) {
  if (s.hidden > kWidest || s.batch > kMostRows || dtype == DType::Float64) return false;
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<S, double>) {
      if (s.hidden <= 64)
        for_each_team(launch, s.batch, Kernel<S, 64>::kBytes, Kernel<S, 64>{s});
      else
        for_each_team(launch, s.batch, Kernel<S, 128>::kBytes, Kernel<S, 128>{s});
    }
  });
  return true;
}

}  // namespace

bool lstm_sequence(int device, DType dtype, const DeviceLstmSequence& s) {
  return run<SequenceForward>({device, "lstm"}, dtype, s) || lstm_steps(device, dtype, s);
}
bool lstm_sequence_backward(int device, DType dtype, const DeviceLstmSequenceGradients& s) {
  return run<SequenceBackward>({device, "lstm_backward"}, dtype, s);
}

}  // namespace rushlight::cuda
