// Steps of a wide LSTM layer for some dozens of rows, in float: the product with the recurrent weights and
// what is computed of it are one launch a step. A team has 8 units of 32 rows.
#include <cmath>

#include "cuda/layers.h"
#include "cuda/lstm_steps.h"
#include "cuda/team.h"
#include "device/lstm.h"

namespace rushlight::cuda {
namespace {

struct alignas(16) Four {
  float v[4];
};

constexpr int kUnits = 8, kRows = 32, kColumns = 4 * kUnits;  // a column is a gate of a unit
constexpr int kDepth = 64, kFours = kDepth / 4, kStride = kFours + 1;
constexpr int kLinesApart = static_cast<int>(kTeamThreads) / kFours,
              kLoads = (kColumns + kRows) / kLinesApart;

struct LstmSteps {
  static constexpr size_t kBytes = size_t{kColumns + kRows} * kStride * sizeof(Four);
  static_assert(kBytes >= kColumns * (kRows + 1) * sizeof(float));
  int64_t batch = 0, hidden = 0;
  const float *projected = nullptr, *weight = nullptr, *state = nullptr, *cell = nullptr;
  float *output = nullptr, *new_cell = nullptr;
  float *last_cell = nullptr, *gates = nullptr;  // or null

  struct Own {
    Four next[kLoads];  // of the tile that follows
    float sums[2][2];   // of columns and rows 16 apart
    float before[4], cell;
  };
  struct Place {
    int64_t unit, row;  // the first ones
    int64_t element_unit, element_row;
    bool inside;
  };
  RL_BOTH Place place_of(const Team& team, uint32_t t) const {
    Place p;
    const int64_t across = hidden / kUnits, line = team.index / across;
    p.unit = (team.index - line * across) * kUnits, p.row = line * kRows;
    p.element_unit = p.unit + t % kUnits, p.element_row = p.row + t / kUnits;
    p.inside = p.element_row < batch;
    return p;
  }

  // A thread reads the same part of rows of weights, then of the state.
  RL_BOTH void fetch(const Place& p, uint32_t t, int64_t from, Own& own) const {
    const int64_t k = from + t % kFours * 4;
    RL_UNROLL for (int i = 0; i < kLoads; ++i) {
      const int line = static_cast<int>(t) / kFours + i * kLinesApart;
      const float* data = nullptr;
      if (line < kColumns)
        data = weight + (line / kUnits * hidden + p.unit + line % kUnits) * hidden;
      else if (p.row + line - kColumns < batch)
        data = state + (p.row + line - kColumns) * hidden;
      own.next[i] = data && k < hidden ? *reinterpret_cast<const Four*>(data + k) : Four{};
    }
  }

  RL_DEVICE void operator()(const Team& team) const {
    Four* tiles = reinterpret_cast<Four*>(team.memory);
    PerThread<Own> all;
    team.each(all, [&](uint32_t t, Own& own) {
      const Place p = place_of(team, t);
      fetch(p, t, 0, own);
      RL_UNROLL for (int i = 0; i < 4; ++i) own.sums[i / 2][i % 2] = 0;
      const int64_t at = p.element_row * hidden + p.element_unit;
      RL_UNROLL for (int j = 0; j < 4; ++j) own.before[j] =
          p.inside ? projected[(p.element_row * 4 + j) * hidden + p.element_unit] : 0;
      own.cell = p.inside ? cell[at] : 0;
    });
    RL_NO_UNROLL for (int64_t from = 0; from < hidden; from += kDepth) {
      team.each(all, [&](uint32_t t, Own& own) {
        Four* to = tiles + t / kFours * kStride + t % kFours;
        RL_UNROLL for (int i = 0; i < kLoads; ++i) to[i * kLinesApart * kStride] = own.next[i];
        if (from + kDepth < hidden) fetch(place_of(team, t), t, from + kDepth, own);
      });
      team.each(all, [&](uint32_t t, Own& own) {
        multiply(tiles + column_of(t) * kStride, tiles + (kColumns + row_of(t)) * kStride, own);
      });
    }
    float* sums = reinterpret_cast<float*>(team.memory);
    team.each(all, [&](uint32_t t, Own& own) {
      float* to = sums + column_of(t) * (kRows + 1) + row_of(t);
      RL_UNROLL for (int i = 0; i < 4; ++i) to[i / 2 * 16 * (kRows + 1) + i % 2 * 16] =
          own.sums[i / 2][i % 2];
    });
    team.each(all, [&](uint32_t t, Own& own) {
      const Place p = place_of(team, t);
      if (p.inside) element(p, sums + t % kUnits * (kRows + 1) + t / kUnits, own);
    });
  }

  // Threads of a warp have 8 columns and 4 rows next to each other.
  RL_BOTH static uint32_t column_of(uint32_t t) { return t % 8 + t / 32 % 2 * 8; }
  RL_BOTH static uint32_t row_of(uint32_t t) { return t / 8 % 4 + t / 64 * 4; }
  RL_BOTH static void multiply(const Four* column, const Four* row, Own& own) {
    RL_UNROLL for (int k = 0; k < kFours; ++k) {
      const Four left[2] = {column[k], column[16 * kStride + k]}, right[2] = {row[k], row[16 * kStride + k]};
      RL_UNROLL for (int i = 0; i < 4; ++i) {
        RL_UNROLL for (int j = 0; j < 4; ++j) own.sums[j / 2][j % 2] += left[j / 2].v[i] * right[j % 2].v[i];
      }
    }
  }
  RL_BOTH void element(const Place& p, const float* sums, const Own& own) const {
    float g[4];
    RL_UNROLL for (int j = 0; j < 4; ++j) {
      const float x = own.before[j] + sums[j * kUnits * (kRows + 1)];
      g[j] = j == 2 ? std::tanh(x) : 1 / (1 + std::exp(-x));
      if (gates) gates[(p.element_row * 4 + j) * hidden + p.element_unit] = g[j];
    }
    const int64_t at = p.element_row * hidden + p.element_unit;
    const float c = g[1] * own.cell + g[0] * g[2];
    new_cell[at] = c;
    if (last_cell) last_cell[at] = c;
    output[at] = g[3] * std::tanh(c);
  }
};

bool in_fours(const void* address) { return reinterpret_cast<uintptr_t>(address) % sizeof(Four) == 0; }

}  // namespace

bool lstm_steps(int device, DType dtype, const DeviceLstmSequence& s) {
  constexpr int64_t kFewest = 33, kMost = 128, kNarrowest = 64;
  if (dtype != DType::Float32 || s.batch < kFewest || s.batch > kMost) return false;
  if (s.hidden < kNarrowest || s.hidden % kUnits) return false;
  if (!in_fours(s.weight) || !in_fours(s.first_hidden) || !in_fours(s.output)) return false;
  const int64_t state = s.batch * s.hidden, lines = (s.batch + kRows - 1) / kRows;
  auto of_step = [](void* data, int64_t t, int64_t step) {
    return data ? static_cast<float*>(data) + t * step : nullptr;
  };
  LstmSteps step{.batch = s.batch, .hidden = s.hidden};
  step.weight = static_cast<const float*>(s.weight);
  step.state = static_cast<const float*>(s.first_hidden);
  step.cell = static_cast<const float*>(s.first_cell);
  for (int64_t k = 0; k < s.steps; ++k) {
    const int64_t t = s.reverse ? s.steps - 1 - k : k;
    step.projected = static_cast<const float*>(s.projected) + t * 4 * state;
    step.output = of_step(s.output, t, state), step.gates = of_step(s.gates, t, 4 * state);
    step.new_cell = of_step(s.cells ? s.cells : s.last_cell, s.cells ? t : 0, state);
    step.last_cell = s.cells && k + 1 == s.steps ? static_cast<float*>(s.last_cell) : nullptr;
    for_each_team({device, "lstm"}, s.hidden / kUnits * lines, LstmSteps::kBytes, step);
    step.state = step.output, step.cell = step.new_cell;
  }
  return true;
}

}  // namespace rushlight::cuda
